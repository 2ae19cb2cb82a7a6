//! Runs unmodified Linux programs of Alpha and RISC-V and counts every instruction.
//!
//! ```no_run
//! use pathlength_engine::{Configuration, Process, RunCounter, SystemSettings};
//! let mut process = Process::new(&Configuration {
//!     program: "hello".into(),
//!     name: None,
//!     arguments: vec![],
//!     environment: vec![],
//!     model: isa::Processors::default(),
//!     settings: SystemSettings::default(),
//! })?;
//! let mut counter = RunCounter::default();
//! process.run(&mut counter)?;
//! println!("{} instructions", counter.counts().instructions());
//! # Ok::<(), pathlength_engine::Error>(())
//! ```

mod calls;
mod counting;
pub mod debug;
mod objects;
mod platform;
mod process;
mod process_tree;
mod program_location;
mod program_state;
mod recording;
mod sampling;
mod unit_class;
mod unit_name;

pub use calls::{has_function, unit_functions};
pub use counting::{RunCounter, UnitCounter, UnitOfWork, UnitSink, has_variable};
pub use events::record::Event;
pub use guest::{Debugged, Instrumentation, InstrumentationLevel, Observer};
pub use jit::compiled_regions;
pub use linux_user::{Clock, Crash, ProgramEnd, RandomSource, Substitution, SystemSettings};
pub use objects::{ObjectRule, StructureRule, check_objects};
pub use platform::{
    FrameRegisters, GuestDescription, Platform, ProgramObserver, die, guest_of, guest_of_program,
    reserve_memory, system_call_name,
};
pub use process::{Configuration, Error, Process};
pub use process_tree::{
    CountedProcess, CountedUnit, NewSamples, ProcessNumber, ProcessState, ProcessTreeCounter,
    ProcessTreeCounts, ProcessTreeError, SampledProcessTree, SampledProgram,
};
pub use program_location::{Name as SymbolName, NoLocation, ProgramLocation, entries as function_entries};
pub use program_state::ProgramState;
pub use recording::{
    AttachError, AttachTarget, Attached, AttachedConsumers, ClassPlan, ConsumerOfFork, ForkedConsumer,
    ForkedProcess, IsEnough, Missing, Plan, Recorded, Recorder, UnitPlan,
};

pub use sampling::{Sample, SampleKind, Sampling};
pub use unit_class::{ClassRule, NoClassRule};
pub use unit_name::{UnitEnd, UnitName};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. A panic leaves none of the protected data inconsistent.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
