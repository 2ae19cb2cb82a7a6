//! Executes a trace on several processors of a described machine, in time.

use events::Thread;
use machine::{Multiprocessor, NextStep};
use trace::interleave::{Schedule, Turn};
use trace::{Chunk, Error, Trace};

use crate::replay::{Replay, ReplayPosition};

/// The part of a trace that is executed on several processors.
#[derive(Clone, Copy)]
pub struct MultiprocessorReplay<'a> {
    /// Which processor executes what.
    pub schedule: Schedule,
    /// Units of work after which counting begins.
    pub warm_up: u64,
    /// The selected part of the trace, if it is not all that is read.
    pub selected: Option<&'a Replay<'a>>,
}

/// Why the execution is not whole.
#[derive(Debug)]
pub struct ReplayProblems {
    /// The errors of chunks that could not be read, and were skipped.
    pub errors: Vec<Error>,
    /// No more units of work ended than those that warm the machine up: nothing was counted.
    pub is_warming: bool,
}

/// Executes the selected chunks of a trace. `progress` is called with the number of instructions executed since the last call.
pub fn replay(
    trace: &Trace,
    MultiprocessorReplay { schedule, warm_up, selected }: MultiprocessorReplay,
    is_wanted: impl Fn(&Chunk) -> bool,
    model: &mut Multiprocessor,
    progress: &mut dyn FnMut(u64),
) -> ReplayProblems {
    trace.blocks().iter().for_each(|block| model.define(block));
    // Where nobody waits for others, short turns change nothing: processors execute what they get in the order of time.
    let quantum = if schedule.is_saturated { schedule.time_slice } else { schedule.quantum };
    let mut interleaved = trace.interleaved_where(Schedule { quantum, ..schedule }, is_wanted);
    let (mut errors, mut reported, mut turns) = (Vec::new(), 0, 0u64);
    let (mut is_warming, mut is_over) = (warm_up > 0, false);
    let mut positions = vec![ReplayPosition::default(); trace.streams().len()];
    let mut records = Vec::new();
    loop {
        let number = match model.next_step() {
            NextStep::Continue => {
                model.step();
                continue;
            }
            NextStep::Feed(number) => number,
            NextStep::AllIdle if is_over => break,
            // The streams that the others waited for have ended since.
            NextStep::AllIdle => {
                model.wake();
                continue;
            }
        };
        match interleaved.next_of(number as u32) {
            Ok(Turn::Slice(slice)) => {
                let process = trace.streams()[slice.stream as usize].process;
                let words = match selected {
                    None => slice.words,
                    Some(replay) => {
                        records.clear();
                        replay.select(&mut positions[slice.stream as usize], slice.words, &mut records);
                        &records
                    }
                };
                model.feed(number, Thread { process, number: slice.stream }, words);
            }
            Ok(Turn::Idle) => model.idle(number),
            // Others have not executed all that they got.
            Ok(Turn::Over) => {
                is_over = true;
                model.idle(number);
            }
            Err(error) => errors.push(error),
        }
        if is_warming && model.units() >= warm_up {
            model.reset_counts();
            (is_warming, reported) = (false, 0);
        }
        turns += 1;
        if turns.is_multiple_of(1 << 14) {
            let executed = model.instructions();
            progress(executed - reported);
            reported = executed;
        }
    }
    model.end();
    ReplayProblems { errors, is_warming }
}
