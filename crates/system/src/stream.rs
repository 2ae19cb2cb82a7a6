//! The stream of the recorder (`recorder.c`): what the processor executes.

use std::io::{self, Read};
use std::sync::Arc;

use qemu_stream::PluginWords;

/// The two highest bits of words.
const BLOCK: u64 = 1;
const CONTROL: u64 = 2;
/// The kinds of control words, as `recorder.c` has them.
const DEFINE: u64 = 0;
const THREAD: u64 = 1;
const CONDITIONAL: u64 = 2;
const END: u64 = 3;
const PROCESSOR: u64 = 4;
/// The longest block; QEMU's have 512 instructions at most.
const MAX_INSTRUCTIONS: u64 = 1 << 16;

/// A block that the emulator translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslatedBlock {
    /// The address of its first instruction.
    pub address: u64,
    /// Its instructions.
    pub words: Arc<[u32]>,
}

/// A thread of the guest's kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelThread {
    /// The address of its task structure.
    pub task: u64,
    /// The numbers that the guest's kernel gave to process and thread.
    pub process: u32,
    /// See `process`.
    pub thread: u32,
    /// The name of the thread.
    pub name: String,
    /// Whether it is of a program, and not of the kernel.
    pub is_user: bool,
}

/// Something in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// A block was translated; blocks are numbered from 0 in this order.
    Defined(TranslatedBlock),
    /// A processor enters a block.
    Entered {
        /// The processor.
        processor: u16,
        /// The block's number.
        block: u32,
        /// Accesses by the block before that were only counted.
        accesses: u16,
    },
    /// The processor that entered a block or was resumed last has accessed an address.
    Accessed {
        /// The address, sign-extended; a physical one in PALcode.
        address: u64,
        /// Whether it is of a store-conditional.
        is_conditional: bool,
    },
    /// The next accesses are those of this processor.
    Resumed {
        /// The processor.
        processor: u16,
    },
    /// A processor switches to a thread; the block that it executes is still the former thread's.
    Switched {
        /// The processor.
        processor: u16,
        /// The thread.
        thread: KernelThread,
    },
}

/// Reads a stream.
pub struct StreamReader<R> {
    source: PluginWords<R>,
    is_complete: bool,
    blocks: u32,
}

/// The stream cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// It has words that a recorder does not write.
    #[error("the recorder's stream is damaged: {0}")]
    Damaged(&'static str),
    /// It ends early.
    #[error("the recorder's stream is incomplete")]
    Incomplete,
    /// Anything else.
    #[error("cannot read the recorder's stream: {0}")]
    Io(#[from] io::Error),
}

impl<R: Read> StreamReader<R> {
    /// Reads from a source.
    pub fn new(source: R) -> StreamReader<R> {
        StreamReader { source: PluginWords::new(source), is_complete: false, blocks: 0 }
    }

    /// The next event; None at the end.
    #[inline]
    pub fn next_event(&mut self) -> Result<Option<StreamEvent>, StreamError> {
        if self.is_complete {
            return Ok(None);
        }
        let word = self.word()?;
        match word >> 62 {
            BLOCK => {
                let block = word as u32;
                if block >= self.blocks {
                    return Err(StreamError::Damaged("a block has not been defined"));
                }
                let (processor, accesses) = ((word >> 32) as u16, (word >> 48) as u16 & 0x3fff);
                Ok(Some(StreamEvent::Entered { processor, block, accesses }))
            }
            CONTROL => self.control(word),
            _ => Ok(Some(StreamEvent::Accessed { address: word, is_conditional: false })),
        }
    }

    /// The next event's address, if it is an access that is not conditional and has been read already. So most accesses are found
    /// at less cost than by [`StreamReader::next_event`].
    #[inline]
    pub fn next_access(&mut self) -> Option<u64> {
        self.source.next_if(|word| !matches!(word >> 62, BLOCK | CONTROL))
    }

    fn control(&mut self, word: u64) -> Result<Option<StreamEvent>, StreamError> {
        match word >> 56 & 0x3f {
            DEFINE => self.definition(word & 0xffff_ffff).map(Some),
            THREAD => self.thread((word >> 32) as u16).map(Some),
            PROCESSOR => Ok(Some(StreamEvent::Resumed { processor: (word >> 32) as u16 })),
            CONDITIONAL => {
                let address = self.word()?;
                Ok(Some(StreamEvent::Accessed { address, is_conditional: true }))
            }
            END => {
                self.is_complete = true;
                Ok(None)
            }
            _ => Err(StreamError::Damaged("a word of an unknown kind")),
        }
    }

    fn definition(&mut self, count: u64) -> Result<StreamEvent, StreamError> {
        if count == 0 || count > MAX_INSTRUCTIONS {
            return Err(StreamError::Damaged("a block has too many instructions, or none"));
        }
        let address = self.word()?;
        let mut words = Vec::with_capacity(count as usize + 1);
        while (words.len() as u64) < count {
            let pair = self.word()?;
            words.extend([pair as u32, (pair >> 32) as u32]);
        }
        words.truncate(count as usize);
        self.blocks += 1;
        Ok(StreamEvent::Defined(TranslatedBlock { address, words: words.into() }))
    }

    fn thread(&mut self, processor: u16) -> Result<StreamEvent, StreamError> {
        let (task, numbers) = (self.word()?, self.word()?);
        let name = [self.word()?, self.word()?].map(u64::to_ne_bytes).concat();
        let is_user = self.word()? != 0;
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        let name = String::from_utf8_lossy(&name[..end]).into_owned();
        let (process, thread) = ((numbers >> 32) as u32, numbers as u32);
        Ok(StreamEvent::Switched { processor, thread: KernelThread { task, process, thread, name, is_user } })
    }

    #[inline]
    fn word(&mut self) -> Result<u64, StreamError> {
        self.source.word()?.ok_or(StreamError::Incomplete)
    }
}
