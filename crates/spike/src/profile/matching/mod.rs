//! Persistent profiles: a profile of an older build gives its counts to a newer one.
//!
//! Two methods can be compared. That of Spike (Cohn, Goodwin and Lowney, 1997) matches procedures whose flow graphs have the
//! same signature, by the minimum edit distance between the lists of both images, and gives up the others. That of Ayupov,
//! Panchenko and Pupyrev ("Stale profile matching", 2024) in addition matches the blocks of procedures that have changed by
//! hashes of their instructions, and infers the counts of the others. Neither needs names.

mod blocks;
mod flow;
mod procedures;

use std::cmp::Ordering;
use std::path::Path;

use super::{ImageProfile, ImageProfiles, IndirectCall, ProcedureProfile, image_name};
use crate::error::Error;
use crate::optimize;
use crate::program::{CodeExit, ExternalCall, ProcedureId, Program};

/// The least share of executed instructions that must be matched: less is a profile of another program.
pub const LEAST_SHARE: f64 = 0.1;

/// How an old profile is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Method {
    /// Whole procedures by the signatures of their flow graphs.
    Signatures,
    /// The blocks of changed procedures, too.
    #[default]
    Blocks,
}

/// How much of a profile was matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// Executed procedures of the profile, and those of them that were matched.
    pub procedures: (u64, u64),
    /// Executed blocks, and those that were matched.
    pub blocks: (u64, u64),
    /// Executed instructions, and those in blocks that were matched. Of a profile without the shapes of blocks, executed
    /// blocks.
    pub instructions: (u64, u64),
}

impl Matched {
    /// The share of the executed instructions that was matched.
    pub fn share(&self) -> f64 {
        self.instructions.1 as f64 / self.instructions.0.max(1) as f64
    }
}

/// The image of a profile that has most in common with another build of it, if enough is; and how much. An image of the same name
/// is preferred.
pub fn best<'p>(
    profile: &'p ImageProfiles,
    path: &Path,
    method: Method,
) -> Result<Option<(Matched, &'p ImageProfile)>, Error> {
    let name = image_name(path);
    let mut found = Vec::new();
    for image in &profile.images {
        // A profile is tried on a program of its own, so that one that does not fit leaves no counts.
        let mut trial = optimize::open(path)?;
        found.push((apply(image, &mut trial, method).1, image));
    }
    let key = |(matched, image): &(Matched, &ImageProfile)| (matched.share(), image.name == name);
    let best = found.into_iter().max_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(Ordering::Equal));
    Ok(best.filter(|(matched, _)| matched.share() >= LEAST_SHARE))
}

/// Gives a program's blocks the counts of another build's profile. Returns the indirect calls, and how much was matched.
pub fn apply(profile: &ImageProfile, program: &mut Program, method: Method) -> (Vec<IndirectCall>, Matched) {
    let new = ImageProfile::of(program, "", &[]);
    let shapes: Vec<_> =
        program.procedures.iter().map(|one| super::signature::shapes(program, one)).collect();
    let pairs = procedures::pairs(profile, &new, &shapes, method);
    let mut matched = Matched::default();
    let mut calls = Vec::new();
    let mut number_of = vec![None; profile.procedures.len()];
    pairs
        .iter()
        .enumerate()
        .for_each(|(new, &old)| old.into_iter().for_each(|old| number_of[old] = Some(new as ProcedureId)));
    for old in profile.procedures.iter().filter(|old| !old.blocks.is_empty()) {
        matched.procedures.0 += 1;
        matched.blocks.0 += old.blocks.iter().filter(|&&count| count > 0).count() as u64;
        let weights = (0..old.blocks.len()).map(|at| weight(old, at));
        matched.instructions.0 = weights.fold(matched.instructions.0, u64::saturating_add);
    }
    for (number, &old) in pairs.iter().enumerate() {
        let Some(old) = old.map(|old| &profile.procedures[old]).filter(|old| !old.blocks.is_empty()) else {
            continue;
        };
        let shapes = &shapes[number];
        // The old block of each new one.
        let same = old.signature == new.procedures[number].signature && old.blocks.len() == shapes.len();
        let blocks: Vec<Option<usize>> =
            if same { (0..shapes.len()).map(Some).collect() } else { blocks::pairs(&old.shapes, shapes) };
        if blocks.iter().all(Option::is_none) {
            continue;
        }
        matched.procedures.1 += 1;
        for &at in blocks.iter().flatten() {
            matched.blocks.1 += u64::from(old.blocks[at] > 0);
            matched.instructions.1 = matched.instructions.1.saturating_add(weight(old, at));
        }
        transfer(program, number, old, &blocks, same);
        calls.extend(indirect_calls(program, number, old, &blocks, &number_of));
        let external = external_calls(program, number, old, &blocks);
        program.external_calls.extend(external);
        if !same {
            flow::infer(program, number, &blocks);
        }
    }
    (calls, matched)
}

fn weight(old: &ProcedureProfile, at: usize) -> u64 {
    old.blocks[at].saturating_mul(old.shapes.get(at).map_or(1, |shape| shape.length.into()))
}

/// Gives the counts of matched blocks and edges.
fn transfer(
    program: &mut Program,
    number: usize,
    old: &ProcedureProfile,
    blocks: &[Option<usize>],
    same: bool,
) {
    let ids = program.procedures[number].blocks.clone();
    let local = |program: &Program, block: u32| {
        ids.iter()
            .position(|&id| id == block)
            .filter(|_| program.blocks[block as usize].procedure == number as u32)
    };
    for (&id, &old_at) in ids.iter().zip(blocks) {
        let Some(old_at) = old_at else { continue };
        let block = &program.blocks[id as usize];
        let count = old.blocks[old_at];
        let old_taken = old.taken.iter().find(|one| one.0 as usize == old_at).map_or(0, |one| one.1);
        let mut exit = block.exit.clone();
        match &mut exit {
            CodeExit::Conditional { taken, next, count: times, .. } => {
                *times = old_taken;
                if !same && let Some(shape) = old.shapes.get(old_at) {
                    // The condition may have been turned: what the target of the old branch became says so.
                    let became = |target: Option<usize>| target.and_then(|at| blocks[at]).map(|at| at as u32);
                    let next = became(local(program, *next));
                    let target = became(taken.block().and_then(|block| local(program, block)));
                    *times = match shape.next[..] {
                        [old_target, old_next]
                            if target == Some(old_next) && next != Some(old_next)
                                || next == Some(old_target) && target != Some(old_target) =>
                        {
                            count.saturating_sub(old_taken)
                        }
                        [_, _] => old_taken,
                        _ => flow::UNKNOWN,
                    };
                }
            }
            CodeExit::Jump { targets, counts } => {
                for &(_, old_target, times) in old.jumps.iter().filter(|one| one.0 as usize == old_at) {
                    let at = match same {
                        true => Some(old_target as usize),
                        false => {
                            let old_block =
                                old.shapes.get(old_at).and_then(|shape| shape.next.get(old_target as usize));
                            let is_it = |&target: &u32| {
                                local(program, target).and_then(|at| blocks[at]).map(|at| at as u32)
                                    == old_block.copied()
                            };
                            old_block.and_then(|_| targets.iter().position(is_it))
                        }
                    };
                    if let Some(count) = at.and_then(|at| counts.get_mut(at)) {
                        *count = times;
                    }
                }
            }
            _ => {}
        }
        let block = &mut program.blocks[id as usize];
        (block.count, block.exit) = (count, exit);
    }
}

fn indirect_calls(
    program: &Program,
    number: usize,
    old: &ProcedureProfile,
    blocks: &[Option<usize>],
    number_of: &[Option<ProcedureId>],
) -> Vec<IndirectCall> {
    let ids = &program.procedures[number].blocks;
    let call = |&(old_at, procedure, count): &(u32, u32, u64)| {
        let at = blocks.iter().position(|&one| one == Some(old_at as usize))?;
        let block = ids[at];
        program.blocks[block as usize].call()?;
        Some(IndirectCall { block, procedure: number_of.get(procedure as usize).copied().flatten()?, count })
    };
    old.calls.iter().filter_map(call).collect()
}

fn external_calls(
    program: &Program,
    number: usize,
    old: &ProcedureProfile,
    blocks: &[Option<usize>],
) -> Vec<ExternalCall> {
    let ids = &program.procedures[number].blocks;
    let call = |&(old_at, low, count): &(u32, u16, u64)| {
        let at = blocks.iter().position(|&one| one == Some(old_at as usize))?;
        Some(ExternalCall { block: ids[at], low, count })
    };
    old.external.iter().filter_map(call).collect()
}
