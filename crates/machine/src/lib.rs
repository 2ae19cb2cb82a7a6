//! Models of machines: they consume the records of an execution and count misses and cycles.

mod block_template;
mod caches;
mod coherence;
mod description;
mod hierarchy;
mod instruction_counts;
mod line_numbering;
mod mrc;
mod multiprocessor;
mod out_of_order;
mod parallel;
mod per_process;
mod per_thread;
pub mod pipeline;
pub mod predictor;
mod sampling;
mod storage;
mod warm_up;

pub use caches::{Caches, Structure, UnitMisses};
pub use coherence::{
    AddressSpaces, BusCounts, BusEvent, BusOperation, CoherenceCheck, CoherenceState, CoherentMemory,
    CopyLosses, DataTlbs, Decision, Exchange, InterconnectOperation, NodeCounts, NodeMemory,
    ProcessorRequest, RequestStates, SharingClass, StateCounts, TransitionCause,
};
pub use description::{
    Bus, BusProcessor, Cache, Coherence, Crossing, Directory, Error, FarCache, HintedRegion, HintedRegions,
    Holds, Machine, MainMemory, Nodes, Placement, Prefetch, Processor, Protocol, Replacement, Setting, Sweep,
    TranslationBuffer, Write, WriteBuffer, names,
};
pub use hierarchy::{CacheCounts, Hierarchy, MissClass, Request, Served};
pub use instruction_counts::{InstructionCounts, UnitInstructions};
pub use mrc::{CurvePoint, MissRatioCurve, MissRatioCurves};
pub use multiprocessor::{
    BusClock, BusUse, InterconnectClock, InterconnectUse, Multiprocessor, NextStep, ProcessorCause,
    ProcessorCounts, SampledTime, Transaction, TransactionCounts,
};
pub use out_of_order::{
    ExecutionClass, ExecutionOrder, NonOverlapped, OutOfOrder, OutOfOrderCounts, Resource, UnknownStores,
};
pub use parallel::ParallelModels;
pub use per_process::{MergeableModel, PerProcess};
pub use per_thread::{PerThread, Sums};
pub use pipeline::{
    Cause, Cycles, PipelineSide, SampledCycles, SiteCycles, TimingModel, TimingModelError, UnitCycles,
};
pub use predictor::Predictions;
pub use sampling::{Estimate, SamplingPlan, WindowSums};
pub use storage::{Demand, Storage, Throughput};
pub use warm_up::{Model, WarmUp};
