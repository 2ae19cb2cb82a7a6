//! Files of programs, and how translators are started for them.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::program::{Error, TranslatedProgram};

/// The name by which the executable is started as a translator.
pub(crate) const NAME: &str = "pathlength-translator";
/// The suffix of the argument with descriptors, if the program ignores SIGPIPE.
pub(crate) const PIPE_IS_IGNORED: &str = "p";
/// Interpreters that scripts name, of each other, as the kernel accepts.
const INTERPRETERS: usize = 5;
/// The machine of x86-64 in ELF headers, where it is, and the first bytes of 64-bit files of this order of bytes.
const EM_X86_64: [u8; 2] = [62, 0];
const MACHINE: std::ops::Range<usize> = 18..20;
const ELF_64: &[u8] = b"\x7fELF\x02\x01";
/// Bytes of a script's first line that the kernel reads.
const FIRST_LINE: u64 = 256;
/// The personality of programs whose addresses are not randomized.
pub(crate) const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x0004_0000;

/// The program that the kernel would start, and all of its arguments: a script is started by its interpreter.
pub(crate) fn interpreted(program: &TranslatedProgram) -> Result<(PathBuf, Vec<OsString>), Error> {
    let mut path = program.path.clone();
    let mut arguments = vec![OsString::from(&path)];
    arguments.extend(program.arguments.iter().cloned());
    for _ in 0..INTERPRETERS {
        let start = start_of(&path).map_err(|error| Error::Program { path: path.clone(), error })?;
        let Some(line) = start.strip_prefix(b"#!") else { return Ok((path, arguments)) };
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
        let mut words = line.splitn(2, is_space).map(|word| OsString::from_vec(word.trim_ascii().to_vec()));
        let Some(interpreter) = words.next().filter(|word| !word.is_empty()) else {
            return Ok((path, arguments));
        };
        let before: Vec<OsString> =
            std::iter::once(interpreter.clone()).chain(words.filter(|word| !word.is_empty())).collect();
        arguments[0] = path.into();
        arguments.splice(0..0, before);
        path = interpreter.into();
    }
    Err(Error::Program { path, error: io::Error::from_raw_os_error(libc::ELOOP) })
}

/// Whether a file is an x86-64 program, or a script that such a program interprets.
pub fn is_translatable(path: &Path) -> bool {
    let program = TranslatedProgram { path: path.into(), arguments: Vec::new(), environment: Vec::new() };
    let start = interpreted(&program).ok().and_then(|(path, _)| start_of(&path).ok());
    start.is_some_and(|start| start.starts_with(ELF_64) && start.get(MACHINE) == Some(&EM_X86_64))
}

/// The first bytes of a file.
fn start_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(FIRST_LINE).read_to_end(&mut start)?;
    Ok(start)
}

/// Whether this process may execute a file.
pub(crate) fn is_executable(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a string that ends with a null byte.
    let may = unsafe { libc::access(name.as_ptr(), libc::X_OK) } == 0;
    may && path.is_file()
}
