//! Partial inlining, which the paper left undone: the hot part of a small procedure takes the place of calls of it.
//!
//! Where control leaves the hot part for the cold one, a stub of the caller calls the cold block, so that its return address
//! is that of the caller, as the procedure expects, and the cold part returns behind the inlined code.

use std::collections::{HashMap, HashSet};

use isa::{Op, encode};

use crate::dataflow::{RegisterSet, effects};
use crate::program::{
    Base, BranchTarget, CodeBlock, CodeBlockId, CodeExit, GP, LiftedInstruction, ProcedureId, Program, RA,
    Reference, SP,
};

/// The most instructions of a hot part that is inlined.
const LARGEST: usize = 24;

/// A procedure whose hot part can be inlined.
#[derive(Clone, Debug)]
pub struct Body {
    head: CodeBlockId,
    blocks: Vec<CodeBlockId>,
    entries: u64,
}

impl Body {
    /// The hot part of a procedure, if it is small, makes no calls and needs no stack.
    pub fn find(
        program: &Program,
        procedure: ProcedureId,
        is_hot: impl Fn(&CodeBlock) -> bool,
    ) -> Option<Body> {
        if !program.may_change(procedure) {
            return None;
        }
        let head = program.head(procedure)?;
        let mut blocks = vec![head];
        let mut at = 0;
        while at < blocks.len() {
            for next in program.blocks[blocks[at] as usize].exit.successors() {
                let block = &program.blocks[next as usize];
                if block.procedure == procedure && is_hot(block) && !blocks.contains(&next) {
                    blocks.push(next);
                }
            }
            at += 1;
            let size: usize = blocks.iter().map(|&id| program.blocks[id as usize].instructions.len()).sum();
            if size > LARGEST {
                return None;
            }
        }
        let is_fit = blocks.iter().all(|&id| is_inlinable(program, procedure, &program.blocks[id as usize]));
        let entries = program.blocks[head as usize].count;
        (is_fit && is_hot(&program.blocks[head as usize])).then_some(Body { head, blocks, entries })
    }
}

fn is_inlinable(program: &Program, procedure: ProcedureId, block: &CodeBlock) -> bool {
    let is_within = |target: &CodeBlockId| program.blocks[*target as usize].procedure == procedure;
    let mut code = block.instructions.as_slice();
    let has_exit = match &block.exit {
        CodeExit::Next(_) => true,
        CodeExit::Branch { branch, target: BranchTarget::Block(_) } => !branch.is_call(),
        CodeExit::Conditional { taken: BranchTarget::Block(_), .. } => true,
        CodeExit::Leave => {
            let Some((last, rest)) = code.split_last() else { return false };
            code = rest;
            isa::decode(last.word).is_some_and(|one| one.op == Op::Ret && one.rb() == RA)
        }
        _ => false,
    };
    let kept = RegisterSet::integer(RA) | RegisterSet::integer(SP) | RegisterSet::integer(GP);
    let is_plain = |one: &LiftedInstruction| {
        let effects = effects(program, one);
        let touches_frame = effects.reads.has(SP) || effects.reads.has(RA) || effects.writes.meets(kept);
        matches!(one.reference, Reference::None | Reference::Slot(_)) && !one.is_call() && !touches_frame
    };
    has_exit && block.exit.successors().iter().all(is_within) && code.iter().all(is_plain)
}

/// Inlines frequent calls in a procedure. Returns how many calls and returns were executed there.
pub fn inline(
    program: &mut Program,
    procedure: ProcedureId,
    bodies: &HashMap<ProcedureId, Body>,
    is_hot: impl Fn(&CodeBlock) -> bool,
) -> u64 {
    if !program.may_change(procedure) {
        return 0;
    }
    let bases: HashSet<CodeBlockId> = program
        .global_pointers
        .iter()
        .filter_map(|one| match one.base {
            Base::AfterCall(block) => Some(block),
            Base::Block(_) => None,
        })
        .collect();
    let mut removed = 0;
    for site in program.procedures[procedure as usize].blocks.clone() {
        let Some((body, next)) = callee(program, site, bodies) else { continue };
        let is_frequent = is_hot(&program.blocks[site as usize]);
        let gp = |procedure: ProcedureId| program.procedures[procedure as usize].global_pointer;
        let callee = program.blocks[body.head as usize].procedure;
        if is_frequent && callee != procedure && gp(callee) == gp(procedure) && !bases.contains(&site) {
            removed += 2 * program.blocks[site as usize].count;
            Inlining { procedure, site, next, body }.carry_out(program);
        }
    }
    removed
}

/// The procedure that the call at the end of a block is to, and where it returns.
fn callee<'a>(
    program: &Program,
    site: CodeBlockId,
    bodies: &'a HashMap<ProcedureId, Body>,
) -> Option<(&'a Body, CodeBlockId)> {
    let block = &program.blocks[site as usize];
    let call = block.call()?;
    let (Reference::Branch(BranchTarget::Block(target)), CodeExit::Next(next)) =
        (call.reference, &block.exit)
    else {
        return None;
    };
    let is_linked = isa::decode(call.word).is_some_and(|one| one.op == Op::Bsr && one.ra() == RA);
    let body = bodies.get(&program.blocks[target as usize].procedure)?;
    (is_linked && body.head == target && body.entries > 0).then_some((body, *next))
}

struct Inlining<'a> {
    procedure: ProcedureId,
    site: CodeBlockId,
    next: CodeBlockId,
    body: &'a Body,
}

impl Inlining<'_> {
    fn carry_out(&self, program: &mut Program) {
        let Some(call) = program.blocks[self.site as usize].instructions.pop() else { return };
        let first = program.blocks.len() as CodeBlockId;
        let mut copies: HashMap<CodeBlockId, CodeBlockId> =
            self.body.blocks.iter().copied().zip(first..).collect();
        for &id in &self.body.blocks {
            let block = self.copy(program, id, call.frame);
            program.add_block(block);
        }
        let mut made: Vec<CodeBlockId> = (first..program.blocks.len() as CodeBlockId).collect();
        for &copy in &made.clone() {
            for (target, count) in program.blocks[copy as usize].edges() {
                let is_inside = copies.contains_key(&target) || target == self.next;
                if !is_inside {
                    let stub = self.stub(program, target, &call, count);
                    copies.insert(target, stub);
                    made.push(stub);
                }
            }
        }
        let next = self.next;
        for &id in made.iter().filter(|&&id| (id as usize) < first as usize + self.body.blocks.len()) {
            program.blocks[id as usize].exit.redirect(|target| match copies.get(&target) {
                Some(&copy) if target != next => copy,
                _ => target,
            });
        }
        program.blocks[self.site as usize].exit = CodeExit::Next(copies[&self.body.head]);
        let own = &mut program.procedures[self.procedure as usize].blocks;
        let at = own.iter().position(|&id| id == self.site).map_or(own.len(), |at| at + 1);
        own.splice(at..at, made);
    }

    /// As many executions as the site has a share in those of the procedure.
    fn scale(&self, program: &Program, count: u64) -> u64 {
        let site = u128::from(program.blocks[self.site as usize].count);
        (u128::from(count) * site / u128::from(self.body.entries)) as u64
    }

    fn copy(&self, program: &Program, id: CodeBlockId, frame: u32) -> CodeBlock {
        let mut block = program.blocks[id as usize].clone();
        block.procedure = self.procedure;
        block.is_address_taken = false;
        block.call_site = program.blocks[self.site as usize].call_site;
        block.count = self.scale(program, block.count);
        match &mut block.exit {
            CodeExit::Leave => {
                block.instructions.pop();
                block.exit = CodeExit::Next(self.next);
            }
            CodeExit::Conditional { branch, count, .. } => {
                branch.frame = frame;
                *count = self.scale(program, *count);
            }
            CodeExit::Branch { branch, .. } => branch.frame = frame,
            _ => {}
        }
        block.instructions.iter_mut().for_each(|one| one.frame = frame);
        block
    }

    /// A block that calls the cold part.
    fn stub(
        &self,
        program: &mut Program,
        cold: CodeBlockId,
        call: &LiftedInstruction,
        count: u64,
    ) -> CodeBlockId {
        program.blocks[cold as usize].is_address_taken = true;
        let word = encode::branch(Op::Bsr, RA, 0).unwrap_or(call.word);
        let call =
            LiftedInstruction { word, reference: Reference::Branch(BranchTarget::Block(cold)), ..*call };
        program.add_block(CodeBlock {
            procedure: self.procedure,
            instructions: vec![call],
            exit: CodeExit::Next(self.next),
            is_address_taken: false,
            call_site: program.blocks[self.site as usize].call_site,
            count,
        })
    }
}
