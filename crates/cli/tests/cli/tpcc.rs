//! TPC-C on SQLite: the Alpha build does what the host's own build does, the consistency conditions find violations, and
//! the classes of its transactions add up to the run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use workloads::build::{BuildFolders, build};
use workloads::toolchain::{BYTE_WORD, NATIVE};
use workloads::workload::Workload;

use crate::caches::{Folder, cell, column};
use crate::distribution::tables;
use crate::support::{Outcome, csv, outcome, pathlength, run};

const TRANSACTIONS: &str = "230";

const UNITS: [&str; 5] =
    ["tpcc_new_order", "tpcc_payment", "tpcc_order_status", "tpcc_delivery", "tpcc_stock_level"];

/// The host's program and Alpha's, built and kept for other tests and for studies.
fn programs() -> &'static [PathBuf; 2] {
    static PROGRAMS: OnceLock<[PathBuf; 2]> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let workload = Workload::named("tpcc").expect("the workload");
        let options = BuildFolders { folder: testing::builds(), sources: None };
        let builds = build(workload, &[NATIVE, BYTE_WORD], &options, &|_| {}).expect("the workload builds");
        let programs: Vec<_> = builds.into_iter().map(|build| build.program).collect();
        programs.try_into().expect("two builds")
    })
}

fn native(arguments: &[&str], database: &Path) -> Outcome {
    let mut command = Command::new(&programs()[0]);
    command.args(arguments).arg(database);
    outcome(command)
}

/// A small company in a file of this name.
fn load(folder: &Folder, name: &str) -> PathBuf {
    let database = folder.path(name);
    let loaded = native(&["load", "--warehouses", "2", "--items", "200", "--customers", "60"], &database);
    assert_eq!(loaded.code(), 0, "{}", loaded.stderr);
    assert_eq!(loaded.stdout, "consistent: 12 conditions hold\nloaded 2 warehouses\n");
    database
}

/// What a run prints, without its times, which are the columns after the third.
fn results(run: &Outcome) -> Vec<Vec<String>> {
    assert_eq!(run.code(), 0, "{}", run.stderr);
    let results = run.stdout.lines().map(|line| {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        let is_transaction = words.len() == 5 && line.contains('.');
        words.into_iter().take(if is_transaction { 3 } else { usize::MAX }).collect()
    });
    results.collect()
}

#[test]
fn does_what_the_native_build_does() {
    let folder = Folder::new();
    let (ours, theirs) = (load(&folder, "ours"), folder.path("theirs"));
    fs::copy(&ours, &theirs).unwrap();
    let arguments = ["run", "--transactions", TRANSACTIONS, "--seed", "7"];
    let mut command = pathlength([Path::new("run"), &programs()[1]]);
    command.args(arguments).arg(&ours);
    let (ours, theirs) = (results(&outcome(command)), results(&native(&arguments, &theirs)));
    assert_eq!(ours, theirs);
    let done: u64 = ours[2..7].iter().map(|row| row[1].parse::<u64>().unwrap()).sum();
    assert_eq!(done.to_string(), TRANSACTIONS);
}

#[test]
fn keying_and_thinking_take_simulated_time() {
    let folder = Folder::new();
    let database = load(&folder, "db");
    let mut command = pathlength([Path::new("count"), &programs()[1]]);
    command.args(["run", "--transactions", "100", "--waiting", "1"]).arg(&database);
    // The clock of a counted program advances by the time that it sleeps.
    assert_eq!(outcome(command).code(), 0);
}

#[test]
fn violations_of_conditions_are_found() {
    let folder = Folder::new();
    let changes = [
        ("UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2", vec![1, 8]),
        ("UPDATE district SET d_next_o_id = 7 WHERE d_id = 3", vec![2]),
        ("DELETE FROM new_orders WHERE no_o_id = 50", vec![3, 5]),
        (
            "DELETE FROM order_lines WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1",
            vec![4, 6],
        ),
        ("UPDATE order_lines SET ol_delivery_d = NULL WHERE ol_o_id = 5", vec![7]),
        ("UPDATE district SET d_ytd = d_ytd + CASE d_id WHEN 1 THEN 1 ELSE -1 END WHERE d_id < 3", vec![9]),
        (
            "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_id = 1",
            vec![10],
        ),
        ("UPDATE customer SET c_ytd_payment = 0 WHERE c_id = 9", vec![11]),
    ];
    let says = [
        "sum of its districts'",
        "the next order's number",
        "without gaps",
        "as many order lines",
        "exactly if it is a new order",
        "as many lines as it says",
        "exactly if its order has a carrier",
        "a warehouse's payments are those of the history",
        "a district's payments are those of the history",
        "less what they paid",
        "together are what was delivered",
    ];
    let loaded = load(&folder, "loaded");
    for (change, violated) in changes {
        let database = folder.path("changed");
        fs::copy(&loaded, &database).unwrap();
        rusqlite::Connection::open(&database).unwrap().execute(change, []).unwrap();
        let checked = native(&["check"], &database);
        assert_eq!(checked.code(), 1, "{change}");
        for (number, says) in (1..).zip(says) {
            assert_eq!(
                checked.stderr.contains(says),
                violated.contains(&number),
                "{change}: {}",
                checked.stderr
            );
        }
    }
}

/// Clients can have warehouses of their own: then only the terminals of theirs do something.
#[test]
fn a_client_has_the_terminals_of_a_warehouse() {
    let folder = Folder::new();
    let database = load(&folder, "loaded");
    let orders = || {
        let query = "SELECT sum(d_next_o_id) FROM district GROUP BY d_w_id ORDER BY d_w_id";
        let connection = rusqlite::Connection::open(&database).unwrap();
        let mut statement = connection.prepare(query).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<Vec<i64>, _>>().unwrap()
    };
    let run = |options: &str| {
        let options: Vec<&str> =
            ["run", "--transactions", "46"].into_iter().chain(options.split(' ')).collect();
        native(&options, &database)
    };
    let loaded = orders();
    assert_eq!(run("--warehouse 2").code(), 0);
    let of_second = orders();
    assert!(of_second[0] == loaded[0] && of_second[1] > loaded[1], "{loaded:?} {of_second:?}");
    assert_eq!(run("--shuffle").code(), 0);
    let of_both = orders();
    assert!(of_both[0] > of_second[0] && of_both[1] > of_second[1], "{of_second:?} {of_both:?}");
    let none = run("--warehouse 3");
    assert!(none.code() == 1 && none.stderr.contains("there are 2 warehouses only"), "{}", none.stderr);
}

#[test]
fn classes_add_up_to_the_run() {
    let folder = Folder::new();
    let database = load(&folder, "loaded");
    let program = programs()[1].display();
    let words = |options: &str| {
        let copy = folder.path("copy");
        fs::copy(&database, &copy).unwrap();
        format!("{options} {program} run --transactions {TRANSACTIONS} {}", copy.display())
    };
    let units: Vec<String> = UNITS.iter().map(|unit| format!("--unit {unit}")).collect();
    let all = tables(&folder, &words(&format!("count {}", units.join(" "))));
    let images = folder.table(&words("count --by image"));
    let classes = &all["classes"];
    let outside = UNITS.len() + 1;
    let sum: f64 = (1..=outside).map(|row| cell(classes, row, "instructions")).sum();
    assert_eq!(cell(classes, outside + 1, "instructions"), sum);
    assert_eq!(images.last().unwrap()[1], classes.last().unwrap()[2]);
    // Each class as if it had been the only one.
    for (row, unit) in (1..).zip(UNITS) {
        let alone = tables(&folder, &words(&format!("units --unit {unit}")));
        let distribution = &alone["distribution"];
        for (ours, theirs) in
            [("units", "calls"), ("minimum", "minimum"), ("maximum", "maximum"), ("mean", "mean")]
        {
            let (ours, theirs) = (cell(&all["path-length"], row, ours), cell(distribution, 1, theirs));
            assert!((ours - theirs).abs() < 1e-6, "{unit}: {ours} {theirs}");
        }
        // Images and components each make up the mean.
        for name in ["images", "components"] {
            let rows = without_total(&all[name]);
            let sum: f64 = (1..=rows).map(|at| cell(&all[name], at, unit)).sum();
            let mean = cell(&all["path-length"], row, "mean");
            assert!((sum - mean).abs() <= rows as f64 / 2.0, "{unit} {name}: {sum} {mean}");
        }
    }
}

/// The number of rows without the heading and the total.
fn without_total(rows: &[Vec<String>]) -> usize {
    let last = rows.last().expect("a heading");
    rows.len() - 1 - usize::from(last[0] == "total")
}

#[test]
fn options_of_classes_are_checked() {
    let program = programs()[1].display();
    let fails =
        |options: &str| run(&format!("count --unit tpcc_payment {options} {program} check db")).failure();
    assert!(fails("--unit tpcc_nothing").contains("tpcc_nothing"));
    let compared = run(&format!("compare --unit a --unit b {program} {program} -- check db")).failure();
    assert!(compared.contains("one unit of work"), "{compared}");
    assert!(fails("--by component --components nothing").contains("no components are called 'nothing'"));
}

#[test]
fn the_study_has_all_transactions_of_both_builds() {
    let folder = Folder::new();
    programs();
    std::os::unix::fs::symlink(testing::builds(), folder.path("build")).unwrap();
    let mut command =
        pathlength(["study", "tpcc", "--machine", "alphastation500", "--transactions", TRANSACTIONS]);
    command.current_dir(folder.path("."));
    let studied = outcome(command);
    assert_eq!(studied.code(), 0, "{}", studied.stderr);
    let read = |name: &str| csv(&fs::read_to_string(folder.path("study/tpcc/csv").join(name)).unwrap());
    let rows = read("transactions.csv");
    assert_eq!(rows.len(), 1 + UNITS.len());
    assert_eq!(column(&rows, "units").iter().sum::<u64>().to_string(), TRANSACTIONS);
    for (original, byte_word) in column(&rows, "original").into_iter().zip(column(&rows, "byte-word")) {
        assert!(byte_word < original && byte_word > original / 2, "{original} {byte_word}");
    }
    let classes = read("classes-byte-word.csv");
    let all = column(&classes, "instructions");
    assert_eq!(all[..all.len() - 1].iter().sum::<u64>(), all[all.len() - 1]);
    // The last of the transactions are simulated. Not all kinds need to be among them.
    let on_machine = read("on-alphastation500.csv");
    assert!(on_machine.len() > 2 * 3, "{on_machine:?}");
    assert_eq!(column(&on_machine, "transactions").iter().sum::<u64>(), 2 * 46);
    let simulated = column(&on_machine, "instructions");
    for (row, one) in on_machine[1..].iter().zip(&simulated) {
        let counted = rows[1..].iter().position(|counted| counted[0] == row[0]).unwrap();
        let mean = column(&rows, &row[1])[counted];
        assert!((mean / 2..2 * mean).contains(one), "{row:?} {mean}");
    }
    assert!(column(&on_machine, "cycles").iter().zip(&simulated).all(|(cycles, executed)| cycles > executed));
    let relative = read("throughput.csv");
    assert_eq!(relative.len(), 1 + 2);
    assert_eq!(relative[1].last().unwrap(), "1");
    let page = fs::read_to_string(folder.path("study/tpcc/index.html")).unwrap();
    assert!(page.contains("New-Order") && page.contains("virtual machine"));
    assert!(page.contains("The last 46 of 230 transactions"));
}
