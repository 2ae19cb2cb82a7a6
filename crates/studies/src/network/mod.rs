//! The study of networking: what the adapter DART saves on the way of a byte between two programs ("DART: Fast Application-level
//! Networking via Data-copy Avoidance", 1997), beside a traditional adapter, one of programmed I/O, and a present-day one.

mod break_even;
mod error;
mod figure_7;
pub mod linux;
mod logs;
mod measure;
mod memory;
mod page;
mod paths;
mod print;
mod tables;

use std::path::PathBuf;

use table::Table;

use crate::StudyReport;
use break_even::BreakEven;
pub use error::Error;
use figure_7::{DipPoint, Figure7, Table3};
use linux::{LinuxStudySettings, LinuxTransfer};
use logs::ReplayedLog;
use measure::{Delivered, FeatureEffect, LoadPoint, PacketLatency};
use memory::MemoryOperations;
use paths::CountedPath;
pub use paths::PathSettings;

/// The extent of the simulation.
#[derive(Clone, Debug)]
pub struct NetworkStudySettings {
    /// The packets of each run.
    pub packets: u32,
    /// Logs of drivers to replay.
    pub logs: Vec<PathBuf>,
    /// The counted runs of the stack.
    pub paths: PathSettings,
    /// The part with a kernel; None leaves it out.
    pub linux: Option<LinuxStudySettings>,
}

/// Everything that was found.
#[derive(Clone, Debug)]
pub struct NetworkStudy {
    /// The stack's paths, or why they were not counted.
    paths: Result<Vec<CountedPath>, String>,
    memory: Vec<MemoryOperations>,
    delivered: Vec<Delivered>,
    figure_7: Vec<Figure7>,
    dip: Vec<DipPoint>,
    table_3: Table3,
    load: Vec<LoadPoint>,
    break_even: Vec<BreakEven>,
    features: Vec<FeatureEffect>,
    latencies: Vec<PacketLatency>,
    logs: Vec<ReplayedLog>,
    /// Transfers over Linux; none if that is left out.
    linux: Vec<LinuxTransfer>,
    provenance: Vec<(String, String)>,
}

/// Counts the stack's paths, and simulates everything. `progress` is told what comes next.
pub fn network(
    settings: &NetworkStudySettings,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<NetworkStudy, Error> {
    let packets = u64::from(settings.packets);
    logs::check(&settings.logs)?;
    let paths = paths::paths(&settings.paths, progress);
    progress("memory operations");
    let memory = memory::memory_operations();
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
    if !settings.logs.is_empty() {
        progress("the logs of drivers");
    }
    let logs = logs::replay(&settings.logs)?;
    let of_logs: String = settings.logs.iter().map(|log| format!(" --log {}", log.display())).collect();
    let of_linux = if settings.linux.is_some() { " --linux" } else { "" };
    let bytes = settings.paths.bytes;
    let mut provenance = vec![
        (
            "Command".into(),
            format!("pathlength study network --packets {packets} --bytes {bytes}{of_logs}{of_linux}"),
        ),
        ("pathlength".into(), env!("CARGO_PKG_VERSION").into()),
        ("Adapters".into(), adapter::names()),
    ];
    let linux = match &settings.linux {
        Some(settings) => linux_or_reason(settings, progress, &mut provenance)?,
        None => {
            provenance.push(("Left out".into(), "Linux beside it, without --linux".into()));
            Vec::new()
        }
    };
    Ok(NetworkStudy {
        paths,
        memory,
        delivered,
        figure_7,
        dip,
        table_3,
        load,
        break_even,
        features,
        latencies,
        logs,
        linux,
        provenance,
    })
}

/// The transfers over Linux. What prevents them leaves only them out, and is named among how the results were made.
fn linux_or_reason(
    settings: &LinuxStudySettings,
    progress: &dyn Fn(&str),
    provenance: &mut Vec<(String, String)>,
) -> Result<Vec<LinuxTransfer>, Error> {
    let mut failures = Vec::new();
    let transfers = match linux::transfers(settings, progress, &mut failures) {
        Ok(transfers) => {
            provenance.push(("Linux".into(), linux::PROVENANCE.into()));
            transfers
        }
        Err(error) if error.is_interruption() => return Err(error.into()),
        Err(error) => {
            failures.push(error);
            Vec::new()
        }
    };
    for failure in failures {
        let reason = format!("Linux beside it: {failure}");
        progress(&format!("left out: {reason}"));
        provenance.push(("Left out".into(), reason));
    }
    Ok(transfers)
}

impl NetworkStudy {
    /// Its tables and its page.
    pub fn report(&self) -> Result<StudyReport, report::Error> {
        Ok(StudyReport { summary: self.summary(), tables: self.tables(), page: page::page(self)? })
    }

    /// The tables that matter most.
    fn summary(&self) -> Vec<Table> {
        let mut summary = vec![
            tables::paths_in_sum(&self.paths),
            tables::memory_by_size(&self.memory),
            tables::delivered(&self.delivered),
            tables::table_3(&self.table_3),
            tables::features(&self.features),
        ];
        summary.extend(self.replayed());
        summary.extend(self.linux.first().map(|_| linux::ladder(&self.linux)));
        let left_out = self.provenance.iter().filter(|(what, _)| what == "Left out");
        let notes = left_out.map(|(_, reason)| format!("Left out: {reason}."));
        summary.last_mut().expect("several tables").notes.extend(notes);
        summary
    }

    /// The replayed logs, if there are any.
    fn replayed(&self) -> Option<Table> {
        (!self.logs.is_empty()).then(|| tables::logs(&self.logs))
    }

    /// Every table.
    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![
            tables::paths(&self.paths),
            tables::paths_in_sum(&self.paths),
            tables::memory(&self.memory),
            tables::memory_by_size(&self.memory),
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
        ];
        tables.extend(self.replayed());
        tables.extend(self.linux_tables());
        tables
    }

    /// The tables of Linux, if it is not left out.
    fn linux_tables(&self) -> Vec<Table> {
        let linux = &self.linux;
        if linux.is_empty() {
            return Vec::new();
        }
        vec![
            linux::ladder(linux),
            linux::components(linux),
            linux::functions(linux),
            linux::structures(linux),
        ]
    }
}
