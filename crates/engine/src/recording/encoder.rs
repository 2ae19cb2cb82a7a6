//! Encodes a thread's records and writes them to the file, on threads of the host, since encoding takes longer than
//! recording. Two threads encode alternate chunks, which are appended in order.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use trace::{ChunkPacker, ProcessDictionary, Seal, StreamWriter};

use crate::lock;

/// Words of a record buffer.
pub(super) const BUFFER_WORDS: usize = 64 << 10;
/// Buffers in a chunk, which make some million instructions.
const CHUNK_BUFFERS: usize = 24;
/// Maximum number of encoder threads.
const ENCODER_THREADS: usize = 2;

/// Records.
pub(super) type RecordBuffer = Vec<u64>;

/// Encodes the records of one thread.
pub(super) struct ThreadEncoder {
    process: Arc<ProcessDictionary>,
    threads: Vec<EncoderThread>,
    appender: Arc<ChunkAppender>,
    /// Number of buffers sent.
    buffers: usize,
}

/// An encoder thread.
struct EncoderThread {
    buffers: SyncSender<(RecordBuffer, Seal)>,
    returned: Receiver<RecordBuffer>,
    thread: JoinHandle<()>,
}

/// Appends chunks in order.
struct ChunkAppender {
    state: Mutex<AppendState>,
    order_changed: Condvar,
}

struct AppendState {
    stream: StreamWriter,
    /// The chunk that is appended next.
    next: usize,
    error: Option<io::Error>,
}

impl ChunkAppender {
    /// Encodes the buffers of every `ENCODER_THREADS`-th chunk, from `chunk` on.
    fn encode(
        &self,
        chunk: usize,
        buffers: &Receiver<(RecordBuffer, Seal)>,
        returned: &SyncSender<RecordBuffer>,
    ) {
        if let Err(error) = self.try_encode(chunk, buffers, returned) {
            lock(&self.state).error.get_or_insert(error);
            self.order_changed.notify_all();
        }
    }

    fn try_encode(
        &self,
        mut chunk: usize,
        buffers: &Receiver<(RecordBuffer, Seal)>,
        returned: &SyncSender<RecordBuffer>,
    ) -> io::Result<()> {
        let mut packer = ChunkPacker::new(lock(&self.state).stream.process());
        let mut packed = 0;
        let mut last = None;
        while let Ok((mut buffer, seal)) = buffers.recv() {
            self.add(&mut packer, &buffer, seal, chunk)?;
            (packed, last) = (packed + 1, Some(seal));
            if packed % CHUNK_BUFFERS == 0 {
                self.append(&mut packer, seal, chunk, true)?;
                (chunk, last) = (chunk + ENCODER_THREADS, None);
            }
            buffer.clear();
            let _ = returned.try_send(buffer);
        }
        last.map_or(Ok(()), |seal| self.append(&mut packer, seal, chunk, true))
    }

    /// Adds a buffer to a chunk. A chunk here may become several in the file.
    fn add(&self, packer: &mut ChunkPacker, mut words: &[u64], seal: Seal, chunk: usize) -> io::Result<()> {
        while !words.is_empty() {
            words = packer.add(words)?;
            if packer.is_full() {
                self.append(packer, seal, chunk, false)?;
            }
        }
        Ok(())
    }

    /// Appends what was encoded when it is the chunk's turn. If the chunk is complete, the next one follows.
    fn append(
        &self,
        packer: &mut ChunkPacker,
        seal: Seal,
        chunk: usize,
        is_complete: bool,
    ) -> io::Result<()> {
        let packed = packer.finish()?;
        let waits = |state: &mut AppendState| state.next != chunk && state.error.is_none();
        let state = self.order_changed.wait_while(lock(&self.state), waits);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.error.is_some() {
            return Err(io::Error::other("another chunk was not written"));
        }
        if let Some(packed) = packed {
            state.stream.append(packed, seal)?;
        }
        state.next += usize::from(is_complete);
        self.order_changed.notify_all();
        Ok(())
    }
}

impl ThreadEncoder {
    /// Encodes a stream.
    pub(super) fn new(stream: StreamWriter) -> ThreadEncoder {
        let process = stream.process().clone();
        let state = Mutex::new(AppendState { stream, next: 0, error: None });
        ThreadEncoder {
            process,
            threads: Vec::new(),
            appender: Arc::new(ChunkAppender { state, order_changed: Condvar::new() }),
            buffers: 0,
        }
    }

    /// Sends a buffer, and returns an empty one. None if the file could not be written: see [`ThreadEncoder::finish`].
    pub(super) fn send(&mut self, buffer: RecordBuffer) -> io::Result<Option<RecordBuffer>> {
        let chunk = self.buffers / CHUNK_BUFFERS;
        self.buffers += 1;
        if chunk == self.threads.len() && chunk < ENCODER_THREADS {
            self.threads.push(EncoderThread::new(&self.appender, chunk)?);
        }
        let packer = &self.threads[chunk % ENCODER_THREADS];
        let is_taken = packer.buffers.send((buffer, self.process.seal())).is_ok()
            && lock(&self.appender.state).error.is_none();
        Ok(is_taken.then(|| packer.returned.try_recv().unwrap_or_default()))
    }

    /// Waits until everything is in the file. Returns the stream, to which more may be written later.
    pub(super) fn finish(self) -> io::Result<StreamWriter> {
        let threads: Vec<JoinHandle<()>> = self.threads.into_iter().map(|packer| packer.thread).collect();
        let failed = || io::Error::other("a thread that writes the trace failed");
        for thread in threads {
            thread.join().map_err(|_| failed())?;
        }
        let appender = Arc::into_inner(self.appender).ok_or_else(failed)?;
        let state = appender.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.error.map_or(Ok(state.stream), Err)
    }
}

impl EncoderThread {
    /// Starts an encoder thread, with its first chunk.
    fn new(appender: &Arc<ChunkAppender>, chunk: usize) -> io::Result<EncoderThread> {
        let (buffers, waiting) = sync_channel(CHUNK_BUFFERS);
        let (give_back, returned) = sync_channel(CHUNK_BUFFERS + 1);
        let appender = appender.clone();
        let body = move || appender.encode(chunk, &waiting, &give_back);
        let thread = host::spawn("trace", body)?;
        Ok(EncoderThread { buffers, returned, thread })
    }
}
