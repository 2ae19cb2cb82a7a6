//! The words of 64 bits that a plugin of QEMU writes to a pipe, by `include/qemu_plugin_stream.h`. The plugins of
//! `qemu-user` and `system` give them different meanings.

use std::io::{self, Read};
use std::ops::Range;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 18;
/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Reads words of 64 bits in the host's order.
pub struct PluginWords<R> {
    source: R,
    buffer: Vec<u8>,
    /// The bytes in the buffer that have not been returned.
    unread: Range<usize>,
}

impl<R: Read> PluginWords<R> {
    /// Reads from a source.
    pub fn new(source: R) -> PluginWords<R> {
        PluginWords { source, buffer: vec![0; BUFFER], unread: 0..0 }
    }

    /// The next word; None at the end, also if that is within a word.
    #[inline]
    pub fn word(&mut self) -> io::Result<Option<u64>> {
        if self.unread.len() < WORD && !self.fill()? {
            return Ok(None);
        }
        let word = self.buffer[self.unread.start..].first_chunk().copied().map(u64::from_ne_bytes);
        self.unread.start += WORD;
        Ok(word)
    }

    /// The next word, if it is at hand and `is_wanted`.
    #[inline]
    pub fn next_if(&mut self, is_wanted: impl FnOnce(u64) -> bool) -> Option<u64> {
        let word = self.buffer[self.unread.clone()].first_chunk().copied().map(u64::from_ne_bytes);
        let word = word.filter(|&word| is_wanted(word))?;
        self.unread.start += WORD;
        Some(word)
    }

    /// Reads more. Returns whether there is a word.
    #[cold]
    fn fill(&mut self) -> io::Result<bool> {
        // Words may be cut by the pipe.
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        while self.unread.len() < WORD {
            match self.source.read(&mut self.buffer[self.unread.end..]) {
                Ok(0) => return Ok(false),
                Ok(more) => self.unread.end += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
