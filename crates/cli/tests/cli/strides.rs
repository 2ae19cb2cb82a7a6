//! `strides`: histograms that a recount from the raw trace finds too, arrays by their names.

use std::collections::BTreeMap;

use crate::show::{Recorded, record};
use crate::support::{csv, run};

fn strides(recorded: &Recorded, options: &str) -> Vec<Vec<String>> {
    let text = run(&format!("strides {} --format csv {options}", recorded.path().display())).noted_success();
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
        [("", 128, 5), ("--minimum-stride 0", 0, 5), ("--minimum-stride 1000 --depth 2", 1000, 2)]
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

/// What a program's strides are while it runs.
fn live(options: &str, program: &str) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("strides.csv");
    run(&format!("strides {options} --format csv -o {} {program}", output.display())).noted_success();
    csv(&std::fs::read_to_string(&output).unwrap())
}

/// While a program runs the same is counted as of its trace.
#[test]
fn a_program_that_is_heard_has_the_strides_of_its_trace() {
    let recorded = record("--heap --unit by_columns :ev56/walks");
    let whole = record("--heap :ev56/walks");
    let heap = record("--heap :ev56/heap");
    for by in ["instruction", "line", "function", "array", "all"] {
        for more in ["--histograms --signed", "--histograms --in-elements --array matrix"] {
            let options = format!("--by {by} {more}");
            let of_unit = live(&options, "--unit by_columns :ev56/walks");
            assert!(of_unit.len() > 1, "{options}");
            assert_eq!(of_unit, strides(&recorded, &options), "{options}");
        }
        let options = format!("--by {by}");
        assert_eq!(live(&options, ":ev56/walks"), strides(&whole, &options), "{options}");
        assert_eq!(live(&options, ":ev56/heap"), strides(&heap, &options), "{options}");
    }
    let advice = live("--advice", "--unit by_columns :ev56/walks");
    assert!(advice.len() > 1);
    assert_eq!(advice, strides(&recorded, "--advice"));
}

/// The rows of the guest's heap blocks: allocating line, loads or stores, references, strides one back.
fn allocated(rows: &[Vec<String>]) -> Vec<[String; 4]> {
    let of = rows.iter().filter(|row| row[0].contains("(heap.c:"));
    let mut all: Vec<_> = of.map(|row| [0, 3, 4, 5].map(|cell| row[cell].clone())).collect();
    all.sort();
    all
}

/// The expected loads from blocks of a line that allocates, which has a comment in the source.
fn loads(function: &str, comment: &str, references: u64, strides: &str) -> [String; 4] {
    let source = include_str!("guests/heap.c");
    let line = 1 + source.lines().position(|line| line.contains(&format!("/* {comment} */"))).unwrap();
    let name = format!("allocated in {function} (heap.c:{line})");
    [name, "loads".into(), references.to_string(), strides.into()]
}

#[test]
fn blocks_of_the_heap_are_told_apart_by_who_allocated_them() {
    let options = "--depth 1 --in-elements";
    let table = loads("load_table", "table", 2000, "1: 100 %");
    let rows = loads("load_rows", "rows", 334, "3: 100 %");
    // The C library copies the block, and reads its end where it puts it.
    let grown = loads("grow", "grown", 1000, "64: 100 %");
    let recorded = record("--heap :ev56/heap");
    let found = allocated(&strides(&recorded, options));
    let named = |found: &[[String; 4]], expected: &[String; 4]| {
        found.iter().filter(|row| row[..2] == expected[..2]).cloned().collect::<Vec<_>>()
    };
    assert_eq!(named(&found, &table), std::slice::from_ref(&table), "{found:?}");
    assert_eq!(named(&found, &rows)[0][0], rows[0], "{found:?}");
    assert_eq!(named(&found, &grown)[0][0], grown[0], "{found:?}");
    // Recording begins at `walk`: blocks allocated before are known, too.
    let walks = record("--heap --unit walk :ev56/heap");
    let mut expected = vec![grown, rows, table];
    expected.sort();
    assert_eq!(allocated(&strides(&walks, options)), expected);
    assert_eq!(allocated(&live(options, "--unit walk :ev56/heap")), expected);
    // Of a part of the trace, too, whose blocks were allocated before.
    let last = allocated(&strides(&walks, &format!("{options} --unit-number 3-3")));
    assert_eq!(last, [loads("load_table", "table", 1000, "1: 100 %")]);
    // A block can be asked for by its name.
    let name = expected[0][0].replace(' ', "\u{a0}");
    assert!(name.starts_with("allocated"));
    let without = record("--unit walk :ev56/heap");
    let text = run(&format!("strides {}", without.path().display())).quiet_success();
    assert!(text.contains("recorded without --heap"), "{text}");
    assert_eq!(allocated(&strides(&without, options)), Vec::<[String; 4]>::new());
}

#[test]
fn blocks_of_threads_and_processes_are_their_own() {
    let options = "--depth 1 --in-elements";
    let of_threads = |found: Vec<[String; 4]>| found.iter().find(|row| row[0].contains(" body ")).cloned();
    // Each thread starts anew: 4 walks of 500.
    let own = loads("body", "own", 4 * 4 * 500, "2: 100 %");
    let threads = record("--heap --unit walk :ev56/heap threads");
    assert_eq!(of_threads(allocated(&strides(&threads, options))).as_ref(), Some(&own));
    let live = live(options, "--unit walk :ev56/heap threads");
    assert_eq!(of_threads(allocated(&live)).as_ref(), Some(&own));
    // A child has its parent's blocks, until another program takes its place.
    let forks = record("--heap --unit walk :ev56/heap fork");
    let found = allocated(&strides(&forks, options));
    let of = |expected: &[String; 4]| found.contains(expected);
    assert!(of(&loads("load_table", "table", 3000, "1: 100 %")), "{found:?}");
    let child = allocated(&strides(&forks, &format!("{options} --process 1")));
    let expected =
        [loads("load_rows", "rows", 250, "4: 100 %"), loads("load_table", "table", 1000, "1: 100 %")];
    assert_eq!(child, expected);
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
    assert!(
        by_columns
            .contains("a stride of 4,096 bytes, not along its adjacent elements: interchange the loops"),
        "{by_columns}"
    );
    assert!(by_columns.contains("maps to 2 sets of the dcache"), "{by_columns}");
    let twice = advice("twice");
    assert_eq!((twice.len(), twice[0][1].as_str()), (1, "table"), "{twice:?}");
    assert!(twice[0].join(",").contains("scalar replacement"), "{twice:?}");
    let indirect = advice("indirect");
    assert_eq!((indirect.len(), indirect[0][1].as_str()), (1, "table"), "{indirect:?}");
    assert!(indirect[0].join(",").contains("by way of where"), "{indirect:?}");
}

/// The same of stores, and of arrays whose columns are kept together.
#[test]
fn advice_is_given_of_stores_and_of_fortran() {
    let advice = |program: &str, function: &str| {
        let recorded = record(&format!("--unit {function} :ev56/{program}"));
        let rows = strides(&recorded, "--advice").split_off(1);
        rows.iter().map(|row| row.join(",")).collect::<Vec<_>>().join("\n")
    };
    for function in ["by_rows", "ordered", "once"] {
        assert_eq!(advice("stores", function), "", "{function}");
    }
    let stores = advice("stores", "by_columns");
    assert!(
        stores.contains("matrix,32768,") && stores.contains("the last index is the innermost"),
        "{stores}"
    );
    assert!(stores.contains("sets of the dcache"), "{stores}");
    for kind in ["load", "store"] {
        assert_eq!(advice("columns", &format!("{kind}_by_columns")), "", "{kind}");
        let rows = advice("columns", &format!("{kind}_by_rows"));
        assert!(
            rows.contains("matrix,32768,") && rows.contains("the first index is the innermost"),
            "{rows}"
        );
        assert!(
            rows.contains("a stride of 4,096 bytes") && rows.contains("sets of the dcache: make its columns"),
            "{rows}"
        );
    }
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
    for (name, said) in [("nothing", "no variable 'nothing' is known"), ("matrx", "did you mean matrix?")] {
        let outcome = run(&format!("strides --by line --array {name} :ev56/walks"));
        assert_eq!(outcome.stdout, "", "{name}: it ran");
        let failure = outcome.failure();
        assert!(failure.contains(said), "{failure}");
    }
    let failure = run("strides --by all --function main :ev56/walks").failure();
    assert!(failure.contains("--unit is the only selection"), "{failure}");
    let failure = run(&format!("strides --unit main {}", path.display())).failure();
    assert!(failure.contains("is a trace"), "{failure}");
}
