//! Models of network adapters: what a packet costs on the bus, in the adapter's memories and on the link.
//!
//! An adapter is described by a file of `data/adapters/`. [`Traffic`] drives it with packets of one size; [`LogReplay`] with the
//! packets, commands and register operations that a driver has logged. Both are programs of a [`AdapterModel`], a simulation by discrete
//! events whose times are picoseconds.

pub mod aal5;
mod clock;
mod description;
mod faults;
mod hardware;
mod host;
pub mod interconnect;

pub use clock::{HardwareClock, Picoseconds};
pub use description::{
    AdapterDescription, AdapterSetting, Buffering, BusDescription, BusKind, ControlMemoryDescription,
    CreditDescription, DataMemoryDescription, DescriptionError, DmaDescription, DriverDescription, Framing,
    HostDescription, InterruptDescription, LinkDescription, Mover, ReceiveDescription, TargetDescription,
    names,
};
pub use faults::LinkFaults;
pub use hardware::{
    AdapterCounts, AdapterRegister, DmaCommand, FarEnd, Hardware, HostEvent, PacketStatus, PacketSummary,
};
pub use host::{
    AdapterModel, AdapterProgram, CommandRing, DataOrigin, LogReplay, ReplayError, ReplayResult, Stalled,
    Traffic, TrafficDirection, TrafficError, TrafficResult, TrafficSettings, log,
};
