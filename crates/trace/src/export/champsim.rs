//! ChampSim's trace format: 64 bytes for each instruction of one thread.
//!
//! A record has the address, whether the instruction is a branch and was taken, two registers written, four registers
//! read, two addresses stored to and four loaded from; 0 stands for none. ChampSim distinguishes the kinds of
//! branches by whether they read or write the instruction pointer, the stack pointer and the flags. So a guest's
//! branches are written as if they used these registers as x86-64's do.

use std::io::{self, BufWriter, Write};

use isa::{ControlTransfer, InstructionSet, InstructionSummary, Register, TransferKind, TransferTarget};

use events::Block;

/// ChampSim's numbers of the special registers.
const STACK_POINTER: u8 = 6;
const FLAGS: u8 = 25;
const INSTRUCTION_POINTER: u8 = 26;

/// Size of a record in bytes, and the offsets of its fields.
const RECORD: usize = 64;
const IS_BRANCH: usize = 8;
const IS_TAKEN: usize = 9;
const WRITTEN: usize = 10;
const READ: usize = 12;
const STORED_TO: usize = 16;
const LOADED_FROM: usize = 32;

/// Size of the output buffer in bytes.
const BUFFER: usize = 64 << 10;

/// The parts of a record that are the same for all executions of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Template {
    length: u8,
    is_branch: bool,
    is_conditional: bool,
    written: [u8; 2],
    read: [u8; 4],
}

/// Writes instructions in the order of execution.
///
/// The outcome of a conditional branch is known when the next block begins: the caller reports that by
/// [`ChampSim::arrive`].
pub struct ChampSim<W: Write> {
    out: BufWriter<W>,
    /// The parts, by block and index of the instruction.
    templates: Vec<Box<[Template]>>,
    /// A conditional branch whose outcome is not known yet, and the address after it.
    pending: Option<([u8; RECORD], u64)>,
}

impl<W: Write> ChampSim<W> {
    /// Writes to `out`. `blocks` are the trace's, of a program of this instruction set.
    pub fn new(set: &dyn InstructionSet, blocks: &[Block], out: W) -> ChampSim<W> {
        let template = |&word: &u32| Template::new(set, word);
        let templates = blocks.iter().map(|block| block.words.iter().map(template).collect()).collect();
        ChampSim { out: BufWriter::with_capacity(BUFFER, out), templates, pending: None }
    }

    /// Control has arrived at this address; `None` if it is not known.
    #[inline]
    pub fn arrive(&mut self, address: Option<u64>) -> io::Result<()> {
        let Some((mut record, end)) = self.pending.take() else { return Ok(()) };
        record[IS_TAKEN] = address.is_some_and(|address| address != end).into();
        self.out.write_all(&record)
    }

    /// The instruction of this index in a block is executed at `pc`, with these accesses.
    #[inline]
    pub fn instruction(
        &mut self,
        block: usize,
        index: usize,
        pc: u64,
        access: Option<(bool, u64)>,
    ) -> io::Result<()> {
        let template = self.templates[block][index];
        let mut record = [0; RECORD];
        record[..8].copy_from_slice(&pc.to_le_bytes());
        record[IS_BRANCH] = template.is_branch.into();
        record[IS_TAKEN] = template.is_branch.into();
        record[WRITTEN..][..2].copy_from_slice(&template.written);
        record[READ..][..4].copy_from_slice(&template.read);
        if let Some((is_store, address)) = access {
            let field = if is_store { STORED_TO } else { LOADED_FROM };
            record[field..][..8].copy_from_slice(&address.to_le_bytes());
        }
        if template.is_conditional {
            self.arrive(None)?;
            self.pending = Some((record, pc.wrapping_add(template.length.into())));
            return Ok(());
        }
        self.out.write_all(&record)
    }

    /// Writes the rest.
    pub fn finish(mut self) -> io::Result<()> {
        self.arrive(None)?;
        self.out.flush()
    }
}

impl Template {
    fn new(set: &dyn InstructionSet, word: u32) -> Template {
        let summary = set.summary(word).unwrap_or_default();
        let numbers = RegisterNumbers { stack_pointer: set.stack_pointer(), zero: set.zero_register() };
        let (written, read) = match summary.transfer {
            Some(transfer) => numbers.transfer(&summary, transfer),
            None => (summary.written.map(|one| numbers.of(one)), summary.read.map(|one| numbers.of(one))),
        };
        Template {
            length: set.length(word) as u8,
            is_branch: summary.transfer.is_some(),
            is_conditional: summary.transfer.is_some_and(|transfer| transfer.is_conditional),
            written,
            read,
        }
    }
}

/// Maps registers to ChampSim's numbers: 0 for none and for the zero register, the stack pointer's for the stack
/// pointer, and one that is not special for the others.
struct RegisterNumbers {
    stack_pointer: u8,
    zero: u8,
}

impl RegisterNumbers {
    fn of(&self, register: Option<Register>) -> u8 {
        match register {
            None => 0,
            Some(Register::Integer(number)) if number == self.zero => 0,
            Some(Register::Integer(number)) if number == self.stack_pointer => STACK_POINTER,
            Some(Register::Integer(number)) => 32 + number,
            Some(Register::Float(number)) => 64 + number,
        }
    }

    /// The registers written and read in the record of a transfer of control, from which ChampSim derives its kind. The
    /// register that a call writes its return address to has no room there.
    fn transfer(&self, summary: &InstructionSummary, transfer: ControlTransfer) -> ([u8; 2], [u8; 4]) {
        if transfer.is_conditional {
            // A branch that tests the zero register must not look like a jump, which tests nothing; one that tests the
            // stack pointer must not look like a return.
            let tested = summary
                .read
                .map(|one| self.of(one))
                .into_iter()
                .find(|one| ![0, STACK_POINTER].contains(one));
            return ([INSTRUCTION_POINTER, 0], [INSTRUCTION_POINTER, tested.unwrap_or(FLAGS), 0, 0]);
        }
        let target = match transfer.target {
            TransferTarget::Relative(_) => None,
            TransferTarget::Register { base, .. } => Some(self.of(Some(Register::Integer(base)))),
        };
        let (read, link) = (target.unwrap_or(0), self.of(transfer.link.map(Register::Integer)));
        match transfer.kind {
            TransferKind::Call => {
                ([INSTRUCTION_POINTER, STACK_POINTER], [INSTRUCTION_POINTER, STACK_POINTER, read, 0])
            }
            TransferKind::Return => ([INSTRUCTION_POINTER, STACK_POINTER], [STACK_POINTER, read, 0, 0]),
            TransferKind::Jump => {
                ([INSTRUCTION_POINTER, link], [target.unwrap_or(INSTRUCTION_POINTER), 0, 0, 0])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::encode::{self, SecondOperand};
    use isa::{Alpha, Flags, Op};

    /// A record as ChampSim reads it.
    struct Read {
        ip: u64,
        is_branch: bool,
        is_taken: bool,
        written: Vec<u8>,
        read: Vec<u8>,
        stored_to: Vec<u64>,
        loaded_from: Vec<u64>,
    }

    impl Read {
        fn new(record: &[u8]) -> Read {
            let number = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
            let registers = |range: std::ops::Range<usize>| {
                record[range].iter().copied().filter(|&register| register != 0).collect()
            };
            let addresses = |at: usize, count: usize| {
                (0..count).map(|index| number(at + 8 * index)).filter(|&address| address != 0).collect()
            };
            Read {
                ip: number(0),
                is_branch: record[8] != 0,
                is_taken: record[9] != 0,
                written: registers(10..12),
                read: registers(12..16),
                stored_to: addresses(16, 2),
                loaded_from: addresses(32, 4),
            }
        }

        /// The kind of branch that ChampSim derives by its documented rules.
        fn kind(&self) -> &'static str {
            let special = [STACK_POINTER, FLAGS, INSTRUCTION_POINTER];
            let writes = |register| self.written.contains(&register);
            let reads = |register| self.read.contains(&register);
            let reads_other = self.read.iter().any(|register| !special.contains(register));
            let [reads_sp, reads_flags, reads_ip] = special.map(reads);
            match (reads_sp, reads_ip, writes(STACK_POINTER), writes(INSTRUCTION_POINTER)) {
                (_, _, _, false) => "none",
                (false, _, _, true) if !reads_flags && !reads_other => "direct jump",
                (false, false, _, true) if !reads_flags && reads_other => "indirect jump",
                (false, true, false, true) if reads_flags || reads_other => "conditional",
                (true, true, true, true) if !reads_flags && !reads_other => "direct call",
                (true, true, true, true) if !reads_flags => "indirect call",
                (true, false, true, true) => "return",
                _ => "other",
            }
        }
    }

    fn records(blocks: &[Block], order: &[(usize, Vec<u64>)]) -> Vec<Read> {
        let mut bytes = Vec::new();
        let mut writer = ChampSim::new(&Alpha, blocks, &mut bytes);
        for (block, addresses) in order {
            let (number, block) = (*block, &blocks[*block]);
            let mut addresses = addresses.iter();
            writer.arrive(Some(block.address)).unwrap();
            for (index, pc) in block.addresses().enumerate() {
                let instruction = isa::decode(block.words[index]).unwrap();
                let access = instruction.access_size().map(|_| *addresses.next().unwrap());
                let access = access.map(|address| (instruction.op.is(Flags::STORE), address));
                writer.instruction(number, index, pc, access).unwrap();
            }
        }
        writer.finish().unwrap();
        assert!(bytes.len().is_multiple_of(RECORD));
        bytes.chunks(RECORD).map(Read::new).collect()
    }

    fn block(address: u64, words: Vec<u32>) -> Block {
        Block::new(&Alpha, address, words)
    }

    #[test]
    fn kinds_of_branches_are_found_again() {
        let cases = [
            (encode::branch(Op::Br, 31, 64), "direct jump"),
            (encode::branch(Op::Br, 27, 64), "direct jump"),
            (encode::branch(Op::Bsr, 26, 64), "direct call"),
            (encode::branch(Op::Beq, 3, 64), "conditional"),
            (encode::branch(Op::Beq, 31, 64), "conditional"),
            (encode::branch(Op::Beq, 30, 64), "conditional"),
            (encode::branch(Op::Fbne, 1, 64), "conditional"),
            (encode::jump(Op::Jmp, 31, 1, 0), "indirect jump"),
            (encode::jump(Op::JsrCoroutine, 26, 27, 0), "indirect jump"),
            (encode::jump(Op::Jsr, 26, 27, 0), "indirect call"),
            (encode::jump(Op::Ret, 31, 26, 1), "return"),
            (encode::operate(Op::Addq, 1, SecondOperand::Literal(1), 2), "none"),
            (encode::call_pal(0x83), "none"),
        ];
        for (word, kind) in cases {
            let word = word.unwrap();
            let read = records(&[block(0x1000, vec![word])], &[(0, vec![])]);
            assert_eq!(read[0].kind(), kind, "{}", isa::decode(word).unwrap().disassemble(0x1000));
            assert_eq!(read[0].is_branch, kind != "none");
        }
    }

    #[test]
    fn a_conditional_branch_is_taken_if_control_goes_elsewhere() {
        let branch = encode::branch(Op::Bne, 1, 0x10).unwrap();
        let blocks =
            [block(0x1000, vec![branch]), block(0x1004, vec![branch]), block(0x1014, vec![branch, branch])];
        let order = [0, 1, 2, 0].map(|block| (block, vec![]));
        let read = records(&blocks, &order);
        assert_eq!(
            read.iter().map(|one| one.ip).collect::<Vec<_>>(),
            [0x1000, 0x1004, 0x1014, 0x1018, 0x1000]
        );
        // The first of two in a block was not.
        let taken: Vec<bool> = read.iter().map(|one| one.is_taken).collect();
        assert_eq!(taken, [false, true, false, true, false]);
    }

    #[test]
    fn registers_and_addresses() {
        let words = [
            encode::memory(Op::Ldq, 1, 30, 16),
            encode::memory(Op::Stt, 2, 1, 0),
            encode::memory(Op::StqC, 3, 4, 0),
            encode::operate(Op::Cmoveq, 1, SecondOperand::Register(2), 3),
            encode::operate(Op::Addq, 1, SecondOperand::Literal(31), 31),
        ];
        let block = block(0x1000, words.map(Result::unwrap).to_vec());
        let read = records(&[block], &[(0, vec![0x10, 0x20, 0x30])]);
        let registers: Vec<_> = read.iter().map(|one| (&one.written[..], &one.read[..])).collect();
        let expected: [(&[u8], &[u8]); 5] = [
            (&[33], &[STACK_POINTER]),
            (&[], &[33, 66]),
            (&[35], &[36, 35]),
            (&[35], &[33, 34, 35]),
            (&[], &[33]),
        ];
        assert_eq!(registers, expected);
        assert_eq!((&read[0].loaded_from[..], &read[0].stored_to[..]), (&[0x10][..], &[][..]));
        assert_eq!((&read[1].loaded_from[..], &read[1].stored_to[..]), (&[][..], &[0x20][..]));
        assert_eq!((&read[2].loaded_from[..], &read[2].stored_to[..]), (&[][..], &[0x30][..]));
    }
}
