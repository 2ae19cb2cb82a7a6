//! Hosts that cannot translate.

use std::path::Path;

use crate::program::{Error, TranslatedProgram, TranslatedRun};

/// No program is translated here.
pub fn is_translatable(_path: &Path) -> bool {
    false
}

/// No process of this host is a translator.
pub fn run_if_translator() {}

/// Fails.
pub fn count(_program: &TranslatedProgram) -> Result<TranslatedRun, Error> {
    Err(Error::Host)
}

/// No level: the processor is another one.
pub fn processor_level() -> &'static str {
    ""
}
