//! Delivers records to a consumer while the program runs: directly, or on a thread of the host.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use events::{BlockId, Consumer, HitFilter, Object, ProcessEnd, Thread};
use trace::{DefinitionCursor, ProcessDictionary};

use super::encoder::RecordBuffer;
use crate::lock;

/// Words after which a buffer is sent to the consumer's thread. It is large, so that the thread is rarely woken.
const BUFFER_WORDS: usize = 64 << 10;
/// Maximum number of queued buffers. They fit into the host's shared cache.
const QUEUED_BUFFERS: usize = 2;

/// Makes the consumers of processes that the observed one forks.
pub trait ForkedConsumer: Send + Sync {
    /// A consumer of the process that has just been forked, called in that process; and what makes those of its own children.
    /// None if the process is not observed. The consumer is dropped when the process ends, and accesses are never filtered for
    /// it.
    fn forked(&self, process: ForkedProcess) -> Option<ConsumerOfFork>;
}

/// A consumer of a forked process, and what makes those of its own children.
pub type ConsumerOfFork = (Arc<Mutex<dyn Consumer>>, Arc<dyn ForkedConsumer>);

/// Makes the consumers of processes that a client observes, to which it has attached.
pub trait AttachedConsumers: Send + Sync {
    /// A consumer of this process that reports to the client, whose file this is; and what makes those of processes that it forks.
    /// The number among the children is that among the processes to which the client has attached. The consumer is dropped when
    /// the client or the process has ended.
    fn attached(&self, file: OwnedFd, process: ForkedProcess) -> io::Result<ConsumerOfFork>;
}

/// A process that has been forked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkedProcess {
    /// Its number among the children of its parent, from 1.
    pub ordinal: u32,
    /// Its number among all observed processes; that of the first is 0.
    pub number: u32,
}

/// Delivers the records of all threads of a process to a consumer.
pub(super) struct Delivery {
    target: Arc<ConsumerTarget>,
    consumer_thread: Option<ConsumerThread>,
    /// The consumer's hit filter, if a single thread reports directly.
    hit_filter: Option<HitFilter>,
    has_threads: AtomicBool,
    /// Number of threads that have delivered records.
    threads: AtomicU32,
}

/// The consumer, and the process that it observes.
struct ConsumerTarget {
    process: Arc<ProcessDictionary>,
    consumer: Arc<Mutex<dyn Consumer>>,
    /// The definitions that it has received.
    defined: Mutex<DefinitionCursor>,
    /// How many objects it has received.
    objects: Mutex<usize>,
}

/// A thread that calls the consumer.
struct ConsumerThread {
    /// Buffers with their threads' numbers; an empty one ends the thread.
    buffers: SyncSender<(u32, RecordBuffer)>,
    returned: Mutex<Receiver<RecordBuffer>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl ConsumerTarget {
    fn executed(&self, number: u32, buffers: [&[u64]; 2]) {
        let mut consumer = lock(&self.consumer);
        self.process.define(&mut lock(&self.defined), &mut *consumer);
        // Forked processes have consumers of their own.
        let thread = Thread { process: 0, number };
        buffers
            .into_iter()
            .filter(|records| !records.is_empty())
            .for_each(|records| consumer.executed(thread, records));
    }
}

impl Delivery {
    /// Delivers to a consumer, on a thread of its own if `is_parallel`.
    pub(super) fn new(
        process: &Arc<ProcessDictionary>,
        consumer: Arc<Mutex<dyn Consumer>>,
        is_parallel: bool,
    ) -> io::Result<Delivery> {
        let hit_filter = if is_parallel { None } else { lock(&consumer).hit_filter() };
        let delivery = Delivery::unfiltered(process, consumer);
        let consumer_thread =
            is_parallel.then(|| ConsumerThread::new(delivery.target.clone())).transpose()?;
        Ok(Delivery { consumer_thread, hit_filter, ..delivery })
    }

    /// Delivers every access to a consumer directly.
    pub(super) fn unfiltered(
        process: &Arc<ProcessDictionary>,
        consumer: Arc<Mutex<dyn Consumer>>,
    ) -> Delivery {
        let (process, defined) = (process.clone(), Mutex::default());
        Delivery {
            target: Arc::new(ConsumerTarget { process, consumer, defined, objects: Mutex::default() }),
            consumer_thread: None,
            hit_filter: None,
            has_threads: AtomicBool::new(false),
            threads: AtomicU32::new(0),
        }
    }

    /// The consumer's hit filter, while there is only one thread.
    pub(super) fn hit_filter(&self) -> Option<&HitFilter> {
        self.hit_filter.as_ref().filter(|_| !self.has_threads.load(Ordering::Relaxed))
    }

    /// The calling thread starts another one, after reporting everything so far.
    pub(super) fn add_thread(&self) {
        self.has_threads.store(true, Ordering::Relaxed);
        // Filtering ends: the thread must change its level.
        host::kick_self();
    }

    /// Reports definitions of all numbered blocks to the consumer.
    pub(super) fn define(&self) {
        let ConsumerTarget { process, consumer, defined, .. } = &*self.target;
        process.define(&mut lock(defined), &mut *lock(consumer));
    }

    /// Defines the objects of the process that are new, for the consumer.
    pub(super) fn define_objects(&self, all: &[Object]) {
        let mut defined = lock(&self.target.objects);
        if all.len() > *defined {
            let mut consumer = lock(&self.target.consumer);
            all[*defined..].iter().for_each(|object| consumer.object(object));
            *defined = all.len();
        }
    }

    /// Tells the consumer the class of a unit of work whose end will be delivered.
    pub(super) fn unit_class(&self, unit: u64, class: &str) {
        lock(&self.target.consumer).unit_class(unit, class);
    }

    /// The consumer's number of a block's first instruction.
    pub(super) fn first_instruction(&self, block: BlockId) -> u32 {
        lock(&self.target.consumer).first_instruction(block)
    }

    /// Delivers counts of executions whose accesses were filtered.
    pub(super) fn executed_filtered(&self, executions: &[(BlockId, u64)]) {
        let mut consumer = lock(&self.target.consumer);
        executions.iter().for_each(|&(block, times)| consumer.executed_filtered(block, times));
    }

    /// A number for a thread that delivers for the first time.
    pub(super) fn next_thread(&self) -> u32 {
        self.threads.fetch_add(1, Ordering::Relaxed)
    }

    /// Delivers a thread's buffer and the records after it. Records that are not sent yet stay in the buffer.
    pub(super) fn deliver(&self, thread: u32, buffer: &mut RecordBuffer, records: &[u64]) -> io::Result<()> {
        if self.consumer_thread.is_some() {
            buffer.extend_from_slice(records);
            return if buffer.len() < BUFFER_WORDS { Ok(()) } else { self.flush(thread, buffer) };
        }
        self.target.executed(thread, [buffer, records]);
        buffer.clear();
        Ok(())
    }

    /// Delivers a thread's buffer, and empties it.
    pub(super) fn flush(&self, thread: u32, buffer: &mut RecordBuffer) -> io::Result<()> {
        let Some(consumer_thread) = &self.consumer_thread else { return self.deliver(thread, buffer, &[]) };
        if buffer.is_empty() {
            return Ok(());
        }
        let empty = lock(&consumer_thread.returned).try_recv().unwrap_or_default();
        let full = std::mem::replace(buffer, empty);
        consumer_thread.buffers.send((thread, full)).map_err(|_| failed())
    }

    /// The process executes another program, after everything so far was delivered.
    pub(super) fn replaced(&self) {
        if self.consumer_thread.is_none() {
            lock(&self.target.consumer).replaced();
        }
    }

    /// The process has ended, after everything was delivered.
    pub(super) fn ended(&self, how: ProcessEnd) {
        if self.consumer_thread.is_none() {
            lock(&self.target.consumer).ended(how);
        }
    }

    /// Waits until the consumer has received everything.
    pub(super) fn finish(&self) -> io::Result<()> {
        let Some(consumer_thread) = &self.consumer_thread else { return Ok(()) };
        let Some(thread) = lock(&consumer_thread.thread).take() else { return Ok(()) };
        let is_sent = consumer_thread.buffers.send((0, RecordBuffer::new())).is_ok();
        if thread.join().is_ok() && is_sent { Ok(()) } else { Err(failed()) }
    }
}

fn failed() -> io::Error {
    io::Error::other("the thread that runs the consumer failed")
}

impl ConsumerThread {
    fn new(target: Arc<ConsumerTarget>) -> io::Result<ConsumerThread> {
        let (buffers, waiting) = sync_channel::<(u32, RecordBuffer)>(QUEUED_BUFFERS);
        let (give_back, returned) = sync_channel(QUEUED_BUFFERS + 2);
        let body = move || {
            // Files that the consumer opens must not appear among the guest's descriptors.
            linux_user::leave_guests_table();
            while let Some((thread, mut buffer)) =
                waiting.recv().ok().filter(|(_, buffer)| !buffer.is_empty())
            {
                target.executed(thread, [&buffer, &[]]);
                buffer.clear();
                let _ = give_back.try_send(buffer);
            }
        };
        let thread = host::spawn("consumer", body)?;
        Ok(ConsumerThread { buffers, returned: Mutex::new(returned), thread: Mutex::new(Some(thread)) })
    }
}
