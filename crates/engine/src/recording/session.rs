//! State shared by the recorders of all threads and processes.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use events::{Consumer, LoadedImage};
use image::Image;
use linux_user::DescriptorOwner;
use trace::{ProcessDictionary, Writer};

use super::Recorded;
use super::attach::{AttachAnswer, AttachConnection, ConnectionEnd};
use super::delivery::{AttachedConsumers, Delivery, ForkedConsumer, ForkedProcess};
use super::mappings::RecordedMappings;
use super::plan::Plan;
use crate::lock;

/// Objects beyond these are taken for memory of the process that maps them.
const MOST_OBJECTS: usize = 4096;

/// Counters shared by the recorded processes, in shared memory.
#[repr(C)]
struct RecordingArea {
    /// The last order number ([`events::record::Mark::Order`]).
    order: AtomicU64,
    /// Number of units that have begun.
    units: AtomicU64,
    /// Number of recorded processes.
    processes: AtomicU32,
    /// The host's error number of a process that could not continue recording, or 0.
    error: AtomicI32,
    /// The identities of objects that processes have mapped, in the order of their numbers, from 1; then zeros.
    objects: [AtomicU64; MOST_OBJECTS],
}

/// [`RecordingArea`], mapped.
#[derive(Clone, Copy)]
pub(super) struct SharedCounters(*const RecordingArea);

// SAFETY: the mapping is never removed, and its fields are atomic.
unsafe impl Send for SharedCounters {}
// SAFETY: as above.
unsafe impl Sync for SharedCounters {}

impl SharedCounters {
    /// A file for the counters that unrelated processes can map.
    pub(super) fn shared() -> io::Result<File> {
        let file = File::from(rustix::fs::memfd_create("numbers", rustix::fs::MemfdFlags::CLOEXEC)?);
        file.set_len(size_of::<RecordingArea>() as u64)?;
        Ok(file)
    }

    /// Maps the counters of such a file; without one, makes new ones, which forked processes share.
    pub(super) fn map(file: Option<&OwnedFd>) -> io::Result<SharedCounters> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (kind, descriptor) = file.map_or((libc::MAP_ANONYMOUS, -1), |file| (0, file.as_raw_fd()));
        if let Some(file) = file
            && rustix::fs::fstat(file)?.st_size < size_of::<RecordingArea>() as i64
        {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (nowhere, bytes) = (std::ptr::null_mut(), size_of::<RecordingArea>());
        // SAFETY: asks for a new mapping.
        let shared =
            unsafe { libc::mmap(nowhere, bytes, protection, libc::MAP_SHARED | kind, descriptor, 0) };
        if shared == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(SharedCounters(shared.cast()))
        }
    }

    fn get(&self) -> &RecordingArea {
        // SAFETY: mapped, large enough, and all values are valid.
        unsafe { &*self.0 }
    }
}

/// The progress of a recording between its beginning and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum RecordingState {
    /// Recording has not begun.
    Before,
    /// Recording is active.
    Active,
    /// Recording has ended.
    Over,
}

/// State shared by the recorders of a process.
pub(super) struct RecordingSession {
    pub(super) plan: Plan,
    pub(super) process: Arc<ProcessDictionary>,
    /// The delivery to a consumer, if records do not go to the file.
    delivery: Option<Delivery>,
    /// Consumers of forked processes.
    forked_consumer: Option<Arc<dyn ForkedConsumer>>,
    writer: Arc<Writer>,
    numbers: SharedCounters,
    state: AtomicU8,
    /// The connection to the attach client.
    connection: Mutex<Option<AttachConnection>>,
    /// The images in the trace's dictionary.
    images: Mutex<Vec<LoadedImage>>,
    /// The mappings, as far as they are recorded.
    mappings: RecordedMappings,
    /// A thread has recorded what was allocated before.
    has_structures: AtomicBool,
    /// Number of instructions recorded by threads that have ended.
    instructions: AtomicU64,
    /// Why recording ended early.
    failure: Mutex<Option<io::Error>>,
    /// The session closes the trace's file and the connection when it is dropped.
    _descriptors: Option<DescriptorOwner>,
}

impl RecordingSession {
    /// The session of the first process.
    pub(super) fn new(plan: Plan, writer: Arc<Writer>) -> io::Result<Arc<RecordingSession>> {
        Ok(RecordingSession::attached(plan, writer, SharedCounters::map(None)?))
    }

    /// The session of the first process, whose records go to a consumer. The writer gets only the dictionary.
    pub(super) fn live(
        plan: Plan,
        writer: Arc<Writer>,
        consumer: Arc<Mutex<dyn Consumer>>,
        is_parallel: bool,
        forked: Option<Arc<dyn ForkedConsumer>>,
    ) -> io::Result<Arc<RecordingSession>> {
        let state = if plan.from.is_some() { RecordingState::Before } else { RecordingState::Active };
        let mut session = RecordingSession::of(plan, writer, SharedCounters::map(None)?, state, None);
        session.delivery = Some(Delivery::new(&session.process, consumer, is_parallel)?);
        session.forked_consumer = forked;
        // A forked process never drops such a session.
        session._descriptors = None;
        Ok(Arc::new(session))
    }

    /// The session of a process that a client observes, one of several that it has attached to. Nobody reads the dictionary that
    /// the writer gets.
    pub(super) fn observed(
        plan: Plan,
        writer: Arc<Writer>,
        numbers: SharedCounters,
        (consumers, file, ordinal): (&dyn AttachedConsumers, OwnedFd, u32),
    ) -> io::Result<Arc<RecordingSession>> {
        let state = if plan.from.is_some() { RecordingState::Before } else { RecordingState::Active };
        let mut session = RecordingSession::of(plan, writer, numbers, state, None);
        let number = session.process.number();
        let (consumer, heirs) = consumers.attached(file, ForkedProcess { ordinal, number })?;
        session.delivery = Some(Delivery::unfiltered(&session.process, consumer));
        session.forked_consumer = Some(heirs);
        Ok(Arc::new(session))
    }

    /// The session of an attached process, which may not be the first one.
    pub(super) fn attached(
        plan: Plan,
        writer: Arc<Writer>,
        numbers: SharedCounters,
    ) -> Arc<RecordingSession> {
        let state = if plan.from.is_some() { RecordingState::Before } else { RecordingState::Active };
        Arc::new(RecordingSession::of(plan, writer, numbers, state, None))
    }

    /// Whether the calling thread is the first one to record what was allocated before.
    pub(super) fn is_first_with_structures(&self) -> bool {
        !self.has_structures.swap(true, Ordering::Relaxed)
    }

    fn of(
        plan: Plan,
        writer: Arc<Writer>,
        numbers: SharedCounters,
        state: RecordingState,
        connection: Option<AttachConnection>,
    ) -> RecordingSession {
        let number = numbers.get().processes.fetch_add(1, Ordering::Relaxed);
        let process = ProcessDictionary::new(&writer, number, std::process::id());
        let (images, instructions, failure) = (Mutex::default(), AtomicU64::new(0), Mutex::default());
        let (state, connection) = (AtomicU8::new(state as u8), Mutex::new(connection));
        RecordingSession {
            plan,
            process,
            delivery: None,
            forked_consumer: None,
            writer,
            numbers,
            state,
            connection,
            images,
            mappings: RecordedMappings::default(),
            has_structures: AtomicBool::new(false),
            instructions,
            failure,
            _descriptors: Some(DescriptorOwner::new()),
        }
    }

    /// The session of a forked process, its parent's child of this number; none if that is not recorded.
    pub(super) fn forked(&self, ordinal: u32) -> Option<Arc<RecordingSession>> {
        // Another thread of the parent may have held the lock at the fork.
        let connection = self.connection.try_lock().ok().and_then(|mut connection| connection.take());
        let (plan, writer) = (self.plan.clone(), self.writer.clone());
        if self.delivery.is_none() {
            return Some(Arc::new(RecordingSession::of(
                plan,
                writer,
                self.numbers,
                self.state(),
                connection,
            )));
        }
        let consumers = self.forked_consumer.as_ref()?;
        let mut session = RecordingSession::of(plan, writer, self.numbers, self.state(), connection);
        let number = session.process.number();
        let (consumer, heirs) = consumers.forked(ForkedProcess { ordinal, number })?;
        session.delivery = Some(Delivery::unfiltered(&session.process, consumer));
        session.forked_consumer = Some(heirs);
        // As of the parent's.
        session._descriptors = None;
        Some(Arc::new(session))
    }

    /// The delivery to a consumer, if records do not go to the file.
    pub(super) fn delivery(&self) -> Option<&Delivery> {
        self.delivery.as_ref()
    }

    /// All threads have ended: waits until the consumer has received everything, and writes the dictionary.
    pub(super) fn finish_delivery(&self) -> io::Result<()> {
        let Some(delivery) = &self.delivery else { return Ok(()) };
        delivery.finish()?;
        self.process.write_dictionary()
    }

    /// Sets the connection on which the session reports its end.
    pub(super) fn set_connection(&self, connection: AttachConnection) {
        *lock(&self.connection) = Some(connection);
    }

    /// Whether the attach client has ended the recording.
    pub(super) fn is_abandoned(&self) -> bool {
        lock(&self.connection).as_ref().is_some_and(AttachConnection::is_ended)
    }

    /// A handle to wait for that.
    pub(super) fn connection_end(&self) -> Option<ConnectionEnd> {
        lock(&self.connection).as_ref().and_then(AttachConnection::end)
    }

    pub(super) fn state(&self) -> RecordingState {
        match self.state.load(Ordering::Relaxed) {
            0 => RecordingState::Before,
            1 => RecordingState::Active,
            _ => RecordingState::Over,
        }
    }

    pub(super) fn set_state(&self, state: RecordingState) {
        let before = self.state.swap(state as u8, Ordering::Relaxed);
        if state == RecordingState::Over
            && before != state as u8
            && let Some(connection) = &mut *lock(&self.connection)
        {
            connection.send(&AttachAnswer::Over);
        }
    }

    /// The next order number; the first is 1.
    pub(super) fn next_order(&self) -> u64 {
        self.numbers.get().order.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of a unit that begins.
    pub(super) fn next_unit(&self) -> u64 {
        self.numbers.get().units.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of an object in the recording, by its identity; None if there are too many.
    pub(super) fn object(&self, identity: u64) -> Option<u32> {
        let slots = &self.numbers.get().objects;
        let is_it =
            |slot: &AtomicU64| match slot.compare_exchange(0, identity, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => true,
                Err(known) => known == identity,
            };
        slots.iter().position(is_it).map(|index| index as u32 + 1)
    }

    /// The mappings, as far as they are recorded.
    pub(super) fn mappings(&self) -> &RecordedMappings {
        &self.mappings
    }

    /// Number of units that have begun.
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
        self.process.add_image(events::MappedImage {
            path,
            start,
            end,
            bias,
            build_id,
            functions: Vec::new(),
        });
        images.push(image.clone());
        images.len() as u32 - 1
    }

    pub(super) fn add_instructions(&self, instructions: u64) {
        self.instructions.fetch_add(instructions, Ordering::Relaxed);
    }

    /// The recording so far of threads that have ended.
    pub(super) fn recorded(&self) -> Recorded {
        Recorded {
            instructions: self.instructions.load(Ordering::Relaxed),
            units: self.units(),
            has_begun: self.state() != RecordingState::Before,
        }
    }

    /// Ends the recording after an error.
    pub(super) fn fail(&self, error: io::Error) {
        self.set_state(RecordingState::Over);
        let number = error.raw_os_error().unwrap_or(libc::EIO);
        let _ = self.numbers.get().error.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        lock(&self.failure).get_or_insert(error);
    }

    /// Why recording ended early, in this process or in another one of the recording.
    pub(super) fn failure(&self) -> Option<io::Error> {
        let number = self.numbers.get().error.load(Ordering::Relaxed);
        lock(&self.failure).take().or_else(|| (number != 0).then(|| io::Error::from_raw_os_error(number)))
    }
}

impl Drop for RecordingSession {
    fn drop(&mut self) {
        let (failure, Recorded { instructions, units, .. }) = (self.failure(), self.recorded());
        if let Some(connection) = &mut *lock(&self.connection) {
            connection.send(&match failure {
                None => AttachAnswer::Done { instructions, units },
                Some(error) => AttachAnswer::Failed(error.to_string()),
            });
        }
    }
}
