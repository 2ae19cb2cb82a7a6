//! Random programs for the assembler: instructions, and jumps to labels before and after them, as bytes say. What the
//! assembler writes is compared with the disassembly, whole.

use iced_x86::Mnemonic;

use super::assembler::*;
use super::code::Label;
use super::oracle::{
    CONDITIONS, DecodedOperand, ORIGIN, OperandSlot, OracleForm, disassemble, forms, operands,
};

/// Most instructions of a program.
const LONGEST: usize = 2000;
/// Number of labels, all of which are placed.
const LABELS: usize = 4;

/// An instruction that was written.
enum WrittenInstruction {
    Form(Mnemonic, Vec<DecodedOperand>),
    /// A jump to the label of this number.
    Jump(Mnemonic, usize),
}

/// Bytes that choose; 0 when there are no more.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// A number below `count`.
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    fn register(&mut self, slot: OperandSlot) -> HostRegister {
        HostRegister(self.below(slot.all().count()) as u8)
    }

    /// A displacement of 8 or of 32 bits.
    fn displacement(&mut self) -> i32 {
        match self.below(3) {
            0 => i32::from(self.byte() as i8),
            1 => 0,
            _ => i32::from_le_bytes([0; 4].map(|_: u8| self.byte())),
        }
    }

    fn memory(&mut self) -> Operand {
        let base = self.register(OperandSlot::General(OperandSize::Quad));
        match self.below(3) {
            0 => MemoryOperand { base, displacement: self.displacement() }.into(),
            1 => {
                let index = self.register(OperandSlot::General(OperandSize::Quad));
                let index = if index == RSP { RAX } else { index };
                Operand::Indexed(base, index, self.below(4) as u8, self.displacement())
            }
            _ => Operand::Near(ORIGIN.wrapping_add_signed(i64::from(self.displacement() / 2))),
        }
    }

    fn operand(&mut self, form: &OracleForm) -> Operand {
        let in_register = form.has_registers && (!form.has_memory || self.below(2) == 0);
        if in_register { self.register(form.slots[1]).into() } else { self.memory() }
    }
}

/// A program that is being written.
struct RandomProgram {
    assembler: Assembler,
    labels: [Label; LABELS],
    written: Vec<WrittenInstruction>,
    /// The number of the instruction at each label that is placed.
    targets: Vec<usize>,
}

impl RandomProgram {
    fn new() -> RandomProgram {
        let mut assembler = Assembler::new(ORIGIN);
        let labels = [(); LABELS].map(|()| assembler.label());
        RandomProgram { assembler, labels, written: Vec::new(), targets: Vec::new() }
    }

    fn form(&mut self, form: &OracleForm, register: HostRegister, operand: Operand) {
        (form.write)(&mut self.assembler, register, operand);
        let (mnemonic, operands) = form.expected(register, operand);
        self.written.push(WrittenInstruction::Form(mnemonic, operands));
    }

    /// A jump to a label, unconditional if there is no condition of this number.
    fn jump(&mut self, condition: usize, label: usize) {
        let mnemonic = match CONDITIONS.get(condition) {
            Some(&(condition, mnemonic, ..)) => {
                self.assembler.jump_if(condition, self.labels[label]);
                mnemonic
            }
            None => {
                self.assembler.jump(self.labels[label]);
                Mnemonic::Jmp
            }
        };
        self.written.push(WrittenInstruction::Jump(mnemonic, label));
    }

    /// Places the next label here, if there is one.
    fn set_label(&mut self) {
        if let Some(&label) = self.labels.get(self.targets.len()) {
            self.assembler.bind(label);
            self.targets.push(self.written.len());
        }
    }

    /// Panics if the disassembly differs from what was written.
    fn check(mut self) {
        while self.targets.len() < LABELS {
            self.set_label();
        }
        let code = self.assembler.finish();
        let decoded = disassemble(&code);
        assert_eq!(decoded.len(), self.written.len());
        let end = ORIGIN + code.bytes.len() as u64;
        let targets = self.targets.iter().map(|&number| decoded.get(number).map_or(end, |one| one.ip()));
        let targets: Vec<u64> = targets.collect();
        for (found, written) in decoded.iter().zip(self.written) {
            let expected = match written {
                WrittenInstruction::Form(mnemonic, operands) => (mnemonic, operands),
                WrittenInstruction::Jump(mnemonic, label) => {
                    (mnemonic, vec![DecodedOperand::Target(targets[label])])
                }
            };
            assert_eq!((found.mnemonic(), operands(found)), expected);
        }
        let placed = self.labels.map(|label| ORIGIN + code.label(label).expect("it is placed") as u64);
        assert_eq!(targets, placed);
    }
}

/// Writes the program that `bytes` describe, and panics if its disassembly differs from it.
pub fn check(bytes: &[u8]) {
    let (forms, mut choices, mut program) = (forms(), Choices(bytes), RandomProgram::new());
    while !choices.0.is_empty() && program.written.len() < LONGEST {
        let kind = choices.below(forms.len() + 8);
        match forms.get(kind) {
            Some(form) => {
                let register = choices.register(form.slots[0]);
                let operand = choices.operand(form);
                program.form(form, register, operand);
            }
            None if kind < forms.len() + 6 => {
                program.jump(choices.below(CONDITIONS.len() + 1), choices.below(LABELS));
            }
            None => program.set_label(),
        }
    }
    program.check();
}
