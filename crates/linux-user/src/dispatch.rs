//! Dispatches system calls by number.

use std::ops::Range;

use guest_memory::Memory;
use host::Errno;

use crate::calls::call::Call;
use crate::calls::signal_delivery::ReturningCall;
use crate::state::control::Control;
use crate::state::kernel::Kernel;
use crate::state::lock::KernelGuard;
use crate::state::threads::Task;
use crate::table::{SystemCallAction, SystemCalls};

/// The name of a system call.
fn name<G: SystemCalls>(number: u64) -> Option<&'static str> {
    G::row(number).map(|row| row.name).or_else(|| G::unimplemented_name(number))
}

/// The name of a system call, or its number if it has no name.
pub fn system_call_name<G: SystemCalls>(number: u32) -> String {
    name::<G>(number.into()).map_or_else(|| number.to_string(), String::from)
}

/// Whether a system call executes another program in the place of the one that makes it.
pub fn replaces_program<G: SystemCalls>(number: u32) -> bool {
    matches!(name::<G>(number.into()), Some("execve" | "execveat"))
}

/// Executes the system call that the registers request. The program counter is already after the instruction.
pub fn system_call<G: SystemCalls>(
    kernel: &mut KernelGuard<G>,
    thread: &mut Task<G>,
    cpu: &mut G,
    memory: &Memory,
) -> Control {
    let number = cpu.system_call_number();
    let mut returning = ReturningCall { before: cpu.result_registers(), error: None };
    let (arguments, instructions) = (cpu.system_call_arguments(), *cpu.instructions());
    let began = kernel.elapsed();
    let control = Control::Continue;
    let (waited, registers_set) = (0, false);
    let mut call =
        Call { kernel, thread, cpu, memory, arguments, instructions, began, waited, control, registers_set };
    memory.drop_tails();
    let mut outcome = match G::row(number) {
        Some(row) => row.action.carry_out(&mut call),
        None => Err(Errno(libc::ENOSYS)),
    };
    if outcome == Err(Errno(libc::EFAULT))
        && memory.fill_tails(&buffers(&arguments))
        && let Some(row) = G::row(number)
    {
        call.arguments = arguments;
        outcome = row.action.carry_out(&mut call);
    }
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
    if !registers_set {
        returning.error = outcome.err();
        cpu.set_result(outcome);
    }
    thread.after_call(kernel, cpu, memory, returning)
}

/// The targets of pointers among a call's arguments: a byte, or as many as the next argument says.
fn buffers(arguments: &[u64; 6]) -> Vec<Range<u64>> {
    let sizes = arguments[1..].iter().chain(&[0]);
    arguments.iter().zip(sizes).map(|(&start, &size)| start..start.saturating_add(size.max(1))).collect()
}

/// Completes a call that started a thread: returns the thread's ID or the error.
pub fn started_thread<G: SystemCalls>(cpu: &mut G, id: std::io::Result<i32>) {
    cpu.set_result(id.map(|id| id as u64).map_err(Errno::from));
}

/// Reports a system call that does not exist, once.
fn name_unknown<G: SystemCalls>(kernel: &mut Kernel<G>, number: u64) {
    let is_refused = G::row(number).is_some_and(|row| matches!(row.action, SystemCallAction::Refuse));
    if is_refused || !kernel.named.insert(number) {
        return;
    }
    let name = name::<G>(number).map_or(String::new(), |name| format!(" ({name})"));
    text::message!("system call {number}{name} is not implemented; the program was told ENOSYS");
}
