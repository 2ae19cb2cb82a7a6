//! The instruction trace: one line for each instruction, as in Figure 2 of the 1997 paper.

use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

use events::BlockId;
use events::record::{Mark, Register, address_of_word};
use isa::{ControlTransfer, InstructionSummary, TransferTarget};
use trace::Trace;

use super::registers::{KnownRegisters, RegisterEffect};
use super::text::{ListingText, describe};
use super::{Accesses, Dictionary, Executed, Transfer, Visitor};

/// Columns for mnemonics and operands.
const MNEMONIC: usize = 8;
const OPERANDS: usize = 32;

/// Lists instructions with their effects.
pub struct Listing<'a, W: Write> {
    dictionary: &'a Dictionary<'a>,
    accesses: &'a Accesses,
    text: ListingText<'a, W>,
    blocks: HashMap<BlockId, Rc<[ListingLine]>>,
    /// Digits of addresses.
    digits: usize,
    registers: Vec<KnownRegisters>,
    /// The last block listed, if its successor in its stream has not been seen yet.
    last: Option<BlockId>,
    stream: Option<u32>,
}

/// The static part of an instruction's line.
struct ListingLine {
    /// Address, word, mnemonic and operands.
    text: String,
    /// Its effect on registers; None for a word that is no instruction.
    registers: Option<RegisterEffect>,
    has_value: bool,
    effect: EffectKind,
}

/// The kind of an instruction's effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EffectKind {
    Nothing,
    /// It writes the register with this name.
    Writes(Register),
    Loads,
    Stores,
    /// It tests a register.
    Tests(Register),
}

impl<'a, W: Write> Listing<'a, W> {
    /// Lists a trace's instructions to `out`; `system_call` maps the numbers of system calls to names.
    pub fn new(
        dictionary: &'a Dictionary<'a>,
        accesses: &'a Accesses,
        system_call: &'a dyn Fn(u32) -> String,
        out: W,
    ) -> Listing<'a, W> {
        let registers =
            vec![KnownRegisters::new(dictionary.trace.instruction_set()); dictionary.trace.streams().len()];
        let highest = dictionary.blocks.iter().map(|block| block.address).max().unwrap_or(0);
        let digits = format!("{highest:x}").len();
        let text = ListingText::new(dictionary.trace, system_call, out, digits);
        Listing {
            dictionary,
            accesses,
            text,
            blocks: HashMap::new(),
            digits,
            registers,
            last: None,
            stream: None,
        }
    }

    /// Writes the remaining lines.
    pub fn finish(self) -> io::Result<()> {
        self.text.finish()
    }

    /// Writes where control is at an instruction of a block, if it was transferred from outside the function.
    fn entered(&mut self, block: BlockId, index: usize) -> io::Result<()> {
        let facts = self.dictionary.facts(block);
        let came = self.last.replace(block).map(|last| *self.dictionary.facts(last));
        let stays = came.is_some_and(|last| {
            last.region == facts.region && !(last.transfer == Transfer::Call && facts.at_entry)
        });
        if stays {
            return Ok(());
        }
        let block = &self.dictionary.trace.blocks()[block as usize];
        let address = block.address_of(index);
        let label = self.dictionary.label(facts.region, address);
        match self.dictionary.names.location(block.image, address) {
            Some(source) => self.text.heading(&format!("{label}:  {}", describe(&source))),
            None => self.text.heading(&format!("{label}:")),
        }
    }
}

impl<W: Write> Visitor for Listing<'_, W> {
    fn mark(&mut self, stream: u32, before: u64, mark: Mark, is_selected: bool) -> io::Result<()> {
        if mark.changes_registers() {
            let set = self.dictionary.trace.instruction_set();
            self.registers[stream as usize] = KnownRegisters::new(set);
            if self.stream == Some(stream) {
                self.last = None;
            }
        }
        if is_selected { self.text.mark(stream, before, mark) } else { Ok(()) }
    }

    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        let Executed { stream, before, execution, selected, .. } = *executed;
        if self.stream.replace(stream) != Some(stream) {
            self.last = None;
        }
        let lines = match self.blocks.get(&execution.block) {
            Some(lines) => Rc::clone(lines),
            None => {
                let lines = lines(self.dictionary, execution.block, self.digits);
                Rc::clone(self.blocks.entry(execution.block).or_insert(lines))
            }
        };
        let mut accesses = self.accesses.of(execution.block).iter().zip(execution.addresses).peekable();
        let mut values = execution.values.iter();
        let mut is_first = true;
        for (index, line) in lines.iter().enumerate() {
            let access = accesses.next_if(|(access, _)| access.index as usize == index);
            let address = access.map(|(_, &word)| address_of_word(word));
            let value = if line.has_value { values.next().copied() } else { None };
            let registers = &mut self.registers[stream as usize];
            let value = line.registers.as_ref().and_then(|effect| registers.step(effect, address, value));
            if selected.has(index) {
                if std::mem::take(&mut is_first) {
                    self.text.thread(stream, before)?;
                    self.entered(execution.block, index)?;
                }
                let number = before.saturating_add(1 + index as u64);
                self.text.line(number, &line.text, line.effect.parts(address, value))?;
            }
        }
        if is_first {
            self.last = None;
        }
        Ok(())
    }
}

impl EffectKind {
    fn of(summary: &InstructionSummary) -> EffectKind {
        let is_conditional = summary.transfer.is_some_and(|transfer| transfer.is_conditional);
        match (summary.access, summary.value) {
            (Some(access), _) if access.is_store => EffectKind::Stores,
            (Some(_), _) => EffectKind::Loads,
            (None, Some(register)) if is_conditional => EffectKind::Tests(register),
            (None, Some(register)) => EffectKind::Writes(register),
            (None, None) => match summary.transfer.and_then(|transfer| transfer.link) {
                Some(link) => EffectKind::Writes(Register::Integer(link)),
                None => EffectKind::Nothing,
            },
        }
    }

    /// The effect as text and numbers: `sp now 72bff00`, `@72bff00 = 148440`, `@149580 1479e8`,
    /// `(t2 is 155c58)`.
    fn parts(self, address: Option<u64>, value: Option<u64>) -> [EffectPart; 3] {
        use EffectPart::{At, Nothing, Number, Word};
        match (self, address, value) {
            (EffectKind::Writes(register), _, Some(value)) => {
                [EffectPart::Register(register), Word(" now "), Number(value)]
            }
            (EffectKind::Loads, Some(address), Some(value)) => [At(address), Word(" "), Number(value)],
            (EffectKind::Stores, Some(address), Some(value)) => [At(address), Word(" = "), Number(value)],
            (EffectKind::Loads | EffectKind::Stores, Some(address), None) => [At(address), Nothing, Nothing],
            (EffectKind::Tests(register), _, Some(value)) => {
                [EffectPart::Tested(register), Number(value), Word(")")]
            }
            _ => [Nothing; 3],
        }
    }
}

/// A part of an effect's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EffectPart {
    /// Nothing.
    Nothing,
    /// Words.
    Word(&'static str),
    /// A number, in hexadecimal.
    Number(u64),
    /// An address that was accessed.
    At(u64),
    /// A register's name.
    Register(Register),
    /// The beginning of the text on a tested register.
    Tested(Register),
}

/// The lines of a block.
fn lines(dictionary: &Dictionary, id: BlockId, digits: usize) -> Rc<[ListingLine]> {
    let trace: &Trace = dictionary.trace;
    let block = &trace.blocks()[id as usize];
    let set = block.instruction_set;
    let line = |(pc, &word): (u64, &u32)| {
        let summary = set.summary(word);
        let (mnemonic, operands) = disassemble(dictionary, id, pc, word);
        let code = code_text(block, pc, word);
        ListingLine {
            text: ::text::printable(
                format!("{pc:0digits$x}: {code}  {mnemonic:MNEMONIC$}{operands}").trim_end(),
            )
            .into(),
            registers: summary.as_ref().map(|summary| RegisterEffect::new(set, summary, pc)),
            has_value: trace.header().has_values && summary.is_some_and(|summary| summary.value.is_some()),
            effect: summary.as_ref().map_or(EffectKind::Nothing, EffectKind::of),
        }
    };
    block.addresses().zip(&block.words).map(line).collect()
}

/// The code of an instruction in hexadecimal: the word, or the bytes beside a word that describes them.
fn code_text(block: &events::Block, pc: u64, word: u32) -> String {
    let start = pc.wrapping_sub(block.address) as usize;
    let length = block.instruction_set.length(word) as usize;
    match block.code.get(start..).and_then(|rest| rest.get(..length)) {
        Some(bytes) => format!("{:8}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        None => format!("{word:08x}"),
    }
}

/// Mnemonic and operands; branch targets are named.
fn disassemble(dictionary: &Dictionary, id: BlockId, pc: u64, word: u32) -> (String, String) {
    let block = &dictionary.trace.blocks()[id as usize];
    let set = block.instruction_set;
    let Some(text) = set.disassemble(word, pc) else { return (".long".into(), format!("{word:#x}")) };
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((&text, ""));
    let mut operands: Vec<String> = operands.split(',').map(Into::into).collect();
    match set.summary(word).and_then(|summary| summary.transfer) {
        Some(ControlTransfer { target: TransferTarget::Relative(distance), .. }) => {
            let target = pc.wrapping_add_signed(distance);
            let last = operands.last_mut().expect("split gives one at least");
            *last = target_name(dictionary, block, target).unwrap_or_else(|| last.clone());
        }
        // The hint matters to processors only.
        Some(ControlTransfer { hint: Some(_), .. }) if operands.len() == 3 => drop(operands.pop()),
        _ => {}
    }
    (mnemonic.into(), operands.join(", "))
}

/// The name of a branch's target; without the image's if it is the branch's own.
fn target_name(dictionary: &Dictionary, block: &events::Block, target: u64) -> Option<String> {
    let name = dictionary.name_of(block.image, target)?;
    let own = format!("{}!", dictionary.names.image(block.image));
    Some(name.strip_prefix(&own).map_or(name.clone(), Into::into))
}

/// Number of columns before an effect, in a line whose address has this number of digits.
pub(super) const fn effect_column(digits: usize) -> usize {
    digits + ": 00000000  ".len() + MNEMONIC + OPERANDS
}
