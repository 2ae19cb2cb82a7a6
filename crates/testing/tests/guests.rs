//! Which files name a guest's crate. A second guest must need no change elsewhere.

use std::path::{Path, PathBuf};

/// Crates whose files name no guest, with the exceptions: each guest's own folder, and a file that chooses the guest.
const CRATES: [(&str, &[&str]); 6] = [
    ("host", &[]),
    ("guest-memory", &[]),
    ("guest", &[]),
    ("jit", &["alpha"]),
    ("linux-user", &["abi/alpha"]),
    ("engine", &["platform.rs"]),
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

/// Whether a text has a path that begins with Alpha's crate.
fn names_alpha(text: &str) -> bool {
    let is_word = |before: &str| before.ends_with(|last: char| last.is_alphanumeric() || last == '_');
    text.match_indices("alpha::").any(|(at, _)| !is_word(&text[..at]))
}

#[test]
fn only_a_guests_folders_and_one_choice_name_it() {
    for (name, exceptions) in CRATES {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let naming: Vec<PathBuf> = files(&source)
            .into_iter()
            .filter(|path| names_alpha(&std::fs::read_to_string(path).expect("a source file")))
            .map(|path| path.strip_prefix(&source).expect("a file of the crate").to_path_buf())
            .collect();
        let is_exception = |path: &Path| exceptions.iter().any(|exception| path.starts_with(exception));
        let others: Vec<_> = naming.iter().filter(|path| !is_exception(path)).collect();
        assert!(
            others.is_empty(),
            "{name}: {others:?} name Alpha; take what they need from a trait of the guest"
        );
        assert_eq!(
            naming.is_empty(),
            exceptions.is_empty(),
            "{name}: the guest was not found where it should be"
        );
    }
}

#[test]
fn a_crate_is_found_in_a_text() {
    assert!(names_alpha("use alpha::cpu::Cpu;") && names_alpha("::alpha::Block"));
    assert!(!names_alpha("crate::calls; // qemu-alpha"));
    assert!(!names_alpha("mod is_alpha; use is_alpha::x;"));
}
