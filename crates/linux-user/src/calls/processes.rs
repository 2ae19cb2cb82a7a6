//! Processes: execve, waiting, identity.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use image::Image;

use crate::abi::Abi;
use crate::abi::layout::GuestStructure;
use crate::abi::sysroots::{usual_sysroot, usual_sysroots};
use crate::calls::call::RestartRule::Restarts;
use crate::calls::call::{Call, CallOutcome};
use crate::state::control::{Control, Execute};
use crate::state::kernel::Kernel;
use crate::state::kernel::paths::{host_path, machine_of};
use crate::{procfs, reserved};
use host::Errno;

const EINVAL: Errno = Errno(libc::EINVAL);

/// Maximum size of arguments and environment: with the auxiliary vector they must fit into a quarter of the stack.
fn most_argument_bytes<G: Abi>(call: &Call<G>) -> u64 {
    (call.kernel.stack_bytes() / 4).saturating_sub(4096)
}

/// A NULL-terminated array of strings; `budget` is the remaining number of bytes allowed.
fn strings<G: Abi>(call: &Call<G>, mut address: u64, budget: &mut u64) -> Result<Vec<Vec<u8>>, Errno> {
    let mut strings = Vec::new();
    if address == 0 {
        return Ok(strings);
    }
    loop {
        let pointer = call.read_u64(address)?;
        if pointer == 0 {
            return Ok(strings);
        }
        let string = call.memory.read_string(pointer, *budget as usize)?.ok_or(Errno(libc::E2BIG))?;
        *budget = budget.checked_sub(string.len() as u64 + 9).ok_or(Errno(libc::E2BIG))?;
        strings.push(string);
        address += 8;
    }
}

/// execve(path, arguments, environment)
pub fn execve<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let path = call.path(0)?;
    let [_, arguments, environment, ..] = call.arguments;
    execute(call, path, arguments, environment)
}

/// execveat(directory, path, arguments, environment, flags)
pub fn execveat<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [directory, _, arguments, environment, flags, _] = call.arguments;
    let mut path = call.path(1)?;
    if flags & !((libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW) as u64) != 0 {
        return Err(EINVAL);
    }
    let relative = path.as_bytes().first() != Some(&b'/');
    if relative && directory as i32 != libc::AT_FDCWD {
        call.host(libc::SYS_fcntl, [directory, libc::F_GETFD as u64, 0, 0, 0, 0])?;
        let mut whole = format!("/proc/self/fd/{}", directory as i32).into_bytes();
        if !path.as_bytes().is_empty() {
            whole.push(b'/');
            whole.extend_from_slice(path.as_bytes());
        }
        path = CString::new(whole).map_err(|_| EINVAL)?;
    }
    execute(call, path, arguments, environment)
}

fn execute<G: Abi>(call: &mut Call<G>, path: CString, arguments: u64, environment: u64) -> CallOutcome {
    let instead = reserved::check_path(libc::AT_FDCWD, &path, true)?;
    let path = instead.map_or(path, |instead| instead.absolute());
    let mut budget = most_argument_bytes(call);
    let arguments = strings(call, arguments, &mut budget)?;
    let environment = strings(call, environment, &mut budget)?;
    let os_path = PathBuf::from(OsString::from_vec(path.as_bytes().to_vec()));
    crate::calls::threads::inform_parent(call);
    match guest_program(call.kernel, &os_path, arguments.clone(), 0)? {
        Some(GuestProgram { program, machine, arguments }) => {
            let program = lasting_name(call.kernel, &program)?;
            let os = |strings: Vec<Vec<u8>>| strings.into_iter().map(OsString::from_vec).collect();
            let (arguments, environment) = (os(arguments), os(environment));
            let mask = call.thread.signals.mask;
            call.kernel.command = command_of(&os_path);
            call.control = Control::Execute(Execute { path: program, machine, arguments, environment, mask });
            Ok(0)
        }
        None => execute_host(call, &path, arguments, environment),
    }
}

/// A path of a program that stays valid when the guest's descriptors are closed, or by which the file was opened that
/// has no name any more.
fn lasting_name<G: Abi>(kernel: &mut Kernel<G>, program: &Path) -> Result<PathBuf, Errno> {
    let identity = |path: &Path| std::fs::metadata(path).map(|file| (file.dev(), file.ino()));
    let file = identity(program)?;
    let name = std::fs::canonicalize(program).ok();
    if let Some(name) = name.filter(|name| identity(name).is_ok_and(|named| named == file)) {
        return Ok(name);
    }
    kernel.leave_shared_descriptors();
    procfs::set_executable(program);
    // Other processes, too, can find it by this name as long as this one lives.
    let (process, number) = (std::process::id(), reserved::executable_number());
    Ok(PathBuf::from(format!("/proc/{process}/fd/{number}")))
}

/// The name that a process gets from the path of what it executes.
fn command_of(path: &Path) -> OsString {
    path.file_name().unwrap_or_default().to_os_string()
}

/// An image of a guest, its machine, and the arguments with which to run it.
struct GuestProgram {
    program: PathBuf,
    machine: u16,
    arguments: Vec<Vec<u8>>,
}

/// The image to run for a path, with its arguments: the path itself, or the interpreter that a script names.
/// None if it is not an image of a guest, but perhaps one of the host's.
fn guest_program<G: Abi>(
    kernel: &Kernel<G>,
    path: &Path,
    arguments: Vec<Vec<u8>>,
    depth: usize,
) -> Result<Option<GuestProgram>, Errno> {
    let c_path = crate::state::kernel::paths::c_path(path)?;
    // SAFETY: the path is NUL-terminated.
    if unsafe { libc::access(c_path.as_ptr(), libc::X_OK) } != 0 {
        return Err(Errno::last());
    }
    if !std::fs::metadata(path)?.is_file() {
        return Err(Errno(libc::EACCES));
    }
    let start = beginning(path)?;
    if let Some(machine) = machine_of(&start).filter(|&machine| usual_sysroot(machine).is_some()) {
        let image = Image::open(path).map_err(|_| Errno(libc::ENOEXEC))?;
        let missing = |loader| kernel.locate_loader_of(machine, Path::new(loader)).is_none();
        if image.interpreter().is_some_and(missing) {
            return Err(Errno(libc::ENOENT));
        }
        return Ok(Some(GuestProgram { program: path.into(), machine, arguments }));
    }
    let Some(mut words) = script_words(&start) else { return Ok(None) };
    if depth == DEEPEST_SCRIPT {
        return Err(Errno(libc::ELOOP));
    }
    let interpreter = words.next().unwrap_or_default().to_vec();
    if interpreter.is_empty() {
        return Err(Errno(libc::ENOEXEC));
    }
    let mut with_script = vec![interpreter.clone()];
    with_script.extend(words.next().map(|word| word.trim_ascii().to_vec()));
    with_script.push(path.as_os_str().as_bytes().to_vec());
    with_script.extend(arguments.into_iter().skip(1));
    let interpreter = kernel.locate(Path::new(&OsString::from_vec(interpreter)));
    guest_program(kernel, &interpreter, with_script, depth + 1)
}

/// How many scripts may be each other's interpreters.
const DEEPEST_SCRIPT: usize = 4;

/// The beginning of a file: as much of it as an ELF header or the first line of a script may take.
fn beginning(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(std::fs::File::open(path)?, 256), &mut start)?;
    Ok(start)
}

/// The interpreter that a script names in its first line, and what may follow: its argument.
fn script_words(start: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let line = start.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Some(line.trim_ascii().splitn(2, |byte| byte.is_ascii_whitespace()))
}

/// The machine of the guest that runs a program: its own, or that of the interpreter which a script names, below the
/// sysroot or a guest's usual one. None if no guest does.
pub fn guest_machine(program: &Path, sysroot: Option<&Path>) -> Option<u16> {
    let mut sysroots: Vec<&Path> = sysroot.into_iter().collect();
    for usual in usual_sysroots() {
        sysroots.push(Path::new(usual));
    }
    let mut path = program.to_path_buf();
    for _ in 0..=DEEPEST_SCRIPT {
        let start = beginning(&path).ok()?;
        if let Some(machine) = machine_of(&start) {
            return Some(machine).filter(|&machine| usual_sysroot(machine).is_some());
        }
        let interpreter = CString::new(script_words(&start)?.next()?).ok()?;
        let mut below = sysroots.iter().map(|sysroot| host_path(sysroot, interpreter.clone()));
        let found = below.find(|path| *path != interpreter).unwrap_or(interpreter.clone());
        path = PathBuf::from(OsString::from_vec(found.into_bytes()));
    }
    None
}

impl<G: Abi> Kernel<G> {
    /// The image to load for the first program, with its arguments: a script's interpreter, if that is an image of the
    /// guest; otherwise the program itself.
    pub fn program(&mut self, path: &Path, arguments: Vec<OsString>) -> (PathBuf, Vec<OsString>) {
        self.command = command_of(path);
        let bytes = arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect();
        match guest_program(self, path, bytes, 0) {
            Ok(Some(GuestProgram { program, machine, arguments })) if machine == G::ELF_MACHINE => {
                (program, arguments.into_iter().map(OsString::from_vec).collect())
            }
            _ => (path.into(), arguments),
        }
    }
}

/// Replaces the engine by a program of the host.
fn execute_host<G: Abi>(
    call: &Call<G>,
    path: &CString,
    arguments: Vec<Vec<u8>>,
    mut environment: Vec<Vec<u8>>,
) -> CallOutcome {
    for variable in &call.kernel.settings.host_environment {
        let variable = variable.as_bytes();
        let name = variable.split_inclusive(|&byte| byte == b'=').next().unwrap_or_default();
        environment.retain(|other| !other.starts_with(name));
        environment.push(variable.to_vec());
    }
    let c = |strings: Vec<Vec<u8>>| {
        let strings: Result<Vec<CString>, _> = strings.into_iter().map(CString::new).collect();
        strings.map_err(|_| EINVAL)
    };
    let (arguments, environment) = (c(arguments)?, c(environment)?);
    let pointers = |strings: &[CString]| {
        strings.iter().map(|string| string.as_ptr() as u64).chain([0]).collect::<Vec<u64>>()
    };
    let (arguments, environment) = (pointers(&arguments), pointers(&environment));
    let vectors = [arguments.as_ptr() as u64, environment.as_ptr() as u64];
    crate::state::kernel::rlimit::hand_over(call.kernel);
    let outcome = call.host(libc::SYS_execve, [path.as_ptr() as u64, vectors[0], vectors[1], 0, 0, 0]);
    crate::state::kernel::rlimit::take_back(call.kernel);
    outcome
}

/// A wait status with the signal in the guest's numbering.
pub fn guest_status<G: Abi>(status: i32) -> i32 {
    if libc::WIFSIGNALED(status) {
        G::guest_signal(libc::WTERMSIG(status)) | status & 0x80
    } else if libc::WIFSTOPPED(status) {
        G::guest_signal(libc::WSTOPSIG(status)) << 8 | 0x7f
    } else {
        status
    }
}

/// Waits for a child, and fills in its rusage: zeros with the virtual clock, on which children have no times.
pub fn wait_for<G: Abi>(call: &mut Call<G>, usage: &mut [u8; 144]) -> CallOutcome {
    let [process, address, options, ..] = call.arguments;
    let mut status = 0i32;
    let arguments = [process, &raw mut status as u64, options, usage.as_mut_ptr() as u64, 0, 0];
    let child = call.wait(libc::SYS_wait4, arguments, Restarts)?;
    if call.kernel.is_virtual() {
        *usage = [0; 144];
    }
    if child != 0 && address != 0 {
        call.write(address, &GuestStructure::new().u32s(&[guest_status::<G>(status) as u32]))?;
    }
    Ok(child)
}

/// wait4(process, status, options, usage)
pub fn wait4<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let (address, mut usage) = (call.arguments[3], [0u8; 144]);
    let child = wait_for(call, &mut usage)?;
    if address != 0 && child != 0 {
        call.write(address, &GuestStructure::new().raw(&usage))?;
    }
    Ok(child)
}

/// waitid(kind, id, information, options, usage)
pub fn waitid<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [kind, id, address, options, usage, _] = call.arguments;
    let mut information = host::SignalInformation([0; 16]);
    let mut used = [0u8; 144];
    let arguments = [kind, id, &raw mut information as u64, options, used.as_mut_ptr() as u64, 0];
    call.wait(libc::SYS_waitid, arguments, Restarts)?;
    if call.kernel.is_virtual() {
        used = [0; 144];
    }
    if usage != 0 && information.signal() != 0 {
        call.write(usage, &GuestStructure::new().raw(&used))?;
    }
    if address != 0 {
        call.write(address, &G::guest_information(&information))?;
    }
    Ok(0)
}

fn groups<G: Abi>(call: &Call<G>, number: libc::c_long) -> CallOutcome {
    let [count, list, ..] = call.arguments;
    let list = call.pointer(list, 4 * u64::from(count as u32))?;
    call.host(number, [count, list, 0, 0, 0, 0])
}

/// getgroups(count, list)
pub fn getgroups<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    groups(call, libc::SYS_getgroups)
}

/// setgroups(count, list)
pub fn setgroups<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    groups(call, libc::SYS_setgroups)
}

/// sched_getaffinity(process, size, mask)
pub fn sched_getaffinity<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [process, size, mask, ..] = call.arguments;
    let mask = call.pointer(mask, u64::from(size as u32))?;
    call.host(libc::SYS_sched_getaffinity, [process, size, mask, 0, 0, 0])
}

/// prctl(option, ...): the options that are supported.
pub fn prctl<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    const NAME_BYTES: u64 = 16;
    let [option, argument, ..] = call.arguments;
    let pass = |argument| call.host(libc::SYS_prctl, [option, argument, 0, 0, 0, 0]);
    match option as i32 {
        libc::PR_SET_PDEATHSIG => match argument as i32 {
            0 => pass(0),
            signal => pass(G::host_signal(signal).ok_or(EINVAL)? as u64),
        },
        libc::PR_GET_PDEATHSIG => {
            let mut signal = 0i32;
            pass(&raw mut signal as u64)?;
            call.write(argument, &GuestStructure::new().u32s(&[G::guest_signal(signal) as u32]))?;
            Ok(0)
        }
        libc::PR_SET_NAME => {
            let name = call.memory.read_string(argument, NAME_BYTES as usize)?.unwrap_or_default();
            pass(CString::new(name).map_err(|_| EINVAL)?.as_ptr() as u64)
        }
        libc::PR_GET_NAME => pass(call.pointer(argument, NAME_BYTES)?),
        libc::PR_GET_CHILD_SUBREAPER => pass(call.pointer(argument, 4)?),
        libc::PR_GET_DUMPABLE
        | libc::PR_SET_DUMPABLE
        | libc::PR_GET_KEEPCAPS
        | libc::PR_SET_KEEPCAPS
        | libc::PR_GET_TIMERSLACK
        | libc::PR_SET_TIMERSLACK
        | libc::PR_SET_CHILD_SUBREAPER
        | libc::PR_CAPBSET_READ
        | libc::PR_GET_NO_NEW_PRIVS
        | libc::PR_SET_NO_NEW_PRIVS => pass(argument),
        _ => Err(EINVAL),
    }
}
