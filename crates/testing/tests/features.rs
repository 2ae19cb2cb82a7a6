//! What one compiles, the others share: the command, the Python extension and the tests build each dependency with the same features.
//! Otherwise most of the workspace is compiled once more for each.

use std::collections::BTreeSet;
use std::process::Command;

/// Packages with their features, as `cargo tree` shows them.
fn packages(options: &[&str]) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--format", "{p} {f}", "--prefix", "none"]).args(options);
    // Set, it makes every selection equal and the tests below pass, whatever the Makefile says.
    command.env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION");
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

/// Each command that compiles, in the Makefile and in scripts, without what it runs then.
fn compiling_commands() -> Vec<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let files = ["Makefile", ".ci/run", "packaging/make-dist"]
        .map(|file| std::fs::read_to_string(format!("{root}{file}")));
    let lines = files.map(|text| text.expect("a file of the workspace"));
    let lines = lines.iter().flat_map(|text| text.lines()).map(|line| line.trim().trim_start_matches('@'));
    let compiles = |line: &&str| {
        ["build", "run", "test", "clippy"].iter().any(|verb| line.starts_with(&format!("cargo {verb} ")))
    };
    lines.filter(compiles).map(|line| line.split(" -- ").next().unwrap_or_default().to_string()).collect()
}

/// What `make study` has compiled, `make bench` uses, and so on.
#[test]
fn every_target_of_the_makefile_shares_what_is_compiled() {
    let tests = packages(&["--workspace", "--edges", "normal,build,dev"]);
    let commands = compiling_commands();
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().collect();
        let own: Vec<&str> = match words.iter().position(|word| ["-p", "--package"].contains(word)) {
            Some(at) => vec!["-p", words[at + 1]],
            None => vec!["--workspace"],
        };
        let selected = packages(&[&own[..], &["--edges", "normal,build"]].concat());
        let alone: Vec<_> = selected.difference(&tests).collect();
        assert!(alone.is_empty(), "{command}: compiles these again; select with --workspace: {alone:#?}");
    }
}
