//! In the place of the compiler on hosts that it does not write code for: nothing is ever compiled.

use std::convert::Infallible;
use std::marker::PhantomData;

use events::{BlockId, HitFilter};
use guest::{BlockCache, DecodedBlock, Guest, HostSide, InstrumentationLevel};
use guest_memory::Memory;

/// As in the compiler.
pub const COMPILE_THRESHOLD: u32 = 0;

/// As in the compiler.
pub const UNWIND: u64 = 1;

/// As in the compiler.
pub fn compiled_regions() -> u64 {
    0
}

/// A guest that the compiler supports: any.
pub trait Emit: Guest {}

impl<G: Guest> Emit for G {}

/// As in the compiler.
pub enum Exit {
    /// Go on at this guest address.
    At(u64),
    /// The host instruction at this address faulted.
    Fault(usize),
}

/// A compiler that cannot be had.
pub struct Compiler<G>(Infallible, PhantomData<G>);

/// Where compiled code faulted: nowhere.
pub struct FaultSite {
    /// The block.
    pub block: BlockId,
    /// The instruction in it.
    pub index: u32,
}

impl FaultSite {
    /// Makes the registers what they are for the guest.
    pub fn complete<G: Guest>(&self, _: &mut G, _: &BlockCache<G>) {}
}

impl<G: Guest> Compiler<G> {
    /// There is none for this host.
    pub fn new(_: &Memory, _: InstrumentationLevel, _: Option<&HitFilter>, _: bool) -> Option<Compiler<G>> {
        None
    }

    /// As in the compiler.
    pub fn compile(
        &mut self,
        _: BlockId,
        _: u32,
        _: &dyn Fn(&DecodedBlock<G>) -> bool,
        _: &dyn Fn(BlockId) -> u32,
        _: &mut BlockCache<G>,
    ) {
        match self.0 {}
    }

    /// As in the compiler.
    pub fn prepare(&mut self, _: &DecodedBlock<G>, _: &mut G) {
        match self.0 {}
    }

    /// As in the compiler.
    pub fn site(&self, _: usize) -> FaultSite {
        match self.0 {}
    }

    /// As in the compiler.
    pub fn clear(&mut self) {
        match self.0 {}
    }
}

/// As in the compiler.
pub fn is_stack_full(_: &HostSide) -> bool {
    false
}

/// As in the compiler.
pub fn watch(_: &mut HostSide) {}

/// As in the compiler.
pub unsafe fn enter<G: Guest>(_: &mut G, _: *const u8, _: bool) -> Exit {
    unreachable!("nothing was compiled")
}

/// As in the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted<const N: usize> {
    /// The guest instruction.
    pub address: u64,
    /// The registers.
    pub registers: Option<[u64; N]>,
}

/// As in the compiler: there is no compiled code.
///
/// # Safety
/// None is needed.
#[expect(clippy::extra_unused_type_parameters, reason = "the compiler's function needs it")]
pub unsafe fn interrupted<G: Guest, const N: usize>(
    _: &libc::ucontext_t,
    _: [u8; N],
    _: usize,
) -> Option<Interrupted<N>> {
    None
}

/// As in the compiler.
pub fn keep_code_map() {}

/// As in the compiler.
pub fn set_compiled(_: bool) -> bool {
    false
}
