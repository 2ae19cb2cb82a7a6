//! Files that documents of the design name: each exists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders of a working copy that hold no sources.
const NO_SOURCES: [&str; 3] = [".git", "target", "build"];

/// What commands write: documents name files there that no checkout has.
const OUTPUTS: [&str; 5] = ["build/", "dist/", "bench/", "study/", "fuzz/artifacts/"];

/// The extensions of files that are named without a folder of the repository and yet are its own: files of other projects, such
/// as PostgreSQL's `lwlock.c`, have others.
const EXTENSIONS: [&str; 3] = [".rs", ".toml", ".md"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files and folders below a folder, by their paths from the root on; a crate's sources also by `CRATE/PATH`.
fn collect(folder: &Path, name: &str, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let own = entry.file_name().to_string_lossy().into_owned();
        if name.is_empty() && NO_SOURCES.contains(&&*own) {
            continue;
        }
        let path = if name.is_empty() { own } else { format!("{name}/{own}") };
        if entry.file_type().expect("a type").is_dir() {
            collect(&entry.path(), &path, found);
        }
        if let Some((of, below)) = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/")) {
            found.insert(format!("{of}/{below}"));
        }
        found.insert(path);
    }
}

/// The paths that a document names: in backticks, and the words of indented blocks that are Rust files.
fn named(text: &str) -> Vec<&str> {
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let blocks = text.lines().filter(|line| line.starts_with("    "));
    let in_blocks =
        blocks.flat_map(|line| line.split([' ', ',', '(', ')'])).filter(|word| word.ends_with(".rs"));
    quoted.filter(|word| is_path(word)).chain(in_blocks).collect()
}

/// Whether a quoted word is the path of a file or a folder of the repository.
fn is_path(word: &str) -> bool {
    let is_plain = word.chars().all(|one| one.is_ascii_alphanumeric() || "_-./".contains(one));
    let is_output = OUTPUTS.iter().any(|output| word.starts_with(output));
    let is_relative = !word.starts_with(['/', '.', '-']);
    let is_folder = word.ends_with('/');
    is_plain && is_relative && !is_output && (is_folder || EXTENSIONS.iter().any(|end| word.ends_with(end)))
}

/// The documents: of the whole, and of parts of the design.
fn documents() -> Vec<PathBuf> {
    let design = std::fs::read_dir(workspace().join("docs/design")).expect("docs/design");
    let design = design.map(|entry| entry.expect("an entry").path());
    let pages = design.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    ["ARCHITECTURE.md", "CONTRIBUTING.md"]
        .map(|name| workspace().join(name))
        .into_iter()
        .chain(pages)
        .collect()
}

#[test]
fn files_that_documents_name_exist() {
    let mut files = BTreeSet::new();
    collect(&workspace(), "", &mut files);
    let exists = |path: &str| {
        let path = path.trim_end_matches('/');
        let end = format!("/{path}");
        files.contains(path) || files.iter().any(|file| file.ends_with(&end))
    };
    let (mut read, mut absent) = (0, Vec::new());
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("a document");
        for path in named(&text) {
            read += 1;
            if !exists(path) {
                absent.push(format!("{}: {path}", document.display()));
            }
        }
    }
    assert!(read > 200, "only {read} paths were found in documents");
    assert!(absent.is_empty(), "documents name files that do not exist:\n{}", absent.join("\n"));
}

#[test]
fn paths_are_told_from_other_words() {
    let text = "`crates/isa/src/table.rs` and `mm/hugetlb.c`, `build/x.toml`, `--set a.rs`\n    engine/gone.rs  and more\n`docs/`";
    assert_eq!(named(text), ["crates/isa/src/table.rs", "docs/", "engine/gone.rs"]);
}
