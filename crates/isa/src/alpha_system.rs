//! Alpha as a whole system executes it: with the instructions of PALcode, and the names of the calls that only a kernel makes.
//!
//! PALcode instructions are EV6's. They are not in the [table](crate::TABLE), as no user's program may execute them.

use crate::alpha::ZERO;
use crate::instruction_set::{
    ControlCalls, ControlTransfer, InstructionSet, InstructionSummary, MemoryAccess, PipelineSummary,
    Register, ReturnStackUse, TransferKind, TransferTarget,
};
use crate::{Alpha, CpuModel, Group, InstructionClass};

/// The Alpha instruction set with PALcode.
#[derive(Clone, Copy, Debug)]
pub struct AlphaSystem;

/// The opcode of calls of PALcode.
const CALL_PAL: u32 = 0;

/// The base of physical addresses in records: the address at which the kernel maps all memory, without its highest bit
/// (`events::record::word_of_address`).
const DIRECT_MAPPING: i64 = 0x7fff_fc00_0000_0000;

/// The functions of OSF/1's PALcode that only a kernel calls.
const PRIVILEGED: [(u32, &str); 24] = [
    (0x01, "cflush"),
    (0x09, "cserve"),
    (0x0a, "swppal"),
    (0x0d, "wripir"),
    (0x10, "rdmces"),
    (0x11, "wrmces"),
    (0x2b, "wrfen"),
    (0x2d, "wrvptptr"),
    (0x30, "swpctx"),
    (0x31, "wrval"),
    (0x32, "rdval"),
    (0x33, "tbi"),
    (0x34, "wrent"),
    (0x35, "swpipl"),
    (0x36, "rdps"),
    (0x37, "wrkgp"),
    (0x38, "wrusp"),
    (0x39, "wrperfmon"),
    (0x3a, "rdusp"),
    (0x3c, "whami"),
    (0x3d, "retsys"),
    (0x3e, "wtint"),
    (0x3f, "rti"),
    (0x03, "ldqp"),
];

/// The functions that the emulator carries out itself (QEMU, `target/alpha/translate.c`): imb, rduniq, wruniq, draina and some of the
/// privileged ones. Of all others the PALcode is executed.
const CARRIED_OUT: [u32; 14] =
    [0x01, 0x02, 0x2d, 0x31, 0x32, 0x35, 0x36, 0x38, 0x3a, 0x3c, 0x3e, 0x86, 0x9e, 0x9f];

/// An instruction of PALcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PalInstruction {
    /// Reads an internal register.
    MoveFrom,
    /// Loads.
    Load,
    /// Writes an internal register.
    MoveTo,
    /// Leaves PALcode.
    Return,
    /// Stores.
    Store,
}

impl PalInstruction {
    fn decode(word: u32) -> Option<PalInstruction> {
        match word >> 26 {
            0x19 => Some(PalInstruction::MoveFrom),
            0x1b => Some(PalInstruction::Load),
            0x1d => Some(PalInstruction::MoveTo),
            0x1e => Some(PalInstruction::Return),
            0x1f => Some(PalInstruction::Store),
            _ => None,
        }
    }

    fn mnemonic(self) -> &'static str {
        match self {
            PalInstruction::MoveFrom => "hw_mfpr",
            PalInstruction::Load => "hw_ld",
            PalInstruction::MoveTo => "hw_mtpr",
            PalInstruction::Return => "hw_ret",
            PalInstruction::Store => "hw_st",
        }
    }

    fn group(self) -> Group {
        match self {
            PalInstruction::Load => Group::IntegerLoad,
            PalInstruction::Store => Group::IntegerStore,
            PalInstruction::Return => Group::IntegerControl,
            PalInstruction::MoveFrom | PalInstruction::MoveTo => Group::Other,
        }
    }

    fn class(self) -> InstructionClass {
        match self {
            PalInstruction::Load => InstructionClass::Load,
            PalInstruction::Store => InstructionClass::Store,
            PalInstruction::Return => InstructionClass::Jump,
            PalInstruction::MoveFrom | PalInstruction::MoveTo => InstructionClass::Miscellaneous,
        }
    }

    const ALL: [PalInstruction; 5] = [
        PalInstruction::MoveFrom,
        PalInstruction::Load,
        PalInstruction::MoveTo,
        PalInstruction::Return,
        PalInstruction::Store,
    ];
}

/// The register fields of a word.
fn registers(word: u32) -> (u8, u8) {
    ((word >> 21 & 31) as u8, (word >> 16 & 31) as u8)
}

/// The access of `hw_ld` and `hw_st`: bits 12 to 15 are its kind, the bits below a signed displacement.
fn access(word: u32, is_store: bool) -> MemoryAccess {
    let (register, base) = registers(word);
    let (kind, displacement) = (word >> 12 & 15, i64::from((word as i32) << 20 >> 20));
    let is_quadword = kind & 1 != 0;
    let is_physical = kind < 4;
    MemoryAccess {
        size: if is_quadword { 8 } else { 4 },
        is_store,
        base,
        displacement: if is_physical { DIRECT_MAPPING + displacement } else { displacement },
        mask: !0,
        is_locked: kind >> 1 == 1,
        quadword: (is_quadword && (is_store || register != ZERO)).then_some(register),
    }
}

fn summary(instruction: PalInstruction, word: u32) -> InstructionSummary {
    let (a, b) = registers(word);
    let register = |number: u8| Some(Register::Integer(number)).filter(|_| number != ZERO);
    let mut summary = InstructionSummary::default();
    match instruction {
        PalInstruction::MoveFrom => {
            summary.unknown = 1 << a;
            (summary.value, summary.written) = (register(a), [register(a), None]);
        }
        PalInstruction::Load => {
            let access = access(word, false);
            summary.unknown = if access.quadword.is_some() { 0 } else { 1 << a };
            summary.access = Some(access);
            (summary.value, summary.written) = (register(a), [register(a), None]);
            summary.read[0] = register(b);
        }
        PalInstruction::Store => {
            let access = access(word, true);
            summary.unknown = if access.is_locked { 1 << a } else { 0 };
            summary.access = Some(access);
            summary.value = Some(Register::Integer(a));
            summary.written = [register(a).filter(|_| access.is_locked), None];
            summary.read = [register(b), register(a), None, None];
        }
        PalInstruction::MoveTo => summary.read[0] = register(b),
        PalInstruction::Return => {
            summary.read[0] = register(b);
            summary.transfer = Some(ControlTransfer {
                kind: TransferKind::Jump,
                is_conditional: false,
                target: TransferTarget::Register { base: b, displacement: 0 },
                link: None,
                hint: None,
                return_stack: ReturnStackUse::default(),
            });
        }
    }
    summary
}

/// The name of a call that only a kernel makes.
fn privileged(word: u32) -> Option<&'static str> {
    let is_call = word >> 26 == CALL_PAL;
    PRIVILEGED.iter().find(|(function, _)| is_call && *function == word).map(|(_, name)| *name)
}

impl InstructionSet for AlphaSystem {
    fn name(&self) -> &'static str {
        "alpha-system"
    }

    fn length(&self, word: u32) -> u64 {
        Alpha.length(word)
    }

    fn summary(&self, word: u32) -> Option<InstructionSummary> {
        match PalInstruction::decode(word) {
            Some(instruction) => Some(summary(instruction, word)),
            None => Alpha.summary(word),
        }
    }

    fn zero_register(&self) -> u8 {
        Alpha.zero_register()
    }

    fn stack_pointer(&self) -> u8 {
        Alpha.stack_pointer()
    }

    fn code_alignment(&self) -> u64 {
        Alpha.code_alignment()
    }

    fn elf_machine(&self) -> u16 {
        Alpha.elf_machine()
    }

    fn disassemble(&self, word: u32, address: u64) -> Option<String> {
        let Some(instruction) = PalInstruction::decode(word) else {
            return match privileged(word) {
                Some(name) => Some(format!("call_pal {name}")),
                None => Alpha.disassemble(word, address),
            };
        };
        let name = |number: u8| self.register_name(Register::Integer(number));
        let (a, b) = registers(word);
        let (a, b, index) = (name(a), name(b), word & 0xffff);
        let mnemonic = instruction.mnemonic();
        let accessed = |is_store| {
            let access = access(word, is_store);
            let physical = if access.displacement >= DIRECT_MAPPING - 0x800 { "/p" } else { "" };
            let size = if access.size == 8 { "q" } else { "l" };
            let displacement = (word as i32) << 20 >> 20;
            format!("{mnemonic}{size}{physical} {a},{displacement}({b})")
        };
        Some(match instruction {
            PalInstruction::MoveFrom => format!("{mnemonic} {a},{index:#x}"),
            PalInstruction::MoveTo => format!("{mnemonic} {b},{index:#x}"),
            PalInstruction::Return => format!("{mnemonic} ({b})"),
            PalInstruction::Load => accessed(false),
            PalInstruction::Store => accessed(true),
        })
    }

    fn register_name(&self, register: Register) -> &'static str {
        Alpha.register_name(register)
    }

    fn mnemonic(&self, word: u32) -> Option<&'static str> {
        match PalInstruction::decode(word) {
            Some(instruction) => Some(instruction.mnemonic()),
            None => privileged(word).or_else(|| Alpha.mnemonic(word)),
        }
    }

    fn mnemonics(&self) -> Vec<(&'static str, Group)> {
        let mut all = Alpha.mnemonics();
        all.extend(PRIVILEGED.map(|(_, name)| (name, Group::Other)));
        all.extend(PalInstruction::ALL.map(|instruction| (instruction.mnemonic(), instruction.group())));
        all
    }

    fn is_implemented(&self, word: u32, cpu: CpuModel) -> bool {
        PalInstruction::decode(word).is_some() || Alpha.is_implemented(word, cpu)
    }

    fn pipeline_summary(&self, word: u32) -> Option<PipelineSummary> {
        let Some(instruction) = PalInstruction::decode(word) else {
            let summary = Alpha.pipeline_summary(word)?;
            let is_jump = summary.class == InstructionClass::CallPal && !CARRIED_OUT.contains(&word);
            let class = if is_jump { InstructionClass::Jump } else { summary.class };
            return Some(PipelineSummary { class, ..summary });
        };
        let InstructionSummary { written, read, .. } = summary(instruction, word);
        let is_store = instruction == PalInstruction::Store;
        // A store reads the register that it stores first, as Alpha's other stores.
        let sources = if is_store { [read[1], read[0]] } else { [None, read[0]] };
        Some(PipelineSummary {
            class: instruction.class(),
            sources,
            special: is_store.then_some(0),
            destination: written[0],
        })
    }

    fn control_calls(&self) -> ControlCalls {
        Alpha.control_calls()
    }

    fn second_entry(&self) -> u64 {
        Alpha.second_entry()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn palcode_accesses_physical_memory_through_the_direct_mapping() {
        // hw_ldl/p $23,24($16) and hw_stq/p $30,0($0), of QEMU's PALcode for swpctx.
        let load = AlphaSystem.summary(0x6ef0_0018).unwrap().access.unwrap();
        assert_eq!((load.size, load.is_store, load.base), (4, false, 16));
        assert_eq!(load.displacement, DIRECT_MAPPING + 24);
        let store = AlphaSystem.summary(0x7fc0_1000).unwrap().access.unwrap();
        assert_eq!((store.size, store.is_store, store.base, store.quadword), (8, true, 0, Some(30)));
        assert_eq!(AlphaSystem.disassemble(0x6ef0_0018, 0).unwrap(), "hw_ldl/p t9,24(a0)");
        assert_eq!(AlphaSystem.disassemble(0x7fc0_1ffc, 0).unwrap(), "hw_stq/p sp,-4(v0)");
    }

    #[test]
    fn a_program_has_no_instructions_of_palcode() {
        for opcode in [0x19, 0x1b, 0x1d, 0x1e, 0x1f_u32] {
            assert!(Alpha.summary(opcode << 26).is_none() && AlphaSystem.summary(opcode << 26).is_some());
        }
    }

    #[test]
    fn a_call_whose_palcode_is_executed_is_a_jump_to_it() {
        let class = |set: &dyn InstructionSet, word| set.pipeline_summary(word).map(|summary| summary.class);
        let (callsys, swpctx, swpipl, rduniq) = (0x83, 0x30, 0x35, 0x9e);
        let (jump, call) = (InstructionClass::Jump, InstructionClass::CallPal);
        let classes =
            [(callsys, jump), (swpctx, jump), (swpipl, call), (rduniq, InstructionClass::ThreadPointer)];
        for (word, expected) in classes {
            assert_eq!(class(&AlphaSystem, word), Some(expected), "{word:#x}");
        }
        // A program's trace has no PALcode.
        assert_eq!(class(&Alpha, callsys), Some(InstructionClass::CallPal));
    }

    #[test]
    fn everything_else_is_alphas() {
        let mut random = fastrand::Rng::with_seed(2);
        for word in std::iter::repeat_with(|| random.u32(..)).take(100_000) {
            if PalInstruction::decode(word).is_none() && privileged(word).is_none() {
                assert_eq!(AlphaSystem.mnemonic(word), Alpha.mnemonic(word), "{word:#x}");
                assert_eq!(AlphaSystem.disassemble(word, 0x1000), Alpha.disassemble(word, 0x1000));
            }
        }
        assert_eq!(AlphaSystem.mnemonic(0x3f), Some("rti"));
        assert_eq!(AlphaSystem.disassemble(0x83, 0), Alpha.disassemble(0x83, 0));
        let all = AlphaSystem.mnemonics();
        assert!([0x3d, 0x33, 0x6ef0_0018].iter().all(|&word| {
            let name = AlphaSystem.mnemonic(word);
            all.iter().any(|one| Some(one.0) == name)
        }));
    }
}
