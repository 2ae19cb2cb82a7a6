//! A summary of a program's environment, on which its counts depend.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Serialize};

/// The variables of an environment by name. Values may be secrets, so that only their lengths and checksums are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentSummary {
    variables: BTreeMap<String, ValueSummary>,
}

/// The summary of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ValueSummary {
    length: u64,
    /// CRC-32.
    checksum: u32,
}

impl EnvironmentSummary {
    /// Of variables, each as `NAME=VALUE`.
    pub fn new(variables: &[OsString]) -> EnvironmentSummary {
        let summary = |variable: &OsString| {
            let bytes = variable.as_bytes();
            let end = bytes.iter().position(|&byte| byte == b'=').unwrap_or(bytes.len());
            let value = &bytes[(end + 1).min(bytes.len())..];
            let summary = ValueSummary { length: value.len() as u64, checksum: crc32fast::hash(value) };
            (String::from_utf8_lossy(&bytes[..end]).into_owned(), summary)
        };
        EnvironmentSummary { variables: variables.iter().map(summary).collect() }
    }

    /// The number of variables.
    pub fn len(&self) -> usize {
        self.variables.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }

    /// The bytes that all of them take: a name, an equals sign, a value and a zero each.
    pub fn bytes(&self) -> u64 {
        let sizes =
            self.variables.iter().map(|(name, value)| (name.len() as u64 + 2).saturating_add(value.length));
        sizes.fold(0, u64::saturating_add)
    }

    /// The names of variables that both have, with other values.
    pub fn changed<'a>(&'a self, other: &'a EnvironmentSummary) -> impl Iterator<Item = &'a str> {
        let is_changed = |(name, value): &(&String, &ValueSummary)| {
            other.variables.get(*name).is_some_and(|it| it != *value)
        };
        self.variables.iter().filter(is_changed).map(|(name, _)| name.as_str())
    }

    /// The names of variables that the other does not have.
    pub fn without<'a>(&'a self, other: &'a EnvironmentSummary) -> impl Iterator<Item = &'a str> {
        self.variables.keys().filter(|name| !other.variables.contains_key(*name)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_differ_by_names_and_values() {
        let summary =
            |words: &[&str]| EnvironmentSummary::new(&words.iter().map(OsString::from).collect::<Vec<_>>());
        let (a, b) = (summary(&["A=1", "B=2", "C=", "D=x=y"]), summary(&["A=1", "B=3", "D=x=z", "E"]));
        assert_eq!(a.changed(&b).collect::<Vec<_>>(), ["B", "D"]);
        assert_eq!(
            (a.without(&b).collect::<Vec<_>>(), b.without(&a).collect::<Vec<_>>()),
            (vec!["C"], vec!["E"])
        );
        assert_eq!((a.len(), a.bytes()), (4, 4 + 4 + 3 + 6));
    }
}
