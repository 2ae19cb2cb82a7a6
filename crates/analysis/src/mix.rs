//! Instruction mixes: how often each instruction occurs, in code or in an execution, and how two
//! mixes differ.

use isa::{Group, INSTRUCTION_SETS, InstructionSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use table::{Kind, Table, Value};

/// Occurrences of each instruction by the name that [`name`] gives it.
pub type Mix = BTreeMap<&'static str, u64>;

/// The name to count an instruction under: [`InstructionSet::mnemonic`], and `.long` if it is none.
pub fn name(set: &dyn InstructionSet, word: u32) -> &'static str {
    set.mnemonic(word).unwrap_or(UNKNOWN)
}

/// The name of a word that is no instruction.
pub(crate) const UNKNOWN: &str = ".long";

/// The name that [`name`] gives to some instruction, if it equals this text, which may come from a file.
pub(crate) fn known(text: &str) -> Option<&'static str> {
    GROUPS.get_key_value(text).map(|(name, _)| *name)
}

/// The groups of all names, of every instruction set.
static GROUPS: LazyLock<BTreeMap<&str, Group>> = LazyLock::new(|| {
    let all = INSTRUCTION_SETS.iter().flat_map(|set| set.mnemonics());
    all.chain([(UNKNOWN, Group::Other)]).collect()
});

/// The group of Table 13 that the instruction of this name belongs to. Unknown names are [`Group::Other`].
pub fn group(name: &str) -> Group {
    GROUPS.get(name).copied().unwrap_or(Group::Other)
}

/// Counts instruction words.
pub fn count(set: &dyn InstructionSet, words: impl IntoIterator<Item = u32>) -> Mix {
    let mut mix = Mix::new();
    for word in words {
        *mix.entry(name(set, word)).or_default() += 1;
    }
    mix
}

/// All instructions of a mix.
pub fn total(mix: &Mix) -> u64 {
    mix.values().sum()
}

/// How often an instruction occurs.
fn of(mix: &Mix, name: &str) -> u64 {
    mix.get(name).copied().unwrap_or(0)
}

/// The signed difference of two counts.
pub(crate) fn minus(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b).cast_signed()
}

/// The change from `a` to `b` in percent of `a`; missing if `a` is nothing.
pub(crate) fn change(a: f64, b: f64) -> Value {
    Value::from(if a == 0.0 { f64::NAN } else { 100.0 * (b - a) / a })
}

/// Two mixes side by side with the difference of the second from the first, the most frequent
/// instructions first (Tables 11 and 12).
pub fn difference(name: &str, title: &str, labels: [&str; 2], a: &Mix, b: &Mix) -> Table {
    let columns = [
        ("instruction", Kind::Text),
        (labels[0], Kind::Count),
        (labels[1], Kind::Count),
        ("delta", Kind::Delta),
        ("% delta", Kind::Change(0)),
    ];
    let mut table = Table::new(name, title, &columns);
    let row = |name: &str, a: u64, b: u64| -> Vec<Value> {
        vec![name.into(), a.into(), b.into(), minus(b, a).into(), change(a as f64, b as f64)]
    };
    let mut names: Vec<&str> = a.keys().chain(b.keys()).copied().collect();
    names.sort_by_key(|name| (Reverse(of(a, name).max(of(b, name))), *name));
    names.dedup();
    for name in names {
        table.row(row(name, of(a, name), of(b, name)));
    }
    table.total_row(row("total", total(a), total(b)));
    table
}

/// One mix, the most frequent instructions first.
pub fn single(name: &str, title: &str, mix: &Mix) -> Table {
    let columns = [
        ("instruction", Kind::Text),
        ("group", Kind::Text),
        ("count", Kind::Count),
        ("share", Kind::Percent(2)),
    ];
    let mut table = Table::new(name, title, &columns);
    let all = total(mix);
    let share = |n: u64| Value::from(100.0 * n as f64 / all as f64);
    let mut rows: Vec<_> = mix.iter().collect();
    rows.sort_by_key(|(name, n)| (Reverse(**n), **name));
    for (name, n) in rows {
        table.row(vec![(*name).into(), group(name).name().into(), (*n).into(), share(*n)]);
    }
    table.total_row(vec!["total".into(), Value::Missing, all.into(), share(all)]);
    table
}

/// The share of each instruction group in several mixes (Table 13 and Figure 4).
pub fn group_shares(name: &str, title: &str, mixes: &[(&str, &Mix)]) -> Table {
    let mut columns = vec![("group", Kind::Text)];
    columns.extend(mixes.iter().map(|(label, _)| (*label, Kind::Percent(1))));
    let mut table = Table::new(name, title, &columns);
    let row = |heading: &str, counted: &dyn Fn(&str) -> bool| -> Vec<Value> {
        let share = |mix: &Mix| {
            let part: u64 = mix.iter().filter(|(name, _)| counted(name)).map(|(_, n)| n).sum();
            Value::from(100.0 * part as f64 / total(mix) as f64)
        };
        std::iter::once(heading.into()).chain(mixes.iter().map(|(_, mix)| share(mix))).collect()
    };
    let known = groups_of_sets(mixes);
    for member in Group::ALL.into_iter().filter(|member| known.contains(member)) {
        table.row(row(member.name(), &|name| group(name) == member));
    }
    table.total_row(row("total", &|_| true));
    table
}

/// The groups of instructions that occur in the instruction sets of mixes. Described sets have few: their words name no operations.
fn groups_of_sets(mixes: &[(&str, &Mix)]) -> Vec<Group> {
    let has_all = |names: &[(&str, Group)]| {
        let counted = mixes.iter().flat_map(|(_, mix)| mix.keys());
        counted.filter(|name| **name != UNKNOWN).all(|counted| names.iter().any(|(name, _)| name == counted))
    };
    let sets = INSTRUCTION_SETS.iter().map(|set| set.mnemonics()).filter(|names| has_all(names));
    let groups: Vec<Group> = sets.flatten().map(|(_, group)| group).collect();
    if groups.is_empty() { Group::ALL.to_vec() } else { groups }
}

/// Instructions that a scaled unit of work executes more than a cached one, in two builds; only instructions with a difference
/// (Table 14).
pub fn scaled_minus_cached(
    name: &str,
    title: &str,
    labels: [&str; 2],
    scaled: [&Mix; 2],
    cached: [&Mix; 2],
) -> Table {
    let columns = [("instruction", Kind::Text), (labels[0], Kind::Delta), (labels[1], Kind::Delta)];
    let mut table = Table::new(name, title, &columns);
    let all = [scaled, cached].concat();
    let mut names: Vec<&str> = all.iter().flat_map(|mix| mix.keys()).copied().collect();
    names.sort_by_key(|name| (Reverse(all.iter().map(|mix| of(mix, name)).max()), *name));
    names.dedup();
    for name in names {
        let deltas = [0, 1].map(|build| minus(of(scaled[build], name), of(cached[build], name)));
        if deltas != [0, 0] {
            table.row(vec![name.into(), deltas[0].into(), deltas[1].into()]);
        }
    }
    let deltas = [0, 1].map(|build| minus(total(scaled[build]), total(cached[build])));
    table.total_row(vec!["total".into(), deltas[0].into(), deltas[1].into()]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::{Alpha, Op};
    use proptest::prelude::*;

    #[test]
    fn words_are_counted_under_their_statistical_names() {
        let words = [
            (0x47ff_041f, "nop"),
            (0x2ffe_0000, "unop"),
            (0x5fff_041f, "fnop"),
            (0x47f0_0410, "bis"),
            (0x0000_0083, "callsys"),
            (0x0000_0099, "call_pal"),
            (0x5821_b401, "addt"),
            (0x0400_0000, ".long"),
        ];
        for (word, expected) in words {
            assert_eq!(name(&Alpha, word), expected, "{word:#x}");
        }
        assert_eq!(count(&Alpha, [0x47ff_041f, 0x47ff_041f, 0x83]), Mix::from([("nop", 2), ("callsys", 1)]));
        assert_eq!(group("unop"), Group::Other);
    }

    fn mixes() -> impl Strategy<Value = Mix> {
        let names: Vec<&str> = Op::ALL.iter().map(|op| op.mnemonic()).collect();
        proptest::collection::btree_map(proptest::sample::select(names), 0..1_000_000u64, 1..40)
    }

    fn integers(table: &Table, column: usize) -> Vec<i64> {
        let integer = |row: &Vec<Value>| match row[column] {
            Value::Integer(number) => number,
            _ => panic!("{row:?}"),
        };
        table.rows.iter().map(integer).collect()
    }

    proptest! {
        #[test]
        fn totals_are_those_of_the_rows(a in mixes(), b in mixes(), c in mixes(), d in mixes()) {
            let difference = difference("d", "", ["a", "b"], &a, &b);
            for column in [1, 2, 3] {
                let numbers = integers(&difference, column);
                let (total, rows) = numbers.split_last().unwrap();
                prop_assert_eq!(rows.iter().sum::<i64>(), *total);
            }
            let deltas = scaled_minus_cached("s", "", ["a", "b"], [&a, &b], [&c, &d]);
            for (column, scaled, cached) in [(1, &a, &c), (2, &b, &d)] {
                let numbers = integers(&deltas, column);
                let (sum, rows) = numbers.split_last().unwrap();
                prop_assert_eq!(rows.iter().sum::<i64>(), *sum);
                prop_assert_eq!(minus(total(scaled), total(cached)), *sum);
            }
        }

        #[test]
        fn shares_of_groups_add_up(a in mixes()) {
            prop_assume!(total(&a) > 0);
            let table = group_shares("g", "", &[("a", &a)]);
            let shares = table.rows.iter().map(|row| if let Value::Real(share) = row[1] { share } else { 0.0 });
            prop_assert!((shares.sum::<f64>() - 200.0).abs() < 1e-9);
        }
    }
}
