//! A trace on several processors of a described machine, in time; and the results as tables.

use events::Thread;
use machine::{Multiprocessor, NextStep, ProcessorCause, Transaction};
use trace::interleave::{Schedule, Turn};
use trace::{Chunk, Error, Trace};

use crate::table::{Kind, Table, Value};

/// Executes the selected chunks of a trace. Chunks that cannot be read are skipped, and their errors returned. `progress` is
/// called with the number of instructions executed since the last call.
pub fn replay(
    trace: &Trace,
    schedule: Schedule,
    is_wanted: impl Fn(&Chunk) -> bool,
    model: &mut Multiprocessor,
    progress: &mut dyn FnMut(u64),
) -> Vec<Error> {
    trace.blocks().iter().for_each(|block| model.define(block));
    let mut streams = trace.interleaved_where(schedule, is_wanted);
    let (mut problems, mut reported, mut turns) = (Vec::new(), 0, 0u64);
    loop {
        let number = match model.next_step() {
            NextStep::Continue => {
                model.step();
                continue;
            }
            NextStep::Feed(number) => number,
            // The streams that the others waited for have ended since.
            NextStep::AllIdle => {
                model.wake();
                continue;
            }
        };
        match streams.next_of(number as u32) {
            Ok(Turn::Slice(slice)) => {
                let process = trace.streams()[slice.stream as usize].process;
                model.feed(number, Thread { process, number: slice.stream }, slice.words);
            }
            Ok(Turn::Idle) => model.idle(number),
            Ok(Turn::Over) => break,
            Err(error) => problems.push(error),
        }
        turns += 1;
        if turns.is_multiple_of(1 << 14) {
            let executed = model.processors().map(|processor| processor.instructions).sum();
            progress(executed - reported);
            reported = executed;
        }
    }
    model.end();
    problems
}

fn cause_name(cause: ProcessorCause) -> &'static str {
    match cause {
        ProcessorCause::Busy => "busy",
        ProcessorCause::Memory => "memory",
        ProcessorCause::Transfer => "other caches",
        ProcessorCause::Outstanding => "outstanding misses",
        ProcessorCause::Barrier => "barriers",
        ProcessorCause::System => "system calls",
        ProcessorCause::Idle => "idle",
    }
}

/// What a processor's counts are: instructions, cycles, and cycles per instruction by cause.
struct ProcessorRow {
    instructions: u64,
    units: u64,
    /// Picoseconds.
    time: [u64; 7],
}

/// The cycles of each processor per instruction, by what they were spent on. Idle time is not part of the sum.
pub fn by_processor(model: &Multiprocessor) -> Table {
    let mut table = Table::new(
        "processors",
        "Cycles per instruction by processor",
        &[("processor", Kind::Text), ("instructions", Kind::Count), ("cycles", Kind::Count)],
    );
    let columns = ["CPI"].into_iter().chain(ProcessorCause::ALL.map(cause_name));
    table.columns.extend(columns.map(|name| crate::table::Column {
        name: name.into(),
        kind: if name == "idle" { Kind::Percent(1) } else { Kind::Real(3) },
    }));
    let mut whole = ProcessorRow { instructions: 0, units: 0, time: [0; 7] };
    for (number, counts) in model.processors().enumerate() {
        whole.instructions += counts.instructions;
        whole.units += counts.units;
        whole.time.iter_mut().zip(counts.time).for_each(|(sum, time)| *sum += time);
        let row = ProcessorRow { instructions: counts.instructions, units: counts.units, time: counts.time };
        table.row(cells(model, &number.to_string(), &row));
    }
    table.row(cells(model, "all", &whole));
    table
}

fn cells(model: &Multiprocessor, name: &str, row: &ProcessorRow) -> Vec<Value> {
    let idle = row.time[ProcessorCause::Idle as usize];
    let (all, cycle) = (row.time.iter().sum::<u64>(), model.cycle());
    let of = |time: u64| time as f64 / cycle as f64 / row.instructions as f64;
    let mut cells: Vec<Value> =
        vec![name.into(), row.instructions.into(), ((all - idle) / cycle).into(), of(all - idle).into()];
    for cause in ProcessorCause::ALL {
        let time = row.time[cause as usize];
        cells.push(if cause == ProcessorCause::Idle {
            (time as f64 / all as f64).into()
        } else {
            of(time).into()
        });
    }
    cells
}

/// Transactions on the bus: their number, their latency, and what they waited for each other.
pub fn transactions(model: &Multiprocessor) -> Table {
    let mut table = Table::new(
        "transactions",
        "Transactions on the bus",
        &[
            ("transaction", Kind::Text),
            ("count", Kind::Count),
            ("per 1,000 instructions", Kind::Real(3)),
            ("latency ns", Kind::Real(1)),
            ("on an idle bus ns", Kind::Real(1)),
            ("waited ns", Kind::Real(1)),
            ("longest ns", Kind::Real(1)),
        ],
    );
    let instructions: u64 = model.processors().map(|processor| processor.instructions).sum();
    let nanoseconds = |picoseconds: u64, count: u64| picoseconds as f64 / 1000.0 / count as f64;
    for transaction in Transaction::ALL {
        let counts = model.bus().used().transactions[transaction as usize];
        if counts.count == 0 {
            continue;
        }
        table.row(vec![
            transaction_name(transaction).into(),
            counts.count.into(),
            Value::from(1000.0 * counts.count as f64 / instructions as f64),
            nanoseconds(counts.latency, counts.count).into(),
            nanoseconds(model.bus().unloaded(transaction), 1).into(),
            nanoseconds(counts.waited, counts.count).into(),
            nanoseconds(counts.longest, 1).into(),
        ]);
    }
    table
}

fn transaction_name(transaction: Transaction) -> &'static str {
    match transaction {
        Transaction::Memory => "line from memory",
        Transaction::Transfer => "dirty line from another cache",
        Transaction::TransferAndUpdate => "dirty line from another cache, also to memory",
        Transaction::Upgrade => "upgrade",
        Transaction::WriteBack => "write-back",
    }
}

/// Time, throughput, and how much the bus was used.
pub fn summary(model: &Multiprocessor) -> Table {
    let processors = model.processors().len();
    let title = format!("{processors} processor{} on a bus", if processors == 1 { "" } else { "s" });
    let mut table = Table::new("bus", title, &[("what", Kind::Text), ("value", Kind::Real(3))]);
    let instructions: u64 = model.processors().map(|processor| processor.instructions).sum();
    let units: u64 = model.processors().map(|processor| processor.units).sum();
    let (elapsed, used) = (model.elapsed() as f64, model.bus().used());
    let mut row = |what: &str, value: f64| table.row(vec![what.into(), value.into()]);
    row("time in ms", elapsed / 1e9);
    row("million instructions per second", instructions as f64 / (elapsed / 1e6));
    if units > 0 {
        row("units of work per second", units as f64 / (elapsed / 1e12));
    }
    row("utilization of the address bus in %", 100.0 * used.address as f64 / elapsed);
    row("utilization of the data bus in %", 100.0 * used.data as f64 / elapsed);
    let banks = used.banks.iter().sum::<u64>() as f64 / used.banks.len().max(1) as f64;
    row("utilization of the banks of memory in %", 100.0 * banks / elapsed);
    table
}
