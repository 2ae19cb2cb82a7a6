//! Enters and leaves compiled code.

use std::sync::atomic::{AtomicU64, Ordering};

use guest::{Guest, HostSide};

use crate::host::arena::ARENA_BYTES;
use crate::registers::{self, CPU};

/// The result of compiled code or of its callback that makes all callers return as well. Not the address of an instruction.
pub const UNWIND: u64 = 1;

thread_local! {
    /// The address of the code arena that the thread may be running; 0 for none.
    static START: AtomicU64 = const { AtomicU64::new(0) };
}

/// Sets the address of the calling thread's code arena, for the fault handler.
pub(crate) fn set_code(start: u64) {
    START.with(|address| address.store(start, Ordering::Relaxed));
}

/// The maximum size of the host's stack for guest calls, in bytes.
const STACK_BYTES: usize = 3 << 20;
/// The size that they must leave free.
const STACK_RESERVE: usize = 256 << 10;

/// The lowest stack address at which the calling thread may make guest calls.
pub(crate) fn stack_end() -> usize {
    let here = 0u8;
    let wanted = (&raw const here as usize).saturating_sub(STACK_BYTES);
    // SAFETY: `attributes` is initialised by the first call, if that succeeds, and given back by the last.
    unsafe {
        let mut attributes = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return wanted;
        }
        let (mut lowest, mut bytes) = (std::ptr::null_mut(), 0);
        libc::pthread_attr_getstack(&attributes, &mut lowest, &mut bytes);
        libc::pthread_attr_destroy(&mut attributes);
        wanted.max(lowest as usize + STACK_RESERVE)
    }
}

/// Whether the host's stack is nearly full, so that no further compiled code may be entered.
pub fn is_stack_full(host: &HostSide) -> bool {
    const RESERVE: usize = 64 << 10;
    let here = 0u8;
    (&raw const here as usize) < host.stack_end() + RESERVE
}

/// Why compiled code was left.
pub enum Exit {
    /// Execution continues at this guest address; or [`UNWIND`].
    At(u64),
    /// The host instruction at this address faulted.
    Fault(usize),
}

/// Registers the stack limit with `host`, which raises it to make the thread leave compiled code, and resets it.
pub fn watch(host: &mut HostSide) {
    let end = host.stack_end();
    // SAFETY: the processor outlives the code that runs on it, and after that `enter` unregisters the address.
    unsafe { ::host::set_stack_limit(host.stack_limit().cast(), end) };
}

/// Runs code. `is_first` says that no other entry of the thread is active.
///
/// # Safety
/// `code` must be a block's code, made for the address space of this `guest` by the compiler that prepared the
/// processor for it; the rest of its [`Guest::host`] must be set.
pub unsafe fn enter<G: Guest>(guest: &mut G, code: *const u8, is_first: bool) -> Exit {
    type Enter<G> = unsafe extern "C" fn(guest: *mut G, code: *const u8, stack_pointer: *mut usize) -> u64;
    let host = guest.host();
    watch(host);
    let noted = host.stack_pointer();
    // SAFETY: a field of `host`.
    let before = unsafe { noted.read() };
    // SAFETY: the stub is such a function.
    let enter: Enter<G> = unsafe { std::mem::transmute(host.entry_stub() as *const u8) };
    // SAFETY: the caller's promise.
    let next = unsafe { enter(&raw mut *guest, code, noted) };
    let host = guest.host();
    // SAFETY: as above.
    unsafe { host.stack_pointer().write(before) };
    if is_first {
        // SAFETY: no address is registered.
        unsafe { ::host::set_stack_limit(std::ptr::null_mut(), 0) };
    }
    if next == u64::MAX { Exit::Fault(host.fault()) } else { Exit::At(next) }
}

/// Registers the handler of faults in compiled code.
pub(crate) fn catch_faults() {
    ::host::fault::register(on_fault);
}

/// Handles a fault in compiled code: the thread continues at the stub that leaves it.
fn on_fault(_: &libc::siginfo_t, context: &mut libc::ucontext_t) -> bool {
    let pc = *::host::fault::program_counter(context);
    let start = START.with(|start| start.load(Ordering::Relaxed));
    if start == 0 || pc.wrapping_sub(start) >= ARENA_BYTES as u64 {
        return false;
    }
    const _: () = assert!(CPU.0 == 15);
    let cpu = context.uc_mcontext.gregs[libc::REG_R15 as usize] as usize;
    // SAFETY: in compiled code the register points into the processor that `enter` was given.
    let side = unsafe { &mut *registers::host_side(cpu) };
    *::host::fault::program_counter(context) = side.faulted(pc as usize);
    true
}
