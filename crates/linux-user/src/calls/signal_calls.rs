//! The system calls that send, block and await signals.

use crate::abi::Abi;
use crate::abi::layout::{GuestStructure, u32_at, u64_at};
use crate::abi::signals::{AlternateStack, DEFAULT, IGNORE, LAST, SignalAction};
use crate::calls::call::RestartRule::Fails;
use crate::calls::call::{Call, CallOutcome};
use crate::calls::process_memory::process_of;
use crate::calls::signalfd::held;
use crate::state::clock::timespec;
use crate::state::idleness;
use crate::state::signals::{Default, blockable, default};
use host::{Errno, SignalInformation};

const EINVAL: Errno = Errno(libc::EINVAL);

impl<G: Abi> Call<'_, '_, G> {
    /// A signal argument in the host's numbering.
    fn signal(&self, index: usize) -> Result<i32, Errno> {
        match self.int(index) {
            0 => Ok(0),
            guest => G::host_signal(guest).ok_or(EINVAL),
        }
    }

    /// A mask argument, EFAULT for NULL; `size` is the index of its size.
    pub fn mask(&self, index: usize, size: usize) -> Result<u64, Errno> {
        if self.arguments[size] != 8 {
            return Err(EINVAL);
        }
        self.read_u64(self.arguments[index])
    }

    /// Waits with another signal mask in effect: `wait` makes the host's call with the host's mask that it is given.
    /// A signal that interrupts the call is delivered under that mask.
    pub fn with_mask(
        &mut self,
        mask: Option<u64>,
        wait: impl FnOnce(&mut Self, Option<u64>) -> CallOutcome,
    ) -> CallOutcome {
        let Some(mask) = mask else { return wait(self, None) };
        let kept = G::guest_mask(held(self));
        let signals = &mut self.thread.signals;
        let before = signals.mask;
        signals.mask = blockable::<G>(mask);
        if kept & !signals.mask != 0 {
            signals.saved_mask = Some(before);
            return Err(Errno(libc::EINTR));
        }
        let outcome = wait(self, Some(host::blockable(G::host_mask(mask))));
        let signals = &mut self.thread.signals;
        if host::is_recorded() && outcome != Err(Errno::RESTART_ALWAYS) {
            signals.saved_mask = Some(before);
        } else {
            signals.mask = before;
        }
        outcome
    }
}

pub fn action_of<G: Abi>(call: &Call<G>, signal: i32) -> Result<SignalAction, Errno> {
    if (1..=LAST).contains(&signal) { Ok(call.kernel.actions.get(signal)) } else { Err(EINVAL) }
}

pub fn change_action<G: Abi>(call: &mut Call<G>, signal: i32, action: SignalAction) -> Result<(), Errno> {
    if blockable::<G>(host::bit(signal)) == 0 {
        return Err(EINVAL);
    }
    if action.handler == IGNORE || action.handler == DEFAULT && default::<G>(signal) == Default::Ignore {
        // A pending signal that becomes ignored is discarded.
        call.thread.signals.held.retain(|held| G::guest_signal(held.signal()) != signal);
    }
    call.kernel.actions.set(signal, action);
    Ok(())
}

/// Applies SIG_BLOCK, SIG_UNBLOCK or SIG_SETMASK.
pub fn change_mask<G: Abi>(call: &mut Call<G>, how: i32, set: u64) -> Result<(), Errno> {
    let signals = &mut call.thread.signals;
    let mask = match G::MASK_OPERATIONS.iter().position(|&operation| operation == how) {
        Some(0) => signals.mask | set,
        Some(1) => signals.mask & !set,
        Some(_) => set,
        None => return Err(EINVAL),
    };
    signals.set_mask(mask);
    Ok(())
}

/// rt_sigprocmask(how, set, old set, size)
pub fn rt_sigprocmask<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [_, new, old, size, ..] = call.arguments;
    if size != 8 {
        return Err(EINVAL);
    }
    let before = call.thread.signals.mask;
    if new != 0 {
        let set = call.read_u64(new)?;
        change_mask(call, call.int(0), set)?;
    }
    if old != 0 {
        call.write(old, &GuestStructure::new().u64s(&[before]))?;
    }
    Ok(0)
}

fn pending_mask<G: Abi>(call: &Call<G>) -> Result<u64, Errno> {
    let mut pending = 0u64;
    call.host(libc::SYS_rt_sigpending, [&raw mut pending as u64, 8, 0, 0, 0, 0])?;
    Ok(G::guest_mask(pending | held(call)) & call.thread.signals.mask)
}

/// sigpending(set)
pub fn sigpending<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let (set, pending) = (call.arguments[0], pending_mask(call)?);
    call.write(set, &GuestStructure::new().u64s(&[pending]))?;
    Ok(0)
}

/// rt_sigpending(set, size)
pub fn rt_sigpending<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    if call.arguments[1] > 8 { Err(EINVAL) } else { sigpending(call) }
}

fn suspend<G: Abi>(call: &mut Call<G>, mask: u64) -> CallOutcome {
    let outcome = call.with_mask(Some(mask), |call, mask| {
        let mask = mask.unwrap_or_default();
        let arguments = [&raw const mask as u64, 8, 0, 0, 0, 0];
        call.wait(libc::SYS_rt_sigsuspend, arguments, Fails)
    });
    match outcome {
        Err(Errno(libc::EINTR)) => Err(Errno::RESTART_UNHANDLED),
        other => other,
    }
}

/// sigsuspend(mask)
pub fn sigsuspend<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let mask = call.arguments[0];
    suspend(call, mask)
}

/// rt_sigsuspend(mask, size)
pub fn rt_sigsuspend<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let mask = call.mask(0, 1)?;
    suspend(call, mask)
}

/// rt_sigtimedwait(set, information, timeout, size)
pub fn rt_sigtimedwait<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [_, address, timeout, ..] = call.arguments;
    let set = call.mask(0, 3)?;
    let timeout = call.read_timeout(timeout)?;
    let held = &mut call.thread.signals.held;
    let found = held.iter().position(|held| set & host::bit(G::guest_signal(held.signal())) != 0);
    let information = match found {
        Some(index) => {
            let information = held.remove(index);
            call.kernel.note_expiry(&information);
            information
        }
        None => match call.kernel.take_held(set) {
            Some(information) => information,
            None => await_signal(call, set, timeout)?,
        },
    };
    if address != 0 {
        call.write(address, &G::guest_information(&information))?;
    }
    Ok(G::guest_signal(information.signal()) as u64)
}

fn await_signal<G: Abi>(
    call: &mut Call<G>,
    set: u64,
    timeout: Option<u64>,
) -> Result<SignalInformation, Errno> {
    let mut information = SignalInformation([0; 16]);
    let set = host::blockable(G::host_mask(set));
    let words = timeout.map(timespec);
    let limit = words.as_ref().map_or(0, |words| words.as_ptr() as u64);
    let arguments = [&raw const set as u64, &raw mut information as u64, limit, 8, 0, 0];
    match call.wait(libc::SYS_rt_sigtimedwait, arguments, Fails) {
        Ok(_) => {
            if call.kernel.note_expiry(&information) {
                call.waited = 0;
            }
            Ok(information.undisguised())
        }
        Err(error) => {
            if error == Errno(libc::EAGAIN) {
                call.slept(timeout.unwrap_or_default());
            }
            Err(error)
        }
    }
}

/// Sending SIGSEGV or SIGBUS to oneself is emulated: a signal of the host would look like a fault of the engine.
fn sent_to_thread<G: Abi>(call: &mut Call<G>, information: SignalInformation) -> bool {
    let is_fault = host::is_fault(information.signal());
    if is_fault {
        call.thread.signals.hold(&call.kernel.actions, information);
    }
    is_fault
}

/// The same for the calling thread's process: another thread gets it if this one blocks it.
fn sent_to_process<G: Abi>(call: &mut Call<G>, information: SignalInformation) -> bool {
    let blocks = call.thread.signals.mask & host::bit(G::guest_signal(information.signal())) != 0;
    if !blocks || !host::is_fault(information.signal()) {
        return sent_to_thread(call, information);
    }
    call.kernel.hold(information, call.thread);
    true
}

/// The siginfo of a signal that the calling process sends by kill, tkill and the like.
fn from_self(signal: i32, code: i32) -> SignalInformation {
    // SAFETY: no preconditions.
    let user = unsafe { libc::getuid() };
    SignalInformation::new(signal, code, &[u64::from(std::process::id()) | u64::from(user) << 32])
}

fn is_own_process(process: i32) -> bool {
    process == std::process::id() as i32
}

fn is_calling_thread<G: Abi>(call: &Call<G>, thread: i32) -> bool {
    thread == call.thread.address().id
}

/// kill(process, signal)
pub fn kill<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let signal = call.signal(1)?;
    if is_own_process(call.int(0)) && sent_to_process(call, from_self(signal, libc::SI_USER)) {
        return Ok(0);
    }
    let sent = call.host(libc::SYS_kill, [call.arguments[0], signal as u64, 0, 0, 0, 0])?;
    if signal != 0 && call.int(0) > 0 && call.kernel.is_dilated() {
        let process = call.int(0);
        call.kernel.released(|| idleness::wait(process));
    }
    Ok(sent)
}

/// tkill(thread, signal)
pub fn tkill<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let signal = call.signal(1)?;
    if is_calling_thread(call, call.int(0)) && sent_to_thread(call, from_self(signal, libc::SI_TKILL)) {
        return Ok(0);
    }
    call.host(libc::SYS_tkill, [call.arguments[0], signal as u64, 0, 0, 0, 0])
}

/// tgkill(process, thread, signal)
pub fn tgkill<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [process, thread, ..] = call.arguments;
    let signal = call.signal(2)?;
    if is_calling_thread(call, call.int(1)) && sent_to_thread(call, from_self(signal, libc::SI_TKILL)) {
        return Ok(0);
    }
    call.host(libc::SYS_tgkill, [process, thread, signal as u64, 0, 0, 0])
}

/// The guest's siginfo at `address` with the host's numbers of the signal and the error.
fn host_information<G: Abi>(call: &Call<G>, address: u64, signal: i32) -> Result<SignalInformation, Errno> {
    let bytes: [u8; 128] = call.read(address)?;
    let mut words: [u64; 16] = std::array::from_fn(|index| u64_at(&bytes, 8 * index));
    let error = G::host_error((words[0] >> 32) as u32);
    words[0] = signal as u64 | u64::from(error.0 as u32) << 32;
    Ok(SignalInformation(words))
}

/// The siginfo, unless its code says that it comes from the kernel or from tkill: a thread may only pretend this to
/// itself (`do_rt_sigqueueinfo` in kernel/signal.c).
fn permitted<G: Abi>(
    call: &Call<G>,
    target: i32,
    information: SignalInformation,
) -> Result<SignalInformation, Errno> {
    let is_kernels = information.code() >= 0 || information.code() == libc::SI_TKILL;
    if is_kernels && !is_calling_thread(call, target) {
        return Err(Errno(libc::EPERM));
    }
    Ok(information)
}

/// rt_sigqueueinfo(process, signal, information)
pub fn rt_sigqueueinfo<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [process, _, address, ..] = call.arguments;
    let signal = call.signal(1)?;
    let information = host_information(call, address, signal)?;
    let information = permitted(call, process as i32, information)?;
    if is_own_process(process as i32) && sent_to_process(call, information) {
        return Ok(0);
    }
    let information = information.disguised();
    let arguments = [process, signal as u64, &raw const information as u64, 0, 0, 0];
    call.host(libc::SYS_rt_sigqueueinfo, arguments)
}

/// rt_tgsigqueueinfo(process, thread, signal, information)
pub fn rt_tgsigqueueinfo<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [process, thread, _, address, ..] = call.arguments;
    let signal = call.signal(2)?;
    let information = host_information(call, address, signal)?;
    let information = permitted(call, thread as i32, information)?;
    if is_calling_thread(call, thread as i32) && sent_to_thread(call, information) {
        return Ok(0);
    }
    let information = information.disguised();
    let arguments = [process, thread, signal as u64, &raw const information as u64, 0, 0];
    call.host(libc::SYS_rt_tgsigqueueinfo, arguments)
}

/// pidfd_send_signal(descriptor, signal, information, flags)
pub fn pidfd_send_signal<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [descriptor, _, address, flags, ..] = call.arguments;
    let signal = call.signal(1)?;
    let mut information = None;
    if address != 0 {
        let given = host_information(call, address, signal)?;
        let process = process_of(descriptor).map_or(-1, |process| process as i32);
        let given = permitted(call, process, given)?;
        if is_own_process(process) && flags == 0 && sent_to_process(call, given) {
            return Ok(0);
        }
        information = Some(given.disguised());
    }
    let pointer =
        information.as_ref().map_or(0, |information| information as *const SignalInformation as u64);
    call.host(libc::SYS_pidfd_send_signal, [descriptor, signal as u64, pointer, flags, 0, 0])
}

/// sigaltstack(new, old)
pub fn sigaltstack<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [new, old, ..] = call.arguments;
    let stack_pointer = call.cpu.stack_pointer();
    let before = call.thread.signals.stack;
    if new != 0 {
        let bytes: [u8; 24] = call.read(new)?;
        let (start, flags, size) = (u64_at(&bytes, 0), u32_at(&bytes, 8), u64_at(&bytes, 16));
        if before.holds(stack_pointer) {
            return Err(Errno(libc::EPERM));
        }
        let kept = flags & AlternateStack::AUTODISARM;
        call.thread.signals.stack = match flags & !AlternateStack::AUTODISARM {
            AlternateStack::DISABLE => AlternateStack { flags: kept, ..AlternateStack::NONE },
            0 | AlternateStack::ONSTACK if size < G::SMALLEST_SIGNAL_STACK => {
                return Err(Errno(libc::ENOMEM));
            }
            0 | AlternateStack::ONSTACK => AlternateStack { start, size, flags: kept },
            _ => return Err(EINVAL),
        };
    }
    if old != 0 {
        call.write(old, &before.record(stack_pointer))?;
    }
    Ok(0)
}
