//! The names of functions: which are shown, and which users may give.

use std::fs;

use events::record::{Entries, Entry, Mark};
use trace::Trace;

use crate::support::{csv, guest, outcome, pathlength, run};

/// Instructions by function of one image, as `count` has them.
fn functions(program: &str, image: &str) -> Vec<(String, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("functions.csv");
    run(&format!("count --by function --format csv -o {} :{program}", path.display())).quiet_success();
    let rows = csv(&fs::read_to_string(path).unwrap());
    let rows = rows.into_iter().filter(|row| row[1] == image);
    rows.map(|row| (row[0].clone(), row[2].parse().unwrap())).collect()
}

#[test]
fn code_without_a_symbol_does_not_lend_its_name_to_functions() {
    let functions = functions("ev5/labels", "labels");
    let count = |name: &str| functions.iter().find(|(function, _)| function == name).map(|(_, n)| *n);
    assert_eq!(count("main"), Some(7), "{functions:?}");
    assert_eq!(count("untyped"), Some(3), "{functions:?}");
    assert_eq!(count("demo::Shop::sell"), Some(4), "{functions:?}");
    assert_eq!(count("(.text)"), Some(2), "{functions:?}");
}

#[test]
fn names_of_cxx_are_demangled() {
    let functions = functions("ev56/store", "store");
    for name in [
        "app::Store::add(int) const",
        "app::Store::add(long)",
        "app::Store::operator!() const",
        "app::(anonymous namespace)::hidden(long)",
        "app::biggest<long>(long, long)",
        "main",
    ] {
        assert!(functions.iter().any(|(function, _)| function == name), "{name}: {functions:?}");
    }
}

/// How many units of work a function has, by its name.
fn units(unit: &str, program: &str) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let program = guest(program);
    let arguments = ["trace", "-o", path.to_str().unwrap(), "--unit", unit, program.to_str().unwrap()];
    let made = outcome(pathlength(arguments));
    assert_eq!(made.code(), 0, "{unit}: {}", made.stderr);
    let trace = Trace::open(&path).unwrap();
    let (mut words, mut begun) = (Vec::new(), 0);
    for chunk in 0..trace.chunks().len() {
        trace.read(chunk, &mut words).unwrap();
        Entries::new(&words, trace.shapes())
            .for_each(|entry| begun += usize::from(matches!(entry, Entry::Mark(Mark::UnitBegins(_)))));
    }
    begun
}

#[test]
fn units_are_functions_by_any_of_their_names() {
    for (unit, expected) in [
        ("app::Store::add", 10),
        ("app::Store::add(long)", 5),
        ("app::Store::add(int)", 5),
        ("_ZNK3app5Store3addEi", 5),
        ("store!app::Store::operator!", 1),
        ("app::biggest", 5),
        ("app::biggest<long>", 5),
        ("app::(anonymous namespace)::hidden", 10),
    ] {
        assert_eq!(units(unit, "ev5/store"), expected, "{unit}");
    }
    assert_eq!(units("demo::Shop::sell", "ev5/labels"), 1);
    // The names that are meant have parts in common, which makes no message say something twice.
    let refused = run("count --unit Store::add :ev5/store");
    assert_eq!(refused.code(), 1);
    let meant = "did you mean app::Store::add(int) const or app::Store::add(long)?";
    assert!(refused.stderr.contains(meant), "{}", refused.stderr);
}

#[test]
fn traces_are_filtered_and_exported_by_names_of_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.trace");
    run(&format!("trace -o {} --from main :ev5/store", path.display())).quiet_success();
    let show = |function: &str| {
        let words = ["show", path.to_str().unwrap(), "--as", "instructions", "--function", function];
        outcome(pathlength(words)).quiet_success().lines().count()
    };
    let [int, long] = [show("app::Store::add(int)"), show("_ZN3app5Store3addEl")];
    assert!(int > 0 && long > 0);
    let both = show("app::Store::add");
    assert!(both > int.max(long) && both <= int + long, "{both} of {int} and {long}");
    assert_eq!(show("store!app::Store::add(int) const"), int);
    let export = folder.path().join("callgrind");
    run(&format!("export {} --to callgrind -o {}", path.display(), export.display())).quiet_success();
    assert!(fs::read_to_string(export).unwrap().contains(" app::Store::add(long)\n"));
}
