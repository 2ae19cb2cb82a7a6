//! The kernel lock, which the threads of a process share.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::abi::Abi;
use crate::state::kernel::Kernel;

/// A process's kernel state, behind the lock that its threads share.
pub struct SharedKernel<G: Abi> {
    kernel: Mutex<Kernel<G>>,
    thread_ended: Condvar,
}

impl<G: Abi> SharedKernel<G> {
    /// For a process whose first thread is the calling one.
    pub fn new(kernel: Kernel<G>) -> SharedKernel<G> {
        SharedKernel { kernel: Mutex::new(kernel), thread_ended: Condvar::new() }
    }

    /// Acquires the lock.
    pub fn lock(&self) -> KernelGuard<'_, G> {
        KernelGuard { shared: self, guard: Some(self.guard()) }
    }

    fn guard(&self) -> MutexGuard<'_, Kernel<G>> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kernel state, while the calling thread holds the lock.
pub struct KernelGuard<'a, G: Abi> {
    shared: &'a SharedKernel<G>,
    /// None only while `released` runs.
    guard: Option<MutexGuard<'a, Kernel<G>>>,
}

impl<G: Abi> KernelGuard<'_, G> {
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

impl<G: Abi> Deref for KernelGuard<'_, G> {
    type Target = Kernel<G>;

    fn deref(&self) -> &Kernel<G> {
        self.guard.as_ref().expect("held")
    }
}

impl<G: Abi> DerefMut for KernelGuard<'_, G> {
    fn deref_mut(&mut self) -> &mut Kernel<G> {
        self.guard.as_mut().expect("held")
    }
}
