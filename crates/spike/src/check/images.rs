//! The two images, as far as a proof needs them: their instructions, where procedures are entered, which words of the data
//! refer to which code, and facts about the procedures of the original.
//!
//! Symbols say where a procedure of the original is likely to be in the optimized image. Nothing relies on that: it is
//! tried first, and then proved like anything else.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::convention::{CLOBBERED, GP, PV, R31, RA};
use super::machine::ImageCode;
use super::term::ImageSide;
use super::unwind_tables::UnwindTables;
use crate::elf::Elf;
use crate::error::Problem;
use crate::lift;
use crate::program::{
    BranchTarget, CodeBlock, CodeBlockId, CodeExit, Frozen, LENGTH, ProcedureId, Program, Reference,
};

/// Both images.
#[derive(Debug)]
pub struct Images {
    /// The code of the original.
    pub original: ImageCode,
    /// The code of the optimized image.
    pub optimized: ImageCode,
    /// Where a procedure is probably entered in the original, by the address in the optimized image.
    pub hints: HashMap<u64, u64>,
    /// The code that a word of the data refers to, in each image.
    pub words: HashMap<u64, (u64, u64)>,
    /// Addresses in the optimized image that words of the data refer to, by those in the original.
    pub labels: HashMap<u64, Vec<u64>>,
    /// The addresses that an indirect jump of the original may lead to.
    pub tables: HashMap<u64, Vec<u64>>,
    /// Where blocks of the original begin.
    pub leaders: HashSet<u64>,
    /// The original's procedures.
    pub procedures: Vec<OriginalProcedure>,
    /// The arguments that are read from the beginning of each block on.
    pub needs: HashMap<u64, u64>,
    owners: HashMap<u64, ProcedureId>,
}

/// A procedure of the original.
#[derive(Clone, Debug, Default)]
pub struct OriginalProcedure {
    /// Its name.
    pub name: String,
    /// Its entry.
    pub entry: u64,
    /// The address behind the computation of the global pointer, if that can be entered.
    pub second_entry: Option<u64>,
    /// Whether it computes the global pointer from its own address.
    pub computes_gp: bool,
    /// Whether its code relies on a global pointer.
    pub uses_gp: bool,
    /// The global pointer of its code.
    pub gp: u64,
    /// The registers that it, or what it calls, may change.
    pub changes: u64,
    /// Whether callers rely on the global pointer after it.
    pub keeps_gp: bool,
}

impl Images {
    /// Reads both.
    pub fn new(program: &Program, optimized: &Elf) -> Result<Images, Problem> {
        let mut images = Images {
            original: original_code(program)?,
            optimized: optimized_code(optimized)?,
            hints: HashMap::default(),
            words: HashMap::default(),
            labels: HashMap::default(),
            tables: HashMap::default(),
            leaders: HashSet::default(),
            procedures: procedures(program),
            needs: super::needs::by_address(program, |block| address(program, block)),
            owners: HashMap::default(),
        };
        for (block, id) in program.blocks.iter().zip(0..) {
            let start = address(program, id);
            images.leaders.insert(start);
            let count = block.instructions.len() + usize::from(has_branch(block));
            for at in 0..count as u64 {
                images.owners.insert(start + at * LENGTH, block.procedure);
            }
            if let CodeExit::Jump { targets, .. } = &block.exit {
                let jump = start + (block.instructions.len() as u64).saturating_sub(1) * LENGTH;
                images.tables.insert(jump, targets.iter().map(|&to| address(program, to)).collect());
            }
        }
        images.find_entries(program);
        images.hint(program, optimized);
        Ok(images)
    }

    /// The procedure of the original that an instruction is in.
    pub fn owner(&self, address: u64) -> Option<&OriginalProcedure> {
        self.owners.get(&address).map(|&owner| &self.procedures[owner as usize])
    }

    /// The number of the procedure.
    pub fn owner_id(&self, address: u64) -> Option<ProcedureId> {
        self.owners.get(&address).copied()
    }

    fn find_entries(&mut self, program: &Program) {
        for (procedure, own) in program.procedures.iter().zip(&self.procedures) {
            self.original
                .entries
                .extend([Some(own.entry), own.second_entry].into_iter().flatten().map(|at| (at, at)));
            if procedure.frozen != Some(Frozen::NoSymbol) {
                self.original.starts.insert(own.entry);
            }
        }
    }

    fn hint(&mut self, program: &Program, optimized: &Elf) {
        let named = |elf: &Elf| {
            let mut all: HashMap<(String, usize), u64> = HashMap::default();
            let mut counts: HashMap<String, usize> = HashMap::default();
            for symbol in elf.symbols.iter().filter(|one| one.is_function() && one.section != 0) {
                let count = counts.entry(symbol.name.clone()).or_default();
                all.insert((symbol.name.clone(), *count), symbol.value);
                *count += 1;
            }
            all
        };
        let second: HashMap<u64, u64> =
            self.procedures.iter().filter_map(|one| Some((one.entry, one.second_entry?))).collect();
        let new = named(optimized);
        for (key, old) in named(&program.elf) {
            let Some(&new) = new.get(&key) else { continue };
            if !self.original.entries.contains_key(&old) {
                continue;
            }
            self.hints.insert(new, old);
            if let Some(second) = second.get(&old) {
                self.hints.insert(new + (second - old), *second);
            }
        }
        self.hint_behind_branches();
        self.optimized.entries = self.hints.clone();
    }

    /// Where the head of a procedure lies elsewhere, a branch stands at its entry, and calls go to where that leads.
    fn hint_behind_branches(&mut self) {
        let behind = |(&new, &old): (&u64, &u64)| {
            let branch = self.optimized.at(new).filter(|one| one.op == isa::Op::Br && one.ra() == R31)?;
            Some((branch.target(new)?, old))
        };
        let found: Vec<(u64, u64)> = self.hints.iter().filter_map(behind).collect();
        for (new, old) in found {
            self.hints.entry(new).or_insert(old);
        }
    }

    /// Adds what a word of the data refers to.
    pub fn add_word(&mut self, at: u64, original: u64, optimized: u64) {
        self.words.insert(at, (original, optimized));
        let labels = self.labels.entry(original).or_default();
        if !labels.contains(&optimized) {
            labels.push(optimized);
        }
    }
}

fn has_branch(block: &CodeBlock) -> bool {
    matches!(block.exit, CodeExit::Branch { .. } | CodeExit::Conditional { .. })
}

/// The address of a block of the original.
fn address(program: &Program, id: CodeBlockId) -> u64 {
    let block = &program.blocks[id as usize];
    let first = block.instructions.first().map(|one| one.origin).or(match &block.exit {
        CodeExit::Branch { branch, .. } | CodeExit::Conditional { branch, .. } => Some(branch.origin),
        _ => None,
    });
    first.map_or(0, |first| program.code.address(first))
}

fn original_code(program: &Program) -> Result<ImageCode, Problem> {
    let section = |&(start, end): &(u32, u32)| {
        let words = &program.code.words[start as usize..end as usize];
        (program.code.address(start), words.iter().map(|&word| isa::decode(word)).collect())
    };
    Ok(ImageCode {
        side: ImageSide::Original,
        sections: program.code.ranges.iter().map(section).collect(),
        entries: HashMap::default(),
        starts: HashSet::default(),
        unwinding: UnwindTables::read(&program.elf)?,
    })
}

fn optimized_code(elf: &Elf) -> Result<ImageCode, Problem> {
    let sections = elf.sections.iter().filter(|section| lift::is_moved(section)).map(|section| {
        let words = elf.data(section).as_chunks::<4>().0.iter();
        (section.address, words.map(|word| isa::decode(u32::from_le_bytes(*word))).collect())
    });
    Ok(ImageCode {
        side: ImageSide::Optimized,
        sections: sections.collect(),
        entries: HashMap::default(),
        starts: HashSet::default(),
        unwinding: UnwindTables::read(elf)?,
    })
}

/// The effect of a procedure, and the others that it goes on to.
#[derive(Clone, Default)]
struct ProcedureEffect {
    changes: u64,
    calls: Vec<ProcedureId>,
    jumps: Vec<ProcedureId>,
}

fn procedures(program: &Program) -> Vec<OriginalProcedure> {
    let mut effects = vec![ProcedureEffect::default(); program.procedures.len()];
    let mut keeps = vec![false; program.procedures.len()];
    for block in &program.blocks {
        add_effects(program, block, &mut effects[block.procedure as usize]);
    }
    effects.iter().flat_map(|one| &one.calls).for_each(|&callee| keeps[callee as usize] = true);
    let mut is_changed = true;
    while std::mem::take(&mut is_changed) {
        for at in 0..effects.len() {
            let ProcedureEffect { calls, jumps, .. } = &effects[at];
            let all = calls.iter().chain(jumps);
            let changes = all.fold(effects[at].changes, |set, &one| set | effects[one as usize].changes);
            is_changed |= std::mem::replace(&mut effects[at].changes, changes) != changes;
            for &to in &effects[at].jumps {
                is_changed |= keeps[at] && !std::mem::replace(&mut keeps[to as usize], true);
            }
        }
    }
    let facts = |(at, procedure): (usize, &crate::program::Procedure)| {
        let entry = procedure.blocks.first().copied();
        let second_entry = program.second_entry(at as ProcedureId).map(|id| address(program, id));
        let blocks = || procedure.blocks.iter().map(|&id| &program.blocks[id as usize]);
        let first = blocks().next().map(|block| block.instructions.as_slice()).unwrap_or_default();
        let is_computed = |one: &crate::program::LiftedInstruction| {
            matches!(one.reference, Reference::GlobalPointerHigh(_))
                && isa::decode(one.word).is_some_and(|one| one.rb() == PV)
        };
        let reads_gp = |one: &crate::program::LiftedInstruction| {
            isa::decode(one.word)
                .is_some_and(|one| one.op.row().operands == isa::Operands::RaMemory && one.rb() == GP)
        };
        OriginalProcedure {
            name: procedure.name.clone(),
            entry: entry.map_or(0, |id| address(program, id)),
            second_entry,
            computes_gp: first.iter().any(is_computed),
            uses_gp: blocks().flat_map(|block| &block.instructions).any(reads_gp),
            gp: procedure.global_pointer,
            changes: effects[at].changes & CLOBBERED,
            keeps_gp: keeps[at],
        }
    };
    program.procedures.iter().enumerate().map(facts).collect()
}

fn add_effects(program: &Program, block: &CodeBlock, effect: &mut ProcedureEffect) {
    use isa::InstructionSet;
    let owner = |target: CodeBlockId| program.blocks[target as usize].procedure;
    for one in &block.instructions {
        let callee = match one.reference {
            Reference::Branch(BranchTarget::Block(target)) => Some(owner(target)),
            Reference::CallThrough(slot) => program.data_at(slot).map(owner),
            _ => None,
        };
        let Some(decoded) = isa::decode(one.word) else {
            effect.changes = CLOBBERED;
            continue;
        };
        let is_transfer = decoded.op.is(isa::Flags::BRANCH) && !decoded.op.is(isa::Flags::RETURN);
        match callee {
            Some(callee) => {
                let link = decoded.ra();
                effect.changes |= if link == R31 { 0 } else { 1 << link };
                if link == R31 { &mut effect.jumps } else { &mut effect.calls }.push(callee);
            }
            None if decoded.op == isa::Op::CallPal => effect.changes = CLOBBERED,
            None if is_transfer && decoded.op.format() == isa::InstructionFormat::MemoryJump => {
                let is_table = matches!(&block.exit, CodeExit::Jump { targets, .. } if !targets.is_empty());
                let is_divide = decoded.ra() == super::convention::DIVIDE_LINK;
                effect.changes |= match () {
                    () if is_table => 0,
                    () if is_divide => super::convention::DIVIDE_CHANGED,
                    () => CLOBBERED,
                };
            }
            None if is_transfer => effect.changes = CLOBBERED,
            None => {
                let summary = isa::Alpha.summary(one.word);
                for register in summary.iter().flat_map(|one| one.written).flatten() {
                    effect.changes |= match register {
                        isa::Register::Integer(number) => 1 << number,
                        isa::Register::Float(number) => 1 << (number + 32),
                    };
                }
            }
        }
    }
    // Control does not fall into another procedure: the call before its beginning does not return.
    let is_start = |target: CodeBlockId| {
        let other = &program.procedures[owner(target) as usize];
        other.blocks.first() == Some(&target) && other.frozen != Some(Frozen::NoSymbol)
    };
    if !matches!(block.exit, CodeExit::Next(next) if is_start(next)) {
        let others = block.exit.successors().into_iter().map(owner);
        effect.jumps.extend(others.filter(|&other| other != block.procedure));
    }
    if let CodeExit::Branch { branch, target } = &block.exit {
        let link = isa::decode(branch.word).map_or(RA, |one| one.ra());
        effect.changes |= if link == R31 { 0 } else { 1 << link };
        if target.block().is_none() {
            effect.changes = CLOBBERED;
        }
    }
    if let CodeExit::Conditional { taken, .. } = &block.exit
        && taken.block().is_none()
    {
        effect.changes = CLOBBERED;
    }
}
