//! The byte/word study: TPC-B on SQLite, built with and without the byte and word instructions,
//! run in two modes, compared. The question is that of the 1997 paper (Hunter and Betts).

mod page;
mod result;
mod schemes;
mod setting;
pub mod strides;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use analysis::statics::ImageStatics;
use analysis::table::Table;
use image::Image;

pub use self::result::{Error, Mode, ModeResult, NoLibrary, Study, StudyRun};
pub use self::schemes::{SCHEMES, Scheme, SchemeTime};
use self::setting::{PROCESSORS, Setting};
pub use self::setting::{StudyProgress, StudySettings};
use crate::build::{Build, build};
use crate::record;
use crate::toolchain::{BYTE_WORD, NATIVE, ORIGINAL};
use crate::workload::Workload;

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

/// The C library under the sysroot.
const LIBRARY: &str = "lib/libc.so.6.1";

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
    let workload = Workload::named("tpcb").expect("the workload is in the table");
    check_library(&options.sysroot)?;
    let building = |step| progress(StudyProgress::Building(step));
    let mut builds = build(workload, &[ORIGINAL, BYTE_WORD, NATIVE], &options.build, &building)?;
    let native = builds.pop().expect("three were asked for");
    let builds: [Build; 2] = builds.try_into().expect("two are left");
    let folder = options.build.folder.join(workload.name).join("runs");
    let _lock = lock(&folder)?;
    progress(StudyProgress::Loading);
    let database = load(&native, &folder)?;
    let mut modes = Vec::new();
    for &mode in &options.modes {
        let setting =
            Setting { mode, workload, builds: &builds, folder: &folder, database: &database, options };
        progress(StudyProgress::Running(mode.name));
        let runs = setting.count(progress)?;
        progress(StudyProgress::Timing(mode.name));
        let times = setting.time(&runs)?;
        modes.push(ModeResult { mode, runs, times });
    }
    let statics = [images(&builds[0])?, images(&builds[1])?];
    let provenance = provenance(&builds, &options.sysroot);
    Ok(Study { workload, builds, statics, modes, provenance })
}

/// Checks, before minutes of work, that programs for Alpha can run.
fn check_library(sysroot: &Path) -> Result<(), NoLibrary> {
    let library = sysroot.join(LIBRARY);
    if library.exists() { Ok(()) } else { Err(NoLibrary(library)) }
}

/// Makes the folder of the runs and keeps others out of it: its name is the same each time, so that
/// the programs see the same paths.
fn lock(folder: &Path) -> Result<fs::File, Error> {
    let failed = |error| Error::Files { path: folder.into(), error };
    fs::create_dir_all(folder).map_err(failed)?;
    let lock = record::out_of_reach(fs::File::create(folder.join("lock")).map_err(failed)?);
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => Err(Error::Busy(folder.into())),
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Makes the database with the host's own build: its bytes do not depend on the build.
fn load(native: &Build, folder: &Path) -> Result<PathBuf, Error> {
    let database = folder.join("loaded.db");
    let output = Command::new(&native.program).arg("load").arg(&database).output();
    let output = output.map_err(|error| Error::Load(error.to_string()))?;
    if !output.status.success() {
        return Err(Error::Load(String::from_utf8_lossy(&output.stderr).trim().into()));
    }
    Ok(database)
}

fn images(build: &Build) -> Result<Vec<ImageStatics>, Error> {
    build.images.iter().map(|path| Ok(ImageStatics::of(&Image::open(path)?))).collect()
}

/// The provenance of the result: versions of all programs, and the commands.
fn provenance(builds: &[Build; 2], sysroot: &Path) -> Vec<(String, String)> {
    let folder = builds[0].program.parent().unwrap_or(Path::new("."));
    let sqlite = version_after(&folder.join("sqlite3.h"), b"#define SQLITE_VERSION ");
    let library = version_after(&sysroot.join(LIBRARY), b"stable release version ");
    let unknown = || "unknown".to_string();
    let mut facts = vec![
        ("Command".into(), "pathlength study byteword".into()),
        ("pathlength".into(), env!("CARGO_PKG_VERSION").into()),
        ("SQLite".into(), sqlite.unwrap_or_else(unknown)),
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
