//! Translated code: blocks of the program, copied into the code cache with other displacements and transfers.

mod emitter;
mod locate;
mod plan;
mod trace;
mod zone;

use std::collections::{HashMap, HashSet};
use std::io;

use iced_x86::InstructionInfoFactory;

use crate::area::{MAX_BLOCKS, RAX, SPILLED};
use crate::memory::ProgramMemory;
use crate::shared::SharedResults;
use emitter::{CopyEmitter, set_displacement};
use zone::{CodeZone, in_reach};

pub(crate) use zone::is_translated_code;

/// Bytes of the pages by which blocks are found again.
const PAGE_SHIFT: u32 = 12;

/// Where an instruction of a block begins.
#[derive(Clone, Copy, Debug)]
struct InstructionStart {
    /// Bytes from the block's entry to its translation.
    code: u32,
    /// Bytes from the block's address.
    source: u16,
    /// The register that its translation has saved, if any: [`SAVED_NONE`], or its number and, from bit 4 on, its slot.
    saved: u8,
}

/// Bits of addresses that parts without a zone have in common.
const LONELY_SHIFT: u32 = 28;
/// Bytes to which the entries of indirect transfers are aligned.
const ENTRY_ALIGNMENT: u64 = 8;
/// No register is saved.
const SAVED_NONE: u8 = u8::MAX;

/// A block of the program and its translation.
#[derive(Debug)]
struct BlockCopy {
    /// Its address in the program.
    address: u64,
    /// Bytes in the program.
    size: u32,
    /// Where its translation is entered; 0 if it has none.
    entry: u64,
    /// Where it is entered from indirect transfers, which have saved rax; 0 if nothing did yet.
    indirect_entry: u64,
    /// The first block of its trace; each falls into the next one.
    trace: u32,
    /// The index of the instruction before which it counts itself.
    counts_before: u16,
    /// Its instructions, and the end of the last one.
    starts: Box<[InstructionStart]>,
    /// The exits that are linked to it.
    linked: Vec<u32>,
    /// Blocks that are its first instructions, by their number, for executions that a fault ended.
    prefixes: Vec<(u16, u32)>,
    image: u32,
}

/// A way out of translated code.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TranslationExit {
    /// To an address of the program. The displacement at `site` can be linked to its translation; until then it leads to `stub`.
    Direct {
        /// The target in the program.
        target: u64,
        /// The displacement of the transfer.
        site: u64,
        /// Code that leaves with this exit.
        stub: u64,
    },
    /// A system call; the address of the next instruction.
    SystemCall(u64),
    /// An instruction that translated code cannot have.
    Unsupported(u64),
}

/// Why there is no translation of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeFault {
    /// It cannot be executed.
    NotExecutable,
    /// There is no instruction.
    Undefined,
}

/// The translations of a program's code.
pub(crate) struct CodeCache {
    results: &'static SharedResults,
    zones: Vec<CodeZone>,
    blocks: Vec<BlockCopy>,
    by_address: HashMap<u64, u32>,
    by_page: HashMap<u64, Vec<u32>>,
    exits: Vec<TranslationExit>,
    factory: InstructionInfoFactory,
    /// Parts of the address space, by their high bits, within whose reach no zone could be mapped.
    lonely: HashSet<u64>,
}

impl CodeCache {
    /// No translations yet.
    pub fn new(results: &'static SharedResults) -> CodeCache {
        CodeCache {
            results,
            zones: Vec::new(),
            blocks: Vec::new(),
            by_address: HashMap::new(),
            by_page: HashMap::new(),
            exits: Vec::new(),
            factory: InstructionInfoFactory::new(),
            lonely: HashSet::new(),
        }
    }

    /// The exit of a number.
    pub fn exit(&self, number: u32) -> TranslationExit {
        self.exits[number as usize]
    }

    /// The block at an address, which is translated if it is not yet.
    pub fn block(&mut self, address: u64, memory: &mut ProgramMemory) -> Result<u32, CodeFault> {
        match self.by_address.get(&address) {
            Some(&block) => Ok(block),
            None => self.translate(address, memory),
        }
    }

    /// Where a block is entered with all registers in place.
    pub fn entry(&self, block: u32) -> u64 {
        self.blocks[block as usize].entry
    }

    /// Where a block is entered with rax in its slot.
    pub fn indirect_entry(&mut self, block: u32) -> u64 {
        let BlockCopy { entry, indirect_entry, .. } = self.blocks[block as usize];
        if indirect_entry != 0 {
            return indirect_entry;
        }
        let zone = self.zone_for(entry).expect("memory for translated code");
        let mut out = CopyEmitter { at: self.zones[zone].at.next_multiple_of(ENTRY_ALIGNMENT) };
        let start = out.at;
        out.load(RAX, SPILLED);
        out.jump_far(entry);
        self.zones[zone].at = out.at;
        self.blocks[block as usize].indirect_entry = start;
        start
    }

    fn zone_of(&self, code: u64) -> usize {
        self.zones.iter().position(|zone| zone.contains(code)).expect("code lies in a zone")
    }

    /// The zone for code at an address: one in reach with room, or a new one. Where nothing is in reach, any other serves.
    fn zone_for(&mut self, address: u64) -> io::Result<usize> {
        let found = self.zones.iter().position(|zone| zone.serves(address) && zone.has_room());
        if let Some(zone) = found {
            return Ok(zone);
        }
        let lonely = address >> LONELY_SHIFT;
        let near = if self.lonely.contains(&lonely) { None } else { CodeZone::near(address) };
        let zone = match near {
            Some(zone) => zone,
            None => {
                self.lonely.insert(lonely);
                if let Some(zone) = self.zones.iter().position(CodeZone::has_room) {
                    return Ok(zone);
                }
                CodeZone::anywhere()?
            }
        };
        self.zones.push(zone);
        Ok(self.zones.len() - 1)
    }

    /// Links a direct exit to a block.
    pub fn link(&mut self, exit: u32, block: u32) {
        let TranslationExit::Direct { site, .. } = self.exits[exit as usize] else { return };
        let entry = self.blocks[block as usize].entry;
        self.blocks[block as usize].linked.push(exit);
        if in_reach(site + 4, entry) {
            set_displacement(site, entry);
            return;
        }
        let zone = self.zone_of(site);
        if !self.zones[zone].has_room() {
            return;
        }
        let mut out = CopyEmitter { at: self.zones[zone].at };
        let far = out.at;
        out.jump_far(entry);
        self.zones[zone].at = out.at;
        set_displacement(site, far);
    }

    /// Forgets the translations of code in a range of addresses. Threads that execute them go on to the end of their trace.
    pub fn invalidate(&mut self, start: u64, end: u64) {
        let pages = start >> PAGE_SHIFT..=end.saturating_sub(1) >> PAGE_SHIFT;
        let numbers: Vec<u64> = if end.saturating_sub(start) >> PAGE_SHIFT > self.by_page.len() as u64 {
            self.by_page.keys().copied().filter(|page| pages.contains(page)).collect()
        } else {
            pages.collect()
        };
        let mut affected: Vec<u32> =
            numbers.iter().filter_map(|page| self.by_page.remove(page)).flatten().collect();
        affected.sort_unstable();
        affected.dedup();
        for block in affected {
            let BlockCopy { address, size, trace, .. } = self.blocks[block as usize];
            if address < end && address + u64::from(size) > start {
                (trace..=block).for_each(|block| self.forget(block));
            } else {
                self.by_page.entry(address >> PAGE_SHIFT).or_default().push(block);
            }
        }
    }

    /// Forgets a translation: all ways to it lead out of translated code again.
    fn forget(&mut self, number: u32) {
        let block = &mut self.blocks[number as usize];
        let (address, indirect) = (block.address, std::mem::take(&mut block.indirect_entry));
        for exit in std::mem::take(&mut block.linked) {
            if let TranslationExit::Direct { site, stub, .. } = self.exits[exit as usize] {
                set_displacement(site, stub);
            }
        }
        if self.by_address.get(&address) == Some(&number) {
            self.by_address.remove(&address);
        }
        if indirect != 0 {
            self.revoke_indirect_entry(indirect, address);
        }
    }

    /// Makes an indirect entry, which begins with the load of rax, leave translated code. Tables of all threads may lead to it.
    fn revoke_indirect_entry(&mut self, entry: u64, address: u64) {
        let zone = self.zone_of(entry);
        let mut out = CopyEmitter { at: self.zones[zone].at };
        let stub = out.at;
        out.load(RAX, SPILLED);
        let exit = self.exits.len() as u32;
        let leave = out.at;
        out.leave(exit);
        self.zones[zone].at = out.at;
        // Nothing is linked to this exit: its site is a dead displacement in its own stub.
        let site = out.at;
        out.put(&[0; 4]);
        self.zones[zone].at = out.at;
        self.exits.push(TranslationExit::Direct { target: address, site, stub: leave });
        let mut jump = [0xe9, 0, 0, 0, 0, 0x90, 0x90, 0x90];
        jump[1..5].copy_from_slice(&(stub.wrapping_sub(entry + 5) as i32).to_le_bytes());
        // SAFETY: an indirect entry is aligned to 8 bytes and longer than that, so that this is one store.
        unsafe { (entry as *mut u64).write_volatile(u64::from_le_bytes(jump)) };
    }

    /// Adds a block without a translation of its own.
    fn define(&mut self, block: BlockCopy) -> u32 {
        let number = self.blocks.len();
        assert!(number < MAX_BLOCKS, "a program with more than {MAX_BLOCKS} blocks");
        // SAFETY: the block was decoded from this memory, which the program has not unmapped since.
        let code = unsafe { std::slice::from_raw_parts(block.address as *const u8, block.size as usize) };
        self.results.add_block(block.address, block.image, code);
        self.blocks.push(block);
        number as u32
    }
}
