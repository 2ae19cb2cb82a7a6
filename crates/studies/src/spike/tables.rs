//! The results as tables: what each optimization wins.

use machine::Machine;
use table::{Kind, Table, Value};

use super::measure::{CACHES, FEEDBACK, MACHINES, VARIANTS, VariantResult};
use super::{SpikeProgramResult, SpikeStudy};

/// A cache that misses less often than once in so many instructions is not compared: a few misses more or less are no result.
const RARE: u64 = 5_000;

/// By how many percent something changed.
pub(super) fn change(before: u64, now: u64) -> Value {
    match before {
        0 => Value::Missing,
        _ => (100.0 * (now as f64 / before as f64 - 1.0)).into(),
    }
}

/// The same of misses.
fn change_of_misses(original: &VariantResult, now: &VariantResult, cache: usize) -> Value {
    match original.misses[cache] >= original.instructions / RARE {
        true => change(original.misses[cache], now.misses[cache]),
        false => Value::Missing,
    }
}

pub(super) fn name(one: &SpikeProgramResult) -> String {
    one.program.workload.name.into()
}

/// The processors of the machines, for headings.
pub(super) fn processors() -> Vec<String> {
    let name =
        |machine: &&str| Machine::find(machine).map_or(machine.to_string(), |found| found.processor.name);
    MACHINES.iter().map(|machine| name(machine).trim_start_matches("Alpha ").to_string()).collect()
}

/// A table with a row for each program.
pub(super) fn of_programs(
    study: &SpikeStudy,
    (name, title): (&str, &str),
    columns: &[(&str, Kind)],
    row: impl Fn(&SpikeProgramResult) -> Vec<Value>,
) -> Table {
    let columns: Vec<(&str, Kind)> =
        [("program", Kind::Text)].into_iter().chain(columns.iter().copied()).collect();
    let mut table = Table::new(name, title, &columns);
    for one in &study.programs {
        table.row([self::name(one).into()].into_iter().chain(row(one)).collect());
    }
    table
}

/// The programs.
pub(super) fn programs(study: &SpikeStudy) -> Table {
    let columns = [
        ("kind", Kind::Text),
        ("what", Kind::Text),
        ("instructions, test", Kind::Count),
        ("misses of 8 KB, in 1,000", Kind::Real(1)),
        ("misses of 64 KB, in 1,000", Kind::Real(2)),
    ];
    let mut table = of_programs(study, ("programs", "The programs"), &columns, |one| {
        let original = &one.variants[0];
        let per_thousand = |misses: u64| 1000.0 * misses as f64 / original.instructions.max(1) as f64;
        vec![
            one.program.kind.into(),
            one.program.workload.title.into(),
            original.instructions.into(),
            per_thousand(original.misses[0]).into(),
            per_thousand(original.misses[1]).into(),
        ]
    });
    table.notes.push(
        "Instructions of the whole run on the test input, the C library's among them, which stays as it is. Misses of an \
         instruction cache, 8 KB direct-mapped with lines of 32 bytes or 64 KB two-way with lines of 64 bytes."
            .into(),
    );
    table
}

/// Columns of what changes: instructions, misses, cycles.
fn change_columns() -> Vec<String> {
    let misses = CACHES.iter().map(|(name, _)| format!("misses, {name}"));
    let cycles = processors().into_iter().map(|name| format!("cycles, {name}"));
    ["instructions".into()].into_iter().chain(misses).chain(cycles).collect()
}

/// Their values.
fn changes_of(original: &VariantResult, now: &VariantResult) -> Vec<Value> {
    let misses = (0..CACHES.len()).map(|cache| change_of_misses(original, now, cache));
    let cycles = original.cycles.iter().zip(&now.cycles).map(|(&a, &b)| change(a, b));
    [change(original.instructions, now.instructions)].into_iter().chain(misses).chain(cycles).collect()
}

/// What all optimizations together win.
pub(super) fn changes(study: &SpikeStudy) -> Table {
    let columns = change_columns();
    let columns: Vec<(&str, Kind)> = columns.iter().map(|name| (name.as_str(), Kind::Change(1))).collect();
    let title = "All optimizations together, on another input than the training's";
    let mut table = of_programs(study, ("changes", title), &columns, |one| {
        changes_of(&one.variants[0], &one.variants[VARIANTS.len() - 1])
    });
    table.notes.push(format!(
        "A dash: the original misses less often than once in {} instructions; the last table has the numbers.",
        table::separated(&RARE.to_string())
    ));
    let titles = MACHINES.iter().filter_map(|name| Some(Machine::find(name).ok()?.title));
    table.notes.push(format!(
        "Machines: {}. All issue in order, and all take the byte and word instructions that the images have and the 21064 had not.",
        titles.collect::<Vec<_>>().join("; ")
    ));
    table
}

/// Spike and the compiler's feedback, by themselves and together.
fn compared(one: &SpikeProgramResult) -> [(&'static str, &VariantResult); 3] {
    let [gcc, both] = [0, 1].map(|number| (FEEDBACK[number].name, &one.feedback[number]));
    [gcc, ("Spike", &one.variants[VARIANTS.len() - 1]), both]
}

/// The compiler's own profile feedback beside Spike.
pub(super) fn feedback(study: &SpikeStudy) -> Table {
    let changes = change_columns();
    let columns = ["program", "variant"].map(|name| (name, Kind::Text));
    let changes = changes.iter().map(|name| (name.as_str(), Kind::Change(1)));
    let columns: Vec<(&str, Kind)> = columns.into_iter().chain(changes).collect();
    let title = "GCC's profile feedback (-fprofile-use), Spike, and both";
    let mut table = Table::new("feedback", title, &columns);
    for one in &study.programs {
        for (variant, measured) in compared(one) {
            let values = changes_of(&one.variants[0], measured);
            table.row([name(one).into(), variant.into()].into_iter().chain(values).collect());
        }
    }
    table.notes.push(
        "All are trained on the same input, and compared with the original on another one. Spike on top of GCC has a profile of its \
         own, of the image that GCC's feedback made."
            .into(),
    );
    table
}

/// Cycles on a machine, by the compiler's feedback, Spike, and both.
pub(super) fn feedback_cycles(study: &SpikeStudy, machine: usize) -> Table {
    let columns = [FEEDBACK[0].name, "Spike", FEEDBACK[1].name].map(|name| (name, Kind::Change(1)));
    let title =
        format!("Cycles on the {}, by GCC's profile feedback, Spike, and both", processors()[machine]);
    of_programs(study, ("feedback-cycles", &title), &columns, |one| {
        let cycles = |now: &VariantResult| change(one.variants[0].cycles[machine], now.cycles[machine]);
        compared(one).map(|(_, now)| cycles(now)).into()
    })
}

/// What one optimization after another changes.
fn steps(
    study: &SpikeStudy,
    names: (&str, &str),
    change: impl Fn(&VariantResult, &VariantResult) -> Value,
) -> Table {
    let columns: Vec<(&str, Kind)> =
        VARIANTS[1..].iter().map(|variant| (variant.name, Kind::Change(1))).collect();
    of_programs(study, names, &columns, |one| {
        one.variants[1..].iter().map(|variant| change(&one.variants[0], variant)).collect()
    })
}

/// Instructions, by optimization.
pub(super) fn instruction_steps(study: &SpikeStudy) -> Table {
    steps(study, ("instructions", "Instructions, one optimization after another"), |a, b| {
        change(a.instructions, b.instructions)
    })
}

/// Cycles on each machine, by optimization.
pub(super) fn cycle_steps(study: &SpikeStudy) -> Vec<Table> {
    let table = |(machine, processor): (usize, String)| {
        let title = format!("Cycles on the {processor}, one optimization after another");
        steps(study, (&format!("cycles-{}", MACHINES[machine]), &title), move |a, b| {
            change(a.cycles[machine], b.cycles[machine])
        })
    };
    processors().into_iter().enumerate().map(table).collect()
}

/// Misses of each cache, by optimization.
pub(super) fn miss_steps(study: &SpikeStudy) -> Vec<Table> {
    let table = |(cache, (name, _)): (usize, &(&str, &str))| {
        let title = format!("Misses of an instruction cache, {name}, one optimization after another");
        steps(study, (&format!("misses-{}", cache + 1), &title), move |a, b| change_of_misses(a, b, cache))
    };
    CACHES.iter().enumerate().map(table).collect()
}

/// Everything as it was measured.
pub(super) fn measured(study: &SpikeStudy) -> Table {
    let processors = processors();
    let mut columns: Vec<(String, Kind)> = vec![
        ("program".into(), Kind::Text),
        ("variant".into(), Kind::Text),
        ("instructions".into(), Kind::Count),
    ];
    columns.extend(CACHES.iter().map(|(name, _)| (format!("misses, {name}"), Kind::Count)));
    columns.extend(processors.iter().map(|name| (format!("cycles, {name}"), Kind::Count)));
    let columns: Vec<(&str, Kind)> = columns.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
    let mut table = Table::new("measured", "What was measured", &columns);
    for one in &study.programs {
        let variants = VARIANTS.iter().zip(&one.variants).chain(FEEDBACK.iter().zip(&one.feedback));
        for (variant, measured) in variants {
            let counts = [measured.instructions].into_iter().chain(measured.misses.iter().copied());
            let counts = counts.chain(measured.cycles.iter().copied()).map(Value::from);
            table.row([name(one).into(), variant.name.into()].into_iter().chain(counts).collect());
        }
    }
    table
}

/// Every table of results.
pub(super) fn all(study: &SpikeStudy) -> Vec<Table> {
    let mut tables = vec![programs(study), changes(study), feedback(study), instruction_steps(study)];
    tables.extend(miss_steps(study));
    tables.extend(cycle_steps(study));
    tables.push(measured(study));
    tables
}
