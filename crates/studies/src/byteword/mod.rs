//! The byte/word study: TPC-B on SQLite, built with and without the byte and word instructions,
//! run in two modes, compared. The question is that of the 1997 paper (Hunter and Betts).

mod page;
mod result;
pub(crate) mod schemes;
mod server;
mod setting;
mod tables;

use analysis::statics::ImageStatics;
use image::Image;
use workloads::build::Build;

pub use self::result::{Mode, ModeResult, Study, StudyRun};
pub use self::schemes::{SCHEMES, Scheme, SchemeTime};
pub use self::server::{ServerStudy, ServerStudySettings, byteword_server};
use self::setting::BytewordSetting;
pub use self::setting::StudySettings;
use crate::Error;
use crate::StudyReport;
use crate::database::{DatabaseBuilds, StudyProgress};
use crate::provenance::sqlite_provenance;

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
    /// Its tables and its page.
    pub fn report(&self) -> Result<StudyReport, report::Error> {
        Ok(StudyReport { summary: tables::summary(self), tables: tables::all(self), page: page::page(self)? })
    }
}

/// Builds, runs and compares.
pub fn byteword(options: &StudySettings, progress: &(dyn Fn(StudyProgress) + Sync)) -> Result<Study, Error> {
    let database = DatabaseBuilds::prepare("tpcb", &options.build, &options.sysroot, progress)?;
    let mut modes = Vec::new();
    for &mode in &options.modes {
        let setting = BytewordSetting { mode, database: &database };
        progress(StudyProgress::Running(mode.name));
        let runs = setting.count(progress)?;
        progress(StudyProgress::Timing(mode.name));
        let times = setting.time(&runs)?;
        modes.push(ModeResult { mode, runs, times });
    }
    let DatabaseBuilds { workload, builds, .. } = database;
    let statics = [images(&builds[0])?, images(&builds[1])?];
    let provenance = sqlite_provenance("pathlength study byteword", &builds, &options.sysroot);
    Ok(Study { workload, builds, statics, modes, provenance })
}

fn images(build: &Build) -> Result<Vec<ImageStatics>, Error> {
    build.images.iter().map(|path| Ok(ImageStatics::of(&Image::open(path)?))).collect()
}
