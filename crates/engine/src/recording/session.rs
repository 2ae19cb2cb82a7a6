//! What the recorders of all threads, and of all processes, share.

use std::io;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use image::Image;
use trace::{LoadedImage, Process, Writer};

use super::plan::Plan;
use crate::lock;

/// What the processes share, in memory that they all see.
#[repr(C)]
struct Numbers {
    /// The next one of [`trace::record::Mark::Order`].
    order: AtomicU64,
    /// Units that have begun.
    units: AtomicU64,
    /// Processes that were recorded.
    processes: AtomicU32,
}

/// [`Numbers`], mapped.
#[derive(Clone, Copy)]
struct Mapped(*const Numbers);

// SAFETY: the mapping is never removed, and all in it is atomic.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    fn new() -> io::Result<Mapped> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: asks for new memory.
        let numbers =
            unsafe { libc::mmap(std::ptr::null_mut(), size_of::<Numbers>(), protection, flags, -1, 0) };
        if numbers == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Mapped(numbers.cast())) }
    }

    fn get(&self) -> &Numbers {
        // SAFETY: mapped, and all-zero numbers are valid.
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
    writer: Arc<Writer>,
    numbers: Mapped,
    state: AtomicU8,
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
        let state = if plan.from.is_some() { State::Before } else { State::Active };
        Ok(Session::of(plan, writer, Mapped::new()?, state))
    }

    fn of(plan: Plan, writer: Arc<Writer>, numbers: Mapped, state: State) -> Arc<Session> {
        let number = numbers.get().processes.fetch_add(1, Ordering::Relaxed);
        let process = Process::new(&writer, number, std::process::id());
        let (images, instructions, failure) = (Mutex::default(), AtomicU64::new(0), Mutex::default());
        let state = AtomicU8::new(state as u8);
        Arc::new(Session { plan, process, writer, numbers, state, images, instructions, failure })
    }

    /// Of a process that this one forked.
    pub(super) fn forked(&self) -> Arc<Session> {
        Session::of(self.plan.clone(), self.writer.clone(), self.numbers, self.state())
    }

    pub(super) fn state(&self) -> State {
        match self.state.load(Ordering::Relaxed) {
            0 => State::Before,
            1 => State::Active,
            _ => State::Over,
        }
    }

    pub(super) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// A number greater than all before.
    pub(super) fn next_order(&self) -> u64 {
        self.numbers.get().order.fetch_add(1, Ordering::Relaxed)
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
    pub(super) fn image(&self, image: &LoadedImage, file: Option<&Image>) -> io::Result<u32> {
        let mut images = lock(&self.images);
        if let Some(number) = images.iter().position(|known| known == image) {
            return Ok(number as u32);
        }
        let LoadedImage { path, start, end, bias } = image.clone();
        let build_id = file.and_then(Image::build_id).unwrap_or_default().to_vec();
        self.process.add_image(trace::Image { path, start, end, bias, build_id })?;
        images.push(image.clone());
        Ok(images.len() as u32 - 1)
    }

    pub(super) fn add_instructions(&self, instructions: u64) {
        self.instructions.fetch_add(instructions, Ordering::Relaxed);
    }

    pub(super) fn instructions(&self) -> u64 {
        self.instructions.load(Ordering::Relaxed)
    }

    /// Nothing more can be recorded.
    pub(super) fn fail(&self, error: io::Error) {
        self.set_state(State::Over);
        lock(&self.failure).get_or_insert(error);
    }

    /// Why nothing more could be recorded.
    pub(super) fn failure(&self) -> Option<io::Error> {
        lock(&self.failure).take()
    }
}
