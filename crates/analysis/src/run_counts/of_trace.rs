//! The counts of a trace.

use std::collections::{BTreeMap, HashMap};
use std::io;

use events::record::Mark;
use events::{BlockId, Counts, LoadedImage, Unit};
use table::Table;
use trace::Trace;

use super::{RunCounts, RunDescription};
use crate::code_counts::{CodeRows, code_by_class, code_table};
use crate::names::Names;
use crate::pairing::ImageIdentity;
use crate::profile::Attribution;
use crate::replay::{
    Accesses, Dictionary, Executed, Filter, NotInTrace, Replay, ReplayOrder, Selection, Visitor,
};
use crate::unit_class::UnitClass;
use crate::units::Measurement;

/// Counts the executions of blocks, in all and by unit of work.
struct TraceCounter<'a> {
    trace: &'a Trace,
    executions: Vec<u64>,
    /// The unit of each stream.
    current: Vec<Option<CurrentUnit>>,
    units: Vec<Unit>,
}

/// A unit of work that has not ended, and the executions of blocks in it.
#[derive(Clone, Default)]
struct CurrentUnit {
    unit: Unit,
    executions: HashMap<BlockId, u64>,
}

impl TraceCounter<'_> {
    fn end(&mut self, stream: u32, returned: bool) {
        if let Some(CurrentUnit { unit, executions }) = self.current[stream as usize].take() {
            let mut blocks: Vec<(BlockId, u64)> = executions.into_iter().collect();
            blocks.sort_unstable();
            self.units.push(Unit { returned, blocks, ..unit });
        }
    }
}

impl Visitor for TraceCounter<'_> {
    fn mark(&mut self, stream: u32, _before: u64, mark: Mark, _is_selected: bool) -> io::Result<()> {
        match mark {
            Mark::UnitBegins(number) => {
                let unit = Unit { number, ..Unit::default() };
                self.current[stream as usize] = Some(CurrentUnit { unit, ..CurrentUnit::default() });
            }
            Mark::UnitEnds(_) => self.end(stream, true),
            Mark::UnitLeft(_) | Mark::UnitCut(_) => self.end(stream, false),
            Mark::SystemCall(number) => {
                if let Some(CurrentUnit { unit, .. }) = &mut self.current[stream as usize] {
                    unit.system_calls.push((number, 1));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        let block = executed.execution.block;
        self.executions[block as usize] += 1;
        if let Some(current) = &mut self.current[executed.stream as usize] {
            current.unit.instructions += self.trace.blocks()[block as usize].words.len() as u64;
            *current.executions.entry(block).or_default() += 1;
        }
        Ok(())
    }
}

/// The units of each class, the classes in the order of the instructions in them.
fn classes(trace: &Trace, units: &[Unit]) -> Vec<UnitClass> {
    let mut classes: BTreeMap<&str, UnitClass> = BTreeMap::new();
    for unit in units {
        if let Some(class) = trace.unit_classes().get(&unit.number) {
            classes.entry(class).or_insert_with(|| UnitClass::new(class)).add(unit);
        }
    }
    let mut classes: Vec<UnitClass> = classes.into_values().collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.instructions()));
    classes
}

/// The counts of a trace.
pub struct TraceCounts {
    /// The counts of all that it recorded, by function and image.
    pub counts: RunCounts,
    /// A table of lines or instructions, if it is wanted.
    pub code: Option<Table>,
    /// The errors of parts that cannot be read.
    pub problems: Vec<trace::Error>,
}

/// Counts all that a trace recorded; also by line or instruction if these rows are given.
pub fn of_trace(trace: &Trace, code: Option<CodeRows>) -> Result<TraceCounts, NotInTrace> {
    let names = Names::of_trace(trace);
    let dictionary = Dictionary::new(trace, &names);
    let (accesses, filter) = (Accesses::new(trace), Filter::new(&Selection::default(), &dictionary)?);
    let replay =
        Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter, order: ReplayOrder::Time };
    let mut counter = TraceCounter {
        trace,
        executions: vec![0; trace.blocks().len()],
        current: vec![None; trace.streams().len()],
        units: Vec::new(),
    };
    let problems = replay.run(&mut counter, &mut |_| {}).expect("counting writes nothing");
    let header = trace.header();
    let description = RunDescription {
        program: header.program.to_string_lossy().into_owned(),
        arguments: header.arguments.clone(),
        cpu: header.cpu.clone(),
        environment: header.environment.clone(),
        notes: Vec::new(),
    };
    let loaded = |image: &events::MappedImage| LoadedImage {
        path: image.path.clone(),
        start: image.start,
        end: image.end,
        bias: image.bias,
    };
    let images: Vec<LoadedImage> = trace.images().iter().map(loaded).collect();
    let images = ImageIdentity::of_images(&images);
    let (blocks, executions) = (trace.blocks().to_vec(), counter.executions.clone());
    let executed = || Counts { blocks, executions, ..Counts::default() };
    if !trace.unit_classes().is_empty() {
        let attribution = &Attribution::of(trace.blocks(), &names);
        let classes = classes(trace, &counter.units);
        let counted = (attribution, &counter.executions[..]);
        let counts = RunCounts::of_attributed(description, images, counted, &classes, Vec::new(), None);
        let code = code.map(|rows| code_by_class(rows, &executed(), &names, &classes));
        return Ok(TraceCounts { counts, code, problems });
    }
    let measurement = Measurement { units: counter.units, warm_up: 0, steady: true, last_batch: None };
    let unit = header.unit.as_deref().map(|function| (function, measurement));
    let measured = unit.as_ref().map(|(_, measurement)| measurement);
    let code = code.map(|rows| code_table(rows, &executed(), &names, measured));
    let executions = (0..).zip(counter.executions);
    let counts = RunCounts::of(description, images, trace.blocks(), &names, executions, unit);
    Ok(TraceCounts { counts, code, problems })
}
