//! The Firefox Profiler's form: the calls of each thread over time, and units of work.
//!
//! Time is counted in instructions: one is a microsecond. Nothing is sampled: each "sample" of the profile
//! stands for all instructions that were executed in one call path without a change, its weight. Where
//! there are too many changes those of a stretch of time are put together, by call path; so totals are exact,
//! and only the order within the stretch is lost.

mod samples;

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use events::record::Mark;
use fxprof_processed_profile::debugid::DebugId;
use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, LibraryHandle, LibraryInfo, MarkerFieldFlags,
    MarkerFieldFormat, MarkerTiming, ProcessHandle, Profile, ReferenceTimestamp, SamplingInterval,
    StackHandle, StaticSchemaMarker, StaticSchemaMarkerField, StringHandle, Symbol, SymbolTable,
    ThreadHandle, Timestamp,
};

use crate::names::file_name;
use crate::replay::{
    CallStack, CodePlace, Dictionary, Executed, SelectedInstructions, Visitor, host_process,
};
use samples::Samples;

/// More call paths than these are put together under one.
const MOST_PATHS: usize = 1 << 20;
/// More samples than these of all threads are put together.
const MOST_SAMPLES: usize = 1 << 20;
/// More units of work than these are left out.
const MOST_UNITS: usize = 1 << 20;

/// Collects the calls of each thread.
pub struct Firefox<'a> {
    dictionary: &'a Dictionary<'a>,
    profile: Profile,
    /// By place.
    frames: Vec<Frame>,
    /// The call paths, by their last place and the path before it.
    paths: HashMap<(StackHandle, u32), StackHandle>,
    roots: HashMap<(ThreadHandle, u32), StackHandle>,
    unit_name: StringHandle,
    units: usize,
    streams: Vec<Stream>,
}

/// A thread on its way.
struct Stream {
    thread: ThreadHandle,
    stack: CallStack<StackHandle>,
    samples: Samples<StackHandle>,
    unit: Option<(u64, u64)>,
}

impl<'a> Firefox<'a> {
    /// Nothing executed yet.
    pub fn new(dictionary: &'a Dictionary<'a>) -> Firefox<'a> {
        let header = dictionary.trace.header();
        let start = ReferenceTimestamp::from_millis_since_unix_epoch(header.time as f64 * 1000.0);
        let mut profile =
            Profile::new(&file_name(&header.program), start, SamplingInterval::from_nanos(1000));
        profile.set_os_name("Linux on Alpha");
        profile.set_symbolicated(true);
        let unit_name = profile.intern_string(header.unit.as_deref().unwrap_or("unit of work"));
        Firefox {
            dictionary,
            frames: frames(dictionary, &mut profile),
            paths: HashMap::new(),
            roots: HashMap::new(),
            unit_name,
            units: 0,
            streams: streams(dictionary, &mut profile),
            profile,
        }
    }

    /// Writes the samples. Returns the number of instructions; if it is 0, nothing is written.
    pub fn write(mut self, out: &mut dyn Write) -> io::Result<u64> {
        let mut total = 0;
        for stream in self.streams {
            stream.samples.finish(|time, path, weight| {
                total += u64::from(weight);
                let (time, delta) = (instructions(time), CpuDelta::from_micros(weight.into()));
                self.profile.add_sample(stream.thread, time, Some(path), delta, weight as i32);
            });
        }
        if total > 0 {
            serde_json::to_writer(out, &self.profile)?;
        }
        Ok(total)
    }
}

impl Visitor for Firefox<'_> {
    fn mark(&mut self, stream: u32, before: u64, mark: Mark, is_selected: bool) -> io::Result<()> {
        let Stream { thread, stack, unit, .. } = &mut self.streams[stream as usize];
        stack.mark(mark);
        match mark {
            Mark::UnitBegins(number) => *unit = is_selected.then_some((number, before)),
            Mark::UnitEnds(_) | Mark::UnitLeft(_) => {
                if let Some((number, begin)) = unit.take().filter(|_| self.units < MOST_UNITS) {
                    let timing = MarkerTiming::Interval(instructions(begin), instructions(before));
                    let marker =
                        Unit { name: self.unit_name, number, instructions: before.saturating_sub(begin) };
                    self.profile.add_marker(*thread, timing, marker);
                    self.units += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        let facts = self.dictionary.facts(executed.execution.block);
        let Stream { thread, stack, samples, .. } = &mut self.streams[executed.stream as usize];
        let mut paths = Paths {
            thread: *thread,
            profile: &mut self.profile,
            frames: &self.frames,
            paths: &mut self.paths,
            roots: &mut self.roots,
        };
        stack.block(
            facts,
            &mut paths,
            |_, _| {},
            |paths, caller, _| match caller {
                Some(&caller) => paths.below(caller, facts.place),
                None => paths.root(facts.place),
            },
        );
        let count = match executed.selected {
            SelectedInstructions::None => return Ok(()),
            SelectedInstructions::All => facts.length(),
            SelectedInstructions::Some(which) => {
                which.iter().filter(|&&is_selected| is_selected).count() as u64
            }
        };
        let Some(&path) = stack.top() else { return Ok(()) };
        samples.add(path, executed.before.saturating_add(facts.length()), count);
        Ok(())
    }
}

/// Finds call paths.
struct Paths<'p> {
    thread: ThreadHandle,
    profile: &'p mut Profile,
    frames: &'p [Frame],
    paths: &'p mut HashMap<(StackHandle, u32), StackHandle>,
    roots: &'p mut HashMap<(ThreadHandle, u32), StackHandle>,
}

impl Paths<'_> {
    /// A path of one place.
    fn root(&mut self, place: u32) -> StackHandle {
        let Paths { thread, profile, frames, .. } = self;
        *self.roots.entry((*thread, place)).or_insert_with(|| {
            let frame = profile.intern_frame(*thread, info(frames[place as usize].clone()));
            profile.intern_stack(*thread, None, frame)
        })
    }

    /// The path to a place that is called at the end of another.
    fn below(&mut self, caller: StackHandle, place: u32) -> StackHandle {
        if let Some(&path) = self.paths.get(&(caller, place)) {
            return path;
        }
        let Paths { thread, profile, .. } = self;
        let is_full = self.paths.len() >= MOST_PATHS;
        let caller_path = if is_full {
            let name = profile.intern_string("(more call paths)");
            let frame = profile.intern_frame(*thread, info(Frame::Label(name)));
            profile.intern_stack(*thread, None, frame)
        } else {
            caller
        };
        let frame = profile.intern_frame(*thread, info(self.frames[place as usize].clone()));
        let path = profile.intern_stack(*thread, Some(caller_path), frame);
        if !is_full {
            self.paths.insert((caller, place), path);
        }
        path
    }
}

fn info(frame: Frame) -> FrameInfo {
    FrameInfo { frame, category_pair: CategoryHandle::OTHER.into(), flags: FrameFlags::empty() }
}

/// The time after this number of instructions.
fn instructions(count: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(count.saturating_mul(1000))
}

/// A frame for each place: in its image, by a symbol table with just these places; or by its name alone.
fn frames(dictionary: &Dictionary, profile: &mut Profile) -> Vec<Frame> {
    let images = dictionary.trace.images();
    let mut symbols = vec![Vec::new(); images.len()];
    let mut offsets = vec![None; dictionary.places.len()];
    for (block, facts) in dictionary.trace.blocks().iter().zip(&dictionary.blocks) {
        let place = &dictionary.places[facts.place as usize];
        let (Some(image), Some(name)) = (block.image, &place.name) else { continue };
        let offset = place.start.checked_sub(images[image as usize].start);
        let Some(offset) = offset.and_then(|offset| u32::try_from(offset).ok()) else { continue };
        if offsets[facts.place as usize].replace((image, offset)).is_none() {
            let symbol = Symbol { address: offset, size: Some(1), name: name.function.clone() };
            symbols[image as usize].push(symbol);
        }
    }
    let libraries: Vec<LibraryHandle> =
        images.iter().zip(symbols).map(|(image, symbols)| profile.add_lib(library(image, symbols))).collect();
    let frame = |(place, offset): (&CodePlace, &Option<(u32, u32)>)| match *offset {
        Some((image, offset)) => {
            Frame::RelativeAddressFromInstructionPointer(libraries[image as usize], offset)
        }
        None => Frame::Label(profile.intern_string(&place.label(0))),
    };
    dictionary.places.iter().zip(&offsets).map(frame).collect()
}

fn library(image: &events::Image, symbols: Vec<Symbol>) -> LibraryInfo {
    let (name, path) = (file_name(&image.path), image.path.display().to_string());
    let build_id: String = image.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    LibraryInfo {
        debug_name: name.clone(),
        name,
        debug_path: path.clone(),
        path,
        debug_id: DebugId::nil(),
        code_id: (!build_id.is_empty()).then_some(build_id),
        arch: Some("alpha".into()),
        symbol_table: Some(Arc::new(SymbolTable::new(symbols))),
    }
}

/// A thread for each stream, in its process.
fn streams(dictionary: &Dictionary, profile: &mut Profile) -> Vec<Stream> {
    let trace = dictionary.trace;
    let program = file_name(&trace.header().program);
    let share = (MOST_SAMPLES / trace.streams().len().max(1)).max(1);
    let start = instructions(0);
    let mut processes: HashMap<u32, ProcessHandle> = HashMap::new();
    let stream = |stream: &trace::Stream| {
        let host = host_process(trace, stream);
        let process = *processes.entry(stream.process).or_insert_with(|| {
            let name = format!("{program} (process {})", stream.process);
            profile.add_process(&name, host, start)
        });
        let thread = profile.add_thread(process, host.wrapping_add(stream.thread), start, stream.thread == 0);
        profile.set_thread_name(thread, &format!("thread {}.{}", stream.process, stream.thread));
        Stream { thread, stack: CallStack::default(), samples: Samples::new(share), unit: None }
    };
    trace.streams().iter().map(stream).collect()
}

/// The marker of a unit of work.
struct Unit {
    name: StringHandle,
    number: u64,
    instructions: u64,
}

impl StaticSchemaMarker for Unit {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Unit of work";
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.number}");
    const TABLE_LABEL: Option<&'static str> =
        Some("{marker.name} {marker.data.number}: {marker.data.instructions} instructions");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[
        StaticSchemaMarkerField {
            key: "number",
            label: "Number",
            format: MarkerFieldFormat::Integer,
            flags: MarkerFieldFlags::SEARCHABLE,
        },
        StaticSchemaMarkerField {
            key: "instructions",
            label: "Instructions",
            format: MarkerFieldFormat::Integer,
            flags: MarkerFieldFlags::empty(),
        },
    ];

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _field: u32) -> StringHandle {
        unreachable!("it has no such field")
    }

    fn number_field_value(&self, field: u32) -> f64 {
        if field == 0 { self.number as f64 } else { self.instructions as f64 }
    }
}
