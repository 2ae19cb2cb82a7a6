//! The byte/word study: TPC-B on SQLite, built with and without the byte and word instructions,
//! run in two modes, compared. The question is that of the 1997 paper (Hunter and Betts).

mod byteword_server;
mod database;
mod environment;
mod error;
mod models;
pub mod numa;
mod page;
pub mod rdb;
mod recorded_server;
mod result;
mod schemes;
mod server;
mod setting;
pub mod smp;
pub mod spike;
pub mod strides;
mod tables;
pub mod tpcc;
pub mod tpch;
pub mod vlm;

use std::fs;
use std::path::Path;

use analysis::statics::ImageStatics;
use image::Image;
use table::Table;

pub use self::byteword_server::{ServerStudy, ServerStudySettings, byteword_server};
use self::database::DatabaseBuilds;
pub use self::database::StudyProgress;
use self::environment::{LIBRARY, PROCESSORS};
pub use self::error::{Error, NoLibrary};
pub use self::result::{Mode, ModeResult, Study, StudyRun};
pub use self::schemes::{SCHEMES, Scheme, SchemeTime};
use self::setting::Setting;
pub use self::setting::StudySettings;
use crate::build::Build;

/// The paper's two modes.
pub const MODES: [Mode; 2] = [
    Mode {
        name: "cached",
        meaning: "the whole database fits SQLite's page cache, and the log write is the only input or output",
        transactions: 4000,
    },
    Mode {
        name: "scaled",
        meaning: "the database is larger than the page cache, so that transactions also read and write pages",
        transactions: 4000,
    },
];

impl Study {
    /// The tables for the terminal: the answer and little more.
    pub fn summary(&self) -> Vec<Table> {
        tables::summary(self)
    }

    /// Every table.
    pub fn tables(&self) -> Vec<Table> {
        tables::all(self)
    }

    /// The report as a page.
    pub fn page(&self) -> Result<report::Page, report::Error> {
        page::page(self)
    }
}

/// Builds, runs and compares.
pub fn byteword(options: &StudySettings, progress: &(dyn Fn(StudyProgress) + Sync)) -> Result<Study, Error> {
    let database = DatabaseBuilds::prepare("tpcb", &options.build, &options.sysroot, progress)?;
    let mut modes = Vec::new();
    for &mode in &options.modes {
        let setting = Setting { mode, database: &database };
        progress(StudyProgress::Running(mode.name));
        let runs = setting.count(progress)?;
        progress(StudyProgress::Timing(mode.name));
        let times = setting.time(&runs)?;
        modes.push(ModeResult { mode, runs, times });
    }
    let DatabaseBuilds { workload, builds, .. } = database;
    let statics = [images(&builds[0])?, images(&builds[1])?];
    let provenance = provenance("pathlength study byteword", &builds, &options.sysroot);
    Ok(Study { workload, builds, statics, modes, provenance })
}

fn images(build: &Build) -> Result<Vec<ImageStatics>, Error> {
    build.images.iter().map(|path| Ok(ImageStatics::of(&Image::open(path)?))).collect()
}

/// The provenance of the result on SQLite.
fn provenance(command: &str, builds: &[Build; 2], sysroot: &Path) -> Vec<(String, String)> {
    let folder = builds[0].program.parent().unwrap_or(Path::new("."));
    let sqlite = version_after(&folder.join("sqlite3.h"), b"#define SQLITE_VERSION ");
    provenance_of(command, ("SQLite", sqlite), builds, sysroot)
}

/// The provenance of the result: versions of all programs, and the commands.
fn provenance_of(
    command: &str,
    (database, version): (&str, Option<String>),
    builds: &[Build; 2],
    sysroot: &Path,
) -> Vec<(String, String)> {
    let library = version_after(&sysroot.join(LIBRARY), b"stable release version ");
    let unknown = || "unknown".to_string();
    let mut facts = vec![
        ("Command".into(), command.into()),
        ("pathlength".into(), env!("CARGO_PKG_VERSION").into()),
        (database.into(), version.unwrap_or_else(unknown)),
        ("Compiler of both builds".into(), builds[0].compiler.clone()),
        (
            "C library, the same for both builds".into(),
            library.map_or_else(unknown, |v| format!("glibc {v}")),
        ),
    ];
    for (build, cpu) in builds.iter().zip(PROCESSORS) {
        facts.push((format!("{} build", build.name), build.commands.join("\n")));
        facts.push((format!("{} build runs on", build.name), format!("--cpu {cpu}")));
    }
    facts
}

/// The version that follows `marker` in a file: digits, letters and points, perhaps in quotes.
fn version_after(path: &Path, marker: &[u8]) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let at = bytes.windows(marker.len()).position(|window| window == marker)? + marker.len();
    let version = bytes[at..].iter().map(|&byte| char::from(byte)).skip_while(|c| !c.is_alphanumeric());
    let version: String = version.take_while(|c| c.is_alphanumeric() || *c == '.').collect();
    Some(version.trim_end_matches('.').into())
}
