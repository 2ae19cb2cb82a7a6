//! What the timers of a process tell its virtual clock.

use host::SignalInformation;

use super::Kernel;
use crate::state::timers::Armed;

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
