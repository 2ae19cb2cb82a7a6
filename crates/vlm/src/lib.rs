//! Very large memory: named, resident, shared sections of huge pages, reserved in a registry.
//!
//! The system of the 1998 paper "OpenVMS Alpha 64-bit Very Large Memory Design", on Linux with hugetlbfs.
//! The command `vlm` reserves memory by name; programs create and map sections by these names:
//!
//! ```no_run
//! use vlm::{Access, Registry, Section};
//! let registry = Registry::load(&Registry::default_path())?;
//! let section = Section::create(&registry, "orders")?;
//! let memory = section.map(Access::ReadWrite)?;
//! println!("{} bytes at {:?}", memory.length(), memory.address());
//! # Ok::<(), vlm::Error>(())
//! ```
//!
//! `docs/vlm.md` is for users, `docs/design/vlm.md` describes the design and its reasons.

#![cfg(target_os = "linux")]

mod c_api;
pub mod check;
mod error;
mod fault;
mod limits;
pub mod memory;
mod mount;
mod node_policy;
mod pool;
mod region;
mod registry;
mod reservation;
pub mod run;
mod section;
mod size;
pub mod study;
mod trust;
pub mod verify;

pub use error::{Error, Result};
pub use mount::{Mount, Owner, User, users};
pub use pool::{Pool, PoolCounts, sizes as page_sizes};
pub use region::SHARING_UNIT;
pub use registry::{
    Allocation, DEFAULT_REGISTRY, LockedRegistry, PageTables, REGISTRY_VARIABLE, Registry, RegistryEntry,
};
pub use reservation::{Freed, ReservationStep, Reservations};
pub use section::{Access, Mapping, Section, Usage, usage};
pub use size::Size;
