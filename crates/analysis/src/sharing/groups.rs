//! Accesses to shared lines in groups, with the names of what they access and where they are.

use std::collections::{BTreeMap, BTreeSet};

use trace::Trace;

use super::{SharedAccess, SharingAnalysis, SharingCounts, ThreadAccess};
use crate::models::ExecutionPart;

/// Accesses that have something in common.
#[derive(Clone, Debug, Default)]
pub(super) struct SharingGroup<'a> {
    pub counts: SharingCounts,
    pub accesses: Vec<&'a SharedAccess>,
}

/// Names in a list before the rest is only counted.
const MOST_NAMES: usize = 3;

impl SharingAnalysis {
    /// Divides the accesses of a part of the execution into groups, those with most operations first.
    pub(super) fn groups<K: Ord>(
        &self,
        part: ExecutionPart,
        key: impl Fn(&SharedAccess) -> Option<K>,
    ) -> Vec<(K, SharingGroup<'_>)> {
        let mut groups: BTreeMap<K, SharingGroup> = BTreeMap::new();
        for access in self.accesses.iter().filter(|access| part.has(access.key.class)) {
            let Some(key) = key(access) else { continue };
            let group = groups.entry(key).or_default();
            group.counts.add(&access.counts);
            group.accesses.push(access);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(self.weight(&group.counts)));
        groups
    }

    /// The address of the line that was accessed, in the process that accessed it.
    pub(super) fn line_address(&self, access: &SharedAccess) -> u64 {
        access.key.address & !(self.memory.line_size() - 1)
    }

    /// The accessed data: a variable, its element and member, or the byte of a block of the heap.
    pub(super) fn label(&self, access: &SharedAccess) -> String {
        self.label_of(access, false)
    }

    /// The same, with one label for data that a program's author cannot separate: a variable without known members, as a
    /// `pthread_mutex_t`.
    pub(super) fn movable_label(&self, access: &SharedAccess) -> String {
        self.label_of(access, true)
    }

    fn label_of(&self, access: &SharedAccess, is_movable: bool) -> String {
        let (array, member) = access.data;
        let described = &self.layout.arrays()[array as usize];
        let Some(offset) = access.offset else { return described.name.clone() };
        let variable = described.variable.as_ref();
        let (element, shape) =
            variable.map_or((None, &[][..]), |variable| (variable.element.as_ref(), &variable.shape));
        let (index, rest) = match element {
            Some(element) if !shape.is_empty() && element.size > 0 => {
                (format!("[{}]", offset / element.size), offset % element.size)
            }
            _ => (String::new(), offset),
        };
        let part = member.and_then(|member| element?.members.get(member));
        match part {
            Some(part) => format!("{}{index}.{}", described.name, part.name),
            None if rest == 0 || is_movable && variable.is_some() => format!("{}{index}", described.name),
            None => format!("{}{index}+{rest}", described.name),
        }
    }

    /// The line of source of an access and its function, or only its function.
    pub(super) fn location(&self, access: ThreadAccess, trace: &Trace) -> String {
        let Some(block) = trace.blocks().get(access.block as usize) else { return String::new() };
        let address = block.address_of(self.code_access(access).index as usize);
        let function = &self.names.name(block.image, address).function;
        match self.names.location(block.image, address) {
            Some(at) => {
                let file = at.file.rsplit('/').next().unwrap_or_default();
                format!("{function} ({file}:{})", at.line.unwrap_or(0))
            }
            None => function.clone(),
        }
    }

    /// A share of all operations on the bus, or on the interconnect if there is one, in percent.
    pub(super) fn share(&self, counts: &SharingCounts) -> f64 {
        let all = self.nodes().map_or(self.counts().operations(), |nodes| nodes.counts().operations());
        100.0 * self.weight(counts) as f64 / all as f64
    }
}

impl SharingGroup<'_> {
    /// The threads of the accesses, and those that wrote before them.
    pub fn threads(&self) -> BTreeSet<u32> {
        let threads = |access: &&SharedAccess| {
            std::iter::once(access.key.by.thread).chain(access.key.writer.map(|writer| writer.thread))
        };
        self.accesses.iter().flat_map(threads).collect()
    }

    /// Names of the accesses, those with most operations first.
    pub fn names(&self, name: impl Fn(&SharedAccess) -> String) -> Vec<String> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for access in &self.accesses {
            *counts.entry(name(access)).or_default() += access.counts.operations();
        }
        let mut names: Vec<_> = counts.into_iter().collect();
        names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        names.into_iter().map(|(name, _)| name).collect()
    }
}

/// Names as a text: the first ones, and how many others there are.
pub(super) fn listed(names: &[String]) -> String {
    let first = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => first,
        1 => format!("{first} and another"),
        more => format!("{first} and {more} others"),
    }
}

/// Threads as a text: process and number in the process.
pub(super) fn thread_names(threads: &BTreeSet<u32>, trace: &Trace) -> String {
    let mut threads: Vec<u32> = threads.iter().copied().collect();
    threads.sort_by_key(|&thread| {
        trace.streams().get(thread as usize).map(|stream| (stream.process, stream.thread))
    });
    let names: Vec<String> = threads.into_iter().map(|thread| thread_name(thread, trace)).collect();
    let most = 2 * MOST_NAMES;
    match names.len() > most {
        true => format!("{} and {} others", names[..most].join(" "), names.len() - most),
        false => names.join(" "),
    }
}

/// A thread as `--thread` has it.
pub(super) fn thread_name(thread: u32, trace: &Trace) -> String {
    trace
        .streams()
        .get(thread as usize)
        .map_or_else(|| thread.to_string(), |stream| format!("{}.{}", stream.process, stream.thread))
}
