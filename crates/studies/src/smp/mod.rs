//! The study of multiprocessors: the tables and figures of two studies of commercial workloads on multiprocessors, recomputed on
//! PostgreSQL, beside the printed values (K. Keeton and others, 1998), and commercial workloads against technical ones on an
//! AlphaServer (Z. Cvetanovic, 1998).

mod alphaserver;
mod findings;
mod machines;
mod measured;
mod page;
mod pentium_pro;
mod pentium_pro_tables;
mod printed;
mod settings;
mod table_forms;
mod workloads;

use table::Table;

use self::alphaserver::AlphaServerResults;
use self::pentium_pro::PentiumProResults;
pub use self::settings::SmpStudySettings;
use super::database::StudyProgress;
use super::environment::check_library;
use super::error::Error;
use crate::StudyReport;

/// Everything that was found.
pub struct SmpStudy {
    pentium_pro: PentiumProResults,
    alphaserver: AlphaServerResults,
    provenance: Vec<(String, String)>,
}

/// Builds, records and simulates.
pub fn smp(
    settings: &SmpStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<SmpStudy, Error> {
    check_library(&settings.sysroot)?;
    let (commercial, builds) = workloads::commercial(settings, progress)?;
    let technical = workloads::technical(settings, progress)?;
    let pentium_pro = PentiumProResults::measure(&commercial, progress)?;
    let alphaserver = AlphaServerResults::measure(&commercial, &technical, progress)?;
    let mut provenance = vec![
        ("Command".into(), format!("pathlength study smp --transactions {}", settings.transactions)),
        ("pathlength".into(), env!("CARGO_PKG_VERSION").into()),
    ];
    provenance.extend(builds);
    let all = std::iter::once(&commercial).chain(&technical);
    provenance.extend(all.map(|one| (one.name.clone(), one.path.display().to_string())));
    Ok(SmpStudy { pentium_pro, alphaserver, provenance })
}

impl SmpStudy {
    /// Its tables and its page.
    pub fn report(&self) -> Result<StudyReport, report::Error> {
        Ok(StudyReport { summary: self.summary(), tables: self.tables(), page: page::page(self)? })
    }

    /// The answer, for the terminal.
    fn summary(&self) -> Vec<Table> {
        let mut tables = vec![self.pentium_pro.cpi_table(), self.pentium_pro.throughput()];
        tables.push(self.alphaserver.allocation());
        tables.extend(self.findings());
        tables
    }

    /// Every table.
    fn tables(&self) -> Vec<Table> {
        let mut tables = self.pentium_pro.tables();
        tables.extend(self.alphaserver.tables());
        tables.extend(self.findings());
        tables
    }

    /// What the studies found, beside what was found here.
    fn findings(&self) -> Vec<Table> {
        vec![findings::pentium_pro(&self.pentium_pro), findings::alphaserver(&self.alphaserver)]
    }
}
