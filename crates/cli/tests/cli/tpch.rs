//! TPC-H on SQLite: the Alpha build answers what the host's own build answers and what the tables say, and the study's tables agree
//! with each other and with the commands that count the same.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use workloads::build::{Build, BuildFolders, build};
use workloads::toolchain::{BYTE_WORD, NATIVE};
use workloads::workload::Workload;

use crate::caches::{Folder, cell};
use crate::support::{Outcome, csv, outcome, pathlength};

const SCALE: &str = "0.001";
/// Queries of the study: a scan, an aggregation with a sort, and one with a subquery.
const QUERIES: &str = "1,6,22";

/// Alpha's and the host's builds, and the study's tables by name, of one study. It was killed once before, when it made its
/// database.
struct Studied {
    builds: [Build; 2],
    tables: BTreeMap<String, Vec<Vec<String>>>,
    page: String,
}

fn studied() -> &'static Studied {
    static STUDIED: OnceLock<Studied> = OnceLock::new();
    STUDIED.get_or_init(|| {
        let workload = Workload::named("tpch").expect("the workload");
        let options = BuildFolders { folder: testing::builds(), sources: None };
        let builds = build(workload, &[BYTE_WORD, NATIVE], &options, &|_| {}).expect("the workload builds");
        let folder = Folder::new();
        std::os::unix::fs::symlink(testing::builds(), folder.path("build")).unwrap();
        if let Some(database) = databases().next() {
            fs::remove_file(database).unwrap();
        }
        let study = || {
            let mut command = pathlength(["study", "tpch", "--scale", SCALE, "--queries", QUERIES]);
            command.current_dir(folder.path("."));
            command
        };
        kill_when_it_loads(study());
        assert_eq!(databases().count(), 0);
        let studied = study().output().expect("the study runs");
        assert!(studied.status.success(), "{}", String::from_utf8_lossy(&studied.stderr));
        let mut tables = BTreeMap::new();
        for file in fs::read_dir(folder.path("study/tpch/csv")).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            tables.insert(name, csv(&fs::read_to_string(&path).unwrap()));
        }
        let page = fs::read_to_string(folder.path("study/tpch/index.html")).unwrap();
        Studied { builds: builds.try_into().expect("two builds"), tables, page }
    })
}

fn kill_when_it_loads(mut command: Command) {
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("making the database")));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The databases of this scale factor.
fn databases() -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(testing::builds().join("tpch/runs")).into_iter().flatten().flatten();
    let paths = files.map(|file| file.path());
    paths.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&format!("data-{SCALE}-")) && name.ends_with(".db")
    })
}

/// The rows of a file of the data, split into columns.
fn rows(table: &str) -> Vec<Vec<String>> {
    let folders = fs::read_dir(testing::builds().join("tpch")).unwrap().flatten();
    let folder = folders.map(|file| file.path()).find(|path| {
        path.is_dir()
            && path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(&format!("data-{SCALE}-")))
    });
    let text = fs::read_to_string(folder.unwrap().join(format!("{table}.tbl"))).unwrap();
    text.lines().map(|line| line.split('|').map(String::from).collect()).collect()
}

/// The query as the study wrote it for SQLite, or as it would.
fn statement(number: u32) -> PathBuf {
    testing::builds().join(format!("tpch/runs/q{number:02}.sql"))
}

fn on_alpha(command: &[&str], more: &[&Path]) -> Outcome {
    let mut alpha = pathlength(command);
    alpha.arg(&studied().builds[0].program).arg("run").arg(databases().next().unwrap()).args(more);
    outcome(alpha)
}

fn on_host(more: &[&Path]) -> String {
    let mut native = Command::new(&studied().builds[1].program);
    native.arg("run").arg(databases().next().unwrap()).args(more);
    outcome(native).quiet_success()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

#[test]
fn the_host_answers_what_the_tables_say() {
    studied();
    let items = rows("lineitem");
    let (mut revenue, mut counts) = (0, BTreeMap::<_, [i64; 2]>::new());
    // Cents, so that sums are exact.
    let cents = |text: &str| -> i64 { text.replace('.', "").parse().unwrap() };
    for item in &items {
        let [quantity, price, discount] = [4, 5, 6].map(|column| &item[column]);
        if ("1994-01-01".."1995-01-01").contains(&item[10].as_str())
            && (5..=7).contains(&cents(discount))
            && number(quantity) < 24.0
        {
            revenue += cents(price) * cents(discount);
        }
        if item[10].as_str() <= "1998-09-02" {
            let [count, prices] = counts.entry((item[8].clone(), item[9].clone())).or_default();
            *count += 1;
            *prices += cents(price);
        }
    }
    assert!(revenue > 0 && counts.len() == 4);
    let found = on_host(&[&statement(6)]);
    assert!((number(found.trim()) - revenue as f64 / 1e4).abs() < 1e-4, "{found} {revenue}");
    let found = on_host(&[&statement(1)]);
    for (line, ((flag, status), [count, prices])) in found.lines().zip(&counts) {
        let columns: Vec<&str> = line.split('|').collect();
        assert_eq!(
            (columns[0], columns[1], columns[9]),
            (flag.as_str(), status.as_str(), count.to_string().as_str())
        );
        assert!((number(columns[3]) - *prices as f64 / 100.0).abs() < 1e-4, "{line}");
    }
    assert_eq!(found.lines().count(), 4);
}

#[test]
fn the_study_agrees_with_the_commands() {
    let studied = studied();
    let folder = Folder::new();
    let table = folder.path("table.csv");
    let output = table.display().to_string();
    let own =
        ["--machine", "origin200", "--unit", "tpch_query", "--skip", "1", "--units", "1", "--cpu", "ev56"];
    let own = ["caches", "-o", &output, "--format", "csv"].into_iter().chain(own).collect::<Vec<_>>();
    // The same paths, so that the program begins with the same stack.
    let file = statement(6);
    let counted = on_alpha(&own, &[&file, &file]);
    assert_eq!(counted.code(), 0, "{}", counted.stderr);
    let structures = csv(&fs::read_to_string(&table).unwrap());
    let misses = &studied.tables["misses-origin200-core"];
    let row = misses.iter().position(|row| row[0] == "Q6").unwrap();
    let instructions = cell(misses, row, "instructions");
    let of = |name: &str, column| {
        let row = structures.iter().position(|row| row[1] == name).unwrap();
        cell(&structures, row, column)
    };
    assert_eq!(of("icache", "accesses"), instructions);
    // The environment is another one, and so are addresses on the stack.
    let l2 = cell(misses, row, "l2 instruction misses") + cell(misses, row, "l2 data misses");
    let ours = [("l2", l2)]
        .into_iter()
        .chain(["icache", "dcache"].map(|name| (name, cell(misses, row, &format!("{name} misses")))));
    for (name, ours) in ours {
        let theirs = of(name, "misses");
        assert!((theirs / ours - 1.0).abs() < 0.05, "{name}: {theirs} {ours}");
    }
}

#[test]
fn tables_of_the_study_agree() {
    let tables = &studied().tables;
    let queries = &tables["queries"];
    assert_eq!(
        queries.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(),
        ["query", "Q1", "Q6", "Q22", "total"]
    );
    let total = queries.len() - 1;
    for column in ["instructions", "cycles, origin200-core", "cycles, present-day-core"] {
        let sum: f64 = (1..total).map(|row| cell(queries, row, column)).sum();
        assert_eq!(sum, cell(queries, total, column), "{column}");
    }
    // Components are all of it.
    let (components, misses) = (&tables["components"], &tables["misses-origin200-core"]);
    let last = components.len() - 1;
    assert!(last > 6);
    for (column, whole) in [
        ("instructions", cell(queries, total, "instructions")),
        ("cycles", cell(queries, total, "cycles, origin200-core")),
        ("icache misses", cell(misses, misses.len() - 1, "icache misses")),
        ("dcache misses", cell(misses, misses.len() - 1, "dcache misses")),
    ] {
        let sum: f64 = (1..last).map(|row| cell(components, row, column)).sum();
        assert_eq!((sum, cell(components, last, column)), (whole, whole), "{column}");
    }
    // Causes of cycles are all of them.
    let cycles = &tables["cycles-origin200-core"];
    for row in 1..total {
        let sum: f64 = cycles[row][1..].iter().map(|cycles| number(cycles)).sum();
        assert_eq!(sum, cell(queries, row, "cycles, origin200-core"));
    }
    let scales = &tables["scales"];
    assert_eq!(scales.len(), 1 + 3 * 3);
    let growth = &tables["growth"];
    for (row, first) in [1, 4, 7].into_iter().enumerate() {
        let times = cell(scales, first + 2, "L2 misses") / cell(scales, first, "L2 misses");
        assert!((times - cell(growth, row + 1, "times the L2 misses")).abs() < 1e-9);
    }
    // A scan of four times the rows.
    assert!((3.5..4.5).contains(&cell(growth, 2, "times the instructions")));
}

#[test]
fn access_paths_are_compared() {
    let Studied { tables, page, .. } = studied();
    let paths = &tables["access-paths"];
    let of = |days: usize, path: usize, column: &str| cell(paths, 1 + 2 * days + path, column);
    let items = rows("lineitem");
    for (days, end) in ["1993-01-02", "1993-01-04", "1993-01-07"].into_iter().enumerate() {
        let range = "1993-01-01"..end;
        let expected = items.iter().filter(|item| range.contains(&item[10].as_str())).count();
        assert_eq!((of(days, 0, "rows"), of(days, 1, "rows")), (expected as f64, expected as f64));
    }
    // A sequential scan costs nearly the same whatever it selects, an index scan does not.
    let growth = |path| of(9, path, "instructions") / of(0, path, "instructions");
    assert!(growth(0) < 2.0 && growth(1) > 10.0, "{} {}", growth(0), growth(1));
    assert_eq!(tables["selectivity"].len(), 11);
    assert!(tables["switching"].iter().any(|row| row[0] == "the optimizer"));
    assert!(page.contains("Q22") && page.contains("Index scan against sequential scan"));
}

/// All queries, row by row; in `make test` a few of them.
#[test]
fn alpha_answers_what_the_host_answers() {
    studied();
    let folder = Folder::new();
    for number in studies::tpch::numbers().step_by(testing::sample(5, 1)) {
        let file = folder.path(&format!("q{number:02}.sql"));
        fs::write(&file, studies::tpch::sqlite_query(number, SCALE.parse().unwrap())).unwrap();
        let ours = on_alpha(&["run"], &[&file]);
        assert_eq!((ours.code(), ours.stderr.as_str()), (0, ""), "Q{number}");
        assert_eq!(ours.stdout, on_host(&[&file]), "Q{number}");
    }
}
