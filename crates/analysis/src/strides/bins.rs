//! The bins of stride histograms.

/// Strides below this have a bin each.
pub const SINGLE: u64 = 128;
/// Strides from this on share a bin.
pub const LARGEST: u64 = 1 << 15;
/// Bins of strides that are not negative: single ones, one up to each power of two, and one for the rest.
pub const BINS: usize = (SINGLE + (LARGEST / SINGLE).ilog2() as u64 + 1) as usize;

/// A division of strides into bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bins {
    /// Whether descending and ascending strides have different bins.
    pub is_signed: bool,
    /// Whether strides are counted in elements, not in bytes.
    pub in_elements: bool,
}

/// The strides of a bin, both ends included; descending ones are negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StrideRange {
    /// The stride nearest to zero.
    pub near: i64,
    /// The stride farthest from zero; None if there is no limit.
    pub far: Option<i64>,
}

impl Bins {
    /// The number of bins.
    pub fn count(self) -> usize {
        if self.is_signed { 2 * BINS } else { BINS }
    }

    /// The unit of strides between references to elements of a size.
    #[inline(always)]
    pub(super) fn element(self, size: u64) -> u32 {
        // No element is larger than 4 GB.
        if self.in_elements { size.min(u32::MAX.into()) as u32 } else { 1 }
    }

    /// The bin of a stride; `element` is the unit of strides.
    #[inline(always)]
    pub fn bin(self, stride: i64, element: u32) -> usize {
        let distance = stride.unsigned_abs();
        let distance = if element > 1 { distance / u64::from(element) } else { distance };
        let bin = if distance < SINGLE {
            distance as usize
        } else {
            SINGLE as usize + (distance.min(LARGEST).ilog2() - SINGLE.ilog2()) as usize
        };
        // Strides within an element have no direction.
        if self.is_signed && stride < 0 && bin > 0 { BINS + bin } else { bin }
    }

    /// The strides in a bin.
    pub fn range(self, bin: usize) -> StrideRange {
        let sign = if bin < BINS { 1 } else { -1 };
        let bin = (bin % BINS) as i64;
        let (near, far) = match bin - SINGLE as i64 {
            ..0 => (bin, Some(bin)),
            power if bin as usize == BINS - 1 => ((SINGLE as i64) << power, None),
            power => ((SINGLE as i64) << power, Some(((SINGLE as i64) << (power + 1)) - 1)),
        };
        StrideRange { near: sign * near, far: far.map(|far| sign * far) }
    }
}

impl std::fmt::Display for StrideRange {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let short = |number: i64| match number {
            _ if number != 0 && number % 1024 == 0 => format!("{}K", number / 1024),
            _ => number.to_string(),
        };
        match self.far {
            Some(far) if far == self.near => f.write_str(&short(self.near)),
            Some(far) => write!(f, "{} to {}", short(self.near), far),
            None if self.near < 0 => write!(f, "{} and below", short(self.near)),
            None => write!(f, "{} and more", short(self.near)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's bins, as it prints them.
    #[test]
    fn bins_are_the_papers() {
        let bins = Bins { is_signed: false, in_elements: false };
        assert_eq!(bins.count(), 128 + 9);
        let intervals = [128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768];
        for (bin, &near) in (128..).zip(&intervals) {
            let far = intervals.get(bin - 127).map(|next| next - 1);
            assert_eq!(bins.range(bin), StrideRange { near, far });
            assert_eq!(bins.bin(near, 1), bin);
            assert_eq!(bins.bin(-far.unwrap_or(i64::MAX), 1), bin);
        }
        assert!((0..128).all(|stride| bins.bin(stride, 1) == stride as usize));
        assert_eq!(bins.range(5), StrideRange { near: 5, far: Some(5) });
    }

    #[test]
    fn every_stride_is_in_the_range_of_its_bin() {
        for (is_signed, in_elements) in [(false, false), (true, false), (false, true), (true, true)] {
            let bins = Bins { is_signed, in_elements };
            for power in 0..64 {
                for stride in [-1, 0, 1].map(|more| (1i64 << power).wrapping_add(more)) {
                    for stride in [stride, stride.wrapping_neg()] {
                        let bin = bins.bin(stride, bins.element(8));
                        assert!(bin < bins.count());
                        let StrideRange { near, far } = bins.range(bin);
                        let unit = if in_elements { 8 } else { 1 };
                        let distance = stride.unsigned_abs() / unit;
                        assert!(near.unsigned_abs() <= distance);
                        assert!(far.is_none_or(|far| distance <= far.unsigned_abs()));
                        assert_eq!(bin >= BINS, is_signed && stride < 0 && distance > 0);
                    }
                }
            }
        }
    }

    #[test]
    fn ranges_are_written_for_people() {
        let bins = Bins { is_signed: true, in_elements: false };
        let written = [8, 130, 136, BINS + 8, BINS + 131, BINS + 136].map(|bin| bins.range(bin).to_string());
        assert_eq!(written, ["8", "512 to 1023", "32K and more", "-8", "-1K to -2047", "-32K and below"]);
    }
}
