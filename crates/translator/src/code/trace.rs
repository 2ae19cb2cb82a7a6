//! Translates traces: blocks that follow each other, where the translation of one falls into that of the next.

use iced_x86::{Code, Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, OpKind};

use super::emitter::{CopyEmitter, reaches, set_displacement};
use super::plan::{CounterForm, CounterPlan, uses_gs};
use super::{
    BlockCopy, CodeCache, CodeFault, ENTRY_ALIGNMENT, InstructionStart, PAGE_SHIFT, SAVED_NONE,
    TranslationExit, in_reach,
};
use crate::area::{KEY, RAX, RCX, RDX, RSP, SPILLED, SPILLED_ANY, TABLE, TARGET, counter_offset};
use crate::memory::{NO_IMAGE, ProgramMemory};

/// Instructions of a block at most.
const MAX_BLOCK: usize = 128;
/// Instructions of a trace at most, but for its last block.
const MAX_TRACE: usize = 400;
/// The slots of saved registers.
const RAX_SLOT: i32 = SPILLED;
const RCX_SLOT: i32 = SPILLED + 8;
const RDX_SLOT: i32 = SPILLED + 16;
/// The number of the slot of rcx, and of the register of choice.
const RCX_SAVED: u8 = 1 << 4 | RCX;
const ANY_SLOT: u8 = 3 << 4;

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SourceBlockEnd {
    /// By its last instruction, which transfers control.
    Transfer,
    /// Before an instruction that does not belong to it.
    Next,
    /// By a system call.
    SystemCall,
    /// Before an instruction that cannot be translated.
    Unsupported,
}

/// The instructions of a block.
struct SourceBlock {
    instructions: Vec<(Instruction, usize)>,
    end: SourceBlockEnd,
}

/// Where control goes on after a block.
enum Follow {
    /// At an address.
    Address(u64),
    /// Elsewhere.
    Nowhere,
}

impl CodeCache {
    /// Translates the block at an address, and blocks after it.
    pub(super) fn translate(&mut self, address: u64, memory: &mut ProgramMemory) -> Result<u32, CodeFault> {
        let decoded = decode(address, memory, MAX_BLOCK)?;
        Ok(self.translate_trace(address, decoded, Some(memory)))
    }

    /// Translates one instruction, to be executed once: it may write to its own page.
    pub fn translate_once(&mut self, address: u64, memory: &ProgramMemory) -> Result<u32, CodeFault> {
        let decoded = decode(address, memory, 1)?;
        Ok(self.translate_trace(address, decoded, None))
    }

    /// Translates a block, and blocks after it. Without `memory` the block is not found again, and nothing follows it.
    fn translate_trace(
        &mut self,
        address: u64,
        mut decoded: SourceBlock,
        mut memory: Option<&mut ProgramMemory>,
    ) -> u32 {
        let zone = self.zone_for(address).expect("memory for translated code");
        let mut out = CopyEmitter { at: self.zones[zone].at.next_multiple_of(ENTRY_ALIGNMENT) };
        let first = self.blocks.len() as u32;
        let indirect_entry = out.at;
        out.load(RAX, RAX_SLOT);
        let (mut next, mut total, mut stubs) = (address, 0, Vec::new());
        loop {
            total += decoded.instructions.len();
            let number = self.begin_block(next, zone, &out, first, &decoded, memory.as_deref_mut());
            let follow = self.emit_block(number, &mut out, &decoded, &mut stubs);
            let Follow::Address(following) = follow else { break };
            let may_follow = total < MAX_TRACE
                && !self.by_address.contains_key(&following)
                && self.zones[zone].serves(following) == self.zones[zone].serves(address);
            match memory.as_deref().filter(|_| may_follow).map(|memory| decode(following, memory, MAX_BLOCK))
            {
                Some(Ok(more)) => (next, decoded) = (following, more),
                _ => {
                    self.emit_exit(&mut out, &[0xe9], following, &mut stubs);
                    break;
                }
            }
        }
        self.blocks[first as usize].indirect_entry = indirect_entry;
        self.emit_stubs(&mut out, &stubs);
        self.zones[zone].at = out.at;
        first
    }

    fn begin_block(
        &mut self,
        address: u64,
        zone: usize,
        out: &CopyEmitter,
        trace: u32,
        decoded: &SourceBlock,
        memory: Option<&mut ProgramMemory>,
    ) -> u32 {
        let end = decoded.instructions.last().map_or(address, |(last, _)| last.next_ip());
        let number = self.define(BlockCopy {
            address,
            size: (end - address) as u32,
            entry: out.at,
            indirect_entry: 0,
            trace,
            counts_before: 0,
            starts: Box::default(),
            linked: Vec::new(),
            prefixes: Vec::new(),
            image: memory.as_ref().map_or(NO_IMAGE, |memory| memory.image_at(address)),
        });
        self.zones[zone].blocks.push((out.at, number));
        let Some(memory) = memory else { return number };
        memory.translated(address, end);
        self.by_address.insert(address, number);
        for page in address >> PAGE_SHIFT..=(end.max(address + 1) - 1) >> PAGE_SHIFT {
            self.by_page.entry(page).or_default().push(number);
        }
        number
    }

    fn emit_block(
        &mut self,
        number: u32,
        out: &mut CopyEmitter,
        decoded: &SourceBlock,
        stubs: &mut Vec<u32>,
    ) -> Follow {
        let all: Vec<Instruction> = decoded.instructions.iter().map(|(one, _)| *one).collect();
        let plan = CounterPlan::of(&all, &mut self.factory);
        let (entry, address) = (out.at, self.blocks[number as usize].address);
        let mut starts = Vec::with_capacity(all.len() + 1);
        let mut follow = None;
        for (index, &(instruction, displacement)) in decoded.instructions.iter().enumerate() {
            if index == plan.index {
                emit_counter(out, number, plan.form);
            }
            let mut start = InstructionStart {
                code: (out.at - entry) as u32,
                source: (instruction.ip() - address) as u16,
                saved: SAVED_NONE,
            };
            let is_last = index + 1 == all.len();
            if is_last && matches!(decoded.end, SourceBlockEnd::Transfer | SourceBlockEnd::SystemCall) {
                starts.push(start);
                follow = Some(self.emit_transfer(out, &instruction, displacement, stubs, &mut |code| {
                    starts.push(InstructionStart { code: (code - entry) as u32, saved: RCX_SAVED, ..start })
                }));
            } else {
                let saved = self.emit_copy(out, &instruction, displacement, |code| {
                    starts.push(start);
                    start.code = (code - entry) as u32;
                });
                starts.push(InstructionStart { saved, ..start });
            }
        }
        let block = &mut self.blocks[number as usize];
        starts.push(InstructionStart {
            code: (out.at - entry) as u32,
            source: block.size as u16,
            saved: SAVED_NONE,
        });
        block.starts = starts.into();
        block.counts_before = plan.index as u16;
        let end = address + u64::from(block.size);
        match (follow, decoded.end) {
            (Some(follow), _) => follow,
            (None, SourceBlockEnd::Unsupported) => {
                let exit = self.add_exit(TranslationExit::Unsupported(end));
                out.leave(exit);
                Follow::Nowhere
            }
            (None, _) => Follow::Address(end),
        }
    }

    /// Copies an instruction that does not transfer control. Returns the register that the copy has saved; `saved` is called with the
    /// address of the copy then.
    fn emit_copy(
        &mut self,
        out: &mut CopyEmitter,
        instruction: &Instruction,
        displacement: usize,
        saved: impl FnOnce(u64),
    ) -> u8 {
        let mut bytes = code_of(instruction);
        if !instruction.is_ip_rel_memory_operand() {
            out.put(&bytes);
            return SAVED_NONE;
        }
        let target = instruction.ip_rel_memory_address();
        if patch_relative(&mut bytes, displacement, out.at, target) {
            out.put(&bytes);
            return SAVED_NONE;
        }
        let register = self.free_register(instruction);
        out.store(SPILLED_ANY, register);
        out.load_constant(register, target);
        saved(out.at);
        // From an operand relative to the instruction pointer to one with a base and a displacement of 0.
        bytes[displacement - 1] = bytes[displacement - 1] & 0x38 | 0x80 | register & 7;
        bytes[displacement..displacement + 4].fill(0);
        out.put(&bytes);
        out.load(register, SPILLED_ANY);
        ANY_SLOT | register
    }

    /// A register that an instruction does not use, and that can be the base of its operand: the bit of the encoding that extends a base,
    /// and that an operand relative to the instruction pointer does not need, says of which half.
    fn free_register(&mut self, instruction: &Instruction) -> u8 {
        let used = self.factory.info(instruction).used_registers();
        let is_free = |number: &u8| {
            number & 7 != RSP
                && used.iter().all(|one| {
                    let full = one.register().full_register();
                    !full.is_gpr64() || full.number() != usize::from(*number)
                })
        };
        let half = if has_high_base(instruction) { 8..16 } else { 0..8 };
        half.into_iter().find(is_free).expect("an instruction uses fewer than seven registers")
    }

    /// The last instruction of a block. `popped` is called with an address from which on rcx is saved.
    fn emit_transfer(
        &mut self,
        out: &mut CopyEmitter,
        instruction: &Instruction,
        displacement: usize,
        stubs: &mut Vec<u32>,
        popped: &mut dyn FnMut(u64),
    ) -> Follow {
        let (next, target) = (instruction.next_ip(), instruction.near_branch_target());
        if instruction.code() == Code::Syscall {
            let exit = self.add_exit(TranslationExit::SystemCall(next));
            out.call(exit);
            // What the instruction leaves in rcx.
            out.load_constant(RCX, next);
            return Follow::Address(next);
        }
        match instruction.flow_control() {
            FlowControl::ConditionalBranch => {
                if instruction.is_jcc_short_or_near() {
                    let condition = instruction.condition_code() as u8 - 1;
                    self.emit_exit(out, &[0x0f, 0x80 | condition], target, stubs);
                } else {
                    self.emit_counting_branch(out, instruction, target, stubs);
                }
                Follow::Address(next)
            }
            FlowControl::UnconditionalBranch => Follow::Address(target),
            FlowControl::Call => {
                out.push_constant(next);
                Follow::Address(target)
            }
            FlowControl::XbeginXabortXend => {
                // A transaction that aborts at once: mov eax, 0.
                out.put(&[0xb8, 0, 0, 0, 0]);
                Follow::Address(target)
            }
            FlowControl::Return => {
                emit_saves(out);
                // pop rcx
                out.put(&[0x59]);
                if instruction.op_count() == 1 {
                    // lea rsp, [rsp + bytes]
                    out.put(&[0x48, 0x8d, 0xa4, 0x24]);
                    out.put(&u32::from(instruction.immediate16()).to_le_bytes());
                }
                emit_lookup(out);
                Follow::Nowhere
            }
            FlowControl::IndirectBranch | FlowControl::IndirectCall => {
                emit_saves(out);
                emit_target(out, instruction, displacement);
                if instruction.flow_control() == FlowControl::IndirectCall {
                    popped(out.at);
                    out.push_constant(next);
                }
                emit_lookup(out);
                Follow::Nowhere
            }
            // Traps and undefined instructions.
            _ => {
                out.put(&code_of(instruction));
                Follow::Address(next)
            }
        }
    }

    /// `loop` and `jrcxz`, which have short displacements only: they jump over a jump.
    fn emit_counting_branch(
        &mut self,
        out: &mut CopyEmitter,
        instruction: &Instruction,
        target: u64,
        stubs: &mut Vec<u32>,
    ) {
        const OVER_JUMP: u8 = 2;
        let mut bytes = code_of(instruction);
        let last = bytes.len() - 1;
        bytes[last] = OVER_JUMP;
        out.put(&bytes);
        // jmp over the long jump, whose place may be moved.
        out.put(&[0xeb, 0]);
        let start = out.at;
        self.emit_exit(out, &[0xe9], target, stubs);
        // SAFETY: the displacement of the short jump that was just written.
        unsafe { ((start - 1) as *mut u8).write((out.at - start) as u8) };
    }

    fn add_exit(&mut self, exit: TranslationExit) -> u32 {
        self.exits.push(exit);
        self.exits.len() as u32 - 1
    }

    /// A transfer to an address of the program: to its translation, or to a stub.
    fn emit_exit(&mut self, out: &mut CopyEmitter, opcode: &[u8], target: u64, stubs: &mut Vec<u32>) {
        let site = out.transfer(opcode);
        stubs.push(self.add_exit(TranslationExit::Direct { target, site, stub: 0 }));
    }

    /// The stubs of a trace's exits. Exits to what is translated already are linked.
    fn emit_stubs(&mut self, out: &mut CopyEmitter, stubs: &[u32]) {
        for &number in stubs {
            let TranslationExit::Direct { target, site, .. } = self.exits[number as usize] else { continue };
            let stub = out.at;
            out.leave(number);
            self.exits[number as usize] = TranslationExit::Direct { target, site, stub };
            let known = self.by_address.get(&target).copied();
            match known.filter(|&block| in_reach(site + 4, self.blocks[block as usize].entry)) {
                Some(block) => {
                    set_displacement(site, self.blocks[block as usize].entry);
                    self.blocks[block as usize].linked.push(number);
                }
                None => set_displacement(site, stub),
            }
        }
    }
}

/// Decodes the block at an address. Each instruction comes with the offset of its displacement.
fn decode(address: u64, memory: &ProgramMemory, most: usize) -> Result<SourceBlock, CodeFault> {
    let code = memory.code_at(address).ok_or(CodeFault::NotExecutable)?;
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut instructions = Vec::new();
    let end = loop {
        if instructions.len() == most {
            break SourceBlockEnd::Next;
        }
        let is_at_end = !decoder.can_decode();
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            // A block ends before it, and another begins with it.
            let is_cut = is_at_end || decoder.last_error() == iced_x86::DecoderError::NoMoreBytes;
            match instructions.is_empty() {
                true if is_cut => return Err(CodeFault::NotExecutable),
                true => return Err(CodeFault::Undefined),
                false => break SourceBlockEnd::Next,
            }
        }
        if is_unsupported(&instruction) {
            break SourceBlockEnd::Unsupported;
        }
        let displacement = decoder.get_constant_offsets(&instruction).displacement_offset();
        instructions.push((instruction, displacement));
        if instruction.code() == Code::Syscall {
            break SourceBlockEnd::SystemCall;
        }
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::XbeginXabortXend
                if !matches!(instruction.code(), Code::Xbegin_rel16 | Code::Xbegin_rel32) => {}
            _ => break SourceBlockEnd::Transfer,
        }
    };
    Ok(SourceBlock { instructions, end })
}

/// Instructions that translated code cannot have: they use GS, enter the kernel as 32-bit programs do, or change the code segment.
fn is_unsupported(instruction: &Instruction) -> bool {
    let is_far = match instruction.flow_control() {
        FlowControl::Return => !matches!(instruction.code(), Code::Retnq | Code::Retnq_imm16),
        FlowControl::IndirectBranch => instruction.code() != Code::Jmp_rm64,
        FlowControl::IndirectCall => instruction.code() != Code::Call_rm64,
        FlowControl::Call => !matches!(instruction.code(), Code::Call_rel32_64 | Code::Syscall),
        FlowControl::UnconditionalBranch => {
            !matches!(instruction.code(), Code::Jmp_rel8_64 | Code::Jmp_rel32_64)
        }
        FlowControl::ConditionalBranch => instruction.near_branch_target() == 0,
        FlowControl::Interrupt => instruction.code() == Code::Int_imm8,
        _ => false,
    };
    is_far || uses_gs(instruction)
}

/// Whether the bit that extends a base register is set.
fn has_high_base(instruction: &Instruction) -> bool {
    let bytes = code_of(instruction);
    let is_prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let rest = &bytes[bytes.iter().take_while(|byte| is_prefix(byte)).count()..];
    match (instruction.code().encoding(), rest) {
        (EncodingKind::Legacy, [0x40..=0x4f, ..]) => rest[0] & 1 != 0,
        (EncodingKind::VEX, [0xc4, second, ..])
        | (EncodingKind::EVEX | EncodingKind::XOP, [_, second, ..]) => second & 0x20 == 0,
        _ => false,
    }
}

/// The bytes of an instruction.
fn code_of(instruction: &Instruction) -> Vec<u8> {
    // SAFETY: it was decoded from this memory.
    unsafe { std::slice::from_raw_parts(instruction.ip() as *const u8, instruction.len()) }.to_vec()
}

/// Sets the displacement of an operand relative to the instruction pointer, for an instruction that is copied to `at`.
fn patch_relative(bytes: &mut [u8], displacement: usize, at: u64, target: u64) -> bool {
    let end = at + bytes.len() as u64;
    let reached = reaches(end, target);
    bytes[displacement..displacement + 4].copy_from_slice(&(target.wrapping_sub(end) as i32).to_le_bytes());
    reached
}

/// Increments the counter of a block.
fn emit_counter(out: &mut CopyEmitter, block: u32, form: CounterForm) {
    let offset = counter_offset(block);
    let in_register = |out: &mut CopyEmitter, register| {
        out.load(register, offset);
        out.add_one_to_register(register);
        out.store(offset, register);
    };
    match form {
        CounterForm::Add => out.add_one(offset),
        CounterForm::Increment => out.increment(offset),
        CounterForm::DeadRegister(register) => in_register(out, register),
        CounterForm::SavedRegister => {
            out.store(SPILLED_ANY, RAX);
            in_register(out, RAX);
            out.load(RAX, SPILLED_ANY);
        }
    }
}

/// Saves the registers that [`emit_lookup`] uses.
fn emit_saves(out: &mut CopyEmitter) {
    for (slot, register) in [(RAX_SLOT, RAX), (RCX_SLOT, RCX), (RDX_SLOT, RDX)] {
        out.store(slot, register);
    }
}

/// The target of an indirect transfer in rcx.
fn emit_target(out: &mut CopyEmitter, instruction: &Instruction, displacement: usize) {
    if instruction.op0_kind() == OpKind::Register {
        let number = instruction.op0_register().number() as u8;
        // mov rcx, register
        out.put(&[0x48 | (number >> 3) << 2, 0x89, 0xc1 | (number & 7) << 3]);
        return;
    }
    // From `ff /2` or `ff /4` to `mov rcx, m64`.
    let bytes = code_of(instruction);
    let opcode = bytes.iter().position(|&byte| byte == 0xff).expect("the opcode of an indirect transfer");
    let (prefixes, operand) = (&bytes[..opcode], &bytes[opcode + 1..]);
    let rex = prefixes.last().copied().filter(|byte| byte & 0xf0 == 0x40).unwrap_or(0x40);
    let mut code: Vec<u8> = prefixes.iter().copied().filter(|byte| matches!(byte, 0x64 | 0x67)).collect();
    code.extend([0x48 | rex & 3, 0x8b, operand[0] & 0xc7 | RCX << 3]);
    code.extend(&operand[1..]);
    if instruction.is_ip_rel_memory_operand() {
        let moved = displacement + code.len() - bytes.len();
        let target = instruction.ip_rel_memory_address();
        if !patch_relative(&mut code, moved, out.at, target) {
            out.load_constant(RCX, target);
            // mov rcx, [rcx]
            out.put(&[0x48, 0x8b, 0x09]);
            return;
        }
    }
    out.put(&code);
}

/// Jumps to the translation of the address in rcx, if the thread's table has it, and leaves translated code otherwise. No flags change.
fn emit_lookup(out: &mut CopyEmitter) {
    const GS: u8 = 0x65;
    // movzx eax, cx; lea rax, [rax + rax]
    out.put(&[0x0f, 0xb7, 0xc1, 0x48, 0x8d, 0x04, 0x00]);
    // mov rdx, gs:[rax * 8 + TABLE]
    out.put(&[GS, 0x48, 0x8b, 0x14, 0xc5]);
    out.put(&(TABLE as i32).to_le_bytes());
    // lea rcx, [rcx + rdx]
    out.put(&[0x48, 0x8d, 0x0c, 0x11]);
    // jrcxz over the miss
    out.put(&[0xe3, 0]);
    let miss = out.at;
    out.store(TARGET, RCX);
    out.store(KEY, RDX);
    for (register, slot) in [(RAX, RAX_SLOT), (RCX, RCX_SLOT), (RDX, RDX_SLOT)] {
        out.load(register, slot);
    }
    // mov qword ptr gs:[EXIT], INDIRECT, which is -1
    out.leave(u32::MAX);
    let hit = out.at;
    // SAFETY: the displacement of the jrcxz that was just written.
    unsafe { ((miss - 1) as *mut u8).write((hit - miss) as u8) };
    out.load(RCX, RCX_SLOT);
    out.load(RDX, RDX_SLOT);
    // jmp gs:[rax * 8 + TABLE + 8]
    out.put(&[GS, 0xff, 0x24, 0xc5]);
    out.put(&(TABLE as i32 + 8).to_le_bytes());
}
