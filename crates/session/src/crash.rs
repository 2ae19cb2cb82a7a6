//! Crash reports: the state of a program when a signal ended it.

use std::fmt::Write;

use engine::Crash;
use events::LoadedImage;
use events::record::Register;
use image::Image;
use linux_user::SignalDescription;

/// The name and the meaning of a signal, or its number if it has no description.
pub fn signal_name(number: i32, description: Option<&SignalDescription>) -> String {
    match description {
        Some(known) => format!("{} ({})", known.name, known.meaning),
        None => format!("signal {number}"),
    }
}

/// Whether the signal means a crash, and not a request to end the program.
pub fn is_crash(crash: &Crash) -> bool {
    crash.description.is_some_and(|known| known.dumps_core)
}

/// The register with the return address, by its name in the calling conventions of Alpha and RISC-V.
const RETURN_ADDRESS: &str = "ra";

/// The signal; for a crash also the address, the location in the program and the registers, over several lines.
pub fn report(crash: &Crash, images: &[LoadedImage]) -> String {
    let mut text =
        format!("the program was ended by {}", signal_name(crash.signal, crash.description.as_ref()));
    if let Some(address) = crash.address {
        write!(text, " at address {address:#x}").expect("a string takes all");
    }
    if let Some(thread) = &crash.thread {
        write!(text, " in {thread}").expect("a string takes all");
    }
    if !is_crash(crash) {
        return text;
    }
    let name = |number| crash.instruction_set.register_name(Register::Integer(number));
    let registers: Vec<(&str, u64)> = (0..).map(name).zip(crash.registers.iter().copied()).collect();
    let return_address = registers.iter().copied().filter(|&(name, _)| name == RETURN_ADDRESS);
    for (name, address) in [("pc", crash.pc)].into_iter().chain(return_address) {
        write!(text, "\n  {name:4} {address:016x}  {}", location(address, images))
            .expect("a string takes all");
    }
    for row in registers.chunks(4) {
        text.push_str("\n ");
        for (name, value) in row {
            write!(text, " {name:4} {value:016x}").expect("a string takes all");
        }
    }
    text
}

/// The function and source line of an address, if they can be found.
fn location(address: u64, images: &[LoadedImage]) -> String {
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
