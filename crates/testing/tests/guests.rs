//! Which files name a guest's crate. A further guest must need no change elsewhere.

use std::path::{Path, PathBuf};

/// Crates whose files name no guest, with the exceptions: each guest's own folder, and a file that chooses the guest.
const CRATES: [(&str, &[&str]); 18] = [
    ("image", &[]),
    ("events", &[]),
    ("trace", &[]),
    ("machine", &[]),
    ("gdb", &[]),
    ("analysis", &[]),
    ("report", &[]),
    ("cli", &[]),
    ("studies", &[]),
    ("session", &[]),
    ("workloads", &[]),
    ("host", &[]),
    ("guest-memory", &[]),
    ("guest", &[]),
    ("jit", &["alpha", "riscv"]),
    ("linux-user", &["abi/alpha", "abi/riscv", "abi/sysroots.rs"]),
    ("engine", &["platform.rs", "debug/tests.rs"]),
    ("../python", &[]),
];

/// Files that take instructions apart by a guest's table: of Alpha by nature, or to be changed before a second guest is
/// analysed or debugged (docs/design/second-guest.md).
const BY_ALPHAS_TABLE: [(&str, &[&str]); 2] = [
    // The tables of the 1997 paper are of Alpha programs.
    ("analysis", &["paper/check.rs"]),
    // The study of the operating system is of an Alpha system.
    ("studies", &["system/measure.rs"]),
];

/// The names of the crate `isa` that hold for any instruction set; `CpuModel` is a processor's model.
const ANY_SET: [&str; 25] = [
    "ControlCalls",
    "ControlTransfer",
    "CpuModel",
    "DESCRIBED_SETS",
    "Group",
    "INSTRUCTION_SETS",
    "InstructionClass",
    "InstructionSet",
    "InstructionSummary",
    "IntegerResult",
    "LoadExtension",
    "MemoryAccess",
    "Operation",
    "PipelineSummary",
    "Processors",
    "Register",
    "ReturnStackUse",
    "SourceOperand",
    "TransferKind",
    "TransferTarget",
    "ValueModel",
    "ValuePrediction",
    "by_name",
    "any_of_elf_machine",
    "of_elf_machine",
];

/// The Rust files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    let below = folders.iter().flat_map(|folder| self::files(folder));
    below.chain(files).filter(is_rust).collect()
}

/// What follows the name of a crate in the paths of a text.
fn after<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let is_word = |before: &str| before.ends_with(|last: char| last.is_alphanumeric() || last == '_');
    let starts: Vec<_> =
        text.match_indices(&format!("{name}::")).map(|(at, found)| (at, at + found.len())).collect();
    starts.into_iter().filter(move |&(at, _)| !is_word(&text[..at])).map(|(_, end)| &text[end..])
}

/// The crates of guests.
const GUESTS: [&str; 2] = ["alpha", "riscv"];

/// Whether a text has a path that begins with a guest's crate.
fn names_guest(text: &str) -> bool {
    GUESTS.iter().any(|guest| after(text, guest).next().is_some())
}

/// Whether a source file, but for its tests and comments, names something of `isa` that is only Alpha's.
fn names_alphas_table(text: &str) -> bool {
    let names = |rest: &str| -> Vec<String> {
        let list = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default(),
        };
        list.split(',').map(|name| name.trim().to_string()).filter(|name| !name.is_empty()).collect()
    };
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    after(&code.join("\n"), "isa").flat_map(names).any(|name| !ANY_SET.contains(&name.as_str()))
}

/// The files of a crate's sources whose text has a property, below the folder of its sources.
fn files_where(name: &str, has: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let has = |path: &PathBuf| has(&std::fs::read_to_string(path).expect("a source file"));
    let below = |path: PathBuf| path.strip_prefix(&source).expect("a file of the crate").to_path_buf();
    let mut found: Vec<_> = files(&source).into_iter().filter(has).map(below).collect();
    found.sort();
    found
}

#[test]
fn only_a_guests_folders_and_one_choice_name_it() {
    for (name, exceptions) in CRATES {
        let naming = files_where(name, names_guest);
        let is_exception = |path: &Path| exceptions.iter().any(|exception| path.starts_with(exception));
        let others: Vec<_> = naming.iter().filter(|path| !is_exception(path)).collect();
        assert!(
            others.is_empty(),
            "{name}: {others:?} name a guest; take what they need from a trait of the guest"
        );
        assert_eq!(
            naming.is_empty(),
            exceptions.is_empty(),
            "{name}: the guest was not found where it should be"
        );
    }
}

#[test]
fn only_listed_files_depend_on_alphas_table() {
    for name in CRATES.map(|(name, _)| name) {
        let expected =
            BY_ALPHAS_TABLE.iter().find(|(listed, _)| *listed == name).map_or(&[][..], |(_, files)| files);
        // Guests' folders and the choice of the guest name Alpha anyway.
        let exceptions =
            CRATES.iter().find(|(listed, _)| *listed == name).map_or(&[][..], |(_, files)| files);
        let is_guests = |path: &PathBuf| {
            exceptions.iter().any(|one| path.starts_with(one))
                && !expected.iter().any(|one| path.starts_with(one))
        };
        let found = files_where(name, names_alphas_table);
        let found: Vec<_> =
            found.iter().filter(|path| !is_guests(path)).map(|path| path.to_str().expect("UTF-8")).collect();
        assert_eq!(found, expected, "{name}: the files that depend on Alpha's table, and the list");
    }
}

#[test]
fn a_name_of_alphas_table_is_found_in_a_text() {
    assert!(names_alphas_table("use isa::{InstructionSet, decode};") && names_alphas_table("isa::Op::Ldq"));
    assert!(!names_alphas_table("/// isa::Alpha\nfn f() {}"));
    assert!(!names_alphas_table("use isa::{InstructionSet, Register}; isa::CpuModel::Ev5; my_isa::decode()"));
}

#[test]
fn a_crate_is_found_in_a_text() {
    assert!(names_guest("use alpha::cpu::Cpu;") && names_guest("::riscv::RiscvCpu"));
    assert!(!names_guest("crate::calls; // qemu-alpha"));
    assert!(!names_guest("mod is_alpha; use is_alpha::x;"));
}
