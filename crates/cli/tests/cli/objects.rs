//! `pathlength objects`: costs of what functions work on.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{csv, guest, outcome, pathlength, run};

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/guests/plan.toml");

/// Rules for the nodes alone.
const NEXT: &str = r#"
[[rule]]
kind = "operator"
functions = ["next_1", "next_2", "next_3", "next_4"]
key = "$1->node"
name = "{$1->node->tag}"
rename = { T_Join = "Join", T_Scan = "Scan", T_Filter = "Filter" }
detail = [{ of = ["T_Scan"], text = " of {$1->node->table->name}, {$1->node->table->rows} rows" }]
"#;

type Csv = Vec<Vec<String>>;

/// The table of a command on the program `plan`.
fn table(rules: &Path, options: &str, how: &str) -> Csv {
    let mut command = pathlength(["objects", "--format", "csv", "--rules"]);
    command.arg(rules).args(options.split_whitespace()).arg(guest("ev56/plan")).arg(how);
    let outcome = outcome(command);
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    csv(&outcome.stdout)
}

/// The rows of `objects` on the program `plan`: names, calls and, with and without what is below, instructions, loads, stores.
fn objects(options: &str, how: &str) -> Vec<(String, Option<u64>, Vec<u64>)> {
    let rows = table(Path::new(RULES), options, how);
    let number = |cell: &String| cell.parse().unwrap();
    let calls = rows[0].iter().position(|heading| heading == "calls").unwrap();
    let row = |row: &Vec<String>| {
        (row[0].clone(), row[calls].parse().ok(), row[calls + 3..].iter().map(number).collect())
    };
    rows[1..].iter().map(row).collect()
}

/// The own parts.
fn own(numbers: &[u64]) -> Vec<u64> {
    numbers.iter().skip(1).step_by(2).copied().collect()
}

fn sum(rows: &[(String, Option<u64>, Vec<u64>)]) -> Vec<u64> {
    rows.iter().fold(Vec::new(), |sum, (_, _, row)| {
        let row = own(row);
        (0..row.len()).map(|at| row[at] + sum.get(at).copied().unwrap_or(0)).collect()
    })
}

/// Each node of the plan has functions of its own, so that a tree of calls, which follows control and knows nothing of arguments,
/// has the same costs.
#[test]
fn costs_are_those_of_an_independent_tree_of_calls() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("plan.plt");
    run(&format!("trace -o {} :ev56/plan direct", trace.display())).noted_success();
    let text = outcome({
        let mut command = pathlength(["calls", "--by", "call-tree", "--threshold", "0", "--format", "csv"]);
        command.arg(&trace);
        command
    });
    let rows = csv(&text.quiet_success());
    let column = |name: &str| rows[0].iter().position(|heading| heading == name).unwrap();
    let events = ["instructions", "loads", "stores"].map(column);
    let node = |function: &str| match function {
        "next_1" => Some("Join"),
        "next_2" => Some("Filter"),
        "next_3" => Some("Scan of orders, 40 rows"),
        "next_4" => Some("Scan of lines, 60 rows"),
        _ => None,
    };
    // Inclusive costs, of which those of the next function of a node below are taken away.
    let mut open: Vec<Option<&str>> = Vec::new();
    let mut expected: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for row in &rows[1..] {
        let depth: usize = row[1].parse().unwrap();
        open.truncate(depth);
        let outer = open.iter().rev().flatten().next().copied();
        let this = node(row[0].trim());
        open.push(this);
        if this.is_none() {
            continue;
        }
        let costs = events.map(|event| row[event].parse::<i64>().unwrap());
        for (owner, sign) in [(this, 1), (outer, -1)] {
            let Some(owner) = owner else { continue };
            let sums = expected.entry(owner).or_insert_with(|| vec![0; 3]);
            sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += sign * cost);
        }
    }
    // The functions that begin and end nodes are the same for all, so that they are not in these rules.
    let rules = folder.path().join("next.toml");
    std::fs::write(&rules, NEXT).unwrap();
    let found = table(&rules, "--as names", "direct");
    assert_eq!(expected.len(), 4);
    for row in found[1..].iter().filter(|row| !row[0].starts_with('(') && row[0] != "total") {
        let own: Vec<i64> = [5, 7, 9].map(|at: usize| row[at].parse().unwrap()).into();
        assert_eq!(expected.remove(row[0].as_str()), Some(own), "{}", row[0]);
    }
    assert!(expected.is_empty(), "{expected:?}");
}

#[test]
fn all_parts_together_are_the_run() {
    for how in ["direct", "tail", "fails", "children"] {
        let mut rows = objects("", how);
        let (_, _, total) = rows.pop().unwrap();
        assert_eq!(sum(&rows), own(&total), "{how}");
        let counted = run(&format!("count --by image --format csv :ev56/plan {how}")).noted_success();
        assert!(counted.contains(&format!("total,{},", total[0])), "{counted}{total:?}");
    }
}

#[test]
fn the_tree_is_that_of_the_plan() {
    let rows = objects("", "tail");
    let places: Vec<String> =
        table(Path::new(RULES), "", "tail").iter().map(|row| row[..4].join(",").replace("\"", "")).collect();
    let plan = [
        "operator,depth,node,parent",
        "select join,0,1,",
        "Join,1,2,1",
        "Filter,2,3,2",
        "Scan of orders, 40 rows,3,4,3",
        "Scan of lines, 60 rows,2,5,2",
        "select scan,0,6,",
        "Scan of lines, 60 rows,1,7,6",
        "(outside),0,8,",
        "total,,,",
    ];
    assert_eq!(places, plan);
    let text = run(&format!("objects --rules {RULES} :ev56/plan tail")).noted_success();
    let drawn: Vec<&str> = text.lines().filter_map(|line| line.split("  ").next()).collect();
    assert!(text.contains("\n              ->  Scan of orders, 40 rows"), "{text}");
    assert!(drawn.contains(&"select join"), "{text}");
    let calls = |at: usize| rows[at].1.unwrap();
    assert_eq!(calls(0), 3);
    // Each of three plans is begun and ended, its first call goes through another function, and each scan of orders ends once.
    assert_eq!(calls(3), 3 * (40 + 1 + 3));
    let inclusive = |at: usize| rows[at].2[0];
    let own = |at: usize| rows[at].2[1];
    assert_eq!(inclusive(0), (0..5).map(own).sum::<u64>());
    assert_eq!(inclusive(1), inclusive(2) + inclusive(4) + own(1));
}

#[test]
fn processes_work_on_objects_of_the_same_names() {
    let rows = objects("--children", "children");
    let child = rows.iter().position(|row| row.0 == "in the child").unwrap();
    let parent = rows.iter().position(|row| row.0 == "select join").unwrap();
    for at in 1..5 {
        let (_, calls, costs) = &rows[child + at];
        assert!(costs[1] > 100, "{rows:?}");
        assert_eq!(rows[child + at].0, rows[parent + at].0);
        assert_eq!(rows[parent + at].1, calls.map(|calls| 3 * calls));
    }
    let total = rows.last().unwrap();
    assert_eq!(sum(&rows[..rows.len() - 1]), own(&total.2));
}

/// A process that knows only a part of a plan works on the same objects.
#[test]
fn workers_are_parts_of_the_query() {
    let alone = objects("--children", "tail");
    let rows = objects("--children", "worker");
    let names =
        |rows: &[(String, Option<u64>, Vec<u64>)]| rows.iter().map(|row| row.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&rows), names(&alone));
    assert_eq!(rows[0].1, alone[0].1.map(|queries| queries + 1));
    // It reads 60 rows and the end, begins, ends, and has a first call.
    assert_eq!(rows[4].1, alone[4].1.map(|calls| calls + 60 + 4));
    assert!(rows[1].1 == alone[1].1 && rows[1].2[1] == alone[1].2[1], "{rows:?}");
    let total = rows.last().unwrap();
    assert_eq!(sum(&rows[..rows.len() - 1]), own(&total.2));
}

#[test]
fn machines_count_what_they_count_without_objects() {
    for (command, event) in [("caches", "--event misses"), ("time", "--event cycles")] {
        let rows = objects(event, "direct");
        let (total, parts) = rows.split_last().unwrap();
        assert_eq!(sum(parts), own(&total.2), "{command}");
        let plain = run(&format!("{command} --by function --format csv :ev56/plan direct")).noted_success();
        let last = plain.lines().rfind(|line| line.starts_with("total")).unwrap().to_owned();
        let plain: Vec<u64> = last.split(',').filter_map(|cell| cell.parse().ok()).collect();
        let inclusive: Vec<u64> = total.2.iter().step_by(2).copied().collect();
        assert!(plain.ends_with(&inclusive), "{command}: {plain:?} {inclusive:?}");
        let together = objects(&format!("--children {event}"), "direct");
        assert_eq!(together, rows);
    }
}

/// The names of the tables that scans read are elements of an array of pointers: 40 orders are read by each of three joins, and
/// the end of them once more.
#[test]
fn values_of_variables_name_objects() {
    let rows = objects("--by table --as names", "direct");
    let calls = |name: &str| rows.iter().find(|row| row.0 == name).unwrap().1;
    assert_eq!(calls("orders: T_Scan"), Some(3 * 41));
    assert_eq!(calls("(outside)"), None);
    assert_eq!(rows.len(), 4);
}

#[test]
fn rules_that_do_not_fit_are_errors_before_the_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    let error = |text: &str| {
        std::fs::write(&rules, text).unwrap();
        let mut command = pathlength(["objects", "--rules"]);
        command.arg(&rules).arg(guest("ev56/plan"));
        outcome(command).failure_after("")
    };
    let of = |functions: &str, name: &str| {
        format!("[[rule]]\nkind = 'x'\nfunctions = ['{functions}']\nname = '{name}'")
    };
    let no_member = error(&of("begin", "{$1->nothing}"));
    assert!(
        no_member.contains("no member 'nothing'") && no_member.contains("tag, number, left, right, table"),
        "{no_member}"
    );
    assert!(error(&of("begin", "{$2}")).contains("begin has 1 arguments, and no $2"));
    assert!(error(&of("begin", "{((struct Nothing *)$1)->x}")).contains("no type 'Nothing'"));
    assert!(error(&of("begin", "{*$1}")).contains("name a member"));
    assert!(error(&of("begin", "{nothing}")).contains("no variable 'nothing'"));
    assert!(error(&of("no_such_function", "x")).contains("none of the functions no_such_function"));
    let kind = run(&format!("objects --rules {RULES} --by lock :ev56/plan")).failure_after("");
    assert!(kind.contains("name one of operator, table"), "{kind}");
    let program = run("objects :ev56/plan").failure_after("");
    assert!(program.contains("name them with --rules, postgresql, sqlite or a file"), "{program}");
}

/// Statements that are units of work: what their operators cost is in their classes, and all classes are the run.
#[test]
fn objects_of_all_classes_are_those_of_the_run() {
    for options in ["", "--event misses", "--children"] {
        let by_class =
            table(Path::new(RULES), &format!("--unit query --class query($1) {options}"), "direct");
        let whole = table(Path::new(RULES), options, "direct");
        assert_eq!(by_class[0][0], "class");
        let mut sums: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        let numbers = |row: &[String]| row.iter().map(|cell| cell.parse().unwrap()).collect::<Vec<u64>>();
        for row in &by_class[1..] {
            let own = numbers(&row[8..]);
            let sum = sums.entry(row[1].trim()).or_insert_with(|| vec![0; own.len()]);
            sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        let expected: BTreeMap<&str, Vec<u64>> = whole[1..].iter().fold(BTreeMap::new(), |mut all, row| {
            let own = numbers(&row[7..]);
            let sum = all.entry(row[0].trim()).or_insert_with(|| vec![0; own.len()]);
            sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            all
        });
        assert_eq!(sums, expected, "{options}");
    }
}

const LOCKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/guests/locks.toml");

/// What `objects` says of the locks of the program `locks`: by lock and function, the numbers of each row.
fn locks(options: &str) -> BTreeMap<(String, String), Vec<f64>> {
    let mut command = pathlength(["objects", "--as", "holders", "--format", "csv", "--rules", LOCKS]);
    command.args(options.split_whitespace()).arg(guest("ev56/locks"));
    let outcome = outcome(command);
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let rows = csv(&outcome.stdout);
    assert_eq!(
        rows[0],
        ["lock", "acquired by", "acquired", "held", "mean", "longest", "waits", "held while awaited"]
    );
    let number = |cell: &String| cell.parse().unwrap_or(0.0);
    let row = |row: &Vec<String>| {
        ((row[0].clone(), row[1].clone()), row[2..].iter().map(number).collect::<Vec<f64>>())
    };
    rows[1..].iter().map(row).collect()
}

/// The program holds its locks while it calls `work`, which executes three instructions an iteration.
#[test]
fn locks_are_held_for_the_instructions_of_their_holders() {
    for options in ["", "--children"] {
        let locks = locks(options);
        let of = |lock: &str, function: &str| locks[&(lock.to_string(), function.to_string())].clone();
        let is_about = |n: f64, work: f64| (3.0 * work..3.0 * work + 80.0).contains(&n);
        let reads = of("table", "reads");
        assert_eq!(reads[0], 4.0, "{locks:?}");
        // All of these calls do the same, also the one that had to wait.
        assert_eq!((reads[1], reads[2]), (4.0 * reads[3], reads[3]), "{locks:?}");
        assert!(is_about(reads[3], 1000.0), "{locks:?}");
        assert_eq!((reads[4], reads[5]), (1.0, 0.0), "{locks:?}");
        let writes = (of("table", "writes"), of("log", "writes"));
        assert_eq!((writes.0[0], writes.1[0]), (1.0, 1.0), "{locks:?}");
        assert!(is_about(writes.0[1], 5200.0) && is_about(writes.1[1], 5000.0), "{locks:?}");
        // What is tried in vain is not acquired: the holder tries once, and main, once, successfully.
        let tries = of("log", "main");
        assert!(tries[0] == 1.0 && tries[1] < 20.0, "{locks:?}");
        let contends = of("table", "contends");
        assert!(contends[1] >= contends[5] && contends[1] >= 3.0 * 40_000.0, "{locks:?}");
        // Processes write their records at each system call, threads of one program later.
        assert!(options.is_empty() || contends[5] >= 3.0 * 40_000.0, "{locks:?}");
        assert_eq!(of("total", "")[4], 1.0, "{locks:?}");
    }
}

/// By class of the unit in which a lock is acquired: `reads` beside `writes`.
#[test]
fn locks_are_held_by_classes() {
    let all = locks("");
    let mut command = pathlength(["objects", "--as", "held", "--format", "csv", "--rules", LOCKS]);
    command.args(["--unit", "reads", "--unit", "writes"]).arg(guest("ev56/locks"));
    let outcome = outcome(command);
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let rows = csv(&outcome.stdout);
    assert_eq!(rows[0][..4], ["lock", "class", "acquired", "held"]);
    let of = |lock: &str, class: &str| {
        let row = rows[1..].iter().find(|row| row[0] == lock && row[1] == class).expect("a row");
        row[2..].iter().map(|cell| cell.parse().unwrap_or(0.0)).collect::<Vec<f64>>()
    };
    let key = |lock: &str, function: &str| all[&(lock.to_string(), function.to_string())].clone();
    // Held in the same functions; waits are of the class of the unit that waits.
    assert_eq!(of("table", "reads")[..5], key("table", "reads")[..5]);
    assert_eq!(of("table", "writes"), key("table", "writes"));
    assert_eq!(of("log", "writes"), key("log", "writes"));
    assert_eq!(of("log", "(outside units)")[0], 1.0);
    let outside = of("table", "(outside units)");
    assert!(outside[0] == 1.0 && outside[1] >= 3.0 * 40_000.0, "{rows:?}");
}

/// `reads` waits once, in a thread, for `contends`, whose unit ends after it.
#[test]
fn classes_wait_for_others() {
    let rows_of = |layout: &str| {
        let mut command =
            pathlength(["objects", "--children", "--as", layout, "--format", "csv", "--rules", LOCKS]);
        command.args(["--unit", "reads", "--unit", "contends"]).arg(guest("ev56/locks"));
        let outcome = outcome(command);
        assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
        csv(&outcome.stdout)
    };
    let waiters = rows_of("waiters");
    assert_eq!(waiters[0], ["lock", "held by", "awaited by", "waits", "held while awaited", "mean"]);
    assert_eq!(waiters[1][..4], ["table", "contends", "reads", "1"]);
    assert_eq!(waiters[2][0], "total");
    // The holder begins its iterations when it sees that the other one waits.
    assert!(waiters[1][4].parse::<u64>().unwrap() >= 3 * 40_000, "{waiters:?}");
    assert_eq!(waiters[2][3..], waiters[1][3..]);
    let text = run(&format!("objects --as waiters --rules {LOCKS} :ev56/locks")).failure_after("");
    assert!(text.contains("--unit FUNCTION"), "{text}");
}

const STATEMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/guests/statements.toml");

/// The table of a command on the program `statements`; without a format it stands behind what the program prints.
fn statements(options: &str, format: &[&str]) -> String {
    let mut command = pathlength(["objects", "--rules", STATEMENTS].iter().chain(format));
    command.args(options.split_whitespace()).arg(guest("ev56/statements"));
    let outcome = outcome(command);
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    if format.is_empty() { outcome.stderr } else { outcome.stdout }
}

/// Parsing and planning are below their statement, statements are whole, and scans of one table have different names.
#[test]
fn statements_are_whole_and_scans_told_apart() {
    let rows = csv(&statements("", &["--format", "csv"]));
    let text = "select l_orderkey, l_comment from lineitem where l_orderkey in (select l_orderkey from lineitem where l_tax > 12)";
    let names: Vec<[&str; 2]> = rows[1..7].iter().map(|row| [row[0].as_str(), &row[3]]).collect();
    let below =
        ["(parser)", "Scan on lineitem", "Subquery on lineitem", "Scan on orders", "Scan on lineitem_1"];
    assert_eq!(names[0], [text, ""]);
    assert_eq!(names[1..], below.map(|name| [name, "1"]));
    let table = statements("", &[]);
    assert!(
        table.contains("select l_orderkey, l_comment from lineitem where l_orderkey in (select l_orderke…"),
        "{table}"
    );
}

/// Whatever their constants, and with what is called for the same statement inside.
#[test]
fn statements_are_grouped_without_constants() {
    let rows = csv(&statements("--by statement", &["--format", "csv"]));
    assert_eq!(rows[1][..4], ["update accounts set b = b + $1 where a = $2", "0", "1", ""]);
    assert_eq!(rows[2][0], "(outside)");
    let own: u64 = rows[1][8].parse().unwrap();
    assert!((2 * 3 * 1005..6200).contains(&own), "{rows:?}");
}

/// Of two locks of one name only the awaited one is held while awaited; the row and the relation are named.
#[test]
fn locks_of_one_name_are_told_apart() {
    let waiters =
        csv(&statements("--children --as waiters --unit updates --unit waits", &["--format", "csv"]));
    assert_eq!(waiters[0][..4], ["lock", "for", "held by", "awaited by"]);
    assert_eq!(waiters[1][..5], ["transaction on accounts", "accounts row 3", "updates", "waits", "1"]);
    assert_eq!(waiters.len(), 3, "{waiters:?}");
    let held = csv(&statements("--children --as held", &["--format", "csv"]));
    let row = &held[1];
    assert_eq!((row[0].as_str(), row[1].as_str(), row[5].as_str()), ("transaction on accounts", "3", "1"));
    let number = |at: usize| row[at].parse::<u64>().unwrap();
    // Both are held for as long; one of them is awaited.
    assert!(number(2) >= 2 * 120_000 && (120_000..180_000).contains(&number(6)), "{held:?}");
    let tree = statements("--by lock --as names", &[]);
    assert!(tree.contains("accounts row 3") && !tree.contains("(2)"), "{tree}");
}
