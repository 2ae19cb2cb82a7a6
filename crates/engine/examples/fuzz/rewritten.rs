//! Programs that spike wrote again: in random order, and optimized by a random profile.

#[path = "../../../spike/tests/rewriting/random.rs"]
mod random;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pathlength_spike::optimize::{self, Options};
use pathlength_spike::output;

/// How a program is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In random order.
    Shuffled,
    /// Optimized by a random profile.
    Optimized,
}

/// All ways.
pub const WAYS: [Way; 2] = [Way::Shuffled, Way::Optimized];

/// Writes a program again. Returns the new file.
pub fn write(path: &Path, way: Way, seed: u64) -> Result<PathBuf, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}, {way:?}, seed {seed}: {error}", path.display());
    let mut program = optimize::open(path).map_err(|error| failed(&error))?;
    let bytes = match way {
        Way::Shuffled => output::write(&program, &random::shuffled(&program, seed)).map(|written| written.0),
        Way::Optimized => {
            random::give_random_counts(&mut program, seed);
            optimize::optimize(program, &[], Options::default()).map(|optimized| optimized.bytes)
        }
    };
    let bytes = bytes.map_err(|error| failed(&error))?;
    let rewritten = path.with_extension(format!("{way:?}").to_lowercase());
    std::fs::write(&rewritten, bytes).map_err(|error| failed(&error))?;
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&rewritten, permissions).map_err(|error| failed(&error))?;
    Ok(rewritten)
}
