//! What the builds of a study run in.

use std::ffi::OsString;
use std::path::PathBuf;

use analysis::profile::Attribution;
use analysis::units::{Phase, SteadyRules};
use engine::{Configuration, UnitOfWork};
use serde::Serialize;
use serde::de::DeserializeOwned;
use session::measure::{self, CountRequest, Counted};
use workloads::build::BuildFolders;

use super::result::{Mode, StudyRun};
use crate::database::{DatabaseBuilds, StudyProgress, check_success};
use crate::error::Error;

/// Transactions in a batch: as many as lie between two checkpoints, for a transaction gets longer as
/// the log does.
const BATCH: usize = 250;

/// Transactions measured in the steady state: two checkpoints' worth.
const MEASURED: usize = 500;

/// Page-cache hits that make a steady state, as in the paper.
const HIT_RATIO: f64 = 0.95;

/// What to study.
#[derive(Clone, Debug)]
pub struct StudySettings {
    /// Which modes to run.
    pub modes: Vec<Mode>,
    /// Where builds and databases are kept.
    pub build: BuildFolders,
    /// Where Alpha's C library is.
    pub sysroot: PathBuf,
}

/// What both builds run in.
pub(super) struct BytewordSetting<'a> {
    pub(super) mode: Mode,
    pub(super) database: &'a DatabaseBuilds,
}

impl BytewordSetting<'_> {
    /// Counts both builds' instructions.
    pub(super) fn count(&self, progress: &(dyn Fn(StudyProgress) + Sync)) -> Result<[StudyRun; 2], Error> {
        let count = |configuration: Configuration, _, tell: &mut (dyn FnMut((u64, Phase)) + Send)| {
            let gauges = self.database.workload.gauges.iter().map(|&gauge| gauge.into()).collect();
            let work = UnitOfWork {
                functions: vec![self.database.workload.unit.into()],
                gauges,
                ..UnitOfWork::default()
            };
            let rules = SteadyRules {
                batch: BATCH,
                measure: MEASURED,
                hit_ratio: Some(HIT_RATIO),
                ..SteadyRules::default()
            };
            let request = CountRequest { configuration, unit: Some((work, rules)) };
            measure::count(&request, &mut |units, phase| {
                if units.is_multiple_of(64) || phase == Phase::Done {
                    tell((units, phase));
                }
            })
        };
        let report = &mut |(units, phase)| progress(StudyProgress::Units(units, phase));
        let mut runs = Vec::new();
        for (build, (counted, output)) in self.database.builds.iter().zip(self.both(count, report)?) {
            let failed = |reason| Error::Workload { build: build.name, mode: self.mode.name, reason };
            runs.push(finished(counted, output).map_err(failed)?);
        }
        Ok(runs.try_into().unwrap_or_else(|_| unreachable!("two builds make two runs")))
    }

    /// Runs both builds at once, in this mode. `run` gets the number of the build.
    pub(super) fn both<T: Serialize + DeserializeOwned, P: Serialize + DeserializeOwned, E: ToString>(
        &self,
        run: impl Fn(Configuration, usize, &mut (dyn FnMut(P) + Send)) -> Result<T, E>,
        progress: &mut dyn FnMut(P),
    ) -> Result<[(T, String); 2], Error> {
        let Mode { name, transactions, .. } = self.mode;
        let arguments: [String; 4] =
            ["--mode".into(), name.into(), "--transactions".into(), transactions.to_string()];
        self.database.run_both(name, &arguments.map(OsString::from), run, progress)
    }
}

fn finished(counted: Counted, output: String) -> Result<StudyRun, String> {
    check_success(&counted.ending, &output)?;
    let measurement = counted.measurement.clone().ok_or("nothing was measured")?;
    let profile = Attribution::new(&counted.counts).mean(&measurement.units);
    Ok(StudyRun { counted, measurement, profile, output })
}
