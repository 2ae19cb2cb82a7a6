//! Differences that come from outside the program. They are tracked from where they enter through registers and
//! memory (as in taint analysis): a difference is accepted only if it derives from one of these, never because of its
//! size or position.

use std::collections::HashSet;

use isa::{Flags, Instruction, InstructionFormat, Op, Operands};

use crate::engine::{FPCR, Step};

/// A system call that returns different results on the two sides.
struct Answer {
    number: u64,
    why: &'static str,
    /// v0 and a3 may differ.
    result: bool,
    /// The register that points to the call's output, and the number of output bytes that may differ.
    memory: Option<(usize, u64)>,
}

pub const ROBUST_LIST: &str = "qemu-alpha has no set_robust_list";
const CLOCK: &str = "the engine's clock advances with the instructions, qemu's with the calls";

const ANSWERS: [Answer; 5] = [
    Answer { number: 466, why: ROBUST_LIST, result: true, memory: None },
    Answer { number: 256, why: STATUS, result: false, memory: Some((A1, 8)) },
    Answer { number: 420, why: CLOCK, result: false, memory: Some((A1, 16)) },
    Answer { number: 359, why: CLOCK, result: false, memory: Some((A0, 16)) },
    Answer { number: 339, why: "the kernels' names and versions", result: false, memory: Some((A0, 65 * 6)) },
];

pub const RPCC: &str = "rpcc: the engine counts instructions, qemu the host's cycles";
pub const STATUS: &str =
    "floating-point status: qemu records less and no summary; tests/float_qemu.rs compares it";
/// The FPCR's exception status and its summary.
const FPCR_STATUS: u64 = 1 << 63 | 0x3f << 52;
const CALLSYS: u32 = 0x83;
const V0: usize = 0;
const A0: usize = 16;
const A1: usize = 17;
const A3: usize = 19;
/// Where the floating-point registers begin.
const F: usize = 31;
/// The integer register that is always zero; so is the floating-point one.
const ZERO: usize = 31;

/// The registers and memory that may differ now, with the reason.
#[derive(Default)]
pub struct Edge {
    registers: HashSet<usize>,
    /// Aligned quadwords.
    memory: HashSet<u64>,
    previous: Option<Step>,
    /// Each origin of an accepted difference, once.
    pub reasons: Vec<&'static str>,
}

impl Edge {
    /// The differences before an instruction that do not derive from outside.
    pub fn unexplained(&mut self, ours: &Step, theirs: &Step) -> Option<String> {
        if ours.address != theirs.address {
            return Some("other addresses".into());
        }
        if ours.registers.is_empty() {
            return None;
        }
        if let Some(previous) = self.previous.take() {
            self.follow(&previous);
        }
        let pairs = ours.registers.iter().zip(&theirs.registers);
        let differs = |register, our: &u64, their: &u64| match register {
            FPCR => (our ^ their) & !FPCR_STATUS != 0,
            _ => our != their,
        };
        let differing: HashSet<usize> = pairs
            .enumerate()
            .filter_map(|(register, (our, their))| differs(register, our, their).then_some(register))
            .collect();
        let wrong: Vec<String> = differing
            .difference(&self.registers)
            .map(|&r| format!("{} {:#x}/{:#x}", name(r), ours.registers[r], theirs.registers[r]))
            .collect();
        self.registers = differing;
        self.previous = Some(ours.clone());
        (!wrong.is_empty()).then(|| wrong.join(" "))
    }

    /// Propagates differences through an instruction, and adds new ones of system calls.
    fn follow(&mut self, step: &Step) {
        if step.word == CALLSYS {
            return self.system_call(step);
        }
        let Some(instruction) = isa::decode(step.word) else { return };
        let (op, [a, b, c]) = (instruction.op, fields(instruction));
        let differs = |register: Option<usize>| register.is_some_and(|r| self.registers.contains(&r));
        if op == Op::Rpcc {
            self.origin(RPCC);
            self.registers.extend(a);
        } else if op == Op::MfFpcr {
            self.origin(STATUS);
            self.registers.extend(c);
        } else if op.is(Flags::LOAD) || op.is(Flags::STORE) {
            // A difference of an address is never accepted.
            if !differs(b) {
                self.access(op, a, quadwords(instruction, step));
            }
        } else if [a, b, c].into_iter().any(differs) {
            self.registers.extend(if op.format() == InstructionFormat::Memory { a } else { c });
        }
    }

    fn access(&mut self, op: Op, register: Option<usize>, [first, last]: [u64; 2]) {
        if op.is(Flags::LOAD) && (self.memory.contains(&first) || self.memory.contains(&last)) {
            self.registers.extend(register);
        }
        if op.is(Flags::STORE) {
            if register.is_some_and(|register| self.registers.contains(&register)) {
                self.memory.extend([first, last]);
            } else if op.is(Flags::QUAD) && first == last {
                self.memory.remove(&first);
            }
        }
    }

    fn system_call(&mut self, step: &Step) {
        let Some(answer) = ANSWERS.iter().find(|answer| answer.number == step.registers[V0]) else { return };
        self.origin(answer.why);
        if answer.result {
            self.registers.extend([V0, A3]);
        }
        if let Some((pointer, bytes)) = answer.memory {
            let start = step.registers[pointer] & !7;
            self.memory.extend((start..start + bytes).step_by(8));
        }
    }

    fn origin(&mut self, why: &'static str) {
        if !self.reasons.contains(&why) {
            self.reasons.push(why);
        }
    }
}

/// The registers that the fields Ra, Rb and Rc name, numbered as in [`Step`]; None for those that
/// are always zero.
fn fields(instruction: Instruction) -> [Option<usize>; 3] {
    let integer = |register: u8| Some(usize::from(register)).filter(|register| *register < ZERO);
    let float = |register: u8| integer(register).map(|register| F + register);
    let [a, b, c] = [instruction.ra(), instruction.rb(), instruction.rc()];
    match instruction.op.row().operands {
        Operands::FaMemory | Operands::FaBranch => [float(a), integer(b), None],
        Operands::FaFbFc | Operands::FbFc | Operands::Fpcr => [float(a), float(b), float(c)],
        Operands::FaRc => [float(a), None, integer(c)],
        Operands::RaFc => [integer(a), None, float(c)],
        _ if instruction.literal().is_some() => [integer(a), None, integer(c)],
        _ => [integer(a), integer(b), integer(c)],
    }
}

/// The aligned quadwords that an access touches, first and last.
fn quadwords(instruction: Instruction, step: &Step) -> [u64; 2] {
    let base = fields(instruction)[1].map_or(0, |register| step.registers[register]);
    let start = base.wrapping_add_signed(instruction.displacement().into());
    let sizes = [(Flags::BYTE, 1), (Flags::WORD, 2), (Flags::LONG, 4)];
    let size = sizes.iter().find(|(flag, _)| instruction.op.is(*flag)).map_or(8, |(_, size)| *size);
    let aligned = matches!(instruction.op, Op::LdqU | Op::StqU);
    [start & !7, if aligned { start & !7 } else { start.wrapping_add(size - 1) & !7 }]
}

fn name(register: usize) -> String {
    match register {
        0..F => isa::REGISTER_NAMES[register].into(),
        FPCR => "fpcr".into(),
        _ => format!("f{}", register - F),
    }
}
