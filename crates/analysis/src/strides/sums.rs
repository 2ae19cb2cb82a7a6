//! Counts of strides that are added up.

use std::collections::BTreeMap;

use super::bins::StrideRange;

/// The counts of series, by step and strides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StrideSums {
    pub references: u64,
    pub strides: BTreeMap<(u32, StrideRange), u64>,
}

impl StrideSums {
    /// Adds others.
    pub fn add(&mut self, more: &StrideSums) {
        self.references += more.references;
        for (&key, count) in &more.strides {
            *self.strides.entry(key).or_default() += count;
        }
    }

    /// Subtracts what these sums have, too.
    pub fn subtract(&mut self, part: &StrideSums) {
        self.references -= part.references;
        for (key, count) in &part.strides {
            if let Some(own) = self.strides.get_mut(key) {
                *own -= count;
            }
        }
        self.strides.retain(|_, count| *count > 0);
    }
}
