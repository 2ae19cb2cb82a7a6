//! The study, on sections that are small.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use crate::guard::guard_or_skip;

#[test]
fn a_study_measures_all_and_gives_its_memory_back() {
    let guard = guard_or_skip!();
    let csv = guard.folder().join("study.csv");
    let table = guard.said(&[
        "study",
        "--sizes",
        "8M,16M",
        "--processes",
        "1,3",
        "--format",
        "csv",
        "-o",
        csv.to_str().unwrap(),
    ]);
    assert_eq!(fs::read_to_string(csv).unwrap(), table);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 1 + 2 * 3 * 2);
    // Less than a GiB is not shared: each process has a fault for each page.
    let faults = |row: &[&str]| {
        row[rows[0].iter().position(|name| *name == "faults_by_process").unwrap()].parse::<u64>().unwrap()
    };
    let huge: Vec<u64> =
        rows[1..].iter().filter(|row| row[0].contains("2 MiB")).map(|row| faults(row)).collect();
    assert_eq!(huge, [4, 4, 4, 4, 8, 8, 8, 8]);
    let small = rows[1..].iter().filter(|row| row[0].contains("4 KiB"));
    assert!(small.map(|row| faults(row)).all(|faults| faults >= 8 << 20 >> 16), "{table}");
    assert_eq!(guard.counts(), guard.before());
}

#[test]
fn an_interrupted_study_gives_its_memory_back() {
    let guard = guard_or_skip!();
    let sizes = ["8M"; 1000].join(",");
    let mut command = guard.command(&["study", "--sizes", &sizes, "--processes", "1"]);
    let child =
        command.env("TMPDIR", guard.folder()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    // SAFETY: The child is this test's, and was not waited for.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("was interrupted"), "{output:?}");
    assert_eq!(guard.counts(), guard.before());
}
