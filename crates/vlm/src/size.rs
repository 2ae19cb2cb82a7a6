//! Sizes of memory as people write them: `64 MiB`, `8G`, `2M`. All units are powers of 1,024.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Size(pub u64);

const UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl Size {
    /// `count` mebibytes.
    pub const fn mib(count: u64) -> Size {
        Size(count << 20)
    }

    /// `count` gibibytes.
    pub const fn gib(count: u64) -> Size {
        Size(count << 30)
    }

    /// The bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Size {
    /// The largest unit in which the size is a whole number: exact, and read again as the same size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, bytes) = *UNITS
            .iter()
            .find(|(_, bytes)| self.0 >= *bytes && self.0.is_multiple_of(*bytes))
            .unwrap_or(&("B", 1));
        f.pad(&format!("{} {unit}", self.0 / bytes))
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let wrong = || format!("`{text}` is no size: write a number and a unit, as in `64 MiB` or `8G`");
        let text_of_number = text.trim();
        let end = text_of_number.find(|c: char| !c.is_ascii_digit()).unwrap_or(text_of_number.len());
        let number: u64 = text_of_number[..end].parse().map_err(|_| wrong())?;
        let unit = text_of_number[end..].trim().to_ascii_lowercase();
        let bytes = UNITS
            .iter()
            .find(|(name, _)| {
                let name = name.to_ascii_lowercase();
                unit == name || (name.len() == 3 && (unit == name[..1] || unit == format!("{}b", &name[..1])))
            })
            .map(|(_, bytes)| *bytes)
            .ok_or_else(wrong)?;
        number.checked_mul(bytes).map(Size).ok_or_else(wrong)
    }
}

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Size, String> {
        text.parse()
    }
}

impl From<Size> for String {
    fn from(size: Size) -> String {
        size.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for size in [1, 1023, 1024, 1 << 20, 3 << 20, (1 << 30) + 1, 8 << 30, 1 << 40] {
            assert_eq!(Size(size).to_string().parse(), Ok(Size(size)));
        }
        for (text, size) in [("64M", 64 << 20), ("8 gib", 8 << 30), ("2mb", 2 << 20), (" 5 B ", 5)] {
            assert_eq!(text.parse(), Ok(Size(size)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "8", "G", "-1G", "1.5G", "8X", "99999999999T", "8 Gi B"] {
            assert!(text.parse::<Size>().unwrap_err().contains("64 MiB"), "{text}");
        }
    }
}
