//! Words of x86-64 code without an emulator: what an instruction's encoding says of its transfer of control and of its accesses.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, MemorySize, OpAccess,
};

use super::{DescribedAccess, DescribedKind, InstructionDescription};

/// The words that describe the instructions of a block, whose code begins at an address. They end with the first bytes that are none.
pub fn x86_64_words(code: &[u8], address: u64) -> Vec<u32> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let instructions = std::iter::from_fn(|| {
        let instruction = decoder.can_decode().then(|| decoder.decode())?;
        (!instruction.is_invalid()).then_some(instruction)
    });
    instructions.map(|instruction| describe(&instruction, &mut factory).word()).collect()
}

fn describe(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> InstructionDescription {
    let kind = kind(instruction);
    let accesses = match kind.has_distance() {
        true => kind.implied_accesses(),
        false => accesses(instruction, factory),
    };
    let distance = instruction.near_branch_target().wrapping_sub(instruction.ip()) as i64;
    InstructionDescription {
        length: instruction.len() as u8,
        kind,
        distance: kind.has_distance().then_some(distance),
        accesses,
    }
}

fn kind(instruction: &Instruction) -> DescribedKind {
    match instruction.flow_control() {
        _ if matches!(instruction.code(), Code::Syscall | Code::Sysenter | Code::Int_imm8) => {
            DescribedKind::SystemCall
        }
        FlowControl::ConditionalBranch => DescribedKind::Branch,
        FlowControl::UnconditionalBranch => DescribedKind::Jump,
        FlowControl::Call => DescribedKind::StoringCall,
        FlowControl::IndirectBranch => DescribedKind::IndirectJump,
        FlowControl::IndirectCall => DescribedKind::IndirectCall,
        FlowControl::Return => DescribedKind::Return,
        FlowControl::Interrupt | FlowControl::Exception => DescribedKind::MayLeave,
        _ if instruction.is_string_instruction()
            && (instruction.has_rep_prefix() || instruction.has_repne_prefix()) =>
        {
            DescribedKind::Repeat
        }
        _ => DescribedKind::Operation,
    }
}

/// The first two accesses: an instruction loads before it stores.
fn accesses(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> [Option<DescribedAccess>; 2] {
    let (mut loads, mut stores) = (Vec::new(), Vec::new());
    for used in factory.info(instruction).used_memory() {
        // What a repeated instruction accesses in total is unknown; this is an iteration.
        let size = match used.memory_size() {
            MemorySize::Unknown => instruction.memory_size(),
            known => known,
        };
        let (is_load, is_store) = match used.access() {
            OpAccess::Read | OpAccess::CondRead => (true, false),
            OpAccess::Write | OpAccess::CondWrite => (false, true),
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
            OpAccess::None | OpAccess::NoMemAccess => (false, false),
        };
        loads.extend(is_load.then(|| access(false, size)));
        stores.extend(is_store.then(|| access(true, size)));
    }
    let mut all = loads.into_iter().chain(stores);
    [all.next(), all.next()]
}

fn access(is_store: bool, size: MemorySize) -> DescribedAccess {
    const LARGEST_SHIFT: u32 = 7;
    let shift = size.size().max(1).next_power_of_two().trailing_zeros();
    DescribedAccess { is_store, size_shift: shift.min(LARGEST_SHIFT) as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_described() {
        // push rbp; mov rax, [rdi]; add [rsi], ecx; rep movsq; lea rax, [rip + 1]; call +5; je -2; syscall; ret
        let code = [
            &[0x55][..],
            &[0x48, 0x8b, 0x07],
            &[0x01, 0x0e],
            &[0xf3, 0x48, 0xa5],
            &[0x48, 0x8d, 0x05, 1, 0, 0, 0],
            &[0xe8, 0, 0, 0, 0],
            &[0x74, 0xfe],
            &[0x0f, 0x05],
            &[0xc3],
        ];
        let words = x86_64_words(&code.concat(), 0x1000);
        let described: Vec<_> =
            words.into_iter().map(|word| InstructionDescription::of_word(word).unwrap()).collect();
        assert!(described.iter().map(|it| usize::from(it.length)).eq(code.iter().map(|it| it.len())));
        let kinds: Vec<_> = described.iter().map(|it| (it.kind, it.distance)).collect();
        use DescribedKind::*;
        let operation = (Operation, None);
        let expected = [
            operation,
            operation,
            operation,
            (Repeat, None),
            operation,
            (StoringCall, Some(5)),
            (Branch, Some(0)),
            (SystemCall, None),
            (Return, None),
        ];
        assert_eq!(kinds, expected);
        let access = |is_store, size_shift| Some(DescribedAccess { is_store, size_shift });
        let accesses: Vec<_> = described.iter().map(|it| it.accesses).collect();
        assert_eq!(accesses[..2], [[access(true, 3), None], [access(false, 3), None]]);
        assert_eq!(
            accesses[2..5],
            [[access(false, 2), access(true, 2)], [access(false, 3), access(true, 3)], [None, None]]
        );
        assert_eq!(accesses[8], [access(false, 3), None]);
    }
}
