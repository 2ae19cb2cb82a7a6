//! `execve` in the process that is counted: the new program is translated, too, and its counts are added.

use std::ffi::{CString, OsStr};
use std::fs::OpenOptions;
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::actions::IGNORE;
use super::calls::KernelCallOutcome;
use super::program_memory::{read, read_text};
use super::state::TranslatorProcess;
use super::thread::{ProgramThread, set_kernel_mask};
use crate::executable::{
    ADDR_NO_RANDOMIZE, NAME, PIPE_IS_IGNORED, interpreted, is_executable, is_translatable,
};
use crate::program::TranslatedProgram;

/// Bytes of an argument at most, and of the arguments together.
const LONGEST: usize = 128 << 10;
const MOST_WORDS: usize = 1 << 20;
/// The bits of files that change the user or the group.
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;

impl ProgramThread {
    /// The system call `execve`. What the translator does not start goes to the kernel: its result is the program's.
    pub(super) fn execute(&mut self, number: i64, arguments: &[u64; 6]) -> KernelCallOutcome {
        let &[path, words, environment, ..] = arguments;
        // A forked process, and one that borrows the memory, are not counted.
        let is_counted = self.slot != 0 && !TranslatorProcess::get().results.is_detached();
        if is_counted && let Some(command) = new_translator(path, words, environment) {
            if !self.hold_signals() {
                return KernelCallOutcome::Again;
            }
            self.area().add_system_call(number as u64);
            // The new program has the mask of this one.
            set_kernel_mask(self.signals.mask);
            command.execute();
            self.set_mask(self.signals.mask);
        }
        self.pass(number, arguments)
    }
}

/// The translator of a new program.
struct NewTranslator {
    words: Vec<CString>,
    environment: Vec<CString>,
}

impl NewTranslator {
    /// Starts it; returns if that fails.
    fn execute(&self) {
        let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (words, environment) = (pointers(&self.words), pointers(&self.environment));
        // SAFETY: arrays of strings that end with null pointers.
        unsafe {
            let personality = libc::personality(0xffff_ffff) as libc::c_ulong;
            libc::personality(personality | ADDR_NO_RANDOMIZE);
            libc::execve(c"/proc/self/exe".as_ptr(), words.as_ptr(), environment.as_ptr());
            libc::personality(personality);
        }
    }
}

/// The translator of the program that an `execve` names, if it is one that can be translated and counted.
fn new_translator(path: u64, words: u64, environment: u64) -> Option<NewTranslator> {
    let process = TranslatorProcess::get();
    let path = PathBuf::from(OsStr::from_bytes(&read_text(path, libc::PATH_MAX as usize).ok()?));
    let (words, environment) = (read_array(words)?, read_array(environment)?);
    let arguments = words.iter().skip(1).map(|word| OsStr::from_bytes(word.as_bytes()).into()).collect();
    let program = TranslatedProgram { path: path.clone(), arguments, environment: Vec::new() };
    let (file, mut arguments) = interpreted(&program).ok()?;
    let is_usual = |file: &&PathBuf| is_executable(file) && !changes_rights(file);
    if ![&path, &file].iter().all(is_usual) || !is_translatable(&file) {
        return None;
    }
    // The name that the caller gave; a script's interpreter gets the path instead.
    if let Some(name) = words.first().filter(|_| file == path) {
        arguments[0] = OsStr::from_bytes(name.as_bytes()).into();
    }
    let results = format!("/proc/{}/fd/{}", process.starter, process.descriptor);
    let results = OpenOptions::new().read(true).write(true).open(results).ok()?.into_raw_fd();
    // SAFETY: a descriptor that was just opened: the new translator inherits it.
    unsafe { libc::fcntl(results, libc::F_SETFD, 0) };
    let is_ignored = process.actions().of(libc::SIGPIPE).handler == IGNORE;
    let pipe = if is_ignored { PIPE_IS_IGNORED } else { "" };
    let descriptors = format!("{results},{}{pipe}", process.descriptor);
    let mut all = vec![CString::new(NAME).ok()?, CString::new(descriptors).ok()?];
    all.push(CString::new(file.as_os_str().as_bytes()).ok()?);
    for argument in arguments {
        all.push(CString::new(argument.as_bytes()).ok()?);
    }
    Some(NewTranslator { words: all, environment })
}

/// Whether a file changes the user or the group of the process that executes it.
fn changes_rights(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.mode() & SET_ID != 0)
}

/// An array of pointers to strings, which ends with a null pointer.
fn read_array(address: u64) -> Option<Vec<CString>> {
    let mut texts = Vec::new();
    while address != 0 && texts.len() < MOST_WORDS {
        match read::<u64>(address + 8 * texts.len() as u64).ok()? {
            0 => break,
            text => texts.push(CString::new(read_text(text, LONGEST).ok()?).ok()?),
        }
    }
    Some(texts)
}
