//! From the blocks in a log to a profile for the optimizer.

use std::collections::HashMap;

use super::reconstruct::{LoggedImage, ReconstructedStep};
use crate::profile::ImageProfile;
use crate::program::{CodeBlockId, CodeExit};

/// How often blocks of images, and one after another, were executed.
#[derive(Clone, Debug, Default)]
pub struct BlockCounts {
    executions: HashMap<(usize, CodeBlockId), u64>,
    successions: HashMap<(usize, CodeBlockId, CodeBlockId), u64>,
    /// The block that each thread executed last in each image.
    last: HashMap<(u32, u64, usize), CodeBlockId>,
}

impl BlockCounts {
    /// Counts a step.
    pub fn add(&mut self, step: &ReconstructedStep) {
        if !step.begins {
            return;
        }
        *self.executions.entry((step.image, step.block)).or_default() += 1;
        if let Some(last) = self.last.insert((step.process, step.thread, step.image), step.block) {
            *self.successions.entry((step.image, last, step.block)).or_default() += 1;
        }
    }

    /// The profile of the image with this number.
    pub fn profile(&self, number: usize, image: &mut LoggedImage, name: &str) -> ImageProfile {
        let successions = |from: CodeBlockId, to: Option<CodeBlockId>| {
            to.and_then(|to| self.successions.get(&(number, from, to)).copied()).unwrap_or_default()
        };
        for (block, id) in image.program.blocks.iter_mut().zip(0..) {
            block.count = self.executions.get(&(number, id)).copied().unwrap_or_default();
            match &mut block.exit {
                CodeExit::Conditional { taken, count, .. } => *count = successions(id, taken.block()),
                CodeExit::Jump { targets, counts } => {
                    *counts = targets.iter().map(|&to| successions(id, Some(to))).collect();
                }
                _ => {}
            }
        }
        ImageProfile::of(&image.program, name, &[])
    }
}
