//! `system`: programs on a whole system. What needs the kernel, whose build takes minutes, is done by `make system-check`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::guest;

/// The folder of builds, where the kernel stays.
fn builds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build")
}

/// Runs `pathlength system`. Returns its status, standard output and standard error.
fn system(command: &str, options: &[&str], words: &[&str]) -> (Option<i32>, String, String) {
    let mut pathlength = Command::new(env!("CARGO_BIN_EXE_pathlength"));
    pathlength.args(["system", command, "--folder"]).arg(builds()).args(["--clear-env"]).args(options);
    let output = pathlength.arg(guest("ev56/system")).args(words).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A table of a counted or shown program, as rows of cells.
fn rows(arguments: &[&str]) -> Vec<Vec<String>> {
    let output = Command::new(env!("CARGO_BIN_EXE_pathlength")).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(|line| line.split(',').map(Into::into).collect()).collect()
}

/// The number in a row with this beginning, in a column.
fn number(rows: &[Vec<String>], name: &str, column: &str) -> u64 {
    let column = rows[0].iter().position(|one| one == column).unwrap_or_else(|| panic!("{column}: {rows:?}"));
    let row = rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name}: {rows:?}"));
    row[column].parse().unwrap()
}

/// Records a trace in a folder, which must be consistent.
fn trace(folder: &Path, words: &[&str]) -> PathBuf {
    let path = folder.join("system.trace");
    let (status, output, errors) = system("trace", &["-o", path.to_str().unwrap()], words);
    assert!(status == Some(7) && !errors.contains("transfers of control"), "{status:?} {output}{errors}");
    let check = Command::new(env!("CARGO_BIN_EXE_pathlength")).arg("check").arg(&path).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    path
}

fn table(path: &Path, name: &str) -> Vec<Vec<String>> {
    rows(&["show", path.to_str().unwrap(), "--table", name, "--format", "csv"])
}

#[test]
fn a_program_that_is_none_is_refused_before_a_kernel_is_built() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pathlength"))
        .args(["system", "run", "/bin/sh"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("not an Alpha program"), "{errors}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_path_that_the_guest_hides_is_refused() {
    let (status, _, errors) = system("count", &["--file", "/etc/passwd:/dev/shm/passwd"], &[]);
    assert_eq!(status, Some(1));
    assert!(errors.contains("/dev/shm/passwd: the guest has its own /dev, which hides it"), "{errors}");
}

#[test]
fn a_network_that_is_none_is_refused() {
    for (network, problem) in [
        ("rtl8139", "no card is called 'rtl8139': use tulip, e1000, virtio, veth"),
        ("e1000:fast", "'fast' says nothing of offloads: use none, checksum, segmentation"),
        ("tulip:checksum", "tulip has no offloads here"),
    ] {
        let (status, _, errors) = system("run", &["--network", network], &[]);
        assert!(status == Some(2) && errors.contains(problem), "{status:?} {errors}");
    }
}

#[test]
#[ignore = "builds a kernel: make system-check"]
fn a_program_has_its_files_output_and_status() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let contents: Vec<u8> = (0..100_000).map(|number: u32| (number * 7) as u8).collect();
    fs::write(&from, &contents).unwrap();
    let taken = format!("/tmp/copied:{}", to.display());
    let options = ["--file", from.to_str().unwrap(), "--take", &taken];
    let (status, output, errors) = system("run", &options, &["copy", from.to_str().unwrap(), "/tmp/copied"]);
    assert_eq!((status, output.as_str(), errors.as_str()), (Some(7), "", "done\n"));
    assert!(fs::read(&to).unwrap() == contents);
    assert_eq!(system("run", &[], &["signal"]).0, Some(128 + 15));
}

#[test]
#[ignore = "builds a kernel: make system-check"]
fn user_counts_are_the_engines() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), &["work"]);
    let images = table(&path, "images");
    let program = guest("ev56/system");
    let own = rows(&[
        "count",
        "--by",
        "image",
        "--format",
        "csv",
        "--clear-env",
        program.to_str().unwrap(),
        "work",
    ]);
    // The program's own instructions depend on nothing else.
    assert_eq!(number(&images, "system", "instructions"), number(&own, "system", "instructions"));
    let user = number(&table(&path, "modes"), "user", "instructions") as f64;
    let engine = number(&own, "total", "instructions") as f64;
    assert!((user / engine - 1.0).abs() < 0.0005, "{user} {engine}");
}

#[test]
#[ignore = "builds a kernel: make system-check"]
fn counts_of_two_runs_are_equal() {
    let count = || {
        let options = ["--table", "entries", "--format", "csv"];
        let (status, output, errors) = system("count", &options, &["calls"]);
        assert_eq!(status, Some(7), "{errors}");
        output
    };
    let first = count();
    assert_eq!(first, count());
    assert!(first.contains("system call"), "{first}");
}

#[test]
#[ignore = "builds a kernel: make system-check"]
fn counts_are_those_of_a_trace() {
    const TABLES: &str = "modes,entries,system-call-costs,threads,images,functions,groups,instructions";
    let folder = tempfile::tempdir().unwrap();
    // They wait for nothing, so that two recordings are equal.
    for word in ["calls", "unaligned"] {
        let path = trace(folder.path(), &[word]);
        for name in TABLES.split(',') {
            let (_, counted, errors) = system("count", &["--table", name, "--format", "csv"], &[word]);
            let counted: Vec<Vec<String>> =
                counted.lines().map(|line| line.split(',').map(Into::into).collect()).collect();
            assert_eq!(counted, table(&path, name), "{word} {name} {errors}");
        }
    }
}

#[test]
#[ignore = "builds a kernel: make system-check"]
fn system_calls_and_exceptions_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let calls = table(&trace(folder.path(), &["calls"]), "system-call-costs");
    assert_eq!(number(&calls, "getxpid", "calls"), 1000, "{calls:?}");
    let entries = table(&trace(folder.path(), &["unaligned"]), "entries");
    assert_eq!(number(&entries, "unaligned access", "entries"), 50, "{entries:?}");
    assert!(number(&entries, "page fault", "entries") > 10);
}

#[test]
#[ignore = "builds a kernel: make system-check"]
fn processes_have_streams_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), &["fork"]);
    let threads = table(&path, "threads");
    let instructions: Vec<u64> = threads[1..].iter().filter_map(|row| row[2].parse().ok()).collect();
    let working = instructions.iter().filter(|&&count| count > 1_000_000).count();
    // Three children, and the total.
    assert_eq!(working, 4, "{threads:?}");
    let switches = table(&path, "entries");
    assert!(number(&switches, "clock interrupt", "entries") > 0, "{switches:?}");
}

#[test]
#[ignore = "builds a kernel: make system-check"]
fn units_of_work_are_the_engines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("units.trace");
    let options = ["-o", path.to_str().unwrap(), "--unit", "step", "--skip", "1", "--units", "2"];
    assert_eq!(system("trace", &options, &["steps"]).0, Some(7));
    let check = Command::new(env!("CARGO_BIN_EXE_pathlength")).arg("check").arg(&path).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    let units = table(&path, "units");
    let numbers: Vec<_> = units[1..].iter().map(|row| (row[0].as_str(), row[4].as_str())).collect();
    assert_eq!(numbers, [("1", "return"), ("2", "return")], "{units:?}");
    // The program's part is what the engine counts, call by call.
    let own = folder.path().join("own.trace");
    let program = guest("ev56/system");
    let mut engine = Command::new(env!("CARGO_BIN_EXE_pathlength"));
    engine.args(["trace", "--clear-env", "--unit", "step", "--skip", "1", "--units", "2", "-o"]).arg(&own);
    assert_eq!(engine.arg(program).arg("steps").status().unwrap().code(), Some(1));
    let user = number(&table(&path, "modes"), "user", "instructions");
    assert_eq!(user, number(&table(&own, "images"), "total", "instructions"));
}

#[test]
#[ignore = "builds a kernel: make system-check"]
fn a_part_between_places_is_the_engines() {
    let folder = tempfile::tempdir().unwrap();
    let (path, own) = (folder.path().join("part.trace"), folder.path().join("own.trace"));
    let part = ["--from", "step+0x14", "--until", "getppid"];
    assert_eq!(
        system("trace", &[&["-o", path.to_str().unwrap()], &part[..]].concat(), &["steps"]).0,
        Some(7)
    );
    let mut engine = Command::new(env!("CARGO_BIN_EXE_pathlength"));
    engine.args(["trace", "--clear-env", "-o"]).arg(&own).args(part).arg(guest("ev56/system")).arg("steps");
    assert_eq!(engine.status().unwrap().code(), Some(1));
    let user = number(&table(&path, "modes"), "user", "instructions");
    assert_eq!(user, number(&table(&own, "images"), "total", "instructions"));
    assert!(user > 300, "{user}");
}

#[test]
#[ignore = "builds a kernel: make system-check"]
fn a_name_that_no_image_has_is_refused() {
    let (status, _, errors) = system("count", &["--unit", "no_such_function"], &["steps"]);
    assert!(status == Some(1) && errors.contains("has a function 'no_such_function'"), "{errors}");
}

#[test]
#[ignore = "builds a kernel: make system-check"]
fn a_disk_input_and_a_program_in_the_background_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input");
    fs::write(&input, "some words\n").unwrap();
    let options = ["--disk", "32M:/disk", "--stdin", input.to_str().unwrap()];
    assert_eq!(system("run", &options, &["echo"]).1, "some words\n");
    let copied = folder.path().join("copied");
    let take = format!("/disk/copied:{}", copied.display());
    let file = format!("{}:/disk/input", input.display());
    let (status, ..) = system(
        "run",
        &["--disk", "32M:/disk", "--file", &file, "--take", &take],
        &["copy", "/disk/input", "/disk/copied"],
    );
    assert_eq!((status, fs::read(&copied).unwrap().as_slice()), (Some(7), &b"some words\n"[..]));
    let background = format!("{} wait /tmp/ready", guest("ev56/system").display());
    let options = ["--background", &background, "--await", "/tmp/ready", "--user", "1000"];
    assert_eq!(system("run", &options, &["is-there", "/tmp/ready"]).1, "0 1000\n");
}

#[test]
#[ignore = "builds a kernel: make system-check"]
fn several_processors_execute_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("four.trace");
    let options = ["--processors", "4", "-o", path.to_str().unwrap()];
    let (status, _, errors) = system("trace", &options, &["fork"]);
    assert!(status == Some(7) && !errors.contains("transfers of control"), "{status:?} {errors}");
    let engine = rows(&["show", path.to_str().unwrap(), "--table", "modes", "--format", "csv"]);
    let one = trace(folder.path(), &["fork"]);
    let (four, one) =
        (number(&engine, "user", "instructions"), number(&table(&one, "modes"), "user", "instructions"));
    assert!((four as f64 / one as f64 - 1.0).abs() < 0.001, "{four} {one}");
}
