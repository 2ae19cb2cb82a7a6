//! A batch's program on each side.

use std::path::Path;
use std::process::{Command, Stdio};

use pathlength_engine::{Configuration, End, Process, Settings};

use super::driver;

/// Runs the program in this process, which must have no other guest while it does, with blocks compiled
/// that ran `hot` times (0: none); the records afterwards.
pub fn engine(program: &Path, hot: u32, bytes: usize) -> Result<Vec<u8>, String> {
    let mut process = Process::new(&Configuration {
        program: program.into(),
        arguments: vec![],
        environment: vec![],
        model: isa::Cpu::Ev67,
        settings: Settings::default(),
    })
    .map_err(|error| error.to_string())?;
    assert!(process.memory.is_identity(), "another guest has the place without which nothing is compiled");
    process.hot = hot;
    match process.run(&mut ()).map_err(|error| error.to_string())? {
        End::Exited(0) => {}
        end => return Err(format!("{end:?}")),
    }
    let mut records = vec![0; bytes];
    process.memory.read(driver::RECORDS, &mut records).map_err(|fault| format!("{fault:?}"))?;
    Ok(records)
}

/// What runs it under qemu-alpha and writes the records.
pub fn qemu_command(program: &Path) -> Command {
    let mut command = Command::new("qemu-alpha");
    command.args(["-cpu", "ev67"]).arg(program).arg("write").stdin(Stdio::null());
    command
}

/// Runs it under qemu-alpha; the records.
pub fn qemu(program: &Path) -> Result<Vec<u8>, String> {
    let output = qemu_command(program)
        .output()
        .map_err(|error| format!("cannot run qemu-alpha: {error}; Debian: apt-get install qemu-user"))?;
    if output.status.success() { Ok(output.stdout) } else { Err(output.status.to_string()) }
}
