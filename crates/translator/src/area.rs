//! The area of a thread: what translated code and the glue reach through the segment register GS.
//!
//! | offset | |
//! |---|---|
//! | 0 | [`ThreadArea`] |
//! | [`VECTORS`] | the program's vector and floating-point registers, as XSAVE stores them |
//! | [`TABLE`] | the table of targets of indirect transfers: 65,536 pairs of a negated address and an address in the code cache |
//! | [`SIGNAL_STACK`] | the stack of the handler of signals |
//! | [`PLAIN_CALLS`] | a byte for each number of 16 bits, which says whether the system call goes to the kernel as it is |
//! | [`COUNTERS`] | a counter of 8 bytes for each system call and each block, shared with the process that started the translator |

use std::io;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;

/// Where the vector registers are.
pub(crate) const VECTORS: usize = 0x1000;
/// Bytes for them: what AMX needs, and more.
pub(crate) const VECTORS_SIZE: usize = 0x3000;
/// Where the table of indirect targets is.
pub(crate) const TABLE: usize = 0x10_0000;
/// Entries of the table: it is indexed by the low 16 bits of an address.
pub(crate) const TABLE_ENTRIES: usize = 1 << 16;
/// Where the stack of the handler of signals is, and its bytes.
pub(crate) const SIGNAL_STACK: usize = 0x20_0000;
pub(crate) const SIGNAL_STACK_SIZE: usize = 256 << 10;
/// Where the table of plain system calls is.
pub(crate) const PLAIN_CALLS: usize = 0x30_0000;
/// Where the counters are: first those of system calls.
pub(crate) const COUNTERS: usize = 0x100_0000;
/// Numbers of system calls that are counted.
pub(crate) const SYSTEM_CALLS: usize = 1024;
/// Counters of a thread.
const MAX_COUNTERS: usize = 8 << 20;
/// Blocks that have counters.
pub(crate) const MAX_BLOCKS: usize = MAX_COUNTERS - SYSTEM_CALLS;
/// Bytes of the counters of a thread.
pub(crate) const COUNTERS_SIZE: usize = 8 * MAX_COUNTERS;
/// Bytes of an area.
pub(crate) const AREA_SIZE: usize = COUNTERS + COUNTERS_SIZE;
/// The key of an unused entry of the table: no address is its negative.
pub(crate) const NO_KEY: u64 = 1;

/// Numbers of registers in encodings.
pub(crate) const RAX: u8 = 0;
pub(crate) const RCX: u8 = 1;
pub(crate) const RDX: u8 = 2;
pub(crate) const RSP: u8 = 4;

/// The state of a thread that translated code uses. The offsets of its fields are in the code.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ThreadArea {
    /// Registers that translated code saves while it uses them: rax, rcx, rdx, and one of its choice.
    pub spilled: [u64; 4],
    /// Why translated code was left: the number of an exit, or [`INDIRECT`], or [`SIGNAL`].
    pub exit: u64,
    /// The target of an indirect transfer that the table lacks: less the key of the table's entry.
    pub target: u64,
    /// The key of that entry.
    pub key: u64,
    /// Where translated code jumps to leave.
    pub leave: u64,
    /// Where translated code jumps for a system call.
    pub call: u64,
    /// Where translated code continues after a system call that went to the kernel as it is.
    pub after_call: u64,
    /// The number of a system call while the kernel makes it.
    pub call_number: u64,
    /// Where translated code is entered.
    pub resume: u64,
    /// The stack pointer of the translator.
    pub own_stack: u64,
    /// The base of FS of the translator.
    pub own_fs: u64,
    /// The base of FS of the program.
    pub fs: u64,
    /// The address of this area.
    pub address: u64,
    /// The flags of the program.
    pub flags: u64,
    /// The components of the state that XSAVE saves.
    pub vectors_mask: u64,
    /// Nonzero if a signal waits for delivery.
    pub pending: AtomicU64,
    /// The registers of the program, by their numbers in encodings.
    pub registers: [u64; 16],
    /// The signal that the handler has received.
    pub inbox: SignalInbox,
}

/// A signal that the handler has received and the thread has not delivered yet.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SignalInbox {
    /// Its number; 0 if there is none.
    pub signal: i32,
    /// Whether it is a fault of an instruction.
    pub is_fault: bool,
    /// Whether the thread executes single steps, to the entry of the next block.
    pub is_stepping: bool,
    /// Whether the interrupted instruction wrote to code that had been translated.
    pub is_code_write: bool,
    /// The address in the program at which translated code was left for it; 0 if it was not.
    pub address: u64,
    /// The address in the code cache of the last single step.
    pub last_step: u64,
    /// The kernel's information (`siginfo_t`).
    pub information: [u64; 16],
    /// For faults: the processor's error code, the number of the trap, and the address.
    pub fault: [u64; 3],
}

impl SignalInbox {
    /// No signal.
    pub const EMPTY: SignalInbox = SignalInbox {
        signal: 0,
        is_fault: false,
        is_stepping: false,
        is_code_write: false,
        address: 0,
        last_step: 0,
        information: [0; 16],
        fault: [0; 3],
    };
}

/// The size of the state before the vector registers.
const _: () = assert!(size_of::<ThreadArea>() <= VECTORS);

/// The exit of an indirect transfer whose target the table lacks.
pub(crate) const INDIRECT: u64 = u64::MAX;
/// The exit for a signal.
pub(crate) const SIGNAL: u64 = u64::MAX - 1;

/// Offsets for generated code.
pub(crate) const SPILLED: i32 = offset_of!(ThreadArea, spilled) as i32;
pub(crate) const SPILLED_ANY: i32 = SPILLED + 24;
pub(crate) const EXIT: i32 = offset_of!(ThreadArea, exit) as i32;
pub(crate) const TARGET: i32 = offset_of!(ThreadArea, target) as i32;
pub(crate) const KEY: i32 = offset_of!(ThreadArea, key) as i32;
pub(crate) const LEAVE: i32 = offset_of!(ThreadArea, leave) as i32;
pub(crate) const CALL: i32 = offset_of!(ThreadArea, call) as i32;
pub(crate) const AFTER_CALL: i32 = offset_of!(ThreadArea, after_call) as i32;

/// The offset of the counter of a block.
pub(crate) fn counter_offset(block: u32) -> i32 {
    (COUNTERS + 8 * (SYSTEM_CALLS + block as usize)) as i32
}

/// Where translated code finds the glue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GlueAddresses {
    /// Where it jumps to leave.
    pub leave: u64,
    /// Where it jumps for a system call.
    pub call: u64,
}

/// The bits of XCR0 for the keys of memory protection, which keep the program's value while the translator runs.
const PROTECTION_KEYS: u64 = 1 << 9;
/// The offset of MXCSR in an XSAVE area, and its initial value.
const MXCSR: usize = 24;
const INITIAL_MXCSR: u32 = 0x1f80;

/// Anonymous private memory at any address.
pub(crate) fn map_memory(size: usize, protection: i32) -> io::Result<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address that the kernel chooses.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address as usize) }
}

/// Keeps memory of the translator out of core files.
pub(crate) fn leave_out_of_cores(address: usize, size: usize) {
    // SAFETY: changes nothing that the process sees.
    unsafe { libc::madvise(address as *mut _, size, libc::MADV_DONTDUMP) };
}

impl ThreadArea {
    /// A new area, without counters yet; everything else is zero or as at the start of a program. System calls
    /// with numbers for which `is_plain` holds go to the kernel as they are.
    pub fn new(glue: GlueAddresses, is_plain: impl Fn(i64) -> bool) -> io::Result<*mut ThreadArea> {
        let address = map_memory(AREA_SIZE, libc::PROT_READ | libc::PROT_WRITE)?;
        leave_out_of_cores(address, AREA_SIZE);
        let area = address as *mut ThreadArea;
        // SAFETY: the memory is new, and zero is a value of every field.
        unsafe {
            (*area).address = address as u64;
            (*area).leave = glue.leave;
            (*area).call = glue.call;
            let plain = std::slice::from_raw_parts_mut((address + PLAIN_CALLS) as *mut bool, SYSTEM_CALLS);
            for (number, flag) in (0..).zip(plain) {
                *flag = is_plain(number);
            }
            (*area).flags = 0x202;
            (*area).vectors_mask = vectors_mask();
            ((address + VECTORS + MXCSR) as *mut u32).write(INITIAL_MXCSR);
            let table = std::slice::from_raw_parts_mut((address + TABLE) as *mut [u64; 2], TABLE_ENTRIES);
            table.fill([NO_KEY, 0]);
        }
        Ok(area)
    }

    /// Enters an indirect target into the table.
    pub fn add_target(&mut self, address: u64, code: u64) {
        let index = address as usize % TABLE_ENTRIES;
        // SAFETY: the table is part of the area, which only its thread uses.
        unsafe {
            ((self.address as usize + TABLE) as *mut [u64; 2])
                .add(index)
                .write([address.wrapping_neg(), code])
        };
    }

    /// Counts a system call.
    pub fn add_system_call(&mut self, number: u64) {
        if number < SYSTEM_CALLS as u64 {
            // SAFETY: the counters are part of the area, which only its thread changes.
            unsafe { *((self.address as usize + COUNTERS) as *mut u64).add(number as usize) += 1 };
        }
    }

    /// Adds to the counter of a block.
    pub fn add_count(&mut self, block: u32, change: i64) {
        // SAFETY: the counters are part of the area, which only its thread changes; blocks are fewer than MAX_BLOCKS.
        unsafe {
            let counter = (self.address as usize + counter_offset(block) as usize) as *mut u64;
            *counter = (*counter).wrapping_add_signed(change);
        }
    }
}

/// The components of the processor's state that the kernel has enabled for programs.
fn vectors_mask() -> u64 {
    // SAFETY: every x86-64 processor with FSGSBASE, which was checked, has XGETBV, and the kernel enables it.
    unsafe { xcr0() & !PROTECTION_KEYS }
}

/// # Safety
/// The processor and the kernel have XSAVE.
#[target_feature(enable = "xsave")]
unsafe fn xcr0() -> u64 {
    // SAFETY: the caller's promise.
    unsafe { std::arch::x86_64::_xgetbv(0) }
}

/// Bytes of the processor's state as XSAVE stores it.
pub(crate) fn vectors_size() -> usize {
    std::arch::x86_64::__cpuid_count(13, 0).ebx as usize
}
