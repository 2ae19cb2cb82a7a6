//! `pathlength system`: programs on a whole system.

use std::io::Write;
use std::process::ExitCode;

use analysis::replay::summary::EXACT_TABLES;
use anyhow::Context;
use engine::Plan;
use session::console::Console;
use session::scratch::temporary_folder;
use session::views::{selected_tables, summary_tables};
use studies::StudyProgress;
use system::Converted;
use system::job::{GuestResult, SharedFile};
use system::kernel::{self, GuestKernel, KernelConfiguration};
use system::machine::{GuestHardware, OutputStream};
use system::prepared::{GuestSetup, PreparedGuest};
use table::{Kind, Table};

use crate::arguments::{
    GuestOptions, KernelInstructions, KernelOptions, ProgramOptions, SystemBuildOptions, SystemCommand,
    SystemCountOptions, SystemRunOptions, SystemTraceOptions,
};
use crate::console::{CommandConsole, SeparatedOutput};
use crate::progress::Steps;

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
    crate::console::write(&[table], &options.output)?;
    Ok(ExitCode::SUCCESS)
}

fn build_kernel(options: &KernelOptions) -> anyhow::Result<GuestKernel> {
    let configuration = KernelConfiguration {
        has_several_processors: options.processors > 1,
        has_network: options.network.is_some(),
        toolchain: match options.kernel {
            KernelInstructions::Ev67 => None,
            KernelInstructions::ByteWord => Some(&workloads::toolchain::BYTE_WORD),
            KernelInstructions::Original => Some(&workloads::toolchain::ORIGINAL),
        },
    };
    let steps = Steps::new();
    steps.animate();
    let kernel = kernel::build(&options.folder, options.sources.as_deref(), configuration, &|progress| {
        // A kernel that is there needs no message.
        if !matches!(progress, workloads::build::BuildProgress::Done { .. }) {
            steps.show(&StudyProgress::Building(progress));
        }
    });
    steps.clear();
    kernel.context("cannot build the guest's kernel")
}

fn run_program(options: &SystemRunOptions) -> anyhow::Result<ExitCode> {
    let guest = prepare(&options.guest, &options.program)?;
    let result = guest.machine().run(&mut pass_on)?;
    take_out(&result, options.guest.taken.as_slice())?;
    Ok(exit_code(result.status))
}

fn trace(options: &SystemTraceOptions) -> anyhow::Result<ExitCode> {
    let plan = options.plan.part().plan()?;
    let guest = prepare(&options.guest, &options.program)?;
    guest.check_names(&plan)?;
    guest.images().iter().for_each(|path| output_files::protect(path));
    let (result, converted) = guest.trace(&plan, &options.output, &mut pass_on)?;
    take_out(&result, &options.guest.taken)?;
    super::trace::report_size(&options.output, converted.instructions, converted.units);
    note_conversion(&converted, &plan);
    Ok(exit_code(result.status))
}

fn count(options: &SystemCountOptions) -> anyhow::Result<ExitCode> {
    options.show.output.check(options.tables.len() != 1)?;
    let plan = options.plan.part().plan()?;
    let guest = prepare(&options.guest, &options.program)?;
    guest.check_names(&plan)?;
    guest.images().iter().for_each(|path| output_files::protect(path));
    let folder = temporary_folder("trace")?;
    let path = folder.path().join("system.trace");
    let names: Vec<&str> = match &options.tables[..] {
        [] if plan.unit.is_some() => TABLES.into_iter().chain(["units"]).collect(),
        [] => TABLES.to_vec(),
        given => given.iter().map(String::as_str).collect(),
    };
    let is_light = counts_suffice(&plan, options.guest.kernel.processors, &names);
    let separated = SeparatedOutput::begin(&options.show.output);
    let recorded =
        if is_light { guest.count(&path, &mut pass_on) } else { guest.trace(&plan, &path, &mut pass_on) };
    drop(separated);
    let (result, mut converted) = recorded?;
    take_out(&result, &options.guest.taken)?;
    let times = is_light.then(|| std::mem::take(&mut converted.times));
    let console = CommandConsole::new(&options.show.output);
    let tables = summary_tables(&console, &path, times)?;
    let mut tables = selected_tables(tables, &names.iter().map(|&name| name.into()).collect::<Vec<_>>())?;
    let sorted = options.show.rows.sort(&mut tables);
    for table in &mut tables {
        let all = format!("--table {} shows all", table.name);
        let usual = console.summary_rows(ROWS).filter(|_| options.tables.is_empty());
        options.show.rows.shorten(table, usual, &all);
    }
    crate::console::write_after_run(&tables, &options.show.output)?;
    sorted?;
    note_conversion(&converted, &plan);
    Ok(exit_code(result.status))
}

/// Whether these tables need no trace of a plan, but only how often each block was executed for which reason.
fn counts_suffice(plan: &Plan, processors: u32, tables: &[&str]) -> bool {
    let is_whole = plan.unit.is_none() && plan.from.is_none() && plan.until.is_none();
    is_whole && processors == 1 && tables.iter().all(|table| EXACT_TABLES.contains(table))
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
        (Some(unit), _) => {
            text::message!("note: nothing was recorded: {} units of {} began", converted.units, unit.function)
        }
        (None, Some(from)) => {
            text::message!("note: nothing was recorded: control did not come to {from}");
        }
        _ => {}
    }
}

/// Successions of blocks that nothing explains would be an error of the recorder.
fn note_unexplained(converted: &Converted) {
    if converted.unexplained > 0 {
        let places = converted.listed.iter().map(|(from, to)| format!("{from:#x} to {to:#x}"));
        let places = places.collect::<Vec<_>>().join(", ");
        text::message!(
            "note: {} transfers of control follow neither from the code nor from an exception: {places}",
            converted.unexplained
        );
    }
}

/// The exit status of a program in the guest, as shells have it.
fn exit_code(status: i32) -> ExitCode {
    let signal = status & 0x7f;
    ExitCode::from(if signal == 0 { (status >> 8) as u8 } else { 128 + signal as u8 })
}

/// A guest with the program of a command.
fn prepare(options: &GuestOptions, program: &ProgramOptions) -> anyhow::Result<PreparedGuest> {
    let setup = GuestSetup {
        hardware: GuestHardware {
            memory: options.memory,
            processors: options.kernel.processors,
            disk: options.disk.as_ref().map_or(0, |disk| disk.bytes),
            network: options.kernel.network,
        },
        disk: options.disk.as_ref().map(|disk| disk.path.clone()),
        sysroot: options.sysroot.clone(),
        environment: options.environment.environment(interpose::inherited()),
        background: options.background.iter().map(|command| command.words.clone()).collect(),
        awaited: options.awaited.clone(),
        user: options.user,
        input: options.stdin.clone(),
        files: options.files.clone(),
        outputs: options.taken.clone(),
        folder: std::env::current_dir()?,
    };
    PreparedGuest::new(&setup, (program.path(), &program.arguments()), || build_kernel(&options.kernel))
}
