//! `pathlength spike profile` and `pathlength spike optimize`, as their users meet them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

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
    fn empty() -> Workplace {
        Workplace { folder: tempfile::tempdir().unwrap() }
    }

    fn new() -> Workplace {
        let place = Workplace::empty();
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
        self.succeed(&["spike", "profile", "--replace", "-o", "profile", "./program"]);
    }

    fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
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
    let once = place.json("profile");
    place.succeed(&["trace", "-o", "all.trace", "./program"]);
    place.succeed(&["spike", "profile", "-o", "traced", "all.trace"]);
    assert_eq!(place.json("traced"), once);
    place.succeed(&["spike", "profile", "-o", "profile", "./program"]);
    let twice = place.json("profile");
    let blocks = |profile: &serde_json::Value| -> Vec<u64> {
        let procedures = profile["images"][0]["procedures"].as_array().unwrap();
        let grow = procedures.iter().find(|one| one["name"] == "grow").unwrap();
        grow["blocks"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect()
    };
    assert!(blocks(&once).contains(&20000), "{:?}", blocks(&once));
    assert_eq!(blocks(&twice), blocks(&once).iter().map(|count| count * 2).collect::<Vec<_>>());
    // What only a later run executes is as good as in a profile of its own, for other builds, too.
    place.succeed(&["spike", "profile", "-o", "profile", "./program", "cold"]);
    place.succeed(&["spike", "profile", "-o", "cold", "./program", "cold"]);
    let shapes = |name: &str| {
        let profile = place.json(name);
        let procedures = profile["images"][0]["procedures"].as_array().unwrap();
        procedures.iter().find(|one| one["name"] == "slow").unwrap()["shapes"].clone()
    };
    assert!(shapes("cold").is_array());
    assert_eq!(shapes("profile"), shapes("cold"));
}

/// A program that works in its children, of which one works in a thread, one forks again, and one kills itself.
const FORKING: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long sum;
static void __attribute__((noipa)) work(long times) { while (times--) sum += times; }
static void *thread(void *times) { work((long)times); return 0; }
int main(void) {
    for (long child = 0; child < 4; child++) {
        if (fork()) continue;
        pthread_t one;
        if (child == 1 && !pthread_create(&one, 0, thread, (void *)500)) pthread_join(one, 0);
        if (child == 2 && !fork()) work(2000), _exit(0);
        if (child == 3) work(100000), kill(getpid(), SIGKILL);
        work(1000);
        wait(0);
        exit(0);
    }
    while (wait(0) > 0);
    return 0;
}
"#;

#[test]
fn profiles_have_forked_processes() {
    let place = Workplace::new();
    std::fs::write(place.path("program.c"), FORKING).unwrap();
    place.compile(&["-Wl,--emit-relocs"], "program");
    let output = place.pathlength(&["spike", "profile", "-o", "profile", "./program"]);
    assert!(output.status.success());
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(notes.contains("1 of 5 forked processes are not in the profile"), "{notes}");
    let profile = place.json("profile");
    let procedures = profile["images"][0]["procedures"].as_array().unwrap();
    let work = procedures.iter().find(|one| one["name"] == "work").unwrap();
    let counts = work["blocks"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap());
    assert_eq!(counts.max(), Some(1000 + 1000 + 500 + 1000 + 2000));
    let taken = work["taken"].as_array().unwrap().iter().map(|edge| edge[1].as_u64().unwrap());
    assert_eq!(taken.max(), Some(5500 - 5));
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
    assert!(empty.contains("is not a profile") && empty.contains("pathlength spike profile"), "{empty}");
    assert!(!Path::new(&place.path("faster")).exists());
    let onto_itself =
        place.fail(&["spike", "optimize", "./program", "--profile", "profile", "-o", "program"]);
    assert!(onto_itself.contains("program"), "{onto_itself}");
    place.succeed(&OPTIMIZE);
    let again = place.fail(&["spike", "optimize", "./faster", "--profile", "profile", "-o", "fastest"]);
    assert!(again.contains("was optimized or instrumented already"), "{again}");
    let unsuitable = place.fail(&["spike", "profile", "-o", "none", "./unsuitable"]);
    assert!(unsuitable.contains("no image that was executed can be optimized"), "{unsuitable}");
}

/// A profile that no run can have is refused, and devices are not read.
#[test]
fn damaged_profiles_are_refused() {
    let place = Workplace::new();
    place.profile();
    let good: serde_json::Value = place.json("profile");
    let refused = |change: &dyn Fn(&mut serde_json::Value), expected: &str| {
        let mut damaged = good.clone();
        let procedures = damaged["images"][0]["procedures"].as_array_mut().unwrap();
        change(procedures.iter_mut().find(|one| one["name"] == "grow").unwrap());
        std::fs::write(place.path("damaged"), damaged.to_string()).unwrap();
        let said = place.fail(&["spike", "optimize", "./program", "--profile", "damaged", "-o", "faster"]);
        assert!(said.contains("damaged profile") && said.contains(expected), "{said}");
    };
    refused(&|grow| grow["blocks"][0] = u64::MAX.into(), "more executions than any run");
    refused(&|grow| grow["blocks"].as_array_mut().unwrap().push(1.into()), "the counts of grow contradict");
    refused(&|grow| grow["taken"] = serde_json::json!([[1_000_000, 1]]), "the counts of grow contradict");
    let mut newer = good.clone();
    newer["version"] = 7.into();
    std::fs::write(place.path("newer"), newer.to_string()).unwrap();
    for (name, expected) in
        [("newer", "has version 7 of the format, not 1"), ("/dev/zero", "not a regular file")]
    {
        let said = place.fail(&["spike", "optimize", "./program", "--profile", name, "-o", "faster"]);
        assert!(said.contains(expected), "{said}");
    }
    let said = place.fail(&["spike", "profile", "--from-counts", "/dev/zero", "-o", "counted", "./program"]);
    assert!(said.contains("not a regular file"), "{said}");
    assert!(!place.path("faster").exists() && !place.path("counted").exists());
}

/// A full disk, and one that is too small for the image: a message, and no file.
#[test]
fn a_full_disk_gets_no_part_of_an_image() {
    let place = Workplace::new();
    place.profile();
    let message = "No space left on device";
    for words in [
        &["spike", "optimize", "./program", "--profile", "profile", "-o", "/dev/full"][..],
        &["spike", "instrument", "./program", "-o", "/dev/full", "--counts", "counts"],
        &["spike", "profile", "-o", "/dev/full", "./program"],
    ] {
        let said = place.fail(words);
        assert!(said.contains(message) && said.contains("has room"), "{said}");
    }
    assert!(!place.path("counts").exists());
    std::fs::create_dir(place.path("disk")).unwrap();
    let script = "mount -t tmpfs -o size=64k none disk && \"$0\" spike optimize ./program --profile profile -o disk/faster; \
        echo status $?; \"$0\" spike instrument ./program -o disk/counting; echo status $?; ls -A disk";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_pathlength")]);
    let output = command.current_dir(place.folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    if said.contains("unshare:") || said.contains("mount:") {
        eprintln!("skipped: this user may not mount a small file system: {said}");
        return;
    }
    assert_eq!(said.matches(message).count(), 2, "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "status 1\nstatus 1\n");
}

/// Killed at any time, the optimizer leaves the old image or the new one.
#[test]
fn a_killed_optimizer_leaves_a_whole_image() {
    let place = Workplace::new();
    place.profile();
    place.succeed(&OPTIMIZE);
    let new = std::fs::read(place.path("faster")).unwrap();
    let old = std::fs::read(place.path("program")).unwrap();
    let mut random = fastrand::Rng::with_seed(26);
    let mut finished = 0;
    for _ in 0..testing::sample(20, 400) {
        std::fs::write(place.path("faster"), &old).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_pathlength"));
        command.current_dir(place.folder.path()).args(OPTIMIZE).stdout(Stdio::null()).stderr(Stdio::null());
        let mut optimizer = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random.u64(0..60)));
        optimizer.kill().unwrap();
        optimizer.wait().unwrap();
        let left = std::fs::read(place.path("faster")).unwrap();
        assert!(left == old || left == new);
        finished += u32::from(left == new);
    }
    eprintln!("{finished} finished before they were killed");
}

/// A program with calls by a pointer, of the C library, and a `switch`.
const JUMPS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static long __attribute__((noipa)) one(long value) { return value * 3; }
static long __attribute__((noipa)) two(long value) { return value ^ 5; }
long (*volatile which)(long) = one;
int main(int count, char **arguments) {
    long sum = 0;
    unsigned seed = count;
    if (count > 9) which = two;
    for (long i = 0; i < 20000; i++) {
        sum += which(i) + rand_r(&seed);
        switch (sum & 0x3000 ? 5 : sum & 7) {
        case 0: sum += 7; break;
        case 1: sum ^= seed; break;
        case 2: sum *= 3; break;
        case 3: sum -= i; break;
        case 4: sum = -sum; break;
        case 5: sum >>= 1; break;
        default: sum++;
        }
    }
    printf("%ld\n", sum);
    return 0;
}
"#;

#[test]
fn hints_of_jumps_are_what_the_profile_says() {
    let place = Workplace::empty();
    std::fs::write(place.path("program.c"), JUMPS).unwrap();
    place.compile(&["-Wl,--emit-relocs"], "program");
    let mispredicted = |program: &str| -> u64 {
        let words = ["time", "--machine", "alphastation500", "--format", "csv", "-o", "times", program];
        place.succeed(&words);
        let table = std::fs::read_to_string(place.path("times/predictions.csv")).unwrap();
        std::fs::remove_dir_all(place.path("times")).unwrap();
        let row = table.lines().find(|line| line.starts_with("jumps,")).unwrap();
        row.split(',').nth(2).unwrap().parse().unwrap()
    };
    place.profile();
    place.succeed(&OPTIMIZE);
    let before = mispredicted("./program");
    assert!(before > 40_000, "{before}");
    let after = mispredicted("./faster");
    assert!(after * 5 < before, "{before} mispredicted jumps became {after}");
    // An instrumented image counts the last target of calls by pointers, but not where those of its slots lead.
    place.succeed(&["spike", "instrument", "./program", "-o", "counting"]);
    place.succeed(&["run", "./counting"]);
    place.succeed(&[
        "spike",
        "profile",
        "--replace",
        "--from-counts",
        "counting.counts",
        "-o",
        "profile",
        "./program",
    ]);
    place.succeed(&OPTIMIZE);
    let after = mispredicted("./faster");
    assert!(after * 3 < before * 2, "{before} mispredicted jumps became {after} by counts of an image");
}

/// The size of the largest direct-mapped cache of the machines.
const COLORS: u64 = 4 << 20;

/// Prints where the heap begins.
const HEAP: &str = "#include <stdio.h>\n#include <unistd.h>\nlong data[3000];\n\
    int main(void) { printf(\"%lu\\n\", (unsigned long)sbrk(0)); return 0; }\n";

/// Code and heap lie where they did modulo that size, so that they share cache lines with the same data as before.
#[test]
fn code_and_heap_keep_their_cache_colors() {
    let place = Workplace::empty();
    std::fs::write(place.path("program.c"), HEAP).unwrap();
    for kind in ["-no-pie", "-pie"] {
        place.compile(&["-Wl,--emit-relocs", "-fPIE", kind], "program");
        place.profile();
        place.succeed(&OPTIMIZE);
        let heap = |program: &str| place.succeed(&["run", program]).trim().parse::<u64>().unwrap();
        let (before, after) = (heap("./program"), heap("./faster"));
        assert!(before < after && before % COLORS == after % COLORS, "{kind}: {before:#x}, {after:#x}");
        let text = |program: &str| {
            let mut command = Command::new("alpha-linux-gnu-readelf");
            let output = command.arg("-SW").arg(place.path(program)).output().unwrap();
            let table = String::from_utf8(output.stdout).unwrap();
            let row = table.lines().find(|line| line.contains(" .text ")).unwrap();
            let address = row.split_whitespace().find(|word| word.len() == 16).unwrap();
            u64::from_str_radix(address, 16).unwrap()
        };
        let (before, after) = (text("program"), text("faster"));
        assert!((before - after % COLORS) % COLORS < 0x1_0000, "{kind}: {before:#x}, {after:#x}");
    }
}
