//! The kind of sharing of a line, and changes that would avoid it.

use std::collections::{BTreeMap, BTreeSet};

use super::groups::{SharingGroup, listed};
use super::{SharingAnalysis, SharingCounts};
use machine::SharingClass;

/// The diagnosis of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Diagnosis {
    /// The kind of sharing.
    pub kind: &'static str,
    /// A variable to pad, move or change, if that would avoid more than the first copies.
    pub suggestion: Option<String>,
}

/// How threads access a part of a line.
#[derive(Clone, Debug, Default)]
struct LinePart {
    threads: BTreeSet<u32>,
    is_stored: bool,
    is_locked: bool,
    operations: u64,
}

impl SharingAnalysis {
    /// Diagnoses a line by its accesses.
    pub(super) fn diagnose(&self, line: &SharingGroup) -> Diagnosis {
        let SharingCounts { misses, .. } = line.counts;
        if misses[SharingClass::True as usize] + misses[SharingClass::False as usize] == 0 {
            // Each processor got the line once, after another one had written it.
            return Diagnosis { kind: "once", suggestion: None };
        }
        let parts = self.line_parts(line);
        let is_one_lock = parts.len() == 1 && parts.values().all(|part| part.is_locked);
        let is_false = 2 * line.counts.needless() > line.counts.operations() && !is_one_lock;
        let (kind, suggestion) = if is_false {
            ("false", self.separate(line, &parts))
        } else if parts.values().any(|part| part.is_locked) {
            ("lock", self.relieve_lock(&parts))
        } else if misses[SharingClass::False as usize] > 0 && line.counts.needless() > 0 {
            ("true and false", self.separate(line, &parts))
        } else {
            ("true", self.share_less(line, &parts))
        };
        Diagnosis { kind, suggestion: Some(suggestion) }
    }

    /// The parts of a line that can be moved, by their labels.
    fn line_parts(&self, line: &SharingGroup) -> BTreeMap<String, LinePart> {
        let mut parts: BTreeMap<String, LinePart> = BTreeMap::new();
        for access in &line.accesses {
            let code = self.code_access(access.key.by);
            let part = parts.entry(self.movable_label(access)).or_default();
            part.threads.insert(access.key.by.thread);
            part.is_stored |= code.is_store;
            part.is_locked |= code.is_locked;
            part.operations += access.counts.operations();
        }
        parts
    }

    /// False sharing: different parts of the line belong into lines of their own.
    fn separate(&self, line: &SharingGroup, parts: &BTreeMap<String, LinePart>) -> String {
        let size = self.memory.line_size();
        let arrays: BTreeSet<u32> = line.accesses.iter().map(|access| access.data.0).collect();
        let only = match arrays.first() {
            Some(&array) if arrays.len() == 1 => Some(&self.layout.arrays()[array as usize]),
            _ => None,
        };
        let variable = only.and_then(|array| array.variable.as_ref());
        let is_array = variable.is_some_and(|variable| !variable.shape.is_empty());
        let elements: BTreeSet<Option<u64>> = line
            .accesses
            .iter()
            .map(|access| Some(access.offset? / only?.element.filter(|&element| element > 0)?))
            .collect();
        if let (Some(array), true, true) = (only, is_array, elements.len() > 1) {
            let element = array.element.unwrap_or(0);
            return match element < size {
                true => format!("pad the elements of {} from {element} to {size} bytes", array.name),
                false => format!("align {} and its elements to {size} bytes", array.name),
            };
        }
        let of = |is_stored: bool| -> Vec<String> {
            let mut found: Vec<_> = parts.iter().filter(|(_, part)| part.is_stored == is_stored).collect();
            found.sort_by_key(|(_, part)| std::cmp::Reverse(part.operations));
            found.into_iter().map(|(name, _)| name.clone()).collect()
        };
        let (stored, only_read) = (of(true), of(false));
        if !only_read.is_empty() && !stored.is_empty() {
            return format!(
                "move {}, only read, {size} bytes away from {}",
                listed(&only_read),
                listed(&stored)
            );
        }
        let all = if stored.is_empty() { only_read } else { stored };
        match all.len() {
            1 => format!("align {} to {size} bytes, and pad it", all[0]),
            _ => format!("align {} to {size} bytes each", listed(&all)),
        }
    }

    fn relieve_lock(&self, parts: &BTreeMap<String, LinePart>) -> String {
        let (locks, others): (Vec<_>, Vec<_>) = parts.iter().partition(|(_, part)| part.is_locked);
        let names = |parts: Vec<(&String, &LinePart)>| -> Vec<String> {
            parts.into_iter().map(|(name, _)| name.clone()).collect()
        };
        let (locks, others) = (names(locks), names(others));
        match others.is_empty() {
            true => format!("take {} less often, or divide what it protects", listed(&locks)),
            false => {
                format!("take {} less often; it moves together with {}", listed(&locks), listed(&others))
            }
        }
    }

    fn share_less(&self, line: &SharingGroup, parts: &BTreeMap<String, LinePart>) -> String {
        let writers = line.accesses.iter().filter(|access| self.code_access(access.key.by).is_store);
        let writers: BTreeSet<u32> = writers.map(|access| access.key.by.thread).collect();
        let mut names: Vec<(&String, &LinePart)> = parts.iter().collect();
        names.sort_by_key(|(_, part)| std::cmp::Reverse(part.operations));
        let names: Vec<String> = names.into_iter().map(|(name, _)| name.clone()).collect();
        match writers.len() {
            0 | 1 => format!("read {} less often, or write it less often", listed(&names)),
            _ => format!("give each thread its own {}", listed(&names)),
        }
    }
}
