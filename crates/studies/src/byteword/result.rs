//! What the byte/word study finds.

use analysis::profile::Profile;
use analysis::statics::ImageStatics;
use analysis::units::Measurement;
use session::measure::Counted;
use workloads::build::Build;
use workloads::workload::Workload;

use super::schemes::SchemeTime;

/// A way to run the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// `cached` or `scaled`.
    pub name: &'static str,
    /// A description.
    pub meaning: &'static str,
    /// Transactions in a run: enough to reach the steady state and to measure.
    pub transactions: u32,
}

/// One build's run in one mode.
pub struct StudyRun {
    /// Exact counts of the whole run.
    pub counted: Counted,
    /// The transactions measured.
    pub measurement: Measurement,
    /// The mean profile of a transaction.
    pub profile: Profile,
    /// The program's output.
    pub output: String,
}

/// A mode with the runs of both builds.
pub struct ModeResult {
    /// The mode.
    pub mode: Mode,
    /// Original, byte-word.
    pub runs: [StudyRun; 2],
    /// How long transactions take, in the order of [`SCHEMES`].
    pub times: [SchemeTime; 3],
}

/// Everything the study found.
pub struct Study {
    /// The workload.
    pub workload: &'static Workload,
    /// Original, byte-word.
    pub builds: [Build; 2],
    /// The contents of their images.
    pub statics: [Vec<ImageStatics>; 2],
    /// The modes, in the requested order.
    pub modes: Vec<ModeResult>,
    /// Commands and versions that made it: what, and its value.
    pub provenance: Vec<(String, String)>,
}
