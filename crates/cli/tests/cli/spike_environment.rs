//! The commands of `pathlength spike` with its database: registered applications, and the substitution of their images.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use spike::profile::{ImageProfile, ImageProfiles};
use tempfile::TempDir;

use crate::support::csv;

const SWITCHES: [&str; 3] = ["-O2", "-mcpu=ev56", "-Wl,--emit-relocs"];

/// A function NAME for a library, with branches that a profile decides.
const LIBRARY: &str = "
long NAME(long limit) {
    long sum = 0;
    for (long i = 0; i < limit; i++) sum += i % 7 ? i : -i;
    return sum;
}
";

/// A program of one image that executes the same in each run, N times a loop of its own.
const LOOP: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static long __attribute__((noipa)) rare(long a) { return a * 3 - 1; }
static long __attribute__((noipa)) step(long a, long i) { return i % 10 == 9 ? rare(a) : a + i; }
static long __attribute__((noipa)) other(long a) { for (long i = 0; i < 5; i++) a ^= a << 1; return a; }
int main(int count, char **arguments) {
    long limit = count > 1 ? atol(arguments[1]) : 1000, a = 0;
    for (long i = 0; i < limit; i++) a = step(a, i);
    printf("%ld\n", other(a));
    return 0;
}
"#;

/// A folder with programs and a database.
pub struct Workplace {
    folder: TempDir,
}

impl Workplace {
    /// With the program `sees`, its library and its plugin.
    pub fn new() -> Workplace {
        let place = Workplace::empty();
        place.copy("sees.c");
        for (name, file) in [("linked", "liblinked.so"), ("plugin", "plugin.so")] {
            place.library(name, file, LIBRARY);
        }
        place.compile("sees.c", "sees", &["-L.", "-llinked", "-Wl,-rpath,$ORIGIN"]);
        place
    }

    /// With the program `loop`.
    fn with_loop() -> Workplace {
        let place = Workplace::empty();
        place.write("loop.c", LOOP);
        place.compile("loop.c", "loop", &[]);
        place
    }

    pub fn empty() -> Workplace {
        Workplace { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Brings the source of a guest.
    fn copy(&self, name: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/guests").join(name);
        std::fs::copy(source, self.path(name)).unwrap();
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn library(&self, name: &str, file: &str, source: &str) {
        let text = source.replace("NAME", name);
        self.write(&format!("{name}.c"), &text);
        self.compile(&format!("{name}.c"), file, &["-fPIC", "-shared", &format!("-Wl,-soname,{file}")]);
    }

    fn compile(&self, source: &str, output: &str, more: &[&str]) {
        let mut command = Command::new("alpha-linux-gnu-gcc");
        command.current_dir(self.folder.path()).args(SWITCHES).args([source, "-o", output]).args(more);
        assert!(command.status().unwrap().success());
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pathlength"));
        command.current_dir(self.folder.path()).args(words).env("XDG_DATA_HOME", self.path("data"));
        command.env("PLUGIN", self.path("plugin.so"));
        command
    }

    fn pathlength(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// The output of a command that succeeds, and what it says beside that.
    pub fn succeed(&self, words: &[&str]) -> (String, String) {
        let output = self.pathlength(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{words:?}: {said}");
        (String::from_utf8(output.stdout).unwrap(), said)
    }

    pub fn output(&self, words: &[&str]) -> String {
        self.succeed(words).0
    }

    fn fail(&self, words: &[&str]) -> String {
        let output = self.pathlength(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn start(&self, words: &[&str]) -> Child {
        self.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// A column of the images of an application, by their names.
    fn images(&self, application: &str, column: &str) -> Vec<(String, String)> {
        let table = self.output(&["spike", "list", application, "--format", "csv"]);
        let rows = csv(&table);
        let at = rows[0].iter().position(|name| name == column).unwrap();
        let name = |path: &str| path.rsplit('/').next().unwrap().to_string();
        rows[1..].iter().map(|row| (name(&row[0]), row[at].clone())).collect()
    }

    pub fn image(&self, application: &str, image: &str, column: &str) -> String {
        let images = self.images(application, column);
        images.into_iter().find(|(name, _)| name == image).unwrap_or_else(|| panic!("no {image}")).1
    }

    /// The profile of an image in the database.
    fn exported(&self, application: &str) -> ImageProfile {
        self.succeed(&["spike", "export", application, "--profile", "exported.profile"]);
        ImageProfiles::open(&self.path("exported.profile")).unwrap().images.swap_remove(0)
    }

    /// The exact profile of a run of `loop`.
    fn exact(&self, limit: &str) -> ImageProfile {
        self.succeed(&["spike", "profile", "--replace", "-o", "exact.profile", "./loop", limit]);
        ImageProfiles::open(&self.path("exact.profile")).unwrap().images.swap_remove(0)
    }

    /// All files of the database's folder.
    pub fn files(&self) -> Vec<PathBuf> {
        let (mut folders, mut files) = (vec![self.path("data")], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() { &mut folders } else { &mut files }.push(entry);
            }
        }
        files
    }

    fn file(&self, ending: &str) -> PathBuf {
        let found = self.files().into_iter().find(|path| path.ends_with(ending));
        found.unwrap_or_else(|| panic!("no file {ending}"))
    }
}

/// The blocks and branches of all procedures with counters, whose executions have been counted `times` times.
fn counts(profile: &ImageProfile, times: u64) -> Vec<String> {
    let start_files = ["_init", "_fini", "__start"];
    let has_counters = |name: &str| !name.starts_with("sub_") && !start_files.contains(&name);
    let procedures =
        profile.procedures.iter().filter(|one| !one.blocks.is_empty() && has_counters(&one.name));
    procedures
        .map(|one| {
            let blocks: Vec<u64> = one.blocks.iter().map(|count| count * times).collect();
            let taken: Vec<_> = one.taken.iter().map(|&(block, count)| (block, count * times)).collect();
            format!("{}: blocks {blocks:?}, taken {taken:?}", one.name)
        })
        .collect()
}

#[test]
fn programs_see_the_originals_whatever_is_executed() {
    let place = Workplace::new();
    let expected = place.output(&["run", "./sees", "2"]);
    assert!(expected.contains("system 0") && expected.contains("argument renamed"), "{expected}");
    let (_, said) = place.succeed(&["spike", "register", "./sees"]);
    assert!(said.contains("with 3 images"), "{said}");
    let (output, said) = place.succeed(&["spike", "collect", "./sees", "2"]);
    assert_eq!(output, expected);
    assert!(said.contains("plugin.so: profile of "), "{said}");
    let roles = place.images("sees", "role");
    assert!(roles.contains(&("plugin.so".into(), "loaded".into())), "{roles:?}");
    // The program, two generations of children, and the one that the host's shell started.
    for image in ["sees", "liblinked.so", "plugin.so"] {
        assert_eq!(place.image("sees", image, "loads"), "4", "{image}");
    }
    place.succeed(&["spike", "optimize", "sees"]);
    for image in ["sees", "liblinked.so", "plugin.so"] {
        assert_eq!(place.image("sees", image, "optimized"), "yes", "{image}");
    }
    assert_eq!(place.output(&["spike", "run", "./sees", "2"]), expected);
    assert_eq!(place.output(&["spike", "run", "--version", "original", "./sees", "2"]), expected);
    assert_eq!(place.output(&["spike", "run", "--version", "instrumented", "./sees", "2"]), expected);
    assert_eq!(place.image("sees", "sees", "loads"), "8");
}

#[test]
fn optimized_images_are_what_is_executed() {
    let place = Workplace::with_loop();
    place.succeed(&["spike", "register", "./loop"]);
    place.succeed(&["spike", "collect", "./loop", "1000"]);
    place.succeed(&["spike", "optimize", "loop"]);
    // A version that exits at once betrays itself.
    let version = place.file("optimized/loop");
    place.write("exits.c", "int main(void) { return 42; }");
    place.compile("exits.c", version.to_str().unwrap(), &[]);
    assert_eq!(place.pathlength(&["spike", "run", "./loop"]).status.code(), Some(42));
    assert_eq!(place.pathlength(&["spike", "run", "/bin/sh", "-c", "exec ./loop"]).status.code(), Some(42));
    assert_eq!(place.pathlength(&["run", "./loop"]).status.code(), Some(0));
    symlink("loop", place.path("link")).unwrap();
    assert_eq!(place.pathlength(&["spike", "run", "./link"]).status.code(), Some(42));
    place.succeed(&["spike", "use", "loop", "original"]);
    assert_eq!(place.pathlength(&["spike", "run", "./loop"]).status.code(), Some(0));
    place.succeed(&["spike", "use", "./loop", "optimized"]);
    assert_eq!(place.pathlength(&["spike", "run", "./loop"]).status.code(), Some(42));
}

#[test]
fn profiles_of_many_processes_at_once_are_exact() {
    let place = Workplace::with_loop();
    place.succeed(&["spike", "register", "./loop"]);
    place.succeed(&["spike", "instrument", "loop"]);
    let mut runs: Vec<Child> = (0..12).map(|_| place.start(&["spike", "run", "./loop", "500"])).collect();
    assert!(runs.iter_mut().all(|run| run.wait().unwrap().success()));
    let (exact, exported) = (place.exact("500"), place.exported("loop"));
    assert_eq!(counts(&exported, 1), counts(&exact, 12));
    assert_eq!(exported.runs, 12);
    place.succeed(&["spike", "collect", "./loop", "500"]);
    assert_eq!(counts(&place.exported("loop"), 1), counts(&exact, 13));
    place.succeed(&["spike", "instrument", "loop", "--replace"]);
    place.succeed(&["spike", "collect", "./loop", "500"]);
    assert_eq!(counts(&place.exported("loop"), 1), counts(&exact, 1));
}

#[test]
fn a_database_is_made_by_the_first_of_many() {
    for _ in 0..4 {
        let place = Workplace::empty();
        let mut lists: Vec<Child> = (0..8).map(|_| place.start(&["spike", "list"])).collect();
        assert!(lists.iter_mut().all(|list| list.wait().unwrap().success()));
    }
}

#[test]
fn threads_load_and_fork_at_once() {
    let place = Workplace::new();
    place.copy("busy.c");
    place.compile("busy.c", "busy", &["-pthread"]);
    assert_eq!(place.output(&["run", "./busy"]), "done\n");
    place.succeed(&["spike", "register", "./busy"]);
    assert_eq!(place.output(&["spike", "collect", "./busy"]), "done\n");
    assert_eq!(place.image("busy", "busy", "loads"), "31");
    place.succeed(&["spike", "optimize", "busy"]);
    assert_eq!(place.output(&["spike", "run", "./busy"]), "done\n");
}

#[test]
fn killed_programs_have_profiles() {
    let place = Workplace::with_loop();
    place.succeed(&["spike", "register", "./loop"]);
    place.succeed(&["spike", "instrument", "loop"]);
    for milliseconds in [200, 300, 400, 500] {
        let mut run = place.start(&["spike", "run", "./loop", "1000000000000"]);
        std::thread::sleep(Duration::from_millis(milliseconds));
        run.kill().unwrap();
        run.wait().unwrap();
    }
    let executed =
        |place: &Workplace| place.image("loop", "loop", "profiled instructions").parse::<u64>().unwrap();
    let collected = executed(&place);
    assert!(collected > 1000, "{collected}");
    assert_eq!(executed(&place), collected);
    place.succeed(&["spike", "optimize", "loop"]);
    assert_eq!(place.output(&["spike", "run", "./loop"]), place.output(&["run", "./loop"]));
}

#[test]
fn killed_commands_leave_a_consistent_database() {
    let place = Workplace::new();
    let expected = place.output(&["run", "./sees", "0"]);
    place.succeed(&["spike", "register", "./sees"]);
    let mut generator = fastrand::Rng::with_seed(7);
    for round in 0..testing::sample(12, 120) {
        let words: &[&str] = match round % 3 {
            0 => &["spike", "instrument", "sees", "--replace"],
            1 => &["spike", "collect", "./sees", "1"],
            _ => &["spike", "optimize", "sees"],
        };
        let mut command = place.start(words);
        std::thread::sleep(Duration::from_millis(generator.u64(0..400)));
        command.kill().unwrap();
        command.wait().unwrap();
        let output = place.output(&["spike", "run", "./sees", "0"]);
        assert_eq!(output, expected, "round {round}");
    }
    place.succeed(&["spike", "collect", "./sees", "0"]);
    place.succeed(&["spike", "optimize", "sees"]);
    assert_eq!(place.output(&["spike", "run", "./sees", "0"]), expected);
    let unfinished = |path: &PathBuf| path.to_string_lossy().contains(".unfinished-");
    assert_eq!(place.files().into_iter().find(unfinished), None);
}

#[test]
fn a_changed_original_keeps_its_profile() {
    let place = Workplace::with_loop();
    place.succeed(&["spike", "register", "./loop"]);
    place.succeed(&["spike", "collect", "./loop", "3000"]);
    place.succeed(&["spike", "optimize", "loop"]);
    place.write("loop.c", &LOOP.replace("i < 5; i++) a ^= a << 1", "i < 9; i++) a = (a ^ a << 1) % 99"));
    place.compile("loop.c", "loop", &[]);
    let expected = place.output(&["run", "./loop"]);
    let (output, said) = place.succeed(&["spike", "run", "./loop"]);
    assert_eq!(output, expected);
    assert!(said.contains("loop has changed") && said.contains("pathlength spike optimize loop"), "{said}");
    assert!(place.image("loop", "loop", "note").contains("has changed since"));
    let (_, said) = place.succeed(&["spike", "optimize", "loop"]);
    assert!(said.contains("by the profile of an older file"), "{said}");
    assert_eq!(place.output(&["spike", "run", "./loop"]), expected);
    // A new run of the changed one is its own profile.
    place.succeed(&["spike", "collect", "./loop", "3000"]);
    let (_, said) = place.succeed(&["spike", "optimize", "loop"]);
    assert!(!said.contains("older file"), "{said}");
    assert_eq!(counts(&place.exported("loop"), 1), counts(&place.exact("3000"), 1));
}

#[test]
fn images_that_cannot_be_optimized_are_executed_themselves() {
    let place = Workplace::new();
    let strip = Command::new("alpha-linux-gnu-strip").arg(place.path("liblinked.so")).status().unwrap();
    assert!(strip.success());
    let expected = place.output(&["run", "./sees", "1"]);
    let (_, said) = place.succeed(&["spike", "register", "./sees"]);
    assert!(said.contains("liblinked.so: not optimizable: has no symbol table; do not strip it"), "{said}");
    assert_eq!(place.output(&["spike", "collect", "./sees", "1"]), expected);
    place.succeed(&["spike", "optimize", "sees"]);
    assert_eq!(place.output(&["spike", "run", "./sees", "1"]), expected);
    assert_eq!(place.image("sees", "liblinked.so", "optimized"), "no");
    // If none can be, that is an error.
    assert!(Command::new("alpha-linux-gnu-strip").arg(place.path("sees")).status().unwrap().success());
    place.succeed(&["spike", "register", "--name", "stripped", "/usr/alpha-linux-gnu/lib/libc.so.6.1"]);
    let said = place.fail(&["spike", "instrument", "stripped"]);
    assert!(said.contains("no image of 'stripped' can be instrumented: has no symbol table"), "{said}");
}

#[test]
fn a_full_disk_leaves_the_database_as_it_was() {
    let place = Workplace::new();
    let script = "mount -t tmpfs -o size=$1k none disk && shift && export XDG_DATA_HOME=$PWD/disk &&
        \"$0\" spike register ./sees && \"$0\" spike instrument sees; status=$?; \"$0\" spike list sees --format csv &&
        \"$0\" spike run ./sees 0 && exit $status";
    std::fs::create_dir(place.path("disk")).unwrap();
    let run = |kilobytes: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_pathlength"), kilobytes]);
        command.current_dir(place.folder.path()).env("PLUGIN", place.path("plugin.so")).output().unwrap()
    };
    let enough = run("10000");
    let said = String::from_utf8_lossy(&enough.stderr);
    if said.contains("unshare:") || said.contains("mount:") {
        eprintln!("skipped: this user may not mount a small file system: {said}");
        return;
    }
    assert!(enough.status.success(), "{said}");
    let expected = place.output(&["run", "./sees", "0"]);
    for kilobytes in ["150", "400"] {
        let output = run(kilobytes);
        let (shown, said) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(1), "{kilobytes}: {said}");
        assert!(said.contains("make space there and repeat the command"), "{kilobytes}: {said}");
        assert!(shown.ends_with(&expected), "{kilobytes}: {shown}");
    }
}

#[test]
fn removed_files_are_made_again_or_do_without() {
    let place = Workplace::with_loop();
    let expected = place.output(&["run", "./loop"]);
    place.succeed(&["spike", "register", "./loop"]);
    place.succeed(&["spike", "collect", "./loop", "1000"]);
    for name in ["counts", "instrumented/loop"] {
        std::fs::remove_file(place.file(name)).unwrap();
        assert_eq!(place.output(&["spike", "collect", "./loop", "1000"]), expected, "{name}");
        assert!(place.file(name).exists());
    }
    // What was collected before is not lost.
    assert_eq!(counts(&place.exported("loop"), 1), counts(&place.exact("1000"), 3));
    place.succeed(&["spike", "optimize", "loop"]);
    std::fs::remove_file(place.file("optimized/loop")).unwrap();
    let (output, said) = place.succeed(&["spike", "run", "./loop"]);
    assert_eq!(output, expected);
    assert!(said.contains("pathlength spike optimize loop makes a new one"), "{said}");
    place.succeed(&["spike", "optimize", "loop"]);
    std::fs::rename(place.path("loop"), place.path("away")).unwrap();
    assert_eq!(place.image("loop", "loop", "note"), "the file does not exist any more");
    let said = place.fail(&["spike", "optimize", "loop"]);
    assert!(said.contains("nothing was collected") || said.contains("does not exist"), "{said}");
    std::fs::rename(place.path("away"), place.path("loop")).unwrap();
    std::fs::remove_dir_all(place.path("data/pathlength/spike/images")).unwrap();
    assert_eq!(place.output(&["spike", "run", "./loop"]), expected);
    place.succeed(&["spike", "optimize", "loop"]);
    assert_eq!(place.output(&["spike", "run", "./loop"]), expected);
    place.write("data/pathlength/spike/spike.db", &"no database\n".repeat(500));
    let _ = std::fs::remove_file(place.path("data/pathlength/spike/spike.db-wal"));
    let said = place.fail(&["spike", "list"]);
    assert!(said.contains("file is not a database; name another folder with --database"), "{said}");
}

#[test]
fn exported_images_do_the_same_anywhere() {
    let place = Workplace::with_loop();
    place.succeed(&["spike", "register", "--name", "a loop", "./loop"]);
    let said = place.fail(&["spike", "export", "a loop", "-o", "out"]);
    assert!(said.contains("no image of 'a loop' is optimized"), "{said}");
    place.succeed(&["spike", "collect", "a loop", "2000"]);
    place.succeed(&["spike", "optimize", "a loop"]);
    place.succeed(&["spike", "export", "a loop", "-o", "out"]);
    assert_eq!(place.output(&["run", "out/loop"]), place.output(&["run", "./loop"]));
    let original = std::fs::read(place.path("loop")).unwrap();
    let said = place.fail(&["spike", "export", "a loop", "-o", "."]);
    assert!(said.contains("this command reads it"), "{said}");
    assert_eq!(std::fs::read(place.path("loop")).unwrap(), original);
    // The profile serves the command without a database.
    place.succeed(&["spike", "export", "a loop", "--profile", "loop.profile"]);
    place.succeed(&["spike", "optimize", "loop", "--profile", "loop.profile", "-o", "again"]);
    assert_eq!(std::fs::read(place.path("again")).unwrap(), std::fs::read(place.path("out/loop")).unwrap());
    place.succeed(&["spike", "remove", "a loop"]);
    assert!(!place.files().iter().any(|path| path.to_string_lossy().contains("images")));
    assert_eq!(place.output(&["spike", "list", "--format", "csv"]).lines().count(), 1);
}

#[test]
fn mistakes_are_explained() {
    let place = Workplace::with_loop();
    let message = |words: &[&str], expected: &str| {
        let said = place.fail(words);
        assert!(said.contains(expected), "{words:?}: {said}");
    };
    message(
        &["spike", "instrument", "loop"],
        "no application 'loop' is registered; pathlength spike register PROGRAM",
    );
    message(&["spike", "register", "./none"], "./none: there is no such file");
    message(&["spike", "register", "loop.c"], "loop.c");
    place.succeed(&["spike", "register", "./loop"]);
    message(&["spike", "register", "./loop"], "is registered already, as 'loop'");
    message(
        &["spike", "optimize", "loop"],
        "nothing was collected of 'loop'; run it with pathlength spike collect",
    );
    message(&["spike", "export", "loop", "--profile", "out"], "nothing was collected of 'loop'");
    message(&["spike", "use", "loop", "optimized"], "no image of 'loop' is optimized");
    message(&["spike", "remove", "other"], "no application 'other' is registered (there are loop)");
    let status = |program: &str| place.pathlength(&["spike", "run", program]).status.code();
    assert_eq!(
        [status("nothing"), status("./nothing"), status("./loop.c")],
        [Some(127), Some(127), Some(126)]
    );
    message(&["spike", "list", "--database", "loop.c"], "loop.c: File exists");
    std::fs::copy(place.path("loop"), place.path("copy")).unwrap();
    message(
        &["spike", "register", "--name", "loop", "./copy"],
        "an application 'loop' is registered already",
    );
}
