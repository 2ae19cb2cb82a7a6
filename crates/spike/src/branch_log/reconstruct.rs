//! From the records of a log to the blocks that were executed.

use std::collections::HashMap;

use super::LogImage;
use super::log::{LogHeader, LogRecord};
use super::record_points::{RecordMeaning, RecordPoints, is_left};
use crate::assemble::assemble;
use crate::error::Problem;
use crate::output;
use crate::program::{CodeBlock, CodeBlockId, CodeExit, LENGTH, LiftedInstruction, Program};

/// An image whose executions a log shows.
#[derive(Debug)]
pub struct LoggedImage {
    /// The original image.
    pub(super) program: Program,
    /// The meaning of each distance of a record.
    meanings: HashMap<u32, RecordMeaning>,
    known: RecordPoints,
    /// The original addresses of the blocks, and their numbers of instructions.
    extents: Vec<(u64, u32)>,
    /// The blocks that call the system before their end, and their instructions up to there.
    calls: HashMap<CodeBlockId, u32>,
}

/// The instructions of a block up to its first system call, from which it may not return.
fn before_return(block: &CodeBlock) -> Option<u32> {
    let is_call = |one: &LiftedInstruction| one.word == isa::encode::call_pal(CALLSYS).unwrap_or_default();
    block.instructions.iter().position(is_call).map(|at| at as u32 + 1)
}

/// A block that a thread executed, or a part of one that calls the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconstructedStep {
    /// The process.
    pub process: u32,
    /// The thread pointer.
    pub thread: u64,
    /// The number of the image.
    pub image: usize,
    /// The block in the original image.
    pub block: CodeBlockId,
    /// The link-time address of its first instruction that was executed.
    pub address: u64,
    /// The number of instructions that were executed.
    pub instructions: u32,
    /// Whether the block begins: not if it goes on after a system call.
    pub begins: bool,
}

/// The result of a reconstruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconstruction {
    /// Records that were read.
    pub records: u64,
    /// Records that were reserved and never written, because their threads were killed.
    pub torn: u64,
    /// Records that are of no record point of the images.
    pub foreign: u64,
    /// Times that control went elsewhere than the code says: into the handler of a signal, or by records that are missing.
    pub interruptions: u64,
    /// Blocks that were executed.
    pub blocks: u64,
    /// Instructions that were executed.
    pub instructions: u64,
}

impl LoggedImage {
    /// Prepares the reconstruction, by the plan of an image that was patched, the original image, and the address of the log's
    /// switch in the patched one.
    pub fn new(plan: LogImage, program: Program, switch: u64) -> Result<LoggedImage, Problem> {
        let known = RecordPoints::of(&program, plan.record_points.iter().flatten());
        let assembly = assemble(&plan.program, &plan.layout, output::code_base(&plan.program.elf))?;
        let distance = |address: u64| (switch.wrapping_sub(address) / LENGTH) as u32;
        let meanings =
            plan.returns(&assembly).map(|(address, meaning)| (distance(address), meaning)).collect();
        let calls =
            program.blocks.iter().zip(0..).filter_map(|(block, id)| Some((id, before_return(block)?)));
        let calls = calls.collect();
        Ok(LoggedImage { meanings, known, extents: plan.extents, calls, program })
    }

    /// Whether executions of the instruction at a link-time address are in the log.
    pub fn logs(&self, address: u64) -> bool {
        let code = &self.program.code;
        let index = code.index(address).map_or(0, |index| index as usize + 1);
        let block = code.block_at[..index].iter().rev().find_map(|block| *block);
        block.is_some_and(|block| self.known.has(block))
    }

    /// The original address of a block.
    pub fn address(&self, block: CodeBlockId) -> u64 {
        self.extents[block as usize].0
    }

    /// The original image.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Address, procedure and text of each instruction of a step.
    pub fn listing(&self, step: &ReconstructedStep) -> impl Iterator<Item = String> {
        let program = self.program();
        let name = &program.procedures[program.blocks[step.block as usize].procedure as usize].name;
        let first = program.code.index(step.address).unwrap_or_default();
        (first..first + step.instructions).map(move |index| {
            let address = program.code.address(index);
            format!("{address:#x} {name} {}", program.code.disassemble(index))
        })
    }
}

/// The knowledge of a thread in an image.
#[derive(Clone, Debug, Default)]
struct LoggedThread {
    /// The block that it executed last.
    last: Option<CodeBlockId>,
    /// The block that it executes next, if a record has said so.
    next: Option<CodeBlockId>,
    /// The block that has called the system, and whose other instructions follow if it returns.
    in_call: Option<CodeBlockId>,
    /// The blocks behind which it was interrupted.
    interrupted: Vec<CodeBlockId>,
}

/// The call of PALcode that is a system call.
const CALLSYS: u32 = 0x83;
/// The deepest nesting of handlers of signals that is followed.
const MOST_INTERRUPTED: usize = 16;

/// Reads the records of a log, and passes on each block that was executed, in order.
pub fn reconstruct(
    images: &[LoggedImage],
    header: &LogHeader,
    file: &[u8],
    mut step: impl FnMut(ReconstructedStep),
) -> Reconstruction {
    let mut found = Reconstruction::default();
    let mut threads: HashMap<(u32, u64, u32), LoggedThread> = HashMap::new();
    for record in header.records(file) {
        found.records += 1;
        let Some(record) = record else {
            found.torn += 1;
            continue;
        };
        let image = images.get(record.image as usize);
        let Some((image, &meaning)) =
            image.and_then(|image| Some((image, image.meanings.get(&record.distance)?)))
        else {
            found.foreign += 1;
            continue;
        };
        let key = (record.process, record.thread, record.image);
        let thread = threads.entry(key).or_default();
        let mut executed = |block: CodeBlockId, before: u32, instructions: u32| {
            found.instructions += u64::from(instructions);
            let LogRecord { process, thread, image, .. } = record;
            let address = images[image as usize].extents[block as usize].0 + u64::from(before) * LENGTH;
            let begins = before == 0;
            step(ReconstructedStep {
                process,
                thread,
                image: image as usize,
                block,
                address,
                instructions,
                begins,
            });
        };
        // The system call has returned.
        if let Some(block) = thread.in_call.take() {
            let before = image.calls[&block];
            executed(block, before, image.extents[block as usize].1 - before);
        }
        let (blocks, is_interruption) = thread.proceed(image, meaning);
        found.interruptions += u64::from(is_interruption);
        found.blocks += blocks.len() as u64;
        for block in blocks {
            let instructions = image.extents[block as usize].1;
            let before = image.calls.get(&block).filter(|&&before| before < instructions);
            thread.in_call = before.map(|_| block);
            executed(block, 0, before.copied().unwrap_or(instructions));
        }
    }
    found
}

impl LoggedThread {
    /// The blocks that a record adds, and whether it does not follow from the code.
    fn proceed(&mut self, image: &LoggedImage, meaning: RecordMeaning) -> (Vec<CodeBlockId>, bool) {
        let (known, program) = (&image.known, &image.program);
        let expected = self.next.take();
        let (mut blocks, mut is_interruption) = (Vec::new(), false);
        if expected.is_none_or(|expected| meaning != RecordMeaning::Head(expected)) {
            let path = self.last.and_then(|last| known.path(program, last, meaning));
            let resumed = || self.interrupted.last().and_then(|&last| known.path(program, last, meaning));
            match path {
                Some(path) => blocks = path,
                None if self.last.is_some_and(|last| goes_on(program, last)) => {
                    is_interruption = true;
                    self.interrupted.extend(self.last);
                    if self.interrupted.len() > MOST_INTERRUPTED {
                        self.interrupted.remove(0);
                    }
                }
                None => {
                    if let Some(path) = resumed() {
                        blocks = path;
                        self.interrupted.pop();
                    }
                }
            }
        }
        match meaning {
            RecordMeaning::Head(block) => blocks.push(block),
            RecordMeaning::Way(_, to) if known.is_logged(to) => {
                self.next = Some(to);
                self.last = blocks.last().copied().or(self.last);
                return (blocks, is_interruption);
            }
            RecordMeaning::Way(_, to) => blocks.push(to),
        }
        while let Some(next) = blocks.last().and_then(|&last| known.next(program, last)) {
            blocks.push(next);
        }
        self.last = blocks.last().copied();
        (blocks, is_interruption)
    }
}

/// Whether the code says where control goes behind a block.
fn goes_on(program: &Program, block: CodeBlockId) -> bool {
    let block = &program.blocks[block as usize];
    !is_left(block) && !matches!(block.exit, CodeExit::Leave | CodeExit::Jump { .. })
}
