//! The words that a plugin of QEMU writes to a pipe (`crates/preload-build/include/qemu_plugin_stream.h`).

use std::io::{self, Read};

/// Words that are read at once.
const BUFFER: usize = 1 << 15;

/// Reads words of 64 bits in the host's order.
pub struct PluginWords<R> {
    source: R,
    buffer: Vec<u64>,
    at: usize,
}

impl<R: Read> PluginWords<R> {
    /// Reads from a source.
    pub fn new(source: R) -> PluginWords<R> {
        PluginWords { source, buffer: Vec::new(), at: 0 }
    }

    /// The next word; None at the end, also if that is within a word.
    #[inline]
    pub fn word(&mut self) -> io::Result<Option<u64>> {
        if self.at == self.buffer.len() {
            self.fill()?;
        }
        let word = self.buffer.get(self.at).copied();
        self.at += usize::from(word.is_some());
        Ok(word)
    }

    #[cold]
    fn fill(&mut self) -> io::Result<()> {
        let mut bytes = vec![0; BUFFER * 8];
        let mut read = 0;
        // Words may be cut by the pipe.
        while read == 0 || read % 8 != 0 {
            match self.source.read(&mut bytes[read..]) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let words = bytes[..read].chunks_exact(8);
        self.buffer = words.map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes"))).collect();
        self.at = 0;
        Ok(())
    }
}
