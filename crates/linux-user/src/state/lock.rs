//! The kernel lock, which the threads of a process share.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::state::kernel::Kernel;

/// A process's kernel state, behind the lock that its threads share.
pub struct SharedKernel {
    kernel: Mutex<Kernel>,
    thread_ended: Condvar,
}

impl SharedKernel {
    /// For a process whose first thread is the calling one.
    pub fn new(kernel: Kernel) -> SharedKernel {
        SharedKernel { kernel: Mutex::new(kernel), thread_ended: Condvar::new() }
    }

    /// Acquires the lock.
    pub fn lock(&self) -> KernelGuard<'_> {
        KernelGuard { shared: self, guard: Some(self.guard()) }
    }

    fn guard(&self) -> MutexGuard<'_, Kernel> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kernel state, while the calling thread holds the lock.
pub struct KernelGuard<'a> {
    shared: &'a SharedKernel,
    /// None only while `released` runs.
    guard: Option<MutexGuard<'a, Kernel>>,
}

impl KernelGuard<'_> {
    /// Runs a function without the lock.
    pub(crate) fn released<T>(&mut self, what: impl FnOnce() -> T) -> T {
        self.guard = None;
        let result = what();
        self.guard = Some(self.shared.guard());
        result
    }

    /// Notifies the thread in [`KernelGuard::await_end`] that the calling thread has ended.
    pub fn announce_end(&self) {
        self.shared.thread_ended.notify_all();
    }

    /// Waits, without the lock, until a thread has ended.
    pub fn await_end(&mut self) {
        let guard = self.guard.take().expect("held");
        let guard = self.shared.thread_ended.wait(guard);
        self.guard = Some(guard.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Deref for KernelGuard<'_> {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        self.guard.as_ref().expect("held")
    }
}

impl DerefMut for KernelGuard<'_> {
    fn deref_mut(&mut self) -> &mut Kernel {
        self.guard.as_mut().expect("held")
    }
}
