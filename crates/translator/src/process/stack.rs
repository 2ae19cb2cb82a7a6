//! The program's first stack: arguments, environment and auxiliary vector, as the kernel lays them out (fs/binfmt_elf.c).

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;

use super::elf::MappedElf;
use crate::area::map_memory;

/// Bytes below the stack that nothing is mapped at, so that its overflow is a fault.
const GUARD: usize = 1 << 20;
/// Bytes of a stack without a limit, and the largest one.
const USUAL_STACK: u64 = 8 << 20;
const LARGEST_STACK: u64 = 1 << 30;
/// Entries of the auxiliary vector of which `libc` has no names.
const AT_RSEQ_FEATURE_SIZE: u64 = 27;
const AT_RSEQ_ALIGN: u64 = 28;
/// The 16 random bytes of every run.
const RANDOM: [u8; 16] = *b"\x5e\x1f\x93\xc8\x07\xda\x62\xb4\x3a\x8d\xf5\x10\xe9\x74\x2b\xc6";

/// The program as it sees itself.
pub(super) struct ProgramStart<'a> {
    pub executable: &'a MappedElf,
    /// The base of the interpreter, or 0.
    pub interpreter_bias: u64,
    /// The name by which it was started.
    pub name: OsString,
    pub arguments: &'a [OsString],
    pub environment: &'a [OsString],
}

/// Memory that is filled from its end.
struct StackBuilder {
    at: usize,
}

impl StackBuilder {
    fn push(&mut self, bytes: &[u8]) -> u64 {
        self.at -= bytes.len();
        // SAFETY: the stack is larger than all that is pushed, which `new_stack` checks.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at as *mut u8, bytes.len()) };
        self.at as u64
    }

    fn push_text(&mut self, text: &OsString) -> u64 {
        self.push(&[0]);
        self.push(text.as_bytes())
    }
}

/// Bytes of the stack by the limit of the process.
fn stack_size() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes the structure.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) } == 0;
    let size = if known && limit.rlim_cur != libc::RLIM_INFINITY { limit.rlim_cur } else { USUAL_STACK };
    size.clamp(1 << 17, LARGEST_STACK).next_multiple_of(1 << 12)
}

/// The auxiliary vector of this process, for what the program's has in common.
fn own_vector() -> io::Result<Vec<[u64; 2]>> {
    let bytes = std::fs::read("/proc/self/auxv")?;
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    Ok(bytes.chunks_exact(16).map(|pair| [word(&pair[..8]), word(&pair[8..])]).collect())
}

/// Makes the stack. Returns its range, and the stack pointer.
pub(super) fn new_stack(start: &ProgramStart) -> io::Result<(std::ops::Range<u64>, u64)> {
    let size = stack_size() as usize;
    let texts = start.arguments.iter().chain(start.environment);
    let needed: usize = texts.map(|text| text.len() + 1 + 8).sum::<usize>() + (1 << 16);
    if needed > size {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let rights = libc::PROT_READ
        | libc::PROT_WRITE
        | if start.executable.has_executable_stack { libc::PROT_EXEC } else { 0 };
    let low = map_memory(GUARD + size, libc::PROT_NONE)?;
    // SAFETY: memory that was just mapped.
    if unsafe { libc::mprotect((low + GUARD) as *mut _, size, rights) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let top = low + GUARD + size;
    let mut out = StackBuilder { at: top };
    out.push(&[0; 8]);
    let name = out.push_text(&start.name);
    let environment: Vec<u64> = start.environment.iter().rev().map(|text| out.push_text(text)).collect();
    let arguments: Vec<u64> = start.arguments.iter().rev().map(|text| out.push_text(text)).collect();
    let platform = out.push(b"x86_64\0");
    out.at &= !15;
    let random = out.push(&RANDOM);
    let mut vector: Vec<[u64; 2]> = Vec::new();
    for [key, value] in own_vector()? {
        let value = match key {
            AT_RSEQ_FEATURE_SIZE | AT_RSEQ_ALIGN => continue,
            libc::AT_PHDR => start.executable.headers,
            libc::AT_PHNUM => start.executable.header_count,
            libc::AT_BASE => start.interpreter_bias,
            libc::AT_ENTRY => start.executable.entry,
            libc::AT_RANDOM => random,
            libc::AT_EXECFN => name,
            libc::AT_PLATFORM => platform,
            _ => value,
        };
        vector.push([key, value]);
    }
    let mut words = vec![arguments.len() as u64];
    words.extend(arguments.iter().rev());
    words.push(0);
    words.extend(environment.iter().rev());
    words.push(0);
    words.extend(vector.as_flattened());
    out.at = (out.at & !15) - if words.len() % 2 == 0 { 0 } else { 8 };
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let pointer = out.push(&bytes);
    Ok(((low + GUARD) as u64..top as u64, pointer))
}
