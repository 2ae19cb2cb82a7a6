//! What comes next: predicted from what came before. The encoder and the decoder ask the same model and tell it
//! the same outcomes, so that only wrong predictions need to be written.

use super::coder::{Coder, Section};
use super::guesses::Guesses;
use super::memory::Memory;
use super::recipe::{Access, Assignment, Exit, Moves, NONE, Recipe, Recipes, SLOTS, UNKNOWN, ZERO};
use super::table::{Table, is_known, mixed, table};
use super::values::Values;
use crate::bytes::Malformed;
use events::BlockId;
use events::record::Event;

/// Executes blocks as far as their addresses follow from one another, and guesses the rest.
pub(super) struct Model {
    control: Control,
    registers: Registers,
    guesses: Guesses,
    values: Option<Box<Values>>,
}

/// A block whose execution was coded up to its addresses.
pub(super) struct Executed {
    pub id: BlockId,
    first_site: u32,
}

impl Model {
    pub fn new(has_values: bool) -> Model {
        let values = has_values.then(|| Box::new(Values::new()));
        let (control, registers, guesses) = (Control::new(), Registers::new(), Guesses::new());
        Model { control, registers, guesses, values }
    }

    /// Control goes on elsewhere, with other registers.
    pub fn divert(&mut self) {
        self.registers.forget();
    }

    /// The next block and its addresses, which the coder writes or reads.
    #[inline(always)]
    pub fn execution<C: Coder>(&mut self, coder: &mut C, recipes: &Recipes) -> Result<Executed, Malformed> {
        let id = self.control.next(coder, recipes)?;
        let recipe = recipes.get(id)?;
        let accesses = recipes.accesses(recipe);
        let first_site = self.control.executed(id, recipe.exit, recipe.instructions);
        self.registers.begin(recipe);
        for (site, access) in (first_site..).zip(accesses) {
            let mut address = self.registers.predict(access);
            if !coder.hit_if_known(Section::Addresses, address) {
                address = self.guesses.next(coder, Section::Addresses, site, is_known(address))?;
                self.registers.correct(access, address);
            }
            self.registers.moved(access, address);
        }
        self.registers.end(recipe, recipes.assignments(recipe));
        Ok(Executed { id, first_site })
    }

    /// The values of the block that was executed, if there are any.
    #[inline(always)]
    pub fn values<C: Coder>(
        &mut self,
        coder: &mut C,
        recipes: &Recipes,
        executed: &Executed,
        addresses: &[u64],
    ) -> Result<(), Malformed> {
        let Some(values) = &mut self.values else { return Ok(()) };
        values.execution(coder, recipes, executed.id, executed.first_site, addresses)?;
        self.registers.set(values.integers());
        Ok(())
    }
}

/// Predicts blocks.
struct Control {
    last: BlockId,
    /// The blocks that were executed last, those long ago shifted out.
    history: u64,
    /// What followed such a history: the block, and the history's check.
    contexts: Table<(u32, BlockId), { 1 << CONTEXT_BITS }>,
    blocks: Vec<State>,
    /// How many sites the blocks have that were executed: one an instruction, as some have values.
    sites: u32,
    /// The histories at which calls were made that have not returned.
    calls: [u64; CALLS],
    depth: usize,
    /// The block that would be new in the dictionary.
    newest: BlockId,
}

/// What is kept about a block.
#[derive(Clone, Copy, Default)]
struct State {
    /// What followed it: last, and before that.
    successors: [BlockId; 2],
    /// The number of its first site.
    first_site: u32,
    was_executed: bool,
}

const CONTEXT_BITS: u32 = 12;
const HISTORY_SHIFT: u32 = 11;
const CALLS: usize = 64;

impl Control {
    fn new() -> Control {
        Control {
            last: 0,
            history: 0,
            contexts: table((0, 0)),
            blocks: Vec::new(),
            sites: 0,
            calls: [0; CALLS],
            depth: 0,
            newest: 0,
        }
    }

    #[inline(always)]
    fn next<C: Coder>(&mut self, coder: &mut C, recipes: &Recipes) -> Result<BlockId, Malformed> {
        if self.blocks.len() < recipes.len() {
            self.blocks.resize(recipes.len(), State::default());
        }
        let hash = mixed(self.history);
        let context = &mut self.contexts[(hash >> (64 - CONTEXT_BITS)) as usize];
        let last = self.blocks.get_mut(self.last as usize).ok_or(Malformed("it has no dictionary"))?;
        let successors = &mut last.successors;
        let check = hash as u32;
        let is_known = context.0 == check;
        let predicted = if is_known { context.1 } else { successors[0] };
        let word = |id| Event::Block(id).word();
        let id = if coder.hit(Section::Blocks, word(predicted)) {
            predicted
        } else {
            let other = successors[usize::from(successors[0] == predicted)];
            let others = [other, self.newest, successors[1]].map(word);
            let actual = coder.miss(Section::Blocks, others, word(self.last))?;
            BlockId::try_from(!actual).map_err(|_| Malformed("a block is none"))?
        };
        *context = (check, id);
        if successors[0] != id {
            *successors = [id, successors[0]];
        }
        self.newest = self.newest.max(id.saturating_add(1));
        Ok(id)
    }

    /// Returns the number of the block's first site.
    #[inline(always)]
    fn executed(&mut self, id: BlockId, exit: Exit, sites: u32) -> u32 {
        self.last = id;
        self.history = self.history << HISTORY_SHIFT ^ mixed(id.into()) >> 32;
        match exit {
            Exit::Other => {}
            Exit::Call => {
                self.depth = (self.depth + 1) % CALLS;
                self.calls[self.depth] = self.history;
            }
            Exit::Return => {
                self.history = self.calls[self.depth] ^ mixed(id.into()) << 8;
                self.depth = (self.depth + CALLS - 1) % CALLS;
            }
        }
        let state = &mut self.blocks[id as usize];
        if !state.was_executed {
            (state.was_executed, state.first_site) = (true, self.sites);
            self.sites = self.sites.wrapping_add(sites);
        }
        state.first_site
    }
}

/// Registers, as far as their values are known, or thought to be: memory may have changed unnoticed.
struct Registers {
    slots: [Slot; SLOTS],
    /// The register that holds the address of what is executed next, or [`NONE`].
    jump: u8,
    memory: Memory,
}

/// A value.
#[derive(Clone, Copy)]
struct Slot {
    value: u64,
    /// Where it was loaded from, or 0.
    origin: u64,
}

/// Nothing is known of this one.
const MYSTERY: Slot = Slot { value: 3 << 62, origin: 0 };

impl Registers {
    fn new() -> Registers {
        let mut registers = Registers { slots: [MYSTERY; SLOTS], jump: NONE, memory: Memory::new() };
        registers.forget();
        registers
    }

    fn forget(&mut self) {
        self.slots = [MYSTERY; SLOTS];
        self.slots[ZERO as usize].value = 0;
        self.jump = NONE;
    }

    #[inline(always)]
    fn begin(&mut self, recipe: &Recipe) {
        if self.jump != NONE {
            self.learn(self.jump, recipe.address);
        }
    }

    /// A value has become known that its slot did not hold.
    #[inline(always)]
    fn learn(&mut self, slot: u8, value: u64) {
        let slot = &mut self.slots[slot as usize % SLOTS];
        slot.value = value;
        if slot.origin != 0 {
            self.memory.set(slot.origin, value);
        }
    }

    /// All registers have become known.
    fn set(&mut self, integers: &[u64]) {
        for (slot, &value) in self.slots.iter_mut().zip(integers) {
            *slot = Slot { value, origin: 0 };
        }
    }

    #[inline(always)]
    fn predict(&self, access: &Access) -> u64 {
        let base = self.slots[access.base.slot as usize % SLOTS].value;
        base.wrapping_add(access.base.constant) & access.mask
    }

    #[inline(always)]
    fn correct(&mut self, access: &Access, address: u64) {
        if access.learns != UNKNOWN {
            self.learn(access.learns, address.wrapping_sub(access.base.constant));
        }
    }

    /// What an access at this address does to slots and memory.
    #[inline(always)]
    fn moved(&mut self, access: &Access, address: u64) {
        let slot = &mut self.slots[access.data.slot as usize % SLOTS];
        match access.moves {
            Moves::Other => {}
            Moves::Load => {
                let value = self.memory.get(address).unwrap_or(MYSTERY.value);
                *slot = Slot { value, origin: address };
            }
            Moves::Store => self.memory.set(address, slot.value.wrapping_add(access.data.constant)),
        }
    }

    #[inline(always)]
    fn end(&mut self, recipe: &Recipe, assignments: &[Assignment]) {
        for assignment in assignments {
            let from = self.slots[assignment.to.slot as usize % SLOTS];
            let value = from.value.wrapping_add(assignment.to.constant);
            let origin = from.origin & assignment.is_copy;
            self.slots[assignment.register as usize % SLOTS] = Slot { value, origin };
        }
        let mut unknown = recipe.unknown;
        while unknown != 0 {
            self.slots[unknown.trailing_zeros() as usize] = MYSTERY;
            unknown &= unknown - 1;
        }
        self.jump = recipe.jump;
    }
}
