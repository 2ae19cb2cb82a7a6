//! The proof of one entry of a procedure: both images are executed side by side from there, path by path, each up to the
//! next action, and the actions must be the same.
//!
//! A pair of program points is visited again as long as the paths that lead to it have less in common than was assumed
//! ([`PairState::generalize`]); when nothing changes any more, what is assumed at every pair holds on all paths.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rustc_hash::FxHashSet as HashSet;

use super::context::ProofContext;
use super::convention::{ARGUMENTS, GP, PRESERVED, PV, RA, SP, ZEROS, bit, has, registers};
use super::images::{Images, OriginalProcedure};
use super::machine::{Action, SymbolicMachine};
use super::relation::PairState;
use super::term::{BASE, ImageSide, Node, OffsetTerm, Terms, register_name};

/// An entry of a procedure in both images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcedureEntry {
    /// The address in the original.
    pub original: u64,
    /// The address in the optimized image.
    pub optimized: u64,
}

/// The changes by the optimizer in the code that a proof has gone through.
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
    /// The program points where control divided on the way.
    pub path: Vec<(u64, u64)>,
}

/// A proof.
#[derive(Debug)]
pub struct Proved {
    /// The changes.
    pub changes: Changes,
    /// The entries whose proof it relies on.
    pub entries: Vec<ProcedureEntry>,
    /// Pairs of program points that control passes.
    pub points: usize,
    /// Addresses of the optimized image's instructions that control passes.
    pub covered: HashSet<u64>,
}

/// A program point in each image, and the calls that are carried out there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ProofPoint {
    original: u64,
    optimized: u64,
    calls: [Vec<u64>; 2],
}

impl ProofPoint {
    fn new(original: &SymbolicMachine, optimized: &SymbolicMachine) -> ProofPoint {
        let calls = [original, optimized].map(|one| one.inlined.iter().map(|call| call.back).collect());
        ProofPoint { original: original.pc, optimized: optimized.pc, calls }
    }
}

/// A result, or the reason why there is no proof.
pub(super) type ProofResult<T> = Result<T, String>;

/// The proof while it is being made.
pub struct Proof<'a> {
    pub(super) images: &'a Images,
    pub(super) entry: ProcedureEntry,
    pub(super) context: ProofContext,
    pub(super) changes: Changes,
    pub(super) entries: BTreeSet<ProcedureEntry>,
    states: BTreeMap<ProofPoint, PairState>,
    parents: HashMap<ProofPoint, ProofPoint>,
    pending: BTreeSet<ProofPoint>,
}

/// Visits of pairs of program points after which a proof is given up, for each pair.
const MOST_VISITS: usize = 200;
/// Pairs of program points with which a proof is given up.
const MOST_POINTS: usize = 20_000;

impl<'a> Proof<'a> {
    /// Tries to prove an entry.
    pub fn attempt(images: &'a Images, entry: ProcedureEntry) -> Result<Proved, Difference> {
        let mut proof = Proof {
            images,
            entry,
            context: ProofContext::new(Terms::new()),
            changes: Changes::default(),
            entries: BTreeSet::new(),
            states: BTreeMap::new(),
            parents: HashMap::new(),
            pending: BTreeSet::new(),
        };
        proof.run()?;
        let Proof { changes, entries, states, context, .. } = proof;
        let entries = entries.into_iter().collect();
        Ok(Proved { changes, entries, points: states.len(), covered: context.covered })
    }

    fn run(&mut self) -> Result<(), Difference> {
        let first = (self.entry.original, self.entry.optimized);
        let mut original = self.initial(ImageSide::Original, first.0);
        let mut optimized = self.initial(ImageSide::Optimized, first.1);
        if self.reach_second_entry(&mut original, &mut optimized) {
            return Ok(());
        }
        let original = self.initial(ImageSide::Original, first.0);
        let optimized = self.initial(ImageSide::Optimized, first.1);
        let start = ProofPoint::new(&original, &optimized);
        self.states.insert(
            start.clone(),
            PairState { original, optimized, memory: self.context.memory, generalized: 0 },
        );
        self.pending.insert(start.clone());
        let mut visits = 0;
        while let Some(point) = self.pending.pop_first() {
            visits += 1;
            if visits > MOST_VISITS * (self.states.len() + 10) || self.states.len() > MOST_POINTS {
                return Err(self.difference("too many paths".into(), &point, first));
            }
            let state = self.states[&point].clone();
            let (mut original, mut optimized) = (state.original, state.optimized);
            self.context.memory = state.memory;
            if let Err(reason) = self.follow(&point, &mut original, &mut optimized) {
                let at = (original.pc.wrapping_sub(4), optimized.pc.wrapping_sub(4));
                return Err(self.difference(reason, &point, at));
            }
        }
        self.check_frame().map_err(|reason| self.difference(reason, &start, first))
    }

    fn difference(&self, reason: String, point: &ProofPoint, at: (u64, u64)) -> Difference {
        let mut path = Vec::new();
        let mut next = Some(point);
        while let Some(point) = next {
            path.push((point.original, point.optimized));
            next = self.parents.get(point);
        }
        path.reverse();
        Difference { reason, at, path }
    }

    pub(super) fn procedure(&self) -> Option<&'a OriginalProcedure> {
        self.images.owner(self.entry.original)
    }

    /// The state at the entry.
    fn initial(&mut self, side: ImageSide, pc: u64) -> SymbolicMachine {
        let registers = std::array::from_fn(|register| {
            let register = register as u8;
            match register {
                _ if has(ZEROS, register) => OffsetTerm::constant(0),
                _ => self.entry_value(register, side),
            }
        });
        let mut machine = SymbolicMachine {
            pc,
            registers,
            slots: Vec::new(),
            bounds: Vec::new(),
            inlined: Vec::new(),
            executed: 0,
        };
        let Some(procedure) = self.procedure() else { return machine };
        if procedure.computes_gp && procedure.entry == self.entry.original {
            machine.registers[PV as usize] = OffsetTerm::address(pc);
        } else if procedure.uses_gp {
            machine.registers[GP as usize] = OffsetTerm::address(procedure.gp);
        }
        machine
    }

    /// Whether both compute the global pointer, and come to the second entry, which has a proof of its own.
    fn reach_second_entry(
        &mut self,
        original: &mut SymbolicMachine,
        optimized: &mut SymbolicMachine,
    ) -> bool {
        let Some(procedure) = self.procedure().filter(|one| one.entry == self.entry.original) else {
            return false;
        };
        let Some(second) = procedure.second_entry else { return false };
        let images = self.images;
        let is_second = |address: u64| images.hints.get(&address) == Some(&second);
        let is_there =
            original.advance_until(&images.original, &mut self.context, |pc| pc == second).is_none()
                && optimized.advance_until(&images.optimized, &mut self.context, is_second).is_none();
        let gp = OffsetTerm::address(procedure.gp);
        let before = [(ImageSide::Original, &*original), (ImageSide::Optimized, &*optimized)];
        let is_clean = before.into_iter().all(|(side, machine)| {
            let first = self.initial(side, machine.pc);
            let is_kept =
                |register| register == GP || register == PV || machine.get(register) == first.get(register);
            machine.get(GP) == gp && machine.slots.is_empty() && (0..64).all(is_kept)
        });
        if is_there && is_clean {
            let entry = ProcedureEntry { original: original.pc, optimized: optimized.pc };
            self.entries.insert(entry);
        }
        is_there && is_clean
    }

    /// The value of a register at the entry.
    pub(super) fn entry_value(&mut self, register: u8, side: ImageSide) -> OffsetTerm {
        let unread = ARGUMENTS & !self.images.needs.get(&self.entry.original).copied().unwrap_or(ARGUMENTS);
        let side = Some(side).filter(|_| has(PRESERVED | unread | bit(PV), register));
        self.context.terms.value(Node::Entry(register, side))
    }

    /// Follows both images from a pair of program points to where control divides.
    fn follow(
        &mut self,
        from: &ProofPoint,
        original: &mut SymbolicMachine,
        optimized: &mut SymbolicMachine,
    ) -> ProofResult<()> {
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
                    (Action::Call { link: RA, target: OffsetTerm { symbol: BASE, offset }, back }, _)
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
                self.check_unwinding((old, new), original, optimized)?;
                if self.act(from, (old, new), original, optimized)? {
                    return Ok(());
                }
                break;
            }
        }
    }

    fn note_changes(&mut self, original: &SymbolicMachine, optimized: &SymbolicMachine, before: (u64, u64)) {
        let counts = (original.executed - before.0, optimized.executed - before.1);
        self.changes.instructions |= counts.0 != counts.1;
        self.changes.frame |= original.get(SP) != optimized.get(SP);
    }

    /// Loads of the optimized image must be loads of the original, as others could fail.
    fn check_loads(&mut self) -> ProofResult<()> {
        for (symbol, unwound) in std::mem::take(&mut self.context.new_loads) {
            let Some(expected) = self.context.terms.loaded(symbol) else {
                let load = self.context.terms.show(OffsetTerm::of(symbol));
                return Err(format!("the original does not carry out the load {load}"));
            };
            check_unwound(expected, unwound)?;
        }
        match self.context.is_below_stack {
            [false, true] => Err("an access below the stack pointer".into()),
            _ => Ok(()),
        }
    }

    /// Whether unwinders find at an action of the optimized image what they find at that of the original.
    fn check_unwinding(
        &mut self,
        actions: (Action, Action),
        original: &SymbolicMachine,
        optimized: &SymbolicMachine,
    ) -> ProofResult<()> {
        let (old, new) = actions;
        if std::mem::discriminant(&old) != std::mem::discriminant(&new) || matches!(old, Action::Branch(_)) {
            return Ok(());
        }
        // Both are behind the action's instruction.
        let images = self.images;
        let expected = original.unwound(original.pc.wrapping_sub(4), &images.original, &mut self.context);
        let found = optimized.unwound(optimized.pc.wrapping_sub(4), &images.optimized, &mut self.context);
        check_unwound(expected, found)
    }

    /// Control comes to a pair of program points.
    pub(super) fn arrive(
        &mut self,
        from: &ProofPoint,
        to: (u64, u64),
        original: &SymbolicMachine,
        optimized: &SymbolicMachine,
    ) -> ProofResult<()> {
        if self.images.hints.get(&to.1) == Some(&to.0) && self.is_tail_call(original, optimized, to) {
            self.entries.insert(ProcedureEntry { original: to.0, optimized: to.1 });
            return Ok(());
        }
        let mut state = PairState {
            original: SymbolicMachine { pc: to.0, executed: 0, ..original.clone() },
            optimized: SymbolicMachine { pc: to.1, executed: 0, ..optimized.clone() },
            memory: self.context.memory,
            generalized: 0,
        };
        self.name_procedures(&mut state);
        let to = ProofPoint::new(&state.original, &state.optimized);
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
    fn name_procedures(&mut self, state: &mut PairState) {
        let images = self.images;
        let PairState { original, optimized, .. } = state;
        for (machine, code) in [(original, &images.original), (optimized, &images.optimized)] {
            for value in &mut machine.registers {
                *value = self.context.terms.named(*value, code);
            }
        }
    }
}

/// Compares the registers that unwinders find.
fn check_unwound(original: u64, optimized: u64) -> ProofResult<()> {
    match registers(original & !optimized).next() {
        None => Ok(()),
        Some(register) => Err(format!("an unwinder does not find the caller's {}", register_name(register))),
    }
}

/// Branches between two actions that only one of the images has.
const MOST_BRANCHES: usize = 100;
/// Nested calls that were inlined.
const DEEPEST: usize = 4;
