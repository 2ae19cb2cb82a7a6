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

use std::path::{Path, PathBuf};

use table::Table;

use super::database::lock;
use super::environment::check_library;
use crate::StudyReport;
pub use error::SpikeStudyError;
pub use inputs::{Content, GeneratedInput};
use measure::{FEEDBACK, FIGURE_10, HOT_COLD, LAYOUTS, MACHINES, StudyFolder, Trained, VARIANTS};
pub use measure::{SpikeProgramResult, Variant, VariantResult};
pub use programs::{PROGRAMS, StudyProgram, names};
pub use result::SpikeStudy;
use workloads::build::{Build, BuildFolders, BuildProgress, build};
use workloads::feedback;
use workloads::toolchain::{BYTE_WORD, NATIVE};

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
    /// Its tables and its page.
    pub fn report(&self) -> Result<StudyReport, report::Error> {
        Ok(StudyReport { summary: self.summary(), tables: self.tables(), page: page::page(self)? })
    }

    /// The answer, for the terminal.
    fn summary(&self) -> Vec<Table> {
        vec![tables::programs(self), tables::changes(self), tables::feedback(self)]
    }

    /// Every table.
    fn tables(&self) -> Vec<Table> {
        tables::all(self).into_iter().chain(figures::all(self)).chain([paper::table(self)]).collect()
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

/// The builds of a program.
struct Builds {
    /// As it is.
    plain: Build,
    /// With counters of the compiler's.
    counting: Build,
    /// For the host, if that has to prepare something.
    native: Option<Build>,
}

fn build_program(
    program: &StudyProgram,
    settings: &SpikeStudySettings,
    progress: &(dyn Fn(SpikeStudyProgress) + Sync),
) -> Result<Builds, SpikeStudyError> {
    let name = program.workload.name;
    let toolchains = [BYTE_WORD, feedback::GENERATE, NATIVE];
    let toolchains = &toolchains[..if program.prepare.is_some() { 3 } else { 2 }];
    let building = |step| progress(SpikeStudyProgress::Building(name, step));
    let mut builds = build(&program.workload, toolchains, &settings.build, &building)
        .map_err(|error| SpikeStudyError::Build { program: name, error })?;
    let native = if program.prepare.is_some() { builds.pop() } else { None };
    let (counting, plain) = (builds.swap_remove(1), builds.swap_remove(0));
    Ok(Builds { plain, counting, native })
}

fn study_program(
    program: &StudyProgram,
    builds: Builds,
    settings: &SpikeStudySettings,
    progress: &(dyn Fn(SpikeStudyProgress) + Sync),
) -> Result<SpikeProgramResult, SpikeStudyError> {
    let name = program.workload.name;
    let folder = settings.build.folder.join("spike").join(name);
    let _lock = lock(&folder)?;
    let folders = &StudyFolder {
        program,
        inputs: folder.join("inputs"),
        runs: folder.join("runs"),
        sysroot: &settings.sysroot,
    };
    folders.make_inputs()?;
    if let (Some(script), Some(native)) = (program.prepare, &builds.native) {
        progress(SpikeStudyProgress::Preparing(name));
        folders.prepare(script, &native.folder)?;
    }
    folders.link_folders(&builds.plain.folder)?;
    progress(SpikeStudyProgress::Training(name));
    let trained = folders.train(&builds.plain.program)?;
    let mut expected = None;
    let mut numbers = 0..;
    let mut measure = |trained: &Trained, variant: &Variant, machines: &[&str]| {
        progress(SpikeStudyProgress::Measuring(name, variant.name));
        let number = numbers.next().unwrap_or_default();
        trained.measure(number, variant, machines, &mut expected)
    };
    let variants = VARIANTS.iter().map(|variant| measure(&trained, variant, &MACHINES));
    let variants = variants.collect::<Result<Vec<_>, _>>()?;
    let layouts = LAYOUTS.iter().map(|variant| Ok(measure(&trained, variant, &[FIGURE_10])?.cycles[0]));
    let layouts = layouts.collect::<Result<Vec<_>, SpikeStudyError>>()?;
    let feedback_build = build_by_feedback(folders, &builds.counting, &folder, settings, progress)?;
    progress(SpikeStudyProgress::Training(name));
    let fed_back = folders.train(&feedback_build.program)?;
    let feedback = FEEDBACK.iter().map(|variant| measure(&fed_back, variant, &MACHINES));
    let feedback = feedback.collect::<Result<Vec<_>, _>>()?;
    let hot_cold = trained.optimize(VARIANTS[HOT_COLD].options.unwrap_or_default())?;
    let (profiled, _) = trained.profiled()?;
    let build = builds.plain;
    Ok(SpikeProgramResult {
        program: *program,
        build,
        variants,
        feedback,
        feedback_build,
        layouts,
        profiled,
        hot_cold,
    })
}

/// Trains the compiler, and builds the program by what it has learnt.
fn build_by_feedback(
    folders: &StudyFolder,
    counting: &Build,
    folder: &Path,
    settings: &SpikeStudySettings,
    progress: &(dyn Fn(SpikeStudyProgress) + Sync),
) -> Result<Build, SpikeStudyError> {
    let name = folders.program.workload.name;
    progress(SpikeStudyProgress::Training(name));
    let failed = |error| SpikeStudyError::Build { program: name, error };
    let profile = folder.join("feedback");
    folders.train_compiler(counting, &profile)?;
    let building = |step| progress(SpikeStudyProgress::Building(name, step));
    feedback::build(&folders.program.workload, &profile, &settings.build, &building).map_err(failed)
}

/// Versions and commands, for the end of the page.
fn provenance(programs: &[SpikeProgramResult]) -> Vec<(String, String)> {
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
        let last = one.feedback_build.commands.join("\n");
        facts.push((format!("{name}: build with the compiler's feedback"), last));
        facts.push((format!("{name}: training"), one.program.training.join(" ")));
        facts.push((format!("{name}: test"), one.program.test.join(" ")));
    }
    facts
}
