//! The part of a processor's state that is the host's.

use std::ffi::c_void;
use std::ptr;

use memory::Memory;

/// Fields of a guest's state for compiled code and its callbacks. The caller of compiled code sets them.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct HostSide {
    /// Guest addresses are below this.
    pub address_limit: u64,
    /// Compiled code is left at the next call or loop if the host's stack pointer is below this. Other threads raise it to
    /// make the thread leave compiled code.
    pub stack_limit: usize,
    /// The record of the block that runs; null without an observer of accesses.
    pub record: *mut u64,
    /// A record that begins behind this has no room.
    pub records_end: *mut u64,
    /// From this number of instructions on the observer is notified of each block.
    pub instruction_limit: u64,
    /// Callback that passes the records to the observer and empties the buffer.
    pub flush_records: Option<extern "C" fn(guest: *mut c_void)>,
    /// The table of compiled code by guest address, for computed jumps.
    pub table: u64,
    /// The value of `stack_limit` when the thread need not leave compiled code.
    pub stack_end: usize,
    /// The host stack pointer with which compiled code was entered last.
    pub stack_pointer: usize,
    /// The stub that enters compiled code.
    pub enter: u64,
    /// The stub at which the host continues after a fault in compiled code.
    pub leave_by_fault: u64,
    /// The host instruction that faulted last.
    pub fault: usize,
    /// Callback by which compiled code has the program interpreted from one address until it reaches another. Returns the
    /// address at which execution continues.
    pub interpret_until: Option<extern "C" fn(guest: *mut c_void, from: u64, until: u64) -> u64>,
    /// For the callbacks: the thread that runs the program.
    pub callback_context: *mut c_void,
    /// The program's memory.
    pub memory: *const Memory,
}

/// That of a new guest, for which no compiled code has run.
impl Default for HostSide {
    fn default() -> HostSide {
        HostSide {
            address_limit: memory::ADDRESS_SPACE,
            stack_limit: 0,
            record: ptr::null_mut(),
            records_end: ptr::null_mut(),
            instruction_limit: 0,
            flush_records: None,
            table: 0,
            stack_end: 0,
            stack_pointer: 0,
            enter: 0,
            leave_by_fault: 0,
            fault: 0,
            interpret_until: None,
            callback_context: ptr::null_mut(),
            memory: ptr::null(),
        }
    }
}

// SAFETY: the pointers are set anew by each thread's run and used only during it.
unsafe impl Send for HostSide {}
