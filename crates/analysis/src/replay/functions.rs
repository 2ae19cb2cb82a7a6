//! The function trace: one line for each call, nested, as in Figure 3 of the 1997 paper.

use std::io::{self, Write};

use events::record::Mark;

use super::text::ListingText;
use super::{ActiveCalls, Arrival, Dictionary, Executed, Visitor};

/// Calls deeper than this are not indented further; their depth is printed.
const INDENTED: usize = 60;

/// Lists the functions that control enters.
pub struct FunctionTrace<'a, W: Write> {
    dictionary: &'a Dictionary<'a>,
    text: ListingText<'a, W>,
    calls: Vec<ActiveCalls>,
}

impl<'a, W: Write> FunctionTrace<'a, W> {
    /// Lists a trace's calls to `out`; `system_call` maps the numbers of system calls to names.
    pub fn new(
        dictionary: &'a Dictionary<'a>,
        system_call: &'a dyn Fn(u32) -> String,
        out: W,
    ) -> FunctionTrace<'a, W> {
        let calls = vec![ActiveCalls::default(); dictionary.trace.streams().len()];
        FunctionTrace { dictionary, text: ListingText::new(dictionary.trace, system_call, out, 0), calls }
    }

    /// Writes the remaining lines.
    pub fn finish(self) -> io::Result<()> {
        self.text.finish()
    }
}

impl<W: Write> Visitor for FunctionTrace<'_, W> {
    fn mark(&mut self, stream: u32, before: u64, mark: Mark, is_selected: bool) -> io::Result<()> {
        self.calls[stream as usize].mark(mark, self.dictionary.trace.instruction_set());
        // Signals show in the calls that follow; system calls are in the listing of instructions.
        let is_told = is_selected && !matches!(mark, Mark::Discontinuity | Mark::SystemCall(_));
        if is_told { self.text.mark(stream, before, mark) } else { Ok(()) }
    }

    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        let facts = self.dictionary.facts(executed.execution.block);
        let calls = &mut self.calls[executed.stream as usize];
        let how = match calls.block(facts, executed.execution.addresses, |_| false) {
            Arrival::Within | Arrival::Returned => return Ok(()),
            Arrival::Called | Arrival::Replaced => "",
            Arrival::Interrupted => " (a signal's handler)",
            Arrival::Emerged => " (called before recording began)",
        };
        if !executed.selected.has(0) {
            return Ok(());
        }
        let depth = calls.depth();
        let address =
            if facts.at_entry { self.dictionary.regions[facts.region as usize].start } else { facts.address };
        let label = self.dictionary.label(facts.region, address);
        let indent = 2 * depth.min(INDENTED);
        let deep = if depth > INDENTED { format!("[{depth}] ") } else { String::new() };
        self.text.thread(executed.stream, executed.before)?;
        self.text.remark(executed.before, &format!("{:indent$}{deep}{label}{how}", ""))
    }
}
