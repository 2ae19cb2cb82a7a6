//! Dispatches system calls by number.

use alpha::cpu::{Cpu, register};
use host::Errno;
use memory::Memory;

use crate::abi::{errno, unimplemented};
use crate::calls::call::{Call, Outcome};
use crate::calls::signal_frame::Returning;
use crate::state::control::Control;
use crate::state::kernel::Kernel;
use crate::state::lock::KernelGuard;
use crate::state::threads::Thread;
use crate::table::{self, Action};

/// The name of a system call, or its number if it has no name.
pub fn system_call_name(number: u32) -> String {
    let number = u64::from(number);
    let name = table::find(number).map(|row| row.name).or_else(|| unimplemented::name(number));
    name.map_or_else(|| number.to_string(), String::from)
}

/// Executes the system call whose number is in v0 and whose arguments are in a0 to a5. The program counter is already
/// after the callsys. The result is returned as by Linux on Alpha: a3 is 0 and v0 the result, or a3 is 1 and v0 the
/// error number.
pub fn system_call(kernel: &mut KernelGuard, thread: &mut Thread, cpu: &mut Cpu, memory: &Memory) -> Control {
    let number = cpu.r[register::V0];
    let before = Returning { v0: number, a3: cpu.r[register::A3], error: None };
    let arguments = std::array::from_fn(|index| cpu.r[register::A0 + index]);
    let began = kernel.elapsed();
    let control = Control::Continue;
    let (waited, registers_set) = (0, false);
    let mut call = Call { kernel, thread, cpu, memory, arguments, began, waited, control, registers_set };
    let outcome = match table::find(number) {
        Some(row) => row.action.carry_out(&mut call),
        None => Err(Errno(libc::ENOSYS)),
    };
    let Call { control, registers_set, waited, .. } = call;
    if waited > 0 {
        kernel.waited(began, waited);
    }
    if outcome == Err(Errno(libc::ENOSYS)) {
        name_unknown(kernel, number);
    }
    if control != Control::Continue {
        return control;
    }
    let mut returning = before;
    if !registers_set {
        returning.error = outcome.err();
        set_result(cpu, outcome);
    }
    thread.after_call(kernel, cpu, memory, returning)
}

/// Writes a system call's result to v0 and a3.
fn set_result(cpu: &mut Cpu, outcome: Outcome) {
    match outcome {
        Ok(value) => (cpu.r[register::V0], cpu.r[register::A3]) = (value, 0),
        Err(error) => (cpu.r[register::V0], cpu.r[register::A3]) = (errno::alpha(error), 1),
    }
}

/// Completes a call that started a thread: returns the thread's ID or the error.
pub fn started_thread(cpu: &mut Cpu, id: std::io::Result<i32>) {
    set_result(cpu, id.map(|id| id as u64).map_err(Errno::from));
}

/// Reports a system call that does not exist, once.
fn name_unknown(kernel: &mut Kernel, number: u64) {
    let row = table::find(number);
    if row.is_some_and(|row| matches!(row.action, Action::Refuse)) || !kernel.named.insert(number) {
        return;
    }
    let name = row.map(|row| row.name).or_else(|| unimplemented::name(number));
    let name = name.map_or(String::new(), |name| format!(" ({name})"));
    eprintln!("pathlength: system call {number}{name} is not implemented; the program was told ENOSYS");
}
