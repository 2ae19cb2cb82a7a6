//! Brings records to a consumer while the program runs: at once, or by a thread of the host's.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

use trace::Process;

use super::feed::Piece;
use crate::{linux, lock};

/// Hears what a program executes, while it does.
pub trait Consumer: Send {
    /// A block that records may name from now on; the first is number 0.
    fn define(&mut self, address: u64, words: &[u32]);

    /// What a thread executed: [`trace::record`], whole ones. There are no order marks: threads take turns.
    fn executed(&mut self, records: &[u64]);
}

/// Words after which a piece goes to the other thread: what is under way fits the host's caches.
const PIECE: usize = 16 << 10;
/// Pieces that may wait there.
const WAITING: usize = 8;

/// The way from all threads of a process to a consumer.
pub(super) struct Delivery {
    target: Arc<Target>,
    courier: Option<Courier>,
}

/// The consumer.
struct Target {
    process: Arc<Process>,
    consumer: Arc<Mutex<dyn Consumer>>,
    /// How many blocks it knows.
    defined: Mutex<usize>,
}

/// A thread that calls the consumer.
struct Courier {
    /// An empty one is the last.
    pieces: SyncSender<Piece>,
    used: Mutex<Receiver<Piece>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Target {
    fn executed(&self, pieces: [&[u64]; 2]) {
        let mut consumer = lock(&self.consumer);
        let mut defined = lock(&self.defined);
        self.process.blocks_from(*defined, |address, words| {
            consumer.define(address, words);
            *defined += 1;
        });
        pieces
            .into_iter()
            .filter(|records| !records.is_empty())
            .for_each(|records| consumer.executed(records));
    }
}

impl Delivery {
    /// To a consumer, by a thread of its own if that `is_parallel`.
    pub(super) fn new(
        process: &Arc<Process>,
        consumer: Arc<Mutex<dyn Consumer>>,
        is_parallel: bool,
    ) -> io::Result<Delivery> {
        let target = Arc::new(Target { process: process.clone(), consumer, defined: Mutex::new(0) });
        let courier = is_parallel.then(|| Courier::new(target.clone())).transpose()?;
        Ok(Delivery { target, courier })
    }

    /// Delivers a piece, and the records behind it; what waits for more stays in the piece.
    pub(super) fn deliver(&self, piece: &mut Piece, records: &[u64]) -> io::Result<()> {
        if self.courier.is_some() {
            piece.extend_from_slice(records);
            return if piece.len() < PIECE { Ok(()) } else { self.flush(piece) };
        }
        self.target.executed([piece, records]);
        piece.clear();
        Ok(())
    }

    /// Delivers a piece, which is empty then.
    pub(super) fn flush(&self, piece: &mut Piece) -> io::Result<()> {
        let Some(courier) = &self.courier else { return self.deliver(piece, &[]) };
        if piece.is_empty() {
            return Ok(());
        }
        let empty = lock(&courier.used).try_recv().unwrap_or_default();
        let full = std::mem::replace(piece, empty);
        courier.pieces.send(full).map_err(|_| failed())
    }

    /// Waits until the consumer has heard all.
    pub(super) fn finish(&self) -> io::Result<()> {
        let Some(courier) = &self.courier else { return Ok(()) };
        let Some(thread) = lock(&courier.thread).take() else { return Ok(()) };
        let is_sent = courier.pieces.send(Piece::new()).is_ok();
        if thread.join().is_ok() && is_sent { Ok(()) } else { Err(failed()) }
    }
}

fn failed() -> io::Error {
    io::Error::other("the thread that hears what is executed failed")
}

impl Courier {
    fn new(target: Arc<Target>) -> io::Result<Courier> {
        let (pieces, waiting) = sync_channel::<Piece>(WAITING);
        let (give_back, used) = sync_channel(WAITING + 2);
        let body = move || {
            while let Some(mut piece) = waiting.recv().ok().filter(|piece| !piece.is_empty()) {
                target.executed([&piece, &[]]);
                piece.clear();
                let _ = give_back.try_send(piece);
            }
        };
        // The guest's signals are its own threads'.
        let thread = linux::without_signals(|| Builder::new().name("consumer".into()).spawn(body))?;
        Ok(Courier { pieces, used: Mutex::new(used), thread: Mutex::new(Some(thread)) })
    }
}
