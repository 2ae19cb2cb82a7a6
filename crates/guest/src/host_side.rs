//! The part of a processor's state that is the host's.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr;

use guest_memory::Memory;

/// Fields of a guest's state for compiled code and its callbacks.
///
/// Compiled code reads these fields and writes through their pointers, so that they are private: what sets a pointer, a limit or
/// an address of code is unsafe, and states what must hold. A new one has none of them: no code may be entered with it.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct HostSide {
    /// Guest addresses are below this.
    address_limit: u64,
    /// Compiled code is left at the next call or loop if the host's stack pointer is below this. Other threads raise it to
    /// make the thread leave compiled code.
    stack_limit: usize,
    /// The record of the block that runs; null without an observer of accesses.
    record: *mut u64,
    /// A record that begins behind this has no room.
    records_end: *mut u64,
    /// From this number of instructions on the observer is notified of each block.
    instruction_limit: u64,
    /// See [`Callbacks`].
    flush_records: Option<extern "C" fn(guest: *mut c_void)>,
    /// See [`CodeAddresses`].
    table: u64,
    stack_end: usize,
    /// The host stack pointer with which compiled code was entered last.
    stack_pointer: usize,
    enter: u64,
    leave_by_fault: u64,
    /// The host instruction that faulted last.
    fault: usize,
    interpret_until: Option<extern "C" fn(guest: *mut c_void, from: u64, until: u64) -> u64>,
    context: *mut c_void,
    memory: *const Memory,
}

/// The functions that compiled code calls, and the data that they need.
#[derive(Clone, Copy, Debug)]
pub struct Callbacks {
    /// Passes the records to the observer and empties the buffer.
    pub flush_records: extern "C" fn(guest: *mut c_void),
    /// Has the program interpreted from one address until it reaches another. Returns the address at which execution
    /// continues.
    pub interpret_until: extern "C" fn(guest: *mut c_void, from: u64, until: u64) -> u64,
    /// The thread that runs the program.
    pub context: *mut c_void,
    /// The program's memory.
    pub memory: *const Memory,
}

/// Where a compiler's code is.
#[derive(Clone, Copy, Debug)]
pub struct CodeAddresses {
    /// The table of compiled code by guest address, for computed jumps.
    pub table: u64,
    /// The stub that enters compiled code.
    pub enter: u64,
    /// The stub at which the host continues after a fault in compiled code.
    pub leave_by_fault: u64,
    /// The value of the stack limit when the thread need not leave compiled code.
    pub stack_end: usize,
}

/// Offsets of the fields that compiled code accesses.
impl HostSide {
    /// The limit of guest addresses.
    pub const ADDRESS_LIMIT: usize = offset_of!(HostSide, address_limit);
    /// The limit of the host's stack.
    pub const STACK_LIMIT: usize = offset_of!(HostSide, stack_limit);
    /// The record of the block that runs.
    pub const RECORD: usize = offset_of!(HostSide, record);
    /// The last address at which a record may begin.
    pub const RECORDS_END: usize = offset_of!(HostSide, records_end);
    /// The number of instructions from which on the observer is notified.
    pub const INSTRUCTION_LIMIT: usize = offset_of!(HostSide, instruction_limit);
    /// The address of [`Callbacks::flush_records`].
    pub const FLUSH_RECORDS: usize = offset_of!(HostSide, flush_records);
    /// The address of [`Callbacks::interpret_until`].
    pub const INTERPRET_UNTIL: usize = offset_of!(HostSide, interpret_until);
    /// [`CodeAddresses::table`].
    pub const TABLE: usize = offset_of!(HostSide, table);
    /// The host stack pointer with which compiled code was entered last.
    pub const STACK_POINTER: usize = offset_of!(HostSide, stack_pointer);
}

impl HostSide {
    /// Sets what compiled code calls.
    ///
    /// # Safety
    /// Until they are set again or no compiled code runs any more, `memory` must be that of the program, and `context`
    /// what both functions take it for.
    pub unsafe fn set_callbacks(&mut self, callbacks: Callbacks) {
        let Callbacks { flush_records, interpret_until, context, memory } = callbacks;
        (self.flush_records, self.interpret_until) = (Some(flush_records), Some(interpret_until));
        (self.context, self.memory) = (context, memory);
    }

    /// Sets where the code is.
    ///
    /// # Safety
    /// The addresses must be those of one compiler, which must live as long as its code may be entered with them.
    /// `stack_end` must leave the room on the calling thread's stack that the compiler's code needs.
    pub unsafe fn set_code(&mut self, code: CodeAddresses) {
        let CodeAddresses { table, enter, leave_by_fault, stack_end } = code;
        (self.table, self.stack_end) = (table, stack_end);
        (self.enter, self.leave_by_fault) = (enter, leave_by_fault);
    }

    /// Sets where records are written.
    ///
    /// # Safety
    /// From `record` to `records_end`, and as many words further as the longest record has, nothing else may access memory
    /// until records are written elsewhere.
    pub(crate) unsafe fn set_records(&mut self, record: *mut u64, records_end: *mut u64) {
        (self.record, self.records_end) = (record, records_end);
    }

    /// Moves the record of the block that runs.
    ///
    /// # Safety
    /// As for [`Self::set_records`].
    #[inline(always)]
    pub(crate) unsafe fn set_record(&mut self, record: *mut u64) {
        self.record = record;
    }

    /// The record of the block that runs.
    #[inline(always)]
    pub(crate) fn record(&self) -> *mut u64 {
        self.record
    }

    /// Whether no record may begin at the current instruction.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.record > self.records_end
    }

    /// Sets the number of instructions from which on the observer is notified of each block.
    pub fn set_instruction_limit(&mut self, limit: u64) {
        self.instruction_limit = limit;
    }

    /// [`Callbacks::context`]; null before it is set.
    pub fn context(&self) -> *mut c_void {
        self.context
    }

    /// [`Callbacks::memory`]; null before it is set.
    pub fn memory(&self) -> *const Memory {
        self.memory
    }

    /// [`CodeAddresses::enter`]; 0 before it is set.
    pub fn entry_stub(&self) -> u64 {
        self.enter
    }

    /// [`CodeAddresses::stack_end`].
    pub fn stack_end(&self) -> usize {
        self.stack_end
    }

    /// Whether another thread has raised the stack limit.
    pub fn must_leave(&self) -> bool {
        self.stack_limit != self.stack_end
    }

    /// The address of the stack limit, which other threads may raise.
    pub fn stack_limit(&mut self) -> *mut usize {
        &raw mut self.stack_limit
    }

    /// The address of the stack pointer with which compiled code is entered: the stub that enters writes it.
    pub fn stack_pointer(&mut self) -> *mut usize {
        &raw mut self.stack_pointer
    }

    /// The host stack pointer with which compiled code was entered last; 0 before.
    pub fn entry_stack_pointer(&self) -> usize {
        self.stack_pointer
    }

    /// Notes the host instruction that faulted, and returns where the host continues.
    pub fn faulted(&mut self, fault: usize) -> u64 {
        self.fault = fault;
        self.leave_by_fault
    }

    /// The host instruction that faulted last.
    pub fn fault(&self) -> usize {
        self.fault
    }
}

/// That of a new guest, for which no compiled code has run.
impl Default for HostSide {
    fn default() -> HostSide {
        HostSide {
            address_limit: guest_memory::WINDOW,
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
            context: ptr::null_mut(),
            memory: ptr::null(),
        }
    }
}

// SAFETY: the pointers are set anew by each thread's run and used only during it.
unsafe impl Send for HostSide {}
