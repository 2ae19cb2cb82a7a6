//! The TLB entry that maps an address: that of its page, or of a block of pages (Alpha's granularity hints).

use std::ops::Range;

use crate::description::{HintedRegions, TranslationBuffer};

/// Bits of a virtual address on the 21064 and 21164; the ASID stands above them.
pub const ADDRESS_BITS: u32 = 43;

/// Maps addresses to the keys of TLB entries: the number of the page, or of the first page of its block. Pages and blocks
/// partition memory, so that no two entries map the same page.
#[derive(Clone, Debug)]
pub struct PageMap {
    shift: u32,
    regions: Box<[BlockRegion]>,
}

/// A region that is mapped in blocks.
#[derive(Clone, Debug)]
struct BlockRegion {
    /// The pages that lie wholly in it.
    pages: Range<u64>,
    /// Logarithms of the sizes of blocks in pages, the largest first.
    shifts: Box<[u32]>,
}

/// A page, or a block of 2^`shift` pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HintedBlock {
    first: u64,
    shift: u32,
}

/// Shift from any address to page 0.
const ALL: u32 = 63;

impl PageMap {
    /// For a TLB and the memory that is mapped with hints.
    pub fn new(buffer: &TranslationBuffer, hinted: &HintedRegions) -> PageMap {
        PageMap::with_blocks(buffer.page.ilog2(), &buffer.granularity_hints, hinted)
    }

    /// For pages of 2^`shift` bytes and blocks of these numbers of pages.
    pub fn with_blocks(shift: u32, sizes: &[u32], hinted: &HintedRegions) -> PageMap {
        let regions = hinted.iter().filter_map(|region| {
            let sizes = sizes.iter().rev().filter(|&&size| size <= region.most_pages);
            let shifts: Box<[u32]> = sizes.map(|size| size.ilog2()).collect();
            let page = 1 << shift;
            let pages = region.addresses.start.div_ceil(page)..region.addresses.end / page;
            (!shifts.is_empty() && !pages.is_empty()).then_some(BlockRegion { pages, shifts })
        });
        PageMap { shift, regions: regions.collect() }
    }

    /// One page for all addresses, where nothing is translated.
    pub fn untranslated() -> PageMap {
        PageMap { shift: ALL, regions: Box::default() }
    }

    /// Shift from an address to the number of its page.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// The key of the entry that maps an address.
    #[inline(always)]
    pub fn key(&self, tagged_address: u64) -> u64 {
        self.key_of_page(tagged_address >> self.shift)
    }

    /// The key of the entry that maps a page.
    #[inline(always)]
    pub fn key_of_page(&self, page: u64) -> u64 {
        if self.regions.is_empty() { page } else { self.block(page).first }
    }

    /// The logarithm of the number of pages that the entry with a key maps.
    pub fn pages_shift(&self, key: u64) -> u32 {
        self.block(key).shift
    }

    #[inline(never)]
    fn block(&self, page: u64) -> HintedBlock {
        let alone = HintedBlock { first: page, shift: 0 };
        // Hints are those of addresses, in each process.
        let in_process = page & ((1 << ADDRESS_BITS) - 1) >> self.shift;
        let Some(region) = self.regions.iter().find(|region| region.pages.contains(&in_process)) else {
            return alone;
        };
        let fits = |shift: &&u32| {
            let first = in_process >> *shift << *shift;
            first >= region.pages.start && first + (1 << *shift) <= region.pages.end
        };
        let shift = region.shifts.iter().find(fits);
        shift.map_or(alone, |&shift| HintedBlock { first: page >> shift << shift, shift })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_divided_into_the_largest_aligned_blocks() {
        // Pages 7 to 81 of 8 KiB; the last bytes of page 82 are missing.
        let hinted: HintedRegions = "0xe000-0xa5ffe".parse().unwrap();
        let map = PageMap::with_blocks(13, &[8, 64, 512], &hinted);
        let blocks: Vec<_> = (0..90).map(|page| (map.key_of_page(page), map.pages_shift(page))).collect();
        for (page, block) in (0..).zip(blocks) {
            let expected = match page {
                8..80 => (page / 8 * 8, 3),
                _ => (page, 0),
            };
            assert_eq!(block, expected, "page {page}");
        }
        let hinted: HintedRegions = "0x0-0xfffff".parse().unwrap();
        let map = PageMap::with_blocks(13, &[8, 64, 512], &hinted);
        assert_eq!([63, 64, 127, 128].map(|page| map.key_of_page(page)), [0, 64, 64, 128]);
        // The same address of another process has another key.
        let asid = 1 << (ADDRESS_BITS - 13);
        assert_eq!((map.key_of_page(70 | asid), map.pages_shift(70 | asid)), (64 | asid, 6));
    }
}
