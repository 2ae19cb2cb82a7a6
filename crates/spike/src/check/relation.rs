//! The invariant at a pair of locations: both states as expressions over common unknowns. Two paths that meet are generalized
//! (anti-unification): expressions keep what they have in common, and where they differ an unknown stands for every pair of them,
//! so that what was equal in both images on both paths stays equal.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::context::ProofContext;
use super::machine::{Inlined, SymbolicMachine};
use super::term::{Node, OffsetTerm, TermNumber, Terms};
use isa::Op;

/// The states of both images.
#[derive(Clone, Debug)]
pub struct PairState {
    /// The original.
    pub original: SymbolicMachine,
    /// The optimized image.
    pub optimized: SymbolicMachine,
    /// The memory of both.
    pub memory: TermNumber,
    /// How often it was generalized.
    pub generalized: u32,
}

/// Generalizations after which an unknown takes the place of sums and values that are none. In a loop that adds, the sum of what
/// was added would become longer in each of them, without an end.
const MOST_SUMS: u32 = 6;

impl PairState {
    fn machines<'a>(&'a self, other: &'a PairState) -> [(&'a SymbolicMachine, &'a SymbolicMachine); 2] {
        [(&self.original, &other.original), (&self.optimized, &other.optimized)]
    }

    /// Whether all that another state may be is known to be possible.
    pub fn includes(&self, terms: &Terms, other: &PairState) -> bool {
        let mut matching = Unification {
            terms,
            substitution: HashMap::default(),
            done: HashMap::default(),
            sums: HashSet::default(),
        };
        matching.value(OffsetTerm::of(self.memory), OffsetTerm::of(other.memory))
            && self.machines(other).into_iter().all(|(old, new)| matching.machine(old, new))
    }

    /// The state that includes this one and another one.
    pub fn generalize(&self, context: &mut ProofContext, other: &PairState) -> PairState {
        let mut join = Join {
            context,
            variables: HashMap::default(),
            done: HashMap::default(),
            sums: (self.generalized < MOST_SUMS).then(HashMap::default),
        };
        let memory = join.value(OffsetTerm::of(self.memory), OffsetTerm::of(other.memory)).symbol;
        let [original, optimized] = self.machines(other).map(|(old, new)| join.machine(old, new));
        PairState { original, optimized, memory, generalized: self.generalized + 1 }
    }
}

/// One-way unification: a substitution of unknowns that turns one state into another.
struct Unification<'a> {
    terms: &'a Terms,
    substitution: HashMap<TermNumber, OffsetTerm>,
    done: HashMap<TermNumber, TermNumber>,
    /// Sums that were matched with values that are none. Sums of shared sums would be taken apart exponentially often.
    sums: HashSet<(TermNumber, OffsetTerm)>,
}

impl Unification<'_> {
    fn machine(&mut self, old: &SymbolicMachine, new: &SymbolicMachine) -> bool {
        old.registers.iter().zip(&new.registers).all(|(&old, &new)| self.value(old, new))
            && old.bounds.iter().all(|&(value, most)| {
                new.bounds.iter().any(|other| other.1 == most && self.value(value, other.0))
            })
            && old.inlined.iter().zip(&new.inlined).all(|(old, new)| {
                self.value(old.stack, new.stack)
                    && old.saved.iter().zip(&new.saved).all(|(&old, &new)| self.value(old, new))
            })
            && old.slots.iter().all(|(offset, old)| {
                let new = new.slots.binary_search_by_key(offset, |one| one.0).ok().map(|at| new.slots[at].1);
                new.is_some_and(|new| self.value(*old, new))
            })
    }

    fn value(&mut self, old: OffsetTerm, new: OffsetTerm) -> bool {
        let node = self.terms.node(old.symbol);
        if let Node::Variable(_) = node {
            let own = OffsetTerm { symbol: new.symbol, offset: new.offset.wrapping_sub(old.offset) };
            return *self.substitution.entry(old.symbol).or_insert(own) == own;
        }
        if let Some(parts) = sum(self.terms, old).filter(|_| sum(self.terms, new).is_none()) {
            let new = new.plus(old.offset.wrapping_neg());
            let [first, second] = as_sum(self.terms, new, parts);
            let key = (old.symbol, new);
            let is_matched =
                self.sums.contains(&key) || self.value(parts[0], first) && self.value(parts[1], second);
            if is_matched {
                self.sums.insert(key);
            }
            return is_matched;
        }
        if old.offset != new.offset {
            return false;
        }
        if let Some(&done) = self.done.get(&old.symbol) {
            return done == new.symbol;
        }
        let is_matched = match (node, self.terms.node(new.symbol)) {
            (Node::Operation(a, f, left), Node::Operation(b, g, right)) => {
                a == b && f == g && left.into_iter().zip(right).all(|(a, b)| self.value(a, b))
            }
            (Node::Load(a, old, left), Node::Load(b, new, right)) => {
                a == b && self.value(OffsetTerm::of(old), OffsetTerm::of(new)) && self.value(left, right)
            }
            (Node::Result(old, a), Node::Result(new, b)) => {
                a == b && self.value(OffsetTerm::of(old), OffsetTerm::of(new))
            }
            (a, b) => a == b,
        };
        if is_matched {
            self.done.insert(old.symbol, new.symbol);
        }
        is_matched
    }
}

/// The two parts of a sum, without its constant.
fn sum(terms: &Terms, value: OffsetTerm) -> Option<[OffsetTerm; 2]> {
    match terms.node(value.symbol) {
        Node::Operation(Op::Addq, _, [a, b, _]) => Some([a, b]),
        _ => None,
    }
}

/// A value that is no sum, as one with 0: sums in loops begin so. It takes the place of the part that is of the same kind.
fn as_sum(terms: &Terms, value: OffsetTerm, [a, b]: [OffsetTerm; 2]) -> [OffsetTerm; 2] {
    let kind = |value: OffsetTerm| std::mem::discriminant(&terms.node(value.symbol));
    let zero = OffsetTerm::constant(0);
    if kind(a) == kind(value) && kind(b) != kind(value) { [value, zero] } else { [zero, value] }
}

struct Join<'a> {
    context: &'a mut ProofContext,
    /// The unknown for each pair of expressions with this difference of their constants.
    variables: HashMap<(TermNumber, TermNumber, u64), TermNumber>,
    done: HashMap<(TermNumber, TermNumber), Option<TermNumber>>,
    /// The common parts of sums and of values that are none, unless they are unknowns.
    sums: Option<HashMap<(TermNumber, OffsetTerm), OffsetTerm>>,
}

impl Join<'_> {
    fn machine(&mut self, old: &SymbolicMachine, new: &SymbolicMachine) -> SymbolicMachine {
        let registers = std::array::from_fn(|at| self.value(old.registers[at], new.registers[at]));
        let slots = old.slots.iter().filter_map(|&(offset, value)| {
            let at = new.slots.binary_search_by_key(&offset, |one| one.0).ok()?;
            Some((offset, self.value(value, new.slots[at].1)))
        });
        let slots = slots.collect();
        let bounds = old.bounds.iter().filter_map(|&(value, most)| {
            let other = new.bounds.iter().find(|other| other.1 == most)?;
            Some((self.value(value, other.0), most))
        });
        let bounds = bounds.collect();
        let inlined = old.inlined.iter().zip(&new.inlined).map(|(old, new)| Inlined {
            back: old.back,
            stack: self.value(old.stack, new.stack),
            saved: std::array::from_fn(|at| self.value(old.saved[at], new.saved[at])),
        });
        let inlined = inlined.collect();
        SymbolicMachine { pc: old.pc, registers, slots, bounds, inlined, executed: 0 }
    }

    fn value(&mut self, old: OffsetTerm, new: OffsetTerm) -> OffsetTerm {
        if old == new {
            return old;
        }
        if old.offset == new.offset
            && let Some(symbol) = self.symbol(old.symbol, new.symbol)
        {
            return OffsetTerm { symbol, offset: old.offset };
        }
        if let Some(joined) = self.sums(old, new) {
            return joined;
        }
        let stack = self.context.stack;
        self.context.is_frame_used |= old.symbol == stack || new.symbol == stack;
        let key = (old.symbol, new.symbol, new.offset.wrapping_sub(old.offset));
        let terms = &mut self.context.terms;
        let symbol = *self.variables.entry(key).or_insert_with(|| terms.fresh());
        OffsetTerm { symbol, offset: old.offset }
    }

    /// The common part of a sum and a value that is none. It depends on the difference of their constants only, so that two
    /// registers that differ by a constant on both paths differ by it afterwards.
    fn sums(&mut self, old: OffsetTerm, new: OffsetTerm) -> Option<OffsetTerm> {
        let constant = old.offset;
        let (old, new) = (OffsetTerm::of(old.symbol), new.plus(constant.wrapping_neg()));
        if let Some(known) = self.sums.as_ref()?.get(&(old.symbol, new)) {
            return Some(known.plus(constant));
        }
        let terms = &self.context.terms;
        let (first, second) = match (sum(terms, old), sum(terms, new)) {
            (Some(parts), None) => (parts, as_sum(terms, new, parts)),
            (None, Some(parts)) => (as_sum(terms, old.plus(new.offset.wrapping_neg()), parts), parts),
            _ => return None,
        };
        // The constant of the new sum is put back: the old value was made smaller by it.
        let shift = if sum(terms, new).is_some() { new.offset } else { 0 };
        let operands =
            [self.value(first[0], second[0]), self.value(first[1], second[1]), OffsetTerm::constant(0)];
        let joined = self.context.terms.operation(Op::Addq, 0, operands).plus(shift);
        self.sums.as_mut()?.insert((old.symbol, new), joined);
        Some(joined.plus(constant))
    }

    /// The common part of two expressions, unless they are of different kinds.
    fn symbol(&mut self, old: TermNumber, new: TermNumber) -> Option<TermNumber> {
        if old == new {
            return Some(old);
        }
        if let Some(&done) = self.done.get(&(old, new)) {
            return done;
        }
        let nodes = (self.context.terms.node(old), self.context.terms.node(new));
        let common = match nodes {
            (Node::Operation(a, f, left), Node::Operation(b, g, right)) if a == b && f == g => {
                let operands = std::array::from_fn(|at| self.value(left[at], right[at]));
                Some(Node::Operation(a, f, operands))
            }
            (Node::Load(a, left, from), Node::Load(b, right, other)) if a == b => {
                let memory = self.value(OffsetTerm::of(left), OffsetTerm::of(right)).symbol;
                Some(Node::Load(a, memory, self.value(from, other)))
            }
            (Node::Result(left, a), Node::Result(right, b)) if a == b => {
                Some(Node::Result(self.value(OffsetTerm::of(left), OffsetTerm::of(right)).symbol, a))
            }
            _ => None,
        };
        let terms = &mut self.context.terms;
        let symbol = common.map(|node| terms.symbol(node));
        if let (Some(symbol), Some(old), Some(new)) = (symbol, terms.loaded(old), terms.loaded(new)) {
            terms.mark_loaded(symbol, old & new);
        }
        self.done.insert((old, new), symbol);
        symbol
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::term::Node;

    fn join<T>(terms: Terms, test: impl FnOnce(&mut Join) -> T) -> T {
        let mut context = ProofContext::new(terms);
        let variables = HashMap::default();
        test(&mut Join {
            context: &mut context,
            variables,
            done: HashMap::default(),
            sums: Some(HashMap::default()),
        })
    }

    /// One image adds 4 before two paths meet, the other one after.
    #[test]
    fn constants_may_be_added_before_or_after() {
        let mut terms = Terms::new();
        let [x, y, z] = [(); 3].map(|()| OffsetTerm::of(terms.fresh()));
        let sum = terms.operation(Op::Addq, 0, [x.plus(8), y, OffsetTerm::constant(0)]);
        join(terms, |join| {
            for (old, new) in [(z, sum), (sum, z), (z.plus(12), sum), (sum, z.plus(12))] {
                let before = join.value(old.plus(4), new.plus(4));
                let after = join.value(old, new).plus(4);
                assert_eq!(before, after, "{old:?} {new:?}");
            }
        });
    }

    /// The loop `(a, b) = (a + step, a)`: after a few iterations the generalized state includes that of the next iteration.
    #[test]
    fn sums_of_loops_have_an_end() {
        let mut terms = Terms::new();
        let step = OffsetTerm::of(terms.fresh());
        let mut context = ProofContext::new(terms);
        let mut known = state(&context, [OffsetTerm::constant(0); 2]);
        for _ in 0..12 {
            let [a, b] = [1, 2].map(|register| known.original.get(register));
            let sum = context.terms.operation(Op::Addq, 0, [b, step, OffsetTerm::constant(0)]);
            let next = state(&context, [sum, a]);
            if known.includes(&context.terms, &next) {
                return;
            }
            known = known.generalize(&mut context, &next);
        }
        panic!("{}", context.terms.show(known.original.get(1)));
    }

    /// The states of both images with these values in two registers.
    fn state(context: &ProofContext, values: [OffsetTerm; 2]) -> PairState {
        let mut registers = [OffsetTerm::constant(0); 64];
        registers[1..3].copy_from_slice(&values);
        let machine = SymbolicMachine {
            pc: 0,
            registers,
            slots: Vec::new(),
            bounds: Vec::new(),
            inlined: Vec::new(),
            executed: 0,
        };
        PairState { original: machine.clone(), optimized: machine, memory: context.memory, generalized: 0 }
    }

    /// Shared expressions are taken apart once.
    #[test]
    fn sums_of_sums_take_linear_time() {
        let mut terms = Terms::new();
        let [mut sum, other] = [(); 2].map(|()| OffsetTerm::of(terms.fresh()));
        for _ in 0..60 {
            sum = terms.operation(Op::Addq, 0, [sum, sum, OffsetTerm::constant(0)]);
        }
        join(terms, |join| {
            let joined = join.value(sum, other);
            assert!(matches!(join.context.terms.node(joined.symbol), Node::Operation(Op::Addq, ..)));
        });
    }
}
