//! `spike instrument`, and profiles from the counts of instrumented images.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use spike::optimize;
use spike::profile::{ImageProfile, ImageProfiles};

use crate::support::{Outcome, outcome, pathlength};

/// A folder with a guest that can be instrumented.
pub struct Guest {
    /// The folder; the guest is `guest`.
    pub folder: tempfile::TempDir,
}

impl Guest {
    /// Compiles it.
    pub fn new(source: &str, switches: &[&str]) -> Guest {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let mut command = Command::new("alpha-linux-gnu-gcc");
        command
            .args(["-w", "-mcpu=ev56", "-pthread", "-Wl,--emit-relocs", "-o"])
            .arg(folder.path().join("guest"));
        let made =
            command.args(switches).arg(source).output().expect("the cross compiler is needed: run ./setup");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Guest { folder }
    }

    /// The path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the command in the folder.
    pub fn run(&self, words: &str) -> Outcome {
        let mut command = pathlength(words.split_whitespace());
        command.current_dir(self.folder.path());
        outcome(command)
    }

    /// Runs a program under qemu-alpha.
    pub fn qemu(&self, words: &str) {
        let mut command = Command::new("qemu-alpha");
        command.env("QEMU_LD_PREFIX", "/usr/alpha-linux-gnu").current_dir(self.folder.path());
        command.args(words.split_whitespace()).output().expect("qemu-alpha is needed: run ./setup");
    }

    fn profile(&self, name: &str) -> ImageProfile {
        ImageProfiles::open(&self.path(name))
            .unwrap()
            .images
            .into_iter()
            .find(|image| image.name == "guest")
            .unwrap()
    }

    /// Checks that two profiles are the same but for procedures that cannot be changed.
    pub fn assert_same(&self, one: &str, other: &str) {
        let program = optimize::open(&self.path("guest")).unwrap();
        let (one, other) = (self.profile(one), self.profile(other));
        let mut executed = 0;
        for ((a, b), procedure) in one.procedures.iter().zip(&other.procedures).zip(&program.procedures) {
            if procedure.frozen.is_none() {
                assert_eq!((&a.blocks, &a.taken, &a.jumps), (&b.blocks, &b.taken, &b.jumps), "{}", a.name);
                executed += a.blocks.iter().sum::<u64>();
            }
        }
        assert!(executed > 100, "only {executed} blocks were executed");
    }
}

#[test]
fn counts_equal_the_engines() {
    let guests = [
        ("tests/cli/guests/modes.c", "work"),
        ("tests/cli/guests/calls.c", ""),
        ("tests/cli/guests/heap.c", ""),
        ("../spike/tests/programs/counted.c", "x"),
        ("../spike/tests/programs/counted.c", "e"),
        ("../spike/tests/programs/counted.c", "j"),
    ];
    for (source, arguments) in guests {
        for level in ["-O0", "-O2"] {
            let guest = Guest::new(source, &[level, "-fno-builtin"]);
            assert_eq!(guest.run("spike instrument guest -o counting").code(), 0);
            guest.run(&format!("spike profile -o engine guest {arguments}"));
            guest.qemu(&format!("counting {arguments}"));
            guest.run("spike profile -o qemu --from-counts counting.counts guest");
            guest.assert_same("engine", "qemu");
            // Under the engine, too, which adds to the same file.
            guest.run(&format!("run counting {arguments}"));
            guest.run(&format!("spike profile -o engine guest {arguments}"));
            guest.run("spike profile -o both --from-counts counting.counts guest");
            guest.assert_same("engine", "both");
        }
    }
}

#[test]
fn other_counts_are_refused() {
    let guest = Guest::new("tests/cli/guests/modes.c", &["-O2"]);
    assert_eq!(guest.run("spike instrument guest -o counting --counts numbers").code(), 0);
    let other = Guest::new("tests/cli/guests/calls.c", &["-O2"]);
    fs::copy(other.path("guest"), guest.path("other")).unwrap();
    let said = guest.run("spike profile -o profile --from-counts numbers other").failure();
    assert!(said.starts_with("numbers: has the counts of another image"), "{said}");
    let said = guest.run("spike profile -o profile --from-counts guest guest").failure();
    assert!(said.starts_with("guest: is not a file of counts"), "{said}");
    let bytes = fs::read(guest.path("numbers")).unwrap();
    fs::write(guest.path("short"), &bytes[..bytes.len() / 2]).unwrap();
    let said = guest.run("spike profile -o profile --from-counts short guest").failure();
    assert!(said.contains("it was truncated"), "{said}");
    assert!(!guest.path("profile").exists());
}

#[test]
fn a_full_disk_is_an_error() {
    let guest = Guest::new("tests/cli/guests/modes.c", &["-O2"]);
    for words in ["-o /dev/full --counts numbers", "-o counting --counts /dev/full"] {
        let said = guest.run(&format!("spike instrument guest {words}")).failure();
        assert!(said.contains("/dev/full") && said.contains("No space left"), "{said}");
    }
    assert!(!guest.path("counting").exists());
}

#[test]
fn profiles_of_other_builds_are_used_and_of_other_programs_refused() {
    let old = Guest::new("../spike/tests/programs/counted.c", &["-O2"]);
    old.run("spike profile -o profile guest x");
    let new = Guest::new("../spike/tests/programs/counted.c", &["-O2", "-DADDED", "-DCHANGED"]);
    fs::copy(old.path("profile"), new.path("profile")).unwrap();
    let done = new.run("spike optimize guest --profile profile -o better");
    assert_eq!(done.code(), 0, "{}", done.stderr);
    assert!(done.stderr.contains("is of another build of guest: matched"), "{}", done.stderr);
    let [before, after] = ["guest", "better"].map(|program| new.run(&format!("run {program} x")).stdout);
    assert!(before.contains("work 1000") && before == after, "{after}");
    let other = Guest::new("tests/cli/guests/words.c", &["-O2"]);
    fs::copy(old.path("profile"), other.path("profile")).unwrap();
    let said = other.run("spike optimize guest --profile profile -o better").failure();
    assert!(said.contains("is a profile of other images"), "{said}");
}
