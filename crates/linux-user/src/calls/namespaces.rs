//! Namespaces and mounts. The engine keeps its memory from the guest because it knows the files of its /proc
//! ([`crate::procfs`]). Namespaces in which the guest could mount another one, or would have other process IDs, are
//! refused, as clone refuses them.

use std::os::fd::RawFd;

use crate::abi::Abi;
use crate::calls::call::{Argument, Call, CallOutcome};
use crate::{procfs, reserved};
use host::Errno;

/// The namespaces that a process may leave for others: those of names, of devices of networks and of clocks.
const ALLOWED: i32 = libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWTIME;
/// The others.
const REFUSED: i32 = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID;

/// unshare(flags)
pub fn unshare<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let flags = call.int(0);
    if flags & REFUSED != 0 {
        return Err(refuse(call, "unshare", flags));
    }
    call.host(libc::SYS_unshare, [flags as u64, 0, 0, 0, 0, 0])
}

/// setns(descriptor of a namespace or of a process, types)
pub fn setns<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let (descriptor, mut types) = (call.int(0), call.int(1));
    reserved::check_descriptor(descriptor as u64)?;
    if types == 0 {
        types = namespace_type(descriptor).ok_or(Errno(libc::EINVAL))?;
    }
    if types & !ALLOWED != 0 {
        return Err(refuse(call, "setns", types));
    }
    // The kernel compares the types with those of the descriptor, which may have been exchanged.
    call.host(libc::SYS_setns, [descriptor as u64, types as u64, 0, 0, 0, 0])
}

/// The type of the namespace to which a descriptor refers (NS_GET_NSTYPE in ioctl_nsfs(2)).
fn namespace_type(descriptor: RawFd) -> Option<i32> {
    const NS_GET_NSTYPE: libc::c_ulong = 0xb703;
    // SAFETY: the request takes no pointer.
    let found = unsafe { libc::ioctl(descriptor, NS_GET_NSTYPE as _) };
    (found > 0).then_some(found)
}

/// Fails as a kernel without such namespaces.
fn refuse<G: Abi>(call: &mut Call<G>, name: &str, types: i32) -> Errno {
    // SAFETY: no preconditions.
    let is_permitted = unsafe { libc::geteuid() } == 0 || types & libc::CLONE_NEWUSER != 0;
    if !is_permitted {
        return Errno(libc::EPERM);
    }
    call.kernel.name_refused(name, "a namespace of users, mounts or process IDs", "EINVAL");
    Errno(libc::EINVAL)
}

/// mount(source, target, type, flags, data): not of /proc, nor of a part of it, nor over one.
pub fn mount<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [source, target, kind, ..] = call.arguments;
    let is_proc = |path: &std::ffi::CStr| procfs::is_folder(libc::AT_FDCWD, path.to_bytes());
    let is_of_proc = source != 0 && is_proc(&call.text(0)?) || target != 0 && is_proc(&call.path(1)?);
    if is_of_proc || kind != 0 && call.text(2)?.as_bytes() == b"proc" {
        call.kernel.name_refused("mount", "a mount of /proc or of a file in it", "EPERM");
        return Err(Errno(libc::EPERM));
    }
    use Argument::{Number, Path, Text};
    call.pass(libc::SYS_mount, &[Text, Path, Text, Number, Text])
}
