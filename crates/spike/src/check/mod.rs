//! The checker: proves that an optimized image does what the original does.
//!
//! It reads the images as they were written and knows nothing of the optimizer: no data flow, no layout, no list of what
//! was changed. For each entry of a procedure both images are executed symbolically, side by side ([`proof`]).

mod actions;
mod calls;
mod context;
mod convention;
mod data;
mod equality;
mod images;
mod machine;
mod needs;
mod proof;
mod relation;
mod tables;
mod term;
mod unwind_tables;
mod unwinding;

use std::collections::{BTreeMap, BTreeSet};

use crate::elf::Elf;
use crate::error::Problem;
use crate::lift;
use images::Images;
use proof::Proof;
pub use proof::{Changes, Difference, ProcedureEntry};

/// The result of the proof of a procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProofCategory {
    /// The same instructions, perhaps at other addresses.
    Moved,
    /// Instructions that do nothing, or whose results nobody needs, are not there or elsewhere.
    Instructions,
    /// Saves of registers or the frame are not there, or elsewhere.
    Frame,
    /// Calls are jumps.
    TailCalls,
    /// Calls are inlined.
    Inlining,
    /// Nothing leads to it.
    Unreached,
    /// It is not proved.
    Unproved,
}

impl ProofCategory {
    /// All of them.
    pub const ALL: [ProofCategory; 7] = [
        ProofCategory::Moved,
        ProofCategory::Instructions,
        ProofCategory::Frame,
        ProofCategory::TailCalls,
        ProofCategory::Inlining,
        ProofCategory::Unreached,
        ProofCategory::Unproved,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            ProofCategory::Moved => "moved",
            ProofCategory::Instructions => "instructions removed",
            ProofCategory::Frame => "saves or frame removed",
            ProofCategory::TailCalls => "tail calls",
            ProofCategory::Inlining => "calls inlined",
            ProofCategory::Unreached => "unreached",
            ProofCategory::Unproved => "unproved",
        }
    }

    /// Its meaning, for tables.
    pub fn meaning(self) -> &'static str {
        match self {
            ProofCategory::Moved => "proved: the same instructions at other addresses",
            ProofCategory::Instructions => "proved: fewer instructions on some paths",
            ProofCategory::Frame => "proved: registers are not saved, or there is no frame, on some paths",
            ProofCategory::TailCalls => "proved: calls became jumps",
            ProofCategory::Inlining => "proved: calls are inlined",
            ProofCategory::Unreached => "nothing leads to it",
            ProofCategory::Unproved => "not proved",
        }
    }

    fn of(changes: Changes) -> ProofCategory {
        match changes {
            Changes { inlining: true, .. } => ProofCategory::Inlining,
            Changes { tail_calls: true, .. } => ProofCategory::TailCalls,
            Changes { frame: true, .. } => ProofCategory::Frame,
            Changes { instructions: true, .. } => ProofCategory::Instructions,
            _ => ProofCategory::Moved,
        }
    }
}

/// The findings on a procedure of the original.
#[derive(Clone, Debug)]
pub struct CheckedProcedure {
    /// Its name.
    pub name: String,
    /// The result of the proof.
    pub category: ProofCategory,
    /// Why the first of its entries that could not be proved was not.
    pub difference: Option<(ProcedureEntry, Difference)>,
}

/// The findings on two images.
#[derive(Clone, Debug)]
pub struct ComparisonReport {
    /// The procedures of the original.
    pub procedures: Vec<CheckedProcedure>,
    /// Addresses of data that is not the same.
    pub data: Vec<u64>,
    /// Entries that were proved.
    pub entries: usize,
    /// Pairs of program points in them.
    pub points: usize,
    /// Addresses of the optimized image's instructions that a proof passes. Nothing leads to the others.
    pub covered: BTreeSet<u64>,
}

impl ComparisonReport {
    /// Whether everything was proved.
    pub fn is_proved(&self) -> bool {
        self.data.is_empty() && self.count(ProofCategory::Unproved) == 0
    }

    /// The number of procedures.
    pub fn count(&self, category: ProofCategory) -> usize {
        self.procedures.iter().filter(|one| one.category == category).count()
    }
}

/// Checks an optimized image against its original.
pub fn check(original: Vec<u8>, optimized: Vec<u8>) -> Result<ComparisonReport, Problem> {
    let program = lift::lift(original)?;
    let optimized = Elf::read(optimized)?;
    if optimized.section(lift::MARKER).is_none() {
        return Err(Problem::NotRewritten);
    }
    let mut images = Images::new(&program, &optimized)?;
    let data = data::compare(&program, &optimized, &mut images);
    let mut pending: BTreeSet<ProcedureEntry> = data.entries.iter().copied().collect();
    for (&optimized, &original) in &images.hints {
        if images.owner(original).is_some_and(|owner| owner.entry == original) {
            pending.insert(ProcedureEntry { original, optimized });
        }
    }
    let mut done: BTreeMap<ProcedureEntry, Result<Changes, Difference>> = BTreeMap::new();
    let (mut points, mut covered) = (0, BTreeSet::new());
    while let Some(entry) = pending.pop_first() {
        if done.contains_key(&entry) {
            continue;
        }
        let result = Proof::attempt(&images, entry).map(|proved| {
            points += proved.points;
            covered.extend(proved.covered);
            pending.extend(proved.entries.into_iter().filter(|entry| !done.contains_key(entry)));
            proved.changes
        });
        done.insert(entry, result);
    }
    let mut procedures: Vec<CheckedProcedure> = images
        .procedures
        .iter()
        .map(|one| CheckedProcedure {
            name: one.name.clone(),
            category: ProofCategory::Unreached,
            difference: None,
        })
        .collect();
    let entries = done.len();
    for (entry, result) in done {
        let Some(owner) = images.owner_id(entry.original) else { continue };
        let one = &mut procedures[owner as usize];
        let category = match result {
            Ok(changes) => ProofCategory::of(changes),
            Err(difference) => {
                one.difference.get_or_insert((entry, difference));
                ProofCategory::Unproved
            }
        };
        one.category = match one.category {
            ProofCategory::Unreached => category,
            known => known.max(category),
        };
    }
    Ok(ComparisonReport { procedures, data: data.differences, entries, points, covered })
}
