//! Partner data: lines that move together, one after the other, and would move as one if their data lay together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use trace::Trace;

use super::SharingAnalysis;
use super::groups::{SharingGroup, listed, thread_names};
use crate::models::ExecutionPart;
use table::{Kind, Table, Value};

/// How many instructions after one line another one moves to the same thread, if they move together.
const NEAR: u64 = 500;
/// The greatest number of pairs: it bounds the memory that a damaged trace can take.
const MOST_PAIRS: usize = 1 << 20;

/// Which lines move together.
#[derive(Clone, Debug, Default)]
pub(super) struct Partners {
    /// By thread: the line that moved to it last, and how many instructions all had executed; unless it has a partner already.
    last: HashMap<u32, (u32, u64)>,
    /// How often two lines moved one after the other, the one with the lower number first.
    together: HashMap<(u32, u32), u64>,
}

impl Partners {
    /// A line has moved to a thread, when all had executed so many instructions. A move has one partner at most: so many
    /// operations fewer would be needed.
    pub fn moved(&mut self, thread: u32, line: u32, instructions: u64) {
        let before = self.last.insert(thread, (line, instructions));
        let is_near = |&(other, then): &(u32, u64)| other != line && instructions - then <= NEAR;
        let Some((other, _)) = before.filter(is_near) else { return };
        self.last.remove(&thread);
        let pair = (line.min(other), line.max(other));
        let is_known = self.together.len() < MOST_PAIRS || self.together.contains_key(&pair);
        if is_known {
            *self.together.entry(pair).or_default() += 1;
        }
    }

    pub fn reset_counts(&mut self) {
        *self = Partners::default();
    }
}

/// The pairs of lines that move together, those with most moves first: of data that fit into one line, and are not falsely
/// shared.
pub fn by_partner(sharing: &SharingAnalysis, trace: &Trace) -> Table {
    let columns = [
        ("data", Kind::Text),
        ("partner", Kind::Text),
        ("threads", Kind::Text),
        ("moves together", Kind::Count),
        ("of the data's moves", Kind::Percent(1)),
        ("of the partner's", Kind::Percent(1)),
        ("bytes", Kind::Count),
    ];
    let mut table = Table::new("partners", "Data that would move together in one line", &columns);
    if sharing.units() > 0 {
        table.columns.push(table::Column { name: "per unit".into(), kind: Kind::Real(2) });
    }
    table.columns.push(table::Column { name: "suggestion".into(), kind: Kind::Text });
    let lines: BTreeMap<u32, SharingGroup> =
        sharing.groups(ExecutionPart::Whole, |access| Some(access.key.line)).into_iter().collect();
    let mut pairs: Vec<_> = sharing.partners.together.iter().map(|(&pair, &count)| (pair, count)).collect();
    pairs.sort_unstable_by_key(|&(pair, count)| (std::cmp::Reverse(count), pair));
    for ((first, second), count) in pairs {
        let (Some(one), Some(other)) = (lines.get(&first), lines.get(&second)) else { continue };
        let bytes = sharing.used_bytes(one) + sharing.used_bytes(other);
        let is_false = [one, other].iter().any(|line| sharing.diagnose(line).kind.contains("false"));
        if is_false || bytes > sharing.memory.line_size() {
            continue;
        }
        let names = [one, other].map(|line| listed(&line.names(|access| sharing.label(access))));
        let threads: BTreeSet<u32> = one.threads().union(&other.threads()).copied().collect();
        let share = |line: &SharingGroup| Value::from(100.0 * count as f64 / line.counts.operations() as f64);
        let [data, partner] = names;
        let suggestion = format!("put {data} and {partner} into one line");
        let mut row = vec![
            data.into(),
            partner.into(),
            thread_names(&threads, trace).into(),
            count.into(),
            share(one),
            share(other),
            bytes.into(),
        ];
        if sharing.units() > 0 {
            row.push(Value::from(count as f64 / sharing.units() as f64));
        }
        row.push(suggestion.into());
        table.row(row);
    }
    table.notes.push(format!(
        "moves together: the second line moved to the same thread within {NEAR} instructions of all threads; so many operations \
         would not occur if the data of both lay in one line."
    ));
    table
}

impl SharingAnalysis {
    /// How many bytes of a line are accessed when it moves.
    fn used_bytes(&self, line: &SharingGroup) -> u64 {
        let size = self.memory.line_size();
        let bytes = line.accesses.iter().flat_map(|access| {
            let start = access.key.address % size;
            start..(start + u64::from(self.code_access(access.key.by).size)).min(size)
        });
        bytes.collect::<BTreeSet<u64>>().len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_move_has_one_partner() {
        let mut partners = Partners::default();
        // Lines 1 and 2 move to thread 0 alternately, and line 3 long after.
        for (time, line) in [(0, 1), (10, 2), (20, 1), (30, 2), (40, 1), (600, 3), (610, 3)] {
            partners.moved(0, line, time);
        }
        // Another thread's moves are its own.
        partners.moved(1, 1, 620);
        assert_eq!(partners.together, HashMap::from([((1, 2), 2)]));
    }
}
