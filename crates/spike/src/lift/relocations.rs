//! Facts about code, and pointers to it, that relocations tell.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use isa::{InstructionSet, Op, Register};
use object::elf;

use crate::elf::{Elf, ElfSection, Relocation};
use crate::error::Problem;
use crate::lift::extents::Extent;
use crate::program::{CodeExtent, DataForm, GP};

/// `LITUSE`: the loaded address is that of a procedure that is called, by the standard convention or by a private one.
const USE_CALL: [i64; 2] = [3, 6];

/// The facts that the relocations tell.
#[derive(Debug, Default)]
pub struct FoundRelocations {
    /// Computations of the global pointer: the number of the first instruction, the second one, the value.
    pub global_pointers: Vec<(u32, u32, u64)>,
    /// Loads of addresses: the instruction, and the slot of the global offset table.
    pub loads: HashMap<u32, u64>,
    /// Jumps through a register with such an address: the instruction, and the slot.
    pub calls: HashMap<u32, u64>,
    /// Jumps with a hint that names a symbol: calls and tail calls.
    pub hints: Vec<u32>,
    /// Upper and lower halves of addresses of code relative to the global pointer: the instruction, and the address.
    pub halves: HashMap<u32, (AddressHalf, u64)>,
    /// Slots that hold an address of code, and the address.
    pub slots: BTreeMap<u64, u64>,
    /// Other words of the data that do: their address, form, and the address that they hold.
    pub data: Vec<(u64, DataForm, u64)>,
    /// Addresses of code that registers can hold.
    pub taken: Vec<u64>,
    /// Addresses of data that code computes, with the global pointer of that code.
    referred: HashMap<u64, u64>,
}

/// Half of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressHalf {
    /// The upper 16 bits of the distance.
    High,
    /// The lower ones.
    Low,
    /// All of it, within 32 KiB of the global pointer.
    Whole,
}

/// Reads all of them.
pub fn read(elf: &Elf, code: &CodeExtent, named: &[Extent]) -> Result<FoundRelocations, Problem> {
    let mut found = FoundRelocations::default();
    let tables: Vec<_> = elf.kept_relocations().collect();
    for (table, _) in tables.iter().filter(|(_, section)| section.is_code()) {
        global_pointers(code, &elf.relocations(table), &mut found)?;
    }
    found.global_pointers.sort_unstable();
    for (table, _) in tables.iter().filter(|(_, section)| section.is_code()) {
        instructions(elf, code, named, &elf.relocations(table), &mut found)?;
    }
    for (table, _) in tables.iter().filter(|(_, section)| section.is_loaded() && !section.is_code()) {
        data(elf, code, &elf.relocations(table), &mut found);
    }
    Ok(found)
}

fn displacement(code: &CodeExtent, index: u32) -> i64 {
    let word = code.words[index as usize];
    isa::decode(word).map_or(0, |one| one.displacement().into())
}

fn global_pointers(
    code: &CodeExtent,
    all: &[Relocation],
    found: &mut FoundRelocations,
) -> Result<(), Problem> {
    for one in all.iter().filter(|one| one.kind == elf::R_ALPHA_GPDISP.0) {
        let (high, low) = (code.index(one.address), code.index(one.address.wrapping_add_signed(one.addend)));
        let is = |index: u32, op| isa::decode_op(code.words[index as usize]) == Some(op);
        let (Some(high), Some(low)) = (high, low) else { continue };
        if !is(high, Op::Ldah) || !is(low, Op::Lda) {
            return Err(Problem::Damaged(format!(
                "the relocation at {:#x} is not at ldah and lda",
                one.address
            )));
        }
        let distance = (displacement(code, high) << 16) + displacement(code, low);
        found.global_pointers.push((high, low, one.address.wrapping_add_signed(distance)));
    }
    Ok(())
}

impl FoundRelocations {
    /// The global pointer of the code at an instruction: that of the computation before it.
    pub fn global_pointer(&self, index: u32) -> Option<u64> {
        let after = self.global_pointers.partition_point(|one| one.0 <= index);
        let before = self.global_pointers[..after].last();
        before.or(self.global_pointers.first()).map(|one| one.2)
    }

    fn refer(&mut self, address: u64, index: u32) {
        self.global_pointer(index).into_iter().for_each(|gp| _ = self.referred.insert(address, gp));
    }

    /// The global pointer that a word of the data is relative to: that of the code that uses the table, at the table's
    /// first word; then that of the word before it; otherwise one with which it refers to code of the same one.
    fn pointer_of_word(
        &self,
        code: &CodeExtent,
        pointers: &BTreeSet<u64>,
        word: u64,
        distance: i32,
    ) -> Option<u64> {
        let is_consistent = |gp: &u64| {
            let target = code.index(gp.wrapping_add_signed(distance.into()));
            target.is_some_and(|index| self.global_pointer(index) == Some(*gp))
        };
        let before = self.data.last().filter(|before| before.0.wrapping_add(4) == word);
        let before = before.and_then(|before| match before.1 {
            DataForm::GlobalPointerRelative(gp) => Some(gp),
            DataForm::Absolute => None,
        });
        let user = self.referred.get(&word).copied();
        user.or(before).filter(is_consistent).or_else(|| pointers.iter().copied().find(is_consistent))
    }
}

fn instructions(
    elf: &Elf,
    code: &CodeExtent,
    named: &[Extent],
    all: &[Relocation],
    found: &mut FoundRelocations,
) -> Result<(), Problem> {
    let mut slot = None;
    // Halves of one address have the same symbol and addend. Across procedures that is not certain, as addends of section
    // symbols are relative to the section of the object file.
    let mut high: HashMap<(u32, i64, usize), Vec<u32>> = HashMap::new();
    let key = |one: &Relocation, index: u32| {
        (one.symbol, one.addend, named.partition_point(|extent| extent.start <= index))
    };
    for one in all {
        let Some(index) = code.index(one.address) else { continue };
        let from_gp = |distance: i64| Some(found.global_pointer(index)?.wrapping_add_signed(distance));
        match object::elf::RelocationType(one.kind) {
            elf::R_ALPHA_LITERAL => {
                slot = from_gp(displacement(code, index));
                let Some(slot) = slot else { continue };
                found.loads.insert(index, slot);
                let address = elf.at::<8>(slot).map(u64::from_le_bytes);
                let Some(address) = address else { continue };
                if code.index(address).is_some() {
                    found.slots.insert(slot, address);
                } else {
                    found.refer(address, index);
                }
            }
            elf::R_ALPHA_LITUSE => {
                if let Some(slot) = slot.filter(|_| USE_CALL.contains(&one.addend)) {
                    found.calls.insert(index, slot);
                }
            }
            elf::R_ALPHA_HINT => found.hints.push(index),
            elf::R_ALPHA_GPRELHIGH => high.entry(key(one, index)).or_default().push(index),
            elf::R_ALPHA_GPREL16 => {
                let is_near = isa::decode(code.words[index as usize]).is_some_and(|one| one.rb() == GP);
                let Some(address) = from_gp(displacement(code, index)).filter(|_| is_near) else { continue };
                if code.index(address).is_some() {
                    found.halves.insert(index, (AddressHalf::Whole, address));
                    found.taken.push(address);
                } else {
                    found.refer(address, index);
                }
            }
            _ => {}
        }
    }
    let mut low: BTreeMap<(u32, i64, usize), Vec<u32>> = BTreeMap::new();
    for one in all.iter().filter(|one| one.kind == elf::R_ALPHA_GPRELLOW.0) {
        let Some(index) = code.index(one.address) else { continue };
        low.entry(key(one, index)).or_default().push(index);
    }
    for (key, low) in low {
        let Some(high) = high.get(&key) else { continue };
        pair_halves(code, high, &low, is_of_code(elf, key.0), found)?;
    }
    found.hints.sort_unstable();
    Ok(())
}

/// Pairs the halves of addresses that have the same symbol and addend: usually they are all of one address. If not, the
/// upper half is in the instruction that last wrote the register.
fn pair_halves(
    code: &CodeExtent,
    high: &[u32],
    low: &[u32],
    is_code: bool,
    found: &mut FoundRelocations,
) -> Result<(), Problem> {
    let address = |found: &FoundRelocations, high: u32, low: u32| {
        let distance = (displacement(code, high) << 16) + displacement(code, low);
        found.global_pointer(low).map(|gp| gp.wrapping_add_signed(distance))
    };
    let is_same = low.iter().all(|&one| address(found, high[0], one) == address(found, high[0], low[0]));
    let unclear = |index: u32| {
        let address = code.address(index);
        Problem::Unsupported(format!(
            "the halves of the address computed at {address:#x} cannot be told apart"
        ))
    };
    for &low in low {
        let own: Vec<u32> = if is_same { high.to_vec() } else { last_write(code, low).into_iter().collect() };
        let Some(&first) = own.first().filter(|one| high.contains(one)) else {
            if is_code {
                return Err(unclear(low));
            }
            // Data does not move.
            continue;
        };
        let Some(address) = address(found, first, low) else { continue };
        if code.index(address).is_none() {
            found.refer(address, low);
            continue;
        }
        found.halves.insert(low, (AddressHalf::Low, address));
        for high in own {
            let before = found.halves.insert(high, (AddressHalf::High, address));
            if before.is_some_and(|before| before.1 != address) {
                return Err(unclear(low));
            }
        }
        found.taken.push(address);
    }
    let unpaired = high.iter().find(|high| is_code && !found.halves.contains_key(high));
    unpaired.map_or(Ok(()), |&high| Err(unclear(high)))
}

/// Whether a symbol is in a section of code.
fn is_of_code(elf: &Elf, symbol: u32) -> bool {
    let section =
        elf.symbols.get(symbol as usize).and_then(|symbol| elf.sections.get(usize::from(symbol.section)));
    section.is_some_and(ElfSection::is_code)
}

/// The instruction that wrote the base register of another one, going back in the order of addresses.
fn last_write(code: &CodeExtent, index: u32) -> Option<u32> {
    let register = Register::Integer(isa::decode(code.words[index as usize])?.rb());
    let writes = |&before: &u32| {
        let summary = isa::Alpha.summary(code.words[before as usize]);
        summary.is_some_and(|one| one.written.contains(&Some(register)))
    };
    (0..index).rev().find(writes)
}

fn data(elf: &Elf, code: &CodeExtent, all: &[Relocation], found: &mut FoundRelocations) {
    let pointers: BTreeSet<u64> = found.global_pointers.iter().map(|one| one.2).collect();
    for one in all {
        let word = |from: &FoundRelocations| match object::elf::RelocationType(one.kind) {
            elf::R_ALPHA_REFQUAD => {
                Some((DataForm::Absolute, elf.at::<8>(one.address).map(u64::from_le_bytes)?))
            }
            elf::R_ALPHA_GPREL32 => {
                let distance = elf.at::<4>(one.address).map(i32::from_le_bytes)?;
                let gp = from.pointer_of_word(code, &pointers, one.address, distance)?;
                Some((DataForm::GlobalPointerRelative(gp), gp.wrapping_add_signed(distance.into())))
            }
            _ => None,
        };
        if let Some((form, address)) = word(found).filter(|&(_, address)| code.index(address).is_some()) {
            found.data.push((one.address, form, address));
        }
    }
}
