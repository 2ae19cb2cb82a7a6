//! Parsers of ranges and sizes on the command line.

use std::ops::RangeInclusive;
use std::time::Duration;

use engine::{NoLocation, ProgramLocation};

/// `0xA-0xB`, or one address.
pub fn addresses(text: &str) -> Result<RangeInclusive<u64>, String> {
    range(text, "addresses are written as 0x120001000-0x120001fff", |text| {
        u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
    })
}

/// `N-M`, or one number, from 1.
pub fn ordinals(text: &str) -> Result<RangeInclusive<u64>, String> {
    match numbers(text)? {
        range if *range.start() == 0 => Err("they are numbered from 1".into()),
        range => Ok(range),
    }
}

/// `N-M`, or one number.
pub fn numbers(text: &str) -> Result<RangeInclusive<u64>, String> {
    range(text, "write 3, or 3-5 for several", |text| text.replace(',', "").parse().ok())
}

/// `P.T`: a process and one of its threads.
pub fn thread(text: &str) -> Result<(u32, Option<u32>), String> {
    let parsed = text
        .split_once('.')
        .and_then(|(process, thread)| Some((process.parse().ok()?, Some(thread.parse().ok()?))));
    parsed.ok_or_else(|| "a thread is written as process.thread, such as 0.1".into())
}

/// A place at which recording ends. No instructions would be nothing to record.
pub fn until(text: &str) -> Result<ProgramLocation, String> {
    let place: ProgramLocation = text.parse().map_err(|error: NoLocation| error.to_string())?;
    match place.instructions() {
        Some(0) => Err("this records nothing: give 1 or more instructions, or a place".into()),
        _ => Ok(place),
    }
}

/// A power of two from 8 to 4096.
pub fn line_size(text: &str) -> Result<u64, String> {
    size(text, 8, 4096).ok_or_else(|| "a line has 8, 16, 32 bytes and so on, up to 4096".into())
}

/// A power of two from 16 bytes to 64 KB: the lines of a cache, or the pages of a TLB.
pub fn curve_line_size(text: &str) -> Result<u64, String> {
    size(text, 16, 64 << 10).ok_or_else(|| "a line has 16, 32, 64 bytes and so on, a page up to 64K".into())
}

/// A power of two from 4096.
pub fn page_size(text: &str) -> Result<u64, String> {
    size(text, 4096, 1 << 40).ok_or_else(|| "a page has 4K, 8K, 16K and so on, also with M and G".into())
}

/// A power of two from 1 KB to 1 GB.
pub fn cache_size(text: &str) -> Result<u64, String> {
    size(text, 1 << 10, 1 << 30).ok_or_else(|| "a cache has 1K, 2K, 4K and so on, up to 1G".into())
}

/// A time in seconds: 10 or 0.5.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "a time is a number of seconds, such as 10 or 0.5".into())
}

/// A power of two from 64 MB to 2 GB: what the guest of `system` can have.
pub fn memory_size(text: &str) -> Result<u64, String> {
    size(text, 64 << 20, 2 << 30).ok_or_else(|| "the guest's memory is 64M, 128M and so on, up to 2G".into())
}

/// The size of the guest's disk.
pub fn disk_size(text: &str) -> Result<u64, String> {
    // A smaller one has no journal.
    size(text, 16 << 20, 1 << 40).ok_or_else(|| "a disk has 16M, 32M and so on, up to 1024G".into())
}

/// A share in percent: 1, 0.5 or 1%.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let percent = number.filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| "a share is 0 to 100 percent, such as 0.5".into())
}

fn size(text: &str, least: u64, most: u64) -> Option<u64> {
    const UNITS: [(char, u32); 3] = [('K', 10), ('M', 20), ('G', 30)];
    let unit = UNITS.iter().find(|(letter, _)| text.ends_with(*letter));
    let digits = text.strip_suffix(|last| unit.is_some_and(|(letter, _)| *letter == last)).unwrap_or(text);
    let size = digits.parse::<u64>().ok()?.checked_mul(1 << unit.map_or(0, |(_, shift)| *shift))?;
    (size.is_power_of_two() && (least..=most).contains(&size)).then_some(size)
}

fn range(
    text: &str,
    advice: &str,
    parse: impl Fn(&str) -> Option<u64>,
) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (parse(first), parse(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        (Some(_), Some(_)) => Err("the first is greater than the last".into()),
        _ => Err(advice.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!(addresses("0x10-0xff"), Ok(0x10..=0xff));
        assert_eq!(addresses("0x10"), Ok(0x10..=0x10));
        assert_eq!(numbers("3-5"), Ok(3..=5));
        assert_eq!(numbers("1,000,000"), Ok(1_000_000..=1_000_000));
        assert_eq!(thread("0.12"), Ok((0, Some(12))));
    }

    #[test]
    fn sizes_are_powers_of_two() {
        assert_eq!(["8K", "8192", "4M", "1G"].map(page_size), [8192, 8192, 4 << 20, 1 << 30].map(Ok));
        assert!(
            ["", "K", "0", "1000", "2K", "9K", "8k", "99999999999G"]
                .map(page_size)
                .iter()
                .all(Result::is_err)
        );
        assert_eq!(line_size("64"), Ok(64));
        assert!(["4", "48", "8K", "-8"].map(line_size).iter().all(Result::is_err));
    }

    #[test]
    fn invalid_ranges_are_rejected() {
        for text in ["", "10-20", "0x10-", "-0x10", "0x10-0x20-0x30", "0x1ffffffffffffffff"] {
            assert!(addresses(text).unwrap_err().starts_with("addresses are written"), "{text}");
        }
        assert!(addresses("0x20-0x10").unwrap_err().contains("greater"));
        assert!(numbers("three").is_err() && thread("1").is_err() && thread("1.x").is_err());
    }
}
