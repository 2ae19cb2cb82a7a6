//! Ranges and the like as they are written on the command line.

use std::ops::RangeInclusive;

/// `0xA-0xB`, or one address.
pub fn addresses(text: &str) -> Result<RangeInclusive<u64>, String> {
    range(text, "addresses are written as 0x120001000-0x120001fff", |text| {
        u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
    })
}

/// `N-M`, or one number.
pub fn numbers(text: &str) -> Result<RangeInclusive<u64>, String> {
    range(text, "write 3, or 3-5 for several", |text| text.replace(',', "").parse().ok())
}

/// `P.T`: a process and one of its threads.
pub fn thread(text: &str) -> Result<(u32, Option<u32>), String> {
    let parsed = text.split_once('.').and_then(|(process, thread)| {
        Some((process.parse().ok()?, Some(thread.parse().ok()?)))
    });
    parsed.ok_or_else(|| "a thread is written as process.thread, such as 0.1".into())
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
    fn what_is_wrong_is_told() {
        for text in ["", "10-20", "0x10-", "-0x10", "0x10-0x20-0x30", "0x1ffffffffffffffff"] {
            assert!(addresses(text).unwrap_err().starts_with("addresses are written"), "{text}");
        }
        assert!(addresses("0x20-0x10").unwrap_err().contains("greater"));
        assert!(numbers("three").is_err() && thread("1").is_err() && thread("1.x").is_err());
    }
}
