//! The state of one Alpha processor as a user's program sees it.

use guest::HostSide;

/// Integer register numbers by their conventional names.
pub mod register {
    /// Function value, system call number and result.
    pub const V0: usize = 0;
    /// Frame pointer.
    pub const FP: usize = 15;
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
pub struct LoadLock {
    /// Where; a multiple of 4, or [`LoadLock::NONE`]'s.
    pub address: u64,
    /// The value there.
    pub value: u64,
}

impl LoadLock {
    /// No load-locked since the last store-conditional.
    pub const NONE: LoadLock = LoadLock { address: 1, value: 0 };
}

/// Values of MXCSR, which sets rounding and masks of the host's vector unit and records exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatStatus {
    /// Rounding to nearest, nothing noted: what the engine itself computes with.
    Nearest,
    /// Rounding towards zero, nothing noted.
    Chopped,
    /// Its value after the last operation.
    Noted,
}

/// Registers.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Cpu {
    /// Integer registers; 31 is always 0, 32 takes what is written to 31.
    pub r: [u64; 33],
    /// For compiled code: near the integer registers, as what it needs all the time is.
    pub host: HostSide,
    /// Control and status of the host's vector unit (MXCSR): [`FloatStatus`].
    pub float_status: [u32; 3],
    /// Floating-point registers, in register format; 31 is always 0, 32 takes what is written to 31.
    pub f: [u64; 33],
    /// The model: which instructions there are.
    pub model: isa::CpuModel,
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
    pub lock: LoadLock,
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
            model: isa::CpuModel::Ev67,
            pc: 0,
            fpcr: crate::fpcr::INITIAL_FPCR,
            ieee_control: 0,
            unique: 0,
            lock: LoadLock::NONE,
            interrupt_flag: false,
            instructions: 0,
            unaligned: 0,
            host: HostSide::default(),
            float_status: [0x1f80, 0x7f80, 0],
        }
    }
}

/// Why an instruction could not complete; the operating system turns it into a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// A load, store or instruction fetch that memory refused.
    Memory(guest_memory::Fault),
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

impl From<guest_memory::Fault> for Exception {
    fn from(fault: guest_memory::Fault) -> Exception {
        Exception::Memory(fault)
    }
}
