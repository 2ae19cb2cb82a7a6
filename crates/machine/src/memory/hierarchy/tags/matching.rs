//! Comparing words eight at a time.

/// Which of these words are `wanted`: a bit each.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn matches(words: &[u32; 8], wanted: u32) -> u32 {
    use std::arch::x86_64::{
        _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_movemask_ps, _mm_set_epi32, _mm_set1_epi32,
    };
    let [a, b, c, d, e, f, g, h] = words.map(|word| word as i32);
    // SAFETY: SSE2 is all that is needed, and every x86-64 processor has it.
    unsafe {
        let wanted = _mm_set1_epi32(wanted as i32);
        let equal = |four| _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(four, wanted)));
        (equal(_mm_set_epi32(d, c, b, a)) | equal(_mm_set_epi32(h, g, f, e)) << 4) as u32
    }
}

/// Which of these words are `wanted`: a bit each.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn matches(words: &[u32; 8], wanted: u32) -> u32 {
    (0..8).fold(0, |all, bit| all | u32::from(words[bit] == wanted) << bit)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_bit_each() {
        let words = [7, 1, 7, 3, u32::MAX, 5, 0, 7];
        assert_eq!(super::matches(&words, 7), 0b1000_0101);
        assert_eq!(super::matches(&words, u32::MAX), 0b1_0000);
        assert_eq!(super::matches(&words, 2), 0);
    }
}
