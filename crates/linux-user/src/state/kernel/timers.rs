//! Advances a process's virtual clock when its timers expire.

use host::SignalInformation;

use super::Kernel;
use crate::abi::Abi;
use crate::state::timers::Armed;

impl<G: Abi> Kernel<G> {
    /// The timer that sends a given signal, and how often it has expired.
    fn sender(&mut self, information: &SignalInformation) -> Option<(&mut Option<Armed>, u64)> {
        /// The C library lacks this code: the kernel itself sent the signal.
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

    /// A signal was delivered. If a timer sent it, advances the virtual clock to its time and returns true.
    pub(crate) fn note_expiry(&mut self, information: &SignalInformation) -> bool {
        let Some((timer, times)) = self.sender(information) else { return false };
        let Some(armed) = *timer else { return false };
        let (last, next) = armed.after(times);
        *timer = next;
        self.reach(last);
        true
    }

    /// True if the descriptor is, or was, of an armed timer.
    pub(crate) fn has_timer(&self, descriptor: i32) -> bool {
        let timer = self.timers.by_descriptor.get(&(descriptor as u64));
        timer.is_some_and(|timer| timer.armed.is_some())
    }

    /// The program has read the number of a timer's expirations.
    pub(crate) fn note_timer_read(&mut self, descriptor: i32, times: u64) {
        let timer = self.timers.by_descriptor.get_mut(&(descriptor as u64));
        let Some(timer) = timer else { return };
        let Some(armed) = timer.armed.filter(|_| (1..u64::MAX / 2).contains(&times)) else { return };
        let (last, next) = armed.after(times);
        timer.armed = next;
        self.reach(last);
    }

    /// Advances the virtual clock to the times of timers whose descriptors are readable. True if there are any.
    pub(crate) fn note_readable_timers(&mut self) -> bool {
        // Closed descriptors do not become readable.
        self.timers.by_descriptor.retain(|&descriptor, _| is_timer(descriptor as i32));
        let mut latest = None;
        for (&descriptor, timer) in &self.timers.by_descriptor {
            if let Some(armed) = timer.armed.filter(|_| has_gone_off(descriptor as i32)) {
                latest = latest.max(Some(armed.next));
            }
        }
        latest.inspect(|&time| self.reach(time)).is_some()
    }

    /// The next time at which a timer expires.
    pub(crate) fn next_expiry(&self) -> Option<u64> {
        let timers = self.timers.by_id.values().chain(self.timers.by_descriptor.values());
        let armed = timers.filter_map(|timer| timer.armed).chain(self.timers.real);
        armed.map(|armed| armed.next).filter(|&next| next > self.elapsed()).min()
    }
}

/// True if the descriptor is of a timer. Its number may have been reused for another file.
fn is_timer(descriptor: i32) -> bool {
    let mut left = [0u64; 4];
    // SAFETY: the buffer has the size of the result.
    unsafe { libc::syscall(libc::SYS_timerfd_gettime, descriptor, left.as_mut_ptr()) == 0 }
}

/// True if the descriptor is of a timer that has expired.
fn has_gone_off(descriptor: i32) -> bool {
    let mut entry = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: the entry is ours.
    unsafe { libc::poll(&mut entry, 1, 0) == 1 }
}
