//! A list of eight words, of which one comes to the front.

/// Brings a word to the front, and those before it one back: if it is not among them, the last one falls out. Returns
/// where it was, or 8. Where it is cannot be guessed, so that nothing depends on a guess.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn bring_to_front(words: &mut [u64; 8], key: u64) -> usize {
    use std::arch::x86_64::*;
    let place = words.as_mut_ptr().cast::<__m128i>();
    // SAFETY: SSE2 is all that is needed, and every x86-64 processor has it; pairs of words are read and written, the
    // four of the list and of the masks.
    unsafe {
        let key = _mm_set1_epi64x(key as i64);
        let pairs = [0, 1, 2, 3].map(|pair| _mm_loadu_si128(place.add(pair)));
        let equal = pairs.map(|pair| {
            let halves = _mm_cmpeq_epi32(pair, key);
            _mm_and_si128(halves, _mm_shuffle_epi32::<0b10_11_00_01>(halves))
        });
        let [low, high] = [(equal[0], equal[1]), (equal[2], equal[3])].map(|(a, b)| _mm_packs_epi32(a, b));
        // A byte of 0 or 255 for each two bytes of each word.
        let bytes = _mm_packs_epi16(low, high);
        let found = _mm_movemask_epi8(bytes) as u32 | 1 << 16;
        let index = found.trailing_zeros() as usize / 2;
        let before = [key, pairs[0], pairs[1], pairs[2]];
        let moves = UP_TO[index].as_ptr().cast::<__m128i>();
        for (number, (pair, before)) in pairs.into_iter().zip(before).enumerate() {
            let moved = _mm_unpacklo_epi64(_mm_unpackhi_epi64(before, before), pair);
            let differences = _mm_and_si128(_mm_xor_si128(pair, moved), _mm_loadu_si128(moves.add(number)));
            _mm_storeu_si128(place.add(number), _mm_xor_si128(pair, differences));
        }
        index
    }
}

/// By a place, all bits of the words up to there.
#[cfg(target_arch = "x86_64")]
static UP_TO: [[u64; 8]; 9] = {
    let mut masks = [[0; 8]; 9];
    let mut place = 0;
    while place < 9 {
        let mut word = 0;
        while word < 8 && word <= place {
            masks[place][word] = u64::MAX;
            word += 1;
        }
        place += 1;
    }
    masks
};

/// Brings a word to the front, and those before it one back: if it is not among them, the last one falls out. Returns
/// where it was, or 8.
#[cfg(not(target_arch = "x86_64"))]
pub fn bring_to_front(words: &mut [u64; 8], key: u64) -> usize {
    bring_to_front_of_any(words, key).unwrap_or(8)
}

/// The same in a list of any length. None if it was not there.
pub fn bring_to_front_of_any(words: &mut [u64], key: u64) -> Option<usize> {
    let mut held = key;
    words.iter_mut().position(|word| {
        std::mem::swap(word, &mut held);
        held == key
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn eight_are_as_any(keys in prop::collection::vec(0..12u64, 1..100), far in any::<bool>()) {
            let (mut eight, mut any) = ([0; 8], vec![0; 8]);
            // Keys that differ in either half only.
            let key = |key: u64| 1 + if far { key << 32 } else { key };
            for key in keys.into_iter().map(key) {
                let place = bring_to_front(&mut eight, key);
                prop_assert_eq!(place, bring_to_front_of_any(&mut any, key).unwrap_or(8));
                prop_assert_eq!(eight.as_slice(), any.as_slice());
            }
        }
    }
}
