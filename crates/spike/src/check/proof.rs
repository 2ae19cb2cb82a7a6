//! The proof of one entry of a procedure: both images are executed side by side from there, path by path, each up to the
//! next action, and the actions must be the same.
//!
//! A pair of places is visited again as long as the paths that lead to it have less in common than was assumed
//! ([`State::generalize`]); when nothing changes any more, what is assumed at every pair holds on all paths.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use isa::Op;

use super::convention::{
    ARGUMENTS, CLOBBERED, GP, PRESERVED, PV, RA, RESULTS, SP, SYSTEM_ARGUMENTS, ZEROS, bit, has, registers,
};
use super::images::{Images, Procedure};
use super::machine::{Action, Context, Event, Machine};
use super::relation::State;
use super::tables;
use super::term::{BASE, Node, Side, Terms, Value, register_name};
use crate::assemble;

/// An entry of a procedure in both images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// The address in the original.
    pub original: u64,
    /// The address in the optimized image.
    pub optimized: u64,
}

/// What the optimizer did to the code that a proof has gone through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Fewer or other instructions.
    pub instructions: bool,
    /// Saves or restores of registers, or the frame.
    pub frame: bool,
    /// Calls that became jumps.
    pub tail_calls: bool,
    /// Inlined calls.
    pub inlining: bool,
}

/// Why an entry could not be proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The values, registers or actions that differ between the images.
    pub reason: String,
    /// Where, in the original and in the optimized image.
    pub at: (u64, u64),
    /// The places where control divided on the way.
    pub path: Vec<(u64, u64)>,
}

/// A proof.
#[derive(Debug)]
pub struct Proved {
    /// What was changed.
    pub changes: Changes,
    /// The entries whose proof it relies on.
    pub entries: Vec<Entry>,
    /// Pairs of places that control passes.
    pub places: usize,
}

/// A place in each image, and the calls that are carried out there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Places {
    original: u64,
    optimized: u64,
    calls: [Vec<u64>; 2],
}

impl Places {
    fn new(original: &Machine, optimized: &Machine) -> Places {
        let calls = [original, optimized].map(|one| one.inlined.iter().map(|call| call.back).collect());
        Places { original: original.pc, optimized: optimized.pc, calls }
    }
}

type Checked<T> = Result<T, String>;

/// The proof while it is being made.
pub struct Proof<'a> {
    pub(super) images: &'a Images,
    pub(super) entry: Entry,
    pub(super) context: Context,
    pub(super) changes: Changes,
    pub(super) entries: BTreeSet<Entry>,
    states: BTreeMap<Places, State>,
    parents: HashMap<Places, Places>,
    pending: BTreeSet<Places>,
}

/// Visits of pairs of places after which a proof is given up, for each pair.
const MOST_VISITS: usize = 30;
/// Pairs of places with which a proof is given up.
const MOST_PLACES: usize = 20_000;

impl<'a> Proof<'a> {
    /// Tries to prove an entry.
    pub fn attempt(images: &'a Images, entry: Entry) -> Result<Proved, Difference> {
        let mut terms = Terms::new();
        let stack = terms.symbol(Node::Entry(SP, None));
        let memory = terms.fresh();
        let context = Context {
            terms,
            memory,
            stack,
            saves: Default::default(),
            own_saves: BTreeSet::new(),
            accesses: BTreeSet::new(),
            overlap: None,
            is_frame_used: false,
            new_loads: Vec::new(),
            is_below_stack: [false; 2],
        };
        let mut proof = Proof {
            images,
            entry,
            context,
            changes: Changes::default(),
            entries: BTreeSet::new(),
            states: BTreeMap::new(),
            parents: HashMap::new(),
            pending: BTreeSet::new(),
        };
        proof.run()?;
        let Proof { changes, entries, states, .. } = proof;
        Ok(Proved { changes, entries: entries.into_iter().collect(), places: states.len() })
    }

    fn run(&mut self) -> Result<(), Difference> {
        let first = (self.entry.original, self.entry.optimized);
        let mut original = self.initial(Side::Original, first.0);
        let mut optimized = self.initial(Side::Optimized, first.1);
        if self.reach_second_entry(&mut original, &mut optimized) {
            return Ok(());
        }
        let original = self.initial(Side::Original, first.0);
        let optimized = self.initial(Side::Optimized, first.1);
        let start = Places::new(&original, &optimized);
        self.states.insert(start.clone(), State { original, optimized, memory: self.context.memory });
        self.pending.insert(start.clone());
        let mut visits = 0;
        while let Some(places) = self.pending.pop_first() {
            visits += 1;
            if visits > MOST_VISITS * (self.states.len() + 10) || self.states.len() > MOST_PLACES {
                return Err(self.difference("too many paths".into(), &places, first));
            }
            let state = self.states[&places].clone();
            let (mut original, mut optimized) = (state.original, state.optimized);
            self.context.memory = state.memory;
            if let Err(reason) = self.follow(&places, &mut original, &mut optimized) {
                let at = (original.pc.wrapping_sub(4), optimized.pc.wrapping_sub(4));
                return Err(self.difference(reason, &places, at));
            }
        }
        self.check_frame().map_err(|reason| self.difference(reason, &start, first))
    }

    fn difference(&self, reason: String, places: &Places, at: (u64, u64)) -> Difference {
        let mut path = Vec::new();
        let mut next = Some(places);
        while let Some(places) = next {
            path.push((places.original, places.optimized));
            next = self.parents.get(places);
        }
        path.reverse();
        Difference { reason, at, path }
    }

    pub(super) fn procedure(&self) -> Option<&'a Procedure> {
        self.images.owner(self.entry.original)
    }

    /// The state at the entry.
    fn initial(&mut self, side: Side, pc: u64) -> Machine {
        let registers = std::array::from_fn(|register| {
            let register = register as u8;
            match register {
                _ if has(ZEROS, register) => Value::constant(0),
                _ => self.entry_value(register, side),
            }
        });
        let mut machine = Machine {
            pc,
            registers,
            slots: Vec::new(),
            bounds: Vec::new(),
            inlined: Vec::new(),
            executed: 0,
        };
        let Some(procedure) = self.procedure() else { return machine };
        if procedure.computes_gp && procedure.entry == self.entry.original {
            machine.registers[PV as usize] = Value::address(pc);
        } else if procedure.uses_gp {
            machine.registers[GP as usize] = Value::address(procedure.gp);
        }
        machine
    }

    /// Whether both compute the global pointer, and come to the second entry, which has a proof of its own.
    fn reach_second_entry(&mut self, original: &mut Machine, optimized: &mut Machine) -> bool {
        let Some(procedure) = self.procedure().filter(|one| one.entry == self.entry.original) else {
            return false;
        };
        let Some(second) = procedure.second_entry else { return false };
        let images = self.images;
        let is_second = |address: u64| images.hints.get(&address) == Some(&second);
        let is_there =
            original.advance_until(&images.original, &mut self.context, |pc| pc == second).is_none()
                && optimized.advance_until(&images.optimized, &mut self.context, is_second).is_none();
        let gp = Value::address(procedure.gp);
        let before = [(Side::Original, &*original), (Side::Optimized, &*optimized)];
        let is_clean = before.into_iter().all(|(side, machine)| {
            let first = self.initial(side, machine.pc);
            let is_kept =
                |register| register == GP || register == PV || machine.get(register) == first.get(register);
            machine.get(GP) == gp && machine.slots.is_empty() && (0..64).all(is_kept)
        });
        if is_there && is_clean {
            let entry = Entry { original: original.pc, optimized: optimized.pc };
            self.entries.insert(entry);
        }
        is_there && is_clean
    }

    /// What a register held at the entry.
    pub(super) fn entry_value(&mut self, register: u8, side: Side) -> Value {
        let unread = ARGUMENTS & !self.images.needs.get(&self.entry.original).copied().unwrap_or(ARGUMENTS);
        let side = Some(side).filter(|_| has(PRESERVED | unread | bit(PV), register));
        self.context.terms.value(Node::Entry(register, side))
    }

    /// Follows both images from a pair of places to where control divides.
    fn follow(&mut self, from: &Places, original: &mut Machine, optimized: &mut Machine) -> Checked<()> {
        let mut passed = BTreeSet::new();
        loop {
            // A loop without a condition.
            if !passed.insert((original.pc, optimized.pc)) {
                return self.arrive(from, (original.pc, optimized.pc), original, optimized);
            }
            self.context.new_loads.clear();
            self.context.is_below_stack = [false; 2];
            let (first, second) = (original.executed, optimized.executed);
            let mut new = optimized.advance(&self.images.optimized, &mut self.context);
            let mut old = original.advance(&self.images.original, &mut self.context);
            let mut branches = 0;
            // Inlined calls, and branches that only one image has, are passed by.
            loop {
                if !self.is_match(old, new)
                    && let Some((target, back)) = self.middle(new)
                    && optimized.inlined.len() < DEEPEST
                {
                    optimized.enter(target, back);
                    new = optimized.advance(&self.images.optimized, &mut self.context);
                    continue;
                }
                match (old, new) {
                    (Action::Branch(_), Action::Branch(_)) => {}
                    (Action::Branch(_), _) if branches < MOST_BRANCHES => {
                        branches += 1;
                        old = original.advance(&self.images.original, &mut self.context);
                        continue;
                    }
                    (_, Action::Branch(_)) if branches < MOST_BRANCHES && !self.is_match(old, new) => {
                        branches += 1;
                        new = optimized.advance(&self.images.optimized, &mut self.context);
                        continue;
                    }
                    (Action::Call { link: RA, target: Value { symbol: BASE, offset }, back }, _)
                        if self.images.original.contains(offset)
                            && original.inlined.len() < DEEPEST
                            && !self.is_match(old, new) =>
                    {
                        self.changes.inlining = true;
                        original.enter(offset, back);
                        old = original.advance(&self.images.original, &mut self.context);
                        continue;
                    }
                    _ => {}
                }
                if old == Action::End {
                    return Ok(());
                }
                self.check_loads()?;
                self.note_changes(original, optimized, (first, second));
                if self.act(from, (old, new), original, optimized)? {
                    return Ok(());
                }
                break;
            }
        }
    }

    fn note_changes(&mut self, original: &Machine, optimized: &Machine, before: (u64, u64)) {
        let counts = (original.executed - before.0, optimized.executed - before.1);
        self.changes.instructions |= counts.0 != counts.1;
        self.changes.frame |= original.get(SP) != optimized.get(SP);
    }

    /// Loads of the optimized image must be loads of the original, as others could fail.
    fn check_loads(&mut self) -> Checked<()> {
        for symbol in std::mem::take(&mut self.context.new_loads) {
            if !self.context.terms.is_loaded(symbol) {
                let load = self.context.terms.show(Value::of(symbol));
                return Err(format!("the original does not carry out the load {load}"));
            }
        }
        match self.context.is_below_stack {
            [false, true] => Err("an access below the stack pointer".into()),
            _ => Ok(()),
        }
    }

    /// Compares a pair of actions. Returns whether the path ends or divides.
    fn act(
        &mut self,
        from: &Places,
        actions: (Action, Action),
        original: &mut Machine,
        optimized: &mut Machine,
    ) -> Checked<bool> {
        match actions {
            (Action::Invalid(reason), _) | (_, Action::Invalid(reason)) => Err(reason.into()),
            (Action::Event(old), Action::Event(new)) => self.event(old, new, original, optimized),
            (Action::Branch(old), Action::Branch(new)) => {
                self.arrive(from, (old, new), original, optimized)?;
                Ok(true)
            }
            (
                Action::Conditional { op, operand, taken, next },
                Action::Conditional { op: other, operand: tested, taken: to, next: onward },
            ) => {
                if !self.is_same(operand, tested) {
                    return Err(self.differ("the branches test", operand, tested));
                }
                let ways = match () {
                    () if op == other => [(taken, to), (next, onward)],
                    () if is_opposite(op, other) => [(taken, onward), (next, to)],
                    () => return Err(format!("{} became {}", op.mnemonic(), other.mnemonic())),
                };
                for (way, is_taken) in ways.into_iter().zip([true, false]) {
                    let bound = tables::bound(&self.context.terms, op, operand, is_taken);
                    if let Some((_, most)) = bound {
                        original.bounds.retain(|one| one.1 != most);
                    }
                    original.bounds.extend(bound);
                    if original.bounds.len() > MOST_BOUNDS {
                        original.bounds.remove(0);
                    }
                    self.arrive(from, way, original, optimized)?;
                    original.bounds.truncate(original.bounds.len() - usize::from(bound.is_some()));
                }
                Ok(true)
            }
            (Action::Call { .. }, Action::Call { .. }) => {
                self.call(actions.0, actions.1, original, optimized).map(|returns| !returns)
            }
            (Action::Call { .. }, Action::Branch(_) | Action::Jump(..)) => {
                self.tail_call(actions.0, actions.1, original, optimized)?;
                Ok(true)
            }
            (Action::Jump(target, pc), Action::Jump(other, _)) => {
                self.jump(from, (target, pc), other, original, optimized)?;
                Ok(true)
            }
            (old, new) => Err(format!("the original {}, the optimized code {}", name(old), name(new))),
        }
    }

    /// Compares events. Returns whether the path ends.
    fn event(
        &mut self,
        old: Event,
        new: Event,
        original: &mut Machine,
        optimized: &mut Machine,
    ) -> Checked<bool> {
        if old.op != new.op || old.function != new.function {
            return Err(format!("{} became {}", old.op.mnemonic(), new.op.mnemonic()));
        }
        for (old_operand, new_operand) in old.operands.into_iter().zip(new.operands) {
            if !self.is_same(old_operand, new_operand) {
                return Err(self.differ(
                    &format!("operands of {}", old.op.mnemonic()),
                    old_operand,
                    new_operand,
                ));
            }
        }
        let is_system_call = old.op == Op::CallPal;
        if is_system_call {
            self.check_registers(system_arguments(old.function), original, optimized)?;
        }
        let memory = self.context.terms.fresh();
        if old.changes_memory() {
            self.context.memory = memory;
        }
        let result = match (old.changes_memory(), old.result) {
            // What the same operation computes of the same operands is the same.
            (false, Some(_)) => {
                let [a, b] = old.operands;
                let node = Node::Operation(old.op, old.function as u16, [a, b, Value::constant(0)]);
                self.context.terms.value(node)
            }
            _ => self.context.terms.value(Node::Result(memory, 0)),
        };
        if let (Some(old), Some(new)) = (old.result, new.result) {
            original.set(old, result, &self.context);
            optimized.set(new, result, &self.context);
        }
        if is_system_call && old.function == HALT {
            return Ok(true);
        }
        if is_system_call {
            self.forget(SYSTEM_CHANGED, memory, original, optimized);
        }
        Ok(false)
    }

    /// Control comes to a pair of places.
    pub(super) fn arrive(
        &mut self,
        from: &Places,
        to: (u64, u64),
        original: &Machine,
        optimized: &Machine,
    ) -> Checked<()> {
        if self.images.hints.get(&to.1) == Some(&to.0) && self.is_tail_call(original, optimized, to) {
            self.entries.insert(Entry { original: to.0, optimized: to.1 });
            return Ok(());
        }
        let mut state = State {
            original: Machine { pc: to.0, executed: 0, ..original.clone() },
            optimized: Machine { pc: to.1, executed: 0, ..optimized.clone() },
            memory: self.context.memory,
        };
        self.name_procedures(&mut state);
        let to = Places::new(&state.original, &state.optimized);
        let state = match self.states.get(&to) {
            None => {
                self.parents.insert(to.clone(), from.clone());
                state
            }
            Some(known) if known.includes(&self.context.terms, &state) => return Ok(()),
            Some(known) => known.generalize(&mut self.context, &state),
        };
        self.states.insert(to.clone(), state);
        self.pending.insert(to);
        Ok(())
    }

    /// Replaces addresses of procedures, which are numbers that differ, by which procedures they are: so the addresses of
    /// different ones can be generalized.
    fn name_procedures(&mut self, state: &mut State) {
        let images = self.images;
        let State { original, optimized, .. } = state;
        for (machine, code) in [(original, &images.original), (optimized, &images.optimized)] {
            for value in &mut machine.registers {
                *value = self.context.terms.named(*value, code);
            }
        }
    }

    fn jump(
        &mut self,
        from: &Places,
        (target, pc): (Value, u64),
        other: Value,
        original: &Machine,
        optimized: &Machine,
    ) -> Checked<()> {
        if !self.is_same(target, other) {
            return Err(self.differ("jumps go to", target, other));
        }
        if let Node::Entry(register, None) = self.context.terms.node(target.symbol)
            && target.offset == 0
            && register != PV
        {
            return self.check_return(register, original, optimized);
        }
        if let Some(targets) = tables::targets(self.images, &self.context.terms, (target, pc), original) {
            for way in targets {
                self.arrive(from, way, original, optimized)?;
            }
            return Ok(());
        }
        if self.images.tables.contains_key(&pc) {
            return Err("an indirect jump to unknown places".into());
        }
        self.check_clean(original, optimized)?;
        let known = self.known_targets(target, other);
        self.check_registers(self.arguments(known.map(|one| one.0)), original, optimized)?;
        if let Some((old, new)) = known {
            self.require_entry(old, new)?;
            self.check_registers(bit(GP), original, optimized)?;
        }
        Ok(())
    }

    /// Whether the same is in a register of both.
    pub(super) fn is_same(&mut self, old: Value, new: Value) -> bool {
        if old == new {
            return old.as_address().is_none_or(|address| !self.images.leaders.contains(&address));
        }
        if let (Some(old), Some(new)) = (old.as_address(), new.as_address()) {
            return self.is_same_code(old, new);
        }
        if old.offset != new.offset {
            return false;
        }
        match (self.context.terms.node(old.symbol), self.context.terms.node(new.symbol)) {
            (Node::Operation(a, f, left), Node::Operation(b, g, right)) => {
                a == b && f == g && left.into_iter().zip(right).all(|(a, b)| self.is_same(a, b))
            }
            (Node::Load(a, left, from), Node::Load(b, right, other)) => {
                a == b && left == right && self.is_same(from, other)
            }
            _ => false,
        }
    }

    /// Whether two addresses are of the same code.
    fn is_same_code(&mut self, old: u64, new: u64) -> bool {
        if self.images.original.entries.contains_key(&old) && self.images.optimized.contains(new) {
            self.entries.insert(Entry { original: old, optimized: new });
            return true;
        }
        self.images.labels.get(&old).is_some_and(|all| all.contains(&new))
    }

    /// Registers in which both must hold the same.
    pub(super) fn check_registers(
        &mut self,
        set: u64,
        original: &Machine,
        optimized: &Machine,
    ) -> Checked<()> {
        for register in registers(set & !ZEROS) {
            let (old, new) = (original.get(register), optimized.get(register));
            if !self.is_same(old, new) {
                return Err(self.differ(&format!("{} is", register_name(register)), old, new));
            }
        }
        Ok(())
    }

    pub(super) fn differ(&self, what: &str, old: Value, new: Value) -> String {
        let show = |value| self.context.terms.show(value);
        format!("{what} {}, not {}", show(new), show(old))
    }

    /// What is required when control returns to the caller.
    pub(super) fn check_return(&mut self, link: u8, original: &Machine, optimized: &Machine) -> Checked<()> {
        let (changes, keeps_gp) = match self.procedure() {
            Some(procedure) => (procedure.changes, procedure.keeps_gp),
            None => (CLOBBERED, true),
        };
        self.check_preserved(original, optimized)?;
        let free = if link == RA { changes & !RESULTS } else { bit(28) & changes };
        for register in registers(CLOBBERED & !(free | bit(GP))) {
            let is_unchanged = [(Side::Original, original), (Side::Optimized, optimized)]
                .into_iter()
                .all(|(side, machine)| machine.get(register) == self.entry_value(register, side));
            if !is_unchanged {
                self.check_registers(bit(register), original, optimized)?;
            }
        }
        if keeps_gp { self.check_registers(bit(GP), original, optimized) } else { Ok(()) }
    }

    /// Whether preserved registers and the stack pointer are as they were at the entry.
    pub(super) fn check_preserved(&mut self, original: &Machine, optimized: &Machine) -> Checked<()> {
        for register in registers(PRESERVED | bit(SP)) {
            let (old, new) = (original.get(register), optimized.get(register));
            let [expected, own] =
                [Side::Original, Side::Optimized].map(|side| self.entry_value(register, side));
            let is_fine = if old == expected { new == own } else { self.is_same(old, new) };
            if !is_fine {
                return Err(self.differ(&format!("{} is", register_name(register)), old, new));
            }
        }
        Ok(())
    }
}

/// Bounds of numbers that are kept.
const MOST_BOUNDS: usize = 4;
/// Branches between two actions that only one of the images has.
const MOST_BRANCHES: usize = 100;
/// Nested calls that were inlined.
const DEEPEST: usize = 4;
/// The function of the privileged architecture library after which nothing follows.
const HALT: u32 = 0;
/// What system calls may change.
const SYSTEM_CHANGED: u64 = CLOBBERED
    & !(super::convention::range(16, 18) | bit(21) | bit(RA) | bit(PV) | bit(GP))
    & super::convention::range(0, 31);

/// What a function of the privileged architecture library reads.
fn system_arguments(function: u32) -> u64 {
    match function {
        // A stop, a breakpoint, an instruction barrier, a read of the thread pointer.
        HALT | 0x80 | 0x81 | 0x86 | 0x9e => 0,
        // A trap by software, a write of the thread pointer.
        0xaa | 0x9f => bit(16),
        _ => SYSTEM_ARGUMENTS,
    }
}

fn is_opposite(op: Op, other: Op) -> bool {
    let word = |op: Op| u32::from(op.row().opcode) << 26;
    assemble::invert(word(op)) == Some(word(other))
}

fn name(action: Action) -> String {
    match action {
        Action::Event(event) => format!("has {}", event.op.mnemonic()),
        Action::Conditional { op, .. } => format!("has {}", op.mnemonic()),
        Action::Call { .. } => "makes a call".into(),
        Action::Branch(to) => format!("goes to {to:#x}"),
        Action::Jump(..) => "jumps or returns".into(),
        Action::End => "ends".into(),
        Action::Invalid(reason) => reason.into(),
    }
}
