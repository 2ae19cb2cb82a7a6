//! The graphics library: its special vertex paths, its pictures, and its server.

use std::path::Path;
use std::process::Command;

/// Masks of conditions whose paths are compiled in the short test: every condition occurs, alone or with others.
const SAMPLE: [&str; 8] = ["0", "1", "3", "12", "243", "268", "524", "1023"];

#[test]
fn special_paths_equal_the_generic_one_and_pictures_are_those_of_mesa_by_every_way() {
    let folder = tempfile::tempdir().unwrap();
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/graphics/tests/run");
    let masks: &[&str] = testing::sample(&SAMPLE, &[]);
    let output = Command::new(run)
        .arg(folder.path())
        .args(masks)
        .env("SEQUENCES", testing::sample("200", "5000"))
        .env("SESSIONS", testing::sample("50", "2000"))
        .env("FLAGS", testing::sample("-O1", ""))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{errors}");
    assert!(!errors.contains("warning:"), "{errors}");
    let paths = testing::sample("8 paths equal", "396 paths equal");
    assert!(printed.contains(paths) && printed.contains("75 pictures are as expected"), "{printed}");
    assert!(
        printed.contains("pictures by a socket, a ring and command buffers are those drawn without a server"),
        "{printed}"
    );
    assert!(printed.contains("a server that is killed: its clients end"), "{printed}");
    // Fuzzing asserts that requests were taken, too.
    let sessions = printed.lines().find(|line| line.contains("sessions: ")).unwrap();
    let numbers: Vec<u64> = sessions.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [_, requests, commands, refused, _] = numbers[..] else { panic!("{sessions}") };
    assert!(requests > 0 && refused < requests && commands > 10 * requests, "{sessions}");
    // Two different scenes are not taken for the same picture.
    let compare = Command::new(folder.path().join("compare"))
        .args([folder.path().join("expected/smooth.ppm"), folder.path().join("special/flat.ppm")])
        .output()
        .unwrap();
    assert_eq!(compare.status.code(), Some(1));
}
