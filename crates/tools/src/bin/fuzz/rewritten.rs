//! Programs that spike wrote again: in random order, optimized by a random profile, and instrumented.

#[path = "../../../../spike/tests/rewriting/random.rs"]
mod random;

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pathlength_spike::instrument::{self, Update};
use pathlength_spike::optimize::{self, Options};
use pathlength_spike::output;

/// How a program is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In random order.
    Shuffled,
    /// Optimized by a random profile.
    Optimized,
    /// With counters, into a file beside it.
    Instrumented(Update),
}

/// All ways.
pub const WAYS: [Way; 4] =
    [Way::Shuffled, Way::Optimized, Way::Instrumented(Update::Atomic), Way::Instrumented(Update::Single)];

/// Writes a program again. Returns the new file.
pub fn write(path: &Path, way: Way, seed: u64) -> Result<PathBuf, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}, {way:?}, seed {seed}: {error}", path.display());
    let mut program = optimize::open(path).map_err(|error| failed(&error))?;
    let name = format!("{way:?}").to_lowercase().replace('(', "-").replace(')', "");
    let rewritten = path.with_extension(name);
    let bytes = match way {
        Way::Shuffled => output::write(&program, &random::shuffled(&program, seed)).map(|written| written.0),
        Way::Optimized => {
            random::give_random_counts(&mut program, seed);
            optimize::optimize(program, &[], Options::default()).map(|optimized| optimized.bytes)
        }
        Way::Instrumented(update) => {
            let counts =
                std::path::absolute(rewritten.with_extension("counts")).map_err(|error| failed(&error))?;
            let made = instrument::instrument(program, counts.as_os_str().as_bytes(), update);
            let made = made.map_err(|error| failed(&error))?;
            std::fs::write(&counts, made.counts).map_err(|error| failed(&error))?;
            Ok(made.bytes)
        }
    };
    let bytes = bytes.map_err(|error| failed(&error))?;
    std::fs::write(&rewritten, bytes).map_err(|error| failed(&error))?;
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&rewritten, permissions).map_err(|error| failed(&error))?;
    Ok(rewritten)
}
