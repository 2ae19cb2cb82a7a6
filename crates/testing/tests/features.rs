//! What one compiles, the others share: the command, the Python extension and the tests build each dependency with the same features.
//! Otherwise most of the workspace is compiled once more for each.

use std::collections::BTreeSet;
use std::process::Command;

/// Packages with their features, as `cargo tree` shows them.
fn packages(options: &[&str]) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--format", "{p} {f}", "--prefix", "none"]).args(options);
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.trim_end_matches(" (*)").to_string()).collect()
}

#[test]
fn commands_tests_and_the_python_extension_share_their_dependencies() {
    let tests = packages(&["--workspace", "--edges", "normal,build,dev"]);
    let commands = packages(&["--workspace", "--edges", "normal,build"]);
    let extension =
        packages(&["-p", "pathlength-python", "--features", "workspace", "--edges", "normal,build"]);
    assert!(commands.len() > 100 && extension.len() > 100);
    let own = |package: &&String| !package.starts_with("pathlength-python ");
    let alone: Vec<_> = commands.union(&extension).filter(own).filter(|one| !tests.contains(*one)).collect();
    assert!(
        alone.is_empty(),
        "give these the features that the tests have (python/Cargo.toml, \"workspace\"): {alone:#?}"
    );
}
