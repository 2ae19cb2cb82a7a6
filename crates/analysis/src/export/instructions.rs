//! The selected instructions one by one, with addresses and values.

use std::io::{self, Write};

use events::BlockId;
use events::record::{Mark, address_of_word};
use trace::export::{ChampSim, Din};

use crate::replay::{AccessInstruction, Accesses, Dictionary, Executed, SelectedInstructions, Visitor};

/// An executed instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutedInstruction {
    /// The stream: an index of [`trace::Trace::streams`].
    pub stream: u32,
    /// Its number in its stream, from 1.
    pub number: u64,
    /// Its block.
    pub block: BlockId,
    /// Its index in the block.
    pub index: u32,
    /// Its address.
    pub pc: u64,
    /// The unit of work that it belongs to.
    pub unit: Option<u64>,
    /// Its access and address.
    pub access: Option<(AccessInstruction, u64)>,
    /// Its value ([`isa::InstructionSummary::value`]), if values were recorded and it has one.
    pub value: Option<u64>,
}

/// Receives instructions one by one.
pub trait InstructionSink {
    /// A selected instruction.
    fn step(&mut self, step: &ExecutedInstruction) -> io::Result<()>;

    /// Control is transferred to this address, selected or not; or, without an address, by a discontinuity.
    fn arrive(&mut self, _address: Option<u64>) -> io::Result<()> {
        Ok(())
    }
}

/// An instruction in a record.
#[derive(Clone, Copy, Debug)]
struct InstructionShape {
    /// Bytes.
    length: u8,
    /// Whether the record has a value of it.
    has_value: bool,
}

/// Splits records into instructions.
pub struct Instructions<'a, S> {
    dictionary: &'a Dictionary<'a>,
    accesses: &'a Accesses,
    /// By block, what its instructions are.
    blocks: Vec<Box<[InstructionShape]>>,
    /// By stream.
    units: Vec<Option<u64>>,
    count: u64,
    sink: S,
}

impl<'a, S: InstructionSink> Instructions<'a, S> {
    /// Passes the instructions of a trace to `sink`.
    pub fn new(dictionary: &'a Dictionary<'a>, accesses: &'a Accesses, sink: S) -> Instructions<'a, S> {
        let trace = dictionary.trace;
        let (set, has_values) = (trace.instruction_set(), trace.header().has_values);
        let shape = |&word: &u32| InstructionShape {
            length: set.length(word) as u8,
            has_value: has_values && set.summary(word).is_some_and(|summary| summary.value.is_some()),
        };
        let blocks = trace.blocks().iter().map(|block| block.words.iter().map(shape).collect()).collect();
        let units = vec![None; trace.streams().len()];
        Instructions { dictionary, accesses, blocks, units, count: 0, sink }
    }

    /// The number of instructions, and the sink.
    pub fn finish(self) -> (u64, S) {
        (self.count, self.sink)
    }
}

impl<S: InstructionSink> Visitor for Instructions<'_, S> {
    fn mark(&mut self, stream: u32, _before: u64, mark: Mark, _is_wanted: bool) -> io::Result<()> {
        let unit = &mut self.units[stream as usize];
        match mark {
            Mark::UnitBegins(number) => *unit = Some(number),
            Mark::UnitEnds(_) | Mark::UnitLeft(_) | Mark::UnitCut(_) => *unit = None,
            Mark::Gap | Mark::Discontinuity => return self.sink.arrive(None),
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        let Executed { stream, before, execution, selected, .. } = *executed;
        let block = self.dictionary.facts(execution.block);
        self.sink.arrive(Some(block.address))?;
        if selected == SelectedInstructions::None {
            return Ok(());
        }
        let mut accesses = self.accesses.of(execution.block).iter().zip(execution.addresses).peekable();
        let mut values = execution.values.iter();
        let unit = self.units[stream as usize];
        let mut next = block.address;
        for (index, &InstructionShape { length, has_value }) in
            (0..).zip(&self.blocks[execution.block as usize])
        {
            let access = accesses.next_if(|(access, _)| access.index == index);
            let value = has_value.then(|| values.next());
            let pc = next;
            next = pc.wrapping_add(length.into());
            if !selected.has(index as usize) {
                continue;
            }
            self.count += 1;
            self.sink.step(&ExecutedInstruction {
                stream,
                number: before.saturating_add(1 + u64::from(index)),
                block: execution.block,
                index,
                pc,
                unit,
                access: access.map(|(access, &address)| (*access, address_of_word(address))),
                value: value.flatten().copied(),
            })?;
        }
        Ok(())
    }
}

impl<W: Write> InstructionSink for Din<W> {
    #[inline]
    fn step(&mut self, step: &ExecutedInstruction) -> io::Result<()> {
        self.fetch(step.pc)?;
        step.access.map_or(Ok(()), |(access, address)| self.access(access.is_store, address))
    }
}

impl<W: Write> InstructionSink for ChampSim<W> {
    #[inline]
    fn step(&mut self, step: &ExecutedInstruction) -> io::Result<()> {
        let access = step.access.map(|(access, address)| (access.is_store, address));
        self.instruction(step.block as usize, step.index as usize, step.pc, access)
    }

    #[inline]
    fn arrive(&mut self, address: Option<u64>) -> io::Result<()> {
        ChampSim::arrive(self, address)
    }
}
