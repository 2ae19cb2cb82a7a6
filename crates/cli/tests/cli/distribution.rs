//! `units`: what one call costs. The oracle is the list of all calls, and the costs of one call alone.

use std::collections::BTreeMap;
use std::fs;

use crate::caches::{Folder, cell, column};
use crate::support::{csv, listing, run};

/// The tables that a command writes, by name.
pub fn tables(folder: &Folder, words: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let path = folder.path("tables");
    let _ = fs::remove_dir_all(&path);
    let (command, options) = words.split_once(' ').unwrap();
    run(&format!("{command} --format csv -o {} {options}", path.display())).noted_success();
    let read = |name: String| {
        let text = fs::read_to_string(path.join(&name)).unwrap();
        (name.strip_suffix(".csv").unwrap().to_owned(), csv(&text))
    };
    listing(&path).into_iter().map(read).collect()
}

/// The smallest value that `percent` of all values do not exceed, found by counting.
fn percentile(values: &[u64], percent: u64) -> u64 {
    let enough = |value: &u64| {
        100 * values.iter().filter(|other| *other <= value).count() as u64 >= percent * values.len() as u64
    };
    values.iter().copied().filter(enough).min().unwrap()
}

/// Checks a row of a distribution against the values of all calls.
fn check(rows: &[Vec<String>], row: usize, values: &[u64], words: &str) {
    let shown = |heading: &str| cell(rows, row, heading);
    assert_eq!(shown("calls"), values.len() as f64, "{words}");
    assert_eq!(shown("minimum"), *values.iter().min().unwrap() as f64, "{words}");
    for percent in [50, 90, 99] {
        assert_eq!(shown(&format!("p{percent}")), percentile(values, percent) as f64, "{words} p{percent}");
    }
    assert_eq!(shown("maximum"), *values.iter().max().unwrap() as f64, "{words}");
    let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
    assert!((shown("mean") - mean).abs() < 1e-6, "{words}: {} {mean}", shown("mean"));
}

/// The row with a text in its first column.
fn row_of(rows: &[Vec<String>], name: &str) -> usize {
    rows.iter().position(|row| row[0] == name).unwrap_or_else(|| panic!("{name}: {rows:?}"))
}

#[test]
fn distributions_have_all_calls() {
    let folder = Folder::new();
    let models = [
        ("", "calls", "loads"),
        ("--event misses --machine dec3000", "caches --machine dec3000", "dcache misses"),
        ("--event cycles --machine dec3000", "time --machine dec3000", "cycles"),
    ];
    let trace = folder.trace("--unit request :ev56/requests");
    for (model, all, event) in models {
        for what in ["--unit request :ev56/requests", "--unit request --skip 7 --units 50 :ev56/requests"] {
            let listed = folder.table(&format!("{all} --by unit {what}"));
            let words = format!("units {model} {what}");
            let shown = tables(&folder, &words);
            let rows = &shown["distribution"];
            for heading in [event, "instructions"] {
                let (row, values) = (row_of(rows, heading), column(&listed, heading));
                check(rows, row, &values, &words);
                let slowest = cell(rows, row, "maximum in call") as u64;
                let at = column(&listed, "unit").iter().position(|unit| *unit == slowest).unwrap();
                assert_eq!(Some(&values[at]), values.iter().max(), "{words}");
            }
            assert_eq!(shown.get("threads"), None, "{words}: there is one thread");
        }
        let of_trace = tables(&folder, &format!("units {model} {trace}"));
        assert_eq!(of_trace, tables(&folder, &format!("units {model} --unit request :ev56/requests")));
    }
}

#[test]
fn histograms_have_every_call_once() {
    let folder = Folder::new();
    let trace = folder.trace("--unit request :ev56/requests 2");
    for (event, all) in [("instructions", "calls"), ("stores", "calls"), ("cycles", "time")] {
        let model = if all == "time" { "--event cycles" } else { "" };
        let shown = tables(&folder, &format!("units {model} --chart {event} {trace}"));
        let values = column(&folder.table(&format!("{all} --by unit {trace}")), event);
        let histogram = &shown["histogram"];
        let bins = column(histogram, "from").into_iter().zip(column(histogram, "to"));
        let bins: Vec<(u64, u64)> = bins.collect();
        assert!(bins.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0), "{bins:?}");
        for (&(from, to), calls) in bins.iter().zip(column(histogram, "calls")) {
            let expected = values.iter().filter(|value| (from..=to).contains(value)).count();
            assert_eq!(calls, expected as u64, "{event}: {from} to {to}");
        }
        assert_eq!(column(histogram, "calls").iter().sum::<u64>(), values.len() as u64, "{event}");
    }
}

#[test]
fn each_thread_has_its_own_calls() {
    let folder = Folder::new();
    let trace = folder.trace("--unit request :ev56/requests 3");
    let shown = tables(&folder, &format!("units {trace}"));
    let threads = &shown["threads"];
    assert_eq!(threads.len(), 1 + 3);
    for thread in ["0.0", "0.1", "0.2"] {
        let own =
            column(&folder.table(&format!("calls --by unit --thread {thread} {trace}")), "instructions");
        check(threads, row_of(threads, thread), &own, thread);
    }
    // What the threads execute depends on no timing.
    let live = tables(&folder, "units --unit request :ev56/requests 3");
    let numbers = |shown: &BTreeMap<String, Vec<Vec<String>>>| {
        let rows = &shown["threads"];
        let mut numbers: Vec<[f64; 3]> =
            (1..rows.len()).map(|row| ["calls", "p90", "mean"].map(|name| cell(rows, row, name))).collect();
        numbers.sort_by(|a, b| a.partial_cmp(b).unwrap());
        numbers
    };
    assert_eq!(numbers(&live), numbers(&shown));
    assert_eq!(live["histogram"], shown["histogram"]);
}

#[test]
fn one_command_answers_in_every_format() {
    let folder = Folder::new();
    let printed = run("units --unit request :ev56/requests").quiet_success();
    assert!(printed.starts_with("What one call of request costs") && printed.contains('█'), "{printed}");
    let json = run("units --unit request --format json :ev56/requests").quiet_success();
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document[0]["rows"][0]["calls"], 100);
    let page = folder.path("page.html");
    run(&format!("units --unit request -o {} :ev56/requests", page.display())).noted_success();
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("vega") && page.contains("histogram"), "{} bytes", page.len());
}

#[test]
fn what_cannot_be_answered_is_told() {
    let folder = Folder::new();
    let plain = folder.trace(":ev56/tiny");
    for (words, answer) in [
        (":ev56/requests", "--unit FUNCTION"),
        (plain.as_str(), "has no units of work: record it with --unit"),
        ("--unit request --chart hits :ev56/requests", "instructions, loads, stores"),
        ("--unit requets :ev56/requests", "did you mean request or"),
        ("--unit request --skip 100 :ev56/requests", "nothing was recorded, as the first 100 calls"),
        ("--unit request -o a.html --format csv :ev56/requests", "--format"),
    ] {
        let sentence = run(&format!("units {words}")).failure();
        assert!(sentence.contains(answer), "{words}: {sentence}");
    }
}

/// Instructions by the first columns of a table's rows, which are names.
fn by_name(rows: &[Vec<String>], names: usize, heading: &str) -> BTreeMap<Vec<String>, u64> {
    let costs = column(rows, heading);
    let named = rows[1..].iter().map(|row| row[..names].to_vec()).zip(costs);
    named.filter(|(name, cost)| *cost > 0 && !name.contains(&"total".to_owned())).collect()
}

/// Checks that a call is explained as tables of this call alone have it.
fn check_explained(folder: &Folder, words: &str, input: &str, calls: [(u64, &str); 2]) {
    let shown = tables(folder, words);
    for (table, by, names) in [("difference-by-function", "function", 2), ("difference-by-line", "line", 3)] {
        let rows = &shown[table];
        let alone = |call: u64| {
            folder.table(&format!("caches --machine qemu --by {by} --skip {call} --units 1 {input}"))
        };
        let [one, other] = calls.map(|(call, _)| by_name(&alone(call), names, "instructions"));
        let mut expected: Vec<(Vec<String>, u64, u64)> = Vec::new();
        let all = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
        for name in all {
            let costs = [&one, &other].map(|costs| costs.get(name).copied().unwrap_or(0));
            if costs[0] != costs[1] {
                expected.push((name.clone(), costs[0], costs[1]));
            }
        }
        expected.sort();
        let [first, second] = calls.map(|(_, heading)| column(rows, heading));
        let mut found: Vec<_> = rows[1..rows.len() - 1]
            .iter()
            .zip(first.iter().zip(&second))
            .map(|(row, (one, other))| (row[..names].to_vec(), *one, *other))
            .collect();
        let by_difference: Vec<u64> = found.iter().map(|(_, one, other)| one.abs_diff(*other)).collect();
        assert!(by_difference.is_sorted_by(|a, b| a >= b), "{words}: {by_difference:?}");
        found.sort();
        assert_eq!(found, expected, "{words} {by}");
        let sums = [&one, &other].map(|costs| costs.values().sum::<u64>());
        assert_eq!([first.last(), second.last()], sums.each_ref().map(Some), "{words} {by}");
    }
}

#[test]
fn the_slowest_call_is_explained_by_what_it_executed() {
    let folder = Folder::new();
    let trace = folder.trace("--unit request :ev56/requests 3");
    for input in ["--unit request :ev56/requests", trace.as_str()] {
        let calls = folder.table(&format!("calls --by unit {input}"));
        let (units, lengths) = (column(&calls, "unit"), column(&calls, "instructions"));
        let of_length = |length| units[lengths.iter().position(|one| *one == length).unwrap()];
        let slowest = of_length(*lengths.iter().max().unwrap());
        let median = of_length(percentile(&lengths, 50));
        check_explained(
            &folder,
            &format!("units --slowest {input}"),
            input,
            [(slowest, "slowest call"), (median, "median call")],
        );
        check_explained(
            &folder,
            &format!("units --unit-number 11 {input}"),
            input,
            [(11, "call 11"), (median, "median call")],
        );
        check_explained(
            &folder,
            &format!("units --unit-number 40 --reference 3 {input}"),
            input,
            [(40, "call 40"), (3, "call 3")],
        );
        let grown = tables(&folder, &format!("units --slowest {input}"));
        let functions = &grown["difference-by-function"];
        assert!(functions.iter().any(|row| row[0] == "grow"), "{functions:?}");
    }
}

#[test]
fn a_call_that_there_is_not_cannot_be_explained() {
    let sentence = run("units --unit request --unit-number 100 :ev56/requests").failure();
    assert!(
        sentence.contains("there is no call 100: the calls that returned are among 0 to 99"),
        "{sentence}"
    );
    let rejected = run("units --unit request --slowest --event cycles :ev56/requests").failure();
    assert!(rejected.contains("leave out --event"), "{rejected}");
    let same = run("units --unit work --slowest :ev56/modes work").quiet_success();
    assert!(
        same.contains("other functions executed the same number of instructions in both calls"),
        "{same}"
    );
}

/// Where no call returns because the program crashed, the crash is the reason.
#[test]
fn a_crash_in_the_first_call_is_told() {
    // The machine's processor does not have the program's byte instructions.
    let outcome = run("units --unit work --event misses --machine dec3000 :ev56/modes work");
    assert_eq!(outcome.code(), 1);
    assert!(outcome.stderr.contains("SIGILL"), "{}", outcome.stderr);
}
