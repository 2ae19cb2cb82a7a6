//! Alpha's calls with a second result, in a4, and getpriority.

use alpha::cpu::register;

use crate::calls::call::Argument;

use super::{Call, CallOutcome};

/// pipe(): the descriptors are returned in v0 and a4.
pub fn pipe(call: &mut Call) -> CallOutcome {
    let mut ends = [0i32; 2];
    call.host(libc::SYS_pipe2, [ends.as_mut_ptr() as u64, 0, 0, 0, 0, 0])?;
    call.cpu.r[register::A4] = ends[1] as u64;
    Ok(ends[0] as u64)
}

/// getxpid(): returns the process's ID, and its parent's in a4.
pub fn getxpid(call: &mut Call) -> CallOutcome {
    // SAFETY: no preconditions.
    call.cpu.r[register::A4] = unsafe { libc::getppid() } as u64;
    Ok(u64::from(std::process::id()))
}

/// getxuid(): returns the real user, and the effective one in a4.
pub fn getxuid(call: &mut Call) -> CallOutcome {
    // SAFETY: no preconditions.
    let (real, effective) = unsafe { (libc::getuid(), libc::geteuid()) };
    call.cpu.r[register::A4] = u64::from(effective);
    Ok(u64::from(real))
}

/// getxgid(): returns the real group, and the effective one in a4.
pub fn getxgid(call: &mut Call) -> CallOutcome {
    // SAFETY: no preconditions.
    let (real, effective) = unsafe { (libc::getgid(), libc::getegid()) };
    call.cpu.r[register::A4] = u64::from(effective);
    Ok(u64::from(real))
}

/// getpriority(which, who): Alpha's call returns the nice value itself, which may be negative.
pub fn getpriority(call: &mut Call) -> CallOutcome {
    let raised = call.pass(libc::SYS_getpriority, &[Argument::Int, Argument::Int])?;
    Ok(20u64.wrapping_sub(raised))
}
