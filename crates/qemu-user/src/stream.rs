//! The stream of the recorder (`recorder.c`): what a program executes.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use qemu_stream::PluginWords;

/// The two highest bits of words.
const ACCESS: u64 = 0;
const BLOCK: u64 = 1;
const CONTROL: u64 = 2;
/// The kinds of control words, as `recorder.c` has them.
const DEFINE: u64 = 0;
const FILE: u64 = 1;
const BEGINS: u64 = 2;
const RESUMES: u64 = 3;
const END: u64 = 4;
/// QEMU's longest block.
const MAX_INSTRUCTIONS: u64 = 512;
/// The longest instruction of any instruction set.
const MAX_LENGTH: u8 = 16;
/// The longest path.
const MAX_PATH: u64 = 1 << 12;

/// A block that the emulator translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatedBlock {
    /// The address of its first instruction.
    pub address: u64,
    /// Where the host has this code; 0 if that is not known.
    pub host_address: u64,
    /// The code of its instructions.
    pub instructions: Vec<Box<[u8]>>,
}

/// A file that shows in the address space of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostMapping {
    /// The first address in the host.
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// The offset in the file of the first byte.
    pub offset: u64,
    /// The file.
    pub path: PathBuf,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenAccess {
    /// The address, of which 48 bits are known.
    pub address: u64,
    /// The instruction: its index in the block.
    pub index: u16,
    /// Log₂ of its bytes.
    pub size_shift: u8,
    /// Whether it stores.
    pub is_store: bool,
}

/// Something in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserEvent {
    /// A block was translated; blocks are numbered from 0 in this order.
    Defined(EmulatedBlock),
    /// The code of later blocks may lie in this file.
    Mapped(HostMapping),
    /// A thread begins with this number, which an earlier one may have had.
    Begins(u16),
    /// A thread enters a block.
    Entered {
        /// The thread.
        thread: u16,
        /// The block's number.
        block: u32,
    },
    /// The thread that entered a block or was resumed last has accessed memory.
    Accessed(SeenAccess),
    /// The next accesses are of this thread.
    Resumed(u16),
    /// The end of a complete stream.
    Ended,
    /// The stream ends without that word: another program has replaced this one, or it was killed.
    Cut,
}

/// Reads a stream.
pub struct UserStream<R> {
    source: PluginWords<R>,
    blocks: u32,
}

/// The stream cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// It has words that a recorder does not write.
    #[error("the recorder's stream is damaged: {0}")]
    Damaged(&'static str),
    /// Anything else.
    #[error("cannot read the recorder's stream: {0}")]
    Io(#[from] io::Error),
}

impl<R: Read> UserStream<R> {
    /// Reads from a source.
    pub fn new(source: R) -> UserStream<R> {
        UserStream { source: PluginWords::new(source), blocks: 0 }
    }

    /// The next event. `Ended` or `Cut` is the last one.
    #[inline]
    pub fn next_event(&mut self) -> Result<UserEvent, StreamError> {
        let Some(word) = self.source.word()? else { return Ok(UserEvent::Cut) };
        match word >> 62 {
            BLOCK if (word as u32) < self.blocks => {
                Ok(UserEvent::Entered { thread: thread(word), block: word as u32 })
            }
            BLOCK => Err(StreamError::Damaged("a block has not been defined")),
            ACCESS => Ok(UserEvent::Accessed(SeenAccess {
                address: word & ((1 << 48) - 1),
                index: (word >> 48 & 0x1ff) as u16,
                size_shift: (word >> 57 & 7) as u8,
                is_store: word >> 60 & 1 != 0,
            })),
            CONTROL => self.control(word),
            _ => Err(StreamError::Damaged("a word of an unknown kind")),
        }
    }

    fn control(&mut self, word: u64) -> Result<UserEvent, StreamError> {
        let event = match word >> 56 & 0x3f {
            DEFINE => self.definition(word & 0xffff_ffff)?.map(UserEvent::Defined),
            FILE => self.mapping(word & 0xffff_ffff)?.map(UserEvent::Mapped),
            BEGINS => Some(UserEvent::Begins(thread(word))),
            RESUMES => Some(UserEvent::Resumed(thread(word))),
            END => Some(UserEvent::Ended),
            _ => return Err(StreamError::Damaged("a word of an unknown kind")),
        };
        Ok(event.unwrap_or(UserEvent::Cut))
    }

    /// None, here and below, if the stream is cut.
    fn definition(&mut self, count: u64) -> Result<Option<EmulatedBlock>, StreamError> {
        if count == 0 || count > MAX_INSTRUCTIONS {
            return Err(StreamError::Damaged("a block has too many instructions, or none"));
        }
        let Some([address, host_address, size]) = self.words()? else { return Ok(None) };
        if size > MAX_INSTRUCTIONS * (1 + u64::from(MAX_LENGTH)) {
            return Err(StreamError::Damaged("a block is too long"));
        }
        let Some(bytes) = self.bytes(size)? else { return Ok(None) };
        let (mut rest, mut instructions) = (&bytes[..], Vec::new());
        while let Some((&length, code)) = rest.split_first() {
            if !(1..=MAX_LENGTH).contains(&length) || code.len() < length.into() {
                return Err(StreamError::Damaged("an instruction is too long, or has no bytes"));
            }
            let (code, after) = code.split_at(length.into());
            instructions.push(code.into());
            rest = after;
        }
        if instructions.len() as u64 != count {
            return Err(StreamError::Damaged("a block has another number of instructions"));
        }
        self.blocks += 1;
        Ok(Some(EmulatedBlock { address, host_address, instructions }))
    }

    fn mapping(&mut self, length: u64) -> Result<Option<HostMapping>, StreamError> {
        if length > MAX_PATH {
            return Err(StreamError::Damaged("a path is too long"));
        }
        let Some([start, end, offset]) = self.words()? else { return Ok(None) };
        let path = self.bytes(length)?;
        Ok(path.map(|path| HostMapping { start, end, offset, path: OsString::from_vec(path).into() }))
    }

    fn words<const N: usize>(&mut self) -> Result<Option<[u64; N]>, StreamError> {
        let mut words = [0; N];
        for word in &mut words {
            let Some(next) = self.source.word()? else { return Ok(None) };
            *word = next;
        }
        Ok(Some(words))
    }

    fn bytes(&mut self, count: u64) -> Result<Option<Vec<u8>>, StreamError> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < count {
            let Some(word) = self.source.word()? else { return Ok(None) };
            bytes.extend(word.to_ne_bytes());
        }
        bytes.truncate(count as usize);
        Ok(Some(bytes))
    }
}

fn thread(word: u64) -> u16 {
    (word >> 32) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(words: &[u64]) -> Result<Vec<UserEvent>, StreamError> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut stream = UserStream::new(&bytes[..]);
        let mut events = Vec::new();
        loop {
            events.push(stream.next_event()?);
            if matches!(events.last(), Some(UserEvent::Ended | UserEvent::Cut)) {
                return Ok(events);
            }
        }
    }

    const CONTROL_BIT: u64 = CONTROL << 62;
    /// A block of two instructions, of one and two bytes.
    const DEFINITION: [u64; 5] =
        [CONTROL_BIT | DEFINE << 56 | 2, 0x1000, 0, 5, u64::from_ne_bytes([1, 0x90, 2, 0xeb, 0xfe, 0, 0, 0])];

    #[test]
    fn blocks_and_accesses_are_read() {
        let access = 0x7fff_0000_1234 | 1 << 48 | 3 << 57 | 1 << 60;
        let words = [&DEFINITION[..], &[BLOCK << 62 | 7 << 32, access, CONTROL_BIT | END << 56]].concat();
        let read = events(&words).unwrap();
        let block = EmulatedBlock {
            address: 0x1000,
            host_address: 0,
            instructions: vec![[0x90].into(), [0xeb, 0xfe].into()],
        };
        let access = SeenAccess { address: 0x7fff_0000_1234, index: 1, size_shift: 3, is_store: true };
        let entered = UserEvent::Entered { thread: 7, block: 0 };
        assert_eq!(read, [UserEvent::Defined(block), entered, UserEvent::Accessed(access), UserEvent::Ended]);
    }

    #[test]
    fn a_stream_may_end_anywhere() {
        for end in 0..DEFINITION.len() {
            assert_eq!(events(&DEFINITION[..end]).unwrap(), [UserEvent::Cut]);
        }
    }

    #[test]
    fn damage_is_an_error() {
        assert!(events(&[BLOCK << 62]).is_err());
        assert!(events(&[u64::MAX]).is_err());
        let mut words = DEFINITION;
        words[0] += 1;
        assert!(events(&words).is_err());
        words = DEFINITION;
        words[3] = u64::MAX;
        assert!(events(&words).is_err());
    }
}
