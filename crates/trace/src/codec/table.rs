//! Tables of predictions, and their hash function.

/// Multiplicative hash. The highest bits are distributed best.
#[inline(always)]
pub(super) fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A table whose size is a compile-time constant.
pub(super) type CodecTable<T, const SIZE: usize> = Box<[T; SIZE]>;

pub(super) fn table<T: Copy, const SIZE: usize>(entry: T) -> CodecTable<T, SIZE> {
    let entries: Result<CodecTable<T, SIZE>, _> = vec![entry; SIZE].into_boxed_slice().try_into();
    entries.unwrap_or_else(|_| unreachable!("it has so many entries"))
}

/// Whether an address was derived from known values only. Unknown values have the highest bit set.
#[inline(always)]
pub(super) fn is_determined(address: u64) -> bool {
    address >> 63 == 0
}
