//! GDB's requests, as calls of the engine's debugger.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use engine::debug::{DebugSession, Order, StopReason, Stopped, WatchedAccesses};
use gdbstub::common::{Pid, Signal, Tid};
use gdbstub::stub::MultiThreadStopReason;
use gdbstub::target::ext::auxv::{Auxv, AuxvOps};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadRangeStepping, MultiThreadRangeSteppingOps, MultiThreadResume,
    MultiThreadResumeOps, MultiThreadSchedulerLocking, MultiThreadSchedulerLockingOps, MultiThreadSingleStep,
    MultiThreadSingleStepOps,
};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint,
    SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::exec_file::{ExecFile, ExecFileOps};
use gdbstub::target::ext::host_io::HostIoOps;
use gdbstub::target::ext::target_description_xml_override::{
    TargetDescriptionXmlOverride, TargetDescriptionXmlOverrideOps,
};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{self, TargetError, TargetResult};

use crate::arch::{GuestArchitecture, GuestRegisters, from_gdb, to_gdb};
use crate::files::HostFiles;

/// The program, as GDB sees it.
pub struct GdbTarget {
    session: Arc<DebugSession>,
    /// The actions of threads when the program continues, for those that GDB has named.
    orders: BTreeMap<i32, (Order, Option<i32>)>,
    default: Order,
    /// GDB's breakpoints of both kinds, which are implemented alike.
    software: BTreeSet<u64>,
    hardware: BTreeSet<u64>,
    /// The files that GDB has open.
    pub(crate) files: HostFiles,
}

impl GdbTarget {
    /// The program of a session.
    pub fn new(session: &Arc<DebugSession>, sysroot: &Path) -> GdbTarget {
        let (orders, default, files) = (BTreeMap::new(), Order::Run, HostFiles::new(sysroot));
        let (software, hardware) = (BTreeSet::new(), BTreeSet::new());
        GdbTarget { session: session.clone(), orders, default, software, hardware, files }
    }

    /// The session.
    pub fn session(&self) -> &DebugSession {
        &self.session
    }

    /// Stops the program at GDB's request. Returns the reason to report, unless an event has one.
    pub fn interrupt(&self) -> Option<MultiThreadStopReason<u64>> {
        let tid = thread_id(self.session.interrupt()?);
        Some(MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGINT })
    }

    /// Why the program stopped.
    pub fn reason(&self, stopped: &Stopped) -> MultiThreadStopReason<u64> {
        let tid = thread_id(stopped.thread);
        let signal = |signal| MultiThreadStopReason::SignalWithThread { tid, signal };
        match stopped.reason {
            StopReason::Breakpoint => {
                let pc = self.session.registers(stopped.thread).map(|registers| registers.pc());
                let is_software =
                    pc.map_or(true, |pc| !self.hardware.contains(&pc) || self.software.contains(&pc));
                if is_software {
                    MultiThreadStopReason::SwBreak(tid)
                } else {
                    MultiThreadStopReason::HwBreak(tid)
                }
            }
            StopReason::Step | StopReason::Program => signal(Signal::SIGTRAP),
            StopReason::Signal(number) => signal(to_gdb(self.session.guest(), number)),
            StopReason::Access { address, watched } => {
                let kind = match watched {
                    WatchedAccesses::Loads => WatchKind::Read,
                    WatchedAccesses::Stores => WatchKind::Write,
                    WatchedAccesses::All => WatchKind::ReadWrite,
                };
                MultiThreadStopReason::Watch { tid, kind, addr: address }
            }
        }
    }

    /// Adds a breakpoint of either kind.
    fn add_breakpoint(&self, address: u64) -> TargetResult<(), GdbTarget> {
        let alignment = self.session.guest().instruction_set().code_alignment();
        let mut shortest = vec![0; alignment as usize];
        let is_aligned = address.is_multiple_of(alignment);
        if !is_aligned || self.session.read(address, &mut shortest) < shortest.len() {
            return fault();
        }
        self.session.add_breakpoint(address);
        Ok(())
    }

    /// Removes a breakpoint, unless there is one of the other kind.
    fn remove_breakpoint(&self, address: u64) {
        if !self.software.contains(&address) && !self.hardware.contains(&address) {
            self.session.remove_breakpoint(address);
        }
    }

    fn order(&mut self, tid: Tid, order: Order, signal: Option<Signal>) -> Result<(), Infallible> {
        let signal = signal.and_then(|signal| from_gdb(self.session.guest(), signal));
        self.orders.insert(tid.get() as i32, (order, signal));
        Ok(())
    }
}

/// A thread's id for GDB.
fn thread_id(thread: i32) -> Tid {
    Tid::new(thread as usize).expect("the host numbers threads from 1 on")
}

/// Copies the part of data that GDB reads with one request.
fn part(whole: &[u8], offset: u64, length: usize, buffer: &mut [u8]) -> usize {
    let rest = whole.get(offset as usize..).unwrap_or_default();
    let length = rest.len().min(length).min(buffer.len());
    buffer[..length].copy_from_slice(&rest[..length]);
    length
}

/// An error number as a reply.
fn failed<T>(error: impl Into<std::io::Error>) -> TargetResult<T, GdbTarget> {
    Err(TargetError::Io(error.into()))
}

fn fault<T>() -> TargetResult<T, GdbTarget> {
    failed(std::io::Error::from_raw_os_error(libc::EFAULT))
}

impl target::Target for GdbTarget {
    type Arch = GuestArchitecture;
    type Error = Infallible;

    fn base_ops(&mut self) -> BaseOps<'_, GuestArchitecture, Infallible> {
        BaseOps::MultiThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_auxv(&mut self) -> Option<AuxvOps<'_, Self>> {
        Some(self)
    }

    fn support_exec_file(&mut self) -> Option<ExecFileOps<'_, Self>> {
        Some(self)
    }

    fn support_target_description_xml_override(
        &mut self,
    ) -> Option<TargetDescriptionXmlOverrideOps<'_, Self>> {
        Some(self)
    }

    fn support_host_io(&mut self) -> Option<HostIoOps<'_, Self>> {
        Some(self)
    }
}

impl TargetDescriptionXmlOverride for GdbTarget {
    fn target_description_xml(
        &self,
        annex: &[u8],
        offset: u64,
        length: usize,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        match annex {
            b"target.xml" => {
                let description = self.session.guest().debugger_description();
                Ok(part(description.as_bytes(), offset, length, buffer))
            }
            _ => Err(TargetError::NonFatal),
        }
    }
}

impl MultiThreadBase for GdbTarget {
    fn read_registers(&mut self, registers: &mut GuestRegisters, tid: Tid) -> TargetResult<(), Self> {
        match self.session.registers(tid.get() as i32) {
            Ok(found) => *registers = GuestRegisters { words: found.words().to_vec(), pc: found.pc() },
            Err(_) => return Err(TargetError::NonFatal),
        }
        Ok(())
    }

    fn write_registers(&mut self, registers: &GuestRegisters, tid: Tid) -> TargetResult<(), Self> {
        self.session
            .set_registers(tid.get() as i32, registers.words.clone())
            .map_err(|_| TargetError::NonFatal)
    }

    fn read_addrs(&mut self, address: u64, data: &mut [u8], _: Tid) -> TargetResult<usize, Self> {
        match self.session.read(address, data) {
            0 if !data.is_empty() => fault(),
            count => Ok(count),
        }
    }

    fn write_addrs(&mut self, address: u64, data: &[u8], _: Tid) -> TargetResult<(), Self> {
        self.session.write(address, data).or_else(failed)
    }

    fn list_active_threads(&mut self, thread_is_active: &mut dyn FnMut(Tid)) -> Result<(), Infallible> {
        self.session.threads().into_iter().for_each(|thread| thread_is_active(thread_id(thread)));
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadResume for GdbTarget {
    fn resume(&mut self) -> Result<(), Infallible> {
        self.session.resume(&self.orders, &self.default);
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), Infallible> {
        self.orders.clear();
        self.default = Order::Run;
        Ok(())
    }

    fn set_resume_action_continue(&mut self, tid: Tid, signal: Option<Signal>) -> Result<(), Infallible> {
        self.order(tid, Order::Run, signal)
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_range_step(&mut self) -> Option<MultiThreadRangeSteppingOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for GdbTarget {
    fn set_resume_action_step(&mut self, tid: Tid, signal: Option<Signal>) -> Result<(), Infallible> {
        self.order(tid, Order::Step(0..0), signal)
    }
}

impl MultiThreadRangeStepping for GdbTarget {
    fn set_resume_action_range_step(&mut self, tid: Tid, start: u64, end: u64) -> Result<(), Infallible> {
        self.order(tid, Order::Step(start..end), None)
    }
}

impl MultiThreadSchedulerLocking for GdbTarget {
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), Infallible> {
        self.default = Order::Stay;
        Ok(())
    }
}

impl Breakpoints for GdbTarget {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

// GDB may repeat a request, which succeeds then.

impl SwBreakpoint for GdbTarget {
    fn add_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        self.add_breakpoint(address)?;
        self.software.insert(address);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        self.software.remove(&address);
        self.remove_breakpoint(address);
        Ok(true)
    }
}

impl HwBreakpoint for GdbTarget {
    fn add_hw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        self.add_breakpoint(address)?;
        self.hardware.insert(address);
        Ok(true)
    }

    fn remove_hw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        self.hardware.remove(&address);
        self.remove_breakpoint(address);
        Ok(true)
    }
}

/// The kind of a watchpoint.
fn accesses(kind: WatchKind) -> WatchedAccesses {
    match kind {
        WatchKind::Write => WatchedAccesses::Stores,
        WatchKind::Read => WatchedAccesses::Loads,
        WatchKind::ReadWrite => WatchedAccesses::All,
    }
}

impl HwWatchpoint for GdbTarget {
    fn add_hw_watchpoint(&mut self, address: u64, bytes: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        self.session.add_watchpoint(address, bytes, accesses(kind));
        Ok(true)
    }

    fn remove_hw_watchpoint(
        &mut self,
        address: u64,
        bytes: u64,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        self.session.remove_watchpoint(address, bytes, accesses(kind));
        Ok(true)
    }
}

impl Auxv for GdbTarget {
    fn get_auxv(&self, offset: u64, length: usize, buffer: &mut [u8]) -> TargetResult<usize, Self> {
        Ok(part(&self.session.auxiliary_vector(), offset, length, buffer))
    }
}

impl ExecFile for GdbTarget {
    fn get_exec_file(
        &self,
        _: Option<Pid>,
        offset: u64,
        length: usize,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let path = std::path::absolute(self.session.executable()).or_else(failed)?;
        Ok(part(path.as_os_str().as_bytes(), offset, length, buffer))
    }
}

impl ThreadExtraInfo for GdbTarget {
    fn thread_extra_info(&self, tid: Tid, buffer: &mut [u8]) -> Result<usize, Infallible> {
        let name = std::fs::read(format!("/proc/self/task/{tid}/comm")).unwrap_or_default();
        Ok(part(name.trim_ascii_end(), 0, buffer.len(), buffer))
    }
}
