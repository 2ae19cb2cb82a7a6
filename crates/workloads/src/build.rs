//! Builds workloads: the same sources, once for each toolchain, kept until something changes.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;

use host::interrupt::InterruptGuard;
use sha2::{Digest, Sha256};

pub use crate::build_options::{BuildFolders, BuildProgress, Error, check_interrupted, io_error};
use crate::build_options::{publish, unfinished};
use crate::source::{self, SourceFile};
use crate::steps::{BuildStep, is_installed};
use crate::toolchain::{COMMON_FLAGS, Toolchain};
use crate::workload::{BuildTarget, EditableSources, Recipe, Workload};

/// The images of a workload, compiled with one set of switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The toolchain's name, such as `original` or `native`.
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
/// use pathlength_workloads::build::{BuildFolders, build};
/// use pathlength_workloads::toolchain::{BYTE_WORD, ORIGINAL};
/// use pathlength_workloads::workload::Workload;
/// let options = BuildFolders { folder: "build".into(), sources: None };
/// let workload = Workload::named("tpcb").unwrap();
/// let builds = build(workload, &[ORIGINAL, BYTE_WORD], &options, &|progress| eprintln!("{progress:?}"))?;
/// println!("{}", builds[0].program.display());
/// # Ok::<(), pathlength_workloads::build::Error>(())
/// ```
pub fn build(
    workload: &Workload,
    toolchains: &[Toolchain],
    options: &BuildFolders,
    progress: &(dyn Fn(BuildProgress) + Sync),
) -> Result<Vec<Build>, Error> {
    build_from(workload, toolchains, options, AddedFiles::default(), progress)
}

/// As [`build`], with sources that patches have changed: one line of PostgreSQL, and what differs. A patch is for the folder
/// of the sources, from the first folder of its own names on (`patch -p1`). The build without patches is made first, if
/// there is none; then only what they change is compiled.
pub fn build_patched(
    workload: &Workload,
    toolchains: &[Toolchain],
    options: &BuildFolders,
    patches: &[PathBuf],
    progress: &(dyn Fn(BuildProgress) + Sync),
) -> Result<Vec<Build>, Error> {
    let patch = |(number, path): (usize, &PathBuf)| {
        let contents = fs::read(path).map_err(io_error("reading", path))?;
        Ok(SourceFile { name: format!("{}.patch", number + 1), contents })
    };
    let patches = patches.iter().enumerate().map(patch).collect::<Result<_, Error>>()?;
    build_from(workload, toolchains, options, AddedFiles { patches, ..AddedFiles::default() }, progress)
}

/// The inputs of a build beside a workload's own sources.
#[derive(Default)]
pub struct AddedFiles {
    /// More files, in the folders that their names say.
    pub sources: Vec<SourceFile>,
    /// Patches of sources.
    pub patches: Vec<SourceFile>,
}

/// As [`build`], from these files, too.
pub fn build_from(
    workload: &Workload,
    toolchains: &[Toolchain],
    options: &BuildFolders,
    added: AddedFiles,
    progress: &(dyn Fn(BuildProgress) + Sync),
) -> Result<Vec<Build>, Error> {
    let AddedFiles { sources: more, patches } = added;
    let plans = toolchains.iter().map(|&toolchain| BuildPlan::new(workload, toolchain, &patches));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    let interrupt = &InterruptGuard::new();
    let mut sources = source::read(workload, options, progress).map_err(|error| error.unless(interrupt))?;
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
    interrupt: &'a InterruptGuard,
}

/// The prerequisites of a build, checked before sources are fetched.
struct BuildPlan {
    toolchain: Toolchain,
    compiler: String,
    steps: Vec<BuildStep>,
    patching: Option<Patching>,
}

/// How a build with patched sources differs from the one without.
struct Patching {
    patches: Vec<SourceFile>,
    /// The step that applies the patches.
    step: BuildStep,
    /// The number of steps before it, which are those of the build without patches.
    prepared: usize,
}

impl BuildPlan {
    fn new(workload: &Workload, toolchain: Toolchain, patches: &[SourceFile]) -> Result<BuildPlan, Error> {
        let (compiler, steps) = (toolchain.version()?, steps(workload, toolchain)?);
        let patching = match patches {
            [] => None,
            patches => Some(Patching::new(workload, patches)?),
        };
        Ok(BuildPlan { toolchain, compiler, steps, patching })
    }

    /// All steps, in the order in which they make the build in an empty folder.
    fn all_steps(&self) -> Vec<BuildStep> {
        let mut steps = self.steps.clone();
        if let Some(patching) = &self.patching {
            steps.insert(patching.prepared, patching.step.clone());
        }
        steps
    }

    /// Makes a build in a folder of builds, or finds it there. Returns its own folder.
    fn carry_out(&self, parent: &Path, sources: &[SourceFile], site: &Site) -> Result<PathBuf, Error> {
        let patches = self.patching.as_ref().map_or(&[][..], |patching| &patching.patches);
        let all: Vec<&SourceFile> = sources.iter().chain(patches).collect();
        let name = format!("{}-{}", self.toolchain.name, hash(&all, &self.compiler, &self.all_steps()));
        let folder = parent.join(&name);
        if folder.is_dir() {
            return Ok(folder);
        }
        let unpatched = match &self.patching {
            Some(_) => {
                let plan = BuildPlan {
                    toolchain: self.toolchain,
                    compiler: self.compiler.clone(),
                    steps: self.steps.clone(),
                    patching: None,
                };
                Some(plan.carry_out(parent, sources, site)?)
            }
            None => None,
        };
        fs::create_dir_all(parent).map_err(io_error("creating", parent))?;
        let unfinished = unfinished(parent)?;
        if let Some(unpatched) = unpatched {
            (site.progress)(BuildProgress::Step {
                build: self.toolchain.name,
                doing: "copying",
                what: "the build without patches",
            });
            copy_of(&unpatched)?.carry_out(unfinished.path(), site.interrupt)?;
        }
        for file in if self.patching.is_some() { patches } else { sources } {
            let path = unfinished.path().join(&file.name);
            let parent = path.parent().unwrap_or(&path);
            fs::create_dir_all(parent).map_err(io_error("creating", parent))?;
            fs::write(&path, &file.contents).map_err(io_error("writing", &path))?;
        }
        let prepared = self.patching.as_ref().map_or(0, |patching| patching.prepared);
        for step in &self.all_steps()[prepared..] {
            check_interrupted(site.interrupt)?;
            if let (Some(files), None) = (step.shared, &self.patching) {
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
        make_links_relative(unfinished.path())?;
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
        let plan =
            BuildPlan { toolchain: self.toolchain, compiler: self.compiler.clone(), steps, patching: None };
        let sources: Vec<_> =
            sources.iter().filter(|file| files.contains(&file.name.as_str())).cloned().collect();
        // Another build that needs the image meanwhile waits for this one's.
        let lock = parent.join(format!(".{}-{}.lock", self.toolchain.name, step.what));
        let waited = File::create(&lock).and_then(|file| file.lock().map(|()| file));
        let _lock =
            waited.map_err(io_error("locking", &lock)).map_err(|error| error.unless(site.interrupt))?;
        let folder = plan.carry_out(&parent, &sources, site)?;
        Ok(folder.join(step.what))
    }
}

impl Patching {
    fn new(workload: &Workload, patches: &[SourceFile]) -> Result<Patching, Error> {
        if !is_installed("patch") {
            return Err(Error::NoTool { tool: "patch", package: "patch" });
        }
        let EditableSources { folder, prepared } = match workload.recipe {
            Recipe::Compile(_) => EditableSources { folder: ".", prepared: 0 },
            Recipe::Script(script) => script.editable.ok_or(Error::NotEditable { title: workload.title })?,
        };
        let apply = |patch: &SourceFile| format!("patch -p1 --batch -d {folder} < {} >&2", patch.name);
        let command = patches.iter().map(apply).collect::<Vec<_>>().join(" && ");
        let step = BuildStep { doing: "patching", what: workload.title, command, shared: None };
        Ok(Patching { patches: patches.to_vec(), step, prepared })
    }
}

/// The step that copies a build, with the times of its files, by which make knows what is up to date.
fn copy_of(build: &Path) -> Result<BuildStep, Error> {
    let path = build.canonicalize().map_err(io_error("entering", build))?;
    let quoted = path.display().to_string().replace('\'', r"'\''");
    let command = format!("cp -a '{quoted}/.' .");
    Ok(BuildStep { doing: "copying", what: "", command, shared: None })
}

/// Links of a build that lead into its folder become relative, since the folder is about to be moved.
fn make_links_relative(folder: &Path) -> Result<(), Error> {
    let root = folder.canonicalize().map_err(io_error("entering", folder))?;
    let mut folders = vec![(root.clone(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(io_error("reading", &folder))? {
            let entry = entry.map_err(io_error("reading", &folder))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(io_error("reading", &folder))?);
            if kind.is_dir() {
                folders.push((path, depth + 1));
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).map_err(io_error("reading", &path))?;
                let Ok(inside) = target.strip_prefix(&root) else { continue };
                let up: PathBuf = std::iter::repeat_n("..", depth).collect();
                fs::remove_file(&path).map_err(io_error("removing", &path))?;
                symlink(up.join(inside), &path).map_err(io_error("linking", &path))?;
            }
        }
    }
    Ok(())
}

fn build_one(
    workload: &Workload,
    plan: BuildPlan,
    sources: &[SourceFile],
    site: &Site,
) -> Result<Build, Error> {
    let folder = plan.carry_out(&site.folder.join(workload.name), sources, site)?;
    let steps = plan.all_steps();
    let BuildPlan { toolchain, compiler, patching, .. } = plan;
    let patches = patching.into_iter().flat_map(|patching| patching.patches);
    let sources = sources.iter().cloned().chain(patches);
    (site.progress)(BuildProgress::Done { build: toolchain.name });
    Ok(Build {
        name: toolchain.name,
        flags: toolchain.flags,
        images: workload.recipe.images().iter().map(|image| folder.join(image)).collect(),
        program: folder.join(workload.program),
        commands: steps.into_iter().map(|step| step.command).collect(),
        sources: sources.map(|file| file.name).collect(),
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

fn hash(sources: &[&SourceFile], compiler: &str, steps: &[BuildStep]) -> String {
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
