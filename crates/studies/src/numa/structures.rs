//! The structures of PostgreSQL that its processes share, by the functions that allocate them, and what they need the interconnect for.

use table::{Kind, Table, Value};

use super::benchmarks::NumaBenchmark;
use super::simulation::{NumaResult, texts_and_counts};

/// A structure in shared memory.
struct SharedStructure {
    /// The text by which `sharing` names it.
    allocated: &'static str,
    name: &'static str,
    /// Why it stays shared.
    reason: &'static str,
}

/// PostgreSQL 15's structures. Numbers of lines tell apart what one function allocates.
const STRUCTURES: &[SharedStructure] = &[
    SharedStructure {
        allocated: "InitBufferPool (buf_init.c:82",
        name: "pages of the database",
        reason: "rows and indexes that clients on several nodes read and change; inner pages of indexes are read by all",
    },
    SharedStructure {
        allocated: "InitBufferPool (buf_init.c:77",
        name: "descriptors of pages",
        reason: "each access counts itself in the page's descriptor (a pin), also where it only reads",
    },
    SharedStructure {
        allocated: "InitBufferPool (buf_init.c",
        name: "waits for pages, and pages to write",
        reason: "a page that is read in wakes those who wait for it",
    },
    SharedStructure {
        allocated: "XLOGShmemInit",
        name: "log: its buffers, positions and insert locks",
        reason: "there is one log: each change takes the next bytes of it, whoever had the ones before",
    },
    SharedStructure {
        allocated: "CreateLWLocks",
        name: "locks of pages' hash table, of the lock table and of all else",
        reason: "a reader of a lock stores to it, too",
    },
    SharedStructure {
        allocated: "element_alloc",
        name: "entries of shared hash tables",
        reason: "locks of transactions and rows, in free lists of all processes",
    },
    SharedStructure {
        allocated: "seg_alloc",
        name: "buckets of shared hash tables",
        reason: "an entry that comes and goes changes its bucket",
    },
    SharedStructure {
        allocated: "ShmemInitHash",
        name: "heads of shared hash tables",
        reason: "their free lists, each with a lock and a count",
    },
    SharedStructure {
        allocated: "InitProcGlobal",
        name: "processes' entries",
        reason: "numbers of running transactions, which each snapshot reads and each transaction writes",
    },
    SharedStructure {
        allocated: "(anonymous shared memory)",
        name: "numbers of transactions, and the list of processes",
        reason: "the next number, and the last one that ended: each transaction changes them, and snapshots read them",
    },
    SharedStructure {
        allocated: "SimpleLruInit",
        name: "states of transactions (clog and others)",
        reason: "each commit stores two bits into a page of all",
    },
    SharedStructure {
        allocated: "StrategyInitialize",
        name: "hand of the clock that replaces pages",
        reason: "each new page moves it",
    },
    SharedStructure {
        allocated: "StatsShmemInit",
        name: "statistics",
        reason: "processes add up what they counted, each second",
    },
    SharedStructure {
        allocated: "/dev/shm/PostgreSQL",
        name: "statistics of tables",
        reason: "processes add up what they counted, each second",
    },
    SharedStructure {
        allocated: "CreateSharedBackendStatus",
        name: "what each process does",
        reason: "an entry of each process",
    },
    SharedStructure {
        allocated: "MultiXactShmemInit",
        name: "numbers of rows' common locks",
        reason: "an entry of each process",
    },
];

/// Whatever is not in the table.
const OTHERS: &str = "all others";

/// The operations of each structure, of a table of data, in the order of [`STRUCTURES`].
fn by_structure(data: &Table) -> Vec<f64> {
    let mut sums = vec![0.0; STRUCTURES.len()];
    for (name, count) in texts_and_counts(data, "data") {
        if let Some(found) = STRUCTURES.iter().position(|one| name.contains(one.allocated)) {
            sums[found] += count;
        }
    }
    sums
}

/// The structures with the operations of a transaction that they need, in the first recording of each step, those with most in the last
/// step first. `data` are the tables of all data.
pub(super) fn shared(benchmark: NumaBenchmark, steps: &[(&str, &NumaResult, &Table)]) -> Table {
    let name = format!("shared-{}", benchmark.name());
    let title = format!("What processes of PostgreSQL share: {}", benchmark.title());
    let mut table = Table::new(&name, title, &[("shared", Kind::Text)]);
    let columns = steps.iter().map(|(step, ..)| (*step, Kind::Real(1)));
    let columns = columns.chain([("share", Kind::Percent(1)), ("why it moves between nodes", Kind::Text)]);
    table.columns.extend(Table::new("", "", &columns.collect::<Vec<_>>()).columns);
    let sums: Vec<Vec<f64>> = steps
        .iter()
        .map(|(_, result, data)| {
            let mut sums: Vec<f64> =
                by_structure(data).iter().map(|count| count / result.transactions).collect();
            sums.push(result.all() - sums.iter().sum::<f64>());
            sums
        })
        .collect();
    let last = sums.last().expect("there are steps");
    let total = steps.last().map_or(1.0, |(_, result, _)| result.all());
    let names = STRUCTURES.iter().map(|one| (one.name, one.reason)).chain([(OTHERS, "")]);
    let mut rows: Vec<(usize, (&str, &str))> = names.enumerate().collect();
    // Others are a difference, which is not quite nothing if there are none.
    rows.retain(|(index, _)| sums.iter().any(|sums| sums[*index] > 1e-6));
    rows.sort_by(|(a, _), (b, _)| last[*b].total_cmp(&last[*a]));
    for (index, (name, reason)) in rows {
        let reason = if reason.is_empty() { Value::Missing } else { reason.into() };
        let counts = sums.iter().map(|sums| Value::from(sums[index]));
        let share = Value::from(100.0 * last[index] / total);
        table.row(std::iter::once(name.into()).chain(counts).chain([share, reason]).collect());
    }
    let all = steps.iter().map(|(_, result, _)| Value::from(result.all()));
    let cells = std::iter::once("total".into()).chain(all).chain([100.0.into(), Value::Missing]);
    table.total_row(cells.collect());
    table.notes.push("Operations on the interconnect of a transaction, in the first recording of each step; the share is of the last step.".into());
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_those_of_structures() {
        let columns = [("data", Kind::Text), ("interconnect", Kind::Count)];
        let mut data = Table::new("data", "Data", &columns);
        for (name, count) in [
            ("allocated in InitBufferPool (buf_init.c:82)", 5u64),
            ("allocated in InitBufferPool (buf_init.c:77)", 7),
            ("allocated in InitBufferPool (buf_init.c:87)", 11),
            ("(/dev/shm/PostgreSQL.634884622)", 13),
            ("allocated in StrategyInitialize (freelist.c:494)", 17),
            ("pg_crc32c_table", 19),
        ] {
            data.row(vec![name.into(), count.into()]);
        }
        let sums = by_structure(&data);
        let found: Vec<(&str, f64)> = std::iter::zip(STRUCTURES, &sums)
            .filter(|(_, sum)| **sum > 0.0)
            .map(|(structure, sum)| (structure.name, *sum))
            .collect();
        let expected = [
            ("pages of the database", 5.0),
            ("descriptors of pages", 7.0),
            ("waits for pages, and pages to write", 11.0),
            ("hand of the clock that replaces pages", 17.0),
            ("statistics of tables", 13.0),
        ];
        assert_eq!(found, expected);
        assert_eq!(sums.iter().sum::<f64>(), 53.0);
    }
}
