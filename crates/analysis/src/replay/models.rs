//! A trace for a model of a machine.

use machine::Model;
use trace::Error;
use trace::record::{Entries, Entry, Event};

use super::filter::{self, Position};
use super::source::{self, Batch, Piece};
use super::{Chosen, Replay};

impl Replay<'_> {
    /// Lets a model hear what is wanted of the trace: blocks of which every instruction is. What cannot be read
    /// is left out and told; `progress` hears how many instructions more have been read.
    pub fn tell(&self, model: &mut dyn Model, progress: &mut dyn FnMut(u64)) -> Vec<Error> {
        let trace = self.dictionary.trace;
        trace.blocks().iter().for_each(|block| model.define(block.address, &block.words));
        let as_it_is = self.filter.takes_all() && !trace.header().has_values;
        let mut positions = vec![Position::default(); trace.streams().len()];
        let mut is_begun = vec![false; trace.chunks().len()];
        let mut chosen = Vec::new();
        let mut problems = Vec::new();
        std::thread::scope(|scope| {
            for batch in source::read(scope, trace, self.order, |chunk| self.filter.chunk(chunk)) {
                let Batch { words, pieces } = match batch {
                    Ok(batch) => batch,
                    Err(error) => {
                        problems.push(error);
                        continue;
                    }
                };
                for piece in &pieces {
                    if !std::mem::replace(&mut is_begun[piece.chunk], true) {
                        progress(trace.chunks()[piece.chunk].instructions);
                    }
                }
                let process = |piece: &Piece| trace.streams()[piece.stream as usize].process;
                // Pieces that follow each other lie side by side.
                for pieces in pieces.chunk_by(|a, b| process(a) == process(b)) {
                    let range = pieces[0].words.start..pieces[pieces.len() - 1].words.end;
                    if as_it_is {
                        model.executed(process(&pieces[0]), &words[range]);
                        continue;
                    }
                    chosen.clear();
                    for piece in pieces {
                        let position = &mut positions[piece.stream as usize];
                        self.choose(position, &words[piece.words.clone()], &mut chosen);
                    }
                    model.executed(process(&pieces[0]), &chosen);
                }
            }
        });
        problems
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
