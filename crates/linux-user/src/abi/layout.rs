//! Structures of the guest, written and read field by field.

/// Builds a structure, little-endian, without implicit padding.
#[derive(Default)]
pub struct GuestStructure(Vec<u8>);

impl GuestStructure {
    /// An empty structure.
    pub fn new() -> GuestStructure {
        GuestStructure::default()
    }

    /// Appends 32-bit fields.
    pub fn u32s(mut self, values: &[u32]) -> GuestStructure {
        self.0.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self
    }

    /// Appends 64-bit fields.
    pub fn u64s(mut self, values: &[u64]) -> GuestStructure {
        self.0.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self
    }

    /// Appends bytes.
    pub fn raw(mut self, bytes: &[u8]) -> GuestStructure {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends zeros up to a total of `size` bytes.
    pub fn zeros_to(mut self, size: usize) -> GuestStructure {
        self.0.resize(size, 0);
        self
    }

    /// The bytes of the structure.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The 32-bit number at a byte offset; the caller's buffer is long enough.
pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("4 bytes"))
}

/// The 64-bit number at a byte offset; the caller's buffer is long enough.
pub fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("8 bytes"))
}

/// Bytes of the host's termios2: four flag words, line, 19 characters, two speeds.
pub const HOST_TERMIOS: usize = 44;
