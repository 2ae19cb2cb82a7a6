//! Builds workloads: the same sources, once for each toolchain, kept until something changes.

use std::fs;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use sha2::{Digest, Sha256};

pub use crate::build_options::{BuildFolders, BuildProgress, Error};
use crate::build_options::{io_error, publish, unfinished};
use crate::interrupt::Caught;
use crate::source::{self, SourceFile};
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
/// a build.
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
    let plans = toolchains.iter().map(|&toolchain| Plan::new(workload, toolchain));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    let interrupt = &Caught::new();
    let sources = &source::read(workload, options, progress).map_err(|error| interrupt.or(error))?;
    thread::scope(|scope| {
        let running: Vec<_> = plans
            .into_iter()
            .map(|plan| scope.spawn(|| build_one(workload, plan, sources, options, progress, interrupt)))
            .collect();
        // Every thread is joined before the first error is returned.
        let results: Vec<_> = running.into_iter().map(|thread| thread.join()).collect();
        results
            .into_iter()
            .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// The prerequisites of a build, checked before sources are fetched.
struct Plan {
    toolchain: Toolchain,
    compiler: String,
    steps: Vec<Step>,
}

impl Plan {
    fn new(workload: &Workload, toolchain: Toolchain) -> Result<Plan, Error> {
        Ok(Plan { toolchain, compiler: toolchain.version()?, steps: steps(workload, toolchain)? })
    }
}

fn build_one(
    workload: &Workload,
    plan: Plan,
    sources: &[SourceFile],
    options: &BuildFolders,
    progress: &(dyn Fn(BuildProgress) + Sync),
    interrupt: &Caught,
) -> Result<Build, Error> {
    let Plan { toolchain, compiler, steps } = plan;
    let parent = options.folder.join(workload.name);
    let folder = parent.join(format!("{}-{}", toolchain.name, hash(sources, &compiler, &steps)));
    if !folder.is_dir() {
        fs::create_dir_all(&parent).map_err(io_error("creating", &parent))?;
        let unfinished = unfinished(&parent)?;
        for file in sources {
            let path = unfinished.path().join(&file.name);
            fs::write(&path, &file.contents).map_err(io_error("writing", &path))?;
        }
        for step in &steps {
            interrupt.check()?;
            progress(BuildProgress::Step { build: toolchain.name, doing: step.doing, what: step.what });
            step.carry_out(unfinished.path(), interrupt)?;
        }
        publish(unfinished, &folder)?;
    }
    progress(BuildProgress::Done { build: toolchain.name });
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

/// A command of a build, for the shell.
struct Step {
    doing: &'static str,
    what: &'static str,
    command: String,
}

fn steps(workload: &Workload, toolchain: Toolchain) -> Result<Vec<Step>, Error> {
    match workload.recipe {
        Recipe::Compile(targets) => Ok(targets.iter().map(|target| compilation(toolchain, target)).collect()),
        Recipe::Script(script) => {
            let missing = script.tools.iter().find(|(tool, _)| !is_installed(tool));
            if let Some(&(tool, package)) = missing {
                return Err(Error::NoTool { tool, package });
            }
            let flags = [toolchain.flags, COMMON_FLAGS].concat().join(" ");
            let command =
                |text: &str| text.replace("{compiler}", toolchain.compiler).replace("{flags}", &flags);
            let steps = script.steps.iter();
            Ok(steps
                .map(|(doing, text)| Step { doing, what: workload.title, command: command(text) })
                .collect())
        }
    }
}

fn compilation(toolchain: Toolchain, target: &BuildTarget) -> Step {
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
    Step { doing: "compiling", what: target.image, command }
}

/// A shell that also finds administrators' commands (zic), and whose programs print
/// English messages.
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    shell.args(["-e", "-c", command]).env("PATH", path).env("LC_ALL", "C");
    shell.env("MAKEFLAGS", format!("-j{jobs}")).env_remove("MAKELEVEL");
    shell.stdin(Stdio::null()).stdout(Stdio::null());
    shell
}

fn is_installed(tool: &str) -> bool {
    shell(&format!("command -v {tool}")).status().is_ok_and(|status| status.success())
}

impl Step {
    fn carry_out(&self, folder: &Path, interrupt: &Caught) -> Result<(), Error> {
        const LINES_SHOWN: usize = 40;
        let run = || {
            let mut output = tempfile::tempfile()?;
            // Temporary files of a compiler that is ended go with the folder.
            let mut shell = shell(&self.command);
            shell.current_dir(folder).env("TMPDIR", folder.canonicalize()?);
            let mut child = shell.process_group(0).stderr(output.try_clone()?).spawn()?;
            let status = interrupt.wait(&mut child)?;
            let mut text = Vec::new();
            output.rewind()?;
            output.read_to_end(&mut text)?;
            Ok((status, text))
        };
        let (status, output) = run().map_err(io_error("running", Path::new("sh")))?;
        interrupt.check()?;
        if status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output);
        let lines: Vec<_> = text.trim_end().lines().collect();
        let shown = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
        Err(Error::Command { command: self.command.clone(), output: shown.join("\n") })
    }
}

fn hash(sources: &[SourceFile], compiler: &str, steps: &[Step]) -> String {
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
