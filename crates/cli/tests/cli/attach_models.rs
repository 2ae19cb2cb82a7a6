//! `caches`, `time`, `strides` and `sharing` with `--attach`: models of running programs, which continue afterwards.

use std::fs;
use std::time::Duration;

use crate::attach_count::{Running, column, sum};
use crate::support::{csv, ends_within, outcome, pathlength, run};

/// The instructions of whole calls of `request` in a program that is observed, whose first one may have been cut.
fn lengths(units: &[Vec<String>]) -> Vec<&str> {
    column(units, "instructions")
}

#[test]
fn models_observe_a_running_program_which_goes_on() {
    let program = Running::new();
    let known =
        run("count --children --unit request --by unit --format csv :ev56/family alike").noted_success();
    let known = csv(&known);
    let cost = column(&known, "instructions")[0];
    for command in ["caches", "time"] {
        for _ in 0..2 {
            let units = program.table(command, "--children --unit request --by unit --duration 0.5");
            let lengths = lengths(&units);
            assert!(lengths.len() > 10 && lengths.iter().all(|length| *length == cost), "{lengths:?}");
        }
        let processes = program.table(command, "--children --by process --duration 0.3");
        assert_eq!(column(&processes, "process"), ["1", "2", "total"]);
        assert_eq!(column(&processes, "end")[..2], ["still runs", "still runs"]);
        let counts = column(&processes, "instructions");
        assert_eq!(sum(&counts[..2]), sum(&counts[2..]));
        assert!(counts[..2].iter().all(|count| sum(&[count]) > 100_000), "{counts:?}");
        let alone = program.table(command, "--by process --duration 0.3");
        assert_eq!(column(&alone, "process"), ["1", "total"]);
    }
    let strides = program.table("strides", "--children --by function --duration 0.3");
    let work = strides.iter().find(|row| row[0] == "work").expect("it is executed");
    assert!(work[3].parse::<u64>().unwrap() > 10_000, "{work:?}");
    let faults = program.table("faults", "--children --by function --duration 0.3");
    assert_eq!(column(&faults, "function").last(), Some(&"total"), "{faults:?}");
    let sharing = program.table("sharing", "--children --by function --duration 0.3");
    assert!(sharing.iter().any(|row| row[0] == "work"), "{sharing:?}");
    let processors = program.table("sharing", "--children --by processor --processors 4 --duration 0.3");
    assert!(sum(&column(&processors, "instructions")[..1]) > 10_000, "{processors:?}");
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("requests.toml");
    fs::write(&rules, "[[rule]]\nkind = 'request'\nfunctions = ['request']\nname = '{$1}'\n").unwrap();
    let options = format!("--rules {} --children --duration 0.5", rules.display());
    let objects = program.table("objects", &options);
    let own = |name: &str| {
        let row =
            objects.iter().position(|row| row[0] == name).unwrap_or_else(|| panic!("{name}: {objects:?}"));
        sum(&column(&objects, "own instructions")[row - 1..row])
    };
    assert!(own("again") > 100_000 && own("(outside)") < own("again"), "{objects:?}");
    // Every command that simulates observes it.
    let calls = program.table("calls", "--children --by function --duration 0.3");
    let annotated = program.table("annotate", "--children --function work --duration 0.3");
    for (table, name) in [(&calls, "work"), (&annotated, "request")] {
        assert!(table.len() > 2, "{name}: {table:?}");
    }
    let curves = program.table("mrc", "--children --streams data --largest 2K --duration 0.3");
    assert_eq!(column(&curves, "size").last(), Some(&"2048"), "{curves:?}");
    let folder = tempfile::tempdir().unwrap();
    let options = "--children --unit request --duration 0.5";
    outcome(program.attaching("units", options, &folder.path().join("units"))).noted_success();
    assert!(fs::read_dir(folder.path().join("units")).unwrap().count() > 1);
    // It can be counted then.
    assert!(!program.table("count", "--by function --duration 0.1").is_empty());
}

/// Shared memory that was allocated before the attach has the names of the program's own index.
#[test]
fn structures_of_a_running_server_have_names() {
    let program = Running::of("run :ev56/postgres", "postgres");
    let data = program.table("sharing", "--children --by data --processors 2 --duration 0.5");
    let names = column(&data, "data");
    for name in ["Buffer Descriptors", "XLOG Ctl"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(!names.contains(&"Backend Statistics"), "{names:?}");
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("live.trace");
    let id = program.0.id().to_string();
    let mut attach = pathlength(["trace", "--heap", "--attach", &id, "-o"]);
    let mut recording = attach.arg(&trace).stderr(std::process::Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    // SAFETY: a plain system call on numbers.
    unsafe { libc::kill(recording.id() as i32, libc::SIGINT) };
    recording.wait().unwrap();
    run(&format!("check {}", trace.display())).quiet_success();
    let strides = program.table("strides", "--by array --duration 0.3");
    let is_known = |row: &Vec<String>| row.iter().any(|cell| cell == "Buffer Descriptors");
    assert!(strides.iter().any(is_known), "{strides:?}");
}

#[test]
fn units_of_a_running_program_have_classes() {
    let program = Running::new();
    let classes = "--children --unit request --class request($1) --by class --duration 0.5";
    for command in ["caches", "time"] {
        let table = program.table(command, classes);
        assert_eq!(column(&table, "class"), ["again", "(outside units)", "total"]);
        let counts = column(&table, "instructions");
        assert_eq!(sum(&counts[..2]), sum(&counts[2..]));
        assert!(sum(&column(&table, "units")[..1]) > 10, "{table:?}");
    }
    let table = program.table("strides", classes);
    assert!(table[1..].iter().any(|row| row[0] == "again"), "{table:?}");
    // Processes that a trace is recorded of give it their classes.
    let table = program.table("sharing", classes);
    assert_eq!(column(&table, "class"), ["again", "(outside units)", "total"]);
    assert!(sum(&column(&table, "units")[..1]) > 10, "{table:?}");
    let counts = column(&table, "operations");
    assert_eq!(sum(&counts[..2]), sum(&counts[2..]));
}

/// An interrupt, the end of the program, and the end of the command, after which the program can be observed again.
#[test]
fn what_was_observed_is_shown_and_the_program_survives_the_command() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let mut program = Running::new();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        let mut observing = program.attaching("caches", "--children --by function", &path).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(1));
        if signal == libc::SIGTERM {
            program.0.kill().unwrap();
            program.0.wait().unwrap();
        } else {
            // SAFETY: the command has not been waited for.
            assert_eq!(unsafe { libc::kill(observing.id() as i32, signal) }, 0);
        }
        let status = ends_within(&mut observing, Duration::from_secs(30)).expect("it ends");
        assert!(status.success(), "{status}");
        let functions = csv(&fs::read_to_string(path).unwrap());
        assert!(functions.iter().any(|row| row[0] == "work" && row[3].parse::<u64>().unwrap() > 10_000));
    }
    let mut program = Running::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    for command in ["caches", "strides"] {
        let mut observing = program.attaching(command, "--children", &path).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(700));
        observing.kill().unwrap();
        observing.wait().unwrap();
        assert!(!path.exists());
    }
    // It executes as before: two processes, with two threads each.
    std::thread::sleep(Duration::from_millis(500));
    let units = program.table("count", "--children --unit request --by unit --duration 0.5");
    let mut threads: Vec<_> = units[1..].iter().map(|row| row[..2].to_vec()).collect();
    threads.sort();
    threads.dedup();
    assert_eq!(threads.len(), 4, "{threads:?}");
    assert_eq!(program.0.try_wait().unwrap(), None);
    assert!(!program.table("caches", "--children --by process --duration 0.3").is_empty());
}

#[test]
fn wrong_options_say_what_to_do() {
    let program = Running::new();
    let id = program.0.id();
    for (words, code, part) in [
        ("caches --attach 4000000".to_string(), 1, "there is no process 4000000"),
        (format!("time --attach {id} --unit nowhere"), 1, "has a function 'nowhere'"),
        (format!("strides --attach {id} :ev56/family"), 2, "cannot be used with"),
        ("caches --duration 1 :ev56/family".to_string(), 1, "with --attach"),
        ("caches".to_string(), 2, "required"),
        ("sharing --children :ev56/family".to_string(), 1, "--children goes with --attach"),
        ("faults --duration 1 :ev56/family".to_string(), 1, "with --attach"),
        ("mrc --attach 0".to_string(), 2, "a process has a number from 1"),
        ("annotate --duration 1 :ev56/family".to_string(), 1, "with --attach"),
    ] {
        let outcome = run(&words);
        assert!(outcome.code() == code && outcome.stderr.contains(part), "{words}: {}", outcome.stderr);
    }
    // A program that another command observes.
    let id = id.to_string();
    let mut first = pathlength(["caches", "--attach", &id, "--duration", "5"]);
    let mut first = first.stdout(std::process::Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let second = outcome(pathlength(["caches", "--attach", &id])).failure();
    assert!(second.contains("somebody else records or counts it"), "{second}");
    first.kill().unwrap();
    first.wait().unwrap();
}
