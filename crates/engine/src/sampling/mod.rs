//! Samples of what threads execute: where, and by which chain of calls.
//!
//! By **time**: a timer of the host's clock of processor time interrupts each thread, at whatever instruction of the host that
//! is; the handler of its signal finds the guest instruction of the interrupted code, follows the chain of calls by the
//! unwinding tables of the images, and writes both to a file that the process maps, so that samples outlive it however it
//! ends. The program runs as fast as without observer.
//!
//! By **instructions**: a thread that is counted is sampled each time that it has executed so many instructions more, at
//! random distances around that number. Each instruction executed is as likely to be sampled as any other, and the same run
//! has the same samples.

mod file;
mod frames;

use std::cell::{Cell, RefCell};

use host::SampleTimer;
use serde::{Deserialize, Serialize};

use self::file::SampleFile;
pub use self::file::{Sample, SampleKind, SampleReader};
use self::frames::{CallerRegisters, Callers};
pub(crate) use self::frames::{forget_images, map_image};
use crate::platform::Platform;
use guest::CallingConvention;

/// How a program is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sampling {
    /// Each time that a thread has used so many nanoseconds of processor time.
    Time(u64),
    /// Each time that a thread has executed so many instructions, on average.
    Instructions(u64),
}

/// The deepest chain of calls that a sample has.
const MOST_CALLERS: usize = 128;

thread_local! {
    /// The guest that the calling thread runs; none outside of the guest's threads.
    static GUEST: Cell<Option<RunningGuest>> = const { Cell::new(None) };
    /// The guest's number of the system call that the thread is making, plus 1.
    static SYSTEM_CALL: Cell<u32> = const { Cell::new(0) };
    /// The file of the thread's samples. Borrowed while a sample is written or the file is changed.
    static SAMPLED: RefCell<Option<SampledThread>> = const { RefCell::new(None) };
}

/// A sample's kind, its address, and the registers by which its callers are found.
type LocatedSample = (SampleKind, (u64, CallerRegisters));

/// The guest that a thread runs.
#[derive(Clone, Copy)]
struct RunningGuest {
    /// Its processor.
    cpu: *const (),
    /// Finds where the processor is, by the context of the signal that interrupted the thread.
    locate: unsafe fn(*const (), &libc::ucontext_t) -> LocatedSample,
}

/// The calling thread runs the guest on this processor, which does not move until [`forget_cpu`] or the thread's end.
pub(crate) fn set_cpu<G: Platform>(cpu: &G) {
    GUEST.set(Some(RunningGuest { cpu: (&raw const *cpu).cast(), locate: locate::<G> }));
}

/// The calling thread runs no guest for now.
pub(crate) fn forget_cpu() {
    GUEST.set(None);
}

/// The calling thread makes a system call of the guest, or no more.
pub(crate) fn set_system_call(number: Option<u32>) {
    SYSTEM_CALL.set(number.map_or(0, |number| number + 1));
}

/// The data needed to write samples of a thread.
struct SampledThread {
    file: SampleFile,
    callers: Box<Callers>,
}

/// The sampler of a thread, which stays on it.
pub(crate) struct Sampler {
    sampling: Sampling,
    folder: i32,
    name: String,
    timer: Option<SampleTimer>,
    has_begun: bool,
    /// Whether the first sample was chosen.
    is_placed: bool,
    /// The number of instructions at which the next sample is taken.
    next: u64,
    random: u64,
}

impl Sampler {
    /// A sampler that writes to a new file in a folder, once its thread [begins](Sampler::begin).
    pub(crate) fn new(sampling: Sampling, folder: i32, name: String) -> Sampler {
        let (has_begun, is_placed, next, random) = (false, false, u64::MAX, 0);
        let mut sampler = Sampler { sampling, folder, name, timer: None, has_begun, is_placed, next, random };
        if let Sampling::Instructions(_) = sampling {
            // Threads begin at different distances, which are the same in each run.
            sampler.random = sampler
                .name
                .bytes()
                .fold(0, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        }
        sampler
    }

    /// The calling thread is sampled from now on.
    pub(crate) fn begin(&mut self) -> std::io::Result<()> {
        if self.has_begun {
            return Ok(());
        }
        self.has_begun = true;
        let file = SampleFile::new(self.folder, &self.name, self.sampling)?;
        SAMPLED.with_borrow_mut(|sampled| {
            *sampled = Some(SampledThread { file, callers: Box::default() });
        });
        match self.sampling {
            Sampling::Time(nanoseconds) => {
                self.timer = Some(host::sample_thread(nanoseconds, on_timer)?);
            }
            // The next block chooses it.
            Sampling::Instructions(_) => self.next = 0,
        }
        Ok(())
    }

    /// The thread is sampled no more.
    pub(crate) fn end(&mut self) {
        self.timer = None;
        self.next = u64::MAX;
        if std::mem::take(&mut self.has_begun) {
            SAMPLED.with_borrow_mut(|sampled| *sampled = None);
        }
    }

    /// The number of instructions at which the next sample is due.
    #[inline(always)]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Takes the samples that are due in a block of so many instructions, which the thread is about to execute.
    #[cold]
    pub(crate) fn sample_block<G: Platform>(
        &mut self,
        cpu: &G,
        length: u64,
        address_of: impl Fn(u64) -> u64,
    ) {
        if !std::mem::replace(&mut self.is_placed, true) {
            self.next = cpu.executed();
            self.advance();
        }
        while self.next < cpu.executed() + length {
            let address = address_of(self.next.saturating_sub(cpu.executed()));
            let registers = CallerRegisters::of(cpu);
            write(SampleKind::Instruction, self.next, 1, (address, registers));
            self.advance();
        }
    }

    /// Chooses the next sample: at a distance of half to one and a half times the interval.
    fn advance(&mut self) {
        let Sampling::Instructions(interval) = self.sampling else { return };
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let distance = interval / 2 + (mixed ^ (mixed >> 31)) % interval.max(1);
        self.next = self.next.saturating_add(distance.max(1));
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

/// Writes a sample of the calling thread.
fn write(kind: SampleKind, time: u64, weight: u32, (address, registers): (u64, CallerRegisters)) {
    let _ = SAMPLED.try_with(|sampled| {
        // A timer may interrupt the thread while it begins or ends to be sampled.
        let Ok(mut sampled) = sampled.try_borrow_mut() else { return };
        let Some(SampledThread { file, callers }) = &mut *sampled else { return };
        let chain = callers.find(address, registers);
        file.append(kind, time, weight, chain);
    });
}

/// Takes a sample of the thread that the timer's signal interrupted. Async-signal-safe.
fn on_timer(context: &libc::ucontext_t, weight: u32) {
    let Some(guest) = GUEST.get() else { return };
    // SAFETY: the thread runs on this processor, and is interrupted.
    let sampled = unsafe { (guest.locate)(guest.cpu, context) };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a buffer for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    let time = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    write(sampled.0, time, weight, sampled.1);
}

/// Where a guest's thread is that a signal has interrupted. Async-signal-safe.
///
/// # Safety
/// `cpu` must be the processor, of type `G`, on which the calling thread runs, and the context that of the signal.
unsafe fn locate<G: Platform>(cpu: *const (), context: &libc::ucontext_t) -> LocatedSample {
    // SAFETY: as the caller promises.
    let cpu = unsafe { &*cpu.cast::<G>() };
    let wanted = CallerRegisters::numbers::<G>();
    let stack_end = cpu.host_side().entry_stack_pointer();
    // SAFETY: the context of the calling thread's signal; compiled code was entered with this stack pointer.
    let compiled = unsafe { jit::interrupted::<G, 3>(context, wanted, stack_end) };
    match (compiled, SYSTEM_CALL.get()) {
        (Some(compiled), _) => {
            let registers = compiled.registers.map_or_else(|| CallerRegisters::of(cpu), CallerRegisters::new);
            (SampleKind::Compiled, (compiled.address, registers))
        }
        (None, 0) => (SampleKind::Interpreted, (cpu.pc(), CallerRegisters::of(cpu))),
        (None, number) => {
            (SampleKind::SystemCall(number - 1), (cpu.pc().wrapping_sub(4), CallerRegisters::of(cpu)))
        }
    }
}

impl CallerRegisters {
    /// The numbers of the registers, in order.
    fn numbers<G: Platform>() -> [u8; 3] {
        [<G as CallingConvention>::STACK_POINTER, G::FRAME_POINTER, G::RETURN_ADDRESS]
    }

    fn new([stack_pointer, frame_pointer, return_address]: [u64; 3]) -> CallerRegisters {
        CallerRegisters { stack_pointer, frame_pointer, return_address }
    }

    fn of<G: Platform>(cpu: &G) -> CallerRegisters {
        CallerRegisters::new(
            CallerRegisters::numbers::<G>()
                .map(|number| guest::Guest::value(cpu, events::record::Register::Integer(number))),
        )
    }
}
