//! Reads of sockets that are deferred in runs with dilated time, so that they do not depend on when data arrive.
//!
//! A program that does not block looks for the next request as soon as it has sent an answer. Whether the request is there
//! already depends on the host, and so does what the program executes: with none, it asks the kernel to wait. In a run with dilated
//! time the first look after an answer finds nothing, whether or not the request has arrived: the program waits, and finds it then.

use std::collections::BTreeSet;

/// The sockets whose next read is deferred, by their descriptors.
#[derive(Clone, Debug, Default)]
pub struct DeferredReads {
    /// Descriptors on which the program sent last, and has not looked for received data since.
    answered: BTreeSet<i32>,
    /// Those whose readiness is reported once only, when data arrive (EPOLLET): nothing would report again what was deferred.
    edge_triggered: BTreeSet<i32>,
}

impl DeferredReads {
    /// The program waits for a descriptor by edges.
    pub fn edge_triggered(&mut self, descriptor: i32) {
        self.edge_triggered.insert(descriptor);
    }

    /// Whether a host call is the first look for data after an answer, and does not block.
    pub fn defers(&mut self, number: libc::c_long, arguments: &[u64; 6]) -> bool {
        let flags = match number {
            libc::SYS_recvfrom => arguments[3],
            libc::SYS_recvmsg => arguments[2],
            libc::SYS_read | libc::SYS_readv => 0,
            _ => return false,
        } as i32;
        let descriptor = arguments[0] as i32;
        flags & libc::MSG_PEEK == 0
            && self.answered.remove(&descriptor)
            && !self.edge_triggered.contains(&descriptor)
            && (flags & libc::MSG_DONTWAIT != 0 || is_non_blocking(descriptor))
    }

    /// Notes that a host call has succeeded.
    pub fn note(&mut self, number: libc::c_long, arguments: &[u64; 6], result: u64) {
        let descriptor = match number {
            // The first request may have arrived, too.
            libc::SYS_accept4 => {
                self.edge_triggered.remove(&(result as i32));
                result as i32
            }
            libc::SYS_sendto | libc::SYS_sendmsg => arguments[0] as i32,
            _ => return,
        };
        self.answered.insert(descriptor);
    }
}

fn is_non_blocking(descriptor: i32) -> bool {
    // SAFETY: no pointer is passed.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_NONBLOCK != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = libc::MSG_DONTWAIT as u64;
    /// No open one: other tests of this process open files that do not block.
    const SOCKET: u64 = 1 << 30;

    fn receive(reads: &mut DeferredReads, flags: u64) -> bool {
        reads.defers(libc::SYS_recvfrom, &[SOCKET, 0, 100, flags, 0, 0])
    }

    #[test]
    fn the_first_look_after_an_answer_finds_nothing() {
        let mut reads = DeferredReads::default();
        assert!(!receive(&mut reads, NOW));
        reads.note(libc::SYS_accept4, &[3, 0, 0, 0, 0, 0], SOCKET);
        assert!(receive(&mut reads, NOW));
        assert!(!receive(&mut reads, NOW));
        reads.note(libc::SYS_sendto, &[SOCKET, 0, 10, 0, 0, 0], 10);
        assert!(!receive(&mut reads, NOW | libc::MSG_PEEK as u64));
        assert!(receive(&mut reads, NOW));
        // A call that blocks waits for the request anyway.
        reads.note(libc::SYS_sendto, &[SOCKET, 0, 10, 0, 0, 0], 10);
        assert!(!receive(&mut reads, 0));
        assert!(!receive(&mut reads, NOW));
    }

    #[test]
    fn nothing_is_deferred_that_is_reported_once() {
        let mut reads = DeferredReads::default();
        reads.edge_triggered(SOCKET as i32);
        reads.note(libc::SYS_sendto, &[SOCKET, 0, 10, 0, 0, 0], 10);
        assert!(!receive(&mut reads, NOW));
    }
}
