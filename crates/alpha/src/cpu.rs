//! The state of one Alpha processor as a user's program sees it.

/// Integer register numbers by their conventional names.
pub mod register {
    /// Function value, system call number and result.
    pub const V0: usize = 0;
    /// First argument.
    pub const A0: usize = 16;
    /// Fourth argument; after a system call 0 if it succeeded, 1 if v0 holds an errno.
    pub const A3: usize = 19;
    /// Fifth argument; second result of getxpid and its like.
    pub const A4: usize = 20;
    /// Return address.
    pub const RA: usize = 26;
    /// Procedure value: the address of the function being called.
    pub const PV: usize = 27;
    /// Global pointer.
    pub const GP: usize = 29;
    /// Stack pointer.
    pub const SP: usize = 30;
    /// Reads as zero, writes are ignored.
    pub const ZERO: usize = 31;
    /// Where the interpreter puts results bound for register 31.
    pub const SINK: usize = 32;
}

/// The address and value of the last load-locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Lock {
    /// Where; a multiple of 4, or [`Lock::NONE`]'s.
    pub address: u64,
    /// What was there.
    pub value: u64,
}

impl Lock {
    /// No load-locked since the last store-conditional.
    pub const NONE: Lock = Lock { address: 1, value: 0 };
}

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
    /// Where the observer wants to hear of each block: from this number of instructions on.
    pub instruction_limit: u64,
    /// Hands the records on and begins anew.
    pub flush_records: Option<extern "C" fn(cpu: *mut Cpu)>,
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
    pub go_on: Option<extern "C" fn(cpu: *mut Cpu, from: u64, until: u64) -> u64>,
    /// For whom it does that.
    pub runner: *mut std::ffi::c_void,
    /// The program's memory.
    pub memory: *const memory::Memory,
    /// The processor's model.
    pub model: isa::Cpu,
    /// Control and status of the host's vector unit (MXCSR): [`FloatStatus`].
    pub float_status: [u32; 3],
}

/// Values of the register by which the host's vector unit is told how to compute, and tells what it noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatStatus {
    /// Rounding to nearest, nothing noted: what the engine itself computes with.
    Nearest,
    /// Rounding towards zero, nothing noted.
    Chopped,
    /// What it was after the last operation.
    Noted,
}

impl Default for HostSide {
    fn default() -> HostSide {
        HostSide {
            address_limit: memory::ADDRESS_SPACE,
            stack_limit: 0,
            record: std::ptr::null_mut(),
            records_end: std::ptr::null_mut(),
            instruction_limit: 0,
            flush_records: None,
            table: 0,
            stack_end: 0,
            stack_pointer: 0,
            enter: 0,
            leave_by_fault: 0,
            fault: 0,
            go_on: None,
            runner: std::ptr::null_mut(),
            memory: std::ptr::null(),
            model: isa::Cpu::Ev67,
            float_status: [0x1f80, 0x7f80, 0],
        }
    }
}

// SAFETY: the pointers are set anew by each thread's run and used only during it.
unsafe impl Send for HostSide {}

/// Registers.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Cpu {
    /// Integer registers; 31 is always 0, 32 takes what is written to 31.
    pub r: [u64; 33],
    /// For compiled code: near the integer registers, as what it needs all the time is.
    pub host: HostSide,
    /// Floating-point registers, in register format; 31 is always 0, 32 takes what is written to 31.
    pub f: [u64; 33],
    /// Address of the next instruction.
    pub pc: u64,
    /// Floating-point control register.
    pub fpcr: u64,
    /// The operating system's IEEE control word (`ieee_fp_control`): which traps a program wants
    /// delivered, and the sticky status of software completion.
    pub ieee_control: u64,
    /// The thread's unique value (PALcode rduniq and wruniq): its thread pointer.
    pub unique: u64,
    /// Set by a load-locked, cleared by a store-conditional.
    pub lock: Lock,
    /// Flag of RS and RC.
    pub interrupt_flag: bool,
    /// Instructions executed, up to the end of the block that runs.
    pub instructions: u64,
    /// Accesses that were not aligned and that Linux would have fixed up.
    pub unaligned: u64,
}

impl Default for Cpu {
    fn default() -> Cpu {
        Cpu {
            r: [0; 33],
            f: [0; 33],
            pc: 0,
            fpcr: crate::fpcr::INITIAL_FPCR,
            ieee_control: 0,
            unique: 0,
            lock: Lock::NONE,
            interrupt_flag: false,
            instructions: 0,
            unaligned: 0,
            host: HostSide::default(),
        }
    }
}

/// Why an instruction could not complete; the operating system turns it into a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// A load, store or instruction fetch that memory refused.
    Memory(memory::Fault),
    /// A load-locked or store-conditional at an unaligned address.
    Unaligned(u64),
    /// No such instruction, or not on this CPU.
    IllegalInstruction,
    /// A floating-point or overflow trap; the exception summary register (SWC, INV, DZE, OVF, UNF,
    /// INE, IOV in bits 0 to 6) and the mask of result registers.
    Arithmetic {
        /// Exception summary.
        summary: u64,
        /// One bit a destination register, floating-point registers from bit 32.
        registers: u64,
    },
    /// `call_pal bpt`.
    Breakpoint,
    /// `call_pal bugchk`.
    Bugcheck,
    /// `call_pal gentrap`, the code is in a0.
    Gentrap,
}
