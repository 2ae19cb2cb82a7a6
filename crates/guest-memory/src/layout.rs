//! The layout of a guest's address space, and page protections.

/// Alpha's page size under Linux, in bytes.
pub const PAGE: u64 = 8192;

/// Size of a user's address space in bytes (42 bits, as Linux sets TASK_SIZE on Alpha).
pub const ADDRESS_SPACE: u64 = 1 << 42;

/// The address at which the search for a free range begins if `mmap` is called without an address. It is
/// qemu-alpha's, so that registers can be compared with qemu-alpha's.
pub const MAP_BASE: u64 = 0x40_0000_0000;

/// `si_code` of a SIGSEGV at an unmapped address.
pub const SEGV_MAPERR: i32 = 1;
/// `si_code` of a SIGSEGV at an address whose protection forbids the access.
pub const SEGV_ACCERR: i32 = 2;

/// Page protection: the bits of `PROT_*`, which are the same on Alpha and on the host.
pub type Protection = i32;

/// A memory fault of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The guest's address.
    pub address: u64,
    /// True for a store.
    pub write: bool,
    /// SIGSEGV or SIGBUS, in the host's numbering.
    pub signal: i32,
    /// The signal's code: SEGV_MAPERR, SEGV_ACCERR or BUS_ADRERR.
    pub code: i32,
}
