//! The inputs of a command: its outputs may not overwrite them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use report::protect;

use crate::arguments::{BranchLogCommand, Command, FileOptions, SpikeCommand, SystemCommand};

/// Protects the files that a command names as its inputs, before it opens anything.
pub fn protect_inputs(command: &Command) {
    match command {
        Command::Run(_) | Command::Build(_) | Command::Study(_) | Command::Machines(_) => {}
        Command::Doctor(_) | Command::Completions(_) | Command::Man(_) => {}
        Command::Count(options) => protect_program(options.program.path(), options.program.arguments()),
        Command::Qemu(options) => protect_program(options.program.path(), options.program.arguments()),
        Command::Trace(options) => protect_program(options.program.path(), options.program.arguments()),
        Command::Static(options) => {
            options.images.iter().chain(&options.against).for_each(|path| protect(path))
        }
        Command::Compare(options) => {
            protect(&options.program_a);
            protect(&options.program_b);
            protect_arguments(&options.arguments, Path::new(""));
        }
        Command::Attach(options) => protect_process(options.process),
        Command::Show(options) => protect(&options.trace),
        Command::Export(options) => protect(&options.trace),
        Command::Check(options) => protect(&options.trace),
        Command::Strides(options) => {
            protect_file(&options.file);
            protect(Path::new(&options.machine));
        }
        Command::Caches(options) => {
            protect_file(&options.input.file);
            protect_machines(&options.machines);
        }
        Command::Annotate(options) => {
            protect_file(&options.input.file);
            options.caches.iter().chain(&options.time).for_each(|machine| protect(Path::new(machine)));
        }
        Command::Units(options) => {
            protect_file(&options.input.file);
            options.caches.iter().chain(&options.time).for_each(|machine| protect(Path::new(machine)));
        }
        Command::Objects(options) => {
            protect_file(&options.input.file);
            options.caches.iter().chain(&options.time).for_each(|machine| protect(Path::new(machine)));
            options.rules.iter().for_each(|rules| protect(rules));
        }
        Command::Calls(options) => protect_file(&options.input.file),
        Command::Faults(options) => protect_file(&options.input.file),
        Command::Sharing(options) => {
            protect_file(&options.input.file);
            protect(Path::new(&options.machine));
        }
        Command::Mrc(options) => protect_file(&options.input.file),
        Command::Profile(options) => {
            protect_program(options.file.path(), options.file.arguments());
            options.from_counts.iter().for_each(|counts| protect(counts));
        }
        Command::BranchLog(BranchLogCommand::Patch(options)) => {
            options.images.iter().for_each(|image| protect(image));
        }
        Command::BranchLog(BranchLogCommand::Reconstruct(options)) => {
            options.images.iter().chain([&options.log]).for_each(|path| protect(path));
        }
        Command::BranchLog(
            BranchLogCommand::On(_) | BranchLogCommand::Off(_) | BranchLogCommand::Clear(_),
        ) => {}
        Command::Spike(SpikeCommand::Optimize(options)) => {
            protect(&options.image);
            options.profile.iter().for_each(|profile| protect(profile));
        }
        Command::Spike(SpikeCommand::Instrument(options)) => protect(&options.image),
        Command::Spike(SpikeCommand::Check(options)) => {
            protect(&options.original);
            protect(&options.optimized);
        }
        Command::Spike(_) => {}
        Command::System(SystemCommand::Build(_)) => {}
        Command::System(SystemCommand::Run(options)) => {
            protect_program(options.program.path(), options.program.arguments())
        }
        Command::System(SystemCommand::Trace(options)) => {
            protect_program(options.program.path(), options.program.arguments())
        }
        Command::System(SystemCommand::Count(options)) => {
            protect_program(options.program.path(), options.program.arguments())
        }
        Command::Time(options) => {
            protect_file(&options.input.file);
            protect_machines(&options.machines);
        }
    }
}

fn protect_program(program: &Path, arguments: &[OsString]) {
    protect(program);
    protect_arguments(arguments, Path::new(""));
}

fn protect_file(file: &FileOptions) {
    protect_program(file.path(), file.arguments());
}

/// Protects the arguments that name files, by themselves or as `--option=file`.
fn protect_arguments(arguments: &[OsString], folder: &Path) {
    for argument in arguments {
        protect(&folder.join(argument));
        let bytes = argument.as_bytes();
        if let Some(equals) = bytes.iter().position(|&byte| byte == b'=') {
            protect(&folder.join(OsStr::from_bytes(&bytes[equals + 1..])));
        }
    }
}

fn protect_machines(names: &[String]) {
    names.iter().for_each(|name| protect(Path::new(name)));
}

/// Protects the program of a running process, and the files in its command line.
fn protect_process(process: u32) {
    let folder = PathBuf::from(format!("/proc/{process}"));
    let words = std::fs::read(folder.join("cmdline")).unwrap_or_default();
    let words: Vec<OsString> =
        words.split(|&byte| byte == 0).map(|word| OsStr::from_bytes(word).into()).collect();
    protect_arguments(&words, &folder.join("cwd"));
}
