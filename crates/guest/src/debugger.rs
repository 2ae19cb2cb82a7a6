//! The hooks by which a debugger controls the threads and signals of a program.

use std::path::Path;
use std::sync::Arc;

use host::ThreadHandle;

/// An observer that may have a debugger.
pub trait Debugged<G> {
    /// The debugger that controls the thread, if there is one.
    #[inline(always)]
    fn debugger(&mut self) -> Option<&mut dyn DebuggerHook<G>> {
        None
    }
}

impl<G> Debugged<G> for () {}

/// A debugger's control of one thread.
pub trait DebuggerHook<G> {
    /// The hook that is called before signals reach a thread.
    fn signals(&self) -> Option<Arc<dyn SignalHook<G>>>;
    /// Whether the debugger must be notified before each instruction.
    fn steps(&self) -> bool;
    /// Whether the thread is to stop before the instruction at `pc`.
    fn holds(&mut self, pc: u64) -> bool;
    /// The thread begins, on the calling thread of the host.
    fn begin(&mut self, thread: ThreadHandle, guest: &mut G);
    /// The thread stops, for the reason that [`DebuggerHook::holds`] found, and returns when it may continue.
    fn stop(&mut self, guest: &mut G);
    /// The thread leaves the guest for a system call.
    fn leave_guest(&mut self, guest: &G);
    /// The thread comes back to the guest; returns when it may continue.
    fn enter_guest(&mut self, guest: &mut G);
    /// The process ends, or another program takes its place: no thread may wait any more.
    fn end_all(&mut self, guest: &G);
    /// Another program has taken the place of the one before. The thread stops.
    fn replace(&mut self, executable: &Path, guest: &mut G);
}

/// A debugger's control of signals.
pub trait SignalHook<G>: Send + Sync {
    /// A signal, by the guest's number, is about to reach a thread, by the host's id. Returns the signal to
    /// deliver instead, if any.
    fn signal(&self, thread: i32, guest: &mut G, signal: i32) -> Option<i32>;
}
