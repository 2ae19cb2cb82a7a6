//! Where the calls of one function begin and end.

use events::LoadedImage;

use crate::places::{Name, entries};
use alpha::block::Block;
use alpha::cpu::{Cpu, register};

/// Whether an image has a function: `name` or `image!name`.
pub fn has_function(name: &str, image: &LoadedImage, file: &image::Image) -> bool {
    let mut calls = Calls::new(name);
    calls.mapped(image, file);
    calls.is_found()
}

/// The calls of one function in one thread. A call from within a call belongs to the outer one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    function: Option<Name>,
    /// Addresses at which the function is entered.
    entries: Vec<u64>,
    /// Addresses to which calls returned, or will.
    returns: Vec<u64>,
    open: Option<Open>,
    /// Whether there are more blocks than before of which it must hear.
    requires_recompilation: bool,
    previous_end: u64,
}

/// A call that has begun and not ended.
#[derive(Clone, Debug)]
struct Open {
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
}

/// What a block is to the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The call that ended before it.
    pub(crate) ended: Option<Ended>,
    /// A call begins with it.
    pub(crate) begins: bool,
}

impl Calls {
    /// The calls of a function: `name` or `image!name`.
    pub(crate) fn new(function: &str) -> Calls {
        Calls { function: Some(Name::new(function)), ..Calls::default() }
    }

    /// The calls of the same function in another thread.
    pub(crate) fn thread(&self) -> Calls {
        Calls { function: self.function.clone(), entries: self.entries.clone(), ..Calls::default() }
    }

    /// The function.
    pub(crate) fn function(&self) -> Option<&Name> {
        self.function.as_ref()
    }

    /// Whether any image that was mapped has the function.
    pub(crate) fn is_found(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Whether control is within a call.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// An image was mapped.
    pub(crate) fn mapped(&mut self, image: &LoadedImage, file: &image::Image) {
        let Some(name) = self.function.as_ref().filter(|name| name.may_be_in(image)) else { return };
        for symbol in name.symbols_in(file).into_iter().filter(|symbol| symbol.function) {
            self.entries.extend(entries(file, symbol.address).map(|at| at.wrapping_add(image.bias)));
            self.requires_recompilation = true;
        }
    }

    /// Whether [`Calls::enter`] must hear of each execution of the block: where calls begin and end, and the
    /// blocks that call.
    pub(crate) fn must_report(&self, block: &Block) -> bool {
        self.entries.contains(&block.address)
            || self.returns.iter().any(|&back| block.address == back || block.end() == back)
    }

    /// Whether [`Calls::must_report`] is true for more blocks than before.
    pub(crate) fn requires_recompilation(&mut self) -> bool {
        std::mem::take(&mut self.requires_recompilation)
    }

    /// Control is at the first instruction of a block. New calls are looked for if they are `wanted`.
    #[inline(always)]
    pub(crate) fn enter(&mut self, block: &Block, cpu: &Cpu, wanted: impl FnOnce() -> bool) -> Change {
        let mut change = Change::default();
        if let Some(open) = &self.open
            && block.address == open.return_address
            && cpu.r[register::SP] == open.stack_pointer
        {
            change.ended = self.end(true);
        }
        if self.entries.contains(&block.address) && wanted() {
            self.called(cpu, &mut change);
        }
        self.previous_end = block.end();
        change
    }

    /// Control enters the function: a call begins, unless this one is from within another.
    #[cold]
    fn called(&mut self, cpu: &Cpu, change: &mut Change) {
        let stack_pointer = cpu.r[register::SP];
        if let Some(open) = &self.open {
            // A call left by longjmp never returned. That it was left shows when the function is
            // called from a frame that must have outlived it. A tail call of the function to itself
            // looks alike, but is a jump: it leaves ra as it is.
            let by_call = cpu.r[register::RA] & !3 == self.previous_end;
            let outlived = stack_pointer > open.stack_pointer;
            if !(outlived || stack_pointer == open.stack_pointer && by_call) {
                return;
            }
            change.ended = self.end(false);
        }
        let return_address = cpu.r[register::RA] & !3;
        if !self.returns.contains(&return_address) {
            self.returns.push(return_address);
            self.requires_recompilation = true;
        }
        change.begins = true;
        self.open = Some(Open { return_address, stack_pointer, instructions: cpu.instructions });
    }

    /// Ends the call that is open.
    pub(crate) fn end(&mut self, returned: bool) -> Option<Ended> {
        self.open.take().map(|open| Ended { returned, began: open.instructions })
    }
}
