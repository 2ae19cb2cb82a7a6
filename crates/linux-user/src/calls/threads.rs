//! Thread calls: fork, vfork, exit, robust lists.

use crate::abi::Abi;
use crate::abi::layout::GuestStructure;
use crate::calls::call::{Call, CallOutcome};
use crate::calls::vfork;
use crate::state::control::Control;
use crate::state::idleness;
use host::{CloneFlags, Errno};

const EINVAL: Errno = Errno(libc::EINVAL);

/// exit(status): the end of the calling thread.
pub fn exit<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    call.control = Control::ExitThread(call.int(0) & 0xff);
    Ok(0)
}

/// exit_group(status)
pub fn exit_group<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    inform_parent(call);
    call.control = Control::Exit(call.int(0) & 0xff);
    Ok(0)
}

/// Shows a parent that waits in vfork what this process has written.
pub fn inform_parent<G: Abi>(call: &Call<G>) {
    if let Some(parent) = &call.kernel.parent {
        parent.inform(call.memory);
    }
}

/// fork()
pub fn fork<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    fork_process(call, 0, CloneFlags::FORK)
}

/// vfork()
pub fn vfork<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    vfork::fork(call, true, |call| fork_process(call, 0, CloneFlags::FORK))
}

/// Forks the engine. Returns 0 in the child, in which only the calling thread exists.
pub fn fork_process<G: Abi>(call: &mut Call<G>, clear_at_end: u64, how: CloneFlags) -> CallOutcome {
    // No signal may be recorded during the fork, or both processes would deliver it.
    let mask = host::block_all();
    if host::is_recorded() {
        host::set_mask(mask);
        return Err(Errno::RESTART_ALWAYS);
    }
    // SAFETY: the child continues with the calling thread. That thread holds the kernel lock, under which processes
    // fork and change signal actions, and no other thread holds a lock of the guest memory: these are all the locks
    // that the engine uses while a guest runs.
    let child = call.memory.undisturbed(|| unsafe { host::fork(how) });
    if child == Ok(0) {
        call.kernel.become_child(call.thread, clear_at_end);
    }
    host::set_mask(mask);
    let child = child?;
    if how.flags & libc::CLONE_FILES != 0 {
        call.kernel.share_descriptors();
    }
    if child > 0 {
        call.kernel.forks.add();
        call.kernel.children += 1;
        if call.kernel.is_dilated() {
            call.kernel.released(|| idleness::wait(child));
        }
    }
    call.cpu.set_fork_result(child == 0);
    Ok(child as u64)
}

/// set_tid_address(address)
pub fn set_tid_address<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    call.thread.clear_at_end = call.arguments[0];
    Ok(call.thread.address.id as u64)
}

/// Size of the head of a robust list.
const HEAD_BYTES: u64 = 24;

/// set_robust_list(head, size)
pub fn set_robust_list<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [head, size, ..] = call.arguments;
    if size != HEAD_BYTES {
        return Err(EINVAL);
    }
    let id = call.thread.address.id;
    if let Some(member) = call.kernel.threads.alive.get_mut(&id) {
        member.robust_list = head;
    }
    Ok(0)
}

/// get_robust_list(thread, head, size): for threads of other processes the host's call is made.
pub fn get_robust_list<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [_, head, size, ..] = call.arguments;
    let id = match call.int(0) {
        0 => call.thread.address.id,
        id => id,
    };
    let Some(member) = call.kernel.threads.alive.get(&id) else {
        call.host(libc::SYS_kill, [id as u64, 0, 0, 0, 0, 0])?;
        return Err(Errno(libc::EPERM));
    };
    let list = member.robust_list;
    call.write(size, &GuestStructure::new().u64s(&[HEAD_BYTES]))?;
    call.write(head, &GuestStructure::new().u64s(&[list]))?;
    Ok(0)
}
