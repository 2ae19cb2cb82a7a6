//! The study of the operating system: after "Tracing and characterization of NT-based system workloads" (Casmira, Kaeli and
//! Hunter, 1998), what programs look like alone, with their libraries, and with the operating system; and what byte and word
//! instructions are worth inside the kernel.

pub(crate) mod measure;
mod page;
mod programs;
mod tables;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::StudyProgress;
use engine::{Plan, UnitPlan};
use session::scratch::temporary_folder;
use workloads::build::{Build, BuildFolders, BuildProgress, build};
use workloads::toolchain::{BYTE_WORD, NATIVE, ORIGINAL, Toolchain};

pub use measure::{CACHES, CountedScopes, KINDS, Scope, ScopeCounts};
pub use programs::{RecordedUnits, SystemProgram, names, programs};

use system::job::SharedFile;
use system::kernel::{self, GuestKernel, KernelConfiguration};
use system::machine::GuestHardware;
use system::prepared::{GuestSetup, PreparedGuest};

/// Bytes of the guest's memory, and of its disk.
const MEMORY: u64 = 1 << 30;
const DISK: u64 = 512 << 20;
/// The user and the group `nobody`.
const NOBODY: u32 = 65534;
/// The programs that are run with byte and word instructions, and without, in the kernel and in the program.
pub const BYTE_WORD_PROGRAMS: [&str; 3] = ["sqlite", "sqlite-disk", "postgresql"];

/// What to study.
#[derive(Clone, Debug)]
pub struct SystemStudySettings {
    /// The programs.
    pub programs: Vec<SystemProgram>,
    /// Whether [`BYTE_WORD_PROGRAMS`] are also run with kernels and programs of both builds; each kernel's build takes minutes.
    pub compares_builds: bool,
    /// Where builds are kept.
    pub build: BuildFolders,
    /// Where Alpha's C library is.
    pub sysroot: PathBuf,
}

/// Why whole systems could not be studied.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A build failed.
    #[error(transparent)]
    Build(#[from] workloads::build::Error),
    /// The guest failed.
    #[error(transparent)]
    Guest(#[from] system::Error),
    /// A trace cannot be read.
    #[error(transparent)]
    Read(#[from] trace::Error),
    /// A trace cannot be evaluated.
    #[error("the trace cannot be evaluated: {0}")]
    Trace(String),
    /// A program's files cannot be made.
    #[error("{program}: its files could not be made: {reason}")]
    Prepare {
        /// The program.
        program: &'static str,
        /// Why.
        reason: String,
    },
    /// A program failed.
    #[error("{program} failed in the guest with status {status}: {errors}")]
    Program {
        /// The program, or what it did.
        program: String,
        /// Its status.
        status: i32,
        /// What it wrote to standard error.
        errors: String,
    },
}

impl StudyError {
    /// Whether the user wants the study to end.
    pub(crate) fn is_interruption(&self) -> bool {
        matches!(
            self,
            StudyError::Build(workloads::build::Error::Interrupted)
                | StudyError::Guest(system::Error::Interrupted)
        )
    }
}

/// What was counted of a program.
#[derive(Clone, Debug)]
pub struct SystemProgramResult {
    /// The program.
    pub program: SystemProgram,
    /// The counts.
    pub counted: CountedScopes,
}

/// What was counted with a kernel and a program of given builds.
#[derive(Clone, Debug)]
pub struct BuildsResult {
    /// The program.
    pub program: SystemProgram,
    /// The names of the kernel's and the program's builds.
    pub builds: [&'static str; 2],
    /// The counts.
    pub counted: CountedScopes,
}

/// Everything that was found.
#[derive(Clone, Debug)]
pub struct SystemStudy {
    /// The programs, built for EV67 kernels and byte and word instructions.
    pub programs: Vec<SystemProgramResult>,
    /// The programs of [`BYTE_WORD_PROGRAMS`].
    pub builds: Vec<BuildsResult>,
    /// How the results were made.
    pub provenance: Vec<(String, String)>,
}

/// Builds, runs, records and counts. A program that fails is left out, and named among how the results were made.
///
/// # Errors
/// If no program could be measured, that of the first.
pub fn study(
    settings: &SystemStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<SystemStudy, StudyError> {
    let building = |step| progress(StudyProgress::Building(step));
    let mut study = SystemStudy { programs: Vec::new(), builds: Vec::new(), provenance: Vec::new() };
    let kernel = build_kernel(settings, None, &building)?;
    let mut failures = Vec::new();
    for program in &settings.programs {
        if let Err(error) = study.measure(program, settings, &kernel, progress) {
            if error.is_interruption() {
                return Err(error);
            }
            progress(StudyProgress::Doing(format!("left out: {error}")));
            failures.push(error);
        }
    }
    let left_out = failures.iter().map(|error| ("Left out".into(), error.to_string()));
    study.provenance.extend(left_out);
    match failures.into_iter().next() {
        Some(error) if study.programs.is_empty() => Err(error),
        _ => Ok(study),
    }
}

impl SystemStudy {
    /// Measures a program on a kernel, and in both builds on both kernels if it is one of [`BYTE_WORD_PROGRAMS`].
    fn measure(
        &mut self,
        program: &SystemProgram,
        settings: &SystemStudySettings,
        kernel: &GuestKernel,
        progress: &(dyn Fn(StudyProgress) + Sync),
    ) -> Result<(), StudyError> {
        let building = |step| progress(StudyProgress::Building(step));
        let has_both = settings.compares_builds && BYTE_WORD_PROGRAMS.contains(&program.name);
        let toolchains: &[Toolchain] =
            if has_both { &[NATIVE, BYTE_WORD, ORIGINAL] } else { &[NATIVE, BYTE_WORD] };
        let builds = build(&program.workload, toolchains, &settings.build, &building)?;
        let folder_of_program = ProgramFolder::prepare(program, &builds[0], settings)?;
        let doing = |what: String| progress(StudyProgress::Doing(format!("{}: {what}", program.name)));
        doing("running and recording".into());
        let counted = folder_of_program.count(kernel, &builds[1])?;
        self.programs.push(SystemProgramResult { program: *program, counted });
        if self.provenance.is_empty() {
            self.provenance = provenance(&builds[1], kernel);
        }
        let kernels: &[&'static Toolchain] = if has_both { &[&BYTE_WORD, &ORIGINAL] } else { &[] };
        for kernel_build in kernels {
            let kernel = build_kernel(settings, Some(kernel_build), &building)?;
            for of_program in &builds[1..] {
                let names = [kernel_build.name, of_program.name];
                doing(format!("kernel {}, program {}", names[0], names[1]));
                let counted = folder_of_program.count(&kernel, of_program)?;
                self.builds.push(BuildsResult { program: *program, builds: names, counted });
            }
        }
        Ok(())
    }
}

fn build_kernel(
    settings: &SystemStudySettings,
    toolchain: Option<&'static Toolchain>,
    progress: &(dyn Fn(BuildProgress) + Sync),
) -> Result<GuestKernel, StudyError> {
    let configuration = KernelConfiguration { toolchain, ..KernelConfiguration::default() };
    let quiet = |step: BuildProgress| {
        // A kernel that is there needs no message.
        if !matches!(step, BuildProgress::Done { .. }) {
            progress(step);
        }
    };
    Ok(kernel::build(&settings.build.folder, settings.build.sources.as_deref(), configuration, &quiet)?)
}

/// How the results were made.
fn provenance(build: &Build, kernel: &GuestKernel) -> Vec<(String, String)> {
    let kernel = kernel.image.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    [
        ("Command", "pathlength study system".to_string()),
        ("pathlength", env!("CARGO_PKG_VERSION").into()),
        ("Compiler", build.compiler.clone()),
        ("Kernel", format!("Debian's source package linux, build {kernel}")),
        ("Machine", "qemu-system-alpha, clipper, EV67, time counted in instructions".into()),
    ]
    .map(|(what, value)| (what.into(), value))
    .into()
}

/// Where the files of a program are.
struct ProgramFolder<'a> {
    program: &'a SystemProgram,
    settings: &'a SystemStudySettings,
    folder: PathBuf,
}

impl ProgramFolder<'_> {
    /// Makes the inputs, and what must be prepared.
    fn prepare<'a>(
        program: &'a SystemProgram,
        native: &Build,
        settings: &'a SystemStudySettings,
    ) -> Result<ProgramFolder<'a>, StudyError> {
        let failed =
            |error: io::Error| StudyError::Prepare { program: program.name, reason: error.to_string() };
        let folder = settings.build.folder.join("system-study").join(program.name);
        let folder = std::path::absolute(folder).map_err(failed)?;
        let folder_of_program = ProgramFolder { program, settings, folder };
        if folder_of_program.work().exists() {
            fs::remove_dir_all(folder_of_program.work()).map_err(failed)?;
        }
        fs::create_dir_all(folder_of_program.work()).map_err(failed)?;
        fs::create_dir_all(folder_of_program.inputs()).map_err(failed)?;
        for input in program.inputs {
            fs::write(folder_of_program.inputs().join(input.name), input.bytes()).map_err(failed)?;
        }
        let Some(script) = program.prepare else { return Ok(folder_of_program) };
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", script]).env("NATIVE", std::path::absolute(&native.folder).map_err(failed)?);
        shell
            .env("INPUTS", folder_of_program.inputs())
            .env("PREPARED", folder_of_program.prepared())
            .stdin(Stdio::null());
        shell.current_dir(folder_of_program.work());
        if program.refuses_root && rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(folder_of_program.work(), Some(NOBODY), Some(NOBODY)).map_err(failed)?;
            shell.uid(NOBODY).gid(NOBODY);
        }
        let output = shell.output().map_err(failed)?;
        if output.status.success() {
            return Ok(folder_of_program);
        }
        let text = String::from_utf8_lossy(&output.stderr).trim().to_string();
        Err(StudyError::Prepare { program: program.name, reason: text })
    }

    fn inputs(&self) -> PathBuf {
        self.folder.join("inputs")
    }

    /// The folder that is the guest's working directory, and on its disk if it has one.
    fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    fn prepared(&self) -> PathBuf {
        self.work().join("prepared")
    }

    fn replaced(&self, argument: &str) -> String {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        argument.replace("{inputs}", &text(self.inputs())).replace("{prepared}", &text(self.prepared()))
    }

    /// Runs a build of the program on a kernel, and counts it.
    fn count(&self, kernel: &GuestKernel, build: &Build) -> Result<CountedScopes, StudyError> {
        let program = self.program;
        let (input, words): (Vec<_>, Vec<_>) =
            program.arguments.iter().map(|word| self.replaced(word)).partition(|word| word.starts_with('<'));
        let in_place = |path: PathBuf| SharedFile { host: path.clone(), guest: path };
        let mut files: Vec<SharedFile> = vec![in_place(self.inputs())];
        files.extend(self.prepared().exists().then(|| in_place(self.prepared())));
        // The program looks for them beside itself.
        let build_folder = std::path::absolute(&build.folder).map_err(system::Error::Files)?;
        let beside = ["share", "lib"].map(|name| build_folder.join(name));
        files.extend(beside.into_iter().filter(|path| path.exists()).map(in_place));
        let setup = GuestSetup {
            hardware: GuestHardware {
                memory: MEMORY,
                processors: 1,
                disk: if program.is_on_disk { DISK } else { 0 },
                network: None,
            },
            disk: program.is_on_disk.then(|| self.work()),
            sysroot: self.settings.sysroot.clone(),
            environment: vec!["LC_ALL=C".into()],
            background: Vec::new(),
            awaited: Vec::new(),
            user: if program.refuses_root { NOBODY } else { 0 },
            input: input.first().map(|word| PathBuf::from(&word[1..])),
            files,
            outputs: Vec::new(),
            folder: self.work(),
        };
        let unit = program.unit.map(|unit| UnitPlan {
            function: unit.function.into(),
            skip: unit.skip,
            units: Some(unit.units),
        });
        let plan = Plan { unit, ..Plan::default() };
        let path = std::path::absolute(&build.program).map_err(system::Error::Files)?;
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let guest = PreparedGuest::new::<StudyError>(&setup, (&path, &words), || Ok(kernel.clone()))?;
        guest.check_names(&plan)?;
        let folder = temporary_folder("trace").map_err(system::Error::Files)?;
        let trace = folder.path().join("system.trace");
        let (result, converted) = guest.trace(&plan, &trace, &mut |_, _| {})?;
        if result.status != 0 {
            let errors = String::from_utf8_lossy(&result.errors).trim().to_string();
            return Err(StudyError::Program { program: program.name.into(), status: result.status, errors });
        }
        let recorded = |unit: RecordedUnits| unit.units.min(converted.units.saturating_sub(unit.skip));
        measure::count(&trace, &path, program.unit.map_or(1, recorded))
    }
}
