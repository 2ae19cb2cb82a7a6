//! Costs of calls: they agree with units of work, which the engine follows by itself; and models count the same whether
//! they follow calls or not.

use std::fs;

use crate::caches::{Folder, cell, column};
use crate::support::run;

/// The column with a heading, as text.
fn texts<'a>(rows: &'a [Vec<String>], heading: &str) -> Vec<&'a str> {
    let at = rows[0].iter().position(|one| one == heading).unwrap_or_else(|| panic!("{:?}", rows[0]));
    rows[1..].iter().map(|row| row[at].as_str()).collect()
}

/// The row of a function, or of a function and another one.
fn row_of(rows: &[Vec<String>], names: &[&str]) -> usize {
    let is_named = |row: &Vec<String>| row.iter().zip(names).all(|(cell, name)| cell == name);
    rows.iter().position(is_named).unwrap_or_else(|| panic!("{names:?}: {rows:?}"))
}

#[test]
fn functions_with_all_that_they_call_cost_what_their_units_of_work_do() {
    let folder = Folder::new();
    let functions = folder.table("calls --by function :ev56/calls");
    for function in ["fibonacci", "even", "odd", "first", "last", "leaf", "jump", "handler", "main"] {
        let units = folder.table(&format!("calls --by unit --unit {function} :ev56/calls"));
        let row = row_of(&functions, &[function, "calls"]);
        for heading in ["instructions", "loads", "stores"] {
            let sum: u64 = column(&units, heading).iter().sum();
            // `even` and `odd` call each other, so that calls of one that are within a unit of the other are in both.
            assert_eq!(cell(&functions, row, heading) as u64, sum, "{function}: {heading}");
        }
        let calls = cell(&functions, row, "calls") as usize;
        let is_recursive = ["fibonacci", "even", "odd"].contains(&function);
        let units = column(&units, "unit").len();
        assert!(if is_recursive { calls > units } else { calls == units }, "{function}: {calls} {units}");
    }
    // fibonacci(i % 8) for i up to 29: 2 F(n + 1) - 1 calls each, of 4 times 0 to 5 and 3 times 6 and 7.
    let row = row_of(&functions, &["fibonacci", "calls"]);
    assert_eq!(cell(&functions, row, "calls") as u64, 4 * (1 + 1 + 3 + 5 + 9 + 15) + 3 * (25 + 41));
}

#[test]
fn callers_and_callees_are_two_views_of_the_same_calls() {
    let folder = Folder::new();
    let callers = folder.table("calls --by caller :ev56/calls");
    let callees = folder.table("calls --by callee :ev56/calls");
    let key = |row: &Vec<String>, callee: usize, caller: usize| {
        let mut key = vec![row[callee].clone(), row[caller].clone()];
        key.extend_from_slice(&row[3..]);
        key
    };
    let mut both = [
        callers[1..].iter().map(|row| key(row, 0, 1)).collect::<Vec<_>>(),
        callees[1..].iter().map(|row| key(row, 1, 0)).collect(),
    ];
    both.iter_mut().for_each(|rows| rows.sort());
    assert_eq!(both[0], both[1]);
    assert!(both[0].len() > 20, "{both:?}");
    let of_leaf = folder.table("calls --by caller --function leaf :ev56/calls");
    assert!(texts(&of_leaf, "function").iter().all(|name| *name == "leaf"), "{of_leaf:?}");
    let calls = |caller: &str| cell(&of_leaf, row_of(&of_leaf, &["leaf", caller]), "calls") as u64;
    // `first` makes a tail call of `last`, and that one of `leaf`.
    assert_eq!(["main", "last", "handler"].map(calls), [10, 10, 3]);
    assert_eq!(calls("fibonacci"), 4 * (1 + 1 + 3 + 5 + 9 + 15) + 3 * (25 + 41));
    let functions = folder.table("calls --by function :ev56/calls");
    let sum: u64 = column(&of_leaf, "calls").iter().sum();
    assert_eq!(cell(&functions, row_of(&functions, &["leaf", "calls"]), "calls") as u64, sum);
}

#[test]
fn the_tree_has_all_that_was_executed_and_models_count_the_same() {
    let folder = Folder::new();
    for (command, heading) in [("caches", "dcache misses"), ("caches", "instructions"), ("time", "cycles")] {
        for guest in [":ev56/calls", ":ev56/calls 1000", ":ev5/modes work"] {
            for machine in ["alphastation500", "dec3000"] {
                let machine = format!("--machine {machine}");
                let functions = folder.table(&format!("{command} {machine} --by function {guest}"));
                let words = format!("{command} {machine} --by call-tree --threshold 0 {guest}");
                let tree = folder.table(&words);
                let depths = column(&tree, "depth");
                let costs = column(&tree, heading);
                let roots = depths.iter().zip(&costs).filter(|(depth, _)| **depth == 0);
                let total: u64 = roots.map(|(_, cost)| cost).sum();
                assert_eq!(Some(&total), column(&functions, heading).last(), "{words}");
                assert!(tree.len() > 10, "{words}");
            }
        }
    }
}

#[test]
fn a_trace_has_the_calls_of_its_program() {
    let folder = Folder::new();
    for plan in ["", "--unit fibonacci --skip 3 --units 9"] {
        let trace = folder.trace(&format!("{plan} :ev56/calls"));
        for by in ["function", "caller", "callee", "call-tree --threshold 0", "unit"] {
            if by == "unit" && plan.is_empty() {
                continue;
            }
            let live = folder.table(&format!("calls --by {by} {plan} :ev56/calls"));
            assert!(live.len() > 2, "{live:?}");
            assert_eq!(folder.table(&format!("calls --by {by} {trace}")), live, "{plan} {by}");
        }
    }
}

#[test]
fn deep_recursion_is_merged_and_nothing_is_lost() {
    let folder = Folder::new();
    let file = folder.path("deep.csv");
    let words =
        format!("calls --by call-tree --threshold 0 --format csv -o {} :ev56/calls 5000", file.display());
    let output = run(&words);
    assert!(output.stderr.contains("too deep"), "{}", output.stderr);
    let functions = folder.table("calls --by function :ev56/calls 5000");
    let row = row_of(&functions, &["descend", "calls"]);
    assert_eq!(cell(&functions, row, "calls") as u64, 5001);
    let units = folder.table("calls --by unit --unit descend :ev56/calls 5000");
    assert_eq!(
        cell(&functions, row, "instructions") as u64,
        column(&units, "instructions").iter().sum::<u64>()
    );
}

#[test]
fn what_is_asked_wrongly_is_told() {
    for (words, answer) in [
        ("--by unit :ev56/calls", "--by unit needs a unit of work"),
        ("--threshold 101 :ev56/calls", "0 to 100 percent"),
        ("no-such-program", "no-such-program"),
        ("-o a.svg --by caller :ev56/calls", "--by call-tree"),
        ("-o a.svg --chart stores-of :ev56/calls", "instructions, loads, stores"),
        ("-o a.svg --format csv :ev56/calls", "--format"),
        ("-o a.svg --against no-such.folded :ev56/calls", "no-such.folded"),
        ("-o a.svg --against /proc/version :ev56/calls", "line 1 is not a call chain"),
        ("--chart loads :ev56/calls", "-o NAME.svg"),
    ] {
        let error = run(&format!("calls {words}"));
        assert!(error.code() != 0 && error.stderr.contains(answer), "{words}: {}", error.stderr);
    }
}

#[test]
fn flame_graphs_and_collapsed_stacks_have_all_costs() {
    let folder = Folder::new();
    let (stacks, picture, page) = (folder.path("a.folded"), folder.path("a.svg"), folder.path("a.html"));
    let quiet = |words: String| run(&words).noted_success();
    quiet(format!("calls -o {} :ev56/calls", stacks.display()));
    let functions = folder.table("calls --by function :ev56/calls");
    let stacks_text = fs::read_to_string(&stacks).unwrap();
    let cost = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    let main: u64 = stacks_text.lines().filter(|line| line.contains(";main")).map(cost).sum();
    assert_eq!(main, cell(&functions, row_of(&functions, &["main", "calls"]), "instructions") as u64);
    assert!(stacks_text.lines().any(|line| line.contains(";fibonacci;fibonacci;leaf ")), "{stacks_text}");

    quiet(format!("calls -o {} --against {} :ev56/calls", picture.display(), stacks.display()));
    let picture = fs::read_to_string(&picture).unwrap();
    assert!(picture.starts_with("<?xml") && picture.contains("data-name=\"fibonacci\""), "{picture}");
    let changes: Vec<&str> = picture.lines().filter(|line| line.starts_with("before: ")).collect();
    assert!(changes.len() > 20 && changes.iter().all(|change| change.contains(", +0<")), "{changes:?}");

    quiet(format!("time --by call-tree --chart instructions -o {} :ev56/calls", page.display()));
    let page = fs::read_to_string(&page).unwrap();
    let total: u64 = stacks_text.lines().map(cost).sum();
    assert!(page.contains(&format!("data-total=\"{total}\"")), "{total}: {page}");
}

/// Contexts, coroutines and fibers: calls of each stack are followed by themselves, in a program and in its trace.
#[test]
fn each_stack_has_calls_of_its_own() {
    let folder = Folder::new();
    let trace = folder.trace(":ev56/stacks");
    for of in [":ev56/stacks", &trace] {
        let functions = folder.table(&format!("calls --by function {of}"));
        // The last step of each coroutine does not return.
        let known = [
            ("main", 1),
            ("consume", 1),
            ("next", 31),
            ("generate", 3),
            ("end_at_once", 1),
            ("step", 30),
            ("work", 30 + 30 + 27 + 1),
        ];
        for (function, calls) in known {
            let row = row_of(&functions, &[function, "stacks"]);
            assert_eq!(cell(&functions, row, "calls") as u64, calls, "{of}: {function}");
        }
        let callers = folder.table(&format!("calls --by caller --function work --function next {of}"));
        for (caller, function, calls) in [
            ("consume", "work", 30),
            ("step", "work", 57),
            ("end_at_once", "work", 1),
            ("consume", "next", 30),
        ] {
            let row = row_of(&callers, &[function, caller]);
            assert_eq!(cell(&callers, row, "calls") as u64, calls, "{of}: {function} from {caller}");
        }
    }
}

#[test]
fn functions_that_are_chosen_exist_and_are_shown() {
    let folder = Folder::new();
    let trace = folder.trace(":ev56/store");
    for of in [":ev56/store", &trace] {
        // Without parameters, a name stands for all overloads; with a wildcard, for all that match.
        let rows = folder.table(&format!("calls --by caller --function app::Store::add {of}"));
        assert!(
            rows.len() > 1 && rows[1..].iter().all(|row| row[0].starts_with("app::Store::add(")),
            "{rows:?}"
        );
        let wild = folder.table(&format!("calls --by caller --function app::Store::a* {of}"));
        assert!(wild.len() >= rows.len(), "{wild:?}");
        for command in ["calls --by caller", "caches --by callee", "annotate"] {
            let outcome = run(&format!("{command} --function app::Store::ad {of}"));
            let is_suggested = outcome.stderr.contains("did you mean app::Store::add(");
            assert!(outcome.code() == 1 && is_suggested, "{}", outcome.stderr);
        }
        for command in ["calls --by line", "caches", "time --by function", "calls --by call-tree"] {
            let failure = run(&format!("{command} --function main {of}")).failure();
            assert!(failure.contains("--function selects rows of --by caller"), "{failure}");
        }
    }
}
