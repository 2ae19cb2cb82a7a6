//! Choices that a machine's file makes by name: policies, schemes, protocols.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, Visitor};

/// A value that a machine's file selects by a name. Each type has one table of its names, from which files are read and errors
/// are written, and which docs/machines.md is tested against.
pub(crate) trait Choice: Copy + 'static {
    /// The kind of the value, as errors call it: `replacement policy`.
    const KIND: &'static str;
    /// The names, with their values.
    const NAMES: &'static [(&'static str, Self)];
}

/// The value with a name.
pub(crate) fn find<T: Choice>(wanted: &str) -> Option<T> {
    T::NAMES.iter().find(|(name, _)| *name == wanted).map(|&(_, value)| value)
}

/// All names of a kind of value, with commas between them.
pub(crate) fn names<T: Choice>() -> String {
    T::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Reads a value by its name.
pub(crate) fn by_name<'a, D: Deserializer<'a>, T: Choice>(from: D) -> Result<T, D::Error> {
    struct Name<T>(PhantomData<T>);
    impl<T: Choice> Visitor<'_> for Name<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            write!(f, "the name of a {}: {}", T::KIND, names::<T>())
        }

        fn visit_str<E: Error>(self, name: &str) -> Result<T, E> {
            let reason = || E::custom(format!("{name:?} is no {}: give {}", T::KIND, names::<T>()));
            find(name).ok_or_else(reason)
        }
    }
    from.deserialize_str(Name(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::Choice;
    use crate::core::predictor::PredictorScheme;
    use crate::memory::coherence::{Directory, Protocol};
    use crate::memory::hierarchy::{Prefetch, Replacement};

    /// The names that docs/machines.md lists of a kind of value: those in backticks behind it.
    fn documented<T: Choice>(text: &str) -> Vec<&str> {
        let list = format!(" ({}): ", T::KIND);
        let line = text.lines().find_map(|line| line.split_once(&list)).map_or("", |(_, names)| names);
        line.split('`').skip(1).step_by(2).collect()
    }

    fn selected<T: Choice>() -> Vec<&'static str> {
        T::NAMES.iter().map(|(name, _)| *name).collect()
    }

    #[test]
    fn the_documentation_lists_all_names() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/machines.md");
        let text = std::fs::read_to_string(path).expect("docs/machines.md");
        assert_eq!(documented::<Replacement>(&text), selected::<Replacement>());
        assert_eq!(documented::<fn(u32) -> Prefetch>(&text), selected::<fn(u32) -> Prefetch>());
        assert_eq!(documented::<PredictorScheme>(&text), selected::<PredictorScheme>());
        assert_eq!(documented::<Protocol>(&text), selected::<Protocol>());
        assert_eq!(documented::<Directory>(&text), selected::<Directory>());
    }
}
