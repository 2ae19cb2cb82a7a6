//! `strides`: histograms that a recount from the raw trace finds too, arrays by their names.

use std::collections::BTreeMap;

use crate::show::{Recorded, record};
use crate::support::{csv, run};

fn strides(recorded: &Recorded, options: &str) -> Vec<Vec<String>> {
    let text = run(&format!("strides {} --format csv {options}", recorded.path().display())).quiet_success();
    csv(&text)
}

/// By address and kind: all addresses accessed, in order.
fn accesses(recorded: &Recorded, options: &str) -> BTreeMap<(String, String), Vec<i64>> {
    let rows = csv(&recorded.show(&format!("--as addresses --format csv {options}")));
    assert_eq!(rows[0][2..], ["kind", "address", "size"]);
    let mut all = BTreeMap::<_, Vec<i64>>::new();
    let mut pc = String::new();
    for row in &rows[1..] {
        let (kind, address) = (&row[2], &row[3]);
        match kind.as_str() {
            "fetch" => pc.clone_from(address),
            _ => {
                let number = i64::from_str_radix(address.trim_start_matches("0x"), 16).unwrap();
                all.entry((pc.clone(), format!("{kind}s"))).or_default().push(number);
            }
        }
    }
    all
}

/// The smallest and the largest stride of a bin.
fn bin(stride: i64) -> (i64, Option<i64>) {
    match stride.abs() {
        short @ ..128 => (short, Some(short)),
        long @ ..32768 => {
            let near = 1 << long.ilog2();
            (near, Some(2 * near - 1))
        }
        _ => (32768, None),
    }
}

#[test]
fn histograms_are_what_a_recount_of_the_addresses_finds() {
    let recorded = record("--unit by_columns :ev56/walks");
    for (options, threshold, depth) in
        [("", 128, 5), ("--all-references", 0, 5), ("--threshold 1000 --depth 2", 1000, 2)]
    {
        let rows = strides(&recorded, &format!("--by instruction --histograms {options}"));
        let heading =
            ["address", "instruction", "where", "kind", "references", "steps back", "from", "to", "count"];
        assert_eq!(rows[0][..9], heading);
        let mut found = BTreeMap::new();
        for row in &rows[1..] {
            // Instructions have commas, and quotes around them.
            let [step, from, to, count] = [5, 4, 3, 2].map(|back| row[row.len() - back].parse::<i64>().ok());
            let kind = row[row.len() - 7].clone();
            let key = ((row[0].clone(), kind), step.unwrap(), from.unwrap(), to);
            assert!(found.insert(key, count.unwrap()).is_none());
        }
        let mut expected = BTreeMap::new();
        for (key, addresses) in accesses(&recorded, "") {
            for (index, address) in addresses.iter().enumerate() {
                for step in 1..=depth.min(index as i64) {
                    let stride = address - addresses[index - step as usize];
                    let (from, to) = bin(stride);
                    *expected.entry((key.clone(), step, from, to)).or_insert(0) += 1;
                    if stride.abs() < threshold {
                        break;
                    }
                }
            }
        }
        assert_eq!(found, expected, "{options}");
    }
}

#[test]
fn arrays_have_names_types_and_patterns() {
    let recorded = record("--from main :ev56/walks");
    let arrays = strides(&recorded, "--depth 1 --in-elements");
    assert_eq!(arrays[0], ["array", "type", "where", "kind", "references", "1 back"]);
    let of = |name: &str, kind: &str| {
        let found = arrays.iter().find(|row| row[0] == name && row[3] == kind);
        found.unwrap_or_else(|| panic!("{name} is not in {arrays:#?}")).clone()
    };
    // Half of the loads go by rows, half by columns.
    let matrix = of("matrix", "loads");
    assert_eq!((matrix[1].as_str(), matrix[4].as_str()), ("double [64][512]", "65536"));
    assert_eq!(of("where", "stores")[1..], ["int [4096]", "walks", "stores", "4096", "1: 100 %"]);
    assert_eq!(of("where", "loads")[5], "1: 100 %");
    assert!(arrays.iter().any(|row| row[0] == "(stack)"));

    let lines = strides(&recorded, "--by line --array matrix --in-elements --depth 1");
    assert_eq!(lines.len(), 4, "three lines access it: {lines:?}");
    let by = |function: &str| lines.iter().find(|row| row[1] == function).unwrap().clone();
    assert_eq!(by("by_rows")[2..], ["loads", "32768", "1: 100 %"]);
    // 512 elements down, and at each column's end back to the top.
    assert!(by("by_columns")[4].contains("512 to 1023: 98 %"), "{lines:?}");
}

/// While a program runs the same is counted as of its trace.
#[test]
fn a_program_that_is_heard_has_the_strides_of_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("strides.csv");
    let recorded = record("--unit by_columns :ev56/walks");
    for by in ["instruction", "all"] {
        let options = format!("--by {by} --histograms --signed");
        let heard = format!("strides {options} --format csv -o {} --unit by_columns", output.display());
        run(&format!("{heard} :ev56/walks")).quiet_success();
        let heard = csv(&std::fs::read_to_string(&output).unwrap());
        assert_eq!(heard, strides(&recorded, &options));
    }
}

/// Each function of the program has one problem, or none.
#[test]
fn advice_is_given_where_there_is_a_problem() {
    let advice = |function: &str| {
        let recorded = record(&format!("--unit {function} :ev56/walks"));
        strides(&recorded, "--advice").split_off(1)
    };
    assert_eq!(advice("by_rows"), Vec::<Vec<String>>::new());
    let by_columns = advice("by_columns").iter().map(|row| row.join(",")).collect::<Vec<_>>().join("\n");
    assert!(by_columns.contains("walks.c:22,matrix,32768,"), "{by_columns}");
    assert!(by_columns.contains("4,096 bytes a step: interchange the loops"), "{by_columns}");
    assert!(by_columns.contains("steps that share 2 sets of the dcache"), "{by_columns}");
    let twice = advice("twice");
    assert_eq!((twice.len(), twice[0][1].as_str()), (1, "table"), "{twice:?}");
    assert!(twice[0].join(",").contains("scalar replacement"), "{twice:?}");
    let indirect = advice("indirect");
    assert_eq!((indirect.len(), indirect[0][1].as_str()), (1, "table"), "{indirect:?}");
    assert!(indirect[0].join(",").contains("by way of where"), "{indirect:?}");
}

#[test]
fn charts_go_to_a_page() {
    let recorded = record("--from main :ev56/walks");
    let page = recorded.folder.path().join("page.html");
    run(&format!("strides {} -o {}", recorded.path().display(), page.display())).quiet_success();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("matrix, loads: 65,536 references"));
}

#[test]
fn what_is_not_there_is_told() {
    let recorded = record("--unit by_rows :ev56/walks");
    let path = recorded.path();
    let failure = run(&format!("strides {} --array nothing", path.display())).failure();
    assert!(failure.contains("no variable 'nothing' is known"), "{failure}");
    let failure = run("strides --by line :ev56/walks").failure();
    assert!(failure.contains("record a trace first"), "{failure}");
    let failure = run("strides --by all --function main :ev56/walks").failure();
    assert!(failure.contains("only --unit chooses"), "{failure}");
    let failure = run(&format!("strides --unit main {}", path.display())).failure();
    assert!(failure.contains("is a trace"), "{failure}");
}
