//! Lists of eight words, of which one comes to the front.

/// A way to bring a word to the front of eight. All do the same, with more or less of what the host's processor has.
pub trait Front: Copy {
    /// Brings a word to the front, and those before it one back: if it is not among them, the last one falls out. Returns
    /// where it was, or 8. Where it is cannot be guessed, so that nothing depends on a guess.
    fn bring_to_front(self, words: &mut [u64; 8], key: u64) -> usize;
}

/// On every host.
#[derive(Clone, Copy)]
pub struct Any;

impl Front for Any {
    #[inline(always)]
    fn bring_to_front(self, words: &mut [u64; 8], key: u64) -> usize {
        bring_to_front_of_any(words, key).unwrap_or(8)
    }
}

/// Brings a word to the front of a list of any length. None if it was not there.
pub fn bring_to_front_of_any(words: &mut [u64], key: u64) -> Option<usize> {
    let mut held = key;
    words.iter_mut().position(|word| {
        std::mem::swap(word, &mut held);
        held == key
    })
}

#[cfg(target_arch = "x86_64")]
pub use x86_64::Avx2;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::*;

    use super::Front;

    /// On hosts with AVX2; whoever has one knows that the host is one.
    #[derive(Clone, Copy)]
    pub struct Avx2(());

    impl Avx2 {
        pub fn new() -> Option<Avx2> {
            is_x86_feature_detected!("avx2").then_some(Avx2(()))
        }
    }

    impl Front for Avx2 {
        #[inline(always)]
        fn bring_to_front(self, words: &mut [u64; 8], key: u64) -> usize {
            // SAFETY: the host has AVX2, as there is a `self`.
            unsafe { with_avx2(words, key) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn with_avx2(words: &mut [u64; 8], key: u64) -> usize {
        let place = words.as_mut_ptr();
        let key = _mm256_set1_epi64x(key as i64);
        // SAFETY: what is read and written are four of eight words.
        let [low, high] = [0, 4].map(|first| unsafe { _mm256_loadu_si256(place.add(first).cast()) });
        let [of_low, of_high] = [low, high]
            .map(|four| _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(four, key))) as u32);
        let index = (of_low | of_high << 4 | 1 << 8).trailing_zeros() as usize;
        // Not read one word further on: that would wait until what was written is in the cache.
        let [low_moved, high_moved] = [low, high].map(|four| _mm256_permute4x64_epi64::<0b10_01_00_11>(four));
        let high_moved = _mm256_blend_epi32::<0b11>(high_moved, low_moved);
        let low_moved = _mm256_blend_epi32::<0b11>(low_moved, key);
        for (number, (four, moved)) in [(low, low_moved), (high, high_moved)].into_iter().enumerate() {
            // SAFETY: as above; the masks are as many.
            unsafe {
                let moves = _mm256_loadu_si256(UP_TO[index].as_ptr().add(4 * number).cast());
                _mm256_storeu_si256(place.add(4 * number).cast(), _mm256_blendv_epi8(four, moved, moves));
            }
        }
        index
    }

    /// By a place, all bits of the words up to there.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether a way does what is done to a list step by step.
    fn is_as_a_list(front: impl Front, keys: &[u64]) {
        let (mut words, mut list) = ([0; 8], vec![0; 8]);
        for &key in keys {
            let place = list.iter().position(|&one| one == key);
            list.remove(place.unwrap_or(7));
            list.insert(0, key);
            assert_eq!(front.bring_to_front(&mut words, key), place.unwrap_or(8));
            assert_eq!(words[..], list);
        }
    }

    proptest! {
        #[test]
        fn all_ways_do_what_is_done_to_a_list(keys in prop::collection::vec(1..12u64, 1..100), far in any::<bool>()) {
            // Keys that differ in either half only.
            let keys: Vec<u64> = keys.into_iter().map(|key| if far { key << 32 } else { key }).collect();
            #[cfg(target_arch = "x86_64")]
            Avx2::new().into_iter().for_each(|front| is_as_a_list(front, &keys));
            is_as_a_list(Any, &keys);
        }
    }
}
