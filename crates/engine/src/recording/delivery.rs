//! Brings records to a consumer while the program runs: at once, or by a thread of the host's.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

use events::{BlockId, Consumer, HitFilter, Thread};
use trace::{DefinitionCursor, Process};

use super::encoder::Piece;
use crate::lock;

/// Words after which a piece goes to the other thread: so many that it is rarely woken.
const PIECE: usize = 64 << 10;
/// Pieces that may wait there: what is under way fits the caches that the host's processors share.
const WAITING: usize = 2;

/// The way from all threads of a process to a consumer.
pub(super) struct Delivery {
    target: Arc<Target>,
    courier: Option<Courier>,
    /// The consumer's hit filter, if the program's only thread reports to it.
    hit_filter: Option<HitFilter>,
    has_threads: AtomicBool,
    /// Threads that had something to deliver.
    threads: AtomicU32,
}

/// The consumer.
struct Target {
    process: Arc<Process>,
    consumer: Arc<Mutex<dyn Consumer>>,
    /// What it has heard of.
    known: Mutex<DefinitionCursor>,
}

/// A thread that calls the consumer.
struct Courier {
    /// With the thread's number; an empty one is the last.
    pieces: SyncSender<(u32, Piece)>,
    used: Mutex<Receiver<Piece>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Target {
    fn executed(&self, number: u32, pieces: [&[u64]; 2]) {
        let mut consumer = lock(&self.consumer);
        self.process.define(&mut lock(&self.known), &mut *consumer);
        // Processes that the program forks are not heard.
        let thread = Thread { process: 0, number };
        pieces
            .into_iter()
            .filter(|records| !records.is_empty())
            .for_each(|records| consumer.executed(thread, records));
    }
}

impl Delivery {
    /// To a consumer, by a thread of its own if that `is_parallel`.
    pub(super) fn new(
        process: &Arc<Process>,
        consumer: Arc<Mutex<dyn Consumer>>,
        is_parallel: bool,
    ) -> io::Result<Delivery> {
        let hit_filter = if is_parallel { None } else { lock(&consumer).hit_filter() };
        let target = Arc::new(Target { process: process.clone(), consumer, known: Mutex::default() });
        let courier = is_parallel.then(|| Courier::new(target.clone())).transpose()?;
        let (has_threads, threads) = (AtomicBool::new(false), AtomicU32::new(0));
        Ok(Delivery { target, courier, hit_filter, has_threads, threads })
    }

    /// The consumer's hit filter, while only one thread executes.
    pub(super) fn hit_filter(&self) -> Option<&HitFilter> {
        self.hit_filter.as_ref().filter(|_| !self.has_threads.load(Ordering::Relaxed))
    }

    /// The calling thread, which has told all, starts another one.
    pub(super) fn add_thread(&self) {
        self.has_threads.store(true, Ordering::Relaxed);
        // From now on it tells more.
        host::kick_self();
    }

    /// Lets the consumer know the blocks that have numbers now.
    pub(super) fn define(&self) {
        let Target { process, consumer, known } = &*self.target;
        process.define(&mut lock(known), &mut *lock(consumer));
    }

    /// The number that a block's first instruction has for the consumer.
    pub(super) fn first_instruction(&self, block: BlockId) -> u32 {
        lock(&self.target.consumer).first_instruction(block)
    }

    /// Delivers how often blocks were executed without records.
    pub(super) fn executed_filtered(&self, executions: &[(BlockId, u64)]) {
        let mut consumer = lock(&self.target.consumer);
        executions.iter().for_each(|&(block, times)| consumer.executed_filtered(block, times));
    }

    /// The number of a thread that delivers for the first time.
    pub(super) fn next_thread(&self) -> u32 {
        self.threads.fetch_add(1, Ordering::Relaxed)
    }

    /// Delivers a thread's piece, and the records behind it; what waits for more stays in the piece.
    pub(super) fn deliver(&self, thread: u32, piece: &mut Piece, records: &[u64]) -> io::Result<()> {
        if self.courier.is_some() {
            piece.extend_from_slice(records);
            return if piece.len() < PIECE { Ok(()) } else { self.flush(thread, piece) };
        }
        self.target.executed(thread, [piece, records]);
        piece.clear();
        Ok(())
    }

    /// Delivers a thread's piece, which is empty then.
    pub(super) fn flush(&self, thread: u32, piece: &mut Piece) -> io::Result<()> {
        let Some(courier) = &self.courier else { return self.deliver(thread, piece, &[]) };
        if piece.is_empty() {
            return Ok(());
        }
        let empty = lock(&courier.used).try_recv().unwrap_or_default();
        let full = std::mem::replace(piece, empty);
        courier.pieces.send((thread, full)).map_err(|_| failed())
    }

    /// Waits until the consumer has heard all.
    pub(super) fn finish(&self) -> io::Result<()> {
        let Some(courier) = &self.courier else { return Ok(()) };
        let Some(thread) = lock(&courier.thread).take() else { return Ok(()) };
        let is_sent = courier.pieces.send((0, Piece::new())).is_ok();
        if thread.join().is_ok() && is_sent { Ok(()) } else { Err(failed()) }
    }
}

fn failed() -> io::Error {
    io::Error::other("the thread that hears what is executed failed")
}

impl Courier {
    fn new(target: Arc<Target>) -> io::Result<Courier> {
        let (pieces, waiting) = sync_channel::<(u32, Piece)>(WAITING);
        let (give_back, used) = sync_channel(WAITING + 2);
        let body = move || {
            // A consumer may read images.
            linux::leave_guests_table();
            while let Some((thread, mut piece)) = waiting.recv().ok().filter(|(_, piece)| !piece.is_empty()) {
                target.executed(thread, [&piece, &[]]);
                piece.clear();
                let _ = give_back.try_send(piece);
            }
        };
        // The guest's signals are its own threads'.
        let thread = host::without_signals(|| Builder::new().name("consumer".into()).spawn(body))?;
        Ok(Courier { pieces, used: Mutex::new(used), thread: Mutex::new(Some(thread)) })
    }
}
