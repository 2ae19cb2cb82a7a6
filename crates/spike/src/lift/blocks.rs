//! From words to blocks.

use std::collections::{HashMap, HashSet};

use isa::{Flags, Op};

use crate::elf::Elf;
use crate::error::Problem;
use crate::exceptions::Located;
use crate::lift::extents::Extent;
use crate::lift::relocations::{AddressHalf, FoundRelocations};
use crate::program::{
    Base, BranchTarget, CodeBlock, CodeBlockId, CodeExit, CodeExtent, Frozen, GlobalPointer,
    LiftedInstruction, PV, Procedure, ProcedureId, Program, Reference, ZERO,
};
use crate::unwind::UnwindingTables;

/// Marks the instructions at which blocks begin.
pub fn leaders(
    code: &CodeExtent,
    extents: &[Extent],
    found: &FoundRelocations,
    elf: &Elf,
    exceptions: &[Located],
) -> Vec<bool> {
    let mut leaders = vec![false; code.words.len() + 1];
    let mark = |leaders: &mut Vec<bool>, address| {
        if let Some(index) = code.index(address) {
            leaders[index as usize] = true;
        }
    };
    for extent in extents {
        leaders[extent.start as usize] = true;
        for index in extent.start..extent.end {
            let Some(one) = isa::decode(code.words[index as usize]) else { continue };
            if one.op.is(Flags::BRANCH) {
                leaders[index as usize + 1] = true;
                if let Some(target) = one.target(code.address(index)) {
                    mark(&mut leaders, target);
                }
            }
        }
    }
    found.slots.values().for_each(|&address| mark(&mut leaders, address));
    found.data.iter().for_each(|&(_, _, address)| mark(&mut leaders, address));
    found.taken.iter().for_each(|&address| mark(&mut leaders, address));
    found.global_pointers.iter().for_each(|&(high, ..)| leaders[high as usize] = true);
    elf.symbols.iter().filter(|one| one.section != 0).for_each(|one| mark(&mut leaders, one.value));
    exceptions.iter().flat_map(Located::bounds).for_each(|address| mark(&mut leaders, address));
    mark(&mut leaders, elf.entry);
    super::dynamic_entries(elf).for_each(|address| mark(&mut leaders, address));
    leaders
}

/// Makes blocks and procedures of the extents.
pub fn build(
    elf: Elf,
    code: &mut CodeExtent,
    extents: &mut [Extent],
    leaders: &[bool],
    found: &FoundRelocations,
    landing_pads: &HashSet<u64>,
    (frames, row_of): (UnwindingTables, &[u32]),
) -> Result<Program, Problem> {
    let mut next = 0;
    for extent in extents.iter() {
        for index in extent.start..extent.end {
            if leaders[index as usize] {
                code.block_at[index as usize] = Some(next);
                next += 1;
            }
        }
    }
    let code = std::mem::take(code);
    let builder = Builder { code: &code, found, row_of, pairs: pairs(&code, extents, found, landing_pads) };
    let mut blocks = Vec::with_capacity(next as usize);
    let mut procedures = Vec::with_capacity(extents.len());
    for (extent, number) in extents.iter_mut().zip(0..) {
        let mut own = Vec::new();
        let mut start = extent.start;
        while start < extent.end {
            let end = (start + 1..extent.end).find(|&index| leaders[index as usize]).unwrap_or(extent.end);
            own.push(blocks.len() as CodeBlockId);
            let block = builder.block(number, extent, start, end)?;
            blocks.push(block);
            start = end;
        }
        procedures.push(Procedure {
            name: std::mem::take(&mut extent.name),
            blocks: own,
            frozen: extent.frozen,
            global_pointer: found.global_pointer(extent.end.saturating_sub(1)).unwrap_or_default(),
            frame: None,
            original: None,
        });
    }
    let global_pointers = builder.pairs.global_pointers;
    Ok(Program {
        elf,
        code,
        procedures,
        blocks,
        global_pointers,
        data: Vec::new(),
        frames,
        exceptions: Default::default(),
        counters: None,
        external_calls: Vec::new(),
        predicted: Default::default(),
    })
}

/// The computations of the global pointer.
struct Pairs {
    global_pointers: Vec<GlobalPointer>,
    /// By instruction.
    references: HashMap<u32, Reference>,
}

fn pairs(
    code: &CodeExtent,
    extents: &mut [Extent],
    found: &FoundRelocations,
    landing_pads: &HashSet<u64>,
) -> Pairs {
    // Where a register can hold the address of the block: jumps through a register lead there.
    let taken: HashSet<u64> = found.taken.iter().copied().collect();
    let is_known = |address: u64| landing_pads.contains(&address) || taken.contains(&address);
    let mut pairs = Pairs { global_pointers: Vec::new(), references: Default::default() };
    for &(high, low, value) in &found.global_pointers {
        let at = extents.partition_point(|extent| extent.end <= high);
        let Some(extent) = extents.get_mut(at).filter(|extent| extent.start <= high) else { continue };
        let Some(block) = code.block_at[high as usize] else { continue };
        let base_register = isa::decode(code.words[high as usize]).map_or(ZERO, |one| one.rb());
        let before = high.checked_sub(1).filter(|&before| before >= extent.start);
        let linked = before.and_then(|before| isa::decode(code.words[before as usize]));
        let is_linked = linked.is_some_and(|one| one.op.is(Flags::BRANCH) && one.ra() == base_register);
        // A call that does not return may stand before a landing pad.
        let is_linked = is_linked && base_register != ZERO && !landing_pads.contains(&code.address(high));
        let base = if is_linked { Base::AfterCall(block - 1) } else { Base::Block(block) };
        let is_expected = match base_register {
            PV => high == extent.start,
            _ => high != extent.start && is_known(code.address(high)),
        };
        if base == Base::Block(block) && !is_expected {
            extent.frozen.get_or_insert(Frozen::GlobalPointer);
        }
        let number = pairs.global_pointers.len() as u32;
        pairs.global_pointers.push(GlobalPointer { base, value });
        pairs.references.insert(high, Reference::GlobalPointerHigh(number));
        pairs.references.insert(low, Reference::GlobalPointerLow(number));
    }
    pairs
}

struct Builder<'a> {
    code: &'a CodeExtent,
    found: &'a FoundRelocations,
    row_of: &'a [u32],
    pairs: Pairs,
}

impl Builder<'_> {
    fn target(&self, address: u64) -> BranchTarget {
        self.code.block(address).map_or(BranchTarget::Address(address), BranchTarget::Block)
    }

    fn reference(&self, index: u32) -> Result<Reference, Problem> {
        if let Some(&reference) = self.pairs.references.get(&index) {
            return Ok(reference);
        }
        if let Some(&(half, address)) = self.found.halves.get(&index) {
            let block = self.code.block(address);
            let block =
                block.ok_or_else(|| Problem::Damaged(format!("{address:#x} is not in a procedure")))?;
            return match half {
                AddressHalf::High => Ok(Reference::CodeHigh(block)),
                AddressHalf::Low => Ok(Reference::CodeLow(block)),
                AddressHalf::Whole => {
                    Err(Problem::Damaged(format!("code at {address:#x} is addressed as data is")))
                }
            };
        }
        let slot = |map: &HashMap<u32, u64>| map.get(&index).copied();
        let loaded = slot(&self.found.loads).map(Reference::Slot);
        Ok(loaded.or(slot(&self.found.calls).map(Reference::CallThrough)).unwrap_or_default())
    }

    fn block(
        &self,
        procedure: ProcedureId,
        extent: &mut Extent,
        start: u32,
        end: u32,
    ) -> Result<CodeBlock, Problem> {
        let mut instructions = Vec::with_capacity((end - start) as usize);
        for index in start..end {
            let word = self.code.words[index as usize];
            let (reference, frame) = (self.reference(index)?, self.row_of[index as usize]);
            instructions.push(LiftedInstruction { word, origin: index, reference, frame });
            if isa::decode_op(word).is_none() {
                extent.frozen.get_or_insert(Frozen::Data);
            }
        }
        // Control may continue behind the procedure only where another one follows at once.
        let next = self.code.block_at.get(end as usize).copied().flatten();
        let exit = self.exit(&mut instructions, next);
        Ok(CodeBlock { procedure, instructions, exit, is_address_taken: false, call_site: None, count: 0 })
    }

    fn exit(&self, instructions: &mut Vec<LiftedInstruction>, next: Option<CodeBlockId>) -> CodeExit {
        let onward = next.map_or(CodeExit::Leave, CodeExit::Next);
        let Some(last) = instructions.last_mut() else { return onward };
        let Some(one) = isa::decode(last.word).filter(|one| one.op.is(Flags::BRANCH)) else { return onward };
        let target = one.target(self.code.address(last.origin)).map(|address| self.target(address));
        match (one.op, target) {
            (Op::Bsr, Some(target)) => {
                last.reference = Reference::Branch(target);
                onward
            }
            (Op::Br, Some(target)) => {
                let branch = *last;
                instructions.pop();
                CodeExit::Branch { branch, target }
            }
            (op, Some(taken)) if op.is(Flags::CONDITIONAL) => match next {
                Some(next) => {
                    let branch = *last;
                    instructions.pop();
                    CodeExit::Conditional { branch, taken, next, count: 0 }
                }
                None => {
                    last.reference = Reference::Branch(taken);
                    CodeExit::Leave
                }
            },
            (Op::Jsr | Op::JsrCoroutine, _) => onward,
            (Op::Jmp, _) if one.ra() == ZERO => CodeExit::Jump { targets: Vec::new(), counts: Vec::new() },
            (Op::Jmp, _) => onward,
            _ => CodeExit::Leave,
        }
    }
}
