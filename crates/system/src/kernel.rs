//! Builds the guest's kernel and its first process, or finds those built earlier. Each has a folder of its own, named by a hash of
//! all that it is made from.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use host::interrupt::InterruptGuard;
use sha2::{Digest, Sha256};
use workloads::build::{BuildProgress, Error, check_interrupted, io_error};
use workloads::steps::{BuildStep, is_installed};
use workloads::toolchain::{BYTE_WORD, Toolchain};

const CONFIGURATION: &str = include_str!("kernel.config");
/// The additional configuration of a kernel for several processors.
const SEVERAL_PROCESSORS: &str = "\n# Several processors.\nCONFIG_SMP=y\nCONFIG_NR_CPUS=4\n";
/// The additional configuration of a kernel with a network.
const NETWORK_CONFIGURATION: &str = include_str!("network.config");
/// The guest's machine in the configuration, and what stands for it where the compiler's instruction set is given.
const OWN_MACHINE: &str = "CONFIG_ALPHA_DP264=y\n# CONFIG_ALPHA_GENERIC is not set\nCONFIG_ALPHA_EV67=y\n";
const ANY_MACHINE: &str = "CONFIG_ALPHA_GENERIC=y\n";
const OFFSETS: &str = include_str!("offsets.c");
const INIT: &str = include_str!("init.c");
const INIT_NETWORK: [(&str, &str); 2] =
    [("network.c", include_str!("network.c")), ("network.h", include_str!("network.h"))];

/// The name of the build in progress messages.
const NAME: &str = "kernel";
/// Debian's source package, and the home of what it has.
const PACKAGE: &str = "linux";
const HOME: &str = "Linux (https://www.kernel.org)";

/// The tools that the build needs, with their packages.
const TOOLS: [(&str, &str); 7] = [
    ("alpha-linux-gnu-gcc", "gcc-alpha-linux-gnu"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("xz", "xz-utils"),
    ("cc", "gcc"),
];

/// The file in a build's folder that has the number of completed steps.
const STEPS_DONE: &str = ".steps-done";

/// The commands of a build: what they do, to what, and how. They are executed in a new folder with the sources.
type BuildSteps = [(&'static str, &'static str, &'static str)];

/// How the kernel is built. `{flags}` stands for the compiler's switches.
const KERNEL_STEPS: &BuildSteps = &[
    // Most of the archive are other architectures, documents, and drivers of cards that the machine does not have.
    (
        "unpacking",
        "the kernel's sources",
        "rm -rf source && mkdir source && tar xf linux_*.tar.* -C source --strip-components=1 --exclude='*.rst' --exclude='*.yaml' \
         --exclude='*.dts' --exclude='*.dtsi' --exclude='*/tools/testing/*' --exclude='*/arch/[b-z]*/*.[chS]' \
         --exclude='*/drivers/gpu/*.[ch]' --exclude='*/drivers/net/[!e]*/*.[ch]' --exclude='*/drivers/net/ethernet/[!di]*/*.[ch]' && \
         cp offsets.c source/arch/alpha/kernel/recorder-offsets.c",
    ),
    (
        "configuring",
        "the kernel",
        "make -C source O=$PWD/objects ARCH=alpha CROSS_COMPILE=alpha-linux-gnu- \
         KCONFIG_ALLCONFIG=$PWD/kernel.config allnoconfig",
    ),
    (
        "compiling",
        "the kernel, which takes some minutes",
        "make -C source O=$PWD/objects ARCH=alpha CROSS_COMPILE=alpha-linux-gnu- KBUILD_BUILD_TIMESTAMP=@0 \
         KBUILD_BUILD_USER=pathlength KBUILD_BUILD_HOST=pathlength KCFLAGS='{flags}' vmlinux",
    ),
    (
        "compiling",
        "offsets of the kernel's structures",
        "make -C source O=$PWD/objects ARCH=alpha CROSS_COMPILE=alpha-linux-gnu- arch/alpha/kernel/recorder-offsets.s",
    ),
    (
        "collecting",
        "what was built",
        "mv objects/vmlinux objects/arch/alpha/kernel/recorder-offsets.s . && cp objects/.config config && \
         rm -rf source objects linux_*.tar.*",
    ),
];

/// How the first process is built.
const INIT_STEPS: &BuildSteps = &[(
    "compiling",
    "the guest's first process",
    "alpha-linux-gnu-gcc -O2 -static -Wl,--no-relax -mcpu=ev67 -s -Wall -Wextra -o init init.c network.c",
)];

/// Which kernel is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelConfiguration {
    /// Whether it can use several processors.
    pub has_several_processors: bool,
    /// Whether it has network interfaces and their namespaces. Another kernel counts otherwise, so that those who need none have none.
    pub has_network: bool,
    /// The compiler's instruction set; by default that of the machine, an EV67.
    pub toolchain: Option<&'static Toolchain>,
}

impl KernelConfiguration {
    fn text(self) -> String {
        let several = if self.has_several_processors { SEVERAL_PROCESSORS } else { "" };
        let network = if self.has_network { NETWORK_CONFIGURATION } else { "" };
        // What is written for an EV67 in assembler does not fit another compiler's instruction set.
        let machine = if self.toolchain.is_some() { ANY_MACHINE } else { OWN_MACHINE };
        format!("{}{several}{network}", CONFIGURATION.replace(OWN_MACHINE, machine))
    }

    fn flags(self) -> String {
        self.toolchain.map(|toolchain| toolchain.flags.join(" ")).unwrap_or_default()
    }
}

/// A kernel that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestKernel {
    /// Its image, with symbols.
    pub image: PathBuf,
    /// The first process.
    pub init: PathBuf,
    /// Where the recorder finds the thread that runs: `NAME=OFFSET` in hexadecimal, with commas between them.
    pub offsets: String,
}

/// Builds a kernel and the first process, or finds those made earlier in `FOLDER/system`. A build that was interrupted or
/// killed is continued.
pub fn build(
    folder: &Path,
    sources: Option<&Path>,
    configuration: KernelConfiguration,
    progress: &dyn Fn(BuildProgress),
) -> Result<GuestKernel, Error> {
    if let Some(&(tool, package)) = TOOLS.iter().find(|(tool, _)| !is_installed(tool)) {
        return Err(Error::NoTool { tool, package });
    }
    let interrupt = InterruptGuard::new();
    let archive = match sources {
        Some(folder) => workloads::debian::archive(folder, PACKAGE, HOME)?,
        None => workloads::debian::download(&folder.join("sources"), PACKAGE, HOME, progress)
            .map_err(|error| error.unless(&interrupt))?,
    };
    let archive = std::path::absolute(&archive).map_err(io_error("finding", &archive))?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (parent, compiler) = (folder.join("system"), BYTE_WORD.version()?);
    let (text, flags) = (configuration.text(), configuration.flags());
    let job = BuildJob { parent: &parent, interrupt: &interrupt, progress };
    let sources = [("kernel.config", text.as_str()), ("offsets.c", OFFSETS)];
    let made_from = hash(&[&name, &compiler, &flags], &sources, KERNEL_STEPS);
    let kernel =
        job.find_or_make(&format!("kernel-{made_from}"), &sources, KERNEL_STEPS, &flags, |work| {
            let link = work.join(&name);
            match std::os::unix::fs::symlink(&archive, &link) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    Err(io_error("creating", &link)(error))
                }
                _ => Ok(()),
            }
        })?;
    let sources = [&[("init.c", INIT)][..], &INIT_NETWORK].concat();
    let made_from = hash(&[&compiler], &sources, INIT_STEPS);
    let init = job.find_or_make(&format!("init-{made_from}"), &sources, INIT_STEPS, "", |_| Ok(()))?;
    progress(BuildProgress::Done { build: NAME });
    GuestKernel::open(&kernel, &init)
}

/// Where builds are made.
struct BuildJob<'a> {
    parent: &'a Path,
    interrupt: &'a InterruptGuard,
    progress: &'a dyn Fn(BuildProgress),
}

impl BuildJob<'_> {
    /// The folder of this name, which is made by the steps from the sources if it is not there.
    fn find_or_make(
        &self,
        name: &str,
        sources: &[(&str, &str)],
        steps: &BuildSteps,
        flags: &str,
        prepare: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<PathBuf, Error> {
        let complete = self.parent.join(name);
        if complete.is_dir() {
            return Ok(complete);
        }
        let work = self.parent.join(format!(".building-{name}"));
        fs::create_dir_all(&work).map_err(io_error("creating", &work))?;
        // Commands that build the same wait here, also for the steps of one that was killed.
        let _lock = lock_for_children(&work).map_err(io_error("locking", &work))?;
        if complete.is_dir() {
            // Made meanwhile, and the folder anew after it.
            let _ = fs::remove_dir(&work);
            return Ok(complete);
        }
        for (name, text) in sources {
            let path = work.join(name);
            fs::write(&path, text).map_err(io_error("writing", &path))?;
        }
        prepare(&work)?;
        let done_file = work.join(STEPS_DONE);
        let done = fs::read_to_string(&done_file).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        for (number, &(doing, what, command)) in steps.iter().enumerate().skip(done) {
            check_interrupted(self.interrupt)?;
            (self.progress)(BuildProgress::Step { build: NAME, doing, what });
            let command = with_flags(command, flags);
            BuildStep { doing, what, command, shared: None }.carry_out(&work, self.interrupt)?;
            fs::write(&done_file, (number + 1).to_string()).map_err(io_error("writing", &done_file))?;
        }
        fs::rename(&work, &complete).map_err(io_error("creating", &complete))?;
        Ok(complete)
    }
}

/// Locks a folder until this process has ended, and those that it starts.
fn lock_for_children(folder: &Path) -> io::Result<File> {
    let lock = File::open(folder)?;
    lock.lock()?;
    rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty())?;
    Ok(lock)
}

/// A command with the compiler's switches.
fn with_flags(command: &str, flags: &str) -> String {
    command.replace("{flags}", flags)
}

impl GuestKernel {
    /// The files that the builds left in their folders.
    fn open(kernel: &Path, init: &Path) -> Result<GuestKernel, Error> {
        let path = kernel.join("recorder-offsets.s");
        let text = fs::read_to_string(&path).map_err(io_error("reading", &path))?;
        Ok(GuestKernel { image: kernel.join("vmlinux"), init: init.join("init"), offsets: offsets(&text) })
    }
}

/// The definitions in an assembler file that the kernel's `DEFINE` made: `.ascii "->NAME VALUE …"`.
fn offsets(assembler: &str) -> String {
    let definitions = assembler.lines().filter_map(|line| {
        let (_, definition) = line.split_once("\"->")?;
        let mut words = definition.split_whitespace();
        let (name, value) = (words.next()?, words.next()?);
        let value: u64 = value.trim_start_matches(['$', '#']).parse().ok()?;
        Some(format!("{name}={value:x}"))
    });
    definitions.collect::<Vec<_>>().join(",")
}

/// Stands for all that something is made from.
fn hash(texts: &[&str], sources: &[(&str, &str)], steps: &BuildSteps) -> String {
    let sources = sources.iter().map(|(_, text)| *text);
    let steps = steps.iter().map(|(_, _, command)| *command);
    let mut digest = Sha256::new();
    for text in texts.iter().copied().chain(sources).chain(steps) {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_instruction_set_is_the_compilers_and_the_configurations() {
        let of = |toolchain| KernelConfiguration { toolchain, ..KernelConfiguration::default() };
        let own = of(None).text();
        assert!(own.contains("CONFIG_ALPHA_EV67=y") && own == CONFIGURATION);
        let original = of(Some(&workloads::toolchain::ORIGINAL));
        assert!(original.text().contains("CONFIG_ALPHA_GENERIC=y") && !original.text().contains("EV67=y"));
        let mut commands = KERNEL_STEPS.iter().map(|(_, _, command)| with_flags(command, &original.flags()));
        assert!(commands.any(|command| command.contains(" KCFLAGS='-mcpu=ev5 -mno-bwx' ")));
    }

    #[test]
    fn offsets_are_read_from_assembler() {
        let text =
            "\t.ascii \"->stack 16384 THREAD_SIZE\"\n\tret\n.ascii \"->pid $1160 offsetof(struct x, y)\"\n";
        assert_eq!(offsets(text), "stack=4000,pid=488");
    }

    #[test]
    fn an_interrupted_build_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = InterruptGuard::new();
        let job = BuildJob { parent: folder.path(), interrupt: &interrupt, progress: &|_| {} };
        let steps: &BuildSteps = &[
            ("making", "the first file", "echo x >> first"),
            ("making", "the second file", "test -e ../ready && cp source second"),
        ];
        let build = || job.find_or_make("thing", &[("source", "text")], steps, "", |_| Ok(()));
        assert!(build().is_err());
        fs::write(folder.path().join("ready"), "").unwrap();
        let complete = build().unwrap();
        let read = |name: &str| fs::read_to_string(complete.join(name)).unwrap();
        assert_eq!((&*read("first"), &*read("second")), ("x\n", "text"), "the first step is done once");
        assert_eq!(build().unwrap(), complete);
        let entries = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(entries, 2, "nothing but the build is left");
    }
}
