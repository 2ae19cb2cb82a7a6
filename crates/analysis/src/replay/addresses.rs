//! Every address in order: of instructions, loads and stores.

use std::io;

use events::record::address_of_word;
use trace::Trace;

use super::{Executed, Replay, ReplayOrder, Visitor};
use table::{Kind, Table, Value};

/// Rows of a table that is passed on.
const BATCH_ROWS: usize = 1 << 14;

/// Makes rows of addresses, and passes them on in tables of limited size.
pub struct Addresses<'a, S: FnMut(&Table) -> io::Result<()>> {
    replay: &'a Replay<'a>,
    table: Table,
    sink: S,
}

impl<'a, S: FnMut(&Table) -> io::Result<()>> Addresses<'a, S> {
    /// Passes tables of this name to `sink`, at least one.
    pub fn new(replay: &'a Replay<'a>, name: &str, sink: S) -> Addresses<'a, S> {
        let columns = [
            ("processor", Kind::Count),
            ("process", Kind::Count),
            ("thread", Kind::Count),
            ("kind", Kind::Text),
            ("address", Kind::Address),
            ("size", Kind::Count),
        ];
        let table = Table::new(name, "Addresses in the order of time", &columns[first_column(replay)..]);
        Addresses { replay, table, sink }
    }

    /// Passes the remaining rows on.
    pub fn finish(mut self) -> io::Result<()> {
        (self.sink)(&self.table)
    }

    fn row(&mut self, at: &[Value; 3], kind: &str, address: u64, size: u64) {
        let mut row = at[first_column(self.replay)..].to_vec();
        row.extend([kind.into(), Value::Integer(address.cast_signed()), size.into()]);
        self.table.row(row);
    }
}

/// There is a column for the processor only if threads are spread over processors.
fn first_column(replay: &Replay) -> usize {
    usize::from(replay.order == ReplayOrder::Time)
}

/// The processor, process and thread of an instruction.
fn location(trace: &Trace, executed: &Executed) -> [Value; 3] {
    let stream = &trace.streams()[executed.stream as usize];
    let processor = executed.processor.map(u64::from);
    [processor.into(), u64::from(stream.process).into(), u64::from(stream.thread).into()]
}

impl<S: FnMut(&Table) -> io::Result<()>> Visitor for Addresses<'_, S> {
    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        let block = executed.execution.block;
        let at = location(self.replay.dictionary.trace, executed);
        let Replay { dictionary, accesses, filter, .. } = *self.replay;
        let mut data = accesses.of(block).iter().zip(executed.execution.addresses).peekable();
        let block = &dictionary.trace.blocks()[block as usize];
        for (index, (pc, &word)) in block.addresses().zip(&block.words).enumerate() {
            let access = data.next_if(|(access, _)| access.index as usize == index);
            if !executed.selected.has(index) {
                continue;
            }
            // If accesses are selected by address, only those.
            if !filter.is_by_data() {
                self.row(&at, "fetch", pc, block.instruction_set.length(word));
            }
            if let Some((access, &address)) = access {
                let kind = if access.is_store { "store" } else { "load" };
                self.row(&at, kind, address_of_word(address), access.size.into());
            }
        }
        if self.table.rows.len() >= BATCH_ROWS {
            (self.sink)(&self.table)?;
            self.table.rows.clear();
        }
        Ok(())
    }
}
