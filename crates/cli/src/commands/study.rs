//! `pathlength study`: from sources to a report.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use report::Page;
use studies::byteword::{MODES, Mode, StudySettings, byteword};
use studies::numa::{MOST_RECORDINGS, NumaBenchmark};
use studies::spike::{PROGRAMS, SpikeStudyProgress, SpikeStudySettings, StudyProgram};
use studies::system::{SystemProgram, SystemStudySettings};
use studies::tpcc::DatabaseSystem;
use studies::tpch;
use studies::vlm::Backing;
use table::Table;
use workloads::build::{BuildFolders, BuildProgress};

use crate::arguments::{StudyName, StudyOptions};
use crate::progress::Steps;
use session::machines::SelectedMachines;

/// The results of a study: a summary for the terminal, all tables, and the report.
type Results = (Vec<Table>, Vec<Table>, Page);

/// Studies, prints the summary, writes the report and its tables.
pub fn run(options: &StudyOptions) -> anyhow::Result<ExitCode> {
    let name = match options.name {
        StudyName::Byteword => "byteword",
        StudyName::Strides => "strides",
        StudyName::Tpcc => "tpcc",
        StudyName::Tpch => "tpch",
        StudyName::Vlm => "vlm",
        StudyName::Rdb => "rdb",
        StudyName::Smp => "smp",
        StudyName::Numa => "numa",
        StudyName::Spike => "spike",
        StudyName::System => "system",
    };
    let is_server = options.database == "postgresql";
    if is_server && !matches!(options.name, StudyName::Byteword | StudyName::Tpcc | StudyName::Tpch) {
        anyhow::bail!("--database is for the studies byteword, tpcc and tpch");
    }
    let output = options.output.clone().unwrap_or_else(|| Path::new("study").join(name));
    check_options(options)?;
    // Before minutes of work, check that its results can be written.
    report::check(true, report::Format::Csv, Some(&output))?;
    let (summary, tables, page) = match options.name {
        StudyName::Byteword if is_server => of_byteword_server(options)?,
        StudyName::Byteword => of_byteword(options)?,
        StudyName::Strides => of_strides(options)?,
        StudyName::Tpcc => of_tpcc(options)?,
        StudyName::Tpch => of_tpch(options)?,
        StudyName::Vlm => of_vlm(options)?,
        StudyName::Rdb => of_rdb(options)?,
        StudyName::Smp => of_smp(options)?,
        StudyName::Numa => of_numa(options)?,
        StudyName::Spike => of_spike(options)?,
        StudyName::System => of_system(options)?,
    };
    let page = write(&tables, &page, &output)?;
    report::write_all(&summary, report::Format::Table, None)?;
    text::message!("the report is {}", page.display());
    Ok(ExitCode::SUCCESS)
}

/// Checks that options of one study are not given to another.
fn check_options(options: &StudyOptions) -> anyhow::Result<()> {
    let with_programs: &[StudyName] = &[StudyName::Spike, StudyName::System];
    let owned: [(_, _, &[StudyName]); 8] = [
        ("--machine", !options.machines.is_empty(), &[StudyName::Tpcc]),
        ("--benchmarks", !options.benchmarks.is_empty(), &[StudyName::Numa]),
        ("--recordings", options.recordings.is_some(), &[StudyName::Numa]),
        ("--mode", options.mode.is_some(), &[StudyName::Byteword]),
        ("--scale", options.scale.is_some(), &[StudyName::Tpch]),
        ("--queries", !options.queries.is_empty(), &[StudyName::Tpch]),
        ("--programs", !options.programs.is_empty(), with_programs),
        ("--sources", options.sources.is_some(), with_programs),
    ];
    for (option, is_given, owners) in owned {
        if is_given && !owners.contains(&options.name) {
            let names = owners.iter().filter_map(ValueEnum::to_possible_value);
            let names = names.map(|one| one.get_name().to_owned()).collect::<Vec<_>>();
            anyhow::bail!("{option} is of the study {}", names.join(" or "));
        }
    }
    let (study, known) = match options.name {
        StudyName::Spike => ("spike", studies::spike::names()),
        _ => ("system", studies::system::names()),
    };
    if let Some(name) = options.programs.iter().find(|name| !known.contains(&name.as_str())) {
        anyhow::bail!("{name} is not a program of the study {study}, which has {}", known.join(", "));
    }
    Ok(())
}

fn of_byteword(options: &StudyOptions) -> anyhow::Result<Results> {
    let is_selected = |mode: &&Mode| options.mode.as_deref().is_none_or(|name| name == mode.name);
    let steps = Steps::new();
    let study = byteword(
        &StudySettings {
            modes: MODES.iter().filter(is_selected).copied().collect(),
            build: BuildFolders { folder: "build".into(), sources: None },
            sysroot: options.sysroot.clone(),
        },
        &|step| steps.show(&step),
    );
    steps.clear();
    let study = study?;
    Ok((study.summary(), study.tables(), study.page()?))
}

fn of_byteword_server(options: &StudyOptions) -> anyhow::Result<Results> {
    if options.mode.is_some() {
        anyhow::bail!("--mode is for SQLite: on a server the database fits the buffers");
    }
    let steps = Steps::new();
    let settings = studies::byteword::ServerStudySettings {
        transactions: options.transactions,
        build: BuildFolders { folder: "build".into(), sources: None },
        sysroot: options.sysroot.clone(),
    };
    let study = studies::byteword::byteword_server(&settings, &|step| steps.show(&step));
    steps.clear();
    let study = study?;
    Ok((study.summary(), study.tables(), study.page()?))
}

fn of_strides(options: &StudyOptions) -> anyhow::Result<Results> {
    let steps = Steps::new();
    let study = studies::strides::strides(
        &studies::strides::StridesStudySettings {
            build: BuildFolders { folder: "build".into(), sources: None },
            sysroot: options.sysroot.clone(),
            with_misses: true,
        },
        &|step| match step {
            studies::strides::StridesStudyProgress::Building(step) => {
                steps.show(&studies::StudyProgress::Building(step))
            }
            studies::strides::StridesStudyProgress::Running(of, switches) => {
                steps.message(format!("running the {of} loop, {switches}"));
            }
        },
    );
    steps.clear();
    let study = study?;
    let tables = study.tables();
    Ok((tables.clone(), tables, study.page()?))
}

fn of_tpcc(options: &StudyOptions) -> anyhow::Result<Results> {
    let SelectedMachines { names, machines, .. } = SelectedMachines::find(&options.machines, &[])?;
    let steps = Steps::new();
    let settings = studies::tpcc::TpccStudySettings {
        system: database_system(options),
        transactions: options.transactions,
        machines: names.into_iter().zip(machines).collect(),
        build: BuildFolders { folder: "build".into(), sources: None },
        sysroot: options.sysroot.clone(),
    };
    let study = studies::tpcc::tpcc(&settings, &|step| steps.show(&step));
    steps.clear();
    let study = study?;
    Ok((study.summary(), study.tables(), study.page()?))
}

fn database_system(options: &StudyOptions) -> DatabaseSystem {
    match options.database.as_str() {
        "postgresql" => DatabaseSystem::Postgresql,
        _ => DatabaseSystem::Sqlite,
    }
}

fn of_tpch(options: &StudyOptions) -> anyhow::Result<Results> {
    const SCALE: f64 = 0.01;
    let mut queries = options.queries.clone();
    queries.sort_unstable();
    queries.dedup();
    let steps = Steps::new();
    let settings = tpch::TpchStudySettings {
        system: database_system(options),
        scale: options.scale.unwrap_or(SCALE),
        queries: if queries.is_empty() { tpch::numbers().collect() } else { queries },
        build: BuildFolders { folder: "build".into(), sources: None },
        sysroot: options.sysroot.clone(),
    };
    let study = tpch::tpch(&settings, &|step| steps.show(&step));
    steps.clear();
    let study = study?;
    Ok((study.summary(), study.tables(), study.page()?))
}

fn of_vlm(options: &StudyOptions) -> anyhow::Result<Results> {
    let given = &options.vlm;
    if given.sizes.iter().any(|size| size.bytes() == 0) || given.processes.contains(&0) {
        anyhow::bail!("sizes and numbers of processes begin with 1");
    }
    let server = studies::vlm::PostgresqlSettings {
        size: given.postgresql_size,
        connections: given.connections as usize,
    };
    let settings = studies::vlm::VlmStudySettings {
        sizes: given.sizes.clone(),
        processes: given.processes.clone(),
        backings: given.memory.iter().copied().map(Backing::from).collect(),
        postgresql: (server.size.bytes() > 0).then_some(server),
        vlm: studies::vlm::find_vlm(given.vlm.as_deref())?,
    };
    let steps = Steps::new();
    let study = studies::vlm::vlm(&settings, &|step| steps.message(step));
    steps.clear();
    let study = study?;
    Ok((study.summary(), study.tables(), study.page()?))
}

fn of_rdb(options: &StudyOptions) -> anyhow::Result<Results> {
    let steps = Steps::new();
    let settings = studies::rdb::RdbStudySettings {
        transactions: (options.transactions / 10).max(1),
        build: BuildFolders { folder: "build".into(), sources: None },
        sysroot: options.sysroot.clone(),
    };
    let study = studies::rdb::rdb(&settings, &|step| steps.show(&step));
    steps.clear();
    let study = study?;
    Ok((study.summary(), study.tables(), study.page()?))
}

fn of_smp(options: &StudyOptions) -> anyhow::Result<Results> {
    let steps = Steps::new();
    let settings = studies::smp::SmpStudySettings {
        transactions: (options.transactions / 10).max(1),
        build: BuildFolders { folder: "build".into(), sources: None },
        sysroot: options.sysroot.clone(),
    };
    let study = studies::smp::smp(&settings, &|step| steps.show(&step));
    steps.clear();
    let study = study?;
    Ok((study.summary(), study.tables(), study.page()?))
}

fn of_numa(options: &StudyOptions) -> anyhow::Result<Results> {
    let steps = Steps::new();
    let settings = studies::numa::NumaStudySettings {
        transactions: (options.transactions / 100).max(2),
        benchmarks: match options.benchmarks.as_slice() {
            [] => NumaBenchmark::ALL.to_vec(),
            names => {
                let is_named = |one: &NumaBenchmark| names.iter().any(|name| name == one.name());
                NumaBenchmark::ALL.into_iter().filter(is_named).collect()
            }
        },
        most_recordings: options.recordings.unwrap_or(MOST_RECORDINGS),
        build: BuildFolders { folder: "build".into(), sources: None },
        sysroot: options.sysroot.clone(),
    };
    let study = studies::numa::numa(&settings, &|step| steps.show(&step));
    steps.clear();
    let study = study?;
    Ok((study.summary(), study.tables(), study.page()?))
}

fn of_spike(options: &StudyOptions) -> anyhow::Result<Results> {
    let is_selected = |program: &&StudyProgram| {
        let name = program.workload.name;
        match (options.programs.is_empty(), program.obstacle()) {
            (true, Some(reason)) => {
                text::message!("{name} is left out: {reason}");
                false
            }
            (true, None) => true,
            (false, _) => options.programs.iter().any(|selected| selected == name),
        }
    };
    let settings = SpikeStudySettings {
        programs: PROGRAMS.iter().filter(is_selected).copied().collect(),
        build: BuildFolders { folder: "build".into(), sources: options.sources.clone() },
        sysroot: options.sysroot.clone(),
    };
    let steps = Steps::new();
    let study = studies::spike::spike(&settings, &|step| match step {
        SpikeStudyProgress::Building(program, BuildProgress::Done { build }) => {
            steps.message(format!("{program}: the {build} build is ready"));
        }
        SpikeStudyProgress::Building(_, step) => steps.show(&studies::StudyProgress::Building(step)),
        SpikeStudyProgress::Preparing(program) => steps.message(format!("{program}: preparing its files")),
        SpikeStudyProgress::Training(program) => steps.message(format!("{program}: training")),
        SpikeStudyProgress::Measuring(program, variant) => {
            steps.message(format!("{program}: measuring, {variant}"));
        }
    });
    steps.clear();
    let study = study?;
    Ok((study.summary(), study.tables(), study.page()?))
}

fn of_system(options: &StudyOptions) -> anyhow::Result<Results> {
    let is_selected = |program: &SystemProgram| {
        options.programs.is_empty() || options.programs.iter().any(|selected| selected == program.name)
    };
    let settings = SystemStudySettings {
        programs: studies::system::programs().into_iter().filter(is_selected).collect(),
        compares_builds: options.programs.is_empty(),
        build: BuildFolders { folder: "build".into(), sources: options.sources.clone() },
        sysroot: options.sysroot.clone(),
    };
    let steps = Steps::new();
    let study = studies::system::study(&settings, &|step| steps.show(&step));
    steps.clear();
    let study = study?;
    Ok((studies::system::summary(&study), studies::system::tables(&study), studies::system::page(&study)?))
}

/// Writes the page, and every table as CSV, JSON and Parquet in the same folder. Returns the page's path.
fn write(tables: &[Table], page: &Page, folder: &Path) -> anyhow::Result<PathBuf> {
    for format in [report::Format::Csv, report::Format::Json, report::Format::Parquet] {
        report::write_all(tables, format, Some(&folder.join(format.to_string())))?;
    }
    let path = folder.join("index.html");
    report::write_file(&path, |out| page.write(out))?;
    Ok(path)
}
