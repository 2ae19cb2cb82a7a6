//! Short lists of words, of which one comes to the front.

/// A way to bring a word to the front of a list. All do the same, with more or less of what the host's processor has.
pub trait Front<const LENGTH: usize>: Copy {
    /// Brings a word to the front, and those before it one back: if it is not among them, the last one falls out. Returns
    /// where it was, or the length.
    fn bring_to_front(self, words: &mut [u32; LENGTH], key: u32) -> usize;
}

/// On every host.
#[derive(Clone, Copy)]
pub struct Any;

impl<const LENGTH: usize> Front<LENGTH> for Any {
    #[inline(always)]
    fn bring_to_front(self, words: &mut [u32; LENGTH], key: u32) -> usize {
        let mut held = key;
        let place = words.iter_mut().position(|word| {
            std::mem::swap(word, &mut held);
            held == key
        });
        place.unwrap_or(LENGTH)
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86_64::Avx2;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::*;

    use super::Front;

    /// On hosts with AVX2; whoever has one knows that the host is one. Where the word is cannot be guessed, so that nothing
    /// depends on a guess.
    #[derive(Clone, Copy)]
    pub struct Avx2(());

    impl Avx2 {
        pub fn new() -> Option<Avx2> {
            is_x86_feature_detected!("avx2").then_some(Avx2(()))
        }
    }

    impl Front<8> for Avx2 {
        #[inline(always)]
        fn bring_to_front(self, words: &mut [u32; 8], key: u32) -> usize {
            // SAFETY: the host has AVX2, as there is a `self`.
            unsafe { with_avx2(words, key) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn with_avx2(words: &mut [u32; 8], key: u32) -> usize {
        let place = words.as_mut_ptr().cast();
        let key = _mm256_set1_epi32(key as i32);
        // SAFETY: the eight words are read.
        let list = unsafe { _mm256_loadu_si256(place) };
        let equal = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(list, key))) as u32;
        let index = (equal | 1 << 8).trailing_zeros() as usize;
        let moved = _mm256_permutevar8x32_epi32(list, _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6));
        let moved = _mm256_blend_epi32::<1>(moved, key);
        // SAFETY: the eight words of a mask are read, and those of the list written.
        unsafe {
            let moves = _mm256_loadu_si256(UP_TO[index].as_ptr().cast());
            _mm256_storeu_si256(place, _mm256_blendv_epi8(list, moved, moves));
        }
        index
    }

    /// By a place, all bits of the words up to there.
    static UP_TO: [[u32; 8]; 9] = {
        let mut masks = [[0; 8]; 9];
        let mut place = 0;
        while place < 9 {
            let mut word = 0;
            while word < 8 && word <= place {
                masks[place][word] = u32::MAX;
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
    fn is_as_a_list(front: impl Front<8>, keys: &[u32]) {
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
        fn all_ways_do_what_is_done_to_a_list(keys in prop::collection::vec(1..12u32, 1..100)) {
            #[cfg(target_arch = "x86_64")]
            Avx2::new().into_iter().for_each(|front| is_as_a_list(front, &keys));
            is_as_a_list(Any, &keys);
        }
    }
}
