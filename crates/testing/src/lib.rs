//! How much the longest tests do: a sample in `make test`, all of it in `make test-long`. No test is left out of the
//! sample altogether.

use std::path::{Path, PathBuf};

/// The environment variable that `make test-long` sets.
const LONG: &str = "PATHLENGTH_TEST_LONG";

/// The workspace's folder of builds: workloads that tests build there are kept for other tests and for studies.
pub fn builds() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
    folder.join("build")
}

/// A part of what there is to test, or with `make test-long` all of it.
///
/// ```
/// let cases = pathlength_testing::sample(100, 1000);
/// assert!(cases == 100 || std::env::var_os("PATHLENGTH_TEST_LONG").is_some());
/// ```
pub fn sample<T>(part: T, all: T) -> T {
    if std::env::var_os(LONG).is_some() { all } else { part }
}
