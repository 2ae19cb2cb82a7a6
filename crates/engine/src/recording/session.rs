//! What the recorders of all threads, and of all processes, share.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use events::{Consumer, LoadedImage};
use image::Image;
use trace::{Process, Writer};

use super::Recorded;
use super::attach::{Connection, End};
use super::delivery::Delivery;
use super::plan::Plan;
use crate::lock;

/// What the processes share, in memory that they all see.
#[repr(C)]
struct Shared {
    /// The last one of [`events::record::Mark::Order`].
    order: AtomicU64,
    /// Units that have begun.
    units: AtomicU64,
    /// Processes that were recorded.
    processes: AtomicU32,
    /// Why one of them could not go on: the host's number of the error, or 0.
    error: AtomicI32,
}

/// [`Shared`], mapped.
#[derive(Clone, Copy)]
pub(super) struct SharedCounters(*const Shared);

// SAFETY: the mapping is never removed, and all in it is atomic.
unsafe impl Send for SharedCounters {}
// SAFETY: as above.
unsafe impl Sync for SharedCounters {}

impl SharedCounters {
    /// A file that processes can map which are not relatives.
    pub(super) fn shared() -> io::Result<File> {
        let file = File::from(rustix::fs::memfd_create("numbers", rustix::fs::MemfdFlags::CLOEXEC)?);
        file.set_len(size_of::<Shared>() as u64)?;
        Ok(file)
    }

    /// Maps them: those of such a file, or of this process and those that it will fork.
    pub(super) fn map(file: Option<&OwnedFd>) -> io::Result<SharedCounters> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (kind, descriptor) = file.map_or((libc::MAP_ANONYMOUS, -1), |file| (0, file.as_raw_fd()));
        if let Some(file) = file
            && rustix::fs::fstat(file)?.st_size < size_of::<Shared>() as i64
        {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (nowhere, bytes) = (std::ptr::null_mut(), size_of::<Shared>());
        // SAFETY: asks for a new mapping.
        let shared =
            unsafe { libc::mmap(nowhere, bytes, protection, libc::MAP_SHARED | kind, descriptor, 0) };
        if shared == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(SharedCounters(shared.cast()))
        }
    }

    fn get(&self) -> &Shared {
        // SAFETY: mapped, large enough, and all values are valid.
        unsafe { &*self.0 }
    }
}

/// Where a process is between the places at which recording begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// Recording has not begun.
    Before,
    /// It has.
    Active,
    /// It has ended.
    Over,
}

/// What the recorders of a process share.
pub(super) struct Session {
    pub(super) plan: Plan,
    pub(super) process: Arc<Process>,
    /// Where records go if not to the file.
    delivery: Option<Delivery>,
    writer: Arc<Writer>,
    numbers: SharedCounters,
    state: AtomicU8,
    /// To who wanted a program recorded that ran already.
    line: Mutex<Option<Connection>>,
    /// The images that the trace knows.
    images: Mutex<Vec<LoadedImage>>,
    /// Instructions recorded by the threads that have ended.
    instructions: AtomicU64,
    /// Why recording ended early.
    failure: Mutex<Option<io::Error>>,
}

impl Session {
    /// Of the first process.
    pub(super) fn new(plan: Plan, writer: Arc<Writer>) -> io::Result<Arc<Session>> {
        Ok(Session::attached(plan, writer, SharedCounters::map(None)?))
    }

    /// Of the first process, whose records go to a consumer; the writer gets what they refer to.
    pub(super) fn live(
        plan: Plan,
        writer: Arc<Writer>,
        consumer: Arc<Mutex<dyn Consumer>>,
        is_parallel: bool,
    ) -> io::Result<Arc<Session>> {
        let state = if plan.from.is_some() { State::Before } else { State::Active };
        let mut session = Session::of(plan, writer, SharedCounters::map(None)?, state, None);
        session.delivery = Some(Delivery::new(&session.process, consumer, is_parallel)?);
        Ok(Arc::new(session))
    }

    /// Of a process that runs already, and may not be the first.
    pub(super) fn attached(plan: Plan, writer: Arc<Writer>, numbers: SharedCounters) -> Arc<Session> {
        let state = if plan.from.is_some() { State::Before } else { State::Active };
        Arc::new(Session::of(plan, writer, numbers, state, None))
    }

    fn of(
        plan: Plan,
        writer: Arc<Writer>,
        numbers: SharedCounters,
        state: State,
        line: Option<Connection>,
    ) -> Session {
        let number = numbers.get().processes.fetch_add(1, Ordering::Relaxed);
        let process = Process::new(&writer, number, std::process::id());
        let (images, instructions, failure) = (Mutex::default(), AtomicU64::new(0), Mutex::default());
        let (state, line) = (AtomicU8::new(state as u8), Mutex::new(line));
        let delivery = None;
        Session { plan, process, delivery, writer, numbers, state, line, images, instructions, failure }
    }

    /// Of a process that this one forked.
    pub(super) fn forked(&self) -> Arc<Session> {
        // Another thread of the parent's may hold the lock for ever.
        let line = self.line.try_lock().ok().and_then(|mut line| line.take());
        Arc::new(Session::of(self.plan.clone(), self.writer.clone(), self.numbers, self.state(), line))
    }

    /// Where records go if not to the file.
    pub(super) fn delivery(&self) -> Option<&Delivery> {
        self.delivery.as_ref()
    }

    /// All threads have ended: waits until the consumer has heard all, and brings what records refer to to the
    /// file.
    pub(super) fn finish_delivery(&self) -> io::Result<()> {
        let Some(delivery) = &self.delivery else { return Ok(()) };
        delivery.finish()?;
        self.process.write_dictionary()
    }

    /// To whom the session tells its end.
    pub(super) fn set_line(&self, line: Connection) {
        *lock(&self.line) = Some(line);
    }

    /// Whether who wanted the recording wants no more.
    pub(super) fn is_abandoned(&self) -> bool {
        lock(&self.line).as_ref().is_some_and(Connection::is_ended)
    }

    /// To wait for that.
    pub(super) fn line_end(&self) -> Option<End> {
        lock(&self.line).as_ref().and_then(Connection::end)
    }

    pub(super) fn state(&self) -> State {
        match self.state.load(Ordering::Relaxed) {
            0 => State::Before,
            1 => State::Active,
            _ => State::Over,
        }
    }

    pub(super) fn set_state(&self, state: State) {
        let before = self.state.swap(state as u8, Ordering::Relaxed);
        if state == State::Over
            && before != state as u8
            && let Some(line) = &mut *lock(&self.line)
        {
            line.say("over");
        }
    }

    /// A number greater than all before; the first is 1.
    pub(super) fn next_order(&self) -> u64 {
        self.numbers.get().order.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of a unit that begins now.
    pub(super) fn next_unit(&self) -> u64 {
        self.numbers.get().units.fetch_add(1, Ordering::Relaxed)
    }

    /// How many units have begun.
    pub(super) fn units(&self) -> u64 {
        self.numbers.get().units.load(Ordering::Relaxed)
    }

    /// The number of an image in the trace.
    pub(super) fn image(&self, image: &LoadedImage, file: Option<&Image>) -> u32 {
        let mut images = lock(&self.images);
        if let Some(number) = images.iter().position(|known| known == image) {
            return number as u32;
        }
        let LoadedImage { path, start, end, bias } = image.clone();
        let build_id = file.and_then(Image::build_id).unwrap_or_default().to_vec();
        self.process.add_image(events::Image { path, start, end, bias, build_id });
        images.push(image.clone());
        images.len() as u32 - 1
    }

    pub(super) fn add_instructions(&self, instructions: u64) {
        self.instructions.fetch_add(instructions, Ordering::Relaxed);
    }

    /// What was recorded so far by the threads that have ended.
    pub(super) fn recorded(&self) -> Recorded {
        Recorded {
            instructions: self.instructions.load(Ordering::Relaxed),
            units: self.units(),
            has_begun: self.state() != State::Before,
        }
    }

    /// Nothing more can be recorded.
    pub(super) fn fail(&self, error: io::Error) {
        self.set_state(State::Over);
        let number = error.raw_os_error().unwrap_or(libc::EIO);
        let _ = self.numbers.get().error.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        lock(&self.failure).get_or_insert(error);
    }

    /// Why nothing more could be recorded, of this process or of one that is recorded with it.
    pub(super) fn failure(&self) -> Option<io::Error> {
        let number = self.numbers.get().error.load(Ordering::Relaxed);
        lock(&self.failure).take().or_else(|| (number != 0).then(|| io::Error::from_raw_os_error(number)))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let (failure, Recorded { instructions, units, .. }) = (self.failure(), self.recorded());
        if let Some(line) = &mut *lock(&self.line) {
            match failure {
                None => line.say(&format!("done {instructions} {units}")),
                Some(error) => line.say(&format!("failed: {error}")),
            }
        }
    }
}
