//! The whole loop of `pathlength spike` with its database on a real program of two images: TPC-B on SQLite.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use workloads::build::{BuildFolders, build};
use workloads::toolchain::{BYTE_WORD, NATIVE};
use workloads::workload::Workload;

use crate::spike_environment::Workplace;

const LIBRARY: &str = "libsqlite3.so";

/// A folder with the program, its library, and a loaded database.
fn workplace() -> Workplace {
    let workload = Workload::named("tpcb").expect("the workload");
    let options = BuildFolders { folder: testing::builds(), sources: None };
    let builds = build(workload, &[NATIVE, BYTE_WORD], &options, &|_| {}).expect("the workload builds");
    let place = Workplace::empty();
    for image in &builds[1].images {
        fs::copy(image, place.path(image.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    let mut load = Command::new(&builds[0].program);
    load.arg("load").arg(place.path("loaded.db")).args(["--branches", "1", "--accounts-per-branch", "500"]);
    assert!(load.output().unwrap().status.success());
    place
}

/// A command with transactions on a copy of the database.
fn transactions(place: &Workplace, command: &[&str], database: &str, number: &str) -> Command {
    fs::copy(place.path("loaded.db"), place.path(database)).unwrap();
    let run = ["./tpcb", "run", database, "--transactions", number, "--seed", "3"];
    place.command(&[command, &run].concat())
}

/// What the transactions print, and the bytes of the database after them.
struct Outcome {
    printed: String,
    database: Vec<u8>,
}

impl Outcome {
    fn of(place: &Workplace, command: &[&str]) -> Outcome {
        let output = transactions(place, command, "run.db", "40").output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains("consistent"), "{printed}");
        Outcome { printed, database: fs::read(place.path("run.db")).unwrap() }
    }

    /// The same but for the time of each transaction, a number of four bytes.
    fn is_like(&self, other: &Outcome) -> bool {
        let bytes = self.database.iter().zip(&other.database);
        let different = bytes.filter(|(a, b)| a != b).count();
        self.printed == other.printed && self.database.len() == other.database.len() && different <= 4 * 40
    }
}

/// The instructions of the profile of the library.
fn collected(place: &Workplace) -> u64 {
    place.image("tpcb", LIBRARY, "profiled instructions").parse().unwrap()
}

#[test]
fn sqlite_is_registered_profiled_optimized_and_exported() {
    let place = workplace();
    let expected = Outcome::of(&place, &["run"]);
    place.succeed(&["spike", "register", "./tpcb"]);
    assert_eq!(place.image("tpcb", LIBRARY, "role"), "linked");
    let original = fs::read(place.path(LIBRARY)).unwrap();

    assert!(
        Outcome::of(&place, &["spike", "collect"]).is_like(&expected),
        "instrumented images do something else"
    );
    let once = collected(&place);
    assert!(once > 1_000_000, "{once}");
    // Several at once, each of the same transactions, and one that is killed in the middle.
    place.succeed(&["spike", "use", "tpcb", "instrumented"]);
    let start = |name: &str, number: &str| -> Child {
        let mut run = transactions(&place, &["spike", "run"], name, number);
        run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut runs = ["a.db", "b.db", "c.db"].map(|name| start(name, "40"));
    let mut killed = start("d.db", "1000000");
    assert!(runs.iter_mut().all(|run| run.wait().unwrap().success()));
    // It executes transactions when its database is written to.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !place.path("d.db-journal").exists() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let all = collected(&place);
    assert!(all > 4 * once, "{once} {all}");

    place.succeed(&["spike", "optimize", "tpcb"]);
    for image in ["tpcb", LIBRARY] {
        assert_eq!(place.image("tpcb", image, "optimized"), "yes", "{image}");
    }
    assert!(Outcome::of(&place, &["spike", "run"]).is_like(&expected), "optimized images do something else");
    // What is exported does the same without the database, with fewer instructions.
    fs::create_dir(place.path("exported")).unwrap();
    place.succeed(&["spike", "export", "tpcb", "-o", "exported"]);
    assert_eq!(fs::read(place.path(LIBRARY)).unwrap(), original);
    let executed = || -> u64 {
        let _ = fs::remove_file(place.path("counts.csv"));
        let output = transactions(
            &place,
            &["count", "--by", "image", "--format", "csv", "-o", "counts.csv"],
            "run.db",
            "40",
        )
        .output();
        assert!(output.unwrap().status.success());
        let table = fs::read_to_string(place.path("counts.csv")).unwrap();
        let line =
            table.lines().find_map(|line| line.strip_prefix("total,")).unwrap_or_else(|| panic!("{table}"));
        line.split(',').next().unwrap().parse().unwrap()
    };
    let before = executed();
    for image in ["tpcb", LIBRARY] {
        fs::copy(place.path("exported").join(image), place.path(image)).unwrap();
    }
    assert!(Outcome::of(&place, &["run"]).is_like(&expected), "exported images do something else");
    let after = executed();
    assert!(after < before - before / 50, "{before} instructions became {after}");

    place.succeed(&["spike", "remove", "tpcb"]);
    assert!(!place.output(&["spike", "list"]).contains("tpcb"));
    assert!(!place.files().iter().any(|path| path.ends_with(LIBRARY)), "files of a removed application");
}
