//! Runs both sides at the same time, and compares them instruction by instruction.

use std::collections::{HashMap, VecDeque};

use crate::edge::Edge;
use crate::engine::{Engine, Run, Step, Summary};
use crate::qemu::Qemu;

/// The common result of both sides.
pub struct Agreement {
    pub stdout: String,
    pub summary: Summary,
    /// The origins of accepted differences.
    pub explained: Vec<&'static str>,
}

/// Runs a program on both sides; panics at the first difference that is not explained.
pub fn compare(run: &Run) -> Agreement {
    compare_with(run, |_| {})
}

/// As [`compare`]; `visit` sees every instruction.
pub fn compare_with(run: &Run, mut visit: impl FnMut(&Step)) -> Agreement {
    let mut ours = Engine::start(run);
    let mut theirs = Qemu::start(run, ours.ids());
    let mut last = VecDeque::new();
    let mut executions = HashMap::new();
    let mut edge = Edge::default();
    let mut number = 0u64;
    loop {
        let (our, their) = (ours.step(), theirs.step());
        let difference = match (&our, &their) {
            (None, None) => break,
            (Some(our), Some(their)) => edge.unexplained(our, their),
            _ => Some("only one side goes on".into()),
        };
        if let Some(difference) = difference {
            let address =
                |step: Option<Step>| step.map_or("the end".into(), |step| format!("{:#x}", step.address));
            panic!(
                "instruction {number}: ours at {}, qemu at {}: {difference}\nbefore: {last:x?}\nqemu: {:#?}\n{}",
                address(our),
                address(their),
                theirs.news,
                ours.abandon()
            );
        }
        let Some(step) = our else { break };
        visit(&step);
        *executions.entry(step.address).or_insert(0) += 1;
        if last.len() == 12 {
            last.pop_front();
        }
        last.push_back(step.address);
        number += 1;
    }
    let (stdout, summary) = ours.finish();
    let (their_stdout, their_end) = theirs.finish();
    assert_eq!((&stdout, &summary.end), (&their_stdout, &their_end));
    assert_eq!(summary.instructions, number, "the number of instructions");
    assert_eq!(by_address(&summary), executions, "the counts of the blocks, spread over their instructions");
    Agreement { stdout, summary, explained: edge.reasons }
}

/// How often each address was executed, according to the counts of blocks.
pub fn by_address(summary: &Summary) -> HashMap<u64, u64> {
    let mut all = HashMap::new();
    for (block, times) in summary.counts.blocks.iter().zip(&summary.counts.executions) {
        for address in (block.address..).step_by(4).take(block.words.len()) {
            if *times > 0 {
                *all.entry(address).or_insert(0) += times;
            }
        }
    }
    all
}
