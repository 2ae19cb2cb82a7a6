//! The part of a processor's state that is the host's.

use std::ffi::c_void;
use std::ptr;

use memory::Memory;

/// What compiled code and what it calls need beside the registers. Set by whoever enters it.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct HostSide {
    /// Guest addresses are below this.
    pub address_limit: u64,
    /// Guest calls become host calls, and loops go round, while the host's stack pointer is not below this.
    /// Others raise it when something waits for the thread.
    pub stack_limit: usize,
    /// The record of the block that runs; null without an observer of accesses.
    pub record: *mut u64,
    /// A record that begins behind this has no room.
    pub records_end: *mut u64,
    /// From this number of instructions on the observer is notified of each block.
    pub instruction_limit: u64,
    /// Hands the records on and begins anew.
    pub flush_records: Option<extern "C" fn(guest: *mut c_void)>,
    /// Where compiled code finds other code by the guest's address.
    pub table: u64,
    /// What `stack_limit` is when nothing waits.
    pub stack_end: usize,
    /// The host stack pointer with which compiled code was entered last.
    pub stack_pointer: usize,
    /// The way into compiled code.
    pub enter: u64,
    /// Where the host goes on after a fault in compiled code.
    pub leave_by_fault: u64,
    /// The host instruction that faulted last.
    pub fault: usize,
    /// Executes the program from an address on until another: what the interpreter does for compiled
    /// code. Returns where the program goes on.
    pub go_on: Option<extern "C" fn(guest: *mut c_void, from: u64, until: u64) -> u64>,
    /// For whom it does that.
    pub runner: *mut c_void,
    /// The program's memory.
    pub memory: *const Memory,
}

/// That of a processor that no compiled code runs on yet.
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
            go_on: None,
            runner: ptr::null_mut(),
            memory: ptr::null(),
        }
    }
}

// SAFETY: the pointers are set anew by each thread's run and used only during it.
unsafe impl Send for HostSide {}
