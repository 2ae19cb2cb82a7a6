//! Routines that write the record of the point that they return to.

use isa::Op;
use isa::encode::{self, EncodeError, SecondOperand::Literal as L, SecondOperand::Register as R};

use super::log::{LAP_SHIFT, POSITION, PROCESS_SHIFT, RECORDS, SWITCH};
use crate::assemble::Fragment;
use crate::counts::PAGE;
use crate::instrument::registers::{CANDIDATES, Set};
use crate::layout::ALIGN;
use crate::program::{
    Anchor, BranchTarget, CodeBlock, CodeBlockId, CodeExit, Frozen, ImageCounter, LiftedInstruction,
    ProcedureId, Program, Reference, SP, ZERO,
};
use crate::unwind::NO_ROW;

/// The result register, in which PALcode returns the thread pointer and Linux the process.
const V0: u8 = 0;
/// Registers that Linux changes in a system call besides the result.
const CHANGED: [u8; 2] = [19, 20];
const CALLSYS: u32 = 0x83;
const READ_UNIQUE: u32 = 0x9e;
/// `getxpid`.
const GET_PROCESS: i16 = 20;
/// Bytes of the stack for registers that are saved.
const SAVED_BYTES: i16 = 32;
/// The distance from the log's switch to the process's own page, which is before the log.
const OWN: i16 = -(PAGE as i16) - SWITCH as i16;

/// The routines of a part of the code, within its reach: one for each set of registers that is needed.
#[derive(Clone, Debug)]
pub struct LogRoutines {
    procedure: ProcedureId,
    /// The routines by the registers that they use.
    all: Vec<(RoutineRegisters, CodeBlockId)>,
    /// The number of the image in its log.
    image: u32,
    /// The binary logarithm of the number of records.
    capacity: u32,
}

/// The registers that are used where certain registers are live: first those that are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutineRegisters {
    /// The register with the return address.
    link: u8,
    /// Three more besides the result register.
    scratch: [u8; 3],
    /// Of those and the result register, the ones that the routine saves.
    saved: Set,
    /// Whether the register with the return address must be saved where the routine is called.
    saves_link: bool,
}

impl RoutineRegisters {
    /// Chooses them.
    pub fn new(live: Set) -> RoutineRegisters {
        let usable = || CANDIDATES.into_iter().filter(|one| *one != V0 && !CHANGED.contains(one));
        let is_live = |register: &u8| live & 1 << register != 0;
        // The scratch register of stubs comes last: where it is saved, a branch from afar could not lead through a stub.
        let mut order = usable().filter(|one| !is_live(one)).chain(usable().rev().filter(is_live));
        let [link, scratch @ ..]: [u8; 4] = std::array::from_fn(|_| order.next().unwrap_or(ZERO));
        let saved = scratch.iter().chain([&V0]).filter(|one| is_live(one)).fold(0, |all, one| all | 1 << one);
        RoutineRegisters { link, scratch, saved, saves_link: is_live(&link) }
    }

    /// How many must be saved.
    pub fn saves(&self) -> u32 {
        self.saved.count_ones() + u32::from(self.saves_link)
    }
}

impl LogRoutines {
    /// Adds their procedure to a program.
    pub fn new(program: &mut Program, image: u32, capacity: u32) -> LogRoutines {
        let procedure = program.add_procedure("pathlength_log", Frozen::NoSymbol);
        LogRoutines { procedure, all: Vec::new(), image, capacity }
    }

    /// More of them, for another part of the code.
    pub fn another(&self, program: &mut Program) -> LogRoutines {
        LogRoutines::new(program, self.image, self.capacity)
    }

    /// Where they are to be put.
    pub fn fragment(&self) -> Fragment {
        let blocks = self.all.iter().map(|routine| routine.1).collect();
        Fragment { procedure: self.procedure, blocks, align: ALIGN }
    }

    /// A call that can be inserted where these registers are live, and the register that must be saved around it.
    pub fn call(&mut self, program: &mut Program, live: Set) -> ((u32, Reference), Option<u8>) {
        let registers = RoutineRegisters::new(live);
        let key = RoutineRegisters { saves_link: false, ..registers };
        let block = match self.all.iter().find(|routine| routine.0 == key) {
            Some(routine) => routine.1,
            None => self.add(program, key),
        };
        let word = u32::from(Op::Bsr.row().opcode) << 26 | u32::from(registers.link) << 21;
        let call = (word, Reference::Branch(BranchTarget::Block(block)));
        (call, registers.saves_link.then_some(registers.link))
    }

    fn add(&mut self, program: &mut Program, registers: RoutineRegisters) -> CodeBlockId {
        let instructions = match self.instructions(&registers) {
            Ok(instructions) => instructions,
            Err(error) => unreachable!("the routines' instructions have legal operands: {error}"),
        };
        let block = program.add_block(CodeBlock::new(self.procedure, instructions, CodeExit::Leave));
        program.procedures[self.procedure as usize].blocks.push(block);
        self.all.push((registers, block));
        block
    }

    fn instructions(&self, registers: &RoutineRegisters) -> Result<Vec<LiftedInstruction>, EncodeError> {
        let &RoutineRegisters { link, scratch: [base, ..], .. } = registers;
        let kept: Vec<(u8, i16)> =
            (0..32).filter(|one| registers.saved & 1 << one != 0).zip([0, 8, 16, 24]).collect();
        let mut words = Vec::new();
        if !kept.is_empty() {
            words.push(encode::memory(Op::Lda, SP, SP, -SAVED_BYTES)?);
            for &(register, at) in &kept {
                words.push(encode::memory(Op::Stq, register, SP, at)?);
            }
        }
        let begin = words.len();
        words.push(encode::branch(Op::Br, base, 0)?);
        words.push(encode::memory(Op::Ldah, base, base, 0)?);
        words.push(encode::memory(Op::Lda, base, base, 0)?);
        let record = self.record(registers)?;
        words.push(encode::memory(Op::Ldq, registers.scratch[1], base, 0)?);
        words.push(encode::branch(Op::Beq, registers.scratch[1], 4 * record.len() as i64)?);
        words.extend(record);
        for &(register, at) in &kept {
            words.push(encode::memory(Op::Ldq, register, SP, at)?);
        }
        if !kept.is_empty() {
            words.push(encode::memory(Op::Lda, SP, SP, SAVED_BYTES)?);
        }
        words.push(encode::jump(Op::Ret, ZERO, link, 1)?);
        let mut all: Vec<LiftedInstruction> =
            words.into_iter().map(|word| LiftedInstruction::new(word, NO_ROW)).collect();
        let switch = |back| ImageCounter {
            offset: (PAGE as usize + SWITCH) as u32,
            anchor: Anchor::Instruction(back),
        };
        all[begin + 1].reference = Reference::CounterHigh(switch(0));
        all[begin + 2].reference = Reference::CounterLow(switch(1));
        Ok(all)
    }

    /// Reserves a record and writes it; the address of the log's switch is in the first register. The word that says that the record
    /// is complete is written last.
    fn record(&self, registers: &RoutineRegisters) -> Result<Vec<u32>, EncodeError> {
        let &RoutineRegisters { link, scratch: [base, word, slot], .. } = registers;
        let position = (POSITION - SWITCH) as i16;
        let records = (RECORDS - SWITCH) as i16;
        let slow = self.process(base)?;
        let mut words = vec![
            encode::memory(Op::LdqL, word, base, position)?,
            encode::operate(Op::Addq, word, L(1), slot)?,
            encode::memory(Op::StqC, slot, base, position)?,
            encode::branch(Op::Beq, slot, -16)?,
            // The slot of the record, and its lap.
            encode::operate(Op::Sll, word, L(64 - self.capacity as u8), slot)?,
            encode::operate(Op::Srl, slot, L(60 - self.capacity as u8), slot)?,
            encode::operate(Op::Addq, slot, R(base), slot)?,
            encode::operate(Op::Srl, word, L(self.capacity as u8), word)?,
            encode::operate(Op::Sll, word, L(LAP_SHIFT as u8), word)?,
            encode::call_pal(READ_UNIQUE)?,
            encode::memory(Op::Stq, V0, slot, records + 8)?,
            encode::memory(Op::Ldq, V0, base, OWN)?,
            encode::branch(Op::Bne, V0, 4 * slow.len() as i64)?,
        ];
        words.extend(slow);
        words.extend([
            encode::operate(Op::Bis, word, R(V0), word)?,
            encode::operate(Op::Subq, base, R(link), V0)?,
            encode::operate(Op::Srl, V0, L(2), V0)?,
            encode::operate(Op::Bis, word, R(V0), word)?,
            encode::memory(Op::Stq, word, slot, records)?,
        ]);
        Ok(words)
    }

    /// Asks for the process, for its own page, which is empty in a new process and after a fork.
    fn process(&self, base: u8) -> Result<Vec<u32>, EncodeError> {
        let [first, second] = CHANGED;
        Ok(vec![
            encode::memory(Op::Lda, SP, SP, -16)?,
            encode::memory(Op::Stq, first, SP, 0)?,
            encode::memory(Op::Stq, second, SP, 8)?,
            encode::memory(Op::Lda, V0, ZERO, GET_PROCESS)?,
            encode::call_pal(CALLSYS)?,
            encode::memory(Op::Ldq, first, SP, 0)?,
            encode::memory(Op::Ldq, second, SP, 8)?,
            encode::memory(Op::Lda, SP, SP, 16)?,
            encode::operate(Op::Sll, V0, L(PROCESS_SHIFT as u8), V0)?,
            // The image's number, from the first bit behind the distance on.
            encode::memory(Op::Ldah, V0, V0, (self.image << 8) as i16)?,
            encode::memory(Op::Stq, V0, base, OWN)?,
        ])
    }
}
