//! Samples in the Firefox Profiler's form: those of each thread over time.

use std::collections::HashMap;
use std::io::{self, Write};

use events::BlockId;
use fxprof_processed_profile::{
    CpuDelta, Profile, ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp,
};

use super::frames::LineFrames;
use super::source_lines;
use crate::names::file_name;
use crate::replay::Dictionary;

/// The samples of a thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadSamples {
    /// The name of its process.
    pub process_name: String,
    /// The host's number of the process.
    pub process: u32,
    /// Its number in the process.
    pub thread: u32,
    /// The samples in the order of time.
    pub samples: Vec<ChainSample>,
}

/// A sample.
#[derive(Clone, Debug)]
pub struct ChainSample {
    /// When, in nanoseconds or instructions.
    pub time: u64,
    /// The number of intervals that it stands for.
    pub weight: u32,
    /// The instructions of open calls and the one that is executed, as blocks of one instruction; the outermost first.
    pub chain: Vec<BlockId>,
}

/// Writes the samples of threads, `interval` nanoseconds apart. The number of samples; if it is 0, nothing is written.
pub fn write_samples(
    dictionary: &Dictionary,
    threads: &[ThreadSamples],
    interval: u64,
    out: &mut dyn Write,
) -> io::Result<u64> {
    let header = dictionary.trace.header();
    let start = ReferenceTimestamp::from_millis_since_unix_epoch(header.time as f64 * 1000.0);
    let name = file_name(&header.program);
    let mut profile = Profile::new(&name, start, SamplingInterval::from_nanos(interval.max(1)));
    profile.set_os_name("Linux on Alpha");
    profile.set_symbolicated(true);
    let frames = LineFrames::new(dictionary, &mut profile);
    let zero = Timestamp::from_nanos_since_reference(0);
    let first =
        threads.iter().flat_map(|thread| &thread.samples).map(|sample| sample.time).min().unwrap_or(0);
    let (mut processes, mut total) = (HashMap::new(), 0);
    for of_thread in threads {
        let key = of_thread.process;
        let new_process = || profile.add_process(&of_thread.process_name, key, zero);
        let process = *processes.entry(key).or_insert_with(new_process);
        let id = key.wrapping_add(of_thread.thread);
        let thread = profile.add_thread(process, id, zero, of_thread.thread == 0);
        let mut stacks = HashMap::new();
        for ChainSample { time, weight, chain } in &of_thread.samples {
            let stack = stack(&mut profile, &frames, &mut stacks, thread, chain);
            let delta = CpuDelta::from_micros(interval.saturating_mul(u64::from(*weight)) / 1000);
            let time = Timestamp::from_nanos_since_reference(time - first);
            profile.add_sample(thread, time, stack, delta, *weight as i32);
            total += u64::from(*weight);
        }
    }
    if total > 0 {
        source_lines::write(&profile, &frames, out)?;
    }
    Ok(total)
}

/// The stack of a chain of calls.
fn stack(
    profile: &mut Profile,
    frames: &LineFrames,
    stacks: &mut HashMap<(Option<StackHandle>, u32), StackHandle>,
    thread: ThreadHandle,
    chain: &[BlockId],
) -> Option<StackHandle> {
    let mut stack = None;
    for &block in chain {
        let Some(run) = frames.runs(block).first() else { continue };
        stack = Some(*stacks.entry((stack, run.frame)).or_insert_with(|| {
            let frame = profile.intern_frame(thread, frames.info(run.frame));
            profile.intern_stack(thread, stack, frame)
        }));
    }
    stack
}
