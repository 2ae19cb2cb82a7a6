//! Feeds the pipeline with resolved batches: at once, or on a worker thread.

use std::io;
use std::mem::take;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use events::{Block, MappedImage, Thread};

use super::accounting::Accounting;
use super::memory::MemorySystem;
use super::resolve::ResolvedBatch;

/// Words of records in a batch: enough that a thread is rarely woken, and few enough to stay in the host's caches.
pub(super) const BATCH_WORDS: usize = 64 << 10;
/// The longest queue of batches for the worker thread.
const QUEUE_LENGTH: usize = 8;

/// Work for the pipeline: new blocks, and then the records of one thread of the program.
#[derive(Default)]
struct Batch {
    images: Vec<MappedImage>,
    blocks: Vec<Block>,
    thread: Thread,
    resolved: ResolvedBatch,
}

/// A pipeline with the batch that it executes next.
pub(super) struct Worker<M> {
    accounting: Arc<Mutex<Accounting<M>>>,
    queue: Mutex<WorkQueue>,
}

struct WorkQueue {
    next: Batch,
    /// Executes the batches, unless the caller does.
    worker_thread: Option<WorkerThread>,
}

struct WorkerThread {
    batches: SyncSender<Batch>,
    /// Executed batches, empty again.
    recycled: Receiver<Batch>,
    /// Batches sent and not yet received back.
    in_flight: usize,
}

/// Locks, poisoned or not: a panic in the worker thread makes the sender of the next batch panic, too.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same for exclusive owners, without locking.
fn exclusive<T>(mutex: &mut Mutex<T>) -> &mut T {
    mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.images.is_empty() && self.resolved.records.is_empty()
    }

    /// Executes the batch, and empties it.
    fn execute<M: MemorySystem>(&mut self, accounting: &Mutex<Accounting<M>>) {
        let mut accounting = lock(accounting);
        self.images.drain(..).for_each(|image| accounting.map(&image));
        self.blocks.drain(..).for_each(|block| accounting.define(block));
        if !self.resolved.records.is_empty() {
            accounting.execute(self.thread, &self.resolved);
            self.resolved.clear();
        }
    }
}

impl WorkerThread {
    fn new<M: MemorySystem + 'static>(accounting: Arc<Mutex<Accounting<M>>>) -> io::Result<WorkerThread> {
        let (batches, queue) = sync_channel::<Batch>(QUEUE_LENGTH);
        let (recycle, recycled) = channel();
        let body = move || {
            while let Ok(mut batch) = queue.recv() {
                batch.execute(&accounting);
                // The receiver may be gone already.
                let _ = recycle.send(batch);
            }
        };
        Builder::new().name("pipeline".into()).spawn(body)?;
        Ok(WorkerThread { batches, recycled, in_flight: 0 })
    }

    /// Sends a batch to the thread. Returns an empty one.
    fn send(&mut self, batch: Batch) -> Batch {
        let empty = self.recycled.try_recv().ok();
        self.in_flight -= usize::from(empty.is_some());
        self.batches.send(batch).expect("the thread waits for batches");
        self.in_flight += 1;
        empty.unwrap_or_default()
    }

    /// Waits until all batches are executed.
    fn drain(&mut self) {
        for _ in 0..take(&mut self.in_flight) {
            self.recycled.recv().expect("the thread executes all batches");
        }
    }
}

impl WorkQueue {
    /// Executes the next batch, or sends it to the worker thread, unless it is empty.
    fn flush<M: MemorySystem>(&mut self, accounting: &Mutex<Accounting<M>>) {
        match &mut self.worker_thread {
            _ if self.next.is_empty() => {}
            None => self.next.execute(accounting),
            Some(worker_thread) => self.next = worker_thread.send(take(&mut self.next)),
        }
    }
}

impl<M: MemorySystem + 'static> Worker<M> {
    /// Executes batches in the caller's thread.
    pub fn new(accounting: Accounting<M>) -> Worker<M> {
        let queue = WorkQueue { next: Batch::default(), worker_thread: None };
        Worker { accounting: Arc::new(Mutex::new(accounting)), queue: Mutex::new(queue) }
    }

    /// Starts a worker thread, which executes batches from now on.
    pub fn start_thread(&mut self) -> io::Result<()> {
        drop(self.drained());
        exclusive(&mut self.queue).worker_thread = Some(WorkerThread::new(self.accounting.clone())?);
        Ok(())
    }

    /// An image is mapped.
    pub fn map(&mut self, image: &MappedImage) {
        exclusive(&mut self.queue).next.images.push(image.clone());
    }

    /// Defines a block that records may name from now on.
    pub fn define(&mut self, block: &Block) {
        exclusive(&mut self.queue).next.blocks.push(block.clone());
    }

    /// The batch to which records of a thread of the program are appended: it has fewer than [`BATCH_WORDS`] words.
    pub fn batch(&mut self, thread: Thread) -> &mut ResolvedBatch {
        let queue = exclusive(&mut self.queue);
        let words = queue.next.resolved.records.len();
        if words >= BATCH_WORDS || (words > 0 && queue.next.thread != thread) {
            queue.flush(&self.accounting);
        }
        queue.next.thread = thread;
        &mut queue.next.resolved
    }

    /// The pipeline's accounts, after all batches are executed.
    pub fn drained(&self) -> MutexGuard<'_, Accounting<M>> {
        let mut queue = lock(&self.queue);
        queue.flush(&self.accounting);
        if let Some(worker_thread) = &mut queue.worker_thread {
            worker_thread.drain();
        }
        lock(&self.accounting)
    }
}
