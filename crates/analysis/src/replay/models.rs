//! A trace for a consumer, such as a model of a machine.

use events::record::{Entries, Entry, Event};
use events::{Consumer, Thread};
use trace::Error;

use super::filter::{self, Position};
use super::{Chosen, Replay};

impl Replay<'_> {
    /// Lets a consumer hear what is wanted of the trace: blocks of which every instruction is. What cannot be read
    /// is left out and told; `progress` hears how many instructions more have been read, and can end it.
    pub fn tell<E>(
        &self,
        consumer: &mut dyn Consumer,
        progress: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<Vec<Error>, E> {
        let trace = self.dictionary.trace;
        trace.images().iter().for_each(|image| consumer.map(image));
        trace.blocks().iter().for_each(|block| consumer.define(block));
        let as_it_is = self.filter.takes_all() && !trace.header().has_values;
        let mut positions = vec![Position::default(); trace.streams().len()];
        let mut is_begun = vec![false; trace.chunks().len()];
        let mut chosen = Vec::new();
        self.pieces(false, |piece, words| {
            if !std::mem::replace(&mut is_begun[piece.chunk], true) {
                progress(trace.chunks()[piece.chunk].instructions)?;
            }
            let process = trace.streams()[piece.stream as usize].process;
            let thread = Thread { process, number: piece.stream };
            if as_it_is {
                consumer.executed(thread, words);
            } else {
                chosen.clear();
                self.choose(&mut positions[piece.stream as usize], words, &mut chosen);
                consumer.executed(thread, &chosen);
            }
            Ok(())
        })
    }

    /// Adds what is wanted of a stream's records, without values.
    fn choose(&self, position: &mut Position, words: &[u64], chosen: &mut Vec<u64>) {
        let trace = self.dictionary.trace;
        for entry in Entries::new(words, trace.shapes()) {
            match entry {
                Entry::Execution(execution) => {
                    let length = filter::length(trace, execution.block);
                    let which =
                        self.filter.block(position, &execution, length, self.dictionary, self.accesses);
                    if which == Chosen::All {
                        chosen.push(Event::Block(execution.block).word());
                        chosen.extend_from_slice(execution.addresses);
                    }
                }
                Entry::Mark(mark) => {
                    if self.filter.mark(position, mark) {
                        chosen.push(Event::Mark(mark).word());
                    }
                }
            }
        }
    }
}
