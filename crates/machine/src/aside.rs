//! A clock behind the memory that it hears of: at work where memory is, or on a thread of its own.

use std::io;
use std::mem::take;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use trace::{Block, Thread};

use crate::clock::Clock;
use crate::pipeline::ResolvedBatch;

/// Words of records after which the clock goes on: so many that a thread is rarely woken, so few that they are in the
/// host's caches.
pub(crate) const MOST: usize = 64 << 10;
/// Batches that may wait for a thread.
const WAITING: usize = 8;

/// Blocks that are new, and what a thread of the program executed then.
#[derive(Default)]
struct Batch {
    blocks: Vec<Block>,
    thread: Thread,
    answered: ResolvedBatch,
}

/// A clock, and what it has not heard yet.
pub(crate) struct Aside {
    clock: Arc<Mutex<Clock>>,
    queue: Mutex<Queue>,
}

struct Queue {
    next: Batch,
    helper: Option<Helper>,
}

/// A thread that tells the clock.
struct Helper {
    batches: SyncSender<Batch>,
    /// Empty ones, which have been told.
    told: Receiver<Batch>,
    /// How many are not back.
    under_way: usize,
}

/// Nobody who panics leaves anything half done that is looked at again.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same of one that nobody else has.
fn own<T>(mutex: &mut Mutex<T>) -> &mut T {
    mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
}

impl Batch {
    /// Whether there is nothing to tell.
    fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.answered.records.is_empty()
    }

    /// Tells the clock. The batch is empty then.
    fn tell(&mut self, clock: &Mutex<Clock>) {
        let mut clock = lock(clock);
        self.blocks.drain(..).for_each(|block| clock.define(&block));
        if !self.answered.records.is_empty() {
            clock.execute(self.thread, &self.answered);
            self.answered.clear();
        }
    }
}

impl Helper {
    fn new(clock: Arc<Mutex<Clock>>) -> io::Result<Helper> {
        let (batches, waiting) = sync_channel::<Batch>(WAITING);
        let (give_back, told) = channel();
        let body = move || {
            while let Ok(mut batch) = waiting.recv() {
                batch.tell(&clock);
                // Nobody may want it back.
                let _ = give_back.send(batch);
            }
        };
        Builder::new().name("pipeline".into()).spawn(body)?;
        Ok(Helper { batches, told, under_way: 0 })
    }

    /// Hands a batch on. Returns an empty one.
    fn send(&mut self, batch: Batch) -> Batch {
        let empty = self.told.try_recv().ok();
        self.under_way -= usize::from(empty.is_some());
        self.batches.send(batch).expect("the thread waits for more");
        self.under_way += 1;
        empty.unwrap_or_default()
    }

    /// Waits until all has been told.
    fn wait(&mut self) {
        for _ in 0..take(&mut self.under_way) {
            self.told.recv().expect("the thread tells all");
        }
    }
}

impl Queue {
    /// The clock goes on with what waits for more, if anything does.
    fn go_on(&mut self, clock: &Mutex<Clock>) {
        match &mut self.helper {
            _ if self.next.is_empty() => {}
            None => self.next.tell(clock),
            Some(helper) => self.next = helper.send(take(&mut self.next)),
        }
    }
}

impl Aside {
    /// A clock at work where memory is.
    pub fn new(clock: Clock) -> Aside {
        let queue = Queue { next: Batch::default(), helper: None };
        Aside { clock: Arc::new(Mutex::new(clock)), queue: Mutex::new(queue) }
    }

    /// Lets a thread of its own tell the clock from now on.
    pub fn begin_thread(&mut self) -> io::Result<()> {
        drop(self.clock());
        own(&mut self.queue).helper = Some(Helper::new(self.clock.clone())?);
        Ok(())
    }

    /// A block that records may name from now on.
    pub fn define(&mut self, block: &Block) {
        own(&mut self.queue).next.blocks.push(block.clone());
    }

    /// What the clock is to hear next, of a thread of the program: fewer than [`MOST`] words so far.
    pub fn next(&mut self, thread: Thread) -> &mut ResolvedBatch {
        let queue = own(&mut self.queue);
        let words = queue.next.answered.records.len();
        if words >= MOST || (words > 0 && queue.next.thread != thread) {
            queue.go_on(&self.clock);
        }
        queue.next.thread = thread;
        &mut queue.next.answered
    }

    /// The clock, which has heard all.
    pub fn clock(&self) -> MutexGuard<'_, Clock> {
        let mut queue = lock(&self.queue);
        queue.go_on(&self.clock);
        if let Some(helper) = &mut queue.helper {
            helper.wait();
        }
        lock(&self.clock)
    }
}
