//! The layout of a guest's address space, and page protections.

/// Bytes of the reserved window, the largest address space of a guest. It is a constant because each access compares its
/// address with it. Addresses of a smaller address space's end and the window's end are never mapped.
pub const WINDOW: u64 = 1 << 42;

/// The layout of a guest's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a page: a power of two, and at least as many as the host's pages have.
    pub page: u64,
    /// Bytes of a user's address space, whole pages: [`WINDOW`] at most.
    pub bytes: u64,
    /// The address at which the search for a free range begins if `mmap` is called without an address.
    pub map_base: u64,
    /// Bytes of a large page: a power of two.
    pub large_page: u64,
    /// The address from which on memory in large pages lies, and no other that is placed by `mmap`.
    pub large_base: u64,
}

impl Layout {
    /// The address of the page that contains an address.
    #[inline]
    pub fn page_of(self, address: u64) -> u64 {
        address & !(self.page - 1)
    }
}

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
