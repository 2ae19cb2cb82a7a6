//! `pathlength branch-log`: patched images, and what they executed.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use spike::branch_log::log::{LogHeader, MOST_IMAGES, POSITION, SWITCH};
use spike::branch_log::{BlockCounts, LogImage, LoggedImage, ReconstructedStep, Reconstruction, reconstruct};
use spike::optimize;
use spike::profile::ImageProfiles;
use table::{Kind, Table, Value};

use super::spike::{count, number, share, write_image};
use crate::arguments::{BranchLogCommand, InputFile, LogRows, PatchOptions, ReconstructOptions};

/// Does what the options say.
pub fn run(command: &BranchLogCommand) -> anyhow::Result<ExitCode> {
    match command {
        BranchLogCommand::Patch(options) => patch(options)?,
        BranchLogCommand::On(options) => put(&options.log, SWITCH, 1)?,
        BranchLogCommand::Off(options) => put(&options.log, SWITCH, 0)?,
        BranchLogCommand::Clear(options) => put(&options.log, POSITION, 0)?,
        BranchLogCommand::Reconstruct(options) => show(options)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn patch(options: &PatchOptions) -> anyhow::Result<()> {
    let outputs = outputs(options)?;
    let log = options.log.clone().unwrap_or_else(|| {
        let mut name = options.output.clone().into_os_string();
        name.push(".log");
        name.into()
    });
    let path = absolute(&log)?;
    let (mut plans, id) = plans(&options.images, options.records)?;
    let mut header = LogHeader { id, switches: Vec::new(), capacity: options.records };
    for ((plan, image), output) in plans.iter_mut().zip(&options.images).zip(&outputs) {
        let problem = |problem| spike::Error::Unsuitable { path: image.to_path_buf(), problem };
        let (bytes, switch) = plan.write(id, path.as_os_str().as_bytes()).map_err(problem)?;
        header.switches.push(switch);
        write_image(output, &bytes, image)?;
        let summary = plan.summary();
        let growth = summary.instructions as f64 / summary.original_instructions.max(1) as f64 - 1.0;
        text::message!(
            "{}: {} record points, code {:.1} % larger; runs log to {}",
            output.display(),
            number(summary.record_points as u64),
            100.0 * growth,
            log.display()
        );
        if summary.unpatched > 0 {
            let unpatched = number(summary.unpatched as u64);
            text::message!("note: procedures that cannot be changed, and are not logged: {unpatched}");
        }
    }
    report::write_file(&log, |out| Ok(out.write_all(&header.empty_file(!options.off))?))?;
    Ok(())
}

/// The patched images.
fn outputs(options: &PatchOptions) -> anyhow::Result<Vec<PathBuf>> {
    ensure!(options.images.len() <= MOST_IMAGES, "a log has {MOST_IMAGES} images at most");
    if let [_] = &options.images[..] {
        return Ok(vec![options.output.clone()]);
    }
    fs::create_dir_all(&options.output)
        .with_context(|| format!("{}: cannot be made", options.output.display()))?;
    let mut outputs = Vec::new();
    for image in &options.images {
        let name = image.file_name().with_context(|| format!("{}: is not a file", image.display()))?;
        let output = options.output.join(name);
        ensure!(!outputs.contains(&output), "{}: two images have this name", name.display());
        outputs.push(output);
    }
    Ok(outputs)
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).with_context(|| format!("{}: no such folder", folder.display()))?;
    let name = path.file_name().with_context(|| format!("{}: is not the name of a file", path.display()))?;
    Ok(folder.join(name))
}

/// The plans of images, and what identifies their log.
fn plans(images: &[InputFile], capacity: u32) -> anyhow::Result<(Vec<LogImage>, u64)> {
    let (mut plans, mut id) = (Vec::new(), 0);
    for (image, number) in images.iter().zip(0..) {
        let plan = LogImage::new(optimize::open(image)?, number, capacity);
        let problem = |problem| spike::Error::Unsuitable { path: image.to_path_buf(), problem };
        id = plan.hash(id).map_err(problem)?;
        plans.push(plan);
    }
    Ok((plans, id))
}

/// Reads a log, with its header.
fn read(log: &Path) -> anyhow::Result<(LogHeader, Vec<u8>)> {
    let failed = |problem| anyhow::anyhow!("{}: {problem}", log.display());
    let file = spike::profile::read(log).map_err(failed)?;
    let header = LogHeader::read(&file).map_err(failed)?;
    Ok((header, file))
}

/// Changes a field of a log, which programs see at once.
fn put(log: &Path, offset: usize, value: u64) -> anyhow::Result<()> {
    read(log)?;
    let file = OpenOptions::new().write(true).open(log);
    let file = file.with_context(|| format!("{}: cannot be written", log.display()))?;
    file.write_all_at(&value.to_le_bytes(), offset as u64)
        .with_context(|| format!("{}: cannot be written", log.display()))
}

fn show(options: &ReconstructOptions) -> anyhow::Result<()> {
    options.output.check(false)?;
    let (header, file) = read(&options.log)?;
    let mut images = images(options, &header)?;
    let mut counts = BlockCounts::default();
    let mut totals = Totals::new(options.by);
    let mut listing =
        options.listing.then(|| Listing { out: BufWriter::new(std::io::stdout().lock()), failed: None });
    let found = reconstruct(&images, &header, &file, |step| {
        if options.profile.is_some() {
            counts.add(&step);
        }
        match &mut listing {
            Some(listing) => listing.write(&images, &step),
            None => totals.add(&images, &step),
        }
    });
    if let Some(mut listing) = listing {
        listing.failed.map_or_else(|| listing.out.flush(), Err)?;
    } else {
        let mut table = totals.table(&images, &options.images);
        notes(&mut table, &found, &header, &file);
        let mut tables = [table];
        let sorted = options.rows.apply(&mut tables);
        crate::console::write(&tables, &options.output)?;
        sorted?;
    }
    if let Some(path) = &options.profile {
        let profiles = images.iter_mut().zip(&options.images).enumerate();
        let profiles = profiles
            .map(|(number, (image, path))| counts.profile(number, image, &super::profile::name(path)));
        let bytes = ImageProfiles::new(profiles.collect()).encode();
        report::write_file(path, |out| Ok(out.write_all(&bytes)?))?;
    }
    Ok(())
}

/// The images of a log.
fn images(options: &ReconstructOptions, header: &LogHeader) -> anyhow::Result<Vec<LoggedImage>> {
    let (plans, id) = plans(&options.images, header.capacity)?;
    if plans.len() != header.switches.len() || id != header.id {
        bail!(
            "{}: is the log of other images, or in another order, or another version of pathlength made it; give the {} original \
             images in the order in which they were patched",
            options.log.display(),
            header.switches.len()
        );
    }
    let each = plans.into_iter().zip(&options.images).zip(&header.switches);
    let image = |((plan, path), &switch): ((LogImage, &InputFile), &u64)| {
        let problem = |problem| spike::Error::Unsuitable { path: path.to_path_buf(), problem };
        Ok(LoggedImage::new(plan, optimize::open(path)?, switch).map_err(problem)?)
    };
    each.map(image).collect()
}

/// Writes each instruction.
struct Listing<W: Write> {
    out: W,
    failed: Option<std::io::Error>,
}

impl<W: Write> Listing<W> {
    fn write(&mut self, images: &[LoggedImage], step: &ReconstructedStep) {
        if self.failed.is_some() {
            return;
        }
        let program = images[step.image].program();
        let name = &program.procedures[program.blocks[step.block as usize].procedure as usize].name;
        let first = program.code.index(step.address).unwrap_or_default();
        for index in first..first + step.instructions {
            let address = program.code.address(index);
            let text = program.code.disassemble(index);
            let line = writeln!(self.out, "{} {:#x} {address:#x} {name} {text}", step.process, step.thread);
            if let Err(error) = line {
                self.failed = Some(error);
                return;
            }
        }
    }
}

/// What a row of the table is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Row {
    Function(usize, u32),
    Block(usize, u32),
    Thread(u32, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Total {
    instructions: u64,
    blocks: u64,
    entries: u64,
}

struct Totals {
    by: LogRows,
    rows: HashMap<Row, Total>,
}

impl Totals {
    fn new(by: LogRows) -> Totals {
        Totals { by, rows: HashMap::new() }
    }

    fn add(&mut self, images: &[LoggedImage], step: &ReconstructedStep) {
        let procedure = || images[step.image].program().blocks[step.block as usize].procedure;
        let row = match self.by {
            LogRows::Function => Row::Function(step.image, procedure()),
            LogRows::Block => Row::Block(step.image, step.block),
            LogRows::Thread => Row::Thread(step.process, step.thread),
        };
        let total = self.rows.entry(row).or_default();
        total.instructions += u64::from(step.instructions);
        total.blocks += u64::from(step.begins);
        let is_entry = || images[step.image].program().head(procedure()) == Some(step.block);
        total.entries += u64::from(step.begins && is_entry());
    }

    fn table(&self, images: &[LoggedImage], paths: &[InputFile]) -> Table {
        let (name, mut columns) = match self.by {
            LogRows::Function => ("functions", vec![("function", Kind::Text), ("image", Kind::Text)]),
            LogRows::Block => {
                ("blocks", vec![("address", Kind::Address), ("function", Kind::Text), ("image", Kind::Text)])
            }
            LogRows::Thread => ("threads", vec![("process", Kind::Text), ("thread", Kind::Address)]),
        };
        let texts = columns.len();
        columns.extend([
            ("instructions", Kind::Count),
            ("share", Kind::Percent(2)),
            ("blocks", Kind::Count),
            ("instructions per block", Kind::Real(1)),
            ("calls", Kind::Count),
        ]);
        let mut table = Table::new(name, "Instructions of the patched procedures", &columns);
        let mut rows: Vec<(&Row, &Total)> = self.rows.iter().collect();
        rows.sort_by_key(|(row, total)| (std::cmp::Reverse(total.instructions), **row));
        let whole: u64 = rows.iter().map(|(_, total)| total.instructions).sum();
        let numbers = |total: &Total| {
            let length = match total.blocks {
                0 => Value::Missing,
                blocks => Value::Real(total.instructions as f64 / blocks as f64),
            };
            let Total { instructions, blocks, entries } = *total;
            [count(instructions), share(instructions, whole), count(blocks), length, count(entries)]
        };
        for (row, total) in &rows {
            table.row(names(**row, images, paths).into_iter().chain(numbers(total)).collect());
        }
        let sum = |field: fn(&Total) -> u64| rows.iter().map(|(_, total)| field(total)).sum();
        let total =
            Total { instructions: whole, blocks: sum(|one| one.blocks), entries: sum(|one| one.entries) };
        let texts = (0..texts).map(|at| if at == 0 { Value::Text("total".into()) } else { Value::Missing });
        table.total_row(texts.chain(numbers(&total)).collect());
        table
    }
}

fn names(row: Row, images: &[LoggedImage], paths: &[InputFile]) -> Vec<Value> {
    let image = |number: usize| Value::Text(super::profile::name(&paths[number]));
    let name =
        |number: usize, procedure: u32| images[number].program().procedures[procedure as usize].name.clone();
    match row {
        Row::Function(number, procedure) => vec![Value::Text(name(number, procedure)), image(number)],
        Row::Block(number, block) => {
            let procedure = images[number].program().blocks[block as usize].procedure;
            let address = Value::Integer(images[number].address(block) as i64);
            vec![address, Value::Text(name(number, procedure)), image(number)]
        }
        Row::Thread(process, thread) => {
            vec![Value::Text(process.to_string()), Value::Integer(thread as i64)]
        }
    }
}

/// What the table does not show.
fn notes(table: &mut Table, found: &Reconstruction, header: &LogHeader, file: &[u8]) {
    let state = header.state(file);
    let mut note = format!("{} records", number(state.held));
    if state.made > state.held {
        note += &format!(", the last ones of {}", number(state.made));
    }
    table.notes.push(note + ". Procedures that could not be patched, and other images, are not included.");
    let told = [
        (found.torn, "records were never completed, because their threads were killed"),
        (found.foreign, "records are of no place in the images: the log is damaged"),
        (
            found.interruptions,
            "times control went elsewhere than the code says: to the handler of a signal, or records are missing",
        ),
    ];
    for (times, what) in told.into_iter().filter(|(times, _)| *times > 0) {
        table.notes.push(format!("{} {what}.", number(times)));
    }
}
