//! Which part of the execution is recorded: all of it, from one location to another, or units of work.
//!
//! Registers are unknown here, so that calls are followed by return addresses: a call adds one to its thread's stack, and
//! control that arrives at the last one has returned. A call that was left by `longjmp` is found when an older one returns.

use std::collections::HashMap;

use engine::{Plan, ProgramLocation, SymbolName, UnitEnd, UnitName, function_entries};
use events::LoadedImage;
use events::record::Mark;
use trace::ExecutionMode;

use super::extent::{CallTransfer, ExtentBlock};
use super::images::{ImageFiles, PlacedImage};

/// Return addresses that are kept of a thread; of a deeper recursion the oldest are forgotten.
const MOST_FRAMES: usize = 1 << 16;

/// The meaning of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LocationRole {
    UnitEnds,
    UnitBegins,
    From,
    Until,
}

/// Whether the part that is recorded has been reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PartState {
    #[default]
    Before,
    Active,
    Over,
}

/// The instructions of a block's execution that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedPortion {
    /// The first one.
    pub first: usize,
    /// The one after the last, if so many are executed.
    pub limit: usize,
}

impl RecordedPortion {
    /// The whole execution.
    pub const WHOLE: RecordedPortion = RecordedPortion { first: 0, limit: usize::MAX };
}

/// The treatment of a block that a thread enters.
#[derive(Clone, Debug, Default)]
pub(super) struct PlannedBlock {
    /// Marks before it.
    pub marks: Vec<Mark>,
    /// The recorded part of it; None if nothing is.
    pub portion: Option<RecordedPortion>,
}

/// A unit of work that has begun.
#[derive(Clone, Copy, Debug)]
struct RecordedUnit {
    /// Its number, if it is recorded.
    number: Option<u64>,
    /// The number of return addresses with which it ends: when one of these is gone.
    depth: Option<usize>,
}

/// A thread's open calls, and how much of it was executed and recorded.
#[derive(Debug, Default)]
struct ConvertedThread {
    /// Return addresses of calls.
    frames: Vec<u64>,
    /// How the last block of a program, and of the kernel, ended.
    ends: [Option<CallTransfer>; 2],
    open: Option<RecordedUnit>,
    executed: u64,
    recorded: u64,
}

/// The locations of a plan in a process.
#[derive(Debug, Default)]
struct ProcessLocations {
    images: Vec<PlacedImage>,
    /// Blocks whose image was looked for.
    seen: Vec<bool>,
    /// In order of addresses.
    roles: Vec<(u64, LocationRole)>,
}

/// Follows a plan.
pub(super) struct FollowedPlan {
    plan: Plan,
    unit: Option<UnitName>,
    state: PartState,
    /// Units that have begun.
    units: u64,
    threads: Vec<ConvertedThread>,
    processes: HashMap<u32, ProcessLocations>,
    kernel: Vec<(u64, LocationRole)>,
}

impl FollowedPlan {
    /// Of a plan; None if it is to record everything.
    pub fn new(plan: &Plan, kernel: PlacedImage, files: &ImageFiles) -> Option<FollowedPlan> {
        if plan.from.is_none() && plan.until.is_none() && plan.unit.is_none() {
            return None;
        }
        let unit = plan.unit.as_ref().map(|unit| UnitName::new(&unit.function));
        let state = if plan.from.is_some() { PartState::Before } else { PartState::Active };
        let mut followed = FollowedPlan {
            plan: plan.clone(),
            unit,
            state,
            units: 0,
            threads: Vec::new(),
            processes: HashMap::new(),
            kernel: Vec::new(),
        };
        followed.kernel = followed.roles_in(kernel, files);
        Some(followed)
    }

    /// The number of units that have begun.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// The addresses of the plan's locations in an image.
    fn roles_in(&self, mapped: PlacedImage, files: &ImageFiles) -> Vec<(u64, LocationRole)> {
        let file = files.image(mapped.file);
        let events::MappedImage { path, start, end, bias, .. } = files.described(mapped);
        let loaded = LoadedImage { path, start, end, bias };
        let mut roles = Vec::new();
        let locations = [(&self.plan.from, LocationRole::From), (&self.plan.until, LocationRole::Until)];
        for (location, role) in locations {
            let addresses = location.iter().flat_map(|location: &ProgramLocation| {
                let absolute = location.address().filter(|address| (start..end).contains(address));
                absolute.into_iter().chain(location.addresses_in(&loaded, file))
            });
            roles.extend(addresses.map(|address| (address, role)));
        }
        let entries = |name: &SymbolName| -> Vec<u64> {
            let symbols = if name.may_be_in(&loaded) { name.symbols_in(file) } else { Vec::new() };
            let functions = symbols.into_iter().filter(|symbol| symbol.function);
            functions.flat_map(|symbol| function_entries(file, symbol.address)).collect()
        };
        if let Some(unit) = &self.unit {
            for (name, role) in unit.functions().zip([LocationRole::UnitBegins, LocationRole::UnitEnds]) {
                roles.extend(entries(name).into_iter().map(|address| (address.wrapping_add(bias), role)));
            }
        }
        roles.sort_unstable();
        roles.dedup();
        roles
    }

    /// The roles of the instructions of a block.
    fn roles(
        &mut self,
        process: u32,
        number: u32,
        known: &ExtentBlock,
        files: &ImageFiles,
    ) -> &[(u64, LocationRole)] {
        let roles = if known.address >> 63 != 0 {
            &self.kernel
        } else {
            let locations = self.processes.entry(process).or_default();
            let index = number as usize;
            if locations.seen.len() <= index {
                locations.seen.resize(index + 1, false);
            }
            if !locations.seen[index] {
                locations.seen[index] = true;
                let (address, words) = (known.address, &known.words);
                let is_found = locations.images.iter().any(|&mapped| files.has(mapped, address, words));
                if let Some(image) = (!is_found).then(|| files.recognize(address, words)).flatten() {
                    let more = self.roles_in(image, files);
                    let locations = self.processes.entry(process).or_default();
                    locations.images.push(image);
                    locations.roles.extend(more);
                    locations.roles.sort_unstable();
                }
            }
            &self.processes[&process].roles
        };
        let first = roles.partition_point(|(address, _)| *address < known.address);
        let end = roles[first..].partition_point(|(address, _)| *address < known.end());
        &roles[first..first + end]
    }

    /// A thread of a process enters a block.
    pub fn enter(
        &mut self,
        thread: usize,
        process: u32,
        mode: ExecutionMode,
        number: u32,
        known: &ExtentBlock,
        files: &ImageFiles,
    ) -> PlannedBlock {
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, ConvertedThread::default);
        }
        let mut planned = PlannedBlock::default();
        let mut roles: [Option<usize>; 4] = [None; 4];
        if mode != ExecutionMode::Pal {
            for &(address, role) in self.roles(process, number, known, files) {
                let index = ((address - known.address) / 4) as usize;
                roles[role as usize].get_or_insert(index);
            }
        }
        let at_start = |role: LocationRole| roles[role as usize] == Some(0);
        let mut portion = RecordedPortion::WHOLE;
        let returned = match mode {
            ExecutionMode::Pal => None,
            _ => self.threads[thread].arrive(known.address, mode),
        };
        if self.state == PartState::Before {
            let first = self.first_instruction(thread, known.words.len(), roles[LocationRole::From as usize]);
            match first {
                Some(_) if self.unit.is_some() => self.state = PartState::Active,
                Some(0) => self.state = PartState::Active,
                Some(first) => portion.first = first,
                None => return planned,
            }
        }
        if self.unit.is_some() {
            self.end_unit(thread, returned, at_start(LocationRole::UnitEnds), &mut planned.marks);
            if at_start(LocationRole::UnitBegins) {
                self.begin_unit(thread, &mut planned.marks);
            }
            if self.threads[thread].open.is_none_or(|open| open.number.is_none()) {
                return planned;
            }
        } else if self.state == PartState::Over {
            return planned;
        }
        portion.limit = self.limit(thread, roles[LocationRole::Until as usize]);
        if portion.limit == 0 {
            self.finish_part(thread, &mut planned.marks);
        } else {
            planned.portion = Some(portion);
        }
        planned
    }

    /// The first instruction of a block at which recording begins, if it does.
    fn first_instruction(&self, thread: usize, length: usize, found: Option<usize>) -> Option<usize> {
        let Some(number) = self.plan.from.as_ref().and_then(ProgramLocation::instructions) else {
            return found;
        };
        let executed = self.threads[thread].executed;
        (executed + length as u64 > number).then(|| number.saturating_sub(executed) as usize)
    }

    /// How many instructions of a block may be recorded.
    fn limit(&self, thread: usize, found: Option<usize>) -> usize {
        match self.plan.until.as_ref().and_then(ProgramLocation::instructions) {
            Some(number) => number.saturating_sub(self.threads[thread].recorded) as usize,
            None => found.unwrap_or(usize::MAX),
        }
    }

    /// Ends the open unit, if it ends before this block.
    fn end_unit(&mut self, thread: usize, returned: Option<usize>, at_end: bool, marks: &mut Vec<Mark>) {
        let ConvertedThread { open, frames, .. } = &mut self.threads[thread];
        let Some(unit) = open else { return };
        let end = self.unit.as_ref().map(|unit| &unit.end);
        let mark = match (unit.depth, end) {
            (Some(depth), _) if frames.len() < depth => {
                if returned == Some(depth) {
                    Mark::UnitEnds
                } else {
                    Mark::UnitLeft
                }
            }
            (None, Some(UnitEnd::Entry(_))) if at_end => Mark::UnitEnds,
            (None, Some(UnitEnd::ReturnOf(_))) if at_end => {
                unit.depth = Some(frames.len());
                return;
            }
            _ => return,
        };
        let number = unit.number;
        *open = None;
        if let Some(number) = number {
            marks.push(mark(number));
            if self.plan.unit.as_ref().is_some_and(|plan| plan.is_over(number + 1)) {
                self.state = PartState::Over;
            }
        }
    }

    /// Begins a unit, unless one is open.
    fn begin_unit(&mut self, thread: usize, marks: &mut Vec<Mark>) {
        let (Some(unit), Some(plan)) = (&self.unit, &self.plan.unit) else { return };
        let ConvertedThread { open, frames, .. } = &mut self.threads[thread];
        // A unit that has not come to its end when the next one begins was left.
        let is_left = open.is_some_and(|open| open.depth.is_none() && unit.end != UnitEnd::Return);
        if self.state != PartState::Active || plan.is_over(self.units) || open.is_some() && !is_left {
            return;
        }
        marks.extend(open.take().and_then(|open| open.number).map(Mark::UnitLeft));
        let number = plan.wants(self.units).then_some(self.units);
        self.units += 1;
        let depth = (unit.end == UnitEnd::Return).then_some(frames.len());
        *open = Some(RecordedUnit { number, depth });
        marks.extend(number.into_iter().flat_map(|number| [Mark::Gap, Mark::UnitBegins(number)]));
    }

    /// Recording is over.
    fn finish_part(&mut self, thread: usize, marks: &mut Vec<Mark>) {
        self.state = PartState::Over;
        let open = self.threads[thread].open.take();
        marks.extend(open.and_then(|open| open.number).map(Mark::UnitCut));
    }

    /// A thread has executed the first instructions of a block, of which a portion may be recorded. Returns the marks after it.
    pub fn executed(
        &mut self,
        thread: usize,
        mode: ExecutionMode,
        known: &ExtentBlock,
        instructions: usize,
        portion: Option<RecordedPortion>,
    ) -> Vec<Mark> {
        let mut marks = Vec::new();
        let Some(followed) = self.threads.get_mut(thread) else { return marks };
        followed.executed += instructions as u64;
        if mode != ExecutionMode::Pal {
            let is_whole = instructions == known.words.len();
            let side = &mut followed.ends[usize::from(mode == ExecutionMode::User)];
            // An instruction that is repeated after an exception does not change how control came to it.
            *side = if is_whole { known.block_end } else { side.filter(|_| instructions == 0) };
        }
        let Some(RecordedPortion { first, limit }) = portion else { return marks };
        if instructions > first {
            followed.recorded += (instructions.min(limit) - first) as u64;
            if self.state == PartState::Before {
                self.state = PartState::Active;
            }
        }
        if instructions >= limit {
            self.finish_part(thread, &mut marks);
        }
        marks
    }

    /// The units that are still open at the end, with their threads.
    pub fn open_units(&mut self) -> Vec<(usize, u64)> {
        let open = self.threads.iter_mut().enumerate();
        open.filter_map(|(thread, followed)| Some((thread, followed.open.take()?.number?))).collect()
    }
}

impl ConvertedThread {
    /// Control arrives at an address. If a call has returned there, its position among the return addresses is returned,
    /// counted from 1; later ones were left.
    fn arrive(&mut self, address: u64, mode: ExecutionMode) -> Option<usize> {
        let end = &mut self.ends[usize::from(mode == ExecutionMode::User)];
        match *end {
            Some(CallTransfer::Call(back)) => {
                *end = None;
                if self.frames.len() == MOST_FRAMES {
                    self.frames.drain(..MOST_FRAMES / 2);
                }
                self.frames.push(back);
                None
            }
            before => {
                let count = self.frames.len();
                let is_return = before == Some(CallTransfer::Return);
                let depth = if self.frames.last() == Some(&address) {
                    count - 1
                } else {
                    self.frames.iter().rposition(|&back| is_return && back == address)?
                };
                *end = None;
                self.frames.truncate(depth);
                Some(depth + 1)
            }
        }
    }
}
