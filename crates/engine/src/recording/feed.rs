//! Brings a thread's records to the trace's file: on another thread of the host, as they take as long to
//! encode as they took to be made.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use trace::StreamWriter;

use crate::linux;

/// Words in a piece.
pub(super) const PIECE: usize = 64 << 10;
/// Pieces that wait to be encoded, at most.
const WAITING: usize = 4;

/// Records.
pub(super) type Piece = Vec<u64>;

/// The way to the file for the records of one thread.
pub(super) struct Feed {
    pieces: SyncSender<Piece>,
    used: Receiver<Piece>,
    thread: JoinHandle<io::Result<StreamWriter>>,
}

impl Feed {
    /// Feeds a stream.
    pub(super) fn new(mut stream: StreamWriter) -> io::Result<Feed> {
        let (pieces, waiting) = sync_channel::<Piece>(WAITING);
        let (give_back, used) = sync_channel(WAITING + 1);
        let body = move || {
            for mut piece in waiting {
                stream.write(&piece)?;
                piece.clear();
                let _ = give_back.try_send(piece);
            }
            stream.finish()?;
            Ok(stream)
        };
        // The guest's signals are its own threads'.
        let thread = linux::without_signals(|| Builder::new().name("trace".into()).spawn(body))?;
        Ok(Feed { pieces, used, thread })
    }

    /// Hands a piece on, and returns an empty one. None if the file could not be written: see
    /// [`Feed::finish`].
    pub(super) fn send(&self, piece: Piece) -> Option<Piece> {
        self.pieces.send(piece).ok()?;
        Some(self.used.try_recv().unwrap_or_default())
    }

    /// Waits until all is in the file; the stream may go on.
    pub(super) fn finish(self) -> io::Result<StreamWriter> {
        drop(self.pieces);
        self.thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that writes the trace failed")))
    }
}
