//! The sums of the results of several processes, each with a model of its own.

use std::collections::BTreeMap;

use events::BlockId;
use machine::predictor::PredictionCount;
use machine::{
    Caches, Cycles, MergeableModel, NonOverlapped, OutOfOrderCounts, SampleOwner, SampledCycles, Structure,
    TimingModel, UnitCycles, UnitMisses, WindowSums,
};

use super::{InstructionResults, UnitResults, named};
use table::{Column, Kind, Table, Value};

/// Models of the same machine, one for each process. Their results are added up.
#[derive(Debug)]
pub struct SummedOverProcesses<'a, M>(pub Vec<&'a M>);

impl<M> Clone for SummedOverProcesses<'_, M> {
    fn clone(&self) -> Self {
        SummedOverProcesses(self.0.clone())
    }
}

impl<'a, M> From<&'a M> for SummedOverProcesses<'a, M> {
    fn from(model: &'a M) -> SummedOverProcesses<'a, M> {
        SummedOverProcesses(vec![model])
    }
}

impl<'a, M> SummedOverProcesses<'a, M> {
    fn sum(&self, of: impl Fn(&M) -> u64) -> u64 {
        self.0.iter().map(|model| of(model)).sum()
    }
}

impl<M: MergeableModel> SummedOverProcesses<'_, M> {
    /// The sums of the results of all instructions, in the columns of [`InstructionResults::columns`].
    pub fn totals(&self) -> Vec<u64> {
        let add = |mut sums: Vec<u64>, more: Vec<u64>| {
            sums.iter_mut().zip(more).for_each(|(sum, number)| *sum += number);
            sums
        };
        self.0.iter().map(|model| model.totals()).reduce(add).unwrap_or_default()
    }
}

impl<M: InstructionResults> InstructionResults for SummedOverProcesses<'_, M> {
    const WHAT: &'static str = M::WHAT;
    const UNIT_EVENT: usize = M::UNIT_EVENT;

    fn unit_results(&self) -> Vec<UnitResults> {
        self.0.iter().flat_map(|model| model.unit_results()).collect()
    }

    fn units(&self, name: &str, title: &str) -> Table {
        if let [model] = &self.0[..] {
            return model.units(name, title);
        }
        let mut tables = self.0.iter().map(|model| model.units(name, title));
        let mut table = tables.next().expect("a machine has a model");
        // Units are numbered from 0 in all processes together, and their number is the first column.
        table.rows.extend(tables.flat_map(|table| table.rows));
        table.rows.sort_by_key(|row| match row[0] {
            Value::Integer(number) => number,
            _ => i64::MAX,
        });
        table
    }

    fn columns(&self) -> Vec<Column> {
        self.0[0].columns()
    }

    fn weight(&self, row: &[u64]) -> u64 {
        self.0[0].weight(row)
    }

    fn rows(&self, block: BlockId) -> Option<Vec<Vec<u64>>> {
        let add = |mut sum: Vec<Vec<u64>>, more: Vec<Vec<u64>>| {
            let cells = sum.iter_mut().flatten().zip(more.into_iter().flatten());
            cells.for_each(|(sum, number)| *sum += number);
            sum
        };
        self.0.iter().filter_map(|model| model.rows(block)).reduce(add)
    }
}

impl SummedOverProcesses<'_, Caches> {
    /// Instructions executed.
    pub(super) fn instructions(&self) -> u64 {
        self.sum(Caches::instructions)
    }

    /// Accesses, misses and their classes; without further counts.
    pub(super) fn structures(&self) -> Vec<Structure> {
        let all = self.0.iter().map(|caches| caches.structures());
        let sums = all.reduce(|mut sums, more| {
            for (sum, one) in sums.iter_mut().zip(more) {
                sum.accesses += one.accesses;
                sum.misses += one.misses;
                let traffic = sum.traffic.iter_mut().flatten().zip(one.traffic.into_iter().flatten());
                traffic.for_each(|(sum, lines)| *sum += lines);
                sum.classes.iter_mut().zip(one.classes).for_each(|(sum, misses)| *sum += misses);
            }
            sums
        });
        let without_counts = |sum| Structure { counts: None, ..sum };
        sums.unwrap_or_default().into_iter().map(without_counts).collect()
    }

    /// The units of work.
    pub(super) fn units(&self) -> impl Iterator<Item = &UnitMisses> {
        self.0.iter().flat_map(|caches| caches.units())
    }
}

impl SummedOverProcesses<'_, TimingModel> {
    /// All cycles, as if the processes had been executed one after the other.
    pub(super) fn cycles(&self) -> Cycles {
        let mut sum = Cycles::default();
        self.0.iter().for_each(|time| sum.add(&time.cycles()));
        sum
    }

    /// Instructions that the system emulated.
    pub(super) fn emulated(&self) -> u64 {
        self.sum(TimingModel::emulated)
    }

    /// The measurements of all samples of the executions.
    pub(super) fn sampled(&self) -> Option<SampledCycles> {
        self.0.iter().filter_map(|time| time.sampled()).reduce(|mut sum, one| {
            sum.add(&one);
            sum
        })
    }

    /// The measurements of the samples in the parts of the executions whose processes and units of work have the same key.
    pub(super) fn sampled_by<K: Ord>(&self, key: impl Fn(SampleOwner) -> K) -> BTreeMap<K, WindowSums<1>> {
        let mut all: BTreeMap<K, WindowSums<1>> = BTreeMap::new();
        for (key, sums) in self.0.iter().filter_map(|time| time.sampled_by(&key)).flatten() {
            all.entry(key).or_default().add(&sums);
        }
        all
    }

    /// The units of work.
    pub(super) fn units(&self) -> Vec<UnitCycles> {
        self.0.iter().flat_map(|time| time.units()).collect()
    }

    /// The cycles of out-of-order cores if nothing overlapped.
    pub(super) fn non_overlapped(&self) -> NonOverlapped {
        let mut sum = NonOverlapped::default();
        self.0.iter().filter_map(|time| time.non_overlapped()).for_each(|one| sum.add(&one));
        sum
    }

    /// Counts of out-of-order cores beside cycles.
    pub(super) fn out_of_order(&self) -> OutOfOrderCounts {
        let mut sum = OutOfOrderCounts::default();
        self.0.iter().filter_map(|time| time.out_of_order()).for_each(|one| sum.add(&one));
        sum
    }

    /// Conditional branches, jumps and returns.
    pub(super) fn predictions(&self) -> [PredictionCount; 3] {
        let mut sums = [PredictionCount::default(); 3];
        for counts in self.0.iter().map(|time| time.predictions()) {
            for (sum, count) in sums.iter_mut().zip([counts.branches, counts.jumps, counts.returns]) {
                sum.executed += count.executed;
                sum.mispredicted += count.mispredicted;
            }
        }
        sums
    }
}

/// A process, as tables name it.
#[derive(Clone, Debug)]
pub struct ProcessLabel {
    /// Its number among the processes that models observe.
    pub process: u32,
    /// Its number, for people.
    pub number: String,
    /// The program that it executed last, and how it ended, if that is known.
    pub program_and_end: Option<[String; 2]>,
}

impl ProcessLabel {
    /// The headings of the cells.
    pub(super) const HEADINGS: [(&'static str, Kind); 3] =
        [("process", Kind::Text), ("program", Kind::Text), ("end", Kind::Text)];

    /// The first cells of its row.
    pub(super) fn cells(&self) -> [Value; 3] {
        let [program, end] = match &self.program_and_end {
            Some(texts) => texts.clone().map(Value::from),
            None => [Value::Missing, Value::Missing],
        };
        [self.number.clone().into(), program, end]
    }
}

/// A process, with its results.
#[derive(Clone, Debug)]
pub struct ProcessResults {
    /// The process.
    pub label: ProcessLabel,
    /// For each machine, what the results of all instructions add up to.
    pub totals: Vec<Vec<u64>>,
}

/// A row for each process, and one for all together; a table for each machine, whose names are given with a model of it.
pub fn by_process<M: InstructionResults>(
    machines: &[(&str, &M)],
    processes: &[ProcessResults],
) -> Vec<Table> {
    let indexed: Vec<(usize, &M)> =
        machines.iter().enumerate().map(|(index, &(_, model))| (index, model)).collect();
    let machines: Vec<(&str, &(usize, &M))> = machines.iter().map(|(name, _)| *name).zip(&indexed).collect();
    named(&machines, "processes", &format!("{} of processes on", M::WHAT), |name, title, &(index, model)| {
        let columns = model.columns();
        let mut total = vec![0; columns.len()];
        for process in processes {
            total.iter_mut().zip(&process.totals[index]).for_each(|(sum, number)| *sum += number);
        }
        let mut table = Table::new(name, title, &ProcessLabel::HEADINGS);
        table.columns.push(Column { name: "share".into(), kind: Kind::Percent(1) });
        table.columns.extend(columns);
        let cells = |texts: [Value; 3], row: &[u64]| {
            let weight = |row| model.weight(row) as f64;
            let share = Value::from(100.0 * weight(row) / weight(&total));
            texts.into_iter().chain([share]).chain(row.iter().map(|&number| number.into())).collect()
        };
        for process in processes {
            table.row(cells(process.label.cells(), &process.totals[index]));
        }
        table.total_row(cells(["total".into(), Value::Missing, Value::Missing], &total));
        table
    })
}
