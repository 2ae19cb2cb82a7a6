//! The start of a translator: it maps the program, and runs its first thread.

use std::ffi::OsString;
use std::fs::File;
use std::ops::Range;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Mutex;

use super::actions::SignalActions;
use super::calls::is_plain;
use super::elf::{self, MappedElf};
use super::handler;
use super::stack::{self, ProgramStart};
use super::state::{CodeAndMemory, FAILURE, TranslatorProcess, give_up};
use super::thread::ProgramThread;
use crate::area::{ThreadArea, VECTORS_SIZE, vectors_size};
use crate::code::CodeCache;
use crate::executable::{ADDR_NO_RANDOMIZE, PIPE_IS_IGNORED};
use crate::glue;
use crate::memory::{NO_IMAGE, ProgramMemory};
use crate::shared::SharedResults;

/// The bit of the kernel that programs may set the bases of FS and GS by instructions (AT_HWCAP2).
const HWCAP2_FSGSBASE: u64 = 1 << 1;

/// Why this host cannot translate, if it cannot.
fn missing_feature() -> Option<&'static str> {
    // SAFETY: reads the auxiliary vector.
    let has_bases = unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE != 0;
    if !has_bases {
        return Some(
            "instructions that set the bases of FS and GS (FSGSBASE): a processor since 2013, and Linux 5.9",
        );
    }
    if vectors_size() > VECTORS_SIZE {
        return Some("a state of vector registers of at most 12 KB");
    }
    None
}

/// The translator's own argument, before those of its program.
struct TranslatorStart {
    /// Its descriptor of the results.
    own: i32,
    /// The descriptor of the process that started it, which is the same unless a translator has executed this one.
    of_starter: i32,
    /// Whether the program ignores SIGPIPE.
    ignores_pipe: bool,
}

impl TranslatorStart {
    fn of(text: &str) -> Option<TranslatorStart> {
        let ignores_pipe = text.ends_with(PIPE_IS_IGNORED);
        let mut numbers = text.trim_end_matches(PIPE_IS_IGNORED).split(',').map(|number| number.parse().ok());
        let own = numbers.next()??;
        Some(TranslatorStart { own, of_starter: numbers.next().map_or(Some(own), |it| it)?, ignores_pipe })
    }
}

/// Runs a program: the descriptor of the results, its file, and its arguments, the first of which is its name.
pub(crate) fn run(words: Vec<OsString>) -> ! {
    let [_, descriptor, path, arguments @ ..] = &words[..] else { std::process::exit(FAILURE) };
    let Some(start) = descriptor.to_str().and_then(TranslatorStart::of) else { std::process::exit(FAILURE) };
    // SAFETY: the process that started this one has passed it for this purpose alone.
    let file = unsafe { File::from_raw_fd(start.own) };
    let Ok(results) = SharedResults::new(file) else { std::process::exit(FAILURE) };
    let results: &'static SharedResults = Box::leak(Box::new(results));
    // A failure of the translator is not the program's.
    std::panic::set_hook(Box::new(|failure| give_up(results, &failure.to_string())));
    // SAFETY: only clears the bit that was set for this process's addresses; children get the usual personality.
    unsafe { libc::personality(libc::personality(0xffff_ffff) as libc::c_ulong & !ADDR_NO_RANDOMIZE) };
    if let Some(missing) = missing_feature() {
        give_up(results, &format!("this machine lacks {missing}"));
    }
    let environment: Vec<OsString> = environment();
    let (thread, process) = prepare(results, &start, Path::new(path), arguments, &environment)
        .unwrap_or_else(|error| give_up(results, &format!("{}: {error}", Path::new(path).display())));
    process.begin();
    glue::set_handler(handler::handle);
    results.set_started();
    thread.run()
}

/// The environment as it was passed, also what is no `NAME=VALUE`.
fn environment() -> Vec<OsString> {
    unsafe extern "C" {
        static environ: *const *const libc::c_char;
    }
    // SAFETY: the C library's list of strings, which ends with a null pointer; nothing changes it here.
    unsafe {
        let all = (0..).map(|index| *environ.add(index)).take_while(|text| !text.is_null());
        all.map(|text| OsString::from_vec(std::ffi::CStr::from_ptr(text).to_bytes().to_vec())).collect()
    }
}

fn prepare(
    results: &'static SharedResults,
    translator: &TranslatorStart,
    path: &Path,
    arguments: &[OsString],
    environment: &[OsString],
) -> std::io::Result<(ProgramThread, TranslatorProcess)> {
    let (mut memory, mut images) = (ProgramMemory::default(), results.images());
    let own = own_memory(&mut memory);
    let executable = elf::load(path, true, &mut memory, results, &mut images)?;
    let interpreter = match &executable.interpreter {
        Some(path) => elf::load(path, false, &mut memory, results, &mut images)?,
        None => MappedElf::default(),
    };
    let start = ProgramStart {
        executable: &executable,
        interpreter_bias: interpreter.bias,
        name: path.into(),
        arguments,
        environment,
    };
    let (stack, pointer) = stack::new_stack(&start)?;
    if executable.has_executable_stack {
        memory.add_code(stack.start, stack.end, true, NO_IMAGE);
    }
    let entry = if executable.interpreter.is_some() { interpreter.entry } else { executable.entry };
    name_process(path);
    let area = ThreadArea::new(glue::addresses(), is_plain)?;
    let slot = results.attach(area)?;
    // SAFETY: the area was just made, and its thread is this one.
    unsafe { (*area).registers[usize::from(crate::area::RSP)] = pointer };
    let code = CodeCache::new(results);
    let process = TranslatorProcess {
        results,
        code: Mutex::new(CodeAndMemory { code, memory, images, own }),
        actions: Mutex::new(SignalActions::inherited(translator.ignores_pipe)),
        // SAFETY: no arguments.
        starter: unsafe { libc::getppid() } as u32,
        descriptor: translator.of_starter,
        executable: std::fs::canonicalize(path)?,
    };
    Ok((ProgramThread::new(area, slot, entry), process))
}

/// The memory of this process before the program is mapped. The kernel's code in it is the program's, too.
fn own_memory(memory: &mut ProgramMemory) -> Vec<Range<u64>> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut own = Vec::new();
    for line in maps.lines() {
        let mut bounds = line.split(['-', ' ']).map_while(|text| u64::from_str_radix(text, 16).ok());
        let (Some(start), Some(end)) = (bounds.next(), bounds.next()) else { continue };
        if line.ends_with("[vdso]") {
            memory.add_code(start, end, false, NO_IMAGE);
        }
        own.push(start..end);
    }
    own
}

/// Gives this process the program's name, as `execve` would.
fn name_process(path: &Path) {
    let mut name = path.file_name().unwrap_or_default().as_bytes().to_vec();
    name.push(0);
    // SAFETY: a string that ends with a null byte.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}
