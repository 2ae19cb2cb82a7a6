//! `pathlength system`: programs on a whole system.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analysis::table::{Kind, Table};
use anyhow::Context;
use engine::{Configuration, Settings};
use lab::startup;
use lab::study::StudyProgress;
use system::job::{GuestJob, GuestResult, SharedFile};
use system::kernel::{self, GuestKernel};
use system::machine::VirtualMachine;
use system::{Converted, GuestImages};
use trace::{EnvironmentSummary, Header, Writer};

use crate::arguments::{
    GuestOptions, ProgramOptions, SystemBuildOptions, SystemCommand, SystemCountOptions, SystemRunOptions,
    SystemTraceOptions,
};
use crate::progress::Steps;

/// The guest's time when a program begins: the beginning of 2000, so that runs repeat.
const TIME: u64 = 946_684_800;
/// The tables of `system count`.
const TABLES: [&str; 6] = ["modes", "entries", "system-call-costs", "threads", "images", "functions"];
/// Rows of each of them.
const ROWS: usize = 20;

/// Carries out a command.
pub fn run(command: &SystemCommand) -> anyhow::Result<ExitCode> {
    match command {
        SystemCommand::Build(options) => build(options),
        SystemCommand::Run(options) => run_program(options),
        SystemCommand::Trace(options) => trace(options),
        SystemCommand::Count(options) => count(options),
    }
}

fn build(options: &SystemBuildOptions) -> anyhow::Result<ExitCode> {
    let kernel = build_kernel(&options.folder, options.sources.as_deref())?;
    let columns = [("what", Kind::Text), ("file", Kind::Text)];
    let mut table = Table::new("kernel", "The guest's system", &columns);
    for (what, path) in [("kernel", &kernel.image), ("first process", &kernel.init)] {
        table.row(vec![what.into(), path.display().to_string().into()]);
    }
    super::write(&[table], &options.output)?;
    Ok(ExitCode::SUCCESS)
}

fn build_kernel(folder: &Path, sources: Option<&Path>) -> anyhow::Result<GuestKernel> {
    let steps = Steps::new();
    steps.animate();
    let kernel = kernel::build(folder, sources, &|progress| {
        // A kernel that is there needs no message.
        if !matches!(progress, lab::build::BuildProgress::Done { .. }) {
            steps.show(&StudyProgress::Building(progress));
        }
    });
    steps.clear();
    kernel.context("cannot build the guest's kernel")
}

fn run_program(options: &SystemRunOptions) -> anyhow::Result<ExitCode> {
    let guest = PreparedGuest::new(&options.guest, &options.program)?;
    let result = guest.machine.run()?;
    guest.deliver(&result, options.guest.taken.as_slice())?;
    Ok(exit_code(result.status))
}

fn trace(options: &SystemTraceOptions) -> anyhow::Result<ExitCode> {
    let guest = PreparedGuest::new(&options.guest, &options.program)?;
    guest.images().iter().for_each(|path| report::protect(path));
    let result = guest.machine.record()?;
    guest.deliver(&result, &options.guest.taken)?;
    let converted = guest.convert(&options.output)?;
    super::trace::report_size(&options.output, converted.instructions, 0);
    note_unexplained(&converted);
    Ok(exit_code(result.status))
}

fn count(options: &SystemCountOptions) -> anyhow::Result<ExitCode> {
    options.output.check(options.tables.len() != 1)?;
    let guest = PreparedGuest::new(&options.guest, &options.program)?;
    guest.images().iter().for_each(|path| report::protect(path));
    let result = guest.machine.record()?;
    super::with_output_apart(&options.output, || guest.deliver(&result, &options.guest.taken))?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("system.trace");
    let converted = guest.convert(&path)?;
    let mut tables = super::show::summary_tables(&path)?;
    let names: Vec<&str> = match &options.tables[..] {
        [] => TABLES.to_vec(),
        given => given.iter().map(String::as_str).collect(),
    };
    tables = super::show::selected(tables, &names.iter().map(|&name| name.into()).collect::<Vec<_>>())?;
    let sorted = options.rows.sort(&mut tables);
    for table in &mut tables {
        let all = format!("--table {} shows all", table.name);
        options.rows.shorten(table, options.tables.is_empty().then_some(ROWS), &all);
    }
    super::write_after_run(&tables, &options.output)?;
    sorted?;
    note_unexplained(&converted);
    Ok(exit_code(result.status))
}

/// Successions of blocks that nothing explains would be an error of the recorder.
fn note_unexplained(converted: &Converted) {
    if converted.unexplained > 0 {
        let places = converted.listed.iter().map(|(from, to)| format!("{from:#x} to {to:#x}"));
        let places = places.collect::<Vec<_>>().join(", ");
        eprintln!(
            "pathlength: note: {} transfers of control follow neither from the code nor from an exception: {places}",
            converted.unexplained
        );
    }
}

/// The exit status of a program in the guest, as shells have it.
fn exit_code(status: i32) -> ExitCode {
    let signal = status & 0x7f;
    ExitCode::from(if signal == 0 { (status >> 8) as u8 } else { 128 + signal as u8 })
}

/// A guest with a program.
struct PreparedGuest {
    kernel: GuestKernel,
    machine: VirtualMachine,
    configuration: Configuration,
    /// The program and its libraries.
    programs: Vec<PathBuf>,
}

impl PreparedGuest {
    fn new(options: &GuestOptions, program: &ProgramOptions) -> anyhow::Result<PreparedGuest> {
        let settings = Settings { sysroot: Some(options.sysroot.clone()), ..Settings::default() };
        let configuration = Configuration {
            program: program.path().into(),
            name: None,
            arguments: program.arguments().to_vec(),
            environment: options.environment.environment(interpose::inherited()),
            model: isa::Cpu::Ev67,
            settings,
        };
        let images = startup::images(&configuration).with_context(|| {
            format!("{}: not an Alpha program whose libraries can be found", program.path().display())
        })?;
        let programs: Vec<PathBuf> = images.into_iter().map(|image| image.path).collect();
        let kernel = build_kernel(&options.folder, options.sources.as_deref())?;
        let machine =
            VirtualMachine::new(&kernel, &job(options, &configuration, &programs)?, options.memory)?;
        Ok(PreparedGuest { kernel, machine, configuration, programs })
    }

    /// All images that may be executed.
    fn images(&self) -> Vec<PathBuf> {
        [self.programs.clone(), vec![self.kernel.image.clone(), self.machine.palcode().path.clone()]].concat()
    }

    /// Passes on what the program wrote, and the files that are taken out.
    fn deliver(&self, result: &GuestResult, taken: &[SharedFile]) -> anyhow::Result<()> {
        std::io::stdout().write_all(&result.output)?;
        std::io::stdout().flush()?;
        std::io::stderr().write_all(&result.errors)?;
        for (file, contents) in taken.iter().zip(&result.files) {
            let contents = contents
                .as_ref()
                .with_context(|| format!("the guest has no file {}", file.guest.display()))?;
            report::write_file(&file.host, |out| Ok(out.write_all(contents)?))?;
        }
        Ok(())
    }

    /// Repeats the recorded run, and writes its trace.
    fn convert(&self, path: &Path) -> anyhow::Result<Converted> {
        let mut programs = self.programs.clone();
        programs.push(self.kernel.init.clone());
        let palcode = self.machine.palcode().clone();
        let images = GuestImages { kernel: self.kernel.image.clone(), palcode, programs };
        let (file, name) = report::create(path)?;
        let open = |process| Writer::new(file, &self.header(process));
        let converted = self.machine.replay(|stream| system::convert(stream, &images, open))?;
        name.commit()?;
        Ok(converted)
    }

    fn header(&self, process: u32) -> Header {
        let Configuration { program, arguments, environment, model, .. } = &self.configuration;
        let code = &self.machine.palcode().code;
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Header {
            program: program.clone(),
            arguments: arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            instruction_set: system::INSTRUCTION_SET.into(),
            cpu: model.to_string(),
            palcode: Some((code.start, code.end)),
            environment: Some(EnvironmentSummary::new(environment)),
            time: time.map_or(0, |time| time.as_secs()),
            process,
            ..Header::default()
        }
    }
}

/// The job of the guest: the program with its libraries and files.
fn job(
    options: &GuestOptions,
    configuration: &Configuration,
    programs: &[PathBuf],
) -> anyhow::Result<GuestJob> {
    let sysroot = std::path::absolute(&options.sysroot)?;
    let in_guest = |path: &Path| -> anyhow::Result<SharedFile> {
        let host = std::path::absolute(path)?;
        // What is found in the sysroot has the path by which it was searched.
        let guest = match host.strip_prefix(&sysroot) {
            Ok(inside) => Path::new("/").join(inside),
            Err(_) => host.clone(),
        };
        Ok(SharedFile { host, guest })
    };
    let mut files = programs.iter().map(|path| in_guest(path)).collect::<anyhow::Result<Vec<_>>>()?;
    files.extend(options.files.iter().cloned());
    let mut arguments = vec![configuration.program.clone().into_os_string()];
    arguments.extend(configuration.arguments.iter().cloned());
    Ok(GuestJob {
        program: in_guest(&configuration.program)?.guest,
        arguments,
        environment: configuration.environment.clone(),
        folder: std::env::current_dir()?,
        time: TIME,
        files,
        outputs: options.taken.clone(),
    })
}
