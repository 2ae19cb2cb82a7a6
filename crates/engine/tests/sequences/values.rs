//! Interesting contents of registers and memory.

use fastrand::Rng;

/// Mostly values at the edges of types.
pub fn integer(random: &mut Rng) -> u64 {
    let edge = |random: &mut Rng| (1u64 << random.u32(..64)).wrapping_add_signed(random.i64(-2..=2));
    match random.u32(..8) {
        0 => random.u64(..4),
        1 => edge(random),
        2 => edge(random).wrapping_neg(),
        3 => random.u64(..) >> random.u32(..64),
        4 => random.u32(..) as i32 as u64,
        5 => u64::from_le_bytes(std::array::from_fn(|_| {
            random.choice([0, 1, 0x7f, 0x80, 0xff]).expect("five")
        })),
        _ => random.u64(..),
    }
}

/// Mostly T numbers with ordinary sums and products; some are S numbers, too.
pub fn float(random: &mut Rng) -> u64 {
    match random.u32(..8) {
        0 => integer(random),
        1 => f64::from(random.i32(-1000..1000)).to_bits(),
        2 | 3 => f64::from(f32::from_bits(random.u32(..) & 0xbfff_ffff)).to_bits(),
        4 => random.u64(..4) << 62 | (random.u64(..) & 1) << 51,
        _ => random.u64(..) & !(0x7ff << 52) | random.u64(1023 - 40..1023 + 40) << 52,
    }
}
