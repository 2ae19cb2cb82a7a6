//! Trains a program, makes its variants, and measures each on the machines.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use engine::{Configuration, Plan, Process};
use machine::{Caches, Machine, TimingModel};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use session::measure::Ending;
use session::{edges, forked_run, live};
use spike::layout::LayoutSteps;
use spike::optimize::{self, Optimized, Options};
use spike::profile::{EdgeCounts, IndirectCall};
use spike::program::Program;
use workloads::build::Build;
use workloads::feedback;

use super::{SpikeStudyError as Error, programs::StudyProgram};
use crate::database::check_success;
use crate::environment::repeatable;
use crate::models::Models;

/// A variant of a program: what is optimized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name in tables.
    pub name: &'static str,
    /// How it is optimized; the original is not.
    pub options: Option<Options>,
}

const LAYOUT: Options =
    Options { layout: LayoutSteps::ALL, strip_nops: true, linkage: false, hot_cold: false, inlining: false };

const fn steps(chain: bool, split: bool, order: bool) -> Option<Options> {
    Some(Options { layout: LayoutSteps { chain, split, order, ..LayoutSteps::NONE }, ..LAYOUT })
}

/// The original, and one optimization after another.
pub const VARIANTS: [Variant; 5] = [
    Variant { name: "original", options: None },
    Variant { name: "layout", options: Some(LAYOUT) },
    Variant { name: "and hot-cold", options: Some(Options { hot_cold: true, ..LAYOUT }) },
    Variant { name: "and linkage", options: Some(Options { hot_cold: true, linkage: true, ..LAYOUT }) },
    Variant {
        name: "and inlining",
        options: Some(Options { hot_cold: true, linkage: true, inlining: true, ..LAYOUT }),
    },
];

/// The number of the variant with hot-cold optimization and nothing after it.
pub const HOT_COLD: usize = 2;

/// LayoutSteps of the layout alone (the paper's Figure 10); all of them are a variant above.
pub const LAYOUTS: [Variant; 3] = [
    Variant { name: "chain blocks", options: steps(true, false, false) },
    Variant { name: "place procedures", options: steps(false, false, true) },
    Variant { name: "split, then place", options: steps(false, true, true) },
];

/// What is beside Spike: the compiler's own profile feedback, with the same training; and Spike on top of it.
pub const FEEDBACK: [Variant; 2] = [
    Variant { name: "GCC", options: None },
    Variant { name: "GCC and Spike", options: VARIANTS[VARIANTS.len() - 1].options },
];

/// How many images are measured.
const COUNT: usize = VARIANTS.len() + LAYOUTS.len() + FEEDBACK.len();

/// The machine of the paper's Figure 10, and those that every variant is measured on.
pub const FIGURE_10: &str = "dec3000";
/// The machines: two of the paper's time and a present-day one.
pub const MACHINES: [&str; 3] = ["dec3000", "alphastation500", "present-day"];

/// Instruction caches by themselves: the paper's, and the 21264's.
pub const CACHES: [(&str, &str); 2] = [
    ("8 KB direct-mapped", include_str!("caches/8k.toml")),
    ("64 KB two-way", include_str!("caches/64k.toml")),
];

/// What a variant did on its test input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VariantResult {
    /// Instructions that were executed, of the program and its libraries.
    pub instructions: u64,
    /// Misses of the instruction caches [`CACHES`].
    pub misses: Vec<u64>,
    /// Cycles on the machines, in their order.
    pub cycles: Vec<u64>,
}

/// A program's profile, variants and measurements.
pub struct SpikeProgramResult {
    /// The program.
    pub program: StudyProgram,
    /// Its build.
    pub build: Build,
    /// What each of [`VARIANTS`] did.
    pub variants: Vec<VariantResult>,
    /// What each of [`FEEDBACK`] did.
    pub feedback: Vec<VariantResult>,
    /// The build with the compiler's feedback.
    pub feedback_build: Build,
    /// Cycles of each of [`LAYOUTS`] on the machine of [`FIGURE_10`].
    pub layouts: Vec<u64>,
    /// The program with the profile of its training, before any optimization.
    pub profiled: Program,
    /// What hot-cold optimization alone made of it.
    pub hot_cold: Optimized,
}

/// What a run wrote: the bytes of its standard output and of each file that it made.
pub type Written = BTreeMap<String, Vec<u8>>;
const STANDARD_OUTPUT: &str = "standard output";

/// Where a program runs.
pub struct StudyFolder<'a> {
    /// The program.
    pub program: &'a StudyProgram,
    /// The folder of its inputs.
    pub inputs: PathBuf,
    /// The folder of its variants, and of what runs make.
    pub runs: PathBuf,
    /// The C library.
    pub sysroot: &'a Path,
}

impl StudyFolder<'_> {
    /// Makes the inputs.
    pub fn make_inputs(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.inputs).map_err(Error::files(&self.inputs))?;
        for input in self.program.inputs {
            let path = self.inputs.join(input.name);
            fs::write(&path, input.bytes()).map_err(Error::files(&path))?;
        }
        Ok(())
    }

    /// Makes what each run gets a copy of.
    pub fn prepare(&self, script: &str, native: &Path) -> Result<(), Error> {
        let failed = |reason| Error::Run { program: self.program.workload.name, run: "preparation", reason };
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", script]).env("NATIVE", native).env("INPUTS", &self.inputs);
        shell.env("PREPARED", self.prepared()).stdin(Stdio::null());
        let output = shell.output().map_err(|error| failed(error.to_string()))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().into())),
        }
    }

    /// A folder for the files that a run makes: empty but for a copy of what was prepared, and of the same name for each run,
    /// so that all see the same paths.
    fn make_work(&self) -> Result<PathBuf, Error> {
        let work = self.work();
        if work.exists() {
            fs::remove_dir_all(&work).map_err(Error::files(&work))?;
        }
        fs::create_dir_all(&work).map_err(Error::files(&work))?;
        let prepared = self.prepared();
        if prepared.exists() {
            let copied = Command::new("cp").arg("-a").arg(&prepared).arg(&work).status();
            if !copied.map_err(Error::files(&work))?.success() {
                return Err(Error::files(&work)(io::Error::other("the prepared files could not be copied")));
            }
        }
        Ok(work)
    }

    fn work(&self) -> PathBuf {
        self.runs.join("work")
    }

    /// What is prepared for all runs.
    fn prepared(&self) -> PathBuf {
        self.inputs.join("prepared")
    }

    /// Puts the folders of a build beside the variants that look for them there.
    pub fn link_folders(&self, build: &Path) -> Result<(), Error> {
        for (name, number) in
            self.program.beside.iter().flat_map(|name| (0..COUNT).map(move |number| (name, number)))
        {
            let folder = self.variant(number);
            fs::create_dir_all(&folder).map_err(Error::files(&folder))?;
            let (target, link) = (build.join(name), folder.join(name));
            // One of an earlier study may lead to an older build.
            let _ = fs::remove_file(&link);
            let target = fs::canonicalize(&target).map_err(Error::files(&target))?;
            symlink(target, &link).map_err(Error::files(&link))?;
        }
        Ok(())
    }

    /// The folder of a variant.
    fn variant(&self, number: usize) -> PathBuf {
        self.runs.join(format!("variant-{number}"))
    }

    /// An argument with the names of files and folders in place.
    fn replaced(&self, argument: &str) -> String {
        let text = |path: &Path| path.display().to_string();
        argument
            .replace("{inputs}", &text(&self.inputs))
            .replace("{work}", &text(&self.work()))
            .replace("{prepared}", &text(&self.work().join("prepared")))
    }

    fn configuration(&self, image: PathBuf, arguments: &[&str]) -> Configuration {
        let arguments = arguments.iter().filter(|one| !one.starts_with('<'));
        let arguments = arguments.map(|one| self.replaced(one).into()).collect();
        // Not ev4's: a machine without byte and word instructions is studied as if it had them.
        repeatable(image, arguments, isa::CpuModel::Ev56, self.sysroot)
    }

    /// Counts blocks and edges of the training run.
    pub fn train(&self, image: &Path) -> Result<Trained<'_>, Error> {
        let count = |configuration: &Configuration| {
            let counted = edges::count(configuration, false).map_err(|error| error.to_string())?;
            Ok((counted.counts, counted.ending))
        };
        let (counts, _) = self.run("training", image.into(), self.program.training, count)?;
        Ok(Trained { folders: self, image: image.into(), counts })
    }

    /// Runs a build that counts for the compiler on the training input. The profile is written to a folder.
    pub fn train_compiler(&self, build: &Build, profile: &Path) -> Result<(), Error> {
        let run = |configuration: &Configuration| {
            let configuration =
                feedback::training(configuration, build, profile).map_err(|error| error.to_string())?;
            let mut process = Process::new(&configuration).map_err(|error| error.to_string())?;
            let end = session::measure::run(&mut process, &mut (), &configuration);
            let end = end.map_err(|error| error.to_string())?;
            Ok(((), Ending::new(end, &process.images)))
        };
        let image = build.program.clone();
        self.run("training of the compiler", image, self.program.training, run)?;
        Ok(())
    }

    /// Runs an image, and returns what was measured and what it wrote.
    fn run<T: Serialize + DeserializeOwned>(
        &self,
        name: &'static str,
        image: PathBuf,
        arguments: &[&str],
        measure: impl Fn(&Configuration) -> Result<(T, Ending), String>,
    ) -> Result<(T, Written), Error> {
        let failed = |reason: String| Error::Run { program: self.program.workload.name, run: name, reason };
        let configuration = self.configuration(image, arguments);
        let work = self.make_work()?;
        let input = arguments.iter().find_map(|one| one.strip_prefix('<')).map(|one| self.replaced(one));
        let input = input.unwrap_or_else(|| "/dev/null".into());
        let run = |_: &mut (dyn FnMut(()) + Send)| measure(&configuration);
        let running =
            forked_run::start_reading(Path::new(&input), run).map_err(|error| failed(error.to_string()))?;
        let ended = running.wait_for_bytes(&mut |()| {});
        let ((measured, ending), output) = ended.map_err(|error| failed(error.to_string()))?;
        check_success(&ending, &String::from_utf8_lossy(&output)).map_err(failed)?;
        let mut written = Written::from([(STANDARD_OUTPUT.into(), output)]);
        for file in fs::read_dir(&work).map_err(Error::files(&work))? {
            let path = file.map_err(Error::files(&work))?.path();
            // A folder of a server has its log, whose time differs: what it answers is compared.
            if path.is_dir() {
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            written.insert(name, fs::read(&path).map_err(Error::files(&path))?);
        }
        Ok((measured, written))
    }

    /// Writes an optimized image. All have paths of the same length.
    pub fn write(&self, number: usize, bytes: &[u8]) -> Result<PathBuf, Error> {
        let path = self.variant(number).join(self.program.workload.program);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).map_err(Error::files(folder))?;
        fs::write(&path, bytes)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
            .map_err(Error::files(&path))?;
        Ok(path)
    }

    /// Runs the test. Returns what it did, and what it wrote.
    pub fn test(
        &self,
        image: PathBuf,
        variant: &'static str,
        machines: &[&str],
    ) -> Result<(VariantResult, Written), Error> {
        self.run(variant, image, self.program.test, |configuration| measure(configuration, machines))
    }
}

fn measure(configuration: &Configuration, machines: &[&str]) -> Result<(VariantResult, Ending), String> {
    let caches = CACHES.iter().map(|(_, text)| Machine::from_toml(text).map(|machine| Caches::new(&machine)));
    let caches = caches.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let times = machines.iter().map(|name| {
        let mut machine = Machine::find(name).map_err(|error| error.to_string())?;
        machine.emulation = None;
        TimingModel::new(&machine).map_err(|error| error.to_string())
    });
    let models = Models { caches, times: times.collect::<Result<_, _>>()? };
    let live =
        live::run(configuration, &Plan::default(), models, false).map_err(|error| error.to_string())?;
    let Models { caches, times } = live.model;
    let misses = caches.iter().map(|one| one.structures()[0].misses).collect();
    let cycles = times.iter().map(|one| one.cycles().total()).collect();
    let instructions = caches.first().map_or(0, Caches::instructions);
    Ok((VariantResult { instructions, misses, cycles }, live.ending))
}

/// A program with its profile.
pub struct Trained<'a> {
    /// Where it runs.
    pub folders: &'a StudyFolder<'a>,
    /// Its image.
    pub image: PathBuf,
    /// What its training counted.
    pub counts: EdgeCounts,
}

impl Trained<'_> {
    /// The image with the counts of the training.
    pub fn profiled(&self) -> Result<(Program, Vec<IndirectCall>), spike::Error> {
        let mut program = optimize::open(&self.image)?;
        let calls = self.counts.apply(&mut program, &self.image);
        Ok((program, calls))
    }

    /// Optimizes it.
    pub fn optimize(&self, options: Options) -> Result<Optimized, spike::Error> {
        let (program, calls) = self.profiled()?;
        let unsuitable = |problem| spike::Error::Unsuitable { path: self.image.clone(), problem };
        optimize::optimize(program, &calls, options).map_err(unsuitable)
    }

    /// Makes a variant and runs the test with it, which must write what the first variant wrote.
    pub fn measure(
        &self,
        number: usize,
        variant: &Variant,
        machines: &[&str],
        expected: &mut Option<Written>,
    ) -> Result<VariantResult, Error> {
        let bytes = match variant.options {
            Some(options) => self.optimize(options)?.bytes,
            None => fs::read(&self.image).map_err(Error::files(&self.image))?,
        };
        let image = self.folders.write(number, &bytes)?;
        let (measured, written) = self.folders.test(image, variant.name, machines)?;
        match difference(expected.get_or_insert_with(|| written.clone()), &written) {
            None => Ok(measured),
            Some(what) => Err(Error::Output {
                program: self.folders.program.workload.name,
                variant: variant.name,
                what,
                folder: self.folders.runs.clone(),
            }),
        }
    }
}

/// The first output or file of which there are two versions.
fn difference(expected: &Written, written: &Written) -> Option<String> {
    let names = expected.keys().chain(written.keys());
    names.into_iter().find(|name| expected.get(*name) != written.get(*name)).cloned()
}
