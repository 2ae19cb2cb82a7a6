//! Move-to-front on short lists of words.

/// An implementation of move-to-front, portable or with instructions of particular hosts. All have the same result.
pub trait MoveToFront<const LENGTH: usize>: Copy {
    /// Moves a word to the front of the list. If the list does not have it, it is inserted there, and the last
    /// word is dropped. Returns the word's old position, or the length.
    fn move_to_front(self, words: &mut [u32; LENGTH], key: u32) -> usize;
}

/// For every host.
#[derive(Clone, Copy)]
pub struct Portable;

impl<const LENGTH: usize> MoveToFront<LENGTH> for Portable {
    #[inline(always)]
    fn move_to_front(self, words: &mut [u32; LENGTH], key: u32) -> usize {
        let mut held = key;
        let position = words.iter_mut().position(|word| {
            std::mem::swap(word, &mut held);
            held == key
        });
        position.unwrap_or(LENGTH)
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86_64::Avx2;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::*;

    use super::MoveToFront;

    /// For hosts with AVX2: a value exists only there. Branch-free, as the position is unpredictable.
    #[derive(Clone, Copy)]
    pub struct Avx2(());

    impl Avx2 {
        pub fn new() -> Option<Avx2> {
            is_x86_feature_detected!("avx2").then_some(Avx2(()))
        }
    }

    impl MoveToFront<8> for Avx2 {
        #[inline(always)]
        fn move_to_front(self, words: &mut [u32; 8], key: u32) -> usize {
            // SAFETY: the host has AVX2, or there would be no `self`.
            unsafe { with_avx2(words, key) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn with_avx2(words: &mut [u32; 8], key: u32) -> usize {
        let pointer = words.as_mut_ptr().cast();
        let key = _mm256_set1_epi32(key as i32);
        // SAFETY: the eight words are read.
        let list = unsafe { _mm256_loadu_si256(pointer) };
        let equal = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(list, key))) as u32;
        let index = (equal | 1 << 8).trailing_zeros() as usize;
        let moved = _mm256_permutevar8x32_epi32(list, _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6));
        let moved = _mm256_blend_epi32::<1>(moved, key);
        // SAFETY: the eight words of a mask are read, and those of the list written.
        unsafe {
            let moves = _mm256_loadu_si256(UP_TO[index].as_ptr().cast());
            _mm256_storeu_si256(pointer, _mm256_blendv_epi8(list, moved, moves));
        }
        index
    }

    /// By position, a mask of the words up to it.
    static UP_TO: [[u32; 8]; 9] = {
        let mut masks = [[0; 8]; 9];
        let mut index = 0;
        while index < 9 {
            let mut word = 0;
            while word < 8 && word <= index {
                masks[index][word] = u32::MAX;
                word += 1;
            }
            index += 1;
        }
        masks
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares an implementation with the operations on a vector.
    fn check(front: impl MoveToFront<8>, keys: &[u32]) {
        let (mut words, mut list) = ([0; 8], vec![0; 8]);
        for &key in keys {
            let position = list.iter().position(|&one| one == key);
            list.remove(position.unwrap_or(7));
            list.insert(0, key);
            assert_eq!(front.move_to_front(&mut words, key), position.unwrap_or(8));
            assert_eq!(words[..], list);
        }
    }

    proptest! {
        #[test]
        fn all_implementations_do_as_a_vector(keys in prop::collection::vec(1..12u32, 1..100)) {
            #[cfg(target_arch = "x86_64")]
            Avx2::new().into_iter().for_each(|front| check(front, &keys));
            check(Portable, &keys);
        }
    }
}
