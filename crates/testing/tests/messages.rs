//! Messages go out by `text::message!` only, so that none forgets to make names printable.

use std::path::{Path, PathBuf};

/// The crates with a way of their own: the one that writes messages, the command `vlm`, which depends on no other, and
/// what only developers run.
const EXEMPT: [&str; 3] = ["text", "vlm", "tools"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn messages_are_written_in_one_place() {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).expect("the crates") {
        let folder = entry.expect("a crate").path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !EXEMPT.contains(&name.as_str()) && folder.join("src").is_dir() {
            sources(&folder.join("src"), &mut found);
        }
    }
    assert!(found.len() > 500, "the sources were not found");
    let mut written = Vec::new();
    for path in &found {
        let text = std::fs::read_to_string(path).expect("a source");
        let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim_start().starts_with("//"));
        let bad = lines.filter(|(line, _)| line.contains("eprintln!"));
        written.extend(bad.map(|(_, number)| format!("{}:{number}", path.display())));
    }
    assert!(written.is_empty(), "use text::message! instead of eprintln!: {written:#?}");
}
