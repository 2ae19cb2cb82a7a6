//! The path that an out-of-order core's front end predicts, and follows before branches are executed.

use super::{BlockEnd, ConditionalBranch, JumpPath, PredictorState, ReturnStack};

/// What the front end predicts of the end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PredictedPath {
    /// Where fetching continues; `None` if it waits until the jump is executed.
    pub next: Option<u64>,
    /// The target is known when the block is fetched; without this, when its last instruction is decoded.
    pub is_early: bool,
}

/// What a predictor changes as it follows a predicted path, and takes back after a misprediction.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpeculativeState {
    history: u128,
    path: JumpPath,
    stack: ReturnStack,
}

impl PredictorState {
    /// Predicts where control continues after a block with this end: its last instruction is at `at`, the next one at `next`.
    pub(crate) fn predict(&self, end: BlockEnd, at: u64, next: u64) -> PredictedPath {
        let found = self.buffer.as_ref().and_then(|buffer| buffer.find(at));
        // Without a buffer, targets are known early.
        let is_early = self.buffer.is_none() || found.is_some();
        let early = |next| PredictedPath { next: Some(next), is_early: true };
        let decoded = |target| PredictedPath { next: Some(target), is_early };
        match end {
            BlockEnd::Falls => early(next),
            BlockEnd::Conditional { target } => {
                let branch = ConditionalBranch { address: at, target, history: self.history };
                if self.predicts_taken(branch, is_early) { decoded(target) } else { early(next) }
            }
            BlockEnd::Branch { target, .. } => decoded(target),
            BlockEnd::Return { .. } if !self.stack.is_absent() => decoded(self.stack.top()),
            BlockEnd::Jump { hinted, .. } => match self.indirect_target(at) {
                Some(target) => early(target),
                None if self.buffer.is_none() && hinted != at => decoded(hinted),
                None => PredictedPath { next: found, is_early: true },
            },
            BlockEnd::Return { .. } => PredictedPath { next: found, is_early: true },
        }
    }

    /// The target of a jump that the path tells.
    fn indirect_target(&self, at: u64) -> Option<u64> {
        self.indirect.as_ref().and_then(|targets| targets.find(at, self.path))
    }

    /// Whether the branch target buffer has a branch; None if there is no buffer.
    #[inline]
    pub(crate) fn has_target(&self, at: u64) -> Option<bool> {
        self.buffer.as_ref().map(|buffer| buffer.find(at).is_some())
    }

    fn predicts_taken(&self, branch: ConditionalBranch, is_early: bool) -> bool {
        let is_static = !is_early && self.buffer.as_ref().is_some_and(|buffer| buffer.static_on_miss);
        if is_static { branch.is_backward() } else { self.direction.predict(branch) }
    }

    /// Follows a path, predicted or executed: the histories of branches and calls move on.
    pub(crate) fn follow(&mut self, end: BlockEnd, next: u64, to: u64) {
        match end {
            BlockEnd::Conditional { .. } => {
                self.history = self.history << 1 | u128::from(to != next);
                self.path.branch(to != next);
            }
            BlockEnd::Jump { .. } => self.path.jump(to),
            BlockEnd::Return { .. } if !self.stack.is_absent() => drop(self.stack.pop()),
            _ => {}
        }
        if end.is_call() {
            self.stack.push(next);
        }
    }

    /// Executes the end of a block, after which control continues `to` this address. Returns what was predicted.
    pub(crate) fn execute(&mut self, end: BlockEnd, at: u64, next: u64, to: u64) -> PredictedPath {
        let predicted = self.predict(end, at, next);
        let is_right = predicted.next == Some(to);
        match end {
            BlockEnd::Conditional { target } => {
                let branch = ConditionalBranch { address: at, target, history: self.history };
                self.direction.train(branch, to != next);
                self.counts.branches.add(is_right);
            }
            BlockEnd::Jump { .. } => drop(self.counts.jumps.add(is_right)),
            BlockEnd::Return { .. } => drop(self.counts.returns.add(is_right)),
            BlockEnd::Falls | BlockEnd::Branch { .. } => {}
        }
        if let Some(buffer) = &mut self.buffer
            && to != next
        {
            buffer.enter(at, to);
        }
        if let (Some(targets), BlockEnd::Jump { .. }) = (&mut self.indirect, end) {
            targets.enter(at, self.path, to);
        }
        self.follow(end, next, to);
        predicted
    }

    /// Replaces the direction or the target of the branch that was executed last by the one that was predicted.
    pub(crate) fn mispredict(&mut self, end: BlockEnd, predicted: u64) {
        match end {
            BlockEnd::Conditional { .. } => {
                self.history ^= 1;
                self.path.turn_branch();
            }
            BlockEnd::Jump { .. } => self.path.turn_jump(predicted),
            BlockEnd::Falls | BlockEnd::Branch { .. } | BlockEnd::Return { .. } => {}
        }
    }

    /// Keeps what following a path changes.
    pub(crate) fn keep(&self, state: &mut SpeculativeState) {
        (state.history, state.path) = (self.history, self.path);
        state.stack.copy_from(&self.stack);
    }

    /// Takes back what following a path has changed.
    pub(crate) fn restore(&mut self, state: &SpeculativeState) {
        (self.history, self.path) = (state.history, state.path);
        self.stack.copy_from(&state.stack);
    }
}
