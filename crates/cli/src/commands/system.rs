//! `pathlength system`: programs on a whole system.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analysis::table::{Kind, Table};
use anyhow::Context;
use engine::{Configuration, Place, Plan, Settings, SymbolName, UnitName};
use image::Image;
use lab::startup;
use lab::study::StudyProgress;
use system::job::{GuestCommand, GuestJob, GuestResult, SharedFile};
use system::kernel::{self, GuestKernel, KernelConfiguration};
use system::machine::{GuestHardware, OutputStream, VirtualMachine};
use system::{Converted, GuestImages};
use trace::{EnvironmentSummary, Header, Writer};

use crate::arguments::{
    BackgroundCommand, GuestOptions, KernelInstructions, KernelOptions, ProgramOptions, SystemBuildOptions,
    SystemCommand, SystemCountOptions, SystemRunOptions, SystemTraceOptions,
};
use crate::progress::Steps;

/// The guest's time when a program begins: the beginning of 2000, so that runs repeat.
const TIME: u64 = 946_684_800;
/// The program's standard input in the guest.
const INPUT: &str = "/.stdin";
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
    let kernel = build_kernel(&options.kernel)?;
    let columns = [("what", Kind::Text), ("file", Kind::Text)];
    let mut table = Table::new("kernel", "The guest's system", &columns);
    for (what, path) in [("kernel", &kernel.image), ("first process", &kernel.init)] {
        table.row(vec![what.into(), path.display().to_string().into()]);
    }
    super::write(&[table], &options.output)?;
    Ok(ExitCode::SUCCESS)
}

fn build_kernel(options: &KernelOptions) -> anyhow::Result<GuestKernel> {
    let configuration = KernelConfiguration {
        has_several_processors: options.processors > 1,
        toolchain: match options.kernel {
            KernelInstructions::Ev67 => None,
            KernelInstructions::ByteWord => Some(&lab::toolchain::BYTE_WORD),
            KernelInstructions::Original => Some(&lab::toolchain::ORIGINAL),
        },
    };
    let steps = Steps::new();
    steps.animate();
    let kernel = kernel::build(&options.folder, options.sources.as_deref(), configuration, &|progress| {
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
    let result = guest.machine.run(&mut pass_on)?;
    take_out(&result, options.guest.taken.as_slice())?;
    Ok(exit_code(result.status))
}

fn trace(options: &SystemTraceOptions) -> anyhow::Result<ExitCode> {
    let plan = super::trace::plan(&options.plan)?;
    let guest = PreparedGuest::new(&options.guest, &options.program)?;
    guest.check_names(&plan)?;
    guest.images().iter().for_each(|path| report::protect(path));
    let (result, converted) = guest.trace(&plan, &options.output)?;
    take_out(&result, &options.guest.taken)?;
    super::trace::report_size(&options.output, converted.instructions, converted.units);
    note_conversion(&converted, &plan);
    Ok(exit_code(result.status))
}

fn count(options: &SystemCountOptions) -> anyhow::Result<ExitCode> {
    options.output.check(options.tables.len() != 1)?;
    let plan = super::trace::plan(&options.plan)?;
    let guest = PreparedGuest::new(&options.guest, &options.program)?;
    guest.check_names(&plan)?;
    guest.images().iter().for_each(|path| report::protect(path));
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("system.trace");
    let (result, converted) = super::with_output_apart(&options.output, || guest.trace(&plan, &path))?;
    take_out(&result, &options.guest.taken)?;
    let mut tables = super::show::summary_tables(&path)?;
    let names: Vec<&str> = match &options.tables[..] {
        [] if plan.unit.is_some() => TABLES.into_iter().chain(["units"]).collect(),
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
    note_conversion(&converted, &plan);
    Ok(exit_code(result.status))
}

/// Passes on what the program writes.
fn pass_on(stream: OutputStream, bytes: &[u8]) {
    // Who closes our output does not want it.
    let _ = match stream {
        OutputStream::Output => std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()),
        OutputStream::Errors => std::io::stderr().write_all(bytes),
    };
}

/// Writes the files that are taken out.
fn take_out(result: &GuestResult, taken: &[SharedFile]) -> anyhow::Result<()> {
    for (file, contents) in taken.iter().zip(&result.files) {
        let contents =
            contents.as_ref().with_context(|| format!("the guest has no file {}", file.guest.display()))?;
        report::write_file(&file.host, |out| Ok(out.write_all(contents)?))?;
    }
    Ok(())
}

/// What users should know of a conversion.
fn note_conversion(converted: &Converted, plan: &Plan) {
    note_unexplained(converted);
    if converted.instructions > 0 {
        return;
    }
    match (&plan.unit, &plan.from) {
        (Some(unit), _) => eprintln!(
            "pathlength: note: nothing was recorded: {} units of {} began",
            converted.units, unit.function
        ),
        (None, Some(from)) => {
            eprintln!("pathlength: note: nothing was recorded: control did not come to {from}");
        }
        _ => {}
    }
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
        let configuration = configuration(options, program.path(), program.arguments());
        let mut programs = image_paths(&configuration)?;
        let mut background = Vec::new();
        for BackgroundCommand { words } in &options.background {
            let beside = self::configuration(options, Path::new(&words[0]), &words[1..]);
            programs.extend(image_paths(&beside)?);
            background.push(beside);
        }
        let kernel = build_kernel(&options.kernel)?;
        let hardware = GuestHardware {
            memory: options.memory,
            processors: options.kernel.processors,
            disk: options.disk.as_ref().map_or(0, |disk| disk.bytes),
        };
        let job = job(options, &configuration, &background, &programs)?;
        let machine = VirtualMachine::new(&kernel, &job, hardware)?;
        // Modules that programs load are among the files.
        options.files.iter().for_each(|file| find_images(&file.host, &mut programs));
        programs.sort();
        programs.dedup();
        Ok(PreparedGuest { kernel, machine, configuration, programs })
    }

    /// All images that may be executed.
    fn images(&self) -> Vec<PathBuf> {
        [self.programs.clone(), vec![self.kernel.image.clone(), self.machine.palcode().path.clone()]].concat()
    }

    /// An error if an image has none of the symbols that a plan names.
    fn check_names(&self, plan: &Plan) -> anyhow::Result<()> {
        let images: Vec<Image> = self.images().iter().filter_map(|path| Image::open(path).ok()).collect();
        let has = |name: &SymbolName, is_function: bool| {
            images.iter().any(|image| {
                let segments = image.segments().iter().map(image::Segment::addresses);
                let loaded = events::LoadedImage {
                    path: image.path().into(),
                    start: segments.clone().map(|range| range.start).min().unwrap_or(0),
                    end: segments.map(|range| range.end).max().unwrap_or(0),
                    bias: 0,
                };
                let symbols = if name.may_be_in(&loaded) { name.symbols_in(image) } else { Vec::new() };
                symbols.iter().any(|symbol| symbol.function || !is_function)
            })
        };
        let unit = plan.unit.as_ref().map(|unit| UnitName::new(&unit.function));
        let functions = unit.iter().flat_map(UnitName::functions).map(|name| (name.clone(), true));
        let places = plan.from.iter().chain(&plan.until).filter_map(Place::symbol);
        let mut names = functions.chain(places.map(|text| (SymbolName::new(text), false)));
        match names.find(|(name, is_function)| !has(name, *is_function)) {
            Some((name, true)) => {
                anyhow::bail!("neither the kernel nor an image of the programs has a function '{name}'")
            }
            Some((name, false)) => {
                anyhow::bail!("neither the kernel nor an image of the programs has a symbol '{name}'")
            }
            None => Ok(()),
        }
    }

    /// Runs the program, and writes the trace of a plan.
    fn trace(&self, plan: &Plan, path: &Path) -> anyhow::Result<(GuestResult, Converted)> {
        let mut programs = self.programs.clone();
        programs.push(self.kernel.init.clone());
        let palcode = self.machine.palcode().clone();
        let images = GuestImages { kernel: self.kernel.image.clone(), palcode, programs };
        let (file, name) = report::create(path)?;
        let unit = plan.unit.as_ref().map(|unit| unit.function.clone());
        let open = |process| Writer::new(file, &Header { unit, ..self.header(process) });
        let consume = |stream| system::convert(stream, &images, plan, open);
        let traced = self.machine.trace(consume, &mut pass_on)?;
        name.commit()?;
        Ok(traced)
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

/// How a program is found and started.
fn configuration(options: &GuestOptions, program: &Path, arguments: &[OsString]) -> Configuration {
    Configuration {
        program: program.into(),
        name: None,
        arguments: arguments.to_vec(),
        environment: options.environment.environment(interpose::inherited()),
        model: isa::Cpu::Ev67,
        settings: Settings { sysroot: Some(options.sysroot.clone()), ..Settings::default() },
    }
}

/// The program and its libraries.
fn image_paths(configuration: &Configuration) -> anyhow::Result<Vec<PathBuf>> {
    let images = startup::images(configuration).with_context(|| {
        format!("{}: not an Alpha program whose libraries can be found", configuration.program.display())
    })?;
    Ok(images.into_iter().map(|image| image.path).collect())
}

/// Adds the images among files and folders.
fn find_images(path: &Path, images: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| find_images(&entry.path(), images));
    } else if path.is_file() && is_image(path) {
        images.push(path.into());
    }
}

fn is_image(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

/// The job of the guest: the program with its libraries and files.
fn job(
    options: &GuestOptions,
    configuration: &Configuration,
    background: &[Configuration],
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
    let command = |configuration: &Configuration| -> anyhow::Result<GuestCommand> {
        let mut arguments = vec![configuration.program.clone().into_os_string()];
        arguments.extend(configuration.arguments.iter().cloned());
        Ok(GuestCommand { program: in_guest(&configuration.program)?.guest, arguments })
    };
    let mut files = programs.iter().map(|path| in_guest(path)).collect::<anyhow::Result<Vec<_>>>()?;
    files.extend(options.files.iter().cloned());
    let input = options.stdin.as_ref().map(|_| PathBuf::from(INPUT));
    files.extend(options.stdin.iter().map(|host| SharedFile { host: host.clone(), guest: INPUT.into() }));
    Ok(GuestJob {
        command: command(configuration)?,
        background: background.iter().map(command).collect::<anyhow::Result<_>>()?,
        awaited: options.awaited.clone(),
        user: options.user,
        environment: configuration.environment.clone(),
        input,
        folder: std::env::current_dir()?,
        disk: options.disk.as_ref().map(|disk| disk.path.clone()),
        time: TIME,
        files,
        outputs: options.taken.clone(),
    })
}
