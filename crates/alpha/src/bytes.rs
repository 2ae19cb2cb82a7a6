//! Byte manipulation shared by EXTxx, INSxx, MSKxx, ZAPx, CMPBGE and the motion-video instructions (Alpha
//! Architecture Reference Manual, sections 4.6 and 4.13).

/// The 64-bit mask with 0xff in each byte whose bit is set in `bits`.
const fn spread(bits: u8) -> u64 {
    let mut mask = 0;
    let mut byte = 0;
    while byte < 8 {
        if bits >> byte & 1 != 0 {
            mask |= 0xff << (8 * byte);
        }
        byte += 1;
    }
    mask
}

const SPREAD: [u64; 256] = {
    let mut table = [0; 256];
    let mut bits = 0;
    while bits < 256 {
        table[bits] = spread(bits as u8);
        bits += 1;
    }
    table
};

/// Keeps the bytes of `value` whose bit is set in `bits` (the low eight), zeroes the others.
#[inline(always)]
pub fn keep(value: u64, bits: u64) -> u64 {
    value & SPREAD[bits as usize & 0xff]
}

/// The byte mask of an operand of 1, 2, 4 or 8 bytes (`size`) at byte `at & 7`: the part in this quadword in bits 0
/// to 7, the part in the next one in bits 8 to 15.
#[inline(always)]
fn covered(size: u32, at: u64) -> u64 {
    ((1u64 << size) - 1) << (at & 7)
}

/// EXTBL, EXTWL, EXTLL, EXTQL.
#[inline(always)]
pub fn extract_low(value: u64, at: u64, size: u32) -> u64 {
    keep(value >> (8 * (at & 7)), (1 << size) - 1)
}

/// EXTWH, EXTLH, EXTQH.
#[inline(always)]
pub fn extract_high(value: u64, at: u64, size: u32) -> u64 {
    keep(value << ((8 * (8 - (at & 7))) & 63), (1 << size) - 1)
}

/// INSBL, INSWL, INSLL, INSQL.
#[inline(always)]
pub fn insert_low(value: u64, at: u64, size: u32) -> u64 {
    keep(value << (8 * (at & 7)), covered(size, at))
}

/// INSWH, INSLH, INSQH.
#[inline(always)]
pub fn insert_high(value: u64, at: u64, size: u32) -> u64 {
    keep(value >> ((8 * (8 - (at & 7))) & 63), covered(size, at) >> 8)
}

/// MSKBL, MSKWL, MSKLL, MSKQL.
#[inline(always)]
pub fn mask_low(value: u64, at: u64, size: u32) -> u64 {
    keep(value, !covered(size, at))
}

/// MSKWH, MSKLH, MSKQH.
#[inline(always)]
pub fn mask_high(value: u64, at: u64, size: u32) -> u64 {
    keep(value, !(covered(size, at) >> 8))
}

/// CMPBGE: bit i is set if byte i of `a` is greater than or equal to byte i of `b`, unsigned.
#[inline(always)]
pub fn compare_bytes(a: u64, b: u64) -> u64 {
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    pairs.enumerate().map(|(i, (a, b))| u64::from(a >= b) << i).sum()
}

/// MINxB8, MAXxB8: `choose` byte by byte.
pub fn bytewise(a: u64, b: u64, choose: fn(u8, u8) -> u8) -> u64 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    u64::from_le_bytes(std::array::from_fn(|i| choose(a[i], b[i])))
}

/// MINxW4, MAXxW4: `choose` word by word.
pub fn wordwise(a: u64, b: u64, choose: fn(u16, u16) -> u16) -> u64 {
    (0..4).map(|i| u64::from(choose((a >> (16 * i)) as u16, (b >> (16 * i)) as u16)) << (16 * i)).sum()
}

/// PERR: the sum of the absolute differences of the bytes.
pub fn pixel_error(a: u64, b: u64) -> u64 {
    a.to_le_bytes().into_iter().zip(b.to_le_bytes()).map(|(a, b)| u64::from(a.abs_diff(b))).sum()
}

/// Gathers byte `stride * i` of `value` for i in 0..count (PKLB, PKWB).
pub fn pack(value: u64, stride: u32, count: u32) -> u64 {
    (0..count).map(|i| (value >> (8 * stride * i) & 0xff) << (8 * i)).sum()
}

/// Scatters the first `count` bytes of `value`, `stride` bytes apart (UNPKBL, UNPKBW).
pub fn unpack(value: u64, stride: u32, count: u32) -> u64 {
    (0..count).map(|i| (value >> (8 * i) & 0xff) << (8 * stride * i)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The manual's unaligned-load sequence: ldq_u of the first and of the last byte, extract
        /// low, extract high, bis.
        #[test]
        fn extracts_join_to_an_unaligned_load(bytes: [u8; 16], at in 0usize..8, log in 1u32..4) {
            let size = 1usize << log;
            let quadword = |at: usize| u64::from_le_bytes(bytes[at & !7..][..8].try_into().unwrap());
            let mut expected = [0; 8];
            expected[..size].copy_from_slice(&bytes[at..at + size]);
            let low = extract_low(quadword(at), at as u64, size as u32);
            let high = extract_high(quadword(at + size - 1), at as u64, size as u32);
            prop_assert_eq!(low | high, u64::from_le_bytes(expected));
        }

        /// The manual's unaligned-store sequence: insert and mask both halves.
        #[test]
        fn inserts_and_masks_make_an_unaligned_store(bytes: [u8; 16], value: u64, at in 0usize..8, log in 0u32..4) {
            let size = 1u32 << log;
            let low = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            let high = u64::from_le_bytes(bytes[8..].try_into().unwrap());
            let mut expected = bytes;
            expected[at..at + size as usize].copy_from_slice(&value.to_le_bytes()[..size as usize]);
            let low = mask_low(low, at as u64, size) | insert_low(value, at as u64, size);
            let high = mask_high(high, at as u64, size) | insert_high(value, at as u64, size);
            prop_assert_eq!([low.to_le_bytes(), high.to_le_bytes()].concat(), expected.to_vec());
        }

        #[test]
        fn packs_undo_unpacks(value: u32) {
            prop_assert_eq!(pack(unpack(u64::from(value), 2, 4), 2, 4), u64::from(value));
            prop_assert_eq!(pack(unpack(u64::from(value), 4, 2), 4, 2), u64::from(value & 0xffff));
        }
    }
}
