//! The study of very large memory: Figures 4, 8 and 9 of the 1998 paper on this machine, and PostgreSQL on a section. The
//! crate `vlm` measures; this makes tables and a page.

mod page;
mod postgresql;
mod tables;

use std::path::{Path, PathBuf};

pub use vlm::Size;
use vlm::memory;
pub use vlm::study::Backing;
use vlm::study::{Settings, StudyRow, is_interrupted, study_memory};

use crate::StudyReport;
use postgresql::PostgresqlRow;
pub use postgresql::PostgresqlSettings;

/// What to study.
#[derive(Clone, Debug)]
pub struct VlmStudySettings {
    /// The sizes of sections.
    pub sizes: Vec<Size>,
    /// The numbers of processes.
    pub processes: Vec<usize>,
    /// What the memory consists of.
    pub backings: Vec<Backing>,
    /// PostgreSQL's server, unless it is left out.
    pub postgresql: Option<PostgresqlSettings>,
    /// The command `vlm`, which starts the processes.
    pub vlm: PathBuf,
}

/// What the study does now, or has found, as a line.
pub type VlmProgress<'a> = dyn Fn(String) + 'a;

/// Why the study came to no result.
#[derive(Debug, thiserror::Error)]
pub enum VlmStudyError {
    /// Ctrl-C, or a signal from another program.
    #[error("the study was interrupted; its memory was given back")]
    Interrupted,
    /// Not even one thing could be measured.
    #[error("nothing could be measured: {0}")]
    Nothing(String),
    /// There is no command to start processes with.
    #[error(
        "the study starts processes by the command vlm, which is neither beside this program nor in PATH: build it \
         (cargo build --release -p pathlength-vlm), or name it with --vlm FILE"
    )]
    NoCommand,
    /// The named command is none.
    #[error("{} is no command: name the program vlm with --vlm FILE", .0.display())]
    WrongCommand(PathBuf),
}

/// What could not be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmeasured {
    /// What.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// Everything that was found.
#[derive(Debug)]
pub struct VlmStudy {
    rows: Vec<StudyRow>,
    postgresql: Vec<PostgresqlRow>,
    unmeasured: Vec<Unmeasured>,
    provenance: Vec<(String, String)>,
}

/// Measures all that can be measured here.
pub fn vlm(settings: &VlmStudySettings, progress: &VlmProgress) -> Result<VlmStudy, VlmStudyError> {
    let mut study = VlmStudy {
        rows: Vec::new(),
        postgresql: Vec::new(),
        unmeasured: Vec::new(),
        provenance: provenance(settings),
    };
    for &size in &settings.sizes {
        for &backing in &settings.backings {
            study.measure(settings, size, backing, progress)?;
        }
    }
    if let Some(server) = &settings.postgresql {
        study.measure_postgresql(settings, server, progress)?;
    }
    match (&study.rows[..], &study.postgresql[..], study.unmeasured.first()) {
        ([], [], Some(first)) => Err(VlmStudyError::Nothing(format!("{}: {}", first.what, first.reason))),
        _ => Ok(study),
    }
}

/// The command `vlm`: the one that is named, or the one beside this program, or in PATH.
pub fn find_vlm(named: Option<&Path>) -> Result<PathBuf, VlmStudyError> {
    if let Some(path) = named {
        let is_file = path.is_file();
        let absolute = std::path::absolute(path).ok().filter(|_| is_file);
        return absolute.ok_or_else(|| VlmStudyError::WrongCommand(path.into()));
    }
    let own = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.to_owned()));
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let folders = own.into_iter().chain(std::env::split_paths(&in_path));
    folders.map(|folder| folder.join("vlm")).find(|file| file.is_file()).ok_or(VlmStudyError::NoCommand)
}

impl VlmStudy {
    fn measure(
        &mut self,
        settings: &VlmStudySettings,
        size: Size,
        backing: Backing,
        progress: &VlmProgress,
    ) -> Result<(), VlmStudyError> {
        let measurement = Settings {
            backings: vec![backing],
            sizes: vec![size],
            processes: settings.processes.clone(),
            vlm: settings.vlm.clone(),
        };
        let what = format!("{size} in {}", backing.title());
        progress(format!("preparing {what}"));
        let outcome = study_memory(&measurement, backing, size, &mut |row| {
            let plural = if row.processes == 1 { "" } else { "es" };
            let seconds = row.start_up.as_secs_f64();
            progress(format!("{what}: {} process{plural} in {seconds:.2} s", row.processes));
            self.rows.push(row);
        });
        self.note(what, outcome)
    }

    fn measure_postgresql(
        &mut self,
        settings: &VlmStudySettings,
        server: &PostgresqlSettings,
        progress: &VlmProgress,
    ) -> Result<(), VlmStudyError> {
        progress(format!("filling a database of {} in PostgreSQL", server.size));
        let outcome = postgresql::measure(&settings.vlm, server, &mut |row| {
            progress(format!("PostgreSQL, {}: {:.2} s to connect and touch", row.memory, row.touch));
            self.postgresql.push(row);
        });
        self.note(format!("PostgreSQL with {} connections", server.connections), outcome)
    }

    /// Keeps the reason why something was not measured, and goes on unless the study was interrupted.
    fn note<E: std::fmt::Display>(
        &mut self,
        what: String,
        outcome: Result<(), E>,
    ) -> Result<(), VlmStudyError> {
        match outcome {
            _ if is_interrupted() => Err(VlmStudyError::Interrupted),
            Ok(()) => Ok(()),
            Err(reason) => {
                self.unmeasured.push(Unmeasured { what, reason: reason.to_string() });
                Ok(())
            }
        }
    }

    /// What could not be measured, and why.
    pub fn unmeasured(&self) -> &[Unmeasured] {
        &self.unmeasured
    }

    /// Its tables and its page.
    pub fn report(&self) -> Result<StudyReport, report::Error> {
        Ok(StudyReport { summary: tables::summary(self), tables: tables::all(self), page: page::page(self)? })
    }
}

/// The machine and the command, for the end of the page.
fn provenance(settings: &VlmStudySettings) -> Vec<(String, String)> {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let gib = |size: Size| format!("{:.1} GiB", size.bytes() as f64 / (1_u64 << 30) as f64);
    let facts = [
        ("Command", Some("pathlength study vlm".to_owned())),
        ("pathlength", Some(env!("CARGO_PKG_VERSION").to_owned())),
        ("Processes are started by", Some(settings.vlm.display().to_string())),
        ("Kernel", read("/proc/sys/kernel/osrelease").map(|release| format!("Linux {release}"))),
        ("Processors", Some(processors.to_string())),
        ("Memory", memory::total().ok().map(gib)),
        ("Available at the start", memory::available().ok().map(gib)),
        ("Load average at the start", read("/proc/loadavg")),
    ];
    facts.into_iter().filter_map(|(what, value)| Some((what.to_owned(), value?))).collect()
}
