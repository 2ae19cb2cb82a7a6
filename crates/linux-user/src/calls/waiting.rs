//! Waiting for descriptors (poll, select, epoll) and for memory (futex).

use crate::abi::Abi;
use crate::abi::layout::{GuestStructure, u32_at, u64_at};
use crate::calls::call::RestartRule::{Fails, Restarts};
use crate::calls::call::{Call, CallOutcome};
use crate::calls::readiness;
use crate::reserved;
use crate::state::clock::{SECOND, host_time, timespec, timeval};
use host::Errno;

const EINVAL: Errno = Errno(libc::EINVAL);

impl<G: Abi> Call<'_, '_, G> {
    /// Advances the virtual clock by a timeout that has expired in a call.
    fn waited(&mut self, outcome: CallOutcome, timeout: Option<u64>) -> CallOutcome {
        if let (Ok(0), Some(timeout)) = (outcome, timeout) {
            self.slept(timeout);
        }
        outcome
    }

    /// The timeout of a host call that waits; one that waits for nothing but the time is not dilated.
    fn limit(&self, timeout: Option<u64>, is_sleep: bool) -> Option<[u64; 2]> {
        timeout.map(|timeout| timespec(if is_sleep { timeout } else { self.kernel.dilated(timeout) }))
    }

    /// The rest of such a timeout that the host reports, in nanoseconds of the program.
    fn rest(&self, left: Option<[u64; 2]>, is_sleep: bool) -> Option<u64> {
        let left = left.map(|[seconds, nanoseconds]| seconds * SECOND + nanoseconds);
        left.map(|left| if is_sleep { left } else { self.kernel.undilated(left) })
    }

    /// The mask argument of ppoll, pselect6 and epoll_pwait; None for NULL.
    pub fn optional_mask(&self, address: u64, size: u64) -> Result<Option<u64>, Errno> {
        match address {
            0 => Ok(None),
            _ if size != 8 => Err(EINVAL),
            _ => self.read_u64(address).map(Some),
        }
    }
}

/// poll with a timeout in nanoseconds, which is updated to the remaining time.
fn poll_for<G: Abi>(
    call: &mut Call<G>,
    timeout: Option<u64>,
    mask: Option<u64>,
) -> (CallOutcome, Option<u64>) {
    let [entries, count, ..] = call.arguments;
    let is_sleep = count as u32 == 0;
    let ready = readiness::polled(call);
    let mut left = if ready.is_empty() { call.limit(timeout, is_sleep) } else { Some([0; 2]) };
    let outcome = call.pointer(entries, 8 * u64::from(count as u32)).and_then(|entries| {
        let mut without_ours = poll_without_ours(call, count as u32)?;
        let entries = without_ours.as_mut().map_or(entries, |entries| entries.as_mut_ptr() as u64);
        let limit = left.as_mut().map_or(0, |left| left.as_mut_ptr() as u64);
        call.with_mask(mask, |call, mask| {
            let mask = mask.as_ref().map_or(0, |mask| mask as *const u64 as u64);
            call.wait(libc::SYS_ppoll, [entries, u64::from(count as u32), limit, mask, 8, 0], Fails)
        })
        .and_then(|ready| write_events(call, without_ours.as_deref()).map(|()| ready))
    });
    let outcome = outcome.map(|found| found + readiness::add_polled(call, &ready));
    (call.waited(outcome, timeout), call.rest(left, is_sleep))
}

/// A copy of poll's entries in which descriptors of the engine are replaced by a number that is never open. None if
/// there are none.
fn poll_without_ours<G: Abi>(call: &Call<G>, count: u32) -> Result<Option<Vec<libc::pollfd>>, Errno> {
    let address = call.arguments[0];
    // More entries than there can be descriptors: let the host refuse.
    let numbers = (0..u64::from(count).min(reserved::first() as u64)).map(|index| address + 8 * index);
    if !numbers.clone().any(|at| call.read_u32(at).is_ok_and(|number| reserved::is_reserved(number.into()))) {
        return Ok(None);
    }
    let entry = |at| {
        let bytes: [u8; 8] = call.read(at)?;
        let fd = u32_at(&bytes, 0);
        let fd = if reserved::is_reserved(fd.into()) { i32::MAX } else { fd as i32 };
        Ok(libc::pollfd { fd, events: u32_at(&bytes, 4) as i16, revents: 0 })
    };
    numbers.map(entry).collect::<Result<_, Errno>>().map(Some)
}

/// Copies the results of the replaced entries back to the guest.
fn write_events<G: Abi>(call: &mut Call<G>, entries: Option<&[libc::pollfd]>) -> Result<(), Errno> {
    let address = call.arguments[0];
    for (index, entry) in entries.into_iter().flatten().enumerate() {
        let bytes = entry.revents.to_le_bytes();
        call.memory.write(address + 8 * index as u64 + 6, &bytes)?;
    }
    Ok(())
}

/// poll(entries, count, milliseconds)
pub fn poll<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let timeout = u64::try_from(call.int(2)).ok().map(|milliseconds| milliseconds * 1_000_000);
    poll_for(call, timeout, None).0
}

/// ppoll(entries, count, timeout, mask, mask size): the remaining time is written back, as Linux does.
pub fn ppoll<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [_, _, address, mask, size, _] = call.arguments;
    let mask = call.optional_mask(mask, size)?;
    let timeout = call.read_timeout(address)?;
    let (outcome, left) = poll_for(call, timeout, mask);
    if let Some(left) = left {
        // As Linux: a failure to write the remaining time is ignored.
        let _ = call.write(address, &GuestStructure::new().u64s(&timespec(left)));
    }
    outcome
}

/// select with a timeout in nanoseconds, which is updated to the remaining time.
pub fn select_for<G: Abi>(
    call: &mut Call<G>,
    timeout: Option<u64>,
    mask: Option<u64>,
) -> (CallOutcome, Option<u64>) {
    let [count, sets @ .., _, _] = call.arguments;
    let is_sleep = sets == [0; 3];
    // The kernel ignores bits beyond the maximum number of descriptors.
    let count = count as i32;
    let descriptors = u64::from(count.max(0) as u32).min(reserved::first() as u64);
    let ready = readiness::selected(call, descriptors, sets[0]);
    let mut left = if ready.is_empty() { call.limit(timeout, is_sleep) } else { Some([0; 2]) };
    let outcome = (|| {
        if count < 0 {
            return Err(EINVAL);
        }
        let count = descriptors;
        let bytes = count.div_ceil(64) * 8;
        let mut pointers = [0; 3];
        for (pointer, set) in pointers.iter_mut().zip(sets) {
            *pointer = call.pointer(set, bytes)?;
        }
        let limit = left.as_mut().map_or(0, |left| left.as_mut_ptr() as u64);
        call.with_mask(mask, |call, mask| {
            let pair = [mask.as_ref().map_or(0, |mask| mask as *const u64 as u64), 8];
            let [read, write, except] = pointers;
            call.wait(libc::SYS_pselect6, [count, read, write, except, limit, pair.as_ptr() as u64], Fails)
        })
    })();
    let outcome = outcome.map(|found| found + readiness::add_selected(call, sets[0], &ready));
    (call.waited(outcome, timeout), call.rest(left, is_sleep))
}

/// A timeval in nanoseconds. Linux accepts any number of microseconds.
pub fn timeval_nanoseconds(seconds: i64, microseconds: i64) -> Result<u64, Errno> {
    let (Ok(seconds), Ok(microseconds)) = (u64::try_from(seconds), u64::try_from(microseconds)) else {
        return Err(EINVAL);
    };
    let total = u128::from(seconds) * u128::from(SECOND) + u128::from(microseconds) * 1000;
    Ok(total.min(i64::MAX as u128) as u64)
}

/// select(count, read, write, except, timeval)
pub fn select<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let address = call.arguments[4];
    let mut timeout = None;
    if address != 0 {
        let bytes: [u8; 16] = call.read(address)?;
        timeout = Some(timeval_nanoseconds(u64_at(&bytes, 0) as i64, u64_at(&bytes, 8) as i64)?);
    }
    let (outcome, left) = select_for(call, timeout, None);
    if let Some(left) = left {
        let _ = call.write(address, &GuestStructure::new().u64s(&timeval(left)));
    }
    outcome
}

/// pselect6(count, read, write, except, timespec, pointer to mask and its size)
pub fn pselect6<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [_, _, _, _, address, pair] = call.arguments;
    let mut mask = None;
    if pair != 0 {
        let bytes: [u8; 16] = call.read(pair)?;
        mask = call.optional_mask(u64_at(&bytes, 0), u64_at(&bytes, 8))?;
    }
    let timeout = call.read_timeout(address)?;
    let (outcome, left) = select_for(call, timeout, mask);
    if let Some(left) = left {
        let _ = call.write(address, &GuestStructure::new().u64s(&timespec(left)));
    }
    outcome
}

/// epoll_create(size)
pub fn epoll_create<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    if call.int(0) <= 0 {
        return Err(EINVAL);
    }
    call.host(libc::SYS_epoll_create1, [0; 6])
}

/// epoll_ctl(descriptor, operation, other descriptor, event); the guest's event is not packed.
pub fn epoll_ctl<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [descriptor, operation, other, address, ..] = call.arguments;
    let event = if operation as i32 == libc::EPOLL_CTL_DEL {
        None
    } else {
        let bytes: [u8; 16] = call.read(address)?;
        Some(libc::epoll_event { events: u32_at(&bytes, 0), u64: u64_at(&bytes, 8) })
    };
    if event.is_some_and(|event| event.events & libc::EPOLLET as u32 != 0) {
        call.kernel.deferred_reads.edge_triggered(other as i32);
    }
    let event = event.as_ref().map_or(0, |event| event as *const libc::epoll_event as u64);
    call.host(libc::SYS_epoll_ctl, [descriptor, operation, other, event, 0, 0])
}

fn epoll<G: Abi>(call: &mut Call<G>, timeout: Option<u64>, mask: Option<u64>) -> CallOutcome {
    const MOST_AT_ONCE: i32 = 4096;
    let [descriptor, address, ..] = call.arguments;
    let count = call.int(2);
    if count <= 0 || count > i32::MAX / 16 {
        return Err(EINVAL);
    }
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; count.min(MOST_AT_ONCE) as usize];
    let (pointer, room) = (events.as_mut_ptr() as u64, events.len() as u64);
    let own = readiness::awaited(call);
    let words = if own.is_empty() { call.limit(timeout, false) } else { Some([0; 2]) };
    let limit = words.as_ref().map_or(0, |words| words.as_ptr() as u64);
    let outcome = call.with_mask(mask, |call, mask| {
        let mask = mask.as_ref().map_or(0, |mask| mask as *const u64 as u64);
        call.wait(libc::SYS_epoll_pwait2, [descriptor, pointer, room, limit, mask, 8], Fails)
    });
    let outcome = outcome.map(|found| readiness::add_awaited(&mut events, found as usize, own));
    let ready = call.waited(outcome, timeout)?;
    let record = events[..ready as usize]
        .iter()
        .fold(GuestStructure::new(), |record, event| record.u32s(&[event.events, 0]).u64s(&[event.u64]));
    call.write(address, &record)?;
    Ok(ready)
}

/// The timeout of epoll_wait: milliseconds, none if negative.
fn milliseconds<G: Abi>(call: &Call<G>) -> Option<u64> {
    u64::try_from(call.int(3)).ok().map(|milliseconds| milliseconds * 1_000_000)
}

/// epoll_wait(descriptor, events, count, milliseconds)
pub fn epoll_wait<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    epoll(call, milliseconds(call), None)
}

/// epoll_pwait(descriptor, events, count, milliseconds, mask, mask size)
pub fn epoll_pwait<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [_, _, _, _, mask, size] = call.arguments;
    let mask = call.optional_mask(mask, size)?;
    epoll(call, milliseconds(call), mask)
}

/// epoll_pwait2(descriptor, events, count, timeout, mask, mask size)
pub fn epoll_pwait2<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [_, _, _, timeout, mask, size] = call.arguments;
    let mask = call.optional_mask(mask, size)?;
    let timeout = call.read_timeout(timeout)?;
    epoll(call, timeout, mask)
}

// linux/futex.h, the same on both.
const FUTEX_CLOCK_REALTIME: u64 = 256;
const FUTEX_PRIVATE: u64 = 128;
const FUTEX_WAIT: u64 = 0;
const FUTEX_REQUEUE: u64 = 3;
const FUTEX_CMP_REQUEUE: u64 = 4;
const FUTEX_WAKE_OP: u64 = 5;
const FUTEX_LOCK_PI: u64 = 6;
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_WAIT_REQUEUE_PI: u64 = 11;
const FUTEX_CMP_REQUEUE_PI: u64 = 12;
const FUTEX_LOCK_PI2: u64 = 13;

/// The operations that may block: their fourth argument is a timeout.
const WAITS: [u64; 5] = [FUTEX_WAIT, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI2];
/// The operations on two words. For others the fifth argument is undefined.
const ON_TWO: [u64; 5] =
    [FUTEX_REQUEUE, FUTEX_CMP_REQUEUE, FUTEX_WAKE_OP, FUTEX_WAIT_REQUEUE_PI, FUTEX_CMP_REQUEUE_PI];

/// futex(word, operation, value, timeout or number, second word, third value)
pub fn futex<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [word, operation, value, fourth, second, third] = call.arguments;
    let command = u64::from(operation as u32) & !(FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME);
    let word = call.pointer(word, 4)?;
    let second = if ON_TWO.contains(&command) { call.pointer(second, 4)? } else { 0 };
    if !WAITS.contains(&command) {
        return call.host_unlocked(libc::SYS_futex, [word, operation, value, fourth, second, third]);
    }
    let clock = match (command, operation & FUTEX_CLOCK_REALTIME) {
        (FUTEX_LOCK_PI, _) => libc::CLOCK_REALTIME,
        (_, 0) => libc::CLOCK_MONOTONIC,
        _ => libc::CLOCK_REALTIME,
    };
    // The timeout of FUTEX_WAIT is relative; that of other operations is absolute.
    let rest = match call.read_timeout(fourth)? {
        Some(timeout) if command != FUTEX_WAIT => Some(call.kernel.until(clock, timeout)),
        relative => relative,
    };
    let words = rest.map(|rest| call.kernel.dilated(rest)).map(|rest| {
        timespec(if command == FUTEX_WAIT { rest } else { host_time(clock).saturating_add(rest) })
    });
    let limit = words.as_ref().map_or(0, |words| words.as_ptr() as u64);
    let interrupted = if rest.is_none() { Restarts } else { Fails };
    let outcome = call.wait(libc::SYS_futex, [word, operation, value, limit, second, third], interrupted);
    if outcome == Err(Errno(libc::ETIMEDOUT)) {
        call.slept(rest.unwrap_or_default());
    }
    outcome
}

/// futex_waitv(waiters, number, flags, end, clock): waits until one of several words is woken.
pub fn futex_waitv<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    /// `struct futex_waitv`: value, word, flags.
    const WAITER_BYTES: u64 = 24;
    const MAX_WAITERS: u64 = 128;
    let [waiters, count, flags, end, clock, _] = call.arguments;
    if !(1..=MAX_WAITERS).contains(&count) {
        return Err(EINVAL);
    }
    let mut bytes = vec![0u8; (WAITER_BYTES * count) as usize];
    call.memory.read(waiters, &mut bytes)?;
    for waiter in bytes.chunks_mut(WAITER_BYTES as usize) {
        let word = call.pointer(u64_at(waiter, 8), 8)?;
        waiter[8..16].copy_from_slice(&word.to_le_bytes());
    }
    let clock = clock as i32;
    let rest = call.read_timeout(end)?.map(|end| call.kernel.until(clock, end));
    let words = rest.map(|rest| timespec(host_time(clock).saturating_add(rest)));
    let limit = words.as_ref().map_or(0, |words| words.as_ptr() as u64);
    let arguments = [bytes.as_ptr() as u64, count, flags, limit, clock as u64, 0];
    let outcome = call.wait(libc::SYS_futex_waitv, arguments, Restarts);
    if outcome == Err(Errno(libc::ETIMEDOUT)) {
        call.slept(rest.unwrap_or_default());
    }
    outcome
}
