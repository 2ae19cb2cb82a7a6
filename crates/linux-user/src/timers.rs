//! Interval timers, POSIX timers and timer descriptors: the host's, with absolute times of the
//! virtual clock converted to what is left until then.
//!
//! For the virtual clock each timer that is armed also has its time there. When the host's goes off, the clock
//! shows at least that, so a program that is told of a time finds that it has come.

use std::collections::BTreeMap;

use crate::call::{Argument, Call, Outcome};
use crate::flags::DESCRIPTOR;
use crate::kernel::Kernel;
use crate::layout::{Record, u32_at, u64_at};
use crate::signals;
use crate::time::{self, SECOND};
use host::Errno;
use host::SignalInformation;

/// TIMER_ABSTIME and TFD_TIMER_ABSTIME.
const ABSOLUTE: u64 = 1;

/// A timer that will go off, in nanoseconds of [`Kernel::elapsed`].
#[derive(Clone, Copy)]
struct Armed {
    next: u64,
    /// 0 for a timer that goes off once.
    interval: u64,
}

impl Armed {
    /// One whose value and interval are these, if it is armed at all.
    fn new(now: u64, value: u64, interval: u64) -> Option<Armed> {
        (value > 0).then_some(Armed { next: now.saturating_add(value), interval })
    }

    /// When it went off for the last of so many times, and what it is then.
    fn after(self, times: u64) -> (u64, Option<Armed>) {
        let last = self.next.saturating_add(self.interval.saturating_mul(times.saturating_sub(1)));
        (last, Armed::new(last, self.interval, self.interval))
    }
}

/// A POSIX timer or a timer descriptor.
struct Timer {
    clock: i32,
    armed: Option<Armed>,
}

/// The timers of a process.
#[derive(Default)]
pub struct Timers {
    /// ITIMER_REAL.
    real: Option<Armed>,
    by_id: BTreeMap<u64, Timer>,
    by_descriptor: BTreeMap<u64, Timer>,
}

impl Timers {
    /// Deletes the POSIX timers, as execve does.
    pub fn delete_all(&mut self) {
        for id in std::mem::take(&mut self.by_id).into_keys() {
            // SAFETY: no pointers are passed.
            unsafe { libc::syscall(libc::SYS_timer_delete, id) };
        }
    }

    /// In the child of a fork, which has the descriptors alone.
    pub fn forget(&mut self) {
        self.real = None;
        self.by_id.clear();
    }
}

impl Kernel {
    /// The timer that sends such a signal, and how often it went off.
    fn sender(&mut self, information: &SignalInformation) -> Option<(&mut Option<Armed>, u64)> {
        /// Not among those of the C library: what the kernel itself sends.
        const SI_KERNEL: i32 = 0x80;
        let [timer, overruns] = [information.0[2] & 0xffff_ffff, information.0[2] >> 32];
        match (information.signal(), information.code()) {
            (libc::SIGALRM, SI_KERNEL) => Some((&mut self.timers.real, 1)),
            (_, libc::SI_TIMER) => {
                let timer = self.timers.by_id.get_mut(&timer)?;
                Some((&mut timer.armed, overruns + 1))
            }
            _ => None,
        }
    }

    /// The time on the virtual clock of the timer that sent a signal.
    pub(crate) fn expiry(&mut self, information: &SignalInformation) -> Option<u64> {
        let (timer, times) = self.sender(information)?;
        Some((*timer)?.after(times).0)
    }

    /// A signal has reached the program: if a timer sent it, the virtual clock shows its time. True if so.
    pub(crate) fn note_expiry(&mut self, information: &SignalInformation) -> bool {
        let Some((timer, times)) = self.sender(information) else { return false };
        let Some(armed) = *timer else { return false };
        let (last, next) = armed.after(times);
        *timer = next;
        self.reach(last);
        true
    }

    /// True if the descriptor is, or was, one of a timer that is armed.
    pub(crate) fn has_timer(&self, descriptor: i32) -> bool {
        let timer = self.timers.by_descriptor.get(&(descriptor as u64));
        timer.is_some_and(|timer| timer.armed.is_some())
    }

    /// The program has read how often a timer went off.
    pub(crate) fn note_timer_read(&mut self, descriptor: i32, times: u64) {
        let timer = self.timers.by_descriptor.get_mut(&(descriptor as u64));
        let Some(timer) = timer else { return };
        let Some(armed) = timer.armed.filter(|_| (1..u64::MAX / 2).contains(&times)) else { return };
        let (last, next) = armed.after(times);
        timer.armed = next;
        self.reach(last);
    }

    /// The virtual clock shows the times of timers whose descriptors can be read. True if there are such.
    pub(crate) fn note_readable_timers(&mut self) -> bool {
        // What was closed since will not go off.
        self.timers.by_descriptor.retain(|&descriptor, _| is_timer(descriptor as i32));
        let mut latest = None;
        for (&descriptor, timer) in &self.timers.by_descriptor {
            if let Some(armed) = timer.armed.filter(|_| has_gone_off(descriptor as i32)) {
                latest = latest.max(Some(armed.next));
            }
        }
        latest.inspect(|&time| self.reach(time)).is_some()
    }

    /// When the next timer goes off that has not yet.
    pub(crate) fn next_expiry(&self) -> Option<u64> {
        let timers = self.timers.by_id.values().chain(self.timers.by_descriptor.values());
        let armed = timers.filter_map(|timer| timer.armed).chain(self.timers.real);
        armed.map(|armed| armed.next).filter(|&next| next > self.elapsed()).min()
    }
}

/// True for the descriptor of a timer, and not of another file that has the number by now.
fn is_timer(descriptor: i32) -> bool {
    let mut left = [0u64; 4];
    // SAFETY: there is room for the answer.
    unsafe { libc::syscall(libc::SYS_timerfd_gettime, descriptor, left.as_mut_ptr()) == 0 }
}

/// True for the descriptor of a timer that has gone off.
fn has_gone_off(descriptor: i32) -> bool {
    let mut entry = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: the entry is ours.
    unsafe { libc::poll(&mut entry, 1, 0) == 1 }
}

/// An itimerval with 32-bit fields, widened.
fn widen(bytes: [u8; 16]) -> [u64; 4] {
    std::array::from_fn(|index| u32_at(&bytes, 4 * index) as i32 as u64)
}

fn narrow(words: [u64; 4]) -> Record {
    Record::new().u32s(&words.map(|word| word as u32))
}

/// The host's timer as the virtual clock has it: what is left until it goes off, and its interval.
fn get_interval_timer(call: &Call) -> Result<[u64; 4], Errno> {
    let which = call.arguments[0];
    let mut value = [0u64; 4];
    call.host(libc::SYS_getitimer, [which, value.as_mut_ptr() as u64, 0, 0, 0, 0])?;
    if let Some(armed) = call.kernel.timers.real.filter(|_| which as i32 == libc::ITIMER_REAL) {
        // One that is armed shows something.
        let left = armed.next.saturating_sub(call.kernel.elapsed()).max(1000);
        [value[2], value[3]] = time::timeval(left);
    }
    Ok(value)
}

/// Sets the host's timer, and returns what it was.
fn set_interval_timer(call: &mut Call, new: [u64; 4]) -> Result<[u64; 4], Errno> {
    let which = call.arguments[0];
    let before = get_interval_timer(call)?;
    call.host(libc::SYS_setitimer, [which, new.as_ptr() as u64, 0, 0, 0, 0])?;
    if which as i32 == libc::ITIMER_REAL && call.kernel.is_virtual() {
        let nanoseconds = |at: usize| nanoseconds(new[at], new[at + 1].saturating_mul(1000));
        call.kernel.timers.real = Armed::new(call.kernel.elapsed(), nanoseconds(2), nanoseconds(0));
    }
    Ok(before)
}

fn nanoseconds(seconds: u64, rest: u64) -> u64 {
    seconds.saturating_mul(SECOND).saturating_add(rest)
}

/// osf_getitimer(which, value)
pub fn osf_getitimer(call: &mut Call) -> Outcome {
    let address = call.arguments[1];
    let value = get_interval_timer(call)?;
    call.write(address, &narrow(value))?;
    Ok(0)
}

/// osf_setitimer(which, new, old)
pub fn osf_setitimer(call: &mut Call) -> Outcome {
    let [_, new, old, ..] = call.arguments;
    let new = if new == 0 { [0; 4] } else { widen(call.read(new)?) };
    let before = set_interval_timer(call, new)?;
    if old != 0 {
        call.write(old, &narrow(before))?;
    }
    Ok(0)
}

/// getitimer(which, value)
pub fn getitimer(call: &mut Call) -> Outcome {
    let address = call.arguments[1];
    let value = get_interval_timer(call)?;
    call.write(address, &Record::new().u64s(&value))?;
    Ok(0)
}

/// setitimer(which, new, old)
pub fn setitimer(call: &mut Call) -> Outcome {
    let [_, address, old, ..] = call.arguments;
    let mut new = [0u64; 4];
    if address != 0 {
        let bytes: [u8; 32] = call.read(address)?;
        new = std::array::from_fn(|index| u64_at(&bytes, 8 * index));
    }
    let before = set_interval_timer(call, new)?;
    if old != 0 {
        call.write(old, &Record::new().u64s(&before))?;
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
    let timer = Timer { clock: clock as i32, armed: None };
    call.kernel.timers.by_id.insert(u64::from(created), timer);
    Ok(0)
}

/// timer_delete(id)
pub fn timer_delete(call: &mut Call) -> Outcome {
    let deleted = call.pass(libc::SYS_timer_delete, &[Argument::Number])?;
    let id = u64::from(call.arguments[0] as u32);
    call.kernel.timers.by_id.remove(&id);
    Ok(deleted)
}

/// timer_settime(id, flags, new, old)
pub fn timer_settime(call: &mut Call) -> Outcome {
    set_time(call, libc::SYS_timer_settime, |timers| &mut timers.by_id)
}

/// timerfd_create(clock, flags)
pub fn timerfd_create(call: &mut Call) -> Outcome {
    let arguments = &[Argument::Int, Argument::Flags(&DESCRIPTOR)];
    let descriptor = call.pass(libc::SYS_timerfd_create, arguments)?;
    let timer = Timer { clock: call.int(0), armed: None };
    call.kernel.timers.by_descriptor.insert(descriptor, timer);
    Ok(descriptor)
}

/// timerfd_settime(descriptor, flags, new, old)
pub fn timerfd_settime(call: &mut Call) -> Outcome {
    set_time(call, libc::SYS_timerfd_settime, |timers| &mut timers.by_descriptor)
}

fn set_time(
    call: &mut Call,
    number: libc::c_long,
    which: fn(&mut Timers) -> &mut BTreeMap<u64, Timer>,
) -> Outcome {
    let [timer, mut flags, new, old, ..] = call.arguments;
    let id = u64::from(timer as u32);
    let clock = which(&mut call.kernel.timers).get(&id).map(|timer| timer.clock);
    // Of a clock that the virtual one stands for, and not the processor's.
    let is_processor = |clock| clock < 0 || clock == libc::CLOCK_PROCESS_CPUTIME_ID;
    let clock = clock.filter(|&clock| call.kernel.virtual_time(clock).is_some());
    let bytes: [u8; 32] = call.read(new)?;
    let mut words: [u64; 4] = std::array::from_fn(|index| u64_at(&bytes, 8 * index));
    let disarms = words[2] == 0 && words[3] == 0;
    if let Some(clock) = clock.filter(|_| flags & ABSOLUTE != 0 && !disarms) {
        let absolute = call.read_timespec(new.wrapping_add(16))?;
        // At once is 1 ns: 0 would disarm.
        [words[2], words[3]] = time::timespec(call.kernel.until(clock, absolute).max(1));
        flags &= !ABSOLUTE;
    }
    let old = call.pointer(old, 32)?;
    let outcome = call.host(number, [timer, flags, words.as_ptr() as u64, old, 0, 0])?;
    if clock.is_some_and(|clock| !is_processor(clock)) {
        let (value, interval) = (nanoseconds(words[2], words[3]), nanoseconds(words[0], words[1]));
        let armed = Armed::new(call.kernel.elapsed(), value, interval);
        if let Some(timer) = which(&mut call.kernel.timers).get_mut(&id) {
            timer.armed = armed;
        }
    }
    Ok(outcome)
}
