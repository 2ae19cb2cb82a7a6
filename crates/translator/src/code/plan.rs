//! Where a block counts itself, so that neither flags nor registers of the program change.

use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register, RflagsBits};

use crate::area::RSP;

/// The flags that arithmetic changes.
const ARITHMETIC: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

/// The stack pointer, which is never used for something else.
const STACK_POINTER: u16 = 1 << RSP;

/// How a block increments its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CounterForm {
    /// By `add`: no flag is live.
    Add,
    /// By `inc`: of all flags only the carry is live.
    Increment,
    /// In a register whose value is dead.
    DeadRegister(u8),
    /// In a register that is saved.
    SavedRegister,
}

/// Where and how a block increments its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CounterPlan {
    /// The index of the instruction before which it does.
    pub index: usize,
    /// The form.
    pub form: CounterForm,
}

/// The sets of what is live before an instruction.
#[derive(Clone, Copy)]
struct LiveBefore {
    flags: u32,
    registers: u16,
}

/// Whether an instruction may leave flags as they are that it changes otherwise: shifts by cl, and repeated string instructions, by 0.
fn may_leave_flags(instruction: &Instruction) -> bool {
    let has_variable_count = (0..instruction.op_count()).any(|operand| {
        instruction.op_kind(operand) == iced_x86::OpKind::Register
            && instruction.op_register(operand) == Register::CL
    });
    let is_shift = matches!(
        instruction.mnemonic(),
        Mnemonic::Shl
            | Mnemonic::Shr
            | Mnemonic::Sar
            | Mnemonic::Sal
            | Mnemonic::Rol
            | Mnemonic::Ror
            | Mnemonic::Rcl
            | Mnemonic::Rcr
            | Mnemonic::Shld
            | Mnemonic::Shrd
    );
    is_shift && has_variable_count || instruction.has_rep_prefix() || instruction.has_repne_prefix()
}

/// The flags that an instruction overwrites. Processors leave undefined ones as they are, but for the auxiliary carry of instructions that
/// set all others.
fn overwritten_flags(instruction: &Instruction) -> u32 {
    let defined = instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set();
    if (defined | RflagsBits::AF) & ARITHMETIC == ARITHMETIC { defined | RflagsBits::AF } else { defined }
}

/// The number of a general register, if all of its 64 bits are accessed; a write of 32 bits clears the others.
fn whole(register: Register) -> Option<u8> {
    (register.is_gpr64() || register.is_gpr32()).then(|| register.number() as u8)
}

/// The number of a general register of any size.
fn general(register: Register) -> Option<u8> {
    let full = register.full_register();
    full.is_gpr64().then(|| full.number() as u8)
}

impl LiveBefore {
    fn before(self, instruction: &Instruction, factory: &mut InstructionInfoFactory) -> LiveBefore {
        let mut flags = self.flags;
        if !may_leave_flags(instruction) {
            flags &= !overwritten_flags(instruction);
        }
        flags |= instruction.rflags_read() & ARITHMETIC;
        // A handler of a fault sees the registers before the instruction, and may use what it overwrites.
        if may_fault(factory, instruction) {
            return LiveBefore { flags, registers: u16::MAX };
        }
        let (mut read, mut written) = (0u16, 0u16);
        for used in factory.info(instruction).used_registers() {
            let register = used.register();
            match (used.access(), whole(register)) {
                (OpAccess::None | OpAccess::NoMemAccess, _) => {}
                (OpAccess::Write, Some(number)) => written |= 1 << number,
                _ => read |= general(register).map_or(0, |number| 1 << number),
            }
        }
        LiveBefore { flags, registers: self.registers & !written | read }
    }
}

impl CounterPlan {
    /// The cheapest place and form of a block. What its successors read is not known, so that all is live at its end.
    pub fn of(instructions: &[Instruction], factory: &mut InstructionInfoFactory) -> CounterPlan {
        let mut live = LiveBefore { flags: ARITHMETIC, registers: u16::MAX };
        let mut best = CounterPlan { index: 0, form: CounterForm::SavedRegister };
        for (index, instruction) in instructions.iter().enumerate().rev() {
            live = live.before(instruction, factory);
            let form = match live {
                LiveBefore { flags: 0, .. } => CounterForm::Add,
                LiveBefore { flags: RflagsBits::CF, .. } => CounterForm::Increment,
                LiveBefore { registers, .. } if registers | STACK_POINTER != u16::MAX => {
                    CounterForm::DeadRegister((registers | STACK_POINTER).trailing_ones() as u8)
                }
                _ => continue,
            };
            if form.cost() < best.form.cost() {
                best = CounterPlan { index, form };
            }
        }
        best
    }
}

impl CounterForm {
    fn cost(self) -> u8 {
        match self {
            CounterForm::Add => 0,
            CounterForm::Increment => 1,
            CounterForm::DeadRegister(_) => 2,
            CounterForm::SavedRegister => 3,
        }
    }
}

/// Whether an instruction may fault.
fn may_fault(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> bool {
    let is_division = matches!(instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv);
    let memory = factory.info(instruction).used_memory();
    is_division || memory.iter().any(|used| used.access() != OpAccess::NoMemAccess)
}

/// Whether an instruction reads or writes memory relative to GS, or GS itself.
pub(super) fn uses_gs(instruction: &Instruction) -> bool {
    instruction.segment_prefix() == Register::GS && instruction.memory_segment() == Register::GS
        || matches!(
            instruction.code(),
            Code::Rdgsbase_r32 | Code::Rdgsbase_r64 | Code::Wrgsbase_r32 | Code::Wrgsbase_r64
        )
        || matches!(instruction.mnemonic(), Mnemonic::Lgs)
        || instruction.mnemonic() == Mnemonic::Mov
            && instruction.op0_kind() == iced_x86::OpKind::Register
            && instruction.op0_register() == Register::GS
        || instruction.mnemonic() == Mnemonic::Pop && instruction.op0_register() == Register::GS
}
