//! The optimizer: from an image and a profile to a better image.

use std::collections::HashMap;
use std::path::Path;

use isa::InstructionSet;

use crate::hot_cold::{self, ProcedureOutcome};
use crate::layout::{self, LayoutSteps};
use crate::linkage;
use crate::profile::{ImageProfile, ImageProfiles, IndirectCall};
use crate::program::{CodeBlock, CodeExit, LENGTH, PredictedTarget, Program, Reference};
use crate::{Error, Problem, lift, output};

/// The optimizations to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The steps of code layout.
    pub layout: LayoutSteps,
    /// Whether instructions that do nothing are removed.
    pub strip_nops: bool,
    /// Whether overhead of calls is removed.
    pub linkage: bool,
    /// Whether the hot parts of procedures are optimized at the expense of the cold ones.
    pub hot_cold: bool,
    /// With that, whether hot parts of small procedures are inlined.
    pub inlining: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { layout: LayoutSteps::ALL, strip_nops: true, linkage: true, hot_cold: true, inlining: true }
    }
}

/// An optimized image.
#[derive(Debug)]
pub struct Optimized {
    /// The file.
    pub bytes: Vec<u8>,
    /// The program that was written.
    pub program: Program,
    /// Its code, with the distances that it was given.
    pub code_bytes: u64,
    /// Instructions that did nothing and were removed, in the image and in the profiled run.
    pub nops: (usize, u64),
    /// Instructions that were executed in the profiled run.
    pub executed: u64,
    /// The overhead of calls that was removed.
    pub linkage: linkage::LinkageReduction,
    /// The largest count of a block that hot-cold optimization and layout took for cold.
    pub threshold: u64,
    /// The outcome of each procedure; empty without hot-cold optimization.
    pub outcomes: Vec<ProcedureOutcome>,
}

impl Optimized {
    /// Instructions of the profiled run that are not executed any more, but for branches that the layout removes or adds.
    pub fn removed(&self) -> u64 {
        let reductions = self.outcomes.iter().map(|outcome| outcome.reduction.total());
        let linkage = self.linkage.global_pointers.saturating_add(self.linkage.tail_calls);
        reductions.fold(self.nops.1.saturating_add(linkage), u64::saturating_add)
    }
}

/// Reads an image for optimization.
pub fn open(path: &Path) -> Result<Program, Error> {
    let image = image::Image::open(path)?;
    image.check_sections()?;
    let lifted = match image.instruction_set().elf_machine() == InstructionSet::elf_machine(&isa::Alpha) {
        true => lift::lift(image.bytes().to_vec()),
        false => Err(Problem::NotAlpha),
    };
    lifted.map_err(|problem| Error::Unsuitable { path: path.into(), problem })
}

/// The part of a profile that is the program's.
pub fn find<'a>(profile: &'a ImageProfiles, program: &Program) -> Option<&'a ImageProfile> {
    profile.images.iter().find(|image| image.is_of(program))
}

/// Optimizes a program whose blocks have counts.
pub fn optimize(
    mut program: Program,
    calls: &[IndirectCall],
    options: Options,
) -> Result<Optimized, Problem> {
    let executed = executed(&program);
    if options.linkage {
        program.predicted = predicted(&program, calls);
    }
    let nops = if options.strip_nops { strip_nops(&mut program) } else { (0, 0) };
    let linkage =
        if options.linkage { linkage::optimize(&mut program) } else { linkage::LinkageReduction::default() };
    let threshold = layout::threshold(&program);
    let outcomes = if options.hot_cold {
        hot_cold::optimize(&mut program, threshold, options.inlining)
    } else {
        Vec::new()
    };
    let layout = layout::layout(&program, calls, options.layout);
    let (bytes, assembly) = output::write(&program, &layout)?;
    let code_bytes = assembly.words.len() as u64 * LENGTH;
    Ok(Optimized { bytes, program, code_bytes, nops, executed, linkage, threshold, outcomes })
}

/// Where each jump through a register led most often in the profiled run.
fn predicted(program: &Program, calls: &[IndirectCall]) -> HashMap<u32, PredictedTarget> {
    let within = calls.iter().map(|call| {
        let entry = program.procedures[call.procedure as usize].blocks[0];
        (call.block, PredictedTarget::Block(entry), call.count)
    });
    let external = program
        .external_calls
        .iter()
        .map(|call| (call.block, PredictedTarget::External(call.low), call.count));
    let switches = program.blocks.iter().zip(0..).flat_map(|(block, id)| match &block.exit {
        CodeExit::Jump { targets, counts } => {
            let targets = targets.iter().map(|&target| PredictedTarget::Block(target));
            targets.zip(counts).map(|(target, &count)| (id, target, count)).collect()
        }
        _ => Vec::new(),
    });
    let mut most: HashMap<u32, (u64, PredictedTarget)> = HashMap::new();
    for (block, target, count) in within.chain(external).chain(switches) {
        let Some(jump) = program.blocks[block as usize].jump() else { continue };
        let best = most.entry(jump.origin).or_insert((0, target));
        if count > best.0 {
            *best = (count, target);
        }
    }
    most.into_iter().map(|(origin, (_, target))| (origin, target)).collect()
}

/// Instructions that were executed in the profiled run.
fn executed(program: &Program) -> u64 {
    let of_block = |block: &CodeBlock| {
        let has_branch = matches!(block.exit, CodeExit::Branch { .. } | CodeExit::Conditional { .. });
        block.count.saturating_mul(block.instructions.len() as u64 + u64::from(has_branch))
    };
    program.blocks.iter().map(of_block).fold(0, u64::saturating_add)
}

/// Removes what the compiler and the linker filled gaps with. Returns how many instructions, and how many executions.
pub fn strip_nops(program: &mut Program) -> (usize, u64) {
    let Program { blocks, procedures, .. } = program;
    let (mut count, mut executions) = (0, 0);
    for block in blocks.iter_mut().filter(|block| procedures[block.procedure as usize].frozen.is_none()) {
        let before = block.instructions.len();
        block.instructions.retain(|one| !one.is_nop() || one.reference != Reference::None);
        let removed = before - block.instructions.len();
        count += removed;
        executions += block.count * removed as u64;
    }
    (count, executions)
}
