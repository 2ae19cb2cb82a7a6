//! Says what a program was doing when a signal ended it.

use std::fmt::Write;

use engine::Crash;
use image::Image;
use isa::REGISTER_NAMES;
use trace::LoadedImage;

/// Alpha's signal numbers (arch/alpha/include/uapi/asm/signal.h) and what they mean to people.
const SIGNALS: [(i32, &str, &str); 26] = [
    (1, "SIGHUP", "hangup"),
    (2, "SIGINT", "interrupt"),
    (3, "SIGQUIT", "quit"),
    (4, "SIGILL", "illegal instruction"),
    (5, "SIGTRAP", "breakpoint trap"),
    (6, "SIGABRT", "aborted"),
    (7, "SIGEMT", "emulation trap"),
    (8, "SIGFPE", "arithmetic exception"),
    (9, "SIGKILL", "killed"),
    (10, "SIGBUS", "bus error"),
    (11, "SIGSEGV", "memory fault"),
    (12, "SIGSYS", "bad system call"),
    (13, "SIGPIPE", "broken pipe"),
    (14, "SIGALRM", "alarm clock"),
    (15, "SIGTERM", "terminated"),
    (16, "SIGURG", "urgent data"),
    (17, "SIGSTOP", "stopped"),
    (18, "SIGTSTP", "stopped"),
    (23, "SIGIO", "input or output possible"),
    (24, "SIGXCPU", "CPU time limit exceeded"),
    (25, "SIGXFSZ", "file size limit exceeded"),
    (26, "SIGVTALRM", "virtual timer expired"),
    (27, "SIGPROF", "profiling timer expired"),
    (29, "SIGPWR", "power failure"),
    (30, "SIGUSR1", "user signal 1"),
    (31, "SIGUSR2", "user signal 2"),
];

/// The name and the meaning of one of Alpha's signals.
pub fn signal_name(signal: i32) -> String {
    match SIGNALS.iter().find(|(number, ..)| *number == signal) {
        Some((_, name, meaning)) => format!("{name} ({meaning})"),
        None => format!("signal {signal}"),
    }
}

/// Signal, address, place in the program and registers, over several lines.
pub fn report(crash: &Crash, images: &[LoadedImage]) -> String {
    let mut text = format!("the program was ended by {}", signal_name(crash.signal));
    if let Some(address) = crash.address {
        write!(text, " at address {address:#x}").expect("a string takes all");
    }
    if !crash.synchronous {
        return text;
    }
    let cpu = &crash.cpu;
    write!(text, "\n  pc   {:016x}  {}", cpu.pc, place(cpu.pc, images)).expect("a string takes all");
    for (row, names) in REGISTER_NAMES.chunks(4).enumerate() {
        text.push_str("\n ");
        for (column, name) in names.iter().enumerate() {
            let value = cpu.r[4 * row + column];
            write!(text, " {name:4} {value:016x}").expect("a string takes all");
        }
    }
    text
}

/// The function and source line of an address, as far as they are known.
fn place(address: u64, images: &[LoadedImage]) -> String {
    let holds = |image: &&LoadedImage| (image.start..image.end).contains(&address);
    let Some(loaded) = images.iter().rev().find(holds) else { return "in no image".into() };
    let file = loaded.path.file_name().unwrap_or(loaded.path.as_os_str()).to_string_lossy();
    let link_address = address.wrapping_sub(loaded.bias);
    let Ok(image) = Image::open(&loaded.path) else { return format!("in {file}") };
    let mut text = match image.function_at(link_address) {
        Some(function) => format!("{file}!{}+{:#x}", function.name, link_address - function.address),
        None => format!("{file}+{link_address:#x}"),
    };
    if let Some(location) = image.location(link_address) {
        let line = location.line.map_or(String::new(), |line| format!(":{line}"));
        write!(text, " ({}{line})", location.file).expect("a string takes all");
    }
    text
}
