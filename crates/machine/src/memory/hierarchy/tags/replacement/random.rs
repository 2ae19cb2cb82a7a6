//! Pseudo-random replacement, with the same sequence in each run.

use super::policy::ReplacementPolicy;

/// The state of the generator.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }

    /// The next of a pseudo-random sequence (Marsaglia's xorshift).
    fn draw(&mut self) -> u32 {
        let state = &mut self.0;
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 32) as u32
    }
}

impl ReplacementPolicy for Random {
    #[inline]
    fn choose_victim(&mut self, _set: usize, ways: usize) -> usize {
        (self.draw() % ways as u32) as usize
    }
}
