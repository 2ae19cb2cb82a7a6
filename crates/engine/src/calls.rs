//! Detects the beginnings and ends of functions' calls.

use events::LoadedImage;

use crate::places::{Name, entries};
use crate::platform::{Block, Cpu};
use guest::CallingConvention;

/// Whether an image has a function: `name` or `image!name`.
pub fn has_function(name: &str, image: &LoadedImage, file: &image::Image) -> bool {
    let mut calls = Calls::new(&[name.into()]);
    calls.mapped(image, file);
    calls.missing().is_none()
}

/// The calls of some functions in one thread. A nested call belongs to the outer one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    functions: Vec<Name>,
    /// Entry addresses of the functions, each with the number of its function.
    entries: Vec<(u64, u32)>,
    /// Return addresses of calls so far.
    returns: Vec<u64>,
    open: Option<Open>,
    /// Whether [`Calls::must_report`] has become true for more blocks.
    requires_recompilation: bool,
    previous_end: u64,
}

/// A call that has begun and not ended.
#[derive(Clone, Debug)]
struct Open {
    function: u32,
    return_address: u64,
    stack_pointer: u64,
    instructions: u64,
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// False if the function was left by other means than its return.
    pub(crate) returned: bool,
    /// How many instructions the thread had executed when the call began.
    pub(crate) began: u64,
    /// The number of the function that was called.
    pub(crate) function: u32,
}

/// The calls that end and begin at a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The call that ended before the block.
    pub(crate) ended: Option<Ended>,
    /// Whether a call begins with the block.
    pub(crate) begins: bool,
}

impl Calls {
    /// The calls of functions: `name` or `image!name`.
    pub(crate) fn new(functions: &[String]) -> Calls {
        Calls { functions: functions.iter().map(|name| Name::new(name)).collect(), ..Calls::default() }
    }

    /// The calls of the same functions in another thread.
    pub(crate) fn thread(&self) -> Calls {
        Calls { functions: self.functions.clone(), entries: self.entries.clone(), ..Calls::default() }
    }

    /// The functions.
    pub(crate) fn functions(&self) -> &[Name] {
        &self.functions
    }

    /// The number of the first function that no image mapped so far has.
    pub(crate) fn missing(&self) -> Option<usize> {
        let is_found = |number: usize| self.entries.iter().any(|&(_, function)| function as usize == number);
        (0..self.functions.len()).find(|&number| !is_found(number))
    }

    /// Whether control is within a call.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// An image was mapped.
    pub(crate) fn mapped(&mut self, image: &LoadedImage, file: &image::Image) {
        for (name, function) in self.functions.iter().zip(0..).filter(|(name, _)| name.may_be_in(image)) {
            for symbol in name.symbols_in(file).into_iter().filter(|symbol| symbol.function) {
                let addresses = entries(file, symbol.address).map(|at| at.wrapping_add(image.bias));
                self.entries.extend(addresses.map(|at| (at, function)));
                self.requires_recompilation = true;
            }
        }
    }

    /// The number of the function that an address is an entry of.
    #[inline(always)]
    fn called_at(&self, address: u64) -> Option<u32> {
        self.entries.iter().find(|(entry, _)| *entry == address).map(|&(_, function)| function)
    }

    /// Whether [`Calls::enter`] must be called for each execution of the block: for entries, for return addresses,
    /// and for blocks that end with a call.
    pub(crate) fn must_report(&self, block: &Block) -> bool {
        self.called_at(block.address).is_some()
            || self.returns.iter().any(|&back| block.address == back || block.end() == back)
    }

    /// Whether [`Calls::must_report`] has become true for more blocks since the last call.
    pub(crate) fn requires_recompilation(&mut self) -> bool {
        std::mem::take(&mut self.requires_recompilation)
    }

    /// Control is at the first instruction of a block. A new call is opened only if `wanted` returns true.
    #[inline(always)]
    pub(crate) fn enter(&mut self, block: &Block, cpu: &Cpu, wanted: impl FnOnce() -> bool) -> Change {
        let mut change = Change::default();
        if let Some(open) = &self.open
            && block.address == open.return_address
            && cpu.stack_pointer() == open.stack_pointer
        {
            change.ended = self.end(true);
        }
        if let Some(function) = self.called_at(block.address)
            && wanted()
        {
            self.called(function, cpu, &mut change);
        }
        self.previous_end = block.end();
        change
    }

    /// Control enters a function: opens a call, unless it is nested.
    #[cold]
    fn called(&mut self, function: u32, cpu: &Cpu, change: &mut Change) {
        let stack_pointer = cpu.stack_pointer();
        if let Some(open) = &self.open {
            // A call that was left by longjmp never returns. It is taken as left when the function is called from a
            // frame that is older than the call. A tail call of the function to itself looks alike, but is a jump,
            // which leaves the return address unchanged.
            let by_call = cpu.return_address() == self.previous_end;
            let outlived = stack_pointer > open.stack_pointer;
            if !(outlived || stack_pointer == open.stack_pointer && by_call) {
                return;
            }
            change.ended = self.end(false);
        }
        let return_address = cpu.return_address();
        if !self.returns.contains(&return_address) {
            self.returns.push(return_address);
            self.requires_recompilation = true;
        }
        change.begins = true;
        self.open = Some(Open { function, return_address, stack_pointer, instructions: cpu.instructions });
    }

    /// Ends the open call.
    pub(crate) fn end(&mut self, returned: bool) -> Option<Ended> {
        let open = self.open.take()?;
        Some(Ended { returned, began: open.instructions, function: open.function })
    }
}
