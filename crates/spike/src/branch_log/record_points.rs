//! The points of a procedure at which records are written: so many that each sequence of them belongs to one path only.

use std::collections::HashMap;

use crate::instrument::editor::{Editor, ProcedureFacts};
use crate::program::{CodeBlock, CodeBlockId, CodeExit, Program};

/// The meaning of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordMeaning {
    /// This block begins.
    Head(CodeBlockId),
    /// Control goes from a block to another one.
    Way(CodeBlockId, CodeBlockId),
}

/// How the log shows that a block is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidenceKind {
    /// By a record.
    Logged,
    /// It certainly follows those before it.
    Certain,
    /// It lies between a locked load and its store, where nothing may be inserted; the ways out of it have records.
    Locked,
}

/// The record points of a procedure. Blocks have their numbers in it.
#[derive(Clone, Debug)]
pub struct ProcedureRecords {
    kinds: Vec<(CodeBlockId, EvidenceKind)>,
    ways: Vec<(usize, usize)>,
}

impl ProcedureRecords {
    /// Finds them; `None` if there are paths that no records tell apart.
    pub fn new(editor: &Editor, facts: &ProcedureFacts) -> Option<ProcedureRecords> {
        let program = &editor.program;
        let block = |at: usize| &program.blocks[facts.blocks[at] as usize];
        let local = editor.local(facts.procedure);
        let count = facts.blocks.len();
        let (mut is_certain, mut has_predecessor) = (vec![true; count], vec![false; count]);
        for at in 0..count {
            let successors = block(at).exit.successors();
            let leads_on = successors.len() == 1 && !is_left(block(at));
            for to in successors.into_iter().filter_map(&local) {
                is_certain[to] &= leads_on;
                has_predecessor[to] = true;
            }
        }
        let kind = |at: usize| match () {
            () if !facts.points.is_open(at) => EvidenceKind::Locked,
            () if is_certain[at] && has_predecessor[at] && !editor.entries.has(facts.blocks[at]) => {
                EvidenceKind::Certain
            }
            () => EvidenceKind::Logged,
        };
        let kinds: Vec<(CodeBlockId, EvidenceKind)> =
            (0..count).map(|at| (facts.blocks[at], kind(at))).collect();
        let mut ways = Vec::new();
        for (at, _) in kinds.iter().enumerate().filter(|(_, (_, kind))| *kind == EvidenceKind::Locked) {
            if is_left(block(at))
                || !matches!(block(at).exit, CodeExit::Next(_) | CodeExit::Conditional { .. })
            {
                return None;
            }
            for (to, successor) in block(at).exit.successors().into_iter().zip(0..) {
                if facts.points.is_open_between(at, Some(local(to)?)) {
                    ways.push((at, successor));
                }
            }
        }
        let points = ProcedureRecords { kinds, ways };
        let known = RecordPoints::of(program, [&points]);
        facts.blocks.iter().all(|&from| known.tells_apart(program, from)).then_some(points)
    }

    /// The blocks at whose heads records are written.
    pub fn heads(&self) -> impl Iterator<Item = usize> {
        (0..self.kinds.len()).filter(|&at| self.kinds[at].1 == EvidenceKind::Logged)
    }

    /// Blocks and the numbers of their successors, if records are written on the way.
    pub fn ways(&self) -> impl Iterator<Item = (usize, usize)> {
        self.ways.iter().copied()
    }
}

/// Whether it is not certain that control goes on behind a block: it calls a procedure or the system.
pub fn is_left(block: &CodeBlock) -> bool {
    block.call().is_some() || block.instructions.iter().any(|one| one.op() == Some(isa::Op::CallPal))
}

/// The record points of an image.
#[derive(Clone, Debug, Default)]
pub struct RecordPoints {
    kinds: HashMap<CodeBlockId, EvidenceKind>,
    ways: Vec<(CodeBlockId, CodeBlockId)>,
}

impl RecordPoints {
    /// Those of these procedures of a program to which nothing was added yet.
    pub fn of<'a>(
        program: &Program,
        procedures: impl IntoIterator<Item = &'a ProcedureRecords>,
    ) -> RecordPoints {
        let mut all = RecordPoints::default();
        for points in procedures {
            all.kinds.extend(points.kinds.iter().copied());
            all.ways.extend(points.ways.iter().map(|&(from, successor)| {
                let from = points.kinds[from].0;
                (from, program.blocks[from as usize].exit.successors()[successor])
            }));
        }
        all.ways.sort_unstable();
        all
    }

    /// The block that certainly follows a block, without a record.
    pub fn next(&self, program: &Program, from: CodeBlockId) -> Option<CodeBlockId> {
        let block = &program.blocks[from as usize];
        match block.exit.successors()[..] {
            [to] if !is_left(block) && self.is_silent(from, to) => Some(to),
            _ => None,
        }
    }

    /// The blocks without records on the way from a block to the point of the next record; `None` if there is no way.
    pub fn path(
        &self,
        program: &Program,
        from: CodeBlockId,
        next: RecordMeaning,
    ) -> Option<Vec<CodeBlockId>> {
        let mut found = None;
        self.explore(program, from, &mut Vec::new(), &mut |reached, path| {
            if reached == next {
                found = Some(path.to_vec());
            }
        });
        found
    }

    /// Whether no two paths from a block lead to the same record, or to none.
    fn tells_apart(&self, program: &Program, from: CodeBlockId) -> bool {
        let mut paths: HashMap<RecordMeaning, Vec<CodeBlockId>> = HashMap::new();
        let mut is_clear = true;
        is_clear &= self.explore(program, from, &mut Vec::new(), &mut |next, path| {
            is_clear &= paths.entry(next).or_insert_with(|| path.to_vec()) == path;
        });
        is_clear
    }

    /// Follows all ways from a block to the next records. Returns whether there is no endless one without.
    fn explore(
        &self,
        program: &Program,
        from: CodeBlockId,
        path: &mut Vec<CodeBlockId>,
        reached: &mut impl FnMut(RecordMeaning, &[CodeBlockId]),
    ) -> bool {
        for to in program.blocks[from as usize].exit.successors() {
            if self.has_way(from, to) {
                reached(RecordMeaning::Way(from, to), path);
            } else if !self.is_silent(from, to) {
                reached(RecordMeaning::Head(to), path);
            } else if path.contains(&to) {
                return false;
            } else {
                path.push(to);
                let is_finite = self.explore(program, to, path, reached);
                path.pop();
                if !is_finite {
                    return false;
                }
            }
        }
        true
    }

    fn has_way(&self, from: CodeBlockId, to: CodeBlockId) -> bool {
        self.ways.binary_search(&(from, to)).is_ok()
    }

    /// Whether no record is written from the end of a block to the instructions of the next one.
    fn is_silent(&self, from: CodeBlockId, to: CodeBlockId) -> bool {
        !self.has_way(from, to) && self.kinds.get(&to).is_some_and(|&kind| kind != EvidenceKind::Logged)
    }

    /// Whether a block has a record of its own.
    pub fn is_logged(&self, block: CodeBlockId) -> bool {
        self.kinds.get(&block) == Some(&EvidenceKind::Logged)
    }

    /// Whether what a block executes can be reconstructed.
    pub fn has(&self, block: CodeBlockId) -> bool {
        self.kinds.contains_key(&block)
    }
}
