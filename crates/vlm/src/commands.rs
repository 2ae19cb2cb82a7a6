//! The subcommands.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use vlm::check::{Severity, check};
use vlm::study::{Backing, Settings, StudyRow, study};
use vlm::{
    Allocation, LockedRegistry, Mount, PageTables, Registry, RegistryEntry, ReservationStep, Reservations,
    Size, usage, users, verify,
};

use crate::arguments::{EntryOptions, VlmArguments, VlmCommand};
use crate::table::{TableFormat, TextTable, separated};

pub fn execute(arguments: VlmArguments) -> anyhow::Result<ExitCode> {
    let path = arguments.registry();
    match arguments.command {
        VlmCommand::Add { name, size, options } => add(&path, name, size, options)?,
        VlmCommand::Modify { name, size, options } => modify(&path, &name, size, options)?,
        VlmCommand::Remove { name } => remove(&path, &name)?,
        VlmCommand::Free { names, all } => free(&path, names, all)?,
        VlmCommand::List { format } => list(&Registry::load(&path)?, format)?,
        VlmCommand::Check => return print_check(&Registry::load(&path)?),
        VlmCommand::Apply { names, dry_run } => apply(&path, &names, dry_run)?,
        VlmCommand::Verify { name } => return print_verify(&Registry::load(&path)?, &name),
        VlmCommand::Run { section, program } => {
            vlm::run::run(&Registry::load(&path)?, &section, &program)?;
        }
        VlmCommand::Study { sizes, processes, memory, output, format } => {
            let vlm = std::env::current_exe().context("cannot find this program's own file")?;
            let backings = memory.into_iter().map(Backing::from).collect();
            print_study(&Settings { backings, sizes, processes, vlm }, output.as_deref(), format)?;
        }
        VlmCommand::Touch { name } => verify::touch(&Registry::load(&path)?, &name)?,
        VlmCommand::TouchFile { descriptor, size } => {
            vlm::study::touch_file(descriptor, size)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn add(path: &Path, name: String, size: Size, options: EntryOptions) -> anyhow::Result<()> {
    let mut entry = RegistryEntry {
        name,
        size,
        page_size: Size::mib(2),
        allocation: Allocation::default(),
        page_tables: PageTables::default(),
        owner: "root".to_owned(),
        node: None,
    };
    set(&mut entry, options);
    let mut locked = LockedRegistry::open(path)?;
    let known = locked.registry().entries.iter().any(|other| other.name == entry.name);
    if known {
        bail!("section `{0}` is in the registry already: use `vlm modify {0}`", entry.name);
    }
    let orphan = Mount::at(&locked.registry().mount_point(&entry.name))?;
    if orphan.is_some() {
        bail!(
            "memory is reserved under the name `{0}`, which no registry's entry explains: run `vlm free {0}` first",
            entry.name
        );
    }
    locked.change(|registry| registry.entries.push(entry.clone()))?;
    describe("added", &entry, path);
    Ok(())
}

fn set(entry: &mut RegistryEntry, options: EntryOptions) {
    let EntryOptions { page_size, allocation, page_tables, owner, node } = options;
    entry.page_size = page_size.unwrap_or(entry.page_size);
    entry.allocation = allocation.map_or(entry.allocation, Allocation::from);
    entry.page_tables = page_tables.map_or(entry.page_tables, PageTables::from);
    entry.owner = owner.unwrap_or_else(|| entry.owner.clone());
    entry.node = node.or(entry.node);
}

fn describe(what: &str, entry: &RegistryEntry, path: &Path) {
    println!(
        "{what} `{}` in {}: {} in {} pages of {}; `vlm apply` reserves it",
        entry.name,
        path.display(),
        entry.size,
        separated(entry.pages()),
        entry.page_size
    );
}

fn modify(path: &Path, name: &str, size: Option<Size>, options: EntryOptions) -> anyhow::Result<()> {
    let mut locked = LockedRegistry::open(path)?;
    let before = locked.registry().entry(name)?.clone();
    let mut after = before.clone();
    after.size = size.unwrap_or(after.size);
    set(&mut after, options);
    let same_memory = (after.size, after.page_size, after.node)
        == (before.size, before.page_size, before.node)
        && after.owner == before.owner;
    if !same_memory && Mount::at(&locked.registry().mount_point(name))?.is_some() {
        bail!(
            "the memory of section `{name}` is reserved: run `vlm free {name}` before you change its size, pages, owner or node"
        );
    }
    locked.change(|registry| {
        registry
            .entries
            .iter_mut()
            .filter(|entry| entry.name == name)
            .for_each(|entry| *entry = after.clone());
    })?;
    describe("changed", &after, path);
    Ok(())
}

fn remove(path: &Path, name: &str) -> anyhow::Result<()> {
    let mut locked = LockedRegistry::open(path)?;
    locked.registry().entry(name)?;
    if Mount::at(&locked.registry().mount_point(name))?.is_some() {
        bail!("the memory of section `{name}` is reserved: run `vlm free {name}` first");
    }
    locked.change(|registry| registry.entries.retain(|entry| entry.name != name))?;
    println!("removed `{name}` from {}", path.display());
    Ok(())
}

fn apply(path: &Path, names: &[String], dry_run: bool) -> anyhow::Result<()> {
    let locked = LockedRegistry::open(path)?;
    let registry = locked.registry();
    let entries = match names {
        [] => registry.entries.iter().collect(),
        names => names.iter().map(|name| registry.entry(name)).collect::<Result<Vec<_>, _>>()?,
    };
    let reservations = Reservations::lock(registry)?;
    for (entry, step) in reservations.plan(&entries)? {
        let step = if dry_run { step } else { reservations.apply(entry)? };
        match step {
            ReservationStep::Kept => println!("`{}`: {} are reserved already", entry.name, entry.size),
            ReservationStep::Reserve(size) if dry_run => {
                println!("`{}`: {size} would be reserved", entry.name)
            }
            ReservationStep::Reserve(size) => println!("`{}`: {size} reserved", entry.name),
        }
    }
    Ok(())
}

fn free(path: &Path, names: Vec<String>, all: bool) -> anyhow::Result<()> {
    let locked = LockedRegistry::open(path)?;
    let registry = locked.registry();
    let names = if all { registry.entries.iter().map(|entry| entry.name.clone()).collect() } else { names };
    let reservations = Reservations::lock(registry)?;
    for name in names {
        match reservations.free(&name)? {
            Some(freed) if freed.stayed == Size(0) => {
                println!("`{name}`: {} given back to the system", freed.size)
            }
            Some(freed) => println!(
                "`{name}`: {} given back, of which {} stay in the pool of huge pages: other programs use them",
                freed.size, freed.stayed
            ),
            None if all => {}
            None => {
                registry.entry(&name)?;
                println!("`{name}`: nothing is reserved");
            }
        }
    }
    Ok(())
}

fn list(registry: &Registry, format: TableFormat) -> anyhow::Result<()> {
    let columns = [
        "section",
        "size",
        "pages",
        "allocation",
        "page tables",
        "owner",
        "node",
        "memory",
        "unused",
        "processes",
    ];
    let mut table = TextTable::new(&columns);
    for entry in &registry.entries {
        let point = registry.mount_point(&entry.name);
        let mount = Mount::at(&point)?;
        let state = match &mount {
            None => "not reserved",
            Some(mount) if mount.matches(entry) => "reserved",
            Some(_) => "differs",
        };
        // Another user may not look into the section.
        let available = match state {
            "reserved" => {
                usage(registry, &entry.name).map_or("?".to_owned(), |usage| usage.available.to_string())
            }
            _ => "-".to_owned(),
        };
        table.row(vec![
            entry.name.clone(),
            entry.size.to_string(),
            entry.page_size.to_string(),
            format!("{:?}", entry.allocation).to_lowercase(),
            format!("{:?}", entry.page_tables).to_lowercase(),
            entry.owner.clone(),
            entry.node.map_or("any".to_owned(), |node| node.to_string()),
            state.to_owned(),
            available,
            users(&point).len().to_string(),
        ]);
    }
    table.write(format, &mut io::stdout().lock())
}

fn print_check(registry: &Registry) -> anyhow::Result<ExitCode> {
    let findings = check(registry)?;
    for finding in &findings {
        println!("{}: {}", format!("{:?}", finding.severity).to_lowercase(), finding.text);
    }
    if findings.is_empty() {
        println!("all {} sections have what the registry promises", registry.entries.len());
    }
    let alarm = findings.iter().any(|finding| finding.severity == Severity::Alarm);
    Ok(if alarm { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print_verify(registry: &Registry, name: &str) -> anyhow::Result<ExitCode> {
    let vlm = std::env::current_exe().context("cannot find this program's own file")?;
    let sharing = verify::verify(registry, name, &vlm)?;
    println!(
        "section `{name}`: {} of {} whole GiB have shared page tables\n\
         minor faults of a process: {} for {} pages\n\
         page tables: {:+} KiB a process (measured, other programs included), {} if they were its own",
        sharing.shared_gib(),
        sharing.whole_gib(),
        separated(sharing.faults),
        separated(sharing.pages),
        sharing.growth / 1024,
        sharing.private_tables,
    );
    let wanted = registry.entry(name)?.page_tables == PageTables::Shared;
    Ok(if wanted && !sharing.is_shared() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print_study(settings: &Settings, output: Option<&Path>, format: TableFormat) -> anyhow::Result<()> {
    // The file is opened first: an hour's measurement must not end in a wrong path.
    let mut file = output
        .map(|path| File::create(path).with_context(|| format!("cannot write {}", path.display())))
        .transpose()?;
    let mut rows = Vec::new();
    let outcome = study(settings, &mut |row| {
        let (seconds, cpu) = (row.start_up.as_secs_f64(), row.cpu.as_secs_f64());
        let StudyRow { backing, size, processes, .. } = &row;
        eprintln!("{}, {size}, {processes} processes: {seconds:.2} s, {cpu:.2} CPU s", backing.title());
        rows.push(row);
    });
    // What was measured before an error is not lost.
    let table = study_table(&rows);
    if let Some(file) = file.as_mut() {
        let mut writer = BufWriter::new(file);
        table.write(TableFormat::Csv, &mut writer)?;
        writer.flush()?;
    }
    table.write(format, &mut io::stdout().lock())?;
    Ok(outcome?)
}

fn study_table(rows: &[StudyRow]) -> TextTable {
    let columns =
        ["backing", "size_mib", "processes", "start_up_s", "cpu_s", "page_tables_kib", "faults_by_process"];
    let mut table = TextTable::new(&columns);
    for row in rows {
        table.row(vec![
            row.backing.title().to_owned(),
            separated(row.size.bytes() >> 20),
            separated(row.processes as u64),
            format!("{:.3}", row.start_up.as_secs_f64()),
            format!("{:.3}", row.cpu.as_secs_f64()),
            (row.page_tables / 1024).to_string(),
            separated(row.faults),
        ]);
    }
    table
}
