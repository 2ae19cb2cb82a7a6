//! Describes differences as text.

use std::fmt::Write;

use super::assembler::NOP;
use super::batch::{Batch, PASSES};
use super::record::{self, ENTRY, QUADS};

/// The sequence, the executions that differ, and for the first differing pass the differences and its initial state.
pub fn explain(batch: &Batch, number: usize, sides: [(&str, &[u8]); 2]) -> String {
    let [(left_name, left), (right_name, right)] = sides;
    let mut text = String::new();
    let sequence = &batch.sequences[number];
    for (index, word) in sequence.words.iter().enumerate().filter(|(_, word)| **word != NOP) {
        let mark = if index == sequence.entry { "->" } else { "" };
        let address = 4 * index as u64;
        let instruction = match isa::decode(*word) {
            Some(instruction) => instruction.disassemble(address).to_string(),
            None => format!(".long {word:#x}"),
        };
        writeln!(text, "{mark:4}{address:4x}: {instruction}").expect("no limit");
    }
    let starts = batch.starts();
    let own = starts[number]..starts[number] + 4 * sequence.words.len() as u64;
    for (address, left, right) in Batch::counts_differing(batch.bytes(), left, right) {
        let what = match address {
            0 => "accesses not aligned".into(),
            _ if own.contains(&address) => format!("executions of {:x}", address - own.start),
            // The program around the sequences.
            _ if address < starts[0] => format!("executions at {address:#x}"),
            _ => continue,
        };
        writeln!(text, "    {what}: {left_name} {left}, {right_name} {right}").expect("no limit");
    }
    let both = |pass| [left, right].map(|side| batch.record(side, number, pass));
    let Some(pass) = (0..PASSES).find(|pass| both(*pass)[0] != both(*pass)[1]) else { return text };
    let ([left, right], before) = (both(pass), batch.records[number][pass]);
    writeln!(text, "in pass {} with ieee_fp_control {:#x}:", pass + 1, batch.ieee_control).expect("no limit");
    for quad in (0..QUADS).filter(|quad| left[*quad] != right[*quad]) {
        let (name, [left, right]) = (record::name(quad), [left[quad], right[quad]]);
        writeln!(text, "    {name}: {left_name} {left:#x}, {right_name} {right:#x}").expect("no limit");
    }
    writeln!(text, "  from:").expect("no limit");
    for quad in (0..QUADS).filter(|quad| before[*quad] != 0 && *quad != ENTRY) {
        writeln!(text, "    {} {:#x} -> {:#x}", record::name(quad), before[quad], left[quad])
            .expect("no limit");
    }
    text
}
