//! Settings of machines, and sweeps.

use std::fs;

use crate::caches::{Folder, column};
use crate::support::{command, csv, file, run};

/// The rows of a command's table in CSV.
fn table(words: &str) -> Vec<Vec<String>> {
    csv(&run(words).stdout)
}

#[test]
fn settings_are_those_of_a_machines_file() {
    let folder = Folder::new();
    let trace = folder.trace(":ev5/modes work");
    let machine = folder.path("mine.toml");
    let text = "base = \"dec3000\"\n[caches.dcache]\nsize = \"4K\"\n[caches.icache]\nways = 2\n";
    fs::write(&machine, text).unwrap();
    let settings = "--set dcache.size=4K --set caches.icache.ways=2";
    let input = format!("--format csv {trace}");
    for (command, columns) in [("caches", 1), ("caches --by function", 0), ("time --by line", 0)] {
        let set = table(&format!("{command} --machine dec3000 {settings} {input}"));
        let described = table(&format!("{command} --machine {} {input}", machine.display()));
        let plain = table(&format!("{command} --machine dec3000 {input}"));
        let cells = |rows: &[Vec<String>]| rows.iter().map(|row| row[columns..].to_vec()).collect::<Vec<_>>();
        assert_eq!(cells(&set), cells(&described), "{command}");
        assert_ne!(cells(&set), cells(&plain), "{command}");
    }
    for command in [
        "annotate --function work --event misses --machine dec3000",
        "units --event misses --machine dec3000 --unit work",
    ] {
        let own = format!("{command} {settings} :ev5/modes work");
        assert!(run(&own).stderr.contains("dec3000 with dcache.size=4K, caches.icache.ways=2."), "{own}");
    }
    let failure = run(&format!("caches --set dcache.sise=4K {trace}")).failure();
    assert!(failure.contains("dcache.sise=4K: unknown field `sise`, expected one of `level`"), "{failure}");
    let failure = run(&format!("time --set dcache.size=5K {trace}")).failure();
    assert!(failure.contains("caches.dcache.size: 160 (the number of sets) is not"), "{failure}");
}

#[test]
fn a_sweep_has_the_results_of_single_runs() {
    let folder = Folder::new();
    let trace = folder.trace(":ev56/modes work");
    for input in [trace.as_str(), ":ev56/modes work", "--host-processors 1 :ev56/modes work"] {
        let swept = table(&format!("caches --sweep dcache.size=1K,8K,64K --format csv {input}"));
        assert_eq!(swept[0][..3], ["dcache.size", "icache misses", "dcache misses"]);
        assert_eq!(swept.iter().skip(1).map(|row| row[0].as_str()).collect::<Vec<_>>(), ["1K", "8K", "64K"]);
        for row in &swept[1..] {
            let single = table(&format!("caches --set dcache.size={} --format csv {input}", row[0]));
            assert_eq!(
                column(&single, "misses").iter().map(u64::to_string).collect::<Vec<_>>(),
                row[1..],
                "{input}"
            );
        }
        assert_ne!(swept[1][2], swept[3][2]);
    }
    let (clock, size) = ("processor.clock_mhz=200,400", "dcache.size=1K,8K");
    for input in [trace.as_str(), "--unit work --skip 20 --warm-up 10 --units 30 :ev56/modes work"] {
        let swept = table(&format!("time --sweep {clock} --sweep {size} --format csv {input}"));
        let values: Vec<_> = swept[1..].iter().map(|row| (row[0].as_str(), row[1].as_str())).collect();
        assert_eq!(values, [("200", "1K"), ("200", "8K"), ("400", "1K"), ("400", "8K")]);
        for row in &swept[1..] {
            let set = format!("--set processor.clock_mhz={} --set dcache.size={}", row[0], row[1]);
            let single = run(&format!("time {set} --format json {input}")).stdout;
            let single: serde_json::Value = serde_json::from_str(&single).unwrap();
            assert_eq!(single[0]["rows"][0]["cycles"].to_string(), row[2], "{input} {row:?}");
            // Issuing and stalls are all cycles, and so are issuing and all causes.
            let numbers: Vec<u64> = row[4..].iter().map(|cell| cell.parse().unwrap()).collect();
            assert_eq!(numbers[..3].iter().sum::<u64>().to_string(), row[2]);
            assert_eq!((numbers[0] + numbers[3..].iter().sum::<u64>()).to_string(), row[2]);
        }
    }
}

/// Whatever rows are, each configuration has those of a single run, and classes add up to all.
#[test]
fn a_sweep_by_rows_has_the_rows_of_single_runs() {
    let folder = Folder::new();
    let trace = folder.trace("--unit begin_transaction --unit statement :ev56/family transactions");
    let classes = "--unit begin_transaction --unit statement :ev56/family transactions";
    let units = "--unit statement :ev56/family transactions";
    let processes = "--children :ev56/family transactions";
    for (words, input) in [
        ("caches --by class", classes),
        ("caches --by class", trace.as_str()),
        ("caches --by unit", units),
        ("caches --by process", processes),
        ("caches --by function --top 3", trace.as_str()),
        ("caches --by line", classes),
        ("caches --by caller --function work", classes),
        ("caches --by function --inclusive", units),
        ("caches --classify --by call-tree", processes),
        ("time --by callee", processes),
        ("time --by class", classes),
        ("time --by unit", trace.as_str()),
    ] {
        let swept = table(&format!("{words} --sweep dcache.size=1K,64K --format csv {input}"));
        let mut expected = Vec::new();
        for size in ["1K", "64K"] {
            let single = table(&format!("{words} --set dcache.size={size} --format csv {input}"));
            assert_eq!(swept[0][1..], single[0], "{words} {input}");
            let is_own = |row: &&Vec<String>| !row.contains(&"total".into());
            let own = single[1..].iter().filter(is_own);
            expected.extend(own.map(|row| [&[size.to_string()], &row[..]].concat()));
        }
        assert_eq!(swept[1..], expected, "{words} {input}");
    }
    let of_classes = table(&format!("caches --by class --sweep dcache.size=1K,64K --format csv {trace}"));
    let whole = table(&format!("caches --sweep dcache.size=1K,64K --format csv {trace}"));
    for row in &whole[1..] {
        let misses = |row: &Vec<String>| {
            let columns = of_classes[0].iter().zip(row);
            let found = columns.filter(|(name, _)| *name == "dcache misses").map(|(_, cell)| cell);
            found.map(|cell| cell.parse::<u64>().unwrap()).sum::<u64>()
        };
        let own = of_classes[1..].iter().filter(|other| other[0] == row[0]);
        let at = whole[0].iter().position(|name| name == "dcache misses").unwrap();
        assert_eq!(own.map(misses).sum::<u64>().to_string(), row[at]);
    }
    // A resumed sweep takes the tables from its file.
    let kept = folder.path("kept");
    let resumed = format!(
        "caches --by class --sweep dcache.size=1K,64K --format csv --resume {} {trace}",
        kept.display()
    );
    assert_eq!([table(&resumed), table(&resumed)], [of_classes.clone(), of_classes]);
    let page = folder.path("classes.html");
    let words = format!("caches --by class --sweep dcache.size=1K,64K -o {} {trace}", page.display());
    assert_eq!(run(&words).quiet_success(), "");
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("class = statement") && text.contains("<table>"), "a line for each class");
}

/// Classes of misses are those of single runs, with a row for each structure.
#[test]
fn a_sweep_has_classes_of_misses() {
    let words = "--format csv :ev56/family transactions";
    let swept = table(&format!("caches --classify --sweep dcache.size=1K,64K {words}"));
    let singles = ["1K", "64K"].map(|size| {
        let single = table(&format!("caches --classify --set dcache.size={size} {words}"));
        assert_eq!(swept[0][1..], single[0][1..]);
        single[1..].iter().map(|row| [&[size.to_string()], &row[1..]].concat()).collect::<Vec<_>>()
    });
    assert_eq!(swept[1..], singles.concat());
    let conflicts = |rows: &[Vec<String>]| {
        let at = swept[0].iter().position(|name| name == "conflict").unwrap();
        rows.iter().find(|row| row[1] == "dcache").unwrap()[at].parse::<u64>().unwrap()
    };
    assert!(conflicts(&singles[0]) > 2 * conflicts(&singles[1]), "{swept:?}");
}

/// A sweep of 128 machines is killed again and again, and goes on each time.
#[test]
fn a_killed_sweep_goes_on() {
    let folder = Folder::new();
    let trace = folder.trace(":ev56/modes work");
    let kept = folder.path("kept");
    let sizes = (0..8).map(|number| format!("{}K", 8 << number)).collect::<Vec<_>>().join(",");
    let clocks = (1..=16).map(|number| (100 * number).to_string()).collect::<Vec<_>>().join(",");
    let words =
        format!("caches --sweep dcache.size={sizes} --sweep processor.clock_mhz={clocks} --format csv");
    let whole = table(&format!("{words} {trace}"));
    assert_eq!(whole.len(), 129);
    let words = format!("{words} --resume {} {trace}", kept.display());
    let lines = || fs::read_to_string(&kept).map_or(0, |text| text.lines().count());
    let mut kills = 0;
    while lines() < 100 {
        let before = lines();
        let mut sweep = command(&words).stdout(file()).stderr(file()).spawn().unwrap();
        while lines() < (before + 30).min(100) && sweep.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        sweep.kill().unwrap();
        sweep.wait().unwrap();
        assert!(lines() > before, "it goes on");
        kills += 1;
    }
    assert!(kills >= 2, "{kills}");
    let before = fs::read_to_string(&kept).unwrap();
    assert_eq!(table(&words), whole);
    let after = fs::read_to_string(&kept).unwrap();
    // What was kept was not simulated again; a line that was not complete is written again.
    let complete = &before[..before.rfind('\n').unwrap() + 1];
    assert!(after.starts_with(complete) && after.lines().count() == 129);
    assert_eq!(table(&words), whole, "and once more, from the file alone");
    assert_eq!(fs::read_to_string(&kept).unwrap(), after);
    let other = run(&words.replace("caches ", "time ").replace("--format csv", "")).failure();
    assert!(other.contains("has no results of this sweep"), "{other}");
    let program = run("caches --sweep dcache.size=8K,16K --resume /nowhere/kept :ev56/modes work").failure();
    assert!(program.contains("--resume needs a trace"), "{program}");
}

#[test]
fn a_sweep_has_charts() {
    let folder = Folder::new();
    let (trace, page) = (folder.trace(":ev56/modes work"), folder.path("sweep.html"));
    for (words, charts) in [
        ("caches --sweep dcache.size=8K,16K", 1),
        ("time --sweep dcache.size=8K,16K", 1),
        ("caches --sweep dcache.size=8K,16K --sweep dcache.ways=1,2", 1),
        ("time --sweep dcache.size=8K,16K --sweep dcache.ways=1,2", 1),
    ] {
        assert_eq!(run(&format!("{words} -o {} {trace}", page.display())).quiet_success(), "");
        let text = fs::read_to_string(&page).unwrap();
        // Of two fields there is a chart for each structure whose misses differ.
        let drawn = text.matches("figure class=\"chart\"").count();
        assert!(
            if words.contains("ways") { (charts..6).contains(&drawn) } else { drawn == charts },
            "{words}"
        );
        assert!(text.contains("<table>") && text.contains("What dcache.size"), "{words}");
    }
    let crossed = fs::read_to_string(&page).unwrap();
    assert!(crossed.contains("dcache.ways = 2"), "the second field is a series");
}

#[test]
fn impossible_sweeps_are_rejected() {
    let folder = Folder::new();
    let trace = folder.trace(":ev56/tiny");
    let many = (1..=300).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let cases = [
        ("--sweep dcache.size=8K,7K".to_string(), "caches.dcache.size: 224 (the number of sets) is not"),
        ("--sweep l9.size=8K,16K".into(), "there is no l9; there are"),
        ("--machine dec3000 --machine qemu --sweep dcache.size=8K".into(), "give --machine once"),
        (
            "--sweep dcache.size=8K --sweep dcache.ways=1 --sweep dcache.line=32".into(),
            "--sweep once or twice",
        ),
        ("--sweep dcache.size=8K --sweep dcache.size=16K".into(), "--sweep dcache.size is given twice"),
        (format!("--sweep dcache.victim_lines={many}"), "300 configurations are more than 256"),
        ("--sweep dcache.size=8K -o chart.svg".into(), "name one that ends with"),
        ("--sweep dcache.size=8K --format csv -o chart.html".into(), "leave out --format csv"),
    ];
    for (options, problem) in cases {
        let failure = run(&format!("caches {options} {trace}")).failure();
        assert!(failure.contains(problem), "{options}: {failure}");
    }
    for (options, problem) in [
        ("--by mode", "a trace of programs only"),
        ("--by function --function main", "--function selects rows"),
        ("--by class --chart cycles", "--chart is for flame graphs"),
        ("--by process", "add --children"),
        ("--by class", "without classes of units"),
    ] {
        let failure = run(&format!("time {options} --sweep dcache.size=8K,16K {trace}")).failure();
        assert!(failure.contains(problem), "{options}: {failure}");
    }
    assert_eq!(run(&format!("caches --sweep dcache.size {trace}")).code(), 2);
}
