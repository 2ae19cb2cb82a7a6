//! Compares units of work with a recount from the sequence of all instructions.

use std::collections::HashMap;

use events::{LoadedImage, Unit};
use isa::Flags;

use crate::engine::{Detail, Engine, Run, Step, Summary};
use crate::guest::{compile, directory};
use crate::lockstep::compare_with;

const RA: usize = 26;
const SP: usize = 30;

/// A unit as recounted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    returned: bool,
    /// Executions of each address.
    executions: HashMap<u64, u64>,
}

/// Follows a program instruction by instruction.
struct Recount {
    /// Offsets of the function in its image.
    entries: [u64; 2],
    previous: Option<Step>,
    /// Return address, stack pointer and counts of the unit that is open.
    open: Option<(u64, u64, Counted)>,
    /// The addresses that the unit has executed since control was last transferred. They are no part of the unit if they leave its frames.
    block: Vec<u64>,
    units: Vec<Counted>,
}

impl Recount {
    fn step(&mut self, step: &Step) {
        let stack = step.registers[SP];
        if self.previous.as_ref().is_some_and(|before| transfers(before.word)) {
            self.count_block();
        }
        if self.open.as_ref().is_some_and(|(_, at, _)| stack > *at) {
            self.block.clear();
            self.close(false);
        }
        if let Some((return_address, at, _)) = &self.open
            && (*return_address, *at) == (step.address, stack)
        {
            self.close(true);
        }
        let previous = self.previous.replace(step.clone());
        let from_before = previous.as_ref().is_some_and(|before| before.address + 4 == step.address);
        if self.entries.contains(&step.address) && !from_before {
            let call =
                previous.and_then(|before| isa::decode(before.word)).is_some_and(|i| i.op.is(Flags::CALL));
            let left = self.open.as_ref().is_some_and(|(_, at, _)| stack == *at && call);
            if left {
                self.close(false);
            }
            self.open.get_or_insert_with(|| (step.registers[RA] & !3, stack, Counted::default()));
        }
        if self.open.is_some() {
            self.block.push(step.address);
        }
    }

    fn count_block(&mut self) {
        let Some((_, _, counted)) = &mut self.open else { return };
        for address in self.block.drain(..) {
            *counted.executions.entry(address).or_insert(0) += 1;
        }
    }

    fn close(&mut self, returned: bool) {
        self.count_block();
        self.units.extend(self.open.take().map(|(_, _, counted)| Counted { returned, ..counted }));
    }
}

fn transfers(word: u32) -> bool {
    isa::decode(word).is_some_and(|instruction| instruction.op.is(Flags::BRANCH))
}

/// Converts the engine's unit: the executions of blocks to those of their instructions.
fn spread(unit: &Unit, summary: &Summary) -> Counted {
    let mut executions = HashMap::new();
    for (id, times) in &unit.blocks {
        let block = &summary.counts.blocks[*id as usize];
        for address in (block.address..).step_by(4).take(block.words.len()) {
            *executions.entry(address).or_insert(0) += times;
        }
    }
    Counted { returned: unit.returned, executions }
}

/// The addresses of a function in a run's address space.
fn address(images: &[LoadedImage], function: &str) -> u64 {
    let found = images.iter().find_map(|image| {
        let file = image::Image::open(&image.path).ok()?;
        let symbol = file.symbol(function)?;
        symbol.function.then(|| symbol.address.wrapping_add(image.bias))
    });
    found.unwrap_or_else(|| panic!("no image has {function}"))
}

/// Counts the units of `function` in both ways; `returned` is known from the source of units.c.
fn check(function: &str, returned: &[bool]) {
    let directory = directory(&format!("units-{function}"));
    compile(&directory, "libunits.so", &["unitlib.c"], &["-shared", "-fPIC"]);
    let program = compile(&directory, "units", &["units.c"], &["-L.", "-lunits", "-Wl,-rpath,$ORIGIN"]);
    let mut run = Run::new(program, Detail::Nothing);
    run.unit = Some(function.into());
    let (_, summary) = Engine::start(&run).finish();
    let start = address(&summary.counts.images, function);
    let mut recount = Recount {
        entries: [start, start + 8],
        previous: None,
        open: None,
        block: Vec::new(),
        units: Vec::new(),
    };
    run.detail = Detail::Registers;
    let stepwise = compare_with(&run, |step| recount.step(step)).summary;
    recount.close(false);
    assert_eq!(recount.units.iter().map(|unit| unit.returned).collect::<Vec<_>>(), returned, "{function}");
    for (summary, is_stepwise) in [(&summary, false), (&stepwise, true)] {
        assert_eq!(summary.units.len(), recount.units.len(), "{function}");
        for (number, (unit, counted)) in summary.units.iter().zip(&recount.units).enumerate() {
            assert_eq!(unit.number, number as u64);
            assert_eq!(unit.returned, counted.returned);
            // A block of one instruction does not both set the stack pointer and go elsewhere, so that units that are left last
            // until the next one.
            if is_stepwise && !counted.returned {
                continue;
            }
            assert_eq!(spread(unit, summary), *counted, "{function}, unit {number}");
            assert_eq!(
                unit.instructions,
                counted.executions.values().sum::<u64>(),
                "{function}, unit {number}"
            );
        }
    }
    assert_eq!(summary.units.last().map(|unit| unit.returned), returned.last().copied());
}

#[test]
fn nested_escaped_and_unfinished_calls() {
    let mut returned = [true; 14];
    // escape, twice; finish.
    for unit in [10, 11, 13] {
        returned[unit] = false;
    }
    check("unit", &returned);
}

#[test]
fn calls_behind_the_computation_of_the_global_pointer() {
    check("near_unit", &[true; 3]);
}

#[test]
fn tail_calls_within_a_unit_and_into_one() {
    check("tail_unit", &[true; 3]);
}

#[test]
fn a_function_that_jumps_out_of_its_caller() {
    let directory = directory("units-helper");
    compile(&directory, "libunits.so", &["unitlib.c"], &["-shared", "-fPIC"]);
    let program = compile(&directory, "units", &["units.c"], &["-L.", "-lunits", "-Wl,-rpath,$ORIGIN"]);
    let mut run = Run::new(program, Detail::Nothing);
    run.unit = Some("helper".into());
    let (_, summary) = Engine::start(&run).finish();
    let depths = [0, 5, 2, 2, 1, 1, 3, 0, 1, 2, 3, 3, 1, 2];
    let helpers: usize = depths.iter().map(|depth| depth + 1).sum();
    assert_eq!(summary.units.len(), helpers);
    let left = summary.units.iter().filter(|unit| !unit.returned).count();
    assert_eq!(left, 2, "helper jumps out of two units");
}
