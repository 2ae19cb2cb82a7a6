//! Every address in order: of instructions, loads and stores.

use std::io;

use trace::Trace;

use super::{Accesses, Dictionary, Executed, Filter, Visitor};
use crate::table::{Kind, Table, Value};

/// Rows that are handed over together.
const TOGETHER: usize = 1 << 14;
/// Bytes of an instruction.
const INSTRUCTION: u64 = 4;

/// Makes rows of addresses, and hands them over a table at a time.
pub struct Addresses<'a, S: FnMut(&Table) -> io::Result<()>> {
    dictionary: &'a Dictionary<'a>,
    accesses: &'a Accesses,
    filter: &'a Filter,
    has_processors: bool,
    table: Table,
    sink: S,
}

impl<'a, S: FnMut(&Table) -> io::Result<()>> Addresses<'a, S> {
    /// Hands tables of this name to `sink`, one at least.
    pub fn new(
        dictionary: &'a Dictionary<'a>,
        accesses: &'a Accesses,
        filter: &'a Filter,
        name: &str,
        has_processors: bool,
        sink: S,
    ) -> Addresses<'a, S> {
        let columns = [
            ("processor", Kind::Count),
            ("process", Kind::Count),
            ("thread", Kind::Count),
            ("kind", Kind::Text),
            ("address", Kind::Address),
            ("size", Kind::Count),
        ];
        let columns = &columns[usize::from(!has_processors)..];
        let table = Table::new(name, "Addresses in the order of time", columns);
        Addresses { dictionary, accesses, filter, has_processors, table, sink }
    }

    /// Hands over the rest.
    pub fn finish(mut self) -> io::Result<()> {
        (self.sink)(&self.table)
    }

    fn row(&mut self, at: &[Value; 3], kind: &str, address: u64, size: u64) {
        let mut row = at[usize::from(!self.has_processors)..].to_vec();
        row.extend([kind.into(), Value::Integer(address.cast_signed()), size.into()]);
        self.table.row(row);
    }
}

/// Who executed: processor, process and thread.
fn place(trace: &Trace, executed: &Executed) -> [Value; 3] {
    let stream = &trace.streams()[executed.stream as usize];
    let processor = executed.processor.map(u64::from);
    [processor.into(), u64::from(stream.process).into(), u64::from(stream.thread).into()]
}

impl<S: FnMut(&Table) -> io::Result<()>> Visitor for Addresses<'_, S> {
    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        let block = executed.execution.block;
        let at = place(self.dictionary.trace, executed);
        let accesses = self.accesses;
        let mut data = accesses.of(block).iter().zip(executed.execution.addresses).peekable();
        for (index, pc) in self.dictionary.trace.blocks()[block as usize].addresses().enumerate() {
            let access = data.next_if(|(access, _)| access.index as usize == index);
            if !executed.chosen.has(index) {
                continue;
            }
            // Of data that is wanted by its address, only that.
            if !self.filter.is_by_data() {
                self.row(&at, "fetch", pc, INSTRUCTION);
            }
            if let Some((access, &address)) = access {
                let kind = if access.is_store { "store" } else { "load" };
                self.row(&at, kind, address, access.size.into());
            }
        }
        if self.table.rows.len() >= TOGETHER {
            (self.sink)(&self.table)?;
            self.table.rows.clear();
        }
        Ok(())
    }
}
