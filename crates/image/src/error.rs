//! Why a file is not an image, in one sentence that says what to do.

use std::path::PathBuf;

use isa::InstructionSet;

/// A file that could not be read as an Alpha image.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct Error {
    /// The file as it was named.
    pub path: PathBuf,
    /// The problem.
    pub problem: ImageProblem,
}

/// The problem with a file.
#[derive(Debug, thiserror::Error)]
pub enum ImageProblem {
    /// Nothing there.
    #[error("there is no such file; check the path")]
    Missing,
    /// A directory, a pipe or a device.
    #[error("not a regular file; name the program or shared object itself")]
    NotAFile,
    /// More than any image has.
    #[error("has {0} bytes, more than an Alpha program or shared object can have; check the path")]
    TooLarge(u64),
    /// The operating system refused.
    #[error("cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// Something other than ELF; the text says what kind of file it seems to be.
    #[error("not an ELF file but {0}; give an Alpha program or shared object built by alpha-linux-gnu-gcc")]
    NotElf(&'static str),
    /// ELF of another architecture.
    #[error(
        "{article} {name} ELF file, neither of Alpha nor of RISC-V; build it with alpha-linux-gnu-gcc{end}",
        article = article(.name),
        end = other_ways(.name, *.is_emulated)
    )]
    OtherMachine {
        /// The architecture.
        name: String,
        /// Whether an emulator records programs of it.
        is_emulated: bool,
    },
    /// ELF for Alpha, but not in the 64-bit little-endian form that Linux uses.
    #[error(
        "a {0} ELF file, but Alpha programs are 64-bit and little-endian; build it with alpha-linux-gnu-gcc"
    )]
    OtherForm(&'static str),
    /// An ELF file that cannot be executed or loaded.
    #[error("{0}; an executable or a shared object is needed")]
    NotLoadable(&'static str),
    /// The file ends before something it announces.
    #[error(
        "truncated: {what} reaches to byte {end} but the file has only {size} bytes; copy or build it again"
    )]
    Truncated {
        /// The part that is cut off.
        what: String,
        /// Where that part ends.
        end: u64,
        /// The file's size.
        size: u64,
    },
    /// Section headers that cannot be used; the text is the problem with them.
    #[error("{0}")]
    Sections(String),
    /// Headers or tables that contradict each other.
    #[error("damaged ELF file: {0}; build it again")]
    Damaged(String),
}

impl From<object::read::Error> for ImageProblem {
    fn from(error: object::read::Error) -> ImageProblem {
        ImageProblem::Damaged(error.to_string())
    }
}

/// The commands that take a program of another architecture.
fn other_ways(name: &str, is_emulated: bool) -> &'static str {
    match (name, is_emulated) {
        ("x86-64", _) => ", count it by pathlength count, or record it by pathlength qemu",
        (_, true) => ", or record it by pathlength qemu",
        (_, false) => "",
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['A', 'E', 'I', 'O', 'i', 'x']) { "an" } else { "a" }
}

/// ELF machine numbers (the generic ABI's registry) that a user is likely to meet.
const MACHINES: &[(u16, &str)] = &[
    (2, "SPARC"),
    (3, "i386"),
    (8, "MIPS"),
    (15, "PA-RISC"),
    (20, "PowerPC"),
    (21, "PowerPC64"),
    (22, "S/390"),
    (40, "ARM"),
    (43, "SPARC V9"),
    (50, "IA-64"),
    (62, "x86-64"),
    (183, "AArch64"),
    (243, "RISC-V"),
    (258, "LoongArch"),
];

/// Beginnings of files that are often named by mistake.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"#!", "a script"),
    (b"!<arch>\n", "an archive of object files"),
    (b"!<thin>\n", "an archive of object files"),
    (b"MZ", "a DOS or Windows program"),
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"\xfd7zXZ", "xz-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"\xcf\xfa\xed\xfe", "a macOS program"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PLTRACE\n", "a trace, which pathlength show, calls, caches and others read"),
];

/// The number of bytes of a file that [`identify`] needs.
pub(crate) const IDENTIFICATION: usize = 64;

/// Finds the instruction set of the images with a machine in their ELF headers.
pub(crate) type SetOfMachine = fn(u16) -> Option<&'static dyn InstructionSet>;

/// Accepts the first bytes of a 64-bit little-endian executable or shared object for a known instruction set, and
/// returns the set. The machine is judged first: that a program is for another one matters more than its word size.
pub(crate) fn identify(
    start: &[u8],
    set_of: SetOfMachine,
) -> Result<&'static dyn InstructionSet, ImageProblem> {
    if !start.starts_with(b"\x7fELF") {
        return Err(ImageProblem::NotElf(appearance(start)));
    }
    let header = start.get(..IDENTIFICATION).ok_or(ImageProblem::Truncated {
        what: "the ELF header".into(),
        end: IDENTIFICATION as u64,
        size: start.len() as u64,
    })?;
    let (class, encoding) = (header[4], header[5]);
    let half = |at: usize| {
        let bytes = [header[at], header[at + 1]];
        if encoding == 2 { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    };
    let machine = half(18);
    let set = set_of(machine).ok_or_else(|| {
        let known = MACHINES.iter().find(|(number, _)| *number == machine);
        let name = known.map_or_else(|| format!("machine-{machine}"), |(_, name)| (*name).into());
        let is_emulated = isa::DESCRIBED_SETS.iter().any(|set| set.elf_machine() == machine);
        ImageProblem::OtherMachine { name, is_emulated }
    })?;
    match (class, encoding) {
        (2, 1) => {}
        (2, 2) => return Err(ImageProblem::OtherForm("big-endian")),
        (1, _) => return Err(ImageProblem::OtherForm("32-bit")),
        _ => return Err(ImageProblem::Damaged(format!("class {class} and data encoding {encoding}"))),
    }
    match half(16) {
        2 | 3 => Ok(set),
        1 => Err(ImageProblem::NotLoadable("a relocatable object file that has not been linked")),
        4 => Err(ImageProblem::NotLoadable("a core dump")),
        kind => Err(ImageProblem::Damaged(format!("unknown file type {kind}"))),
    }
}

fn appearance(start: &[u8]) -> &'static str {
    if start.is_empty() {
        return "an empty file";
    }
    if let Some((_, name)) = SIGNATURES.iter().find(|(signature, _)| start.starts_with(signature)) {
        return name;
    }
    let printable = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..);
    if start.iter().all(printable) { "text" } else { "data of an unknown kind" }
}
