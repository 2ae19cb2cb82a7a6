//! Models of machines: they consume the records of an execution and count misses and cycles.

mod core;
mod description;
mod memory;
mod multiprocessor;
mod observe;
mod throughput;

pub use core::{pipeline, predictor};

pub use core::out_of_order::{
    ExecutionClass, ExecutionOrder, NonOverlapped, OutOfOrder, OutOfOrderCounts, Resource, UnknownStores,
};
pub use core::pipeline::{
    Cause, Cycles, PipelineSide, SampledCycles, SiteCycles, TimingModel, TimingModelError, UnitCycles,
};
pub use core::predictor::Predictions;
pub use description::{
    Bus, BusProcessor, Cache, Coherence, Crossing, DescriptionError, FarCache, HintedRegion, HintedRegions,
    Holds, Machine, MachineSetting, MainMemory, Nodes, Placement, Processor, Sweep, TranslationBuffer,
    WriteBuffer, WritePolicy, names,
};
pub use memory::caches::{Caches, Structure, UnitMisses};
pub use memory::coherence::{
    AddressSpaces, BusCounts, BusEvent, BusOperation, CoherenceCheck, CoherenceState, CoherentMemory,
    CopyLosses, DataTlbs, Decision, DeviceCounts, DeviceEvent, Directory, Exchange, InterconnectOperation,
    NodeCounts, NodeMemory, ProcessorRequest, Protocol, RequestStates, SharingClass, StateCounts,
    TransitionCause,
};
pub use memory::hierarchy::{
    CacheCounts, Hierarchy, LineTraffic, MissClass, Prefetch, Replacement, Request, Served,
};
pub use memory::mrc::{CurvePoint, MissRatioCurve, MissRatioCurves};
pub use multiprocessor::{
    BusClock, BusUse, InterconnectClock, InterconnectUse, Multiprocessor, NextStep, ProcessorCause,
    ProcessorCounts, SampledTime, Transaction, TransactionCounts,
};
pub use observe::instruction_counts::{InstructionCounts, UnitInstructions};
pub use observe::parallel::ParallelModels;
pub use observe::per_process::{MergeableModel, PerProcess};
pub use observe::per_thread::{PerThread, Sums};
pub use observe::sample_parts::SampleOwner;
pub use observe::sampling::{Estimate, SamplingPlan, WindowSums};
pub use observe::warm_up::{Model, ModelNeeds, UnitWindow, WarmUp};
pub use throughput::{Demand, Storage, Throughput};
