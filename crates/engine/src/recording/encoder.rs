//! Brings a thread's records to the trace's file: on other threads of the host, as they take longer to pack
//! than they took to be made. Two pack chunks in turn, and append them in order.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use trace::{ChunkPacker, Process, Seal, StreamWriter};

use crate::lock;

/// Words in a piece.
pub(super) const PIECE: usize = 64 << 10;
/// Pieces in a chunk: some million instructions.
const CHUNK: usize = 24;
/// Threads that pack, if there are chunks enough.
const PACKERS: usize = 2;

/// Records.
pub(super) type Piece = Vec<u64>;

/// The way to the file for the records of one thread.
pub(super) struct Encoder {
    process: Arc<Process>,
    packers: Vec<Packer>,
    file: Arc<File>,
    /// Pieces handed on.
    pieces: usize,
}

/// A thread that packs every so many-th chunk.
struct Packer {
    pieces: SyncSender<(Piece, Seal)>,
    used: Receiver<Piece>,
    thread: JoinHandle<()>,
}

/// Where chunks are appended, in turn.
struct File {
    state: Mutex<State>,
    has_turned: Condvar,
}

struct State {
    stream: StreamWriter,
    /// The chunk whose turn it is.
    next: usize,
    error: Option<io::Error>,
}

impl File {
    /// Packs the pieces of every `PACKERS`-th chunk, from `chunk` on.
    fn pack(&self, chunk: usize, pieces: &Receiver<(Piece, Seal)>, used: &SyncSender<Piece>) {
        if let Err(error) = self.try_pack(chunk, pieces, used) {
            lock(&self.state).error.get_or_insert(error);
            self.has_turned.notify_all();
        }
    }

    fn try_pack(
        &self,
        mut chunk: usize,
        pieces: &Receiver<(Piece, Seal)>,
        used: &SyncSender<Piece>,
    ) -> io::Result<()> {
        let mut packer = ChunkPacker::new(lock(&self.state).stream.process());
        let mut packed = 0;
        let mut last = None;
        while let Ok((mut piece, seal)) = pieces.recv() {
            self.add(&mut packer, &piece, seal, chunk)?;
            (packed, last) = (packed + 1, Some(seal));
            if packed % CHUNK == 0 {
                self.append(&mut packer, seal, chunk, true)?;
                (chunk, last) = (chunk + PACKERS, None);
            }
            piece.clear();
            let _ = used.try_send(piece);
        }
        last.map_or(Ok(()), |seal| self.append(&mut packer, seal, chunk, true))
    }

    /// Adds a piece to a chunk, which may take more than one of the file.
    fn add(&self, packer: &mut ChunkPacker, mut words: &[u64], seal: Seal, chunk: usize) -> io::Result<()> {
        while !words.is_empty() {
            words = packer.add(words)?;
            if packer.is_full() {
                self.append(packer, seal, chunk, false)?;
            }
        }
        Ok(())
    }

    /// Appends what was packed, when it is the chunk's turn; the next one's after it, if it is complete.
    fn append(
        &self,
        packer: &mut ChunkPacker,
        seal: Seal,
        chunk: usize,
        is_complete: bool,
    ) -> io::Result<()> {
        let packed = packer.finish()?;
        let waits = |state: &mut State| state.next != chunk && state.error.is_none();
        let state = self.has_turned.wait_while(lock(&self.state), waits);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.error.is_some() {
            return Err(io::Error::other("another chunk was not written"));
        }
        if let Some(packed) = packed {
            state.stream.append(packed, seal)?;
        }
        state.next += usize::from(is_complete);
        self.has_turned.notify_all();
        Ok(())
    }
}

impl Encoder {
    /// Feeds a stream.
    pub(super) fn new(stream: StreamWriter) -> Encoder {
        let process = stream.process().clone();
        let state = Mutex::new(State { stream, next: 0, error: None });
        Encoder {
            process,
            packers: Vec::new(),
            file: Arc::new(File { state, has_turned: Condvar::new() }),
            pieces: 0,
        }
    }

    /// Hands a piece on, and returns an empty one. None if the file could not be written: see
    /// [`Encoder::finish`].
    pub(super) fn send(&mut self, piece: Piece) -> io::Result<Option<Piece>> {
        let chunk = self.pieces / CHUNK;
        self.pieces += 1;
        if chunk == self.packers.len() && chunk < PACKERS {
            self.packers.push(Packer::new(&self.file, chunk)?);
        }
        let packer = &self.packers[chunk % PACKERS];
        let is_taken = packer.pieces.send((piece, self.process.seal())).is_ok()
            && lock(&self.file.state).error.is_none();
        Ok(is_taken.then(|| packer.used.try_recv().unwrap_or_default()))
    }

    /// Waits until all is in the file; the stream may go on.
    pub(super) fn finish(self) -> io::Result<StreamWriter> {
        let threads: Vec<JoinHandle<()>> = self.packers.into_iter().map(|packer| packer.thread).collect();
        let failed = || io::Error::other("a thread that writes the trace failed");
        for thread in threads {
            thread.join().map_err(|_| failed())?;
        }
        let file = Arc::into_inner(self.file).ok_or_else(failed)?;
        let state = file.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.error.map_or(Ok(state.stream), Err)
    }
}

impl Packer {
    /// A thread that begins with a chunk.
    fn new(file: &Arc<File>, chunk: usize) -> io::Result<Packer> {
        let (pieces, waiting) = sync_channel(CHUNK);
        let (give_back, used) = sync_channel(CHUNK + 1);
        let file = file.clone();
        let body = move || file.pack(chunk, &waiting, &give_back);
        // The guest's signals are its own threads'.
        let thread = host::without_signals(|| Builder::new().name("trace".into()).spawn(body))?;
        Ok(Packer { pieces, used, thread })
    }
}
