//! `pathlength qemu`: records programs of other instruction sets.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;

use indicatif::HumanCount;
use qemu_user::EmulatedProgram;

use crate::arguments::QemuOptions;

/// Runs the program and records it.
pub fn run(options: &QemuOptions) -> anyhow::Result<ExitCode> {
    let program = EmulatedProgram {
        path: options.program.path().into(),
        arguments: options.program.arguments(),
        sysroot: options.sysroot.clone(),
    };
    let (status, converted) = qemu_user::record(&program, &options.output)?;
    super::trace::report_size(&options.output, converted.instructions, 0);
    if converted.omitted > 0 {
        text::message!(
            "note: {} of {} accesses are not in the trace: those of an instruction from its third on",
            HumanCount(converted.omitted),
            HumanCount(converted.omitted + converted.accesses)
        );
    }
    if converted.is_cut {
        text::message!(
            "note: the trace ends early: the program was replaced by another one, or ended by a signal"
        );
    }
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(ExitCode::from(code as u8))
}
