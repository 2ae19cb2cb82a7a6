//! Threads with tables of descriptors of their own, in which the engine opens what the guest must not see.
//!
//! A thread gets one by a copy of the guest's table, in which it then closes the guest's descriptors. Closing a copy ends
//! nothing that belongs to the guest's table, such as record locks, but it ends a notification of a message queue, which
//! belongs to the process (`mqueue_flush_file` in ipc/mqueue.c). Once the guest has used such queues, a process that
//! lives for this moment closes them.

use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use image::Image;
use libc as h;

use crate::reserved::first;

/// `f_type` of message queues (linux/magic.h).
const MESSAGE_QUEUE_MAGIC: h::c_ulong = 0x1980_0202;

/// Whether the guest has used message queues.
static USES_MESSAGE_QUEUES: AtomicBool = AtomicBool::new(false);

/// To be called before the guest opens a message queue or is notified of one.
pub(crate) fn note_message_queue() {
    USES_MESSAGE_QUEUES.store(true, Ordering::SeqCst);
}

/// Gives the calling thread a table of descriptors of its own, if it shares that with other processes.
pub(crate) fn leave_shared_table() {
    // SAFETY: no pointers are passed. If there is no memory for a copy, the table stays shared.
    unsafe { h::unshare(h::CLONE_FILES) };
}

/// Gives the calling thread, which must not be a guest thread, its own table of descriptors with only the engine's.
/// The guest never sees descriptors that the thread opens from now on. False on a host that does not support this
/// (before Linux 5.9): the thread keeps the shared table.
pub fn leave_guests_table() -> bool {
    if USES_MESSAGE_QUEUES.load(Ordering::SeqCst) {
        // SAFETY: no pointers are passed; the thread may have any table.
        return unsafe { h::unshare(h::CLONE_FILES) } == 0 && close_in_another_process();
    }
    // SAFETY: no other thread uses the changed table.
    unsafe { close_guests(h::CLOSE_RANGE_UNSHARE) }
}

/// Closes all descriptors of the guest but the standard streams.
///
/// # Safety
/// Only the calling thread may use the table, or the copy that the flags ask for.
unsafe fn close_guests(flags: h::c_uint) -> bool {
    const FIRST: h::c_uint = h::STDERR_FILENO as h::c_uint + 1;
    // SAFETY: no pointers are passed.
    unsafe { h::syscall(h::SYS_close_range, FIRST, first() as h::c_uint - 1, flags) == 0 }
}

/// Closes the guest's descriptors in the calling thread's table, by a process that shares it and the memory. The thread must
/// have all signals blocked, and gets no signal of its end; only a guest that waits for any child with `__WALL` might see it.
fn close_in_another_process() -> bool {
    const STACK_BYTES: usize = 32 << 10;
    let mut stack = vec![MaybeUninit::<u128>::uninit(); STACK_BYTES / 16];
    let is_closed = AtomicBool::new(false);
    // SAFETY: the process runs `close_all` on its own stack, while this thread waits in the call (CLONE_VFORK), so that
    // both outlive it.
    let process = unsafe {
        let end = stack.as_mut_ptr_range().end.cast();
        let flags = h::CLONE_VM | h::CLONE_FILES | h::CLONE_FS | h::CLONE_VFORK;
        h::clone(close_all, end, flags, (&raw const is_closed).cast_mut().cast())
    };
    if process > 0 {
        // SAFETY: no pointers are passed.
        unsafe { h::waitpid(process, std::ptr::null_mut(), h::__WALL) };
    }
    is_closed.load(Ordering::SeqCst)
}

/// The other process: tells whether everything is closed.
extern "C" fn close_all(is_closed: *mut h::c_void) -> h::c_int {
    for number in h::STDIN_FILENO..=h::STDERR_FILENO {
        let mut found = MaybeUninit::<h::statfs>::zeroed();
        // SAFETY: all zeros are a valid result, too; nobody else uses the table.
        unsafe {
            h::fstatfs(number, found.as_mut_ptr());
            if found.assume_init_ref().f_type as h::c_ulong == MESSAGE_QUEUE_MAGIC {
                h::close(number);
            }
        }
    }
    // SAFETY: the thread that shares the table waits; its value outlives this process.
    unsafe {
        let is_closed = &*is_closed.cast::<AtomicBool>();
        is_closed.store(close_guests(0), Ordering::SeqCst);
    }
    0
}

/// Reads an image without opening a descriptor that other guest threads could see.
pub fn read_image(path: &Path) -> Result<Image, image::Error> {
    preferably_apart(|| Image::open(path))
}

/// Runs a function in a new thread with its own table of descriptors, of which no guest thread sees any. None if no
/// such thread can be started. No descriptor may be returned.
pub fn apart<T: Send>(what: impl FnOnce() -> T + Send) -> Option<T> {
    let body = || leave_guests_table().then(what);
    std::thread::scope(|scope| {
        let thread = host::spawn_scoped(scope, "apart", body).ok()?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The same, or in this thread if no such thread can be started: the guest may see the descriptors for a moment.
pub fn preferably_apart<T: Send>(what: impl Fn() -> T + Sync) -> T {
    apart(&what).unwrap_or_else(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_opened_apart_is_open_nowhere_else() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().canonicalize().unwrap();
        // SAFETY: gettid has no preconditions.
        let thread = unsafe { h::gettid() };
        let number_here = |thread: i32| {
            let entries = std::fs::read_dir(format!("/proc/self/task/{thread}/fd")).unwrap().flatten();
            entries
                .filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == path))
                .count()
        };
        let before = number_here(thread);
        // Both ways to leave the guest's table.
        for _ in 0..2 {
            let (inside, outside) = apart(|| {
                let _open = std::fs::File::open(&path).unwrap();
                // SAFETY: as above.
                (number_here(unsafe { h::gettid() }), number_here(thread))
            })
            .unwrap();
            assert_eq!((inside, outside), (1, before));
            note_message_queue();
        }
    }
}
