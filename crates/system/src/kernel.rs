//! Builds the guest's kernel and its first process, or finds those built earlier.

use std::fs;
use std::path::{Path, PathBuf};

use lab::build::{BuildProgress, Error, io_error, publish, unfinished};
use lab::interrupt::Caught;
use lab::steps::{BuildStep, is_installed};
use lab::toolchain::BYTE_WORD;
use sha2::{Digest, Sha256};

const CONFIGURATION: &str = include_str!("kernel.config");
const OFFSETS: &str = include_str!("offsets.c");
const INIT: &str = include_str!("init.c");

/// The name of the build in progress messages.
const NAME: &str = "kernel";
/// Debian's source package, and the home of what it has.
const PACKAGE: &str = "linux";
const HOME: &str = "Linux (https://www.kernel.org)";

/// What the build needs, with the packages that have it.
const TOOLS: [(&str, &str); 7] = [
    ("alpha-linux-gnu-gcc", "gcc-alpha-linux-gnu"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("xz", "xz-utils"),
    ("cc", "gcc"),
];

/// The commands of the build: what they do, to what, and how. They are executed in a new folder with the archive of
/// sources.
const STEPS: [(&str, &str, &str); 6] = [
    // Most of the archive are other architectures and documents.
    (
        "unpacking",
        "the kernel's sources",
        "mkdir source && tar xf linux_*.tar.* -C source --strip-components=1 --exclude='*.rst' --exclude='*.yaml' \
         --exclude='*.dts' --exclude='*.dtsi' --exclude='*/tools/testing/*' --exclude='*/arch/[b-z]*/*.[chS]' \
         --exclude='*/drivers/gpu/*.[ch]' --exclude='*/drivers/net/*/*.[ch]' && \
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
         KBUILD_BUILD_USER=pathlength KBUILD_BUILD_HOST=pathlength vmlinux",
    ),
    (
        "compiling",
        "offsets of the kernel's structures",
        "make -C source O=$PWD/objects ARCH=alpha CROSS_COMPILE=alpha-linux-gnu- arch/alpha/kernel/recorder-offsets.s",
    ),
    (
        "compiling",
        "the first process",
        "alpha-linux-gnu-gcc -O2 -static -Wl,--no-relax -mcpu=ev67 -s -Wall -Wextra -o init init.c",
    ),
    (
        "collecting",
        "what was built",
        "mv objects/vmlinux objects/arch/alpha/kernel/recorder-offsets.s . && cp objects/.config config && \
         rm -rf source objects linux_*.tar.*",
    ),
];

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

/// Builds the kernel, or finds the one made earlier in `FOLDER/system`. An interrupted build leaves nothing.
pub fn build(
    folder: &Path,
    sources: Option<&Path>,
    progress: &dyn Fn(BuildProgress),
) -> Result<GuestKernel, Error> {
    if let Some(&(tool, package)) = TOOLS.iter().find(|(tool, _)| !is_installed(tool)) {
        return Err(Error::NoTool { tool, package });
    }
    let interrupt = Caught::new();
    let archive = match sources {
        Some(folder) => lab::debian::archive(folder, PACKAGE, HOME)?,
        None => lab::debian::download(&folder.join("sources"), PACKAGE, HOME, progress)
            .map_err(|error| interrupt.or(error))?,
    };
    let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let parent = folder.join("system");
    let complete = parent.join(format!("kernel-{}", hash(&name, &BYTE_WORD.version()?)));
    if !complete.is_dir() {
        make(&parent, &complete, &archive, &interrupt, progress)?;
    }
    progress(BuildProgress::Done { build: NAME });
    GuestKernel::open(&complete)
}

fn make(
    parent: &Path,
    complete: &Path,
    archive: &Path,
    interrupt: &Caught,
    progress: &dyn Fn(BuildProgress),
) -> Result<(), Error> {
    fs::create_dir_all(parent).map_err(io_error("creating", parent))?;
    let work = unfinished(parent)?;
    for (name, text) in [("kernel.config", CONFIGURATION), ("offsets.c", OFFSETS), ("init.c", INIT)] {
        let path = work.path().join(name);
        fs::write(&path, text).map_err(io_error("writing", &path))?;
    }
    let absolute = std::path::absolute(archive).map_err(io_error("finding", archive))?;
    let link = work.path().join(absolute.file_name().unwrap_or_default());
    std::os::unix::fs::symlink(&absolute, &link).map_err(io_error("creating", &link))?;
    for (doing, what, command) in STEPS {
        interrupt.check()?;
        progress(BuildProgress::Step { build: NAME, doing, what });
        BuildStep { doing, what, command: command.into() }.carry_out(work.path(), interrupt)?;
    }
    publish(work, complete)
}

impl GuestKernel {
    /// What a build left in its folder.
    fn open(folder: &Path) -> Result<GuestKernel, Error> {
        let path = folder.join("recorder-offsets.s");
        let text = fs::read_to_string(&path).map_err(io_error("reading", &path))?;
        Ok(GuestKernel { image: folder.join("vmlinux"), init: folder.join("init"), offsets: offsets(&text) })
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

/// Stands for all that a kernel was made from.
fn hash(archive: &str, compiler: &str) -> String {
    let steps = STEPS.iter().map(|(_, _, command)| *command);
    let mut digest = Sha256::new();
    for text in [archive, compiler, CONFIGURATION, OFFSETS, INIT].into_iter().chain(steps) {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_from_assembler() {
        let text =
            "\t.ascii \"->stack 16384 THREAD_SIZE\"\n\tret\n.ascii \"->pid $1160 offsetof(struct x, y)\"\n";
        assert_eq!(offsets(text), "stack=4000,pid=488");
    }
}
