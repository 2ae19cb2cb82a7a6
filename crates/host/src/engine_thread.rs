//! Threads of the engine that run no guest code. The guest's signals are delivered to guest threads; SIGSEGV and SIGBUS,
//! which such a thread cannot block if it reads guest memory, find room for their handlers.

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::signal::without_signals;
use crate::signal_stack;

/// Starts a thread with this name.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    without_signals(|| Builder::new().name(name.into()).spawn(with_stack(body)))
}

/// Starts a thread with this name in a scope.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    without_signals(|| Builder::new().name(name.into()).spawn_scoped(scope, with_stack(body)))
}

fn with_stack<T>(body: impl FnOnce() -> T) -> impl FnOnce() -> T {
    || {
        signal_stack::take_own();
        body()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal_stack::tests::has_room;

    #[test]
    fn handlers_of_all_threads_have_room() {
        assert!(spawn("test", has_room).unwrap().join().unwrap());
        assert!(std::thread::scope(|scope| spawn_scoped(scope, "test", has_room).unwrap().join().unwrap()));
        assert!(!std::thread::spawn(has_room).join().unwrap(), "the standard library's stack");
    }
}
