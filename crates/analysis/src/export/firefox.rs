//! The Firefox Profiler's form: the calls of each thread over time, and units of work.
//!
//! Time is counted in instructions: one is a microsecond. Nothing is sampled: each "sample" of the profile
//! stands for all instructions that were executed in one call path without a change, its weight. Where
//! there are too many changes those of a stretch of time are put together, by call path; so totals are exact,
//! and only the order within the stretch is lost.
//!
//! Frames are lines of functions: the line that was executed, and in each caller the line of the call. Categories are kinds
//! of images.

mod frames;
mod sampled;
mod samples;
mod source_lines;

use std::collections::HashMap;
use std::io::{self, Write};

use events::record::Mark;
use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags, MarkerFieldFormat,
    MarkerTiming, ProcessHandle, Profile, ReferenceTimestamp, SamplingInterval, StackHandle,
    StaticSchemaMarker, StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp,
};

use crate::names::file_name;
use crate::replay::{CallStack, Dictionary, Executed, SelectedInstructions, Visitor, host_process};
use frames::LineFrames;
pub use sampled::{ChainSample, ThreadSamples, write_samples};
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
    frames: LineFrames,
    /// The call paths, by their last frame and the path before it.
    paths: HashMap<(StackHandle, u32), StackHandle>,
    roots: HashMap<(ThreadHandle, u32), StackHandle>,
    unit_name: StringHandle,
    units: usize,
    streams: Vec<FirefoxThread>,
}

/// A thread on its way.
struct FirefoxThread {
    thread: ThreadHandle,
    /// For each open call, the path of its callers, each with the line that calls.
    stack: CallStack<Option<StackHandle>>,
    /// The frame of the instruction that was executed last.
    last: Option<u32>,
    /// By frame, the path below its last callers, which it has most of the time.
    recent: Vec<Option<(Option<StackHandle>, StackHandle)>>,
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
        let frames = LineFrames::new(dictionary, &mut profile);
        Firefox {
            dictionary,
            paths: HashMap::new(),
            roots: HashMap::new(),
            unit_name,
            units: 0,
            streams: streams(dictionary, frames.number(), &mut profile),
            frames,
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
            source_lines::write(&self.profile, &self.frames, out)?;
        }
        Ok(total)
    }
}

impl Visitor for Firefox<'_> {
    fn mark(&mut self, stream: u32, before: u64, mark: Mark, is_selected: bool) -> io::Result<()> {
        let FirefoxThread { thread, stack, unit, .. } = &mut self.streams[stream as usize];
        stack.mark(mark, self.dictionary.trace.instruction_set());
        match mark {
            Mark::UnitBegins(number) => *unit = is_selected.then_some((number, before)),
            Mark::UnitEnds(_) | Mark::UnitLeft(_) | Mark::UnitCut(_) => {
                if let Some((number, begin)) = unit.take().filter(|_| self.units < MOST_UNITS) {
                    let timing = MarkerTiming::Interval(instructions(begin), instructions(before));
                    let marker = UnitMarker {
                        name: self.unit_name,
                        number,
                        instructions: before.saturating_sub(begin),
                    };
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
        let block = executed.execution.block;
        let facts = self.dictionary.facts(block);
        let runs = self.frames.runs(block);
        let FirefoxThread { thread, stack, last, recent, samples, .. } =
            &mut self.streams[executed.stream as usize];
        let mut paths = Paths {
            thread: *thread,
            profile: &mut self.profile,
            frames: &self.frames,
            paths: &mut self.paths,
            roots: &mut self.roots,
        };
        let from = std::mem::replace(last, runs.last().map(|run| run.frame));
        stack.block(
            (facts, executed.execution.addresses),
            &mut paths,
            |_, _| {},
            |paths, caller, replaced| match (replaced, caller, from) {
                // A tail call is a call from where the one that it replaces came from.
                (Some(callers), ..) => callers,
                (None, Some(&callers), Some(from)) => Some(paths.path(callers, from)),
                _ => None,
            },
        );
        let Some(&callers) = stack.top() else { return Ok(()) };
        for run in runs {
            let count = match executed.selected {
                SelectedInstructions::None => return Ok(()),
                SelectedInstructions::All => run.instructions.len() as u64,
                SelectedInstructions::Some(which) => {
                    which[run.instructions.clone()].iter().filter(|&&is_selected| is_selected).count() as u64
                }
            };
            if count > 0 {
                let end = executed.before.saturating_add(run.instructions.end as u64);
                let path = match recent[run.frame as usize] {
                    Some((before, path)) if before == callers => path,
                    _ => {
                        let path = paths.path(callers, run.frame);
                        recent[run.frame as usize] = Some((callers, path));
                        path
                    }
                };
                samples.add(path, end, count);
            }
        }
        Ok(())
    }
}

/// Finds call paths.
struct Paths<'p> {
    thread: ThreadHandle,
    profile: &'p mut Profile,
    frames: &'p LineFrames,
    paths: &'p mut HashMap<(StackHandle, u32), StackHandle>,
    roots: &'p mut HashMap<(ThreadHandle, u32), StackHandle>,
}

impl Paths<'_> {
    /// The path of a frame below its callers.
    #[inline]
    fn path(&mut self, callers: Option<StackHandle>, frame: u32) -> StackHandle {
        match callers {
            Some(callers) => self.below(callers, frame),
            None => self.root(frame),
        }
    }

    /// A path of one frame.
    fn root(&mut self, frame: u32) -> StackHandle {
        let Paths { thread, profile, frames, .. } = self;
        *self.roots.entry((*thread, frame)).or_insert_with(|| {
            let frame = profile.intern_frame(*thread, frames.info(frame));
            profile.intern_stack(*thread, None, frame)
        })
    }

    /// The path of a frame that is called at the end of another path.
    fn below(&mut self, callers: StackHandle, frame: u32) -> StackHandle {
        if let Some(&path) = self.paths.get(&(callers, frame)) {
            return path;
        }
        let Paths { thread, profile, .. } = self;
        let is_full = self.paths.len() >= MOST_PATHS;
        let callers_path = if is_full {
            let frame = Frame::Label(profile.intern_string("(more call paths)"));
            let category_pair = CategoryHandle::OTHER.into();
            let more =
                profile.intern_frame(*thread, FrameInfo { frame, category_pair, flags: FrameFlags::empty() });
            profile.intern_stack(*thread, None, more)
        } else {
            callers
        };
        let handle = profile.intern_frame(*thread, self.frames.info(frame));
        let path = profile.intern_stack(*thread, Some(callers_path), handle);
        if !is_full {
            self.paths.insert((callers, frame), path);
        }
        path
    }
}

/// The time after this number of instructions.
fn instructions(count: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(count.saturating_mul(1000))
}

/// A thread for each stream, in its process.
fn streams(dictionary: &Dictionary, frames: usize, profile: &mut Profile) -> Vec<FirefoxThread> {
    let trace = dictionary.trace;
    let program = file_name(&trace.header().program);
    let share = (MOST_SAMPLES / trace.streams().len().max(1)).max(1);
    let start = instructions(0);
    let mut processes: HashMap<u32, ProcessHandle> = HashMap::new();
    let stream = |stream: &trace::ThreadStream| {
        let host = host_process(trace, stream);
        let process = *processes.entry(stream.process).or_insert_with(|| {
            let name = format!("{program} (process {})", stream.process);
            profile.add_process(&name, host, start)
        });
        let thread = profile.add_thread(process, host.wrapping_add(stream.thread), start, stream.thread == 0);
        profile.set_thread_name(thread, &format!("thread {}.{}", stream.process, stream.thread));
        FirefoxThread {
            thread,
            stack: CallStack::default(),
            last: None,
            recent: vec![None; frames],
            samples: Samples::new(share),
            unit: None,
        }
    };
    trace.streams().iter().map(stream).collect()
}

/// The marker of a unit of work.
struct UnitMarker {
    name: StringHandle,
    number: u64,
    instructions: u64,
}

impl StaticSchemaMarker for UnitMarker {
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
