//! Atomic accesses: load-reserved and store-conditional, and operations on memory (*The RISC-V Instruction Set Manual*, volume I,
//! chapters "A", "Zacas", "Zabha").

use guest::Break;
use guest_memory::Memory;
use isa::RiscvOp;

use crate::cpu::{LoadReservation, RiscvCpu, RiscvException};

type Outcome<T> = Result<T, Break<RiscvException>>;

/// A value of a size, sign-extended.
fn extend<const SIZE: usize>(value: u64) -> u64 {
    let shift = 64 - 8 * SIZE as u32;
    ((value << shift) as i64 >> shift) as u64
}

fn check_alignment<const SIZE: usize>(address: u64) -> Outcome<()> {
    if !address.is_multiple_of(SIZE as u64) {
        return Err(RiscvException::Unaligned(address).into());
    }
    Ok(())
}

pub(crate) fn load_reserved<const SIZE: usize>(
    cpu: &mut RiscvCpu,
    memory: &Memory,
    address: u64,
) -> Outcome<u64> {
    check_alignment::<SIZE>(address)?;
    let value = extend::<SIZE>(memory.load::<SIZE>(address)?);
    std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
    cpu.reservation = LoadReservation { address, value, size: SIZE as u64 };
    Ok(value)
}

/// Succeeds, with 0, if nothing changed the value since the load-reserved: a compare-and-exchange, as other threads and processes
/// see the same memory. (A value changed and changed back is not noticed.)
pub(crate) fn store_conditional<const SIZE: usize>(
    cpu: &mut RiscvCpu,
    memory: &Memory,
    address: u64,
    value: u64,
) -> Outcome<u64> {
    check_alignment::<SIZE>(address)?;
    let reservation = std::mem::replace(&mut cpu.reservation, LoadReservation::NONE);
    if reservation.address != address || reservation.size != SIZE as u64 {
        return Ok(1);
    }
    Ok(u64::from(!memory.compare_exchange::<SIZE>(address, reservation.value, value)?))
}

/// Replaces the contents of memory by an operation on them, and returns them as they were before.
pub(crate) fn update<const SIZE: usize>(
    memory: &Memory,
    address: u64,
    operation: impl Fn(u64) -> u64,
) -> Outcome<u64> {
    check_alignment::<SIZE>(address)?;
    loop {
        let old = extend::<SIZE>(memory.load::<SIZE>(address)?);
        if exchange::<SIZE>(memory, address, old, operation(old))? {
            return Ok(old);
        }
    }
}

/// Stores a value if memory has the expected one; returns what memory had.
pub(crate) fn compare_and_swap<const SIZE: usize>(
    memory: &Memory,
    address: u64,
    expected: u64,
    new: u64,
) -> Outcome<u64> {
    let expected = extend::<SIZE>(expected);
    update::<SIZE>(memory, address, |old| if old == expected { new } else { old })
}

/// Compares and exchanges; bytes and half words within the word that they are in.
fn exchange<const SIZE: usize>(memory: &Memory, address: u64, old: u64, new: u64) -> Outcome<bool> {
    if SIZE >= 4 {
        return Ok(memory.compare_exchange::<SIZE>(address, old, new)?);
    }
    let (word_address, shift) = (address & !3, 8 * (address & 3));
    let mask = (1u64 << (8 * SIZE)) - 1;
    let word = memory.load::<4>(word_address)?;
    if word >> shift & mask != old & mask {
        return Ok(false);
    }
    let changed = word & !(mask << shift) | (new & mask) << shift;
    Ok(memory.compare_exchange::<4>(word_address, word, changed)?)
}

/// The operation of an instruction on the contents of memory, if it is one of those.
pub(crate) fn operation(op: RiscvOp, a: u64, b: u64) -> u64 {
    use RiscvOp::*;
    match op {
        AmoaddB | AmoaddH | AmoaddW | AmoaddD => a.wrapping_add(b),
        AmoxorB | AmoxorH | AmoxorW | AmoxorD => a ^ b,
        AmoandB | AmoandH | AmoandW | AmoandD => a & b,
        AmoorB | AmoorH | AmoorW | AmoorD => a | b,
        AmominB | AmominH | AmominW | AmominD => (a as i64).min(b as i64) as u64,
        AmomaxB | AmomaxH | AmomaxW | AmomaxD => (a as i64).max(b as i64) as u64,
        // Sign extension of both keeps their order.
        AmominuB | AmominuH | AmominuW | AmominuD => a.min(b),
        AmomaxuB | AmomaxuH | AmomaxuW | AmomaxuD => a.max(b),
        _ => b,
    }
}

/// An atomic instruction of a size on an address: its result.
pub(crate) fn execute<const SIZE: usize>(
    op: RiscvOp,
    memory: &Memory,
    address: u64,
    operand: u64,
    expected: u64,
) -> Outcome<u64> {
    use RiscvOp::*;
    if matches!(op, AmocasB | AmocasH | AmocasW | AmocasD) {
        return compare_and_swap::<SIZE>(memory, address, expected, operand);
    }
    let operand = extend::<SIZE>(operand);
    update::<SIZE>(memory, address, |old| operation(op, old, operand))
}
