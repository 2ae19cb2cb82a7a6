//! Interval timers, POSIX timers and timer descriptors: the host's, with absolute times of the
//! virtual clock converted to what is left until then.

use std::collections::BTreeMap;

use super::bits::DESCRIPTOR;
use super::call::{Argument, Call, Outcome};
use super::errno::Errno;
use super::layout::{Record, u32_at, u64_at};
use super::{signals, time};

/// TIMER_ABSTIME and TFD_TIMER_ABSTIME.
const ABSOLUTE: u64 = 1;

/// The clocks of a process's timers.
#[derive(Default)]
pub struct Timers {
    by_id: BTreeMap<u64, i32>,
    by_descriptor: BTreeMap<u64, i32>,
}

impl Timers {
    /// Deletes the POSIX timers, as execve does.
    pub fn delete_all(&mut self) {
        for id in std::mem::take(&mut self.by_id).into_keys() {
            // SAFETY: no pointers are passed.
            unsafe { libc::syscall(libc::SYS_timer_delete, id) };
        }
    }
}

/// An itimerval with 32-bit fields, widened.
fn widen(bytes: [u8; 16]) -> [u64; 4] {
    std::array::from_fn(|index| u32_at(&bytes, 4 * index) as i32 as u64)
}

fn narrow(words: [u64; 4]) -> Record {
    Record::new().u32s(&words.map(|word| word as u32))
}

/// osf_getitimer(which, value)
pub fn osf_getitimer(call: &mut Call) -> Outcome {
    let [which, address, ..] = call.arguments;
    let mut value = [0u64; 4];
    call.host(libc::SYS_getitimer, [which, value.as_mut_ptr() as u64, 0, 0, 0, 0])?;
    call.write(address, &narrow(value))?;
    Ok(0)
}

/// osf_setitimer(which, new, old)
pub fn osf_setitimer(call: &mut Call) -> Outcome {
    let [which, new, old, ..] = call.arguments;
    let new = if new == 0 { [0; 4] } else { widen(call.read(new)?) };
    let mut before = [0u64; 4];
    let arguments = [which, new.as_ptr() as u64, before.as_mut_ptr() as u64, 0, 0, 0];
    call.host(libc::SYS_setitimer, arguments)?;
    if old != 0 {
        call.write(old, &narrow(before))?;
    }
    Ok(0)
}

/// timer_create(clock, event, id)
pub fn timer_create(call: &mut Call) -> Outcome {
    const EVENT_BYTES: usize = 64;
    /// SIGEV_NONE: no signal.
    const NONE: u32 = 1;
    let [clock, event, id, ..] = call.arguments;
    let mut bytes = [0u8; EVENT_BYTES];
    if event != 0 {
        bytes = call.read(event)?;
        if u32_at(&bytes, 12) != NONE {
            let signal = signals::host_number(u32_at(&bytes, 8) as i32).ok_or(Errno(libc::EINVAL))?;
            bytes[8..12].copy_from_slice(&signal.to_le_bytes());
        }
    }
    let event = if event == 0 { 0 } else { bytes.as_ptr() as u64 };
    let mut created = 0u32;
    call.host(libc::SYS_timer_create, [clock, event, &raw mut created as u64, 0, 0, 0])?;
    if let Err(error) = call.write(id, &Record::new().u32s(&[created])) {
        call.host(libc::SYS_timer_delete, [u64::from(created), 0, 0, 0, 0, 0])?;
        return Err(error);
    }
    call.kernel.timers.by_id.insert(u64::from(created), clock as i32);
    Ok(0)
}

/// timer_settime(id, flags, new, old)
pub fn timer_settime(call: &mut Call) -> Outcome {
    let clock = call.kernel.timers.by_id.get(&u64::from(call.arguments[0] as u32)).copied();
    set_time(call, libc::SYS_timer_settime, clock)
}

/// timerfd_create(clock, flags)
pub fn timerfd_create(call: &mut Call) -> Outcome {
    let arguments = &[Argument::Int, Argument::Flags(&DESCRIPTOR)];
    let descriptor = call.pass(libc::SYS_timerfd_create, arguments)?;
    let clock = call.int(0);
    call.kernel.timers.by_descriptor.insert(descriptor, clock);
    Ok(descriptor)
}

/// timerfd_settime(descriptor, flags, new, old)
pub fn timerfd_settime(call: &mut Call) -> Outcome {
    let clock = call.kernel.timers.by_descriptor.get(&u64::from(call.arguments[0] as u32)).copied();
    set_time(call, libc::SYS_timerfd_settime, clock)
}

fn set_time(call: &mut Call, number: libc::c_long, clock: Option<i32>) -> Outcome {
    let [timer, mut flags, new, old, ..] = call.arguments;
    let bytes: [u8; 32] = call.read(new)?;
    let mut words: [u64; 4] = std::array::from_fn(|index| u64_at(&bytes, 8 * index));
    let disarms = words[2] == 0 && words[3] == 0;
    if let Some(clock) = clock.filter(|_| flags & ABSOLUTE != 0 && call.kernel.is_virtual() && !disarms) {
        let absolute = call.read_timespec(new.wrapping_add(16))?;
        // At once is 1 ns: 0 would disarm.
        [words[2], words[3]] = time::timespec(call.kernel.until(clock, absolute).max(1));
        flags &= !ABSOLUTE;
    }
    let old = call.pointer(old, 32)?;
    call.host(number, [timer, flags, words.as_ptr() as u64, old, 0, 0])
}
