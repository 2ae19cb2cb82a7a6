//! The study of networking: what the adapter DART saves on the way of a byte between two programs ("DART: Fast Application-level
//! Networking via Data-copy Avoidance", 1997), beside a traditional adapter, one of programmed I/O, and a present-day one.

mod break_even;
mod error;
mod figure_7;
mod measure;
mod page;
mod print;
mod tables;

use table::Table;

use crate::StudyReport;
use break_even::BreakEven;
pub use error::Error;
use figure_7::{DipPoint, Figure7, Table3};
use measure::{Delivered, FeatureEffect, LoadPoint, PacketLatency};

/// The extent of the simulation.
#[derive(Clone, Copy, Debug)]
pub struct NetworkStudySettings {
    /// The packets of each run.
    pub packets: u32,
}

/// Everything that was found.
#[derive(Clone, Debug)]
pub struct NetworkStudy {
    delivered: Vec<Delivered>,
    figure_7: Vec<Figure7>,
    dip: Vec<DipPoint>,
    table_3: Table3,
    load: Vec<LoadPoint>,
    break_even: Vec<BreakEven>,
    features: Vec<FeatureEffect>,
    latencies: Vec<PacketLatency>,
    provenance: Vec<(String, String)>,
}

/// Simulates everything. `progress` is told what comes next.
pub fn network(settings: &NetworkStudySettings, progress: &dyn Fn(&str)) -> Result<NetworkStudy, Error> {
    let packets = u64::from(settings.packets);
    progress("what each adapter delivers");
    let delivered = measure::delivered(packets)?;
    progress("Figure 7 and Table 3");
    let (figure_7, dip, table_3) =
        (figure_7::figure_7(packets)?, figure_7::dip(), figure_7::table_3(packets)?);
    progress("interrupts and registers by load");
    let load = measure::by_load(packets)?;
    progress("DMA and programmed I/O");
    let break_even = break_even::break_even()?;
    progress("each feature alone");
    let features = measure::features(packets)?;
    let latencies = measure::latencies()?;
    let provenance = vec![
        ("Command".into(), format!("pathlength study network --packets {packets}")),
        ("pathlength".into(), env!("CARGO_PKG_VERSION").into()),
        ("Adapters".into(), adapter::names()),
    ];
    Ok(NetworkStudy { delivered, figure_7, dip, table_3, load, break_even, features, latencies, provenance })
}

impl NetworkStudy {
    /// Its tables and its page.
    pub fn report(&self) -> Result<StudyReport, report::Error> {
        Ok(StudyReport { summary: self.summary(), tables: self.tables(), page: page::page(self)? })
    }

    /// The tables that matter most.
    fn summary(&self) -> Vec<Table> {
        vec![
            tables::delivered(&self.delivered),
            tables::table_3(&self.table_3),
            tables::features(&self.features),
        ]
    }

    /// Every table.
    fn tables(&self) -> Vec<Table> {
        vec![
            tables::delivered(&self.delivered),
            tables::figure_7(&self.figure_7),
            tables::dip(&self.dip),
            tables::table_3(&self.table_3),
            tables::by_load(&self.load),
            tables::break_even(&self.break_even),
            tables::published(),
            tables::features(&self.features),
            tables::latencies(&self.latencies),
            print::errors(),
        ]
    }
}
