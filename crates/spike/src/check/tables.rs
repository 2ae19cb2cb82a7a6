//! Where an indirect jump goes: to the addresses that the words of its table hold, each of which stands for the same code
//! in both images.

use isa::Op;

use super::images::Images;
use super::machine::SymbolicMachine;
use super::term::{Node, OffsetTerm, Terms};

/// A value that must be below a constant, unsigned, after a branch was taken, or was not; and the constant.
pub fn bound(terms: &Terms, op: Op, operand: OffsetTerm, is_taken: bool) -> Option<(OffsetTerm, u64)> {
    let is_true = match op {
        Op::Bne | Op::Blbs => is_taken,
        Op::Beq | Op::Blbc => !is_taken,
        _ => return None,
    };
    let Node::Operation(op, _, [index, most, _]) = terms.node(operand.symbol) else { return None };
    let most = most.as_constant().filter(|_| is_true && operand.offset == 0)?;
    let index = match terms.node(index.symbol) {
        // The index is the number that is extended from these bits: with another one the jump would miss its table.
        Node::Operation(Op::Zapnot, _, [whole, bytes, _]) if bytes == OffsetTerm::constant(0xf) => whole,
        _ => index,
    };
    match op {
        Op::Cmpule => Some((index, most + 1)),
        Op::Cmpult => Some((index, most)),
        _ => None,
    }
}

/// The addresses that a jump of the original may lead to, with those of the optimized image; none if it has no table.
pub fn targets(
    images: &Images,
    terms: &Terms,
    (target, pc): (OffsetTerm, u64),
    original: &SymbolicMachine,
) -> Option<Vec<(u64, u64)>> {
    let all = images.tables.get(&pc).filter(|all| !all.is_empty())?;
    if let Some(own) = table(terms, target).and_then(|table| words(images, table, pc, original)) {
        return Some(own);
    }
    let pairs = |&old: &u64| {
        let new = images.labels.get(&old).cloned().unwrap_or_default();
        new.into_iter().map(move |new| (old, new))
    };
    Some(all.iter().flat_map(pairs).collect())
}

/// A table of addresses.
#[derive(Clone, Copy)]
struct AddressTable {
    address: u64,
    bytes: u64,
    index: Option<OffsetTerm>,
}

fn table(terms: &Terms, target: OffsetTerm) -> Option<AddressTable> {
    let is_load = |value: &OffsetTerm| matches!(terms.node(value.symbol), Node::Load(..));
    let load = match terms.node(target.symbol) {
        Node::Load(..) => target,
        Node::Operation(Op::Addq, _, operands) => operands.into_iter().find(is_load)?,
        _ => return None,
    };
    let Node::Load(op, _, entry) = terms.node(load.symbol) else { return None };
    let Node::Operation(scale, _, [index, base, _]) = terms.node(entry.symbol) else { return None };
    let bytes = u64::from(op.access_size()?);
    let is_scaled = matches!((scale, bytes), (Op::S4addq, 4) | (Op::S8addq, 8));
    let address = base.as_address().or(index.as_address())?.wrapping_add(entry.offset);
    Some(AddressTable { address, bytes, index: is_scaled.then_some(index) })
}

/// The addresses that the words of a table refer to. Without a bound of the index, the table ends where no word refers to code of
/// the procedure.
fn words(
    images: &Images,
    table: AddressTable,
    pc: u64,
    original: &SymbolicMachine,
) -> Option<Vec<(u64, u64)>> {
    let known = original.bounds.iter().filter(|(index, _)| Some(*index) == table.index).map(|one| one.1);
    let most = known.min().unwrap_or(u64::MAX);
    let entries = (0..most).map(|at| table.address.wrapping_add(at * table.bytes));
    let procedure = images.owner_id(pc);
    let own = |entry| images.words.get(&entry).copied().filter(|word| images.owner_id(word.0) == procedure);
    let mut all: Vec<(u64, u64)> = entries.map_while(own).collect();
    if all.is_empty() || most != u64::MAX && (all.len() as u64) < most {
        return None;
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}
