//! Where the records that are replayed come from: read ahead, by a thread of their own.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use trace::{Chunk, Error, Trace};

/// In which order threads are replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they were executed.
    #[default]
    Time,
    /// As if they had been spread over processors, where those that share one take turns.
    Processors {
        /// How many.
        processors: u32,
        /// Instructions after which it is another thread's turn.
        quantum: u64,
    },
}

/// Records of one thread.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Whose: an index of [`Trace::streams`].
    pub stream: u32,
    /// Where they run.
    pub processor: Option<u32>,
    /// The chunk that they are in.
    pub chunk: usize,
    /// Where they are in [`Batch::words`].
    pub words: Range<usize>,
}

/// Pieces, handed over together.
#[derive(Debug, Default)]
pub struct Batch {
    /// What they are made of.
    pub words: Vec<u64>,
    /// The pieces, in order.
    pub pieces: Vec<Piece>,
}

/// Words and pieces after which a batch is handed over.
const WORDS: usize = 1 << 18;
const PIECES: usize = 1 << 12;

/// Reads chunks in a thread, and tells which could not be read.
pub fn read<'scope, 'trace: 'scope>(
    scope: &'scope Scope<'scope, '_>,
    trace: &'trace Trace,
    order: Order,
    is_wanted: impl Fn(&Chunk) -> bool + Send + 'scope,
) -> Receiver<Result<Batch, Error>> {
    let (sender, receiver) = sync_channel(1);
    scope.spawn(move || match order {
        Order::Time => {
            let mut pieces = trace.ordered_where(is_wanted);
            gather(&sender, |batch| {
                let piece = pieces.next_piece()?;
                Ok(piece.map(|piece| batch.add(piece.stream, None, piece.chunk, piece.words)).is_some())
            });
        }
        Order::Processors { processors, quantum } => {
            let mut turns = trace.schedule_where(processors, quantum, is_wanted);
            gather(&sender, |batch| {
                let turn = turns.next_turn()?;
                Ok(turn.map(|one| batch.add(one.stream, Some(one.processor), one.chunk, one.words)).is_some())
            });
        }
    });
    receiver
}

/// Sends what `next` adds to batches, until there is no more, or nobody who receives it.
fn gather(
    sender: &SyncSender<Result<Batch, Error>>,
    mut next: impl FnMut(&mut Batch) -> Result<bool, Error>,
) {
    let mut batch = Batch::default();
    loop {
        let (is_more, error) = match next(&mut batch) {
            Ok(is_more) => (is_more, None),
            Err(error) => (true, Some(error)),
        };
        let is_full = batch.words.len() >= WORDS || batch.pieces.len() >= PIECES;
        if (is_full || !is_more || error.is_some()) && sender.send(Ok(std::mem::take(&mut batch))).is_err() {
            return;
        }
        if error.is_some_and(|error| sender.send(Err(error)).is_err()) || !is_more {
            return;
        }
    }
}

impl Batch {
    fn add(&mut self, stream: u32, processor: Option<u32>, chunk: usize, words: &[u64]) {
        let start = self.words.len();
        self.words.extend_from_slice(words);
        self.pieces.push(Piece { stream, processor, chunk, words: start..self.words.len() });
    }
}
