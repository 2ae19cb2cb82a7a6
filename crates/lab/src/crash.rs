//! Crash reports: the state of a program when a signal ended it.

use std::fmt::Write;

use alpha::cpu::register;
use engine::Crash;
use events::LoadedImage;
use image::Image;
use isa::REGISTER_NAMES;

/// Alpha's signal numbers (arch/alpha/include/uapi/asm/signal.h), their descriptions, and whether they dump core
/// (signal(7)), which means that the program crashed.
const SIGNALS: [(i32, &str, &str, bool); 26] = [
    (1, "SIGHUP", "hangup", false),
    (2, "SIGINT", "interrupt", false),
    (3, "SIGQUIT", "quit", true),
    (4, "SIGILL", "illegal instruction", true),
    (5, "SIGTRAP", "breakpoint trap", true),
    (6, "SIGABRT", "aborted", true),
    (7, "SIGEMT", "emulation trap", true),
    (8, "SIGFPE", "arithmetic exception", true),
    (9, "SIGKILL", "killed", false),
    (10, "SIGBUS", "bus error", true),
    (11, "SIGSEGV", "memory fault", true),
    (12, "SIGSYS", "bad system call", true),
    (13, "SIGPIPE", "broken pipe", false),
    (14, "SIGALRM", "alarm clock", false),
    (15, "SIGTERM", "terminated", false),
    (16, "SIGURG", "urgent data", false),
    (17, "SIGSTOP", "stopped", false),
    (18, "SIGTSTP", "stopped", false),
    (23, "SIGIO", "input or output possible", false),
    (24, "SIGXCPU", "CPU time limit exceeded", true),
    (25, "SIGXFSZ", "file size limit exceeded", true),
    (26, "SIGVTALRM", "virtual timer expired", false),
    (27, "SIGPROF", "profiling timer expired", false),
    (29, "SIGPWR", "power failure", false),
    (30, "SIGUSR1", "user signal 1", false),
    (31, "SIGUSR2", "user signal 2", false),
];

/// The name and the description of one of Alpha's signals.
pub fn signal_name(signal: i32) -> String {
    match SIGNALS.iter().find(|(number, ..)| *number == signal) {
        Some((_, name, meaning, _)) => format!("{name} ({meaning})"),
        None => format!("signal {signal}"),
    }
}

/// Whether the signal means a crash, and not a request to end the program.
pub fn is_crash(signal: i32) -> bool {
    SIGNALS.iter().any(|&(number, .., core)| number == signal && core)
}

/// The signal; for a crash also the address, the place in the program and the registers, over several lines.
pub fn report(crash: &Crash, images: &[LoadedImage]) -> String {
    let mut text = format!("the program was ended by {}", signal_name(crash.signal));
    if let Some(address) = crash.address {
        write!(text, " at address {address:#x}").expect("a string takes all");
    }
    if let Some(thread) = &crash.thread {
        write!(text, " in {thread}").expect("a string takes all");
    }
    if !is_crash(crash.signal) {
        return text;
    }
    let cpu = &crash.cpu;
    for (name, address) in [("pc", cpu.pc), ("ra", cpu.r[register::RA])] {
        write!(text, "\n  {name:4} {address:016x}  {}", place(address, images)).expect("a string takes all");
    }
    for (row, names) in REGISTER_NAMES.chunks(4).enumerate() {
        text.push_str("\n ");
        for (column, name) in names.iter().enumerate() {
            let value = cpu.r[4 * row + column];
            write!(text, " {name:4} {value:016x}").expect("a string takes all");
        }
    }
    text
}

/// The function and source line of an address, if they can be found.
fn place(address: u64, images: &[LoadedImage]) -> String {
    let holds = |image: &&LoadedImage| (image.start..image.end).contains(&address);
    let Some(loaded) = images.iter().rev().find(holds) else { return "in no image".into() };
    let file = loaded.path.file_name().unwrap_or(loaded.path.as_os_str()).to_string_lossy();
    let link_address = address.wrapping_sub(loaded.bias);
    let Ok(image) = Image::open(&loaded.path) else { return format!("in {file}") };
    let mut text = match image.function_at(link_address) {
        Some(function) => {
            let name = image::demangle(image.symbol_of(function));
            format!("{file}!{name}+{:#x}", link_address - function.address)
        }
        None => format!("{file}+{link_address:#x}"),
    };
    if let Some(location) = image.location(link_address) {
        let line = location.line.map_or(String::new(), |line| format!(":{line}"));
        write!(text, " ({}{line})", location.file).expect("a string takes all");
    }
    text
}
