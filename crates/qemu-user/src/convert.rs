//! Converts the recorder's stream to a trace.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use events::record::{Event, Mark};
use events::{Block, BlockId};
use isa::{
    ControlTransfer, DescribedAccess, DescribedKind, DescribedSet, InstructionDescription, InstructionSet,
    TransferTarget,
};
use trace::{ProcessDictionary, StreamWriter, Writer};

use crate::Error;
use crate::images::{CodeFiles, LoadedFile};
use crate::stream::{EmulatedAccess, EmulatedBlock, UserEvent, UserStream};
use crate::transfers::{TransferCode, classifier};

/// Accesses of an instruction that a trace can have.
const ACCESSES: usize = 2;
/// Log₂ of the bytes of the largest access that a trace can have.
const LARGEST_SHIFT: u8 = 7;
/// Bytes of the pages at whose ends the emulator ends blocks.
const PAGE: u64 = 4096;
/// Bytes of the longest instruction.
const LONGEST: u64 = 16;
/// Words of a thread that are passed on at once.
const ENOUGH_WORDS: usize = 1 << 16;

/// The result of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConvertedRun {
    /// Instructions in the trace.
    pub instructions: u64,
    /// Accesses to memory in it.
    pub accesses: u64,
    /// Accesses that are not in it, because their instructions make more than it can have.
    pub omitted: u64,
    /// Transfers of control that do not follow from the code: to handlers of signals, and from them.
    pub diversions: u64,
    /// Whether the stream ended before the program did.
    pub is_cut: bool,
}

/// Reads a stream of a program of this set, and writes it to a trace.
pub fn convert(
    source: impl Read,
    set: &'static DescribedSet,
    writer: &Arc<Writer>,
    process: u32,
) -> Result<ConvertedRun, Error> {
    let mut converter = UserConverter::new(set, writer, process);
    let mut stream = UserStream::new(source);
    let mut last = 0;
    loop {
        match stream.next_event()? {
            UserEvent::Defined(block) => converter.define(block),
            UserEvent::Mapped(mapping) => converter.files.map(mapping),
            UserEvent::Begins(number) => converter.begin(number)?,
            UserEvent::Resumed(number) => last = number,
            UserEvent::Entered { thread, block } => {
                last = thread;
                converter.enter(thread, block)?;
            }
            UserEvent::Accessed(access) => converter.thread(last)?.seen.push(access),
            UserEvent::Ended => return converter.finish(false),
            UserEvent::Cut => return converter.finish(true),
        }
    }
}

/// A block of the emulator, and the blocks of the trace for it: one for each sequence of accesses that its instructions made.
struct ConvertedBlock {
    address: u64,
    image: Option<(LoadedFile, u32)>,
    code: Vec<u8>,
    lengths: Box<[u8]>,
    transfers: Box<[TransferCode]>,
    /// Where control can come from it.
    end: u64,
    exit: Option<ControlTransfer>,
    variants: Vec<(Box<[AccessShape]>, BlockId)>,
}

/// An access, but for its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AccessShape {
    index: u16,
    access: DescribedAccess,
}

/// A thread of the program.
struct EmulatedThread {
    stream: StreamWriter,
    words: Vec<u64>,
    /// The block that it entered last, and the accesses since then.
    block: Option<u32>,
    seen: Vec<EmulatedAccess>,
}

struct UserConverter {
    set: &'static DescribedSet,
    classify: Option<fn(&[u8]) -> TransferCode>,
    process: Arc<ProcessDictionary>,
    files: CodeFiles,
    /// The files in the trace, by number.
    images: Vec<LoadedFile>,
    blocks: Vec<ConvertedBlock>,
    threads: HashMap<u16, EmulatedThread>,
    /// The thread that was recorded last, and the number of its order mark.
    last: Option<u16>,
    order: u64,
    shape: Vec<AccessShape>,
    addresses: Vec<u64>,
    converted: ConvertedRun,
}

impl UserConverter {
    fn new(set: &'static DescribedSet, writer: &Arc<Writer>, process: u32) -> UserConverter {
        UserConverter {
            set,
            classify: classifier(crate::architecture(set)),
            process: ProcessDictionary::new(writer, 0, process),
            files: CodeFiles::default(),
            images: Vec::new(),
            blocks: Vec::new(),
            threads: HashMap::new(),
            last: None,
            order: 0,
            shape: Vec::new(),
            addresses: Vec::new(),
            converted: ConvertedRun::default(),
        }
    }

    fn thread(&mut self, number: u16) -> Result<&mut EmulatedThread, Error> {
        self.threads.get_mut(&number).ok_or(Error::UnknownThread(number))
    }

    fn begin(&mut self, number: u16) -> Result<(), Error> {
        let stream = StreamWriter::new(&self.process);
        let thread = EmulatedThread { stream, words: Vec::new(), block: None, seen: Vec::new() };
        if let Some(ended) = self.threads.remove(&number) {
            self.end(ended)?;
        }
        self.threads.insert(number, thread);
        // Another thread with this number has a stream of its own.
        self.last = self.last.filter(|&last| last != number);
        Ok(())
    }

    fn define(&mut self, block: EmulatedBlock) {
        let code = block.instructions.concat();
        let last = block.instructions.len() - 1;
        let transfer = |(index, code): (usize, &[u8])| match self.classify {
            Some(classify) => classify(code),
            None if index == last => (DescribedKind::MayLeave, None),
            None => (DescribedKind::Operation, None),
        };
        let transfers: Box<[_]> =
            block.instructions.iter().map(|code| &**code).enumerate().map(transfer).collect();
        let length = block.instructions.last().map_or(0, |code| code.len());
        let end = block.address.wrapping_add(code.len() as u64);
        let exit = describe(length, transfers[last], [None; 2]);
        let exit = self.set.summary(exit.word()).and_then(|summary| summary.transfer);
        // A target that a word cannot hold is known here.
        let exit = exit.map(|exit| match transfers[last].1 {
            Some(distance) => ControlTransfer { target: TransferTarget::Relative(distance), ..exit },
            None => exit,
        });
        let image = self.image(block.address, block.host_address, &code);
        self.blocks.push(ConvertedBlock {
            address: block.address,
            image,
            lengths: block.instructions.iter().map(|code| code.len() as u8).collect(),
            code,
            transfers,
            end,
            exit,
            variants: Vec::new(),
        });
    }

    /// The file with a block's code, and its number in the trace.
    fn image(&mut self, address: u64, host_address: u64, code: &[u8]) -> Option<(LoadedFile, u32)> {
        let loaded = self.files.find(address, host_address, code)?;
        let number = self.images.iter().position(|one| *one == loaded).unwrap_or_else(|| {
            self.process.add_image(self.files.described(loaded));
            self.images.push(loaded);
            self.images.len() - 1
        });
        Some((loaded, number as u32))
    }

    /// A thread enters a block: what it executed before is complete.
    fn enter(&mut self, number: u16, block: u32) -> Result<(), Error> {
        let address = self.blocks[block as usize].address;
        if let Some(before) = self.thread(number)?.block {
            self.blocks[before as usize].cut_before(address);
        }
        self.settle(number)?;
        let is_next = self.last == Some(number);
        let (order, diversions, blocks) = (&mut self.order, &mut self.converted.diversions, &self.blocks);
        let thread = self.threads.get_mut(&number).ok_or(Error::UnknownThread(number))?;
        if !is_next {
            *order += 1;
            thread.words.push(Event::Mark(Mark::Order(*order)).word());
        }
        if let Some(before) = thread.block.replace(block)
            && !blocks[before as usize].can_continue_at(address)
        {
            *diversions += 1;
            thread.words.push(Event::Mark(Mark::Discontinuity).word());
        }
        self.last = Some(number);
        Ok(())
    }

    /// Records the block that a thread entered last.
    fn settle(&mut self, number: u16) -> Result<(), Error> {
        let thread = self.threads.get_mut(&number).ok_or(Error::UnknownThread(number))?;
        let Some(number) = thread.block else { return Ok(()) };
        self.converted.omitted += shape_of(&thread.seen, &mut self.shape, &mut self.addresses);
        thread.seen.clear();
        let block = &mut self.blocks[number as usize];
        self.converted.instructions += block.lengths.len() as u64;
        self.converted.accesses += self.addresses.len() as u64;
        let known = block.variants.iter().find(|(shape, _)| shape[..] == self.shape[..]);
        let id = match known {
            Some(&(_, id)) => id,
            None => {
                let defined = block.described(self.set, &self.shape);
                let (address, files) = (block.address, &self.files);
                let function =
                    || block.image.and_then(|(loaded, image)| files.function(loaded, image, address));
                let id = self.process.block(defined, function).map_err(Error::Write)?;
                block.variants.push((self.shape[..].into(), id));
                id
            }
        };
        thread.words.push(Event::Block(id).word());
        thread.words.extend(&self.addresses);
        if thread.words.len() >= ENOUGH_WORDS {
            thread.flush().map_err(Error::Write)?;
        }
        Ok(())
    }

    fn end(&mut self, mut thread: EmulatedThread) -> Result<(), Error> {
        thread.flush().and_then(|()| thread.stream.finish()).map_err(Error::Write)
    }

    fn finish(mut self, is_cut: bool) -> Result<ConvertedRun, Error> {
        let mut numbers: Vec<_> = self.threads.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            self.settle(number)?;
            if let Some(thread) = self.threads.remove(&number) {
                self.end(thread)?;
            }
        }
        Ok(ConvertedRun { is_cut, ..self.converted })
    }
}

impl EmulatedThread {
    fn flush(&mut self) -> io::Result<()> {
        self.stream.write(&self.words)?;
        self.words.clear();
        Ok(())
    }
}

impl ConvertedBlock {
    /// Control goes from here to an address. If it is that of the last instruction, which the end of a page cuts, the emulator has
    /// translated and then dropped this instruction, and executes it in the next block.
    fn cut_before(&mut self, address: u64) {
        let Some((&length, &(kind, distance))) = self.lengths.last().zip(self.transfers.last()) else {
            return;
        };
        let start = self.end.wrapping_sub(length.into());
        let is_loop = kind == DescribedKind::Repeat || distance == Some(0);
        // The length is that of the bytes that were read.
        let may_be_cut = start % PAGE > PAGE - LONGEST;
        if address != start || is_loop || self.lengths.len() == 1 || !may_be_cut {
            return;
        }
        self.code.truncate(self.code.len() - usize::from(length));
        self.lengths = self.lengths[..self.lengths.len() - 1].into();
        self.transfers = self.transfers[..self.lengths.len()].into();
        (self.end, self.exit) = (start, None);
        self.variants.clear();
    }

    /// Whether control can go from here to an address without a signal.
    fn can_continue_at(&self, address: u64) -> bool {
        let Some(exit) = self.exit else { return address == self.end };
        let last = self.end.wrapping_sub(self.lengths.last().map_or(0, |&length| length.into()));
        match exit.target {
            TransferTarget::Relative(distance) => {
                address == last.wrapping_add_signed(distance) || exit.is_conditional && address == self.end
            }
            TransferTarget::Register { .. } => true,
        }
    }

    /// The block of a trace with these accesses.
    fn described(&self, set: &'static DescribedSet, shape: &[AccessShape]) -> Block {
        let mut rest = shape.iter().peekable();
        let words =
            (0..).zip(self.lengths.iter().zip(&self.transfers)).map(|(index, (&length, &transfer))| {
                let mut access = || rest.next_if(|one| one.index == index).map(|one| one.access);
                describe(length.into(), transfer, [access(), access()]).word()
            });
        let words: Vec<u32> = words.collect();
        let image = self.image.map(|(_, number)| number);
        Block { image, code: self.code.clone(), ..Block::new(set, self.address, words) }
    }
}

fn describe(
    length: usize,
    (kind, distance): TransferCode,
    accesses: [Option<DescribedAccess>; ACCESSES],
) -> InstructionDescription {
    InstructionDescription { length: length as u8, kind, distance, accesses }
}

/// The accesses as a trace has them: those of an instruction that follow each other without a gap are one, and there are at
/// most two of an instruction. Returns how many are left out.
fn shape_of(seen: &[EmulatedAccess], shape: &mut Vec<AccessShape>, addresses: &mut Vec<u64>) -> u64 {
    shape.clear();
    addresses.clear();
    let mut omitted = 0;
    for one in seen {
        let access = DescribedAccess { is_store: one.is_store, size_shift: one.size_shift };
        if let (Some(last), Some(address)) = (shape.last_mut(), addresses.last())
            && last.index == one.index
            && last.access == access
            && *address + (1 << access.size_shift) == one.address
            && access.size_shift < LARGEST_SHIFT
        {
            last.access.size_shift += 1;
        } else if shape.iter().rev().take_while(|last| last.index == one.index).count() == ACCESSES {
            omitted += 1;
        } else {
            shape.push(AccessShape { index: one.index, access });
            addresses.push(one.address);
        }
    }
    omitted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(accesses: &[(u16, u64, u8, bool)]) -> (Vec<(u16, u8, bool)>, Vec<u64>, u64) {
        let seen: Vec<_> = accesses
            .iter()
            .map(|&(index, address, size_shift, is_store)| EmulatedAccess {
                address,
                index,
                size_shift,
                is_store,
            })
            .collect();
        let (mut shape, mut addresses) = (Vec::new(), Vec::new());
        let omitted = shape_of(&seen, &mut shape, &mut addresses);
        let shape = shape.iter().map(|one| (one.index, one.access.size_shift, one.access.is_store));
        (shape.collect(), addresses, omitted)
    }

    #[test]
    fn adjacent_accesses_of_an_instruction_are_one() {
        // A pair, a push from memory, and two instructions that load adjacent quadwords.
        let pair = seen(&[(0, 0x100, 3, false), (0, 0x108, 3, false)]);
        assert_eq!(pair, (vec![(0, 4, false)], vec![0x100], 0));
        let push = seen(&[(1, 0x100, 3, false), (1, 0x108, 3, true)]);
        assert_eq!(push, (vec![(1, 3, false), (1, 3, true)], vec![0x100, 0x108], 0));
        let two = seen(&[(0, 0x100, 3, false), (1, 0x108, 3, false)]);
        assert_eq!(two, (vec![(0, 3, false), (1, 3, false)], vec![0x100, 0x108], 0));
    }

    #[test]
    fn more_than_two_accesses_are_left_out_and_counted() {
        let gather: Vec<_> = (0..4).map(|one| (7, 0x1000 * (4 - one), 2, false)).collect();
        assert_eq!(seen(&gather), (vec![(7, 2, false); 2], vec![0x4000, 0x3000], 2));
    }
}
