//! Units of work, as users name them.

use std::fmt;

use crate::program_location::Name;

/// The bounds of a unit of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitName {
    /// The function at whose entry the unit begins.
    pub begin: Name,
    /// Where it ends.
    pub end: UnitEnd,
}

/// Where a unit ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitEnd {
    /// At the return of the call with which it began.
    Return,
    /// At the entry of a function.
    Entry(Name),
    /// At the return of a call of a function.
    ReturnOf(Name),
}

/// Where a unit ends, by the second function.
type EndAt = fn(Name) -> UnitEnd;

/// The words between two functions. No symbol has them with blanks around, as all of C, C++, Fortran and Rust join names by
/// punctuation.
const WORDS: [(&str, EndAt); 2] = [(" to ", UnitEnd::Entry), (" through ", UnitEnd::ReturnOf)];

impl UnitName {
    /// Of a user's text: `begin`, `begin to end`, `begin through end`.
    pub fn new(text: &str) -> UnitName {
        let name = |text: &str| Name::new(text.trim());
        for (word, end) in WORDS {
            if let Some((begin, last)) = text.split_once(word) {
                return UnitName { begin: name(begin), end: end(name(last)) };
            }
        }
        UnitName { begin: name(text), end: UnitEnd::Return }
    }

    /// Its functions, the one at which it begins first.
    pub fn functions(&self) -> impl Iterator<Item = &Name> {
        let end = match &self.end {
            UnitEnd::Return => None,
            UnitEnd::Entry(name) | UnitEnd::ReturnOf(name) => Some(name),
        };
        std::iter::once(&self.begin).chain(end)
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.end {
            UnitEnd::Return => write!(f, "{}", self.begin),
            UnitEnd::Entry(end) => write!(f, "{} to {end}", self.begin),
            UnitEnd::ReturnOf(end) => write!(f, "{} through {end}", self.begin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for text in ["f", "a!f to b!g", "f through g", "operator new(unsigned long) to towards"] {
            assert_eq!(UnitName::new(text).to_string(), text);
        }
        assert_eq!(UnitName::new("f  to  g").to_string(), "f to g");
        assert_eq!(UnitName::new("towards").end, UnitEnd::Return);
        assert_eq!(UnitName::new("f to g").functions().count(), 2);
    }
}
