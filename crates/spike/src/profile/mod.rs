//! Profiles: how often blocks and edges of an image were executed.
//!
//! A profile is JSON, so that other tools can read it. It names a block by its number within its procedure: the procedures'
//! signatures say whether a procedure of another image has the same flow graph.

mod collect;
mod file;
pub mod matching;
mod signature;
mod sources;

use serde::{Deserialize, Serialize};

pub use collect::{EdgeCounter, EdgeCounts};
pub use file::read;
pub use signature::signature;
pub use sources::image_name;

use crate::program::{CodeExit, ExternalCall, Program};

/// The version of the format.
const VERSION: u32 = 1;

/// Executions of the blocks and edges of some images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageProfiles {
    /// The version of the format.
    pub version: u32,
    /// The images.
    pub images: Vec<ImageProfile>,
}

/// Executions of the blocks and edges of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageProfile {
    /// The file's name without directories.
    pub name: String,
    /// A hash of the code.
    pub code: String,
    /// The number of runs.
    pub runs: u64,
    /// All procedures, in the order of the image.
    pub procedures: Vec<ProcedureProfile>,
}

/// Executions of the blocks and edges of a procedure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcedureProfile {
    /// The name.
    pub name: String,
    /// The signature of the flow graph, in hexadecimal.
    pub signature: String,
    /// How often each block was executed; empty if none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<u64>,
    /// The shapes of the blocks, if one was executed, so that those of a later build can be recognized.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shapes: Vec<BlockShape>,
    /// Conditional branches: the block, and how often the branch was taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<(u32, u64)>,
    /// Indirect jumps: the block, the number of the target in its list, and how often control went there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jumps: Vec<(u32, u32, u64)>,
    /// Indirect calls: the block, the number of the procedure, and how often it was called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<(u32, u32, u64)>,
    /// Calls and jumps to other images: the block, the low 16 bits of the target's address, and how often.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<(u32, u16, u64)>,
}

/// The shape of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockShape {
    /// A hash of the instructions, without addresses and what follows from the layout of data.
    pub strict: u32,
    /// A hash of the operations.
    pub loose: u32,
    /// The number of instructions, without those that do nothing.
    pub length: u32,
    /// The numbers of the successors within the procedure.
    pub next: Vec<u32>,
}

/// An indirect call in the profiled run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndirectCall {
    /// The block that the call ends.
    pub block: u32,
    /// The procedure that was called.
    pub procedure: u32,
    /// How often.
    pub count: u64,
}

impl ImageProfile {
    /// The profile of a program whose blocks have counts.
    pub fn of(program: &Program, name: &str, calls: &[IndirectCall]) -> ImageProfile {
        let mut procedures: Vec<ProcedureProfile> = Vec::with_capacity(program.procedures.len());
        let mut number_of = vec![(0, 0); program.blocks.len()];
        for (procedure, index) in program.procedures.iter().zip(0..) {
            for (&block, number) in procedure.blocks.iter().zip(0..) {
                number_of[block as usize] = (index, number);
            }
        }
        for procedure in &program.procedures {
            let mut one = ProcedureProfile {
                name: procedure.name.clone(),
                signature: format!("{:016x}", signature(program, procedure)),
                ..ProcedureProfile::default()
            };
            let blocks = || procedure.blocks.iter().map(|&block| &program.blocks[block as usize]);
            if blocks().any(|block| block.count > 0) {
                one.blocks = blocks().map(|block| block.count).collect();
                one.shapes = signature::shapes(program, procedure);
            }
            for (block, number) in blocks().zip(0..) {
                match &block.exit {
                    CodeExit::Conditional { count, .. } if *count > 0 => one.taken.push((number, *count)),
                    CodeExit::Jump { counts, .. } => {
                        let counts = counts.iter().zip(0..).filter(|(count, _)| **count > 0);
                        one.jumps.extend(counts.map(|(&count, target)| (number, target, count)));
                    }
                    _ => {}
                }
            }
            procedures.push(one);
        }
        for call in calls {
            let (procedure, block) = number_of[call.block as usize];
            let one: &mut ProcedureProfile = &mut procedures[procedure];
            one.calls.push((block, call.procedure, call.count));
        }
        for call in &program.external_calls {
            let (procedure, block) = number_of[call.block as usize];
            let one: &mut ProcedureProfile = &mut procedures[procedure];
            one.external.push((block, call.low, call.count));
        }
        ImageProfile { name: name.into(), code: signature::code(program), runs: 1, procedures }
    }

    /// Adds the counts of another profile of the same code.
    fn add(&mut self, other: &ImageProfile) {
        self.runs += other.runs;
        for (one, other) in self.procedures.iter_mut().zip(&other.procedures) {
            one.add(other);
        }
    }

    /// Instructions that were executed.
    pub fn executed(&self) -> u64 {
        let of = |one: &ProcedureProfile| {
            one.blocks
                .iter()
                .zip(&one.shapes)
                .map(|(&count, shape)| count.saturating_mul(shape.length.into()))
                .fold(0, u64::saturating_add)
        };
        self.procedures.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Whether it is a profile of this very code.
    pub fn is_of(&self, program: &Program) -> bool {
        self.code == signature::code(program) && self.procedures.len() == program.procedures.len()
    }

    /// Gives the program's blocks the counts of procedures with the same number. Returns the indirect calls.
    pub fn apply(&self, program: &mut Program) -> Vec<IndirectCall> {
        let mut calls = Vec::new();
        for (procedure, one) in program.procedures.iter().zip(&self.procedures) {
            if one.blocks.len() != procedure.blocks.len() {
                continue;
            }
            for (&block, &count) in procedure.blocks.iter().zip(&one.blocks) {
                program.blocks[block as usize].count = count;
            }
            let block_of = |number: u32| procedure.blocks.get(number as usize).copied();
            for &(number, taken) in &one.taken {
                let Some(block) = block_of(number) else { continue };
                if let CodeExit::Conditional { count, .. } = &mut program.blocks[block as usize].exit {
                    *count = taken;
                }
            }
            for &(number, target, times) in &one.jumps {
                let Some(block) = block_of(number) else { continue };
                if let CodeExit::Jump { counts, .. } = &mut program.blocks[block as usize].exit
                    && let Some(count) = counts.get_mut(target as usize)
                {
                    *count = times;
                }
            }
            let known = one.calls.iter().filter(|call| (call.1 as usize) < self.procedures.len());
            calls.extend(known.filter_map(|&(number, procedure, count)| {
                Some(IndirectCall { block: block_of(number)?, procedure, count })
            }));
            let external = one.external.iter().filter_map(|&(number, low, count)| {
                Some(ExternalCall { block: block_of(number)?, low, count })
            });
            program.external_calls.extend(external);
        }
        calls
    }
}

impl ProcedureProfile {
    fn add(&mut self, other: &ProcedureProfile) {
        let length = self.blocks.len().max(other.blocks.len());
        self.blocks.resize(length, 0);
        if self.shapes.is_empty() {
            self.shapes.clone_from(&other.shapes);
        }
        self.blocks
            .iter_mut()
            .zip(&other.blocks)
            .for_each(|(count, more)| *count = count.saturating_add(*more));
        merge(&mut self.taken, &other.taken, |one| one.0, |one| &mut one.1);
        merge(&mut self.jumps, &other.jumps, |one| (one.0, one.1), |one| &mut one.2);
        merge(&mut self.calls, &other.calls, |one| (one.0, one.1), |one| &mut one.2);
        merge(&mut self.external, &other.external, |one| (one.0, one.1), |one| &mut one.2);
    }
}

/// Adds counts with the same key.
fn merge<T: Copy, K: Ord>(all: &mut Vec<T>, other: &[T], key: fn(&T) -> K, count: fn(&mut T) -> &mut u64) {
    all.extend_from_slice(other);
    all.sort_by_key(key);
    all.dedup_by(|next, one| {
        let is_same = key(next) == key(one);
        if is_same {
            *count(one) = count(one).saturating_add(*count(next));
        }
        is_same
    });
}
