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
mod result;
mod tables;

use std::path::PathBuf;

use analysis::table::Table;

use super::database::lock;
use super::environment::check_library;
use crate::build::{Build, BuildFolders, BuildProgress, build};
use crate::toolchain::{BYTE_WORD, NATIVE};
pub use error::SpikeStudyError;
pub use inputs::{Content, Input};
use measure::{FIGURE_10, HOT_COLD, LAYOUTS, MACHINES, Place, Trained, VARIANTS};
pub use measure::{Measured, ProgramResult, Variant};
pub use programs::{PROGRAMS, StudyProgram, names};
pub use result::SpikeStudy;

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
    /// What the runs of a program begin with is made.
    Preparing(&'static str),
    /// A program runs on its training input.
    Training(&'static str),
    /// A variant of a program runs on the test input.
    Measuring(&'static str, &'static str),
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
    for program in &settings.programs {
        if let Some(reason) = program.obstacle() {
            return Err(SpikeStudyError::Obstacle { program: program.workload.name, reason });
        }
    }
    // All builds come first, so that a missing package or tool is known at once.
    let builds = settings.programs.iter().map(|program| build_program(program, settings, progress));
    let builds = builds.collect::<Result<Vec<_>, _>>()?;
    let studied = settings.programs.iter().zip(builds);
    let studied = studied.map(|(program, builds)| study_program(program, builds, settings, progress));
    let programs = studied.collect::<Result<Vec<_>, _>>()?;
    let provenance = provenance(&programs);
    Ok(SpikeStudy { programs, provenance })
}

/// Builds a program for Alpha, and for the host if that has to prepare something.
fn build_program(
    program: &StudyProgram,
    settings: &SpikeStudySettings,
    progress: &(dyn Fn(SpikeStudyProgress) + Sync),
) -> Result<Vec<Build>, SpikeStudyError> {
    let name = program.workload.name;
    let toolchains = if program.prepare.is_some() { &[BYTE_WORD, NATIVE][..] } else { &[BYTE_WORD] };
    let building = |step| progress(SpikeStudyProgress::Building(name, step));
    build(&program.workload, toolchains, &settings.build, &building)
        .map_err(|error| SpikeStudyError::Build { program: name, error })
}

fn study_program(
    program: &StudyProgram,
    mut builds: Vec<Build>,
    settings: &SpikeStudySettings,
    progress: &(dyn Fn(SpikeStudyProgress) + Sync),
) -> Result<ProgramResult, SpikeStudyError> {
    let name = program.workload.name;
    let folder = settings.build.folder.join("spike").join(name);
    let _lock = lock(&folder)?;
    let place = Place {
        program,
        inputs: folder.join("inputs"),
        runs: folder.join("runs"),
        sysroot: &settings.sysroot,
    };
    place.make_inputs()?;
    if let (Some(script), Some(native)) = (program.prepare, builds.get(1)) {
        progress(SpikeStudyProgress::Preparing(name));
        place.prepare(script, &native.folder)?;
    }
    let build = builds.swap_remove(0);
    progress(SpikeStudyProgress::Training(name));
    let image = build.program.clone();
    place.link_folders(&build.folder)?;
    let trained = Trained { counts: place.train(&image)?, place, image };
    let mut expected = None;
    let mut measure = |number: usize, variant: &Variant, machines: &[&str]| {
        progress(SpikeStudyProgress::Measuring(name, variant.name));
        trained.measure(number, variant, machines, &mut expected)
    };
    let variants = VARIANTS.iter().enumerate().map(|(number, variant)| measure(number, variant, &MACHINES));
    let variants = variants.collect::<Result<Vec<_>, _>>()?;
    let layouts = LAYOUTS
        .iter()
        .zip(VARIANTS.len()..)
        .map(|(variant, number)| Ok(measure(number, variant, &[FIGURE_10])?.cycles[0]));
    let layouts = layouts.collect::<Result<Vec<_>, SpikeStudyError>>()?;
    let hot_cold = trained.optimize(VARIANTS[HOT_COLD].options.unwrap_or_default())?;
    let (profiled, _) = trained.profiled()?;
    Ok(ProgramResult { program: *program, build, variants, layouts, profiled, hot_cold })
}

/// Versions and commands, for the end of the page.
fn provenance(programs: &[ProgramResult]) -> Vec<(String, String)> {
    let mut facts = vec![
        ("Command".into(), "pathlength study spike".into()),
        ("pathlength".into(), env!("CARGO_PKG_VERSION").into()),
    ];
    facts.extend(programs.first().map(|one| ("Compiler".into(), one.build.compiler.clone())));
    for one in programs {
        let name = one.program.workload.name;
        let sources = one.build.sources.iter().map(String::as_str).filter(|name| !name.ends_with(".asc"));
        facts.push((format!("{name}: sources"), sources.collect::<Vec<_>>().join(" ")));
        facts.push((format!("{name}: build"), one.build.commands.join("\n")));
        facts.push((format!("{name}: training"), one.program.training.join(" ")));
        facts.push((format!("{name}: test"), one.program.test.join(" ")));
    }
    facts
}
