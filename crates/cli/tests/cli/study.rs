//! `study`: errors when it cannot be made. (The study itself is tested in `lab`.)

use crate::support::{listing, outcome, pathlength};

#[test]
fn without_a_compiler() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = pathlength(["study", "byteword"]);
    // Cargo is needed to find SQLite's sources, and it needs rustc.
    let cargo = std::path::Path::new(env!("CARGO")).parent().unwrap();
    command.current_dir(&folder).env("PATH", cargo);
    let sentence = outcome(command).failure();
    assert!(sentence.contains("install it, on Debian with `apt-get install gcc"), "{sentence}");
    assert!(listing(folder.path()).is_empty());
}

#[test]
fn without_a_place_for_the_report() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for (place, problem) in [
        ("file/report", "cannot write file/report: Not a directory"),
        ("file", "cannot write file: "),
        ("/proc/report", "cannot write /proc/report: "),
    ] {
        let mut command = pathlength(["study", "byteword", "-o", place]);
        command.current_dir(&folder);
        let sentence = outcome(command).failure();
        assert!(sentence.starts_with(problem), "{sentence}");
        assert_eq!(listing(folder.path()), ["file"]);
    }
}

#[test]
fn without_a_place_for_builds() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("build"), "").unwrap();
    let mut command = pathlength(["study", "byteword"]);
    command.current_dir(&folder);
    let sentence = outcome(command).failure();
    assert!(sentence.contains("build/tpcb: "), "{sentence}");
}

#[test]
fn without_a_c_library() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = pathlength(["study", "byteword", "--sysroot", "/nonexistent"]);
    command.current_dir(&folder);
    let sentence = outcome(command).failure();
    assert!(sentence.contains("/nonexistent"), "{sentence}");
    assert!(listing(folder.path()).is_empty());
}
