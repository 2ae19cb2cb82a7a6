//! Builds workloads: the same sources, once for each toolchain, kept until something changes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;

use sha2::{Digest, Sha256};

pub use crate::build_options::{BuildFolders, BuildProgress, Error, io_error, publish, unfinished};
use crate::interrupt::Caught;
use crate::source::{self, SourceFile};
use crate::steps::{BuildStep, is_installed};
use crate::toolchain::{COMMON_FLAGS, Toolchain};
use crate::workload::{BuildTarget, Recipe, Workload};

/// The images of a workload, compiled with one set of switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The toolchain's name: `original`, `byte-word` or `native`.
    pub name: &'static str,
    /// The switches that make this build differ from others.
    pub flags: &'static [&'static str],
    /// The images, in the workload's order.
    pub images: Vec<PathBuf>,
    /// The image that is run, one of `images`.
    pub program: PathBuf,
    /// The commands that made it, for a shell in the folder of the images; the sources are there.
    pub commands: Vec<String>,
    /// The names of those sources' files, versions among them where they have any.
    pub sources: Vec<String>,
    /// The compiler's first line about itself.
    pub compiler: String,
    /// Where all of it is.
    pub folder: PathBuf,
}

/// Builds the workload with each of the toolchains, in parallel, or finds the builds made earlier.
///
/// A build lies in `FOLDER/WORKLOAD/TOOLCHAIN-HASH`, with the hash taken over all it was made from.
/// It is made elsewhere and moved there when complete, so an interrupted one is never mistaken for
/// a build. Images that several workloads have are compiled once, in `FOLDER/shared`.
///
/// ```no_run
/// use pathlength_lab::build::{BuildFolders, build};
/// use pathlength_lab::toolchain::{BYTE_WORD, ORIGINAL};
/// use pathlength_lab::workload::Workload;
/// let options = BuildFolders { folder: "build".into(), sources: None };
/// let workload = Workload::named("tpcb").unwrap();
/// let builds = build(workload, &[ORIGINAL, BYTE_WORD], &options, &|progress| eprintln!("{progress:?}"))?;
/// println!("{}", builds[0].program.display());
/// # Ok::<(), pathlength_lab::build::Error>(())
/// ```
pub fn build(
    workload: &Workload,
    toolchains: &[Toolchain],
    options: &BuildFolders,
    progress: &(dyn Fn(BuildProgress) + Sync),
) -> Result<Vec<Build>, Error> {
    build_from(workload, toolchains, options, Vec::new(), progress)
}

/// As [`build`], with more files beside the sources, in the folders that their names say.
pub(crate) fn build_from(
    workload: &Workload,
    toolchains: &[Toolchain],
    options: &BuildFolders,
    more: Vec<SourceFile>,
    progress: &(dyn Fn(BuildProgress) + Sync),
) -> Result<Vec<Build>, Error> {
    let plans = toolchains.iter().map(|&toolchain| Plan::new(workload, toolchain));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    let interrupt = &Caught::new();
    let mut sources = source::read(workload, options, progress).map_err(|error| interrupt.or(error))?;
    sources.extend(more);
    let sources = &sources;
    let site = &Site { folder: &options.folder, progress, interrupt };
    thread::scope(|scope| {
        let running: Vec<_> =
            plans.into_iter().map(|plan| scope.spawn(|| build_one(workload, plan, sources, site))).collect();
        // Every thread is joined before the first error is returned.
        let results: Vec<_> = running.into_iter().map(|thread| thread.join()).collect();
        results
            .into_iter()
            .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Where builds are made, and who follows them.
struct Site<'a> {
    folder: &'a Path,
    progress: &'a (dyn Fn(BuildProgress) + Sync),
    interrupt: &'a Caught,
}

/// The prerequisites of a build, checked before sources are fetched.
struct Plan {
    toolchain: Toolchain,
    compiler: String,
    steps: Vec<BuildStep>,
}

impl Plan {
    fn new(workload: &Workload, toolchain: Toolchain) -> Result<Plan, Error> {
        Ok(Plan { toolchain, compiler: toolchain.version()?, steps: steps(workload, toolchain)? })
    }

    /// Makes a build in a folder of builds, or finds it there. Returns its own folder.
    fn carry_out(&self, parent: &Path, sources: &[SourceFile], site: &Site) -> Result<PathBuf, Error> {
        let name = format!("{}-{}", self.toolchain.name, hash(sources, &self.compiler, &self.steps));
        let folder = parent.join(&name);
        if folder.is_dir() {
            return Ok(folder);
        }
        fs::create_dir_all(parent).map_err(io_error("creating", parent))?;
        let unfinished = unfinished(parent)?;
        for file in sources {
            let path = unfinished.path().join(&file.name);
            let parent = path.parent().unwrap_or(&path);
            fs::create_dir_all(parent).map_err(io_error("creating", parent))?;
            fs::write(&path, &file.contents).map_err(io_error("writing", &path))?;
        }
        for step in &self.steps {
            site.interrupt.check()?;
            if let Some(files) = step.shared {
                let image = self.shared_image(step, files, sources, site)?;
                let copy = unfinished.path().join(step.what);
                fs::copy(&image, &copy).map_err(io_error("copying", &image))?;
                continue;
            }
            (site.progress)(BuildProgress::Step {
                build: self.toolchain.name,
                doing: step.doing,
                what: step.what,
            });
            step.carry_out(unfinished.path(), site.interrupt)?;
        }
        publish(unfinished, &folder)?;
        Ok(folder)
    }

    /// The image of a step that other workloads have, too: a build of its own, of these source files.
    fn shared_image(
        &self,
        step: &BuildStep,
        files: &[&str],
        sources: &[SourceFile],
        site: &Site,
    ) -> Result<PathBuf, Error> {
        let parent = site.folder.join("shared");
        fs::create_dir_all(&parent).map_err(io_error("creating", &parent))?;
        let steps = vec![BuildStep { shared: None, ..step.clone() }];
        let plan = Plan { steps, compiler: self.compiler.clone(), ..*self };
        let sources: Vec<_> =
            sources.iter().filter(|file| files.contains(&file.name.as_str())).cloned().collect();
        // Another build that needs the image meanwhile waits for this one's.
        let lock = parent.join(format!(".{}-{}.lock", self.toolchain.name, step.what));
        let waited = File::create(&lock).and_then(|file| file.lock().map(|()| file));
        let _lock = waited.map_err(io_error("locking", &lock)).map_err(|error| site.interrupt.or(error))?;
        let folder = plan.carry_out(&parent, &sources, site)?;
        Ok(folder.join(step.what))
    }
}

fn build_one(workload: &Workload, plan: Plan, sources: &[SourceFile], site: &Site) -> Result<Build, Error> {
    let folder = plan.carry_out(&site.folder.join(workload.name), sources, site)?;
    let Plan { toolchain, compiler, steps } = plan;
    (site.progress)(BuildProgress::Done { build: toolchain.name });
    Ok(Build {
        name: toolchain.name,
        flags: toolchain.flags,
        images: workload.recipe.images().iter().map(|image| folder.join(image)).collect(),
        program: folder.join(workload.program),
        commands: steps.into_iter().map(|step| step.command).collect(),
        sources: sources.iter().map(|file| file.name.clone()).collect(),
        compiler,
        folder,
    })
}

fn steps(workload: &Workload, toolchain: Toolchain) -> Result<Vec<BuildStep>, Error> {
    match workload.recipe {
        Recipe::Compile(targets) => Ok(targets.iter().map(|target| compilation(toolchain, target)).collect()),
        Recipe::Script(script) => {
            let missing = script.tools.iter().find(|(tool, _)| !is_installed(tool));
            if let Some(&(tool, package)) = missing {
                return Err(Error::NoTool { tool, package });
            }
            let flags = [toolchain.flags, COMMON_FLAGS].concat().join(" ");
            let command = |text: &str| {
                text.replace("{compiler}", toolchain.compiler)
                    .replace("{flags}", &flags)
                    .replace("{make}", toolchain.make)
            };
            let steps = script.steps.iter();
            Ok(steps
                .map(|(doing, text)| BuildStep {
                    doing,
                    what: workload.title,
                    command: command(text),
                    shared: None,
                })
                .collect())
        }
    }
}

fn compilation(toolchain: Toolchain, target: &BuildTarget) -> BuildStep {
    let arguments = [
        &[toolchain.compiler],
        toolchain.flags,
        COMMON_FLAGS,
        // Without the folder's name in the debug information, the same build has the same bytes.
        &["\"-ffile-prefix-map=$PWD=.\""],
        target.flags,
        &["-o", target.image],
        target.sources,
        target.libraries,
    ];
    let quoted = |argument: &&str| match argument.contains('$') && !argument.starts_with('"') {
        true => format!("'{argument}'"),
        false => (*argument).to_owned(),
    };
    let command = arguments.concat().iter().map(quoted).collect::<Vec<_>>().join(" ");
    let shared = target.is_shared.then_some(target.sources);
    BuildStep { doing: "compiling", what: target.image, command, shared }
}

fn hash(sources: &[SourceFile], compiler: &str, steps: &[BuildStep]) -> String {
    let mut digest = Sha256::new();
    let mut add = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    add(compiler.as_bytes());
    steps.iter().for_each(|step| add(step.command.as_bytes()));
    for file in sources {
        add(file.name.as_bytes());
        add(&file.contents);
    }
    digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
