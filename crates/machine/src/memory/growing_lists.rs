//! Lists of numbers, such as those by site, that grow when they must: the numbers after the last are 0.

/// The number at an index.
#[inline]
pub fn at(numbers: &[u64], index: usize) -> u64 {
    numbers.get(index).copied().unwrap_or(0)
}

/// Adds numbers one by one.
pub fn add_to(sums: &mut Vec<u64>, numbers: &[u64]) {
    sums.resize(sums.len().max(numbers.len()), 0);
    sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
}
