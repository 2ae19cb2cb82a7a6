//! clone: which flags the kernel refuses, which ones the engine cannot support, and the effect of the others.
//!
//! A new process is a fork of the engine, made by the C library, whose locks must be consistent in the child. So the
//! child has a copy of everything. Flags by which it would share state with its parent, other than memory as in
//! vfork, are refused as by a kernel that does not know them.

use crate::abi::layout::Record;
use crate::calls::call::{Call, Outcome};
use crate::calls::threads::fork_process;
use crate::calls::vfork;
use crate::state::control::Control;
use crate::state::signals;
use crate::state::threads::Start;
use alpha::cpu::register;
use host::Errno;

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

/// The flags without which a process can be created by a fork of the engine.
fn check_process(call: &mut Call, flags: i32) -> Result<(), Errno> {
    if flags & NAMESPACES != 0 {
        // SAFETY: no preconditions.
        let privileged = unsafe { libc::geteuid() } == 0 || flags & libc::CLONE_NEWUSER != 0;
        // Fail as a kernel without namespaces.
        return Err(if privileged { EINVAL } else { Errno(libc::EPERM) });
    }
    let shares = libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::CLONE_SYSVSEM;
    let reason = if flags & shares != 0 {
        "a process that shares its descriptors, directory or signal handlers"
    } else if flags & libc::CLONE_PARENT != 0 {
        "a process that is its parent's sibling (CLONE_PARENT)"
    } else if flags & (libc::CLONE_VM | libc::CLONE_VFORK) == libc::CLONE_VM {
        "a process that shares its memory, and is neither a thread nor waited for (CLONE_VM)"
    } else if signals::host_number(flags & EXIT_SIGNAL as i32) != Some(libc::SIGCHLD) {
        "a process that ends with another signal than SIGCHLD"
    } else {
        return Ok(());
    };
    call.kernel.name_refused("clone", reason, "EINVAL");
    Err(EINVAL)
}

/// clone(flags, stack, parent's id address, child's id address, thread pointer)
pub fn clone(call: &mut Call) -> Outcome {
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
            stack: if stack == 0 { call.cpu.r[register::SP] } else { stack },
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
    check_process(call, flags)?;
    let child = match has(libc::CLONE_VFORK) {
        true => vfork::fork(call, has(libc::CLONE_VM), |call| fork_process(call, clear_at_end)),
        false => fork_process(call, clear_at_end),
    }?;
    if child == 0 {
        if stack != 0 {
            call.cpu.r[register::SP] = stack;
        }
        if has(libc::CLONE_SETTLS) {
            call.cpu.unique = thread_pointer;
        }
        if has(libc::CLONE_CHILD_SETTID) {
            // As Linux: a failure is not reported.
            let _ = call.write(child_id, &Record::new().u32s(&[std::process::id()]));
        }
    } else if has(libc::CLONE_PARENT_SETTID) {
        let _ = call.write(parent_id, &Record::new().u32s(&[child as u32]));
    } else if has(libc::CLONE_PIDFD) {
        let descriptor = call.host(libc::SYS_pidfd_open, [child, 0, 0, 0, 0, 0])?;
        call.write(parent_id, &Record::new().u32s(&[descriptor as u32]))?;
    }
    Ok(child)
}
