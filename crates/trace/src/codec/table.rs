//! Tables of predictions, and what they are indexed by.

/// Spreads a number over 64 bits, the highest of which are the best.
#[inline(always)]
pub(super) fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A table whose size is known when the crate is compiled.
pub(super) type Table<T, const SIZE: usize> = Box<[T; SIZE]>;

pub(super) fn table<T: Copy, const SIZE: usize>(entry: T) -> Table<T, SIZE> {
    let entries: Result<Table<T, SIZE>, _> = vec![entry; SIZE].into_boxed_slice().try_into();
    entries.unwrap_or_else(|_| unreachable!("it has so many entries"))
}

/// Whether an address is one, and not a mystery to which constants were added.
#[inline(always)]
pub(super) fn is_known(address: u64) -> bool {
    address >> 63 == 0
}
