//! Steps of programs that a function interprets, such as a database's virtual machine: each belongs to an object.

use std::collections::HashMap;

use image::{CompiledExpression, Expression, Image, Symbol};
use isa::{TransferKind, TransferTarget};

use super::Entered;
use super::rules::{ObjectRule, StepRule};
use super::site::{CompiledTemplate, MOST_ELEMENTS, template};
use super::table::ObjectTable;
use crate::program_location::word_at;

/// The most steps whose objects are kept.
const MOST_STEPS: usize = 1 << 16;
/// How deep objects may be below each other.
const DEEPEST: usize = 64;

/// Where a step begins, with the compiled expressions of its rule.
#[derive(Clone, Debug)]
pub(super) struct StepSite {
    pub(super) rule: usize,
    at: CompiledExpression,
    elements: CompiledExpression,
    node: CompiledExpression,
    parent: CompiledExpression,
    covers: Vec<(CompiledExpression, CompiledExpression)>,
    name: CompiledTemplate,
}

/// A call of a function that interprets.
#[derive(Clone, Copy, Debug)]
pub(super) struct SteppedCall {
    pub(super) rule: usize,
    /// The object of the call, to which steps belong that no element covers.
    pub(super) whole: u32,
    pub(super) arguments: [u64; 6],
}

/// The objects of steps, by the interpreted program (the function's first argument) and the step.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownSteps {
    programs: HashMap<u64, HashMap<u64, u32>>,
    count: usize,
}

impl KnownSteps {
    /// A program is new, or changed.
    pub(super) fn forget(&mut self, program: u64) {
        let steps = self.programs.remove(&program);
        self.count -= steps.map_or(0, |steps| steps.len());
    }

    fn find(&self, program: u64, step: u64) -> Option<u32> {
        self.programs.get(&program)?.get(&step).copied()
    }

    fn add(&mut self, program: u64, step: u64, object: u32) {
        if self.count >= MOST_STEPS {
            *self = KnownSteps::default();
        }
        self.count += 1;
        self.programs.entry(program).or_default().insert(step, object);
    }
}

impl StepSite {
    /// Makes a site from the compiled expressions of a rule, which `next` returns in the order of [`expressions`]. None if an
    /// expression did not compile for the image.
    pub(super) fn new(
        rule: usize,
        (of, steps): (&ObjectRule, &StepRule),
        next: &mut dyn FnMut() -> Option<CompiledExpression>,
    ) -> Option<StepSite> {
        let [at, elements, node, parent] = [(); 4].map(|()| next());
        let covers: Vec<_> = steps.covers.iter().map(|_| (next(), next())).collect();
        let name = of.name.as_ref().map(|name| template(name, next));
        let covers =
            covers.into_iter().map(|(when, extent)| Some((when?, extent?))).collect::<Option<_>>()?;
        let (at, elements, node, parent) = (at?, elements?, node?, parent?);
        Some(StepSite { rule, at, elements, node, parent, covers, name: name? })
    }

    /// The object of the step at which control is.
    pub(super) fn object(
        &self,
        call: &SteppedCall,
        known: &mut KnownSteps,
        table: &mut ObjectTable,
        entered: &Entered,
    ) -> u32 {
        let Some(step) = self.at.value(entered) else { return call.whole };
        let program = call.arguments[0];
        if let Some(object) = known.find(program, step) {
            return object;
        }
        let element = self.covering(entered);
        let node = element.and_then(|index| self.node.value(&Entered { index, ..*entered }));
        let object = node.and_then(|node| self.node_object(node, call.whole, table, entered, 0));
        let object = object.unwrap_or(call.whole);
        known.add(program, step, object);
        object
    }

    /// The element that covers the step most closely.
    fn covering(&self, entered: &Entered) -> Option<u64> {
        let count = self.elements.value(entered)?.min(MOST_ELEMENTS);
        let extent = |index| {
            let entered = Entered { index, ..*entered };
            let covers = |(when, _): &&(CompiledExpression, CompiledExpression)| {
                when.value(&entered).is_some_and(|when| when != 0)
            };
            let covering = self.covers.iter().filter(covers);
            covering.filter_map(|(_, extent)| extent.value(&entered)).min()
        };
        let extents = (0..count).filter_map(|index| Some((extent(index)?, index)));
        extents.min().map(|(_, index)| index)
    }

    /// The object of a number, below those above it.
    fn node_object(
        &self,
        node: u64,
        whole: u32,
        table: &mut ObjectTable,
        entered: &Entered,
        depth: usize,
    ) -> Option<u32> {
        let of_node = Entered { index: node, ..*entered };
        let parent = match self.parent.value(&of_node)? {
            0 => whole,
            parent if depth < DEEPEST => self.node_object(parent, whole, table, entered, depth + 1)?,
            _ => return None,
        };
        let name = self.name.text(&of_node).filter(|name| !name.is_empty())?;
        Some(table.number(parent, name, Some(node)))
    }
}

/// The expressions of a rule at its steps, in the order in which a site has them.
pub(super) fn expressions<'r>(
    rule: &'r ObjectRule,
    steps: &'r StepRule,
) -> impl Iterator<Item = &'r Expression> {
    let names = rule.name.iter().flat_map(|name| name.expressions());
    steps.expressions().chain(names)
}

/// The link-time addresses of the first instructions of blocks of a function that end with an indirect jump: no call and no return.
pub(super) fn dispatches(file: &Image, function: &Symbol) -> Vec<u64> {
    let (mut found, mut first, set) = (Vec::new(), function.address, file.instruction_set());
    let mut address = function.address;
    while let Some(word) = word_at(file, address).filter(|_| address < function.address + function.size) {
        let next = address + set.length(word);
        if let Some(transfer) = set.summary(word).and_then(|summary| summary.transfer) {
            let is_indirect = matches!(transfer.target, TransferTarget::Register { .. });
            if transfer.kind == TransferKind::Jump && is_indirect {
                found.push(first);
            }
            first = next;
        }
        address = next;
    }
    found
}
