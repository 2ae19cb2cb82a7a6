//! Counts a program that runs already: each of its threads counts as in [`ProcessTreeCounter`], from the request to its end.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use events::LoadedImage;
use linux_user::DescriptorOwner;

use super::connection::{AttachConnection, ConnectionEnd};
use super::messages::AttachAnswer;
use crate::counting::UnitOfWork;
use crate::lock;
use crate::platform::Platform;
use crate::process_tree::{CountedMember, ProcessTreeCounter};
use guest::BlockCache;

/// The state that the counters of a process share.
pub(in super::super) struct CountSession {
    member: CountedMember,
    folder: OwnedFd,
    /// The connection to the client.
    connection: Mutex<Option<AttachConnection>>,
    is_over: AtomicBool,
    /// The session closes folder and connection when it is dropped.
    _descriptors: DescriptorOwner,
}

impl CountSession {
    /// Begins to count in a folder, as a process with a number, which has mapped these images.
    pub(super) fn open(
        folder: OwnedFd,
        number: u32,
        work: UnitOfWork,
        images: &[LoadedImage],
    ) -> io::Result<Arc<CountSession>> {
        let member = CountedMember::new(folder.as_raw_fd(), number, work, images)?;
        if let Some(missing) = member.missing() {
            return Err(io::Error::other(format!("no image of the program has a function '{missing}'")));
        }
        Ok(Arc::new(CountSession::of(member, folder, None)))
    }

    fn of(member: CountedMember, folder: OwnedFd, connection: Option<AttachConnection>) -> CountSession {
        let (connection, is_over) = (Mutex::new(connection), AtomicBool::new(false));
        CountSession { member, folder, connection, is_over, _descriptors: DescriptorOwner::new() }
    }

    pub(super) fn set_connection(&self, connection: AttachConnection) {
        *lock(&self.connection) = Some(connection);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        lock(&self.connection).as_ref().is_some_and(AttachConnection::is_ended)
    }

    pub(super) fn connection_end(&self) -> Option<ConnectionEnd> {
        lock(&self.connection).as_ref().and_then(AttachConnection::end)
    }

    /// Whether threads have to stop counting.
    pub(in super::super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Drop for CountSession {
    fn drop(&mut self) {
        if let Some(connection) = &mut *lock(&self.connection) {
            connection.send(&AttachAnswer::Done { instructions: 0, units: 0 });
        }
    }
}

/// Counts a thread for a session.
pub(in super::super) struct CountingThread {
    /// The session.
    pub(in super::super) session: Arc<CountSession>,
    /// The thread's counter.
    pub(in super::super) counter: ProcessTreeCounter,
    /// The thread has been told to count.
    has_begun: bool,
    /// It is sampled without being counted.
    is_sampled: bool,
    /// Instructions that the thread had executed when it was to stop; none if it counts.
    stopped: Option<u64>,
    /// Whether the cache of blocks is that of the level at which it counts.
    is_at_level: bool,
    /// The counts have been moved to the log.
    is_done: bool,
}

impl CountingThread {
    /// Of a process that has mapped these images. None if it cannot be counted.
    pub(in super::super) fn new(
        session: Arc<CountSession>,
        images: &[LoadedImage],
    ) -> Option<CountingThread> {
        let counter = session.member.counter(images).ok()?;
        Some(CountingThread::of(session, counter))
    }

    fn of(session: Arc<CountSession>, counter: ProcessTreeCounter) -> CountingThread {
        let (has_begun, is_sampled, is_at_level, is_done) = Default::default();
        CountingThread { session, counter, has_begun, is_sampled, stopped: None, is_at_level, is_done }
    }

    /// Its counter, while blocks are executed at the level at which it counts.
    #[inline(always)]
    pub(in super::super) fn active(&mut self) -> Option<&mut ProcessTreeCounter> {
        self.is_at_level.then_some(&mut self.counter)
    }

    /// The level has changed to that at which it counts, with this cache.
    pub(in super::super) fn enters_level<G: Platform>(&mut self, cache: &BlockCache<G>) {
        if !self.is_done {
            self.is_at_level = true;
            self.counter.continue_in(cache);
        }
    }

    /// The process executes another program (`execve`).
    pub(in super::super) fn replaced<G: Platform>(
        &mut self,
        cpu: &G,
        cache: &BlockCache<G>,
        is_same_guest: bool,
    ) {
        guest::Observer::replaced(&mut self.counter, cpu, cache, is_same_guest);
        self.is_at_level &= is_same_guest;
    }

    /// Of a new thread.
    pub(in super::super) fn thread(&self) -> CountingThread {
        let (session, counter) = (self.session.clone(), self.counter.new_thread());
        CountingThread::of(session, counter)
    }

    /// Whether it counts on; once at least, so that it has a level to leave. It has executed this number of instructions.
    pub(in super::super) fn continues(&mut self, instructions: u64) -> bool {
        if std::mem::replace(&mut self.has_begun, true) && self.session.is_over() {
            self.stopped.get_or_insert(instructions);
        }
        self.stopped.is_none()
    }

    /// The level changes: the counts are moved to the log if it counts no more.
    pub(in super::super) fn leaves_level<G: Platform>(&mut self, cache: &BlockCache<G>) {
        if let Some(instructions) = self.stopped
            && std::mem::take(&mut self.is_at_level)
        {
            self.counter.leave(instructions, cache);
            self.is_done = true;
        }
    }

    /// Whether it counts, rather than being sampled only.
    pub(in super::super) fn is_counted(&self) -> bool {
        !self.counter.is_uncounted()
    }

    /// If it is sampled only, begins to, or stops if it has to.
    pub(in super::super) fn update_samples(&mut self) {
        if self.is_counted() || self.is_done {
            return;
        }
        if self.stopped.is_some() {
            self.counter.end_samples();
            self.is_done = true;
        } else if !std::mem::replace(&mut self.is_sampled, true) {
            self.counter.begin_samples();
        }
    }

    /// Whether it has not been told to stop.
    pub(in super::super) fn is_on(&self) -> bool {
        self.stopped.is_none()
    }

    /// The number of instructions from which on every block must be reported ([`Instrumentation::instruction_limit`]).
    pub(in super::super) fn instruction_limit(&self) -> u64 {
        if self.is_at_level { self.counter.next_sample() } else { u64::MAX }
    }

    /// Whether it counts no more.
    pub(in super::super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// The process is a copy made by fork, whose counter is already that of the copy.
    pub(in super::super) fn forked(&mut self) {
        let parent = &self.session;
        // Another thread of the parent may have held the lock at the fork.
        let connection = parent.connection.try_lock().ok().and_then(|mut connection| connection.take());
        // SAFETY: the parent's session, which owns the descriptor, is never dropped in this process.
        let folder = unsafe { OwnedFd::from_raw_fd(parent.folder.as_raw_fd()) };
        std::mem::forget(parent.clone());
        let session = CountSession::of(self.counter.member(), folder, connection);
        session.is_over.store(parent.is_over(), Ordering::Relaxed);
        self.session = Arc::new(session);
    }
}
