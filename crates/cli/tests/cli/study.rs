//! `study`: errors when it cannot be made. (The study itself is tested in `studies`.)

use crate::support::{csv, listing, outcome, pathlength, run};

#[test]
fn without_a_compiler() {
    let folder = tempfile::tempdir().unwrap();
    // Cargo is needed to find SQLite's sources, and it needs rustc.
    let cargo = std::path::Path::new(env!("CARGO")).parent().unwrap();
    for study in ["byteword", "tpch"] {
        let mut command = pathlength(["study", study]);
        command.current_dir(&folder).env("PATH", cargo);
        let sentence = outcome(command).failure();
        assert!(sentence.contains("install it, on Debian with `apt-get install gcc"), "{sentence}");
        assert!(listing(folder.path()).is_empty());
    }
}

#[test]
fn without_a_place_for_the_report() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for (place, problem) in [
        ("file/report", "cannot write file/report: Not a directory"),
        ("file", "cannot write file: "),
        ("/proc/report", "cannot write /proc/report: "),
    ] {
        let mut command = pathlength(["study", "byteword", "-o", place]);
        command.current_dir(&folder);
        let sentence = outcome(command).failure();
        assert!(sentence.starts_with(problem), "{sentence}");
        assert_eq!(listing(folder.path()), ["file"]);
    }
}

#[test]
fn without_a_place_for_builds() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("build"), "").unwrap();
    let mut command = pathlength(["study", "byteword"]);
    command.current_dir(&folder);
    let sentence = outcome(command).failure();
    assert!(sentence.contains("build/tpcb: "), "{sentence}");
}

#[test]
fn without_a_c_library() {
    let folder = tempfile::tempdir().unwrap();
    for study in ["byteword", "tpch"] {
        let mut command = pathlength(["study", study, "--sysroot", "/nonexistent"]);
        command.current_dir(&folder);
        let sentence = outcome(command).failure();
        assert!(sentence.contains("/nonexistent"), "{sentence}");
        assert!(listing(folder.path()).is_empty());
    }
}

#[test]
fn very_large_memory_is_studied_as_far_as_possible() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = pathlength(["study", "vlm", "--sizes", "4M,8M", "--processes", "1,2"]);
    // PostgreSQL does not fit.
    command
        .args(["--memory", "small", "--postgresql-size", "1000T", "--connections", "1"])
        .current_dir(&folder);
    let studied = outcome(command);
    assert_eq!(studied.code(), 0, "{}", studied.stderr);
    assert!(studied.stdout.contains("PostgreSQL with 1 connections"), "{}", studied.stdout);
    let faults = std::fs::read_to_string(folder.path().join("study/vlm/csv/faults.csv")).unwrap();
    let rows: Vec<Vec<&str>> = faults.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 4, "{faults}");
    for (row, (size, processes, megabytes)) in
        rows.iter().zip([("4 MiB", "1", 4), ("4 MiB", "2", 4), ("8 MiB", "1", 8), ("8 MiB", "2", 8)])
    {
        assert_eq!((row[0], row[1], row[3], row[4]), (size, processes, "", ""), "{faults}");
        // The kernel maps up to 16 pages at a fault, or fewer.
        let faults: u64 = row[2].parse().unwrap();
        assert!((megabytes * 16..=megabytes * 256).contains(&faults), "{faults}");
    }
    let page = std::fs::read_to_string(folder.path().join("study/vlm/index.html")).unwrap();
    assert!(page.contains("What could not be measured") && page.contains("Figure 9: size"));
}

#[test]
fn very_large_memory_without_means_is_an_error_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, problem) in
        [(&["--vlm", "/nonexistent"][..], "/nonexistent is no command"), (&["--sizes", "0M"], "begin with 1")]
    {
        let mut command = pathlength(["study", "vlm"]);
        command.args(arguments).current_dir(&folder);
        let sentence = outcome(command).failure();
        assert!(sentence.contains(problem), "{sentence}");
        assert!(listing(folder.path()).is_empty());
    }
    let mut command =
        pathlength(["study", "vlm", "--sizes", "1000T", "--memory", "small", "--postgresql-size", "0M"]);
    command.current_dir(&folder);
    let studied = outcome(command);
    let problem = "nothing could be measured: 1000 TiB in pages of 4 KiB: 1000 TiB in pages of 4 KiB, and";
    assert_eq!((studied.code(), studied.stderr.contains(problem)), (1, true), "{}", studied.stderr);
}

/// A log of a driver that receives a packet of 1,000 bytes: 21 cells.
const DRIVERS_LOG: &str = "pathlength-adapter-log 1\narrive 3 1000\nawait summaries 1\ncommand 0 copy-to-host 0 0 65536 1000\n\
    command 1 recycle 0\nwrite command-producer 2\nawait executed 2\n";

/// With few packets and bytes, adapters and forms of the stack have the same order as with many.
#[test]
fn networking_is_studied() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("driver.log"), DRIVERS_LOG).unwrap();
    let options = ["--packets", "40", "--bytes", "100000", "--log", "driver.log"];
    let mut command = pathlength(["study", "network"].into_iter().chain(options));
    command.current_dir(&folder);
    let studied = outcome(command);
    assert_eq!(studied.code(), 0, "{}", studied.stderr);
    assert!(studied.stdout.contains("What each adapter delivers"), "{}", studied.stdout);
    let table = |name: &str| {
        let path = folder.path().join(format!("study/network/csv/{name}.csv"));
        csv(&std::fs::read_to_string(path).unwrap())
    };
    let delivered = table("delivered");
    let mbps = |adapter: &str, direction: &str| -> f64 {
        let is_row = |row: &&Vec<String>| row[0] == adapter && row[1] == "64" && row[2] == direction;
        delivered.iter().find(is_row).unwrap()[5].parse().unwrap()
    };
    assert!(mbps("dart", "send") > 1.05 * mbps("traditional", "send"));
    assert!(mbps("dart", "receive") > 5.0 * mbps("witless", "receive"));
    let paths = table("paths");
    let instructions = |form: &str, step: &str| -> f64 {
        let is_row = |row: &&Vec<String>| row[0] == "send" && row[1] == form && row[2] == step;
        paths.iter().find(is_row).unwrap_or_else(|| panic!("{form}, {step}: {}", studied.stdout))[3]
            .parse()
            .unwrap()
    };
    for step in ["copy", "checksum"] {
        let [traditional, dart] = ["traditional", "DART"].map(|form| instructions(form, step));
        assert!(dart < 0.7 * traditional, "{step}: {dart}, {traditional}");
    }
    assert!(
        instructions("checksums by hardware", "checksum") < 0.2 * instructions("traditional", "checksum")
    );
    let logs = table("logs");
    assert_eq!(
        (logs.len(), &logs[1][0], &logs[1][4], &logs[1][8]),
        (3, &"driver.log".into(), &"1".into(), &"0".into())
    );
    let page = std::fs::read_to_string(folder.path().join("study/network/index.html")).unwrap();
    for heading in [
        "Memory operations, two ways",
        "Figure 7",
        "Table 3",
        "Logs of drivers",
        "DMA or programmed I/O",
        "Errors of the print",
    ] {
        assert!(page.contains(heading), "{heading}");
    }
}

/// A log that is none, is empty, missing, cut, or waits for ever is named with what is wrong, before anything is simulated.
#[test]
fn logs_that_cannot_be_replayed_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let cut = &DRIVERS_LOG[..DRIVERS_LOG.len() - 3];
    let first = DRIVERS_LOG.lines().next().unwrap();
    for (name, contents, problem) in [
        ("missing", None, "missing: cannot read the adapter's log: No such file or directory"),
        ("empty", Some(String::new()), "empty: line 1: this is no adapter's log; its first line must be"),
        ("other", Some("PNG\n".into()), "other: line 1: this is no adapter's log; its first line must be"),
        ("bare", Some(format!("{first}\n")), "bare: the log has no records after its first line"),
        ("cut", Some(cut.into()), "cut: line 7: its end is missing: the log was cut"),
        (
            "wrong",
            Some(format!("{first}\ndelay -1\n")),
            "wrong: line 2: the time is \"-1\", which is no number that fits",
        ),
    ] {
        if let Some(contents) = contents {
            std::fs::write(folder.path().join(name), contents).unwrap();
        }
        let mut command = pathlength(["study", "network", "--log", name]);
        command.current_dir(&folder);
        let sentence = outcome(command).failure();
        assert!(sentence.contains(problem), "{name}: {sentence}");
        assert!(!folder.path().join("study").exists() && !folder.path().join("build").exists());
    }
}

#[test]
fn programs_that_cannot_be_studied_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = pathlength(["study", "spike", "--programs", "lua,emacs"]);
    command.current_dir(&folder);
    let wrong = outcome(command);
    assert_eq!(wrong.code(), 2);
    assert!(wrong.stderr.contains("invalid value 'emacs'"), "{}", wrong.stderr);
    assert!(
        wrong.stderr.contains("[possible values: ") && wrong.stderr.contains(" sqlite"),
        "{}",
        wrong.stderr
    );

    std::fs::create_dir(folder.path().join("sources")).unwrap();
    for (arguments, problem) in [
        // An empty folder has no package's sources.
        (
            &["spike", "--programs", "lua", "--sources", "sources"][..],
            "lua cannot be built (--programs selects others): cannot read the source sources: ",
        ),
        (
            &["spike", "--programs", "lua", "--sysroot", "/nonexistent"],
            "there is no C library for Alpha at /nonexistent",
        ),
        (&["graphics", "--sysroot", "/nonexistent"], "there is no C library for Alpha at /nonexistent"),
        (&["tpcc", "--machine", "qemu"], "the machine"),
        (&["byteword", "--transactions", "5"], "--transactions is for --database postgresql"),
        (&["byteword", "--database", "postgresql", "--mode", "cached"], "--mode is for SQLite"),
    ] {
        let mut command = pathlength(["study"]);
        command.args(arguments).current_dir(&folder);
        let sentence = outcome(command).failure();
        assert!(sentence.starts_with(problem), "{sentence}");
        assert!(!folder.path().join("study").exists());
    }
}

#[test]
fn options_of_other_studies_do_not_exist() {
    for (study, option) in [
        ("tpcc", "--programs lua"),
        ("tpcc", "--scale 0.01"),
        ("tpcc", "--recordings 3"),
        ("tpch", "--machine dec3000"),
        ("tpch", "--transactions 5"),
        ("byteword", "--queries 6"),
        ("smp", "--benchmarks tpcb"),
        ("spike", "--mode cached"),
        ("vlm", "--sysroot /"),
        ("rdb", "--database postgresql"),
        ("strides", "--sources ."),
        ("graphics", "--packets 5"),
    ] {
        let outcome = run(&format!("study {study} {option}"));
        let name = option.split(' ').next().unwrap();
        assert_eq!((outcome.code(), outcome.stdout.as_str()), (2, ""), "{study} {option}");
        let expected = format!("unexpected argument '{name}'");
        assert!(outcome.stderr.contains(&expected), "{study} {option}: {}", outcome.stderr);
    }
    for (study, program) in [("system", "tcc"), ("spike", "kernels")] {
        let outcome = run(&format!("study {study} --programs {program}"));
        assert_eq!(outcome.code(), 2);
        assert!(outcome.stderr.contains(&format!("invalid value '{program}'")), "{}", outcome.stderr);
    }
}
