//! The form of conversion tables of flag words.

/// The conversion of a flag word: pairs of single bits, the guest's and the host's, and the bits that are the same on
/// both sides. Other bits are dropped.
pub struct FlagBits {
    /// The guest's bit and the host's.
    pub pairs: &'static [(u64, u64)],
    /// Bits that are the same on both sides.
    pub same: u64,
}

impl FlagBits {
    /// Converts the guest's word to the host's.
    pub fn host(&self, guest: u64) -> u64 {
        let set = self.pairs.iter().filter(|(bit, _)| guest & bit != 0);
        set.fold(guest & self.same, |word, (_, bit)| word | bit)
    }

    /// Converts the host's word to the guest's.
    pub fn guest(&self, host: u64) -> u64 {
        let set = self.pairs.iter().filter(|(_, bit)| host & bit != 0);
        set.fold(host & self.same, |word, (bit, _)| word | bit)
    }
}
