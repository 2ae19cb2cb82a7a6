//! The state that all threads of the program share.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::actions::SignalActions;
use crate::code::CodeCache;
use crate::memory::ProgramMemory;
use crate::shared::SharedResults;

/// The state that all threads of the program share.
pub(crate) struct TranslatorProcess {
    pub results: &'static SharedResults,
    /// Locked by a thread that translates, or that changes what code there is.
    pub code: Mutex<CodeAndMemory>,
    /// The program's actions of signals.
    pub actions: Mutex<SignalActions>,
    /// The process that started the translator, and its descriptor of the results.
    pub starter: u32,
    pub descriptor: i32,
    /// The program's file, for `/proc/self/exe`.
    pub executable: PathBuf,
}

/// The translated code, and the memory from which it comes.
pub(crate) struct CodeAndMemory {
    pub code: CodeCache,
    pub memory: ProgramMemory,
    /// Images so far.
    pub images: u32,
    /// Memory of the translator, which the program must not replace.
    pub own: Vec<Range<u64>>,
}

static PROCESS: OnceLock<TranslatorProcess> = OnceLock::new();

impl TranslatorProcess {
    /// The process; it exists before the program runs.
    pub fn get() -> &'static TranslatorProcess {
        PROCESS.get().expect("the translator has begun")
    }

    /// Makes this the process.
    pub fn begin(self) {
        assert!(PROCESS.set(self).is_ok(), "the translator begins once");
    }

    /// The code and the memory, locked.
    pub fn code(&self) -> MutexGuard<'_, CodeAndMemory> {
        self.code.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The actions of signals, locked.
    pub fn actions(&self) -> MutexGuard<'_, SignalActions> {
        self.actions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the translator, with a message for the process that started it.
pub(super) fn give_up(results: &SharedResults, text: &str) -> ! {
    results.set_message(text);
    std::process::exit(FAILURE);
}

/// The status of a translator that could not start the program.
pub(super) const FAILURE: i32 = 127;
