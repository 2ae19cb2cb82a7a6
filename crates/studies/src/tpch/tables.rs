//! The tables of the study of TPC-H.

use table::{Kind, Table, Value};

use super::findings::{CRITERIA, MISSES, Switch};
use super::measured::{ComponentMeasured, StructureMisses};
use super::result::{MACHINES, QueryCost, TpchStudy};
use super::statements::{label, title};
use crate::byteword::schemes::KINDS;

/// The answer: costs, instruction misses, growth, scans, access paths.
pub(super) fn summary(study: &TpchStudy) -> Vec<Table> {
    vec![
        queries(study),
        misses(study, 0),
        findings_of_1998(study),
        growth(study),
        scans(study),
        switching(study),
    ]
}

/// Every table.
pub(super) fn all(study: &TpchStudy) -> Vec<Table> {
    let mut tables = vec![queries(study)];
    for machine in 0..MACHINES.len() {
        tables.extend([misses(study, machine), cycles(study, machine)]);
    }
    tables.push(findings_of_1998(study));
    tables.extend([growth(study), scales(study), scans(study), components(study)]);
    tables.extend([switching(study), selectivity(study), access_paths(study), plans(study)]);
    tables
}

fn ratio(part: u64, whole: u64) -> Value {
    (part as f64 / whole as f64).into()
}

fn percent(part: u64, whole: u64) -> Value {
    (100.0 * part as f64 / whole as f64).into()
}

fn columns(first: &[(&str, Kind)], more: impl IntoIterator<Item = (String, Kind)>) -> Vec<(String, Kind)> {
    first.iter().map(|(name, kind)| (name.to_string(), *kind)).chain(more).collect()
}

fn table(name: &str, title: String, columns: &[(String, Kind)]) -> Table {
    let columns: Vec<(&str, Kind)> = columns.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
    Table::new(name, title, &columns)
}

/// The cost of each query.
pub(super) fn queries(study: &TpchStudy) -> Table {
    let first = [
        ("query", Kind::Text),
        ("name", Kind::Text),
        ("rows", Kind::Count),
        ("instructions", Kind::Count),
        ("data references", Kind::Count),
    ];
    let machines = MACHINES.iter().flat_map(|name| {
        [(format!("cycles, {name}"), Kind::Count), (format!("cycles per instruction, {name}"), Kind::Real(2))]
    });
    let heading = format!("TPC-H's queries on {}, scale factor {}", study.system.name(), study.scale);
    let mut table = table("queries", heading, &columns(&first, machines));
    let mut totals = [0; 2 + MACHINES.len()];
    for query in study.queries() {
        let measured = &query.measured;
        let cycles: Vec<u64> = measured.machines.iter().map(|machine| machine.all_cycles()).collect();
        let mut row = vec![
            label(query.number).into(),
            title(query.number).into(),
            (query.rows as u64).into(),
            measured.instructions.into(),
            measured.references.into(),
        ];
        row.extend(cycles.iter().flat_map(|&all| [all.into(), ratio(all, measured.instructions)]));
        table.row(row);
        let numbers = [measured.instructions, measured.references].into_iter().chain(cycles);
        totals.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
    }
    let mut row = vec!["total".into(), Value::Missing, Value::Missing, totals[0].into(), totals[1].into()];
    row.extend(totals[2..].iter().flat_map(|&all| [all.into(), ratio(all, totals[0])]));
    table.total_row(row);
    table.notes.extend([
        "Each query is executed twice, and observed the second time: the database is in memory, and the caches are empty. Its rows \
         are those of the host's own build, which was compared row by row."
            .into(),
        format!("Machines: {}.", study.machines.iter().map(|machine| machine.title.as_str()).collect::<Vec<_>>().join("; ")),
    ]);
    table
}

/// The misses of each query on a machine.
pub(super) fn misses(study: &TpchStudy, machine: usize) -> Table {
    let name = MACHINES[machine];
    let of = |query: &QueryCost, number: usize| {
        let StructureMisses { misses, of_instructions, .. } =
            query.measured.machines[machine].structures[number];
        [of_instructions, misses - of_instructions]
    };
    let described = &study.machines[machine];
    let is_split = |number: usize| described.caches[number].holds == machine::Holds::Both;
    let first_tlbs: Vec<usize> = (described.translation_buffers.iter().enumerate())
        .filter(|(_, buffer)| buffer.level == 1)
        .map(|(number, _)| described.caches.len() + number)
        .collect();
    let mut more = Vec::new();
    for (number, cache) in described.caches.iter().enumerate() {
        let kinds =
            if is_split(number) { &[" instruction misses", " data misses"][..] } else { &[" misses"] };
        more.extend(kinds.iter().map(|kind| (format!("{}{kind}", cache.name), Kind::Count)));
    }
    more.push(("TLB misses".to_string(), Kind::Count));
    more.extend([
        ("instruction share of L1 misses".to_string(), Kind::Percent(1)),
        ("instruction share of L2 misses".to_string(), Kind::Percent(1)),
        ("cycles for instruction misses".to_string(), Kind::Percent(1)),
        ("cycles for data misses".to_string(), Kind::Percent(1)),
    ]);
    let first = [("query", Kind::Text), ("instructions", Kind::Count)];
    let title = format!("Misses by query and level, {name}");
    let mut table = table(&format!("misses-{name}"), title, &columns(&first, more));
    let row = |label: &str, queries: &[&QueryCost]| {
        let sum = |of: &dyn Fn(&QueryCost) -> u64| queries.iter().map(|query| of(query)).sum::<u64>();
        let mut row: Vec<Value> = vec![label.into(), sum(&|query| query.measured.instructions).into()];
        for number in 0..described.caches.len() {
            let [instructions, data] = [0, 1].map(|side| sum(&|query| of(query, number)[side]));
            match is_split(number) {
                true => row.extend([instructions.into(), data.into()]),
                false => row.push((instructions + data).into()),
            }
        }
        let of_tlbs =
            |query: &QueryCost| -> u64 { first_tlbs.iter().flat_map(|&number| of(query, number)).sum() };
        row.push(sum(&of_tlbs).into());
        for level in [1, 2] {
            let [instructions, data] =
                [0, 1].map(|side| sum(&|query| query.measured.machines[machine].level(level)[side]));
            row.push(percent(instructions, instructions + data));
        }
        let cycles = sum(&|query| query.measured.machines[machine].all_cycles());
        for kind in ["instructions missing", "data missing"] {
            let index = KINDS.iter().position(|name| *name == kind).expect("a kind");
            row.push(percent(sum(&|query| query.measured.machines[machine].cycles[index]), cycles));
        }
        row
    };
    for query in study.queries() {
        table.row(row(&label(query.number), &[query]));
    }
    table.total_row(row("total", &study.queries().iter().collect::<Vec<_>>()));
    table
}

/// The cycles of each query on a machine by kind.
pub(super) fn cycles(study: &TpchStudy, machine: usize) -> Table {
    let name = MACHINES[machine];
    let kinds = KINDS.map(|kind| (kind.to_string(), Kind::Count));
    let title = format!("Cycles by query and cause, {name}");
    let mut table = table(&format!("cycles-{name}"), title, &columns(&[("query", Kind::Text)], kinds));
    for query in study.queries() {
        let cycles = query.measured.machines[machine].cycles.iter().map(|&number| Value::from(number));
        table.row(std::iter::once(label(query.number).into()).chain(cycles).collect());
    }
    table
}

/// The findings of the talk of 1998 beside this study's. Its slides have no numbers but in charts.
pub(super) fn findings_of_1998(study: &TpchStudy) -> Table {
    let columns =
        [("1998: TPC-D, Postgres95, R10000", Kind::Text), ("today", Kind::Text), ("value", Kind::Real(1))];
    let mut table = Table::new("in-1998", "The findings of 1998, and today's", &columns);
    let share = |[instructions, data]: [u64; 2]| 100.0 * instructions as f64 / (instructions + data) as f64;
    let cycles: u64 = study.queries().iter().map(|query| query.measured.machines[0].all_cycles()).sum();
    let kinds = |kind: &str| -> u64 {
        let index = KINDS.iter().position(|name| *name == kind).expect("a kind");
        study.queries().iter().map(|query| query.measured.machines[0].cycles[index]).sum()
    };
    let penalty = 100.0 * (kinds("instructions missing") + kinds("data missing")) as f64 / cycles as f64;
    let scans = study.queries().iter().map(|query| {
        let [scan, all] = study.scan_and_all(query);
        100.0 * scan.cycles as f64 / all.cycles as f64
    });
    let (least, most) =
        scans.fold((f64::INFINITY, 0.0_f64), |(least, most), one| (least.min(one), most.max(one)));
    let faster = MISSES.map(|criterion| study.faster_than_data(criterion).len()).max().unwrap_or(0);
    let mut row = |then: &str, now: &str, value: f64| table.row(vec![then.into(), now.into(), value.into()]);
    row(
        "L1 instruction misses dominate by far",
        "% of the L1 misses are of instructions",
        share(study.misses(0, 1)),
    );
    row("(of L2 nothing is said)", "% of the L2 misses are of instructions", share(study.misses(0, 2)));
    row("the cache penalty has a significant effect on the time", "% of the cycles are for misses", penalty);
    row(
        "some queries' misses grow more than the data (Q11)",
        "queries whose misses of a level do",
        faster as f64,
    );
    row("in some queries the cost of scans is small", "% of the cycles, the least of a query", least);
    row("in some queries the cost of scans dominates", "% of the cycles, the most of a query", most);
    table.notes.push(
        "Q. Cao, P. Trancoso and J. Torrellas, Characterizing TPC-D on a MIPS R10K Architecture (1998), as printed; the slides give numbers in \
         charts only."
            .into(),
    );
    table
}

/// How many times as much the largest database needs as the smallest.
pub(super) fn growth(study: &TpchStudy) -> Table {
    let times = CRITERIA.map(|criterion| (format!("times the {}", criterion.name), Kind::Real(2)));
    let more = times
        .into_iter()
        .chain([("plan".to_string(), Kind::Text), ("faster than the data".to_string(), Kind::Text)]);
    let [first, last] =
        [study.scales.first(), study.scales.last()].map(|costs| costs.map_or(0.0, |costs| costs.scale));
    let title = format!(
        "Growth from scale factor {first} to {last}, which has {:.2} times the data",
        study.data_growth()
    );
    let mut table = table("growth", title, &columns(&[("query", Kind::Text)], more));
    let faster: Vec<Vec<u32>> =
        (0..CRITERIA.len()).map(|criterion| study.faster_than_data(criterion)).collect();
    for growth in study.growth() {
        let number = growth.query.number;
        let names = MISSES.filter(|&criterion| faster[criterion].contains(&number));
        let names: Vec<&str> = names.map(|criterion| CRITERIA[criterion].name).collect();
        let mut row: Vec<Value> = vec![label(number).into()];
        row.extend(growth.times.map(Value::from));
        row.push(if growth.is_other_plan { "another" } else { "the same" }.into());
        row.push(if names.is_empty() { Value::Missing } else { names.join(", ").into() });
        table.row(row);
    }
    table.notes.push(
        "On the Origin 200. Faster than the data: by more than a twentieth. A plan is another one if its text is.".into(),
    );
    table
}

/// All criteria at all scale factors.
fn scales(study: &TpchStudy) -> Table {
    let criteria = CRITERIA.map(|criterion| (criterion.name.to_string(), Kind::Count));
    let first = [("query", Kind::Text), ("scale factor", Kind::Real(5))];
    let mut table =
        table("scales", "Each query at all scale factors, origin200".into(), &columns(&first, criteria));
    for number in study.queries().iter().map(|query| query.number) {
        for costs in &study.scales {
            let Some(query) = costs.queries.iter().find(|query| query.number == number) else { continue };
            let values = CRITERIA.map(|criterion| Value::from((criterion.of)(&query.measured)));
            table.row([label(number).into(), costs.scale.into()].into_iter().chain(values).collect());
        }
    }
    table
}

/// What the components that bring rows have of each query.
pub(super) fn scans(study: &TpchStudy) -> Table {
    let structures = study.queries().first().map(|query| query.measured.machines[0].structures.clone());
    let structures = structures.unwrap_or_default();
    let misses = structures.iter().map(|one| (format!("% of the {} misses", one.name), Kind::Percent(1)));
    let more = [("% of the instructions".to_string(), Kind::Percent(1))].into_iter().chain(misses);
    let more = more.chain([("% of the cycles".to_string(), Kind::Percent(1))]);
    let title = "Scans: what bringing rows has of each query, origin200".into();
    let mut table = table("scans", title, &columns(&[("query", Kind::Text)], more));
    for query in study.queries() {
        let [scan, all] = study.scan_and_all(query);
        let mut row = vec![label(query.number).into(), percent(scan.instructions, all.instructions)];
        row.extend(scan.misses.iter().zip(&all.misses).map(|(&scan, &all)| percent(scan, all)));
        row.push(percent(scan.cycles, all.cycles));
        table.row(row);
    }
    let names = super::findings::scan_components(study.system).join(", ");
    table.notes.push(format!(
        "Bringing rows is what the functions of these components do: {names}. Conditions that a scan evaluates, and copies that it \
         makes in the C library, are counted with the rest."
    ));
    table
}

/// All queries together, by component.
fn components(study: &TpchStudy) -> Table {
    let structures = study.queries().first().map(|query| query.measured.machines[0].structures.clone());
    let structures = structures.unwrap_or_default();
    let misses = structures.iter().map(|one| (format!("{} misses", one.name), Kind::Count));
    let first = [("component", Kind::Text), ("instructions", Kind::Count)];
    let more = misses
        .chain([("cycles".to_string(), Kind::Count), ("% of the cycles".to_string(), Kind::Percent(1))]);
    let title = "Components in all queries together, origin200".into();
    let mut table = table("components", title, &columns(&first, more));
    let mut names: Vec<&str> = Vec::new();
    for query in study.queries() {
        names.extend(query.measured.machines[0].components.keys().map(String::as_str));
    }
    names.sort_unstable();
    names.dedup();
    let sum = |names: Option<&[&str]>| {
        let parts = study.queries().iter().map(|query| query.measured.machines[0].spent_in(names));
        parts.reduce(|mut sum, one| {
            sum.add(one.instructions, &one.misses, one.cycles);
            sum
        })
    };
    let all = sum(None).unwrap_or_default();
    let mut sums: Vec<_> = names.iter().map(|name| (*name, sum(Some(&[name])).unwrap_or_default())).collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.cycles));
    let row = |name: &str, sum: &ComponentMeasured| {
        let misses = sum.misses.iter().map(|&misses| Value::from(misses));
        let first = [name.into(), sum.instructions.into()].into_iter();
        first.chain(misses).chain([sum.cycles.into(), percent(sum.cycles, all.cycles)]).collect()
    };
    sums.iter().for_each(|(name, sum)| table.row(row(name, sum)));
    table.total_row(row("total", &all));
    table
}

/// Where access paths change with rising selectivity: for the fewest of each count, and by the optimizer.
pub(super) fn switching(study: &TpchStudy) -> Table {
    let columns = [
        ("by", Kind::Text),
        ("from", Kind::Text),
        ("to", Kind::Text),
        ("above % of the rows", Kind::Percent(2)),
        ("at most at %", Kind::Percent(2)),
    ];
    let mut table = Table::new(
        "switching",
        "Where another access path is better, and where the optimizer changes",
        &columns,
    );
    let mut add = |by: &str, switches: Vec<Switch>, only: Option<&str>| {
        for Switch { at, from, to } in &switches {
            table.row(vec![by.into(), (*from).into(), (*to).into(), at[0].into(), at[1].into()]);
        }
        if switches.is_empty() {
            let only = only.map_or(Value::Missing, Value::from);
            table.row(vec![by.into(), only, "no change".into(), Value::Missing, Value::Missing]);
        }
    };
    let first = study.selectivities.first();
    for (number, criterion) in CRITERIA.iter().enumerate() {
        let only = first.map(|costs| study.paths[study.best_path(costs, number)].name);
        let switches = study.switches(|costs| Some(study.best_path(costs, number)));
        add(&format!("fewest {}", criterion.name), switches, only);
    }
    let only = first.and_then(|costs| Some(study.paths[costs.chosen?].name));
    add("the optimizer", study.switches(|costs| costs.chosen), only);
    table.notes.push(
        "A query sums two columns of the line items of some days, in a table with an index of the date only, whose order is not that \
         of the dates. On the Origin 200."
            .into(),
    );
    table
}

/// The best access path by each criterion, and the one that the optimizer chooses.
fn selectivity(study: &TpchStudy) -> Table {
    let first = [("% of the rows", Kind::Percent(2)), ("rows", Kind::Count), ("the optimizer's", Kind::Text)];
    let criteria = CRITERIA.map(|criterion| (format!("fewest {}", criterion.name), Kind::Text));
    let title = "The best access path by selectivity, origin200".into();
    let mut table = table("selectivity", title, &columns(&first, criteria));
    for costs in &study.selectivities {
        let chosen = costs.chosen.map(|path| study.paths[path].name);
        let best =
            (0..CRITERIA.len()).map(|criterion| study.paths[study.best_path(costs, criterion)].name.into());
        let first = [costs.selectivity.into(), costs.rows.into(), chosen.into()];
        table.row(first.into_iter().chain(best).collect());
    }
    table
}

/// The cost of each access path at each selectivity.
pub(super) fn access_paths(study: &TpchStudy) -> Table {
    let first = [("% of the rows", Kind::Percent(2)), ("rows", Kind::Count), ("access path", Kind::Text)];
    let criteria = CRITERIA.map(|criterion| (criterion.name.to_string(), Kind::Count));
    let title = "Access paths by selectivity, origin200".into();
    let mut table = table("access-paths", title, &columns(&first, criteria));
    for costs in &study.selectivities {
        for (path, measured) in study.paths.iter().zip(&costs.measured) {
            let counts = CRITERIA.map(|criterion| Value::from((criterion.of)(measured)));
            let first = [costs.selectivity.into(), costs.rows.into(), path.name.into()];
            table.row(first.into_iter().chain(counts).collect());
        }
    }
    table
}

/// A count of each access path, a column each, for a chart.
pub(super) fn by_path(study: &TpchStudy, criterion: usize) -> Table {
    let paths = study.paths.iter().map(|path| (path.name.to_string(), Kind::Count));
    let name = format!("paths-{}", CRITERIA[criterion].name.replace(' ', "-").to_lowercase());
    let title = format!("{} by access path", CRITERIA[criterion].name);
    let mut table = table(&name, title, &columns(&[("% of the rows", Kind::Text)], paths));
    for costs in &study.selectivities {
        let counts = costs.measured.iter().map(|measured| Value::from((CRITERIA[criterion].of)(measured)));
        table.row(std::iter::once(format!("{:.2}", costs.selectivity).into()).chain(counts).collect());
    }
    table
}

/// The plans of the queries.
fn plans(study: &TpchStudy) -> Table {
    let columns = [("query", Kind::Text), ("plan", Kind::Code)];
    let title = format!("The plans, scale factor {}", study.scale);
    let mut table = Table::new("plans", title, &columns);
    for query in study.queries() {
        for line in query.plan.lines() {
            table.row(vec![label(query.number).into(), line.into()]);
        }
    }
    table
}
