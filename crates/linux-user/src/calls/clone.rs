//! clone: which flags the kernel refuses, which ones the engine cannot support, and the effect of the others.
//!
//! A new process is a fork of the engine, made by the C library, whose locks must be consistent in the child. The child
//! has a copy of memory; as in vfork it may share its frames. The host's kernel does what the other flags ask for
//! ([`host::fork`]). Flags that the engine cannot support are refused with a message, and with the error of a kernel
//! that does not know them.

use crate::abi::Abi;
use crate::abi::layout::GuestStructure;
use crate::calls::call::{Call, CallOutcome};
use crate::calls::threads::fork_process;
use crate::calls::vfork;
use crate::reserved::DescriptorOwner;
use crate::state::control::Control;
use crate::state::threads::Start;
use host::{CloneFlags, Errno};

const EINVAL: Errno = Errno(libc::EINVAL);

/// The byte with the signal that the parent receives when the process ends.
const EXIT_SIGNAL: u64 = 0xff;
/// New namespaces.
const NAMESPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;
/// The flags of what threads of a process share.
const COMMON: i32 = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND;

/// A combination of flags that the kernel refuses: all of the first ones with any of the second, or, if the third
/// field is true, with none of the second.
type Refused = (i32, i32, bool);

/// kernel/fork.c: copy_process, and the call itself for the last.
const REFUSED: [Refused; 7] = [
    (libc::CLONE_NEWNS, libc::CLONE_FS, false),
    (libc::CLONE_NEWUSER, libc::CLONE_FS, false),
    (libc::CLONE_THREAD, libc::CLONE_SIGHAND, true),
    (libc::CLONE_SIGHAND, libc::CLONE_VM, true),
    (libc::CLONE_THREAD, NAMESPACES, false),
    (libc::CLONE_NEWIPC, libc::CLONE_SYSVSEM, false),
    (libc::CLONE_PIDFD, libc::CLONE_PARENT_SETTID | libc::CLONE_DETACHED, false),
];

/// Flags that are passed to the host's clone.
const HOSTS: i32 = libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_PARENT
    | libc::CLONE_SYSVSEM
    | libc::CLONE_PTRACE
    | libc::CLONE_UNTRACED
    | libc::CLONE_IO;

/// Signals by which the engine learns of faults, including its own. As exit signals they would have the same codes.
const FAULTS: [i32; 6] =
    [libc::SIGILL, libc::SIGTRAP, libc::SIGFPE, libc::SIGBUS, libc::SIGSEGV, libc::SIGSYS];

/// The flags and the exit signal for the host's clone.
fn host_flags<G: Abi>(call: &mut Call<G>, flags: i32) -> Result<CloneFlags, Errno> {
    if flags & NAMESPACES != 0 {
        // SAFETY: no preconditions.
        let privileged = unsafe { libc::geteuid() } == 0 || flags & libc::CLONE_NEWUSER != 0;
        // Fail as a kernel without namespaces.
        return Err(if privileged { EINVAL } else { Errno(libc::EPERM) });
    }
    let exit_signal = flags & EXIT_SIGNAL as i32;
    // A number that is no signal's of the guest is none on the host either: the parent gets no signal.
    let exit_signal = G::host_signal(exit_signal).unwrap_or(exit_signal);
    let reason = if flags & libc::CLONE_SIGHAND != 0 {
        "a process that shares its signal handlers"
    } else if flags & (libc::CLONE_VM | libc::CLONE_VFORK) == libc::CLONE_VM {
        "a process that shares its memory, and is neither a thread nor waited for (CLONE_VM)"
    } else if flags & libc::CLONE_FILES != 0 && needs_descriptors(call, flags) {
        "a process that shares its descriptors (CLONE_FILES) while it is recorded, or in vfork,"
    } else if FAULTS.contains(&exit_signal) {
        "a process that ends with the signal of a fault"
    } else {
        return Ok(CloneFlags { flags: flags & HOSTS, exit_signal });
    };
    Err(refuse(call, reason))
}

/// Whether the engine closes some of its own descriptors before the process ends: those of a recording, and the pipe
/// by which vfork's parent waits until the child has closed it.
fn needs_descriptors<G: Abi>(call: &Call<G>, flags: i32) -> bool {
    flags & libc::CLONE_VFORK != 0 || call.kernel.parent.is_some() || DescriptorOwner::is_anywhere()
}

fn refuse<G: Abi>(call: &mut Call<G>, reason: &'static str) -> Errno {
    call.kernel.name_refused("clone", reason, "EINVAL");
    EINVAL
}

/// Starts a process with these flags.
fn begin<G: Abi>(call: &mut Call<G>, flags: i32, clear_at_end: u64) -> CallOutcome {
    let how = host_flags(call, flags)?;
    let child = match flags & libc::CLONE_VFORK != 0 {
        true => vfork::fork(call, flags & libc::CLONE_VM != 0, |call| fork_process(call, clear_at_end, how)),
        false => fork_process(call, clear_at_end, how),
    };
    child.map_err(|error| match error {
        Errno(libc::ENOSYS) => {
            refuse(call, "a process with other flags than fork's, on a host older than Linux 5.11,")
        }
        error => error,
    })
}

/// clone(flags, stack, parent's id address, child's id address, thread pointer)
pub fn clone<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [flags, stack, parent_id, child_id, thread_pointer, _] = call.arguments;
    // The upper half is used by clone3 only.
    let flags = flags as i32;
    let has = |flag: i32| flags & flag != 0;
    let if_has = |flag, value| if has(flag) { value } else { 0 };
    let is_refused = |&(all, some, absent): &Refused| has(all) && has(some) != absent;
    if REFUSED.iter().any(is_refused) {
        return Err(EINVAL);
    }
    let clear_at_end = if_has(libc::CLONE_CHILD_CLEARTID, child_id);
    if has(libc::CLONE_THREAD) {
        // A thread that does not share everything cannot be a thread of the host either.
        if flags & COMMON != COMMON || has(libc::CLONE_PIDFD) {
            return Err(EINVAL);
        }
        call.control = Control::Start(Start {
            stack: if stack == 0 { call.cpu.stack_pointer() } else { stack },
            thread_pointer: has(libc::CLONE_SETTLS).then_some(thread_pointer),
            store_id: [
                if_has(libc::CLONE_PARENT_SETTID, parent_id),
                if_has(libc::CLONE_CHILD_SETTID, child_id),
            ],
            clear_at_end,
            mask: call.thread.signals.mask,
        });
        return Ok(0);
    }
    let child = begin(call, flags, clear_at_end)?;
    if child == 0 {
        if stack != 0 {
            call.cpu.set_stack_pointer(stack);
        }
        if has(libc::CLONE_SETTLS) {
            call.cpu.set_thread_pointer(thread_pointer);
        }
        if has(libc::CLONE_CHILD_SETTID) {
            // As Linux: a failure is not reported.
            let _ = call.write(child_id, &GuestStructure::new().u32s(&[std::process::id()]));
        }
    } else if has(libc::CLONE_PARENT_SETTID) {
        let _ = call.write(parent_id, &GuestStructure::new().u32s(&[child as u32]));
    } else if has(libc::CLONE_PIDFD) {
        let descriptor = call.host(libc::SYS_pidfd_open, [child, 0, 0, 0, 0, 0])?;
        call.write(parent_id, &GuestStructure::new().u32s(&[descriptor as u32]))?;
    }
    Ok(child)
}
