//! The segment with the new code.

/// The new segment as it grows.
pub struct OutputSegment {
    /// Its address.
    pub base: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Its contents.
    pub bytes: Vec<u8>,
}

impl OutputSegment {
    /// The next free address, a multiple of 16.
    pub fn reserve(&mut self) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        self.base + self.bytes.len() as u64
    }

    /// The offset in the file of an address.
    pub fn offset_of(&self, address: u64) -> u64 {
        self.offset + (address - self.base)
    }
}
