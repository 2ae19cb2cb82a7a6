//! `pathlength profile` and `pathlength spike optimize`, as their users meet them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A program whose cold path, taken for the argument `cold`, needs registers that the hot one does not.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static long __attribute__((noipa)) slow(long *all, long value) {
    for (long i = 0; i < 64; i++) all[i] = labs(all[i]) - (i ^ labs(value));
    return labs(value) % 64;
}
static long __attribute__((noipa)) grow(long *all, long at, long value) {
    if (at >= 64) {
        at = slow(all, value);
        value += slow(all, at);
    }
    all[at] += value * at;
    return all[at] & 3;
}
int main(int count, char **arguments) {
    static long all[64];
    long sum = 0, limit = count > 1 && !strcmp(arguments[1], "cold") ? 100 : 64;
    for (long i = 0; i < 20000; i++) sum += grow(all, i % limit, i);
    printf("%ld\n", sum);
    return 0;
}
"#;

struct Workplace {
    folder: TempDir,
}

impl Workplace {
    fn new() -> Workplace {
        let place = Workplace { folder: tempfile::tempdir().unwrap() };
        std::fs::write(place.path("program.c"), PROGRAM).unwrap();
        place.compile(&["-Wl,--emit-relocs"], "program");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn compile(&self, switches: &[&str], name: &str) {
        let mut command = Command::new("alpha-linux-gnu-gcc");
        command.args(["-O2", "-mcpu=ev56"]).args(switches);
        let status = command.arg(self.path("program.c")).arg("-o").arg(self.path(name)).status().unwrap();
        assert!(status.success());
    }

    fn pathlength(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pathlength"));
        command.current_dir(self.folder.path()).args(words).output().unwrap()
    }

    fn succeed(&self, words: &[&str]) -> String {
        let output = self.pathlength(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The message of a command that fails.
    fn fail(&self, words: &[&str]) -> String {
        let output = self.pathlength(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn profile(&self) {
        self.succeed(&["profile", "--replace", "-o", "profile", "./program"]);
    }

    fn instructions(&self, program: &str) -> u64 {
        let table = self.succeed(&["count", "--by", "image", "--format", "csv", program]);
        let row = table.lines().find(|line| line.starts_with(&program[2..])).unwrap();
        row.split(',').nth(1).unwrap().parse().unwrap()
    }
}

const OPTIMIZE: [&str; 7] = ["spike", "optimize", "./program", "--profile", "profile", "-o", "faster"];

#[test]
fn optimized_programs_are_shorter_and_do_the_same() {
    let place = Workplace::new();
    place.profile();
    let report = place.succeed(&OPTIMIZE);
    assert!(report.contains("saves and restores of registers"), "{report}");
    for argument in ["hot", "cold"] {
        let expected = place.succeed(&["run", "./program", argument]);
        assert_eq!(place.succeed(&["run", "./faster", argument]), expected);
    }
    let (before, after) = (place.instructions("./program"), place.instructions("./faster"));
    assert!(after * 100 < before * 95, "{before} instructions became {after}");
}

#[test]
fn each_step_and_optimization_can_be_chosen() {
    let place = Workplace::new();
    place.profile();
    let expected = place.succeed(&["run", "./program", "cold"]);
    for options in [
        ["--layout", "none"],
        ["--layout", "split,order"],
        ["--optimizations", "none"],
        ["--blocks", "ext-tsp"],
    ] {
        let report = place.succeed(&[OPTIMIZE.as_slice(), &options].concat());
        let is_none = options == ["--optimizations", "none"];
        assert_eq!(report.contains("optimized"), !is_none, "{options:?}: {report}");
        assert_eq!(place.succeed(&["run", "./faster", "cold"]), expected, "{options:?}");
    }
    let rows = place.succeed(&[OPTIMIZE.as_slice(), &["--by", "procedure", "--format", "csv"]].concat());
    assert!(rows.lines().any(|line| line.starts_with("grow,optimized,")), "{rows}");
}

#[test]
fn profiles_add_up_and_traces_give_the_same() {
    let place = Workplace::new();
    place.profile();
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(place.path(name)).unwrap()).unwrap()
    };
    let once = read("profile");
    place.succeed(&["trace", "-o", "all.trace", "./program"]);
    place.succeed(&["profile", "-o", "traced", "all.trace"]);
    assert_eq!(read("traced"), once);
    place.succeed(&["profile", "-o", "profile", "./program"]);
    let twice = read("profile");
    let blocks = |profile: &serde_json::Value| -> Vec<u64> {
        let procedures = profile["images"][0]["procedures"].as_array().unwrap();
        let grow = procedures.iter().find(|one| one["name"] == "grow").unwrap();
        grow["blocks"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect()
    };
    assert!(blocks(&once).contains(&20000), "{:?}", blocks(&once));
    assert_eq!(blocks(&twice), blocks(&once).iter().map(|count| count * 2).collect::<Vec<_>>());
}

#[test]
fn refusals_say_what_to_do_and_leave_no_file() {
    let place = Workplace::new();
    place.profile();
    place.compile(&[], "unsuitable");
    let refused = place.fail(&["spike", "optimize", "./unsuitable", "--profile", "profile", "-o", "faster"]);
    assert!(refused.contains("--emit-relocs"), "{refused}");
    place.compile(&["-Wl,--emit-relocs", "-O0"], "other");
    let foreign = place.fail(&["spike", "optimize", "./other", "--profile", "profile", "-o", "faster"]);
    assert!(foreign.contains("is a profile of other images (program)"), "{foreign}");
    let missing = place.fail(&["spike", "optimize", "./nowhere", "--profile", "profile", "-o", "faster"]);
    assert!(missing.contains("there is no such file"), "{missing}");
    std::fs::write(place.path("empty"), "").unwrap();
    let empty = place.fail(&["spike", "optimize", "./program", "--profile", "empty", "-o", "faster"]);
    assert!(empty.contains("is not a profile") && empty.contains("pathlength profile"), "{empty}");
    assert!(!Path::new(&place.path("faster")).exists());
    let onto_itself =
        place.fail(&["spike", "optimize", "./program", "--profile", "profile", "-o", "program"]);
    assert!(onto_itself.contains("program"), "{onto_itself}");
    place.succeed(&OPTIMIZE);
    let again = place.fail(&["spike", "optimize", "./faster", "--profile", "profile", "-o", "fastest"]);
    assert!(again.contains("was optimized or instrumented already"), "{again}");
    let unsuitable = place.fail(&["profile", "-o", "none", "./unsuitable"]);
    assert!(unsuitable.contains("no image that was executed can be optimized"), "{unsuitable}");
}
