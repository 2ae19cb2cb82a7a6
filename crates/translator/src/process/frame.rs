//! Frames of signals on the program's stack, as the kernel makes them (arch/x86/kernel/signal_64.c, fpu/signal.c).

use super::actions::{KernelSignalAction, SA_RESTORER};
use super::program_memory::{read, write, write_bytes};
use super::thread::ProgramThread;
use crate::area::{VECTORS, vectors_size};

/// The bytes below the stack pointer that a program may use.
const RED_ZONE: u64 = 128;
/// Marks of a frame with extended state.
const MAGIC1: u32 = 0x4650_5853;
const MAGIC2: u32 = 0x4650_5845;
/// Where the frame says so, in the reserved bytes of the legacy area.
const RESERVED: usize = 464;
/// The offset of the header of an XSAVE area, and of MXCSR.
const HEADER: usize = 512;
const MXCSR: usize = 24;
/// `UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS`
const CONTEXT_FLAGS: u64 = 1 | 2 | 4;
/// The segments of 64-bit programs: CS and SS.
const SEGMENTS: u64 = 0x33 | 0x2b << 48;
/// Flags that a program may change.
const USER_FLAGS: u64 = 0x0024_0dd5;
/// Flags that a handler begins without: direction, resume, trap.
const CLEARED_FLAGS: u64 = 1 << 10 | 1 << 16 | 1 << 8;
const FIXED_FLAGS: u64 = 0x202;

/// The kernel's `rt_sigframe`, in quadwords.
#[derive(Clone, Copy)]
#[repr(C)]
struct KernelFrame {
    return_address: u64,
    context: SignalContext,
    information: [u64; 16],
}

/// The kernel's `ucontext`.
#[derive(Clone, Copy)]
#[repr(C)]
struct SignalContext {
    flags: u64,
    link: u64,
    /// Address, flags, size.
    stack: [u64; 3],
    /// r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
    registers: [u64; 17],
    eflags: u64,
    segments: u64,
    /// The error code, the number of the trap, the old mask, and the address of a fault.
    error: u64,
    trap: u64,
    old_mask: u64,
    address: u64,
    vectors: u64,
    reserved: [u64; 8],
    mask: u64,
}

/// The registers of `SignalContext`, by their numbers in encodings.
const ORDER: [usize; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4];

/// A frame could not be written or read.
pub(super) struct BadFrame;

/// Pushes a frame, and sets the registers for the handler. Returns the handler's address.
pub(super) fn push(
    thread: &mut ProgramThread,
    signal: i32,
    action: &KernelSignalAction,
    information: &[u64; 16],
    fault: Option<[u64; 3]>,
) -> Result<u64, BadFrame> {
    if action.flags & SA_RESTORER == 0 {
        return Err(BadFrame);
    }
    let pointer = thread.area().registers[4];
    let [start, size, flags] = thread.signals.stack;
    let has_stack = flags & libc::SS_DISABLE as u64 == 0 && size > 0;
    let on_stack = action.flags & libc::SA_ONSTACK as u64 != 0 && has_stack;
    let mut at = match on_stack && !thread.signals.is_on_stack(pointer) {
        true => start + size,
        false => pointer.wrapping_sub(RED_ZONE),
    };
    let size = vectors_size();
    at = at.wrapping_sub(size as u64 + 4) & !63;
    let vectors = at;
    push_vectors(thread, vectors, size)?;
    at = (at.wrapping_sub(size_of::<KernelFrame>() as u64) & !15).wrapping_sub(8);
    let area = thread.area();
    let mut registers = [0; 17];
    for (value, number) in registers.iter_mut().zip(ORDER) {
        *value = area.registers[number];
    }
    let eflags = area.flags;
    registers[16] = thread.next;
    let [error, trap, address] = fault.unwrap_or_default();
    let context = SignalContext {
        flags: CONTEXT_FLAGS,
        link: 0,
        stack: stack_of(thread),
        registers,
        eflags,
        segments: SEGMENTS,
        error,
        trap,
        old_mask: thread.signals.mask,
        address,
        vectors,
        reserved: [0; 8],
        mask: thread.signals.mask,
    };
    let frame = KernelFrame { return_address: action.restorer, context, information: *information };
    write(at, &frame).map_err(|_| BadFrame)?;
    let area = thread.area();
    area.registers[0] = 0;
    area.registers[7] = signal as u64;
    area.registers[6] = at + std::mem::offset_of!(KernelFrame, information) as u64;
    area.registers[2] = at + std::mem::offset_of!(KernelFrame, context) as u64;
    area.registers[4] = at;
    area.flags &= !CLEARED_FLAGS;
    Ok(action.handler)
}

/// The alternate stack in the order of the kernel's structure.
fn stack_of(thread: &mut ProgramThread) -> [u64; 3] {
    let [start, size, flags] = thread.signals.stack;
    [start, flags, size]
}

/// The vector registers of a thread.
fn vectors(thread: &mut ProgramThread) -> &mut [u8] {
    let address = thread.area().address as usize + VECTORS;
    // SAFETY: part of the area, which only this thread uses.
    unsafe { std::slice::from_raw_parts_mut(address as *mut u8, vectors_size()) }
}

/// Writes the vector registers to the program's memory; the handler begins with initial ones.
fn push_vectors(thread: &mut ProgramThread, at: u64, size: usize) -> Result<(), BadFrame> {
    let features = thread.area().vectors_mask;
    let own = vectors(thread);
    let mut reserved = [0; 48];
    reserved[..4].copy_from_slice(&MAGIC1.to_le_bytes());
    reserved[4..8].copy_from_slice(&(size as u32 + 4).to_le_bytes());
    reserved[8..16].copy_from_slice(&features.to_le_bytes());
    reserved[16..20].copy_from_slice(&(size as u32).to_le_bytes());
    own[RESERVED..HEADER].copy_from_slice(&reserved);
    write_bytes(at, own).map_err(|_| BadFrame)?;
    write_bytes(at + size as u64, &MAGIC2.to_le_bytes()).map_err(|_| BadFrame)?;
    set_initial_vectors(own);
    Ok(())
}

fn set_initial_vectors(own: &mut [u8]) {
    own[HEADER..HEADER + 64].fill(0);
    own[MXCSR..MXCSR + 4].copy_from_slice(&0x1f80u32.to_le_bytes());
}

/// The system call `rt_sigreturn`: takes all registers from the frame. Returns the mask.
pub(super) fn pop(thread: &mut ProgramThread) -> Result<u64, BadFrame> {
    let pointer = thread.area().registers[4];
    let context: SignalContext = read(pointer).map_err(|_| BadFrame)?;
    let mask = thread.area().vectors_mask;
    let own = vectors(thread);
    if context.vectors == 0 {
        set_initial_vectors(own);
    } else {
        let size = vectors_size();
        let state = super::program_memory::read_bytes(context.vectors, size).map_err(|_| BadFrame)?;
        let word = |at: usize| u32::from_le_bytes([state[at], state[at + 1], state[at + 2], state[at + 3]]);
        let has_extended = word(RESERVED) == MAGIC1;
        own.copy_from_slice(&state);
        // What XRSTOR refuses is not taken from the program.
        let mut header = [0; 64];
        let saved = u64::from(word(HEADER)) | u64::from(word(HEADER + 4)) << 32;
        let saved = if has_extended { saved & mask } else { 3 };
        header[..8].copy_from_slice(&saved.to_le_bytes());
        own[HEADER..HEADER + 64].copy_from_slice(&header);
        own[MXCSR..MXCSR + 4].copy_from_slice(&(word(MXCSR) & 0xffff).to_le_bytes());
    }
    let area = thread.area();
    for (value, number) in context.registers.iter().zip(ORDER) {
        area.registers[number] = *value;
    }
    area.flags = context.eflags & USER_FLAGS & !(1 << 8) | FIXED_FLAGS;
    thread.next = context.registers[16];
    let [start, flags, size] = context.stack;
    thread.signals.stack = [start, size, flags & (libc::SS_DISABLE as u64 | 0xffff_ffff_8000_0000)];
    Ok(context.mask)
}
