//! `sharing`: programs whose threads share data in known ways.

use crate::caches::{Folder, cell, column};
use crate::support::{csv, run};

/// The cell with a heading, as text.
fn text<'a>(rows: &'a [Vec<String>], row: usize, heading: &str) -> &'a str {
    &rows[row][rows[0].iter().position(|one| one == heading).unwrap()]
}

/// The row with data of this name, if there is one.
fn row_of(rows: &[Vec<String>], data: &str) -> Option<usize> {
    let at = rows[0].iter().position(|one| one == "data").unwrap();
    (1..rows.len()).find(|&row| rows[row][at].split(' ').any(|name| name.trim_end_matches(',') == data))
}

/// A recording in which the threads of `shared` run at the same time, however long the host let them wait for each other.
fn at_the_same_time<T>(mut record: impl FnMut(u32) -> T, is_shared: impl Fn(&T) -> bool) -> T {
    let recorded = record(0);
    assert!(is_shared(&recorded), "threads that a barrier released do not run at the same time");
    recorded
}

/// Whether data of this name move between threads more often than once.
fn moves(rows: &[Vec<String>], data: &str) -> bool {
    row_of(rows, data).is_some_and(|row| cell(rows, row, "operations") > 20.0)
}

#[test]
fn counters_in_one_line_are_false_sharing() {
    let folder = Folder::new();
    let table = |words: &str, data: &str| {
        at_the_same_time(
            |_| folder.table(&format!("sharing {words} :ev56/shared false")),
            |rows| moves(rows, data),
        )
    };
    let lines = table("--by cache-line", "counters[0].count");
    let row = row_of(&lines, "counters[0].count").unwrap_or_else(|| panic!("{lines:?}"));
    assert_eq!(text(&lines, row, "sharing"), "false");
    assert_eq!(text(&lines, row, "suggestion"), "pad the elements of counters from 8 to 64 bytes");
    assert!(text(&lines, row, "data").contains("counters[1].count"), "{lines:?}");
    assert_eq!(text(&lines, row, "threads"), "0.1 0.2");
    assert!(text(&lines, row, "written in").contains("(shared.c:"), "{lines:?}");
    // Each thread executes at least 5 and at most 12 instructions for each of its 2,000 additions: in turns of 100, it
    // has 100 to 240 turns, in each of which the line comes to it once. Only the first copies are not needless.
    let [of_false, of_true, operations, avoidable] =
        ["false misses", "true misses", "operations", "avoidable"].map(|name| cell(&lines, row, name));
    assert!((150.0..=480.0).contains(&of_false), "{lines:?}");
    assert!(of_true == 0.0 && avoidable >= 0.95 * operations, "{lines:?}");
    // In shorter turns it moves more often.
    let finer = table("--quantum 20 --by data", "counters.count");
    let row = row_of(&finer, "counters.count").unwrap_or_else(|| panic!("{finer:?}"));
    assert!(cell(&finer, row, "false misses") > 3.0 * of_false, "{finer:?}");
    // On one processor it does not.
    let alone = folder.table("sharing --processors 1 --by cache-line :ev56/shared false");
    assert_eq!(alone.len(), 1, "{alone:?}");
}

/// Members of the C library's types are nobody's to move: what is said of a mutex is said of it as a whole.
#[test]
fn a_mutex_is_moved_as_a_whole() {
    let folder = Folder::new();
    let lines = folder.table("sharing --saturated --by cache-line :ev56/shared mutex");
    let suggestion = |data: &str| {
        let row = (1..lines.len()).find(|&row| text(&lines, row, "data").contains(data));
        text(&lines, row.unwrap_or_else(|| panic!("{data}: {lines:?}")), "suggestion")
    };
    let of_mutex = suggestion("guarded.mutex");
    assert!(of_mutex.starts_with("take guarded.mutex less often"), "{of_mutex}");
    // The members of a barrier are used at several places behind its beginning.
    let lines = folder.table("sharing --by cache-line :ev56/shared false");
    assert!(row_of(&lines, "barrier+16").is_some(), "{lines:?}");
    for row in 1..lines.len() {
        assert!(!text(&lines, row, "suggestion").contains("barrier+"), "{lines:?}");
    }
}

/// A device reads 64 lines that are dirty in the processor's cache, and then writes them.
#[test]
fn devices_read_and_write_lines() {
    let folder = Folder::new();
    let devices = "--device-reads device_reads --device-writes device_writes";
    for (settings, placed) in [("", 0), ("--set coherence.direct_cache_access=true", 64)] {
        let output = folder.path(&format!("tables-{placed}"));
        let words = format!("sharing --check {devices} {settings} --format csv -o {}", output.display());
        run(&format!("{words} :ev56/transfers")).noted_success();
        let summary = csv(&std::fs::read_to_string(output.join("summary.csv")).unwrap());
        let of = |what: &str| {
            let row = summary.iter().position(|row| row[0] == what).unwrap_or_else(|| panic!("{summary:?}"));
            cell(&summary, row, "count") as u64
        };
        let names = ["read by devices", "written by devices"].map(|name| of(&format!("lines {name}")));
        assert_eq!(names, [64, 64], "{summary:?}");
        assert_eq!(of("of these supplied by caches"), 64, "{summary:?}");
        assert_eq!((of("copies that they invalidated"), of("of these put into caches")), (64, placed));
        // The processor reads what the device wrote.
        assert_eq!(of("true sharing misses"), 64 - placed, "{summary:?}");
    }
    let wrong = run("sharing --device-reads device_read :ev56/transfers").failure();
    assert!(wrong.contains("no function 'device_read' was executed"), "{wrong}");
}

/// The row of a class of units of work.
fn of_class(rows: &[Vec<String>], class: &str) -> usize {
    rows.iter().position(|row| row[0] == class).unwrap_or_else(|| panic!("{class}: {rows:?}"))
}

/// What classes need the bus for is all that the machine counts, and false sharing is where it is known to be. With nodes, operations on
/// the interconnect are divided, too.
#[test]
fn operations_are_divided_among_classes() {
    let folder = Folder::new();
    let classes = "--unit count --unit pthread_create";
    for (machine, all, column_of_all) in [
        ("present-day", "all operations on the bus", "operations"),
        ("av20000", "operations on the interconnect", "interconnect"),
    ] {
        let [summary, rows] = at_the_same_time(
            |_| {
                let output = folder.path("tables");
                let words = format!("--machine {machine} {classes} --format csv -o {}", output.display());
                run(&format!("sharing {words} :ev56/shared false")).noted_success();
                ["summary", "classes"]
                    .map(|name| csv(&std::fs::read_to_string(output.join(format!("{name}.csv"))).unwrap()))
            },
            |[_, rows]| cell(rows, of_class(rows, "count"), "false sharing") > 20.0,
        );
        let of = |what: &str| {
            let row = summary.iter().position(|row| row[0] == what).unwrap_or_else(|| panic!("{summary:?}"));
            cell(&summary, row, "count")
        };
        let parts = ["count", "pthread_create", "(outside units)"].map(|name| of_class(&rows, name));
        let total = of_class(&rows, "total");
        assert_eq!((rows.len(), total), (5, 4), "{rows:?}");
        let units = parts.map(|row| text(&rows, row, "units"));
        assert_eq!(units, ["2", "2", ""], "{rows:?}");
        for (what, heading) in [
            (all, column_of_all),
            ("cold misses", "cold"),
            ("false sharing misses", "false sharing"),
            ("upgrades", "upgrades"),
        ] {
            assert_eq!(cell(&rows, total, heading), of(what), "{heading}: {rows:?}");
            let sum: f64 = parts.iter().map(|&row| cell(&rows, row, heading)).sum();
            assert_eq!(sum, of(what), "{heading}: {rows:?}");
        }
        assert!(cell(&rows, parts[0], "false sharing") > 0.9 * of("false sharing misses"), "{rows:?}");
    }
    // Rows within classes add up to the whole, whose total the table has.
    for by in ["function", "line", "instruction"] {
        let rows = folder.table(&format!("sharing --by {by} {classes} :ev56/shared false"));
        let operations = column(&rows, "operations");
        let (total, own) = operations.split_last().unwrap();
        assert_eq!(own.iter().sum::<u64>(), *total, "{rows:?}");
        let is_counting =
            |row: &Vec<String>| row[0] == "count" && row.iter().any(|cell| cell.contains("count"));
        assert!(rows.iter().any(is_counting), "{rows:?}");
    }
    let data = at_the_same_time(
        |_| folder.table(&format!("sharing --by data {classes} :ev56/shared false")),
        |rows| moves(rows, "counters.count"),
    );
    let of_counters: Vec<_> =
        data.iter().filter(|row| row[1] == "counters.count").map(|row| row[0].as_str()).collect();
    assert_eq!(of_counters.first(), Some(&"count"), "{data:?}");
    for (words, part) in [
        (format!("--by state {classes}"), "rows are classes"),
        (format!("--machine pentium-pro --scaling 1,2 --by data {classes}"), "in time, rows are"),
        (format!("--machine pentium-pro --sample 1000 --by processor {classes}"), "--by class, or no --by"),
        ("--machine pentium-pro --check --by processor".into(), "--check is for caches without time"),
        (
            "--machine pentium-pro --device-reads count --time".into(),
            "--device-reads is for caches without time",
        ),
        ("--by class".into(), "--unit FUNCTION"),
        ("--by class --unit nowhere".into(), "'nowhere'"),
    ] {
        let outcome = run(&format!("sharing {words} :ev56/shared false"));
        assert!(outcome.code() != 0 && outcome.stderr.contains(part), "{words}: {}", outcome.stderr);
    }
}

#[test]
fn saturated_threads_share_however_they_were_recorded() {
    let folder = Folder::new();
    for _ in 0..3 {
        let trace = folder.trace("--heap :ev56/shared false");
        for assign in ["affinity --processors 3", "run-to-block"] {
            let rows = folder.table(&format!("sharing --saturated --assign {assign} --by data {trace}"));
            assert!(moves(&rows, "counters.count"), "{assign}: {rows:?}");
        }
    }
}

#[test]
fn coherence_is_checked_on_request() {
    let folder = Folder::new();
    let trace = folder.trace("--heap :ev56/shared false");
    for machine in ["present-day", "av20000"] {
        let said = run(&format!("sharing --check --machine {machine} {trace}")).noted_success();
        assert!(said.contains("accesses were checked"), "{said}");
    }
}

#[test]
fn padded_counters_are_not_shared() {
    let folder = Folder::new();
    let data = folder.table("sharing --by data :ev56/shared padded");
    assert_eq!(row_of(&data, "padded.count"), None, "{data:?}");
    // The estimate for the counters in one line was right, but for the first copies, which differ a little between runs.
    let total = |what: &str| {
        let rows = folder.table(&format!("sharing --quantum 10 --by function :ev56/shared {what}"));
        ["operations", "avoidable"].map(|name| cell(&rows, rows.len() - 1, name))
    };
    let [before, avoidable] = at_the_same_time(|_| total("false"), |[_, avoidable]| *avoidable > 2000.0);
    let [after, _] = total("padded");
    assert!((before - avoidable - after).abs() < 0.1 * avoidable, "{before} {avoidable} {after}");
}

#[test]
fn a_lock_and_what_it_protects_are_true_sharing() {
    let folder = Folder::new();
    let record = |_| folder.table("sharing --by cache-line :ev56/shared lock");
    let lines = at_the_same_time(record, |rows| moves(rows, "total"));
    let lock = row_of(&lines, "lock.word").unwrap_or_else(|| panic!("{lines:?}"));
    assert_eq!(text(&lines, lock, "sharing"), "lock");
    let suggestion = "take lock.word less often, or divide what it protects";
    assert_eq!(text(&lines, lock, "suggestion"), suggestion);
    let total = row_of(&lines, "total").unwrap();
    assert_eq!(text(&lines, total, "sharing"), "true");
    assert_eq!(text(&lines, total, "suggestion"), "give each thread its own total");
    for row in [lock, total] {
        assert!(cell(&lines, row, "true misses") > 20.0, "{lines:?}");
        assert!(cell(&lines, row, "avoidable") == 0.0, "{lines:?}");
    }
}

#[test]
fn all_tables_of_a_trace_are_of_the_same_operations() {
    let folder = Folder::new();
    let (trace, _) = at_the_same_time(
        |_| {
            let trace = folder.trace("--heap :ev56/shared false");
            let lines = folder.table(&format!("sharing --by cache-line {trace}"));
            (trace, lines)
        },
        |(_, lines)| moves(lines, "counters[0].count"),
    );
    let functions = folder.table(&format!("sharing --by function {trace}"));
    let count = row_named(&functions, "count");
    let avoidable = cell(&functions, count, "avoidable");
    let lines = folder.table(&format!("sharing --by cache-line {trace}"));
    let counters = row_of(&lines, "counters[0].count").unwrap();
    assert_eq!(cell(&lines, counters, "avoidable"), avoidable, "{functions:?} {lines:?}");
    for by in ["line", "instruction", "function"] {
        let rows = folder.table(&format!("sharing --by {by} {trace}"));
        let avoidable = column(&rows, "avoidable");
        let (total, parts) = avoidable.split_last().unwrap();
        assert_eq!(parts.iter().sum::<u64>(), *total, "{by}: {rows:?}");
        assert_eq!(folder.table(&format!("sharing --by {by} {trace}")), rows, "the same each time");
    }
    let threads = folder.table(&format!("sharing --by thread {trace}"));
    let pair = |from: &str, to: &str| {
        let row = (1..threads.len()).find(|&row| threads[row][..2] == [from.to_string(), to.to_string()]);
        cell(&threads, row.unwrap_or_else(|| panic!("{threads:?}")), "false misses")
    };
    assert!(pair("0.1", "0.2") > 50.0 && pair("0.2", "0.1") > 50.0, "{threads:?}");
    let states = |protocol: &str| {
        let table = folder.table(&format!("sharing --by state --set coherence.protocol={protocol} {trace}"));
        table.iter().flat_map(|row| row[1..3].to_vec()).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(states("moesi").contains("owned"));
    assert!(!states("mesi").contains("owned") && states("mesi").contains("exclusive"));
    assert!(!states("msi").contains("exclusive"));
}

fn row_named(rows: &[Vec<String>], name: &str) -> usize {
    (1..rows.len()).find(|&row| rows[row][0] == name).unwrap_or_else(|| panic!("{name}: {rows:?}"))
}

#[test]
fn a_program_without_threads_and_its_trace_have_an_empty_table() {
    let folder = Folder::new();
    let trace = folder.trace("--heap :ev56/shared alone");
    let of_trace = folder.table(&format!("sharing --by function {trace}"));
    assert_eq!(folder.table("sharing --by function :ev56/shared alone"), of_trace);
    for input in [trace.as_str(), ":ev56/shared alone"] {
        let printed = run(&format!("sharing {input}"));
        let said = printed.quiet_success();
        assert!(said.contains("one thread: no processor shares a line"), "{said}");
    }
}

#[test]
fn a_lock_and_what_it_guards_are_partners() {
    let folder = Folder::new();
    let record = |_| folder.table("sharing --by partner :ev56/shared lock");
    let is_lock = |rows: &Vec<Vec<String>>| rows.len() > 1 && rows[1][..2] == ["lock.word", "total"];
    let share = |rows: &Vec<Vec<String>>, heading| (50.0..=100.0).contains(&cell(rows, 1, heading));
    let are_together = |rows: &Vec<Vec<String>>| {
        is_lock(rows) && share(rows, "of the data's moves") && share(rows, "of the partner's")
    };
    // If the host interrupts a thread that holds the lock, the other one spins, which is recorded.
    let pairs = (0..5).map(record).find(are_together).expect("a lock that moves with what it guards");
    assert!(cell(&pairs, 1, "moves together") > 20.0, "{pairs:?}");
    assert_eq!(text(&pairs, 1, "suggestion"), "put lock.word and total into one line");
}

#[test]
fn units_of_work_are_what_operations_are_counted_for() {
    let folder = Folder::new();
    let record = |_| folder.table("sharing --by cache-line --unit count :ev56/shared false");
    // Only the units are recorded: what the threads waited for between them is not known, and they keep the host's order.
    let mut recordings = (0..20).map(record);
    let lines =
        recordings.find(|rows| row_of(rows, "counters[0].count").is_some()).expect("units that overlap");
    let row = row_of(&lines, "counters[0].count").unwrap_or_else(|| panic!("{lines:?}"));
    assert_eq!(cell(&lines, row, "per unit"), cell(&lines, row, "operations") / 2.0, "{lines:?}");
}

#[test]
fn processes_share_what_they_map_together() {
    let folder = Folder::new();
    for (kind, name) in [
        ("anonymous", "(anonymous shared memory)"),
        ("file", "(/tmp/shared"),
        ("segment", "(System V shared memory)"),
    ] {
        let record = |_| folder.table(&format!("sharing --by cache-line :ev56/shared processes {kind}"));
        let shared = |rows: &[Vec<String>]| {
            (1..rows.len())
                .find(|&row| text(rows, row, "data").contains(name) && text(rows, row, "sharing") == "false")
        };
        let lines = at_the_same_time(record, |rows| shared(rows).is_some());
        let row = shared(&lines).unwrap();
        // The first process looks at the results.
        assert_eq!(text(&lines, row, "threads"), "0.0 1.0 2.0", "{lines:?}");
        assert!(text(&lines, row, "written in").contains("(shared.c:"), "{lines:?}");
        let [of_false, of_true] = ["false misses", "true misses"].map(|name| cell(&lines, row, name));
        // As of threads: 100 to 240 turns of each, in each of which the line comes once.
        assert!((100.0..=480.0).contains(&of_false) && of_true < 10.0, "{lines:?}");
    }
    // Variables are each process's own: fork copies their page.
    let private = folder.table("sharing --by data :ev56/shared processes private");
    assert!(!moves(&private, "counters.count"), "{private:?}");
}

#[test]
fn a_trace_of_processes_is_consistent() {
    let folder = Folder::new();
    let trace = folder.trace(":ev56/shared processes segment");
    run(&format!("check {trace}")).quiet_success();
}

#[test]
fn threads_run_on_free_processors() {
    let folder = Folder::new();
    let trace = folder.trace("--heap :ev56/shared false");
    for assign in ["affinity", "recorded", "round-robin", "run-to-block"] {
        let table = folder.table(&format!(
            "sharing --by function --processors 2 --assign {assign} --time-slice 1000 {trace}"
        ));
        assert!(table.len() > 1 || assign == "recorded", "{assign}: {table:?}");
    }
}

#[test]
fn processors_on_a_bus_have_times() {
    let folder = Folder::new();
    let trace = at_the_same_time(
        |_| folder.trace("--heap :ev56/shared false"),
        |trace| moves(&folder.table(&format!("sharing --by cache-line {trace}")), "counters[0].count"),
    );
    let table = |words: &str| folder.table(&format!("sharing --machine pentium-pro {words} {trace}"));
    let processors = table("--by processor --processors 3");
    let all = row_named(&processors, "all");
    let whole = cell(&processors, all, "CPI");
    let parts = [
        "busy",
        "memory",
        "other caches",
        "instruction misses",
        "outstanding misses",
        "barriers",
        "system calls",
    ];
    let sum: f64 = parts.iter().map(|part| cell(&processors, all, part)).sum();
    assert!((sum - whole).abs() < 0.005, "{processors:?}");
    assert_eq!(cell(&processors, all, "busy"), 1.0, "{processors:?}");
    assert!(cell(&processors, all, "other caches") > 0.0, "{processors:?}");
    assert_eq!(table("--by processor --processors 3"), processors, "the same each time");
    // The same instructions, however long the host let threads wait.
    let saturated = table("--by processor --time --saturated --processors 3");
    let [own, other] =
        [&processors, &saturated].map(|rows| cell(rows, row_named(rows, "all"), "instructions"));
    assert_eq!(own, other);
    assert!(cell(&saturated, row_named(&saturated, "all"), "idle") < cell(&processors, all, "idle") + 1.0);
    // A sample of everything is the whole but for the last window.
    let sampled = table("--sample 1000 --processors 3");
    let total = cell(&sampled, row_named(&sampled, "total"), "cycles per instruction");
    assert!((total / whole - 1.0).abs() < 0.1, "{sampled:?} is not {whole}");
    let requests = table("--by request --processors 3");
    let fetches = row_named(&requests, "instruction fetches");
    assert!(cell(&requests, fetches, "count") > 100.0, "{requests:?}");
    assert_eq!(cell(&requests, fetches, "modified"), 0.0, "{requests:?}");
    let latency = |words: &str| {
        let rows = table(&format!("--by transaction --processors 3 {words}"));
        cell(&rows, row_named(&rows, "line from memory"), "latency ns")
    };
    assert!(latency("--set coherence.bus.memory=27") > latency("") + 200.0);
    let said = run(&format!("sharing --time --machine pentium-pro --processors 3 {trace}"));
    let said = said.quiet_success();
    for what in ["million instructions per second", "utilization of the data bus", "Cycles per instruction"] {
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn nodes_need_the_interconnect() {
    let folder = Folder::new();
    let trace = at_the_same_time(
        |_| folder.trace("--heap :ev56/shared false"),
        |trace| moves(&folder.table(&format!("sharing --by cache-line {trace}")), "counters[0].count"),
    );
    let table = |words: &str| folder.table(&format!("sharing --machine av20000 {words} {trace}"));
    let each_alone = "--processors 3 --set coherence.nodes.processors=1";
    let kinds = table(&format!("--by interconnect {each_alone}"));
    let [sum, total]: [f64; 2] = [
        (1..kinds.len() - 1).map(|row| cell(&kinds, row, "count")).sum(),
        cell(&kinds, kinds.len() - 1, "count"),
    ];
    assert_eq!(sum, total, "{kinds:?}");
    assert!(total > 200.0, "{kinds:?}");
    // All tables are of the same operations.
    let functions = table(&format!("--by function {each_alone}"));
    assert_eq!(cell(&functions, functions.len() - 1, "interconnect"), total, "{functions:?}");
    let nodes = table(&format!("--by node {each_alone}"));
    let of = |column: &str| -> f64 {
        let is_sum = |row: &usize| text(&nodes, *row, "processor") == "all";
        (1..nodes.len()).filter(is_sum).map(|row| cell(&nodes, row, column)).sum()
    };
    assert_eq!([of("interconnect"), of("served as home")], [total; 2], "{nodes:?}");
    // The counters are what moves: separate, nothing but first copies does.
    let lines = table(&format!("--by cache-line {each_alone}"));
    let counters = row_of(&lines, "counters[0].count").unwrap();
    assert!(cell(&lines, counters, "interconnect") > 0.5 * total, "{lines:?}");
    // In one node there is no other one to ask.
    let alone = table("--by interconnect --processors 3");
    assert_eq!(cell(&alone, alone.len() - 1, "count"), 0.0, "{alone:?}");
    // In time.
    let processors = table(&format!("--by processor {each_alone}"));
    let all = row_named(&processors, "all");
    assert!(cell(&processors, all, "other nodes") > 0.0, "{processors:?}");
    let scaling = table("--scaling 1,2,3 --set coherence.nodes.processors=1");
    let operations: Vec<f64> =
        (1..=3).map(|row| cell(&scaling, row, "operations per 1,000 instructions")).collect();
    assert!(operations[0] == 0.0 && operations[2] > 1.0, "{scaling:?}");
}

#[test]
fn wrong_requests_are_rejected() {
    for (words, what) in [
        ("sharing /nowhere/program", "/nowhere/program"),
        ("sharing --machine nothing :ev56/shared", "no machine is called"),
        ("sharing --machine dec3000 :ev56/shared", "has one processor: add coherence.protocol"),
        ("sharing --set coherence.protocol=mosi :ev56/shared", "mosi"),
        ("sharing --set coherence.private=l4 :ev56/shared", "no cache of data; there are dcache, l2, l3"),
        ("sharing --processors 65 :ev56/shared", "65"),
        ("sharing --processors 0 :ev56/shared", "0"),
        ("sharing --quantum 0 :ev56/shared", "0"),
        ("sharing --time --machine pentium-pro --set coherence.bus=none :ev56/shared", "has both"),
        (
            "sharing --time --set coherence.bus=none --set coherence.processor=none :ev56/shared",
            "no timed bus",
        ),
        ("sharing --time --by data :ev56/shared", "in time, rows are processors, transactions"),
        ("sharing --by node :ev56/shared", "has no nodes: add [coherence.nodes]"),
        ("sharing --assign anywhere :ev56/shared", "run-to-block"),
        ("sharing --saturated --assign recorded :ev56/shared", "recorded order"),
        ("sharing --by unit :ev56/shared", "cache-line"),
        ("sharing --thread 0.1 :ev56/shared", "choose from a trace"),
        ("sharing --unit nowhere :ev56/shared", "nowhere"),
        ("sharing --by data --sort speed :ev56/shared false", "the columns are"),
    ] {
        let failed = run(words);
        assert!(failed.stderr.contains(what), "{words}: {}", failed.stderr);
        assert!(!failed.status.success(), "{words}");
    }
}
