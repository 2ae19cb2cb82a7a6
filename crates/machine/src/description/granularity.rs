//! Memory that the operating system maps with granularity hints: several pages by one TLB entry.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::Deserialize;

/// Where a guest's memory begins that `mmap` places: the program with its heap and stack lies below, libraries and mappings
/// above.
const MAPPINGS: u64 = 0x40_0000_0000;
/// Where memory begins that programs ask for in large pages (`MAP_HUGETLB`).
const LARGE: u64 = 0x300_0000_0000;
/// The end of a guest's addresses.
const END: u64 = 1 << 42;
/// Ranges with names.
const AREAS: [(&str, Range<u64>); 4] =
    [("program", 0..MAPPINGS), ("mappings", MAPPINGS..END), ("large", LARGE..END), ("all", 0..END)];

/// Regions of memory that are mapped with granularity hints, as `mappings`, `0x4000000000-0x407fffffff:64` or several with `+`
/// between them. They do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct HintedRegions(Vec<HintedRegion>);

/// Memory that is mapped in blocks: at each address by the largest aligned block of pages that lies in the region and that the TLB
/// has entries for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintedRegion {
    /// Its addresses.
    pub addresses: Range<u64>,
    /// The pages of the largest blocks.
    pub most_pages: u32,
    /// As it was given.
    text: String,
}

impl HintedRegions {
    /// The regions.
    pub fn iter(&self) -> impl Iterator<Item = &HintedRegion> {
        self.0.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for HintedRegions {
    type Err = String;

    fn from_str(text: &str) -> Result<HintedRegions, String> {
        let regions = text.split('+').map(|part| region(part.trim())).collect::<Result<Vec<_>, _>>()?;
        for (index, region) in regions.iter().enumerate() {
            let overlaps = |other: &&HintedRegion| {
                other.addresses.start < region.addresses.end && region.addresses.start < other.addresses.end
            };
            if let Some(other) = regions[..index].iter().find(overlaps) {
                return Err(format!("the regions {} and {} overlap", other.text, region.text));
            }
        }
        Ok(HintedRegions(regions))
    }
}

impl TryFrom<String> for HintedRegions {
    type Error = String;

    fn try_from(text: String) -> Result<HintedRegions, String> {
        text.parse()
    }
}

impl fmt::Display for HintedRegions {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let texts: Vec<&str> = self.iter().map(|region| region.text.as_str()).collect();
        f.write_str(&texts.join("+"))
    }
}

fn region(text: &str) -> Result<HintedRegion, String> {
    let (area, pages) = text.split_once(':').map_or((text, None), |(area, pages)| (area, Some(pages)));
    let addresses = match AREAS.iter().find(|(name, _)| *name == area) {
        Some((_, addresses)) => addresses.clone(),
        None => range(area).ok_or_else(|| {
            format!("{area:?} is no region: give program, mappings, large, all, or addresses as 0x4000000000-0x407fffffff")
        })?,
    };
    let most_pages = match pages {
        None => u32::MAX,
        Some(pages) => pages
            .parse()
            .ok()
            .filter(|pages: &u32| pages.is_power_of_two() && *pages > 1)
            .ok_or_else(|| format!("{pages:?} is no number of pages of a block: give 8, 64 or 512"))?,
    };
    Ok(HintedRegion { addresses, most_pages, text: text.into() })
}

/// `0xA-0xB`, both included.
fn range(text: &str) -> Option<Range<u64>> {
    let (first, last) = text.split_once('-')?;
    let address = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let (first, last) = (address(first)?, address(last)?);
    (first <= last && last < END).then(|| first..last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_read_and_written() {
        let text = "0x4000000000-0x407fffffff:64+program";
        let regions: HintedRegions = text.parse().unwrap();
        let ranges: Vec<_> =
            regions.iter().map(|region| (region.addresses.clone(), region.most_pages)).collect();
        assert_eq!(ranges, [(0x40_0000_0000..0x40_8000_0000, 64), (0..0x40_0000_0000, u32::MAX)]);
        assert_eq!(regions.to_string(), text);
    }

    #[test]
    fn what_is_no_region_is_refused() {
        for (text, reason) in [
            ("", "is no region"),
            ("heap", "is no region"),
            ("0x2000-0x1000", "is no region"),
            ("0x0-0x40000000000", "is no region"),
            ("mappings:3", "8, 64 or 512"),
            ("mappings:1", "8, 64 or 512"),
            ("mappings:", "8, 64 or 512"),
            ("all+program", "the regions all and program overlap"),
            ("0x1000-0x2000+0x2000-0x3000", "overlap"),
        ] {
            let error = text.parse::<HintedRegions>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
