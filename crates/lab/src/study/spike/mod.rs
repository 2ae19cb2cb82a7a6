//! The study of Spike: what programs are like, and what profile-directed optimization of their images wins, as in Figures 1
//! to 6, 10, 11 and 15 to 20 of "Optimizing Alpha Executables on Windows NT with Spike" (Digital Technical Journal 9(4), 1997).
//!
//! Each program is optimized by the profile of one input and measured on another one.

mod error;
mod figures;
mod inputs;
mod measure;
mod page;
mod paper;
mod programs;
mod tables;

use std::path::PathBuf;
use std::process::Command;

use analysis::table::Table;

use super::database::lock;
use super::environment::check_library;
use crate::build::{BuildFolders, BuildProgress, build};
use crate::toolchain::{BYTE_WORD, NATIVE};
pub use error::SpikeStudyError;
pub use inputs::{Content, Input};
use measure::{FIGURE_10, LAYOUTS, MACHINES, Place, VARIANTS, profiled};
pub use measure::{Measured, ProgramResult, Variant};
pub use programs::{PROGRAMS, StudyProgram, names};
use spike::optimize::{self, Options};

/// What to study.
#[derive(Clone, Debug)]
pub struct SpikeStudySettings {
    /// The programs.
    pub programs: Vec<StudyProgram>,
    /// Where builds, inputs and optimized images are kept.
    pub build: BuildFolders,
    /// Where Alpha's C library is.
    pub sysroot: PathBuf,
}

/// The progress of the study.
#[derive(Clone, Copy, Debug)]
pub enum SpikeStudyProgress {
    /// A program is being built.
    Building(&'static str, BuildProgress),
    /// A program runs on its training input.
    Training(&'static str),
    /// A variant of a program runs on the test input.
    Measuring(&'static str, &'static str),
}

/// Everything that was found.
pub struct SpikeStudy {
    /// The programs, in the requested order.
    pub programs: Vec<ProgramResult>,
    provenance: Vec<(String, String)>,
}

impl SpikeStudy {
    /// The answer, for the terminal.
    pub fn summary(&self) -> Vec<Table> {
        vec![tables::programs(self), tables::changes(self)]
    }

    /// Every table.
    pub fn tables(&self) -> Vec<Table> {
        tables::all(self).into_iter().chain(figures::all(self)).chain([paper::table(self)]).collect()
    }

    /// The report as a page.
    pub fn page(&self) -> Result<report::Page, report::Error> {
        page::page(self)
    }
}

/// Builds, trains, optimizes and measures each program.
pub fn spike(
    settings: &SpikeStudySettings,
    progress: &(dyn Fn(SpikeStudyProgress) + Sync),
) -> Result<SpikeStudy, SpikeStudyError> {
    check_library(&settings.sysroot).map_err(super::Error::from)?;
    let studied = settings.programs.iter().map(|program| study_program(program, settings, progress));
    let programs = studied.collect::<Result<Vec<_>, _>>()?;
    let mut provenance = vec![
        ("Command".into(), "pathlength study spike".into()),
        ("pathlength".into(), env!("CARGO_PKG_VERSION").into()),
    ];
    if let Some(first) = programs.first() {
        provenance.push(("Compiler".into(), first.build.compiler.clone()));
    }
    for one in &programs {
        let name = one.program.workload.name;
        let sources: Vec<&str> =
            one.build.sources.iter().map(String::as_str).filter(|name| !name.ends_with(".asc")).collect();
        provenance.push((format!("{name}: sources"), sources.join(" ")));
        provenance.push((format!("{name}: build"), one.build.commands.join("\n")));
        provenance.push((format!("{name}: training"), one.program.training.join(" ")));
        provenance.push((format!("{name}: test"), one.program.test.join(" ")));
    }
    Ok(SpikeStudy { programs, provenance })
}

fn study_program(
    program: &StudyProgram,
    settings: &SpikeStudySettings,
    progress: &(dyn Fn(SpikeStudyProgress) + Sync),
) -> Result<ProgramResult, SpikeStudyError> {
    let name = program.workload.name;
    let toolchains = if program.prepare.is_some() { vec![BYTE_WORD, NATIVE] } else { vec![BYTE_WORD] };
    let building = |step| progress(SpikeStudyProgress::Building(name, step));
    let mut builds = build(&program.workload, &toolchains, &settings.build, &building)
        .map_err(|error| SpikeStudyError::Build { program: name, error })?;
    let folder = settings.build.folder.join("spike").join(name);
    let _lock = lock(&folder)?;
    let place = Place {
        program,
        inputs: folder.join("inputs"),
        runs: folder.join("runs"),
        sysroot: &settings.sysroot,
    };
    place.make_inputs()?;
    if let Some(arguments) = program.prepare {
        prepare(&place, &builds[1].program, arguments)?;
    }
    let build = builds.swap_remove(0);
    progress(SpikeStudyProgress::Training(name));
    let counts = place.train(&build.program)?;
    let optimized = |options: Options| {
        let (program, calls) = profiled(&build.program, &counts)?;
        let problem = |problem| spike::Error::Unsuitable { path: build.program.clone(), problem };
        optimize::optimize(program, &calls, options).map_err(problem)
    };
    let measure = |number: usize, variant: &Variant, machines: &[&str]| {
        progress(SpikeStudyProgress::Measuring(name, variant.name));
        let bytes = match variant.options {
            Some(options) => optimized(options)?.bytes,
            None => std::fs::read(&build.program).map_err(SpikeStudyError::files(&build.program))?,
        };
        place.test(place.write(number, &bytes)?, variant.name, machines)
    };
    let mut variants: Vec<Measured> = Vec::new();
    let mut expected = None;
    for (number, variant) in VARIANTS.iter().enumerate() {
        let (measured, output) = measure(number, variant, &MACHINES)?;
        if *expected.get_or_insert_with(|| output.clone()) != output {
            return Err(SpikeStudyError::Output { program: name, variant: variant.name });
        }
        variants.push(measured);
    }
    let mut layouts = Vec::new();
    for (number, variant) in LAYOUTS.iter().enumerate() {
        layouts.push(measure(VARIANTS.len() + number, variant, &[FIGURE_10])?.0.cycles[0]);
    }
    let hot_cold = optimized(VARIANTS[2].options.unwrap_or_default())?;
    let (profiled, _) = profiled(&build.program, &counts)?;
    Ok(ProgramResult { program: *program, build, variants, layouts, profiled, hot_cold })
}

/// Makes the file that each run gets a copy of, by the host's build.
fn prepare(
    place: &Place,
    native: &std::path::Path,
    arguments: &'static [&'static str],
) -> Result<(), SpikeStudyError> {
    let prepared = place.prepared();
    let failed =
        |reason| SpikeStudyError::Run { program: place.program.workload.name, run: "preparation", reason };
    let output = Command::new(native).args(place.arguments(arguments, &prepared)).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().into())),
    }
}
