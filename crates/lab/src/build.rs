//! Builds workloads: the same sources, once for each toolchain, kept until something changes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use sha2::{Digest, Sha256};

use crate::source::{self, SourceFile};
use crate::toolchain::{COMMON_FLAGS, Toolchain};
use crate::workload::{Target, Workload};

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
    /// The compiler's first line about itself.
    pub compiler: String,
}

/// Where the pieces of a build come from and go to.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The folder that keeps builds, `build` by convention.
    pub folder: PathBuf,
    /// Where sources that are not part of this crate are, if not in Cargo's registry.
    pub sources: Option<PathBuf>,
}

/// What a build is doing, for people who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// An image of a build is being compiled.
    Compiling {
        /// The build.
        build: &'static str,
        /// The image.
        image: &'static str,
    },
    /// A build is complete.
    Done {
        /// The build.
        build: &'static str,
    },
}

/// Why there is no build.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The compiler is not installed.
    #[error("there is no compiler {compiler}: install it, on Debian with `apt-get install {package}`")]
    NoCompiler {
        /// Its command.
        compiler: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// The compiler did not accept its input, or could not write its output.
    #[error("the compiler failed: {command}\n{output}")]
    Compiler {
        /// What was run.
        command: String,
        /// What it said.
        output: String,
    },
    /// Cargo could not name the folder of a package.
    #[error(
        "cannot find the sources of {package} ({reason}): run `cargo fetch`, or get {home} and name its folder"
    )]
    NoPackage {
        /// The package.
        package: String,
        /// Where else to get it.
        home: &'static str,
        /// What went wrong.
        reason: String,
    },
    /// A source file could not be read.
    #[error("cannot read the source {}: {error}; it is part of {home}", .path.display())]
    NoSource {
        /// The file.
        path: PathBuf,
        /// Where to get it.
        home: &'static str,
        /// What went wrong.
        error: io::Error,
    },
    /// Anything else with files, a full disk among it.
    #[error("{doing} {}: {error}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What went wrong.
        error: io::Error,
    },
}

/// Builds the workload with each of the toolchains, in parallel, or finds the builds made earlier.
///
/// A build lies in `FOLDER/WORKLOAD/TOOLCHAIN-HASH`, with the hash taken over all it was made from.
/// It is made elsewhere and moved there when complete, so an interrupted one is never mistaken for
/// a build.
///
/// ```no_run
/// use pathlength_lab::build::{BuildOptions, build};
/// use pathlength_lab::toolchain::{BYTE_WORD, ORIGINAL};
/// use pathlength_lab::workload::Workload;
/// let options = BuildOptions { folder: "build".into(), sources: None };
/// let workload = Workload::named("tpcb").unwrap();
/// let builds = build(workload, &[ORIGINAL, BYTE_WORD], &options, &|progress| eprintln!("{progress:?}"))?;
/// println!("{}", builds[0].program.display());
/// # Ok::<(), pathlength_lab::build::Error>(())
/// ```
pub fn build(
    workload: &Workload,
    toolchains: &[Toolchain],
    options: &BuildOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<Build>, Error> {
    let sources = &source::read(workload, options.sources.as_deref())?;
    thread::scope(|scope| {
        let running: Vec<_> = toolchains
            .iter()
            .map(|toolchain| scope.spawn(|| build_one(workload, *toolchain, sources, options, progress)))
            .collect();
        // Every thread is joined before the first error is returned.
        let results: Vec<_> = running.into_iter().map(|thread| thread.join()).collect();
        results
            .into_iter()
            .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn build_one(
    workload: &Workload,
    toolchain: Toolchain,
    sources: &[SourceFile],
    options: &BuildOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Build, Error> {
    let compiler = toolchain.version()?;
    let commands: Vec<_> = workload.targets.iter().map(|target| arguments(toolchain, target)).collect();
    let parent = options.folder.join(workload.name);
    let folder = parent.join(format!("{}-{}", toolchain.name, hash(sources, &compiler, &commands)));
    if !folder.is_dir() {
        fs::create_dir_all(&parent).map_err(io_error("creating", &parent))?;
        let unfinished = tempfile::Builder::new()
            .prefix(".unfinished-")
            .tempdir_in(&parent)
            .map_err(io_error("creating a folder in", &parent))?;
        for file in sources {
            let path = unfinished.path().join(&file.name);
            fs::write(&path, &file.contents).map_err(io_error("writing", &path))?;
        }
        for (target, arguments) in workload.targets.iter().zip(&commands) {
            progress(Progress::Compiling { build: toolchain.name, image: target.image });
            compile(toolchain, unfinished.path(), arguments)?;
        }
        publish(unfinished, &folder)?;
    }
    progress(Progress::Done { build: toolchain.name });
    Ok(Build {
        name: toolchain.name,
        flags: toolchain.flags,
        images: workload.targets.iter().map(|target| folder.join(target.image)).collect(),
        program: folder.join(workload.program),
        commands: commands.iter().map(|arguments| shell_command(toolchain, arguments)).collect(),
        compiler,
    })
}

/// Stands for the folder of the build, where the shell puts it.
const HERE: &str = "$PWD";

fn arguments(toolchain: Toolchain, target: &Target) -> Vec<String> {
    // Without the folder's name in the debug information, the same build has the same bytes.
    let map = format!("-ffile-prefix-map={HERE}=.");
    [
        toolchain.flags,
        COMMON_FLAGS,
        &[&map],
        target.flags,
        &["-o", target.image, target.source],
        target.libraries,
    ]
    .concat()
    .into_iter()
    .map(str::to_owned)
    .collect()
}

fn hash(sources: &[SourceFile], compiler: &str, commands: &[Vec<String>]) -> String {
    let mut digest = Sha256::new();
    let mut add = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    add(compiler.as_bytes());
    commands.iter().flatten().for_each(|argument| add(argument.as_bytes()));
    for file in sources {
        add(file.name.as_bytes());
        add(&file.contents);
    }
    digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

fn compile(toolchain: Toolchain, folder: &Path, arguments: &[String]) -> Result<(), Error> {
    let here = folder.canonicalize().map_err(io_error("entering", folder))?;
    let here = here.to_string_lossy();
    let output = toolchain.execute(folder, arguments.iter().map(|argument| argument.replace(HERE, &here)))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Compiler {
        command: shell_command(toolchain, arguments),
        output: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
    })
}

fn shell_command(toolchain: Toolchain, arguments: &[String]) -> String {
    let mut command = toolchain.compiler.to_owned();
    for argument in arguments {
        command.push(' ');
        match argument {
            here if here.contains(HERE) => command.push_str(&format!("\"{here}\"")),
            other if other.contains('$') => command.push_str(&format!("'{other}'")),
            plain => command.push_str(plain),
        }
    }
    command
}

/// Moves a complete build to its place. If another process was faster, its build is as good.
fn publish(unfinished: tempfile::TempDir, folder: &Path) -> Result<(), Error> {
    match fs::rename(unfinished.path(), folder) {
        Ok(()) => {
            let _moved = unfinished.keep();
            Ok(())
        }
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) => Err(io_error("creating", folder)(error)),
    }
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    move |error| Error::Io { doing, path, error }
}
