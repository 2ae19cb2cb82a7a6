//! Detects the beginnings and ends of units of work: calls of functions, or spans from one function's call to another's.

use std::collections::HashMap;
use std::sync::Arc;

use events::LoadedImage;
use isa::{IntegerResult, Register, SourceOperand, TransferTarget};

use crate::platform::Platform;
use crate::program_location::{Name, entries};
use crate::unit_class::ClassRule;
use crate::unit_name::{UnitEnd, UnitName};
use guest::{CallingConvention, DecodedBlock, InstructionProperties};
use guest_memory::Memory;

/// The functions of a unit of work.
pub fn unit_functions(unit: &str) -> Vec<String> {
    UnitName::new(unit).functions().map(|name| name.text().to_owned()).collect()
}

/// Whether an image has a function: `name` or `image!name`.
pub fn has_function(name: &str, image: &LoadedImage, file: &image::Image) -> bool {
    let name = Name::new(name);
    name.may_be_in(image) && name.symbols_in(file).iter().any(|symbol| symbol.function)
}

/// The units of work of one thread. A unit that begins within another belongs to the outer one.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadUnits {
    units: Arc<[UnitName]>,
    rules: Arc<[ClassRule]>,
    /// Entry addresses of functions, and what they mean.
    entries: Vec<(u64, EntryRole)>,
    /// Return addresses of calls so far.
    returns: Vec<u64>,
    open: Option<Open>,
    /// Whether [`ThreadUnits::must_report`] has become true for more blocks.
    requires_recompilation: bool,
    previous_end: u64,
    /// The stack pointer at the first block that was reported: on the thread's own stack.
    own_stack: Option<u64>,
    /// Whether blocks of these addresses and numbers of instructions leave frames ([`leaves_frames`]).
    leaving: HashMap<(u64, usize), bool>,
}

/// A program's own stacks are at least this large, in bytes: control that comes to an address of the same mapping farther away has
/// switched to another stack, unless it is on the one that the thread began with.
const SMALLEST_STACK: u64 = 32 << 10;

/// The meaning of a function's entry. At an address with several, units end before they begin, and have begun when they get their
/// class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EntryRole {
    /// The unit of this number ends, or the call at whose return it ends begins.
    Ends(u32),
    /// The unit of this number begins.
    Begins(u32),
    /// By this rule the open unit gets its class, which is the rule's own or that of a text.
    Classifies(u32, Option<Arc<str>>),
}

/// A unit that has begun and not ended.
#[derive(Clone, Debug)]
struct Open {
    unit: u32,
    /// The call at whose return the unit ends, once that has begun.
    call: Option<ActiveCall>,
    instructions: u64,
    class: Option<Arc<str>>,
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct ActiveCall {
    return_address: u64,
    stack_pointer: u64,
}

/// The end of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// False if the unit was left by other means than its end.
    pub(crate) returned: bool,
    /// How many instructions the thread had executed when the unit began.
    pub(crate) began: u64,
    /// The number of the unit's name.
    pub(crate) unit: u32,
    /// The class that the program gave it.
    pub(crate) class: Option<Arc<str>>,
}

/// The units that end and begin at a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The unit that ended before the block.
    pub(crate) ended: Option<Ended>,
    /// Whether a unit begins with the block.
    pub(crate) begins: bool,
}

impl ThreadUnits {
    /// The units of these names, whose classes follow from the rules.
    pub(crate) fn new(units: &[String], rules: &[ClassRule]) -> ThreadUnits {
        let units = units.iter().map(|name| UnitName::new(name)).collect();
        ThreadUnits { units, rules: rules.into(), ..ThreadUnits::default() }
    }

    /// The units of the same names in another thread.
    pub(crate) fn thread(&self) -> ThreadUnits {
        ThreadUnits { entries: self.entries.clone(), ..self.renewed() }
    }

    /// The units of the same names in another program.
    pub(crate) fn renewed(&self) -> ThreadUnits {
        ThreadUnits { units: self.units.clone(), rules: self.rules.clone(), ..ThreadUnits::default() }
    }

    /// The first function of a unit that no image mapped so far has.
    pub(crate) fn missing(&self) -> Option<&str> {
        let has = |role: &EntryRole| self.entries.iter().any(|(_, other)| other == role);
        (0..).zip(&*self.units).find_map(|(number, unit)| {
            let mut functions = unit.functions();
            let (begin, end) = (functions.next(), functions.next());
            let begin = begin.filter(|_| !has(&EntryRole::Begins(number)));
            begin.or(end.filter(|_| !has(&EntryRole::Ends(number)))).map(Name::text)
        })
    }

    /// Whether control is within a unit.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether an image may have a function of the units or their classes.
    pub(crate) fn may_be_in(&self, image: &LoadedImage) -> bool {
        self.units.iter().flat_map(UnitName::functions).any(|name| name.may_be_in(image))
            || self.rules.iter().any(|rule| rule.may_be_in(image))
    }

    /// An image was mapped.
    pub(crate) fn mapped(&mut self, image: &LoadedImage, file: &image::Image) {
        let known = self.entries.len();
        let entries_of = |name: &Name| {
            let symbols = if name.may_be_in(image) { name.symbols_in(file) } else { Vec::new() };
            let functions = symbols.into_iter().filter(|symbol| symbol.function);
            functions.flat_map(|symbol| entries(file, symbol.address)).collect::<Vec<_>>()
        };
        for (unit, number) in self.units.iter().zip(0..) {
            let roles = [EntryRole::Begins(number), EntryRole::Ends(number)];
            for (name, role) in unit.functions().zip(roles) {
                self.entries.extend(entries_of(name).into_iter().map(|at| (at, role.clone())));
            }
        }
        for (rule, number) in self.rules.iter().zip(0..).filter(|(rule, _)| rule.may_be_in(image)) {
            let entries = rule.entries_in(file).into_iter();
            self.entries.extend(entries.map(|(at, class)| (at, EntryRole::Classifies(number, class))));
        }
        self.requires_recompilation |= self.entries.len() > known;
        self.entries[known..].iter_mut().for_each(|(at, _)| *at = at.wrapping_add(image.bias));
        self.entries.sort();
        // A function may have several names.
        self.entries.dedup();
    }

    /// The roles of an address as an entry.
    fn roles_at(&self, address: u64) -> &[(u64, EntryRole)] {
        let first = self.entries.partition_point(|(entry, _)| *entry < address);
        let end = self.entries[first..].partition_point(|(entry, _)| *entry == address);
        &self.entries[first..first + end]
    }

    /// Whether [`ThreadUnits::enter`] must be called for each execution of the block: for entries, for return addresses,
    /// and for blocks that end with a call.
    pub(crate) fn must_report<G: Platform>(&self, block: &DecodedBlock<G>) -> bool {
        !self.roles_at(block.address).is_empty()
            || self.returns.iter().any(|&back| block.address == back || block.end() == back)
            || !self.units.is_empty() && leaves_frames(block)
    }

    /// Whether [`ThreadUnits::must_report`] has become true for more blocks since the last call.
    pub(crate) fn requires_recompilation(&mut self) -> bool {
        std::mem::take(&mut self.requires_recompilation)
    }

    /// Control is at the first instruction of a block. A new unit is opened only if `wanted` returns true.
    #[inline(always)]
    pub(crate) fn enter<G: Platform>(
        &mut self,
        block: &DecodedBlock<G>,
        cpu: &G,
        memory: &Memory,
        wanted: impl Fn() -> bool,
    ) -> Change {
        self.own_stack.get_or_insert(cpu.stack_pointer());
        let mut change = Change::default();
        if let Some(Open { call: Some(call), .. }) = &self.open
            && block.address == call.return_address
            && cpu.stack_pointer() == call.stack_pointer
        {
            change.ended = self.end(true);
        }
        if let Some(Open { call: Some(call), .. }) = self.open
            && self.leaves(call, block, cpu, memory)
        {
            change.ended = self.end(false);
        }
        if !self.roles_at(block.address).is_empty() {
            self.called(block.address, cpu, memory, wanted, &mut change);
        }
        self.previous_end = block.end();
        change
    }

    /// Control enters a function.
    #[cold]
    fn called<G: Platform>(
        &mut self,
        address: u64,
        cpu: &G,
        memory: &Memory,
        wanted: impl Fn() -> bool,
        change: &mut Change,
    ) {
        for (_, role) in self.roles_at(address).to_vec() {
            match role {
                EntryRole::Ends(unit) => self.ends(unit, cpu, change),
                EntryRole::Begins(unit) if wanted() => self.begins(unit, (cpu, memory), change),
                EntryRole::Begins(_) => {}
                EntryRole::Classifies(rule, class) => self.classify(rule, class, cpu, memory),
            }
        }
    }

    /// Control enters the function at which a unit ends.
    fn ends<G: Platform>(&mut self, unit: u32, cpu: &G, change: &mut Change) {
        if self.open.as_ref().is_none_or(|open| open.unit != unit) {
            return;
        }
        match self.units[unit as usize].end {
            UnitEnd::Return => {}
            UnitEnd::Entry(_) => change.ended = self.end(true),
            UnitEnd::ReturnOf(_) => {
                let call = self.call(cpu);
                if let Some(open) = &mut self.open {
                    // A nested call of the function belongs to the outer one.
                    open.call.get_or_insert(call);
                }
            }
        }
    }

    /// Control enters the function at which a unit begins: opens the unit, unless it is nested.
    fn begins<G: Platform>(&mut self, unit: u32, (cpu, memory): (&G, &Memory), change: &mut Change) {
        let is_call = self.units[unit as usize].end == UnitEnd::Return;
        if let Some(open) = &self.open {
            let is_left = match open.call {
                Some(call) => self.is_left(call, cpu, memory),
                None => open.unit == unit,
            };
            if !is_left {
                return;
            }
            change.ended = self.end(false);
        }
        let call = is_call.then(|| self.call(cpu));
        change.begins = true;
        self.open = Some(Open { unit, call, instructions: cpu.executed(), class: None });
    }

    /// Whether a call that has not returned never will, because a function that begins a unit is called from a frame that is older
    /// than the call: where control went there was not seen. A tail call of the function to itself looks alike, but is a jump, which
    /// leaves the return address unchanged.
    fn is_left<G: Platform>(&self, call: ActiveCall, cpu: &G, memory: &Memory) -> bool {
        let by_call = cpu.return_address() == self.previous_end;
        let stack_pointer = cpu.stack_pointer();
        (stack_pointer > call.stack_pointer || stack_pointer == call.stack_pointer && by_call)
            && self.is_on_stack_of(call, stack_pointer, memory)
    }

    /// Whether a block leaves a call other than by its return: by an exception or longjmp, to a frame that is older than the call.
    fn leaves<G: Platform>(
        &mut self,
        call: ActiveCall,
        block: &DecodedBlock<G>,
        cpu: &G,
        memory: &Memory,
    ) -> bool {
        let key = (block.address, block.words.len());
        if !*self.leaving.entry(key).or_insert_with(|| leaves_frames(block)) {
            return false;
        }
        // What the block does to registers; its stores do not matter for them.
        let mut after = cpu.clone();
        after.set_pc(block.end());
        let loads = block.instructions.iter().filter(|instruction| !instruction.is_store());
        if loads.map(|instruction| after.execute(instruction, memory)).any(|done| done.is_err()) {
            return false;
        }
        let stack_pointer = after.stack_pointer();
        let is_older = stack_pointer > call.stack_pointer
            || stack_pointer == call.stack_pointer && after.pc() != call.return_address;
        is_older && self.is_on_stack_of(call, stack_pointer, memory)
    }

    /// Whether a stack pointer that is not below a call's is one of the same stack: programs have several.
    fn is_on_stack_of(&self, call: ActiveCall, stack_pointer: u64, memory: &Memory) -> bool {
        let mapping = |address: u64| memory.region_at(address).map(|(start, _)| start);
        let is_own = self.own_stack.is_some_and(|own| mapping(own) == mapping(stack_pointer));
        mapping(call.stack_pointer) == mapping(stack_pointer)
            && (is_own || stack_pointer - call.stack_pointer < SMALLEST_STACK)
    }

    /// The call whose first instruction is next.
    fn call<G: Platform>(&mut self, cpu: &G) -> ActiveCall {
        let return_address = cpu.return_address();
        if !self.returns.contains(&return_address) {
            self.returns.push(return_address);
            self.requires_recompilation = true;
        }
        ActiveCall { return_address, stack_pointer: cpu.stack_pointer() }
    }

    /// Gives the open unit its class, unless it has one.
    fn classify<G: Platform>(&mut self, rule: u32, class: Option<Arc<str>>, cpu: &G, memory: &Memory) {
        if let Some(open) = self.open.as_mut().filter(|open| open.class.is_none()) {
            open.class = class.or_else(|| self.rules[rule as usize].of_text(cpu, memory));
        }
    }

    /// Ends the open unit.
    pub(crate) fn end(&mut self, returned: bool) -> Option<Ended> {
        let Open { unit, instructions, class, .. } = self.open.take()?;
        Some(Ended { returned, began: instructions, unit, class })
    }
}

/// Whether a block sets the stack pointer to a value, and goes to a computed address: as longjmp, exceptions and switches between
/// stacks do. Functions with frames of varying size set it from the frame pointer, and only return.
fn leaves_frames<G: Platform>(block: &DecodedBlock<G>) -> bool {
    let set = G::INSTRUCTION_SET;
    let stack_pointer = <G as CallingConvention>::STACK_POINTER;
    let is_stack_pointer = |operand| operand == SourceOperand::Register(stack_pointer);
    let is_frame = |operand| operand == SourceOperand::Register(G::FRAME_POINTER);
    let summary = |&word: &u32| set.summary(word);
    let target = block.words.last().and_then(summary).and_then(|last| last.transfer);
    let is_computed = target.is_some_and(|last| matches!(last.target, TransferTarget::Register { .. }));
    is_computed
        && block.words.iter().filter_map(summary).any(|summary| {
            let moves = match summary.result {
                Some((_, IntegerResult::Sum(a, b) | IntegerResult::Difference(a, b))) => {
                    is_stack_pointer(a) && matches!(b, SourceOperand::Constant(_))
                        || is_frame(a)
                        || is_frame(b)
                }
                Some((_, IntegerResult::Or(a, b))) => is_frame(a) || is_frame(b),
                _ => false,
            };
            summary.written.contains(&Some(Register::Integer(stack_pointer))) && !moves
        })
}
