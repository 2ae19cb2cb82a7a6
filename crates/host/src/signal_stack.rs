//! The stack on which the signal handlers of a thread run. The standard library's may have room for nothing but
//! what the kernel saves there: 3.6 KB with AVX-512, 11 KB with AMX (sigaltstack(2), AT_MINSIGSTKSZ).

use std::cell::OnceCell;

/// Bytes for handlers, beside what the kernel saves.
const HANDLERS: usize = 64 << 10;
/// `AT_MINSIGSTKSZ` (linux/auxvec.h).
const AT_MINSIGSTKSZ: libc::c_ulong = 51;
const PAGE: usize = 4096;

/// An alternate signal stack of the calling thread, above an inaccessible page.
struct SignalStack {
    start: *mut libc::c_void,
    bytes: usize,
}

thread_local! {
    static STACK: OnceCell<SignalStack> = const { OnceCell::new() };
}

/// Lets the calling thread's handlers run on a stack with room for them. Without memory they keep the stack that they
/// have.
pub(crate) fn take_own() {
    STACK.with(|stack| {
        if stack.get().is_none()
            && let Some(new) = SignalStack::new()
        {
            let _ = stack.set(new);
        }
    });
}

impl SignalStack {
    fn new() -> Option<SignalStack> {
        // SAFETY: no preconditions; 0 on a host that does not say it.
        let saved = unsafe { libc::getauxval(AT_MINSIGSTKSZ) }.max(libc::MINSIGSTKSZ as u64) as usize;
        let bytes = (PAGE + saved + HANDLERS).next_multiple_of(PAGE);
        // SAFETY: the kernel chooses unused addresses, which this value owns.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let start = libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0);
            if start == libc::MAP_FAILED {
                return None;
            }
            let new = SignalStack { start, bytes };
            let stack = libc::stack_t { ss_sp: start.byte_add(PAGE), ss_flags: 0, ss_size: bytes - PAGE };
            let is_set = libc::mprotect(start, PAGE, libc::PROT_NONE) == 0
                && libc::sigaltstack(&stack, std::ptr::null_mut()) == 0;
            is_set.then_some(new)
        }
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and no handler of the thread runs now. Another alternate stack, which
        // somebody may have set since, stays.
        unsafe {
            let mut now: libc::stack_t = std::mem::zeroed();
            libc::sigaltstack(std::ptr::null(), &mut now);
            if now.ss_sp == self.start.byte_add(PAGE) {
                let none =
                    libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
                libc::sigaltstack(&none, std::ptr::null_mut());
            }
            libc::munmap(self.start, self.bytes);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Whether the handlers of the calling thread have room.
    pub(crate) fn has_room() -> bool {
        current().ss_size > HANDLERS
    }

    fn current() -> libc::stack_t {
        // SAFETY: an all-zero stack_t is valid, and only written to.
        unsafe {
            let mut now: libc::stack_t = std::mem::zeroed();
            libc::sigaltstack(std::ptr::null(), &mut now);
            now
        }
    }

    #[test]
    fn handlers_have_room_whatever_stack_there_was() {
        let body = || {
            // The smallest stack that the kernel accepts.
            // SAFETY: no preconditions.
            let smallest = unsafe { libc::getauxval(AT_MINSIGSTKSZ) }.max(2048) as usize;
            let mut room = vec![0u8; smallest];
            let stack = libc::stack_t { ss_sp: room.as_mut_ptr().cast(), ss_flags: 0, ss_size: smallest };
            // SAFETY: the stack lives until the thread has another one.
            assert_eq!(unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) }, 0);
            take_own();
            let own = current();
            assert!(own.ss_size >= smallest + HANDLERS && own.ss_sp != stack.ss_sp);
            take_own();
            assert_eq!(current().ss_sp, own.ss_sp, "once is enough");
        };
        std::thread::spawn(body).join().unwrap();
    }
}
