//! The untimed part of the reference model: which instructions are slotted together, and how their groups are reached.

use std::collections::HashMap;

use pathlength_machine::Machine;
use pathlength_machine::pipeline::{ClassRules, InstructionClass, Pipeline};

use super::memory::serve;

/// An instruction that was executed.
#[derive(Clone, Debug)]
pub struct Executed {
    pub address: u64,
    /// Its bytes.
    pub length: u64,
    pub class: InstructionClass,
    /// The registers that it reads, and whether it tests or stores them.
    pub sources: Vec<(u8, bool)>,
    pub destination: Option<u8>,
    /// The address of its data, and whether it stores.
    pub access: Option<(u64, u8, bool)>,
    /// The target of a conditional branch.
    pub target: Option<u64>,
    /// Which execution of a block it belongs to.
    pub block: usize,
}

/// How control reached a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    InSequence,
    ByBranch,
    ByMisprediction,
    AfterCall,
}

/// How an instruction is slotted.
#[derive(Clone, Debug)]
pub struct Slotted {
    /// The groups that are fetched for it: how each is reached, and an address in it.
    pub fetches: Vec<(Reached, u64)>,
    /// It is issued in a later cycle than the one before it.
    pub is_later: bool,
    pub units: Vec<String>,
}

pub fn rules(pipeline: &Pipeline, class: InstructionClass) -> &ClassRules {
    pipeline.classes.get(class.name()).unwrap_or_else(|| &pipeline.classes["default"])
}

fn alternatives(pipeline: &Pipeline, one: &Executed) -> Vec<Vec<String>> {
    let names = |text: &String| text.split(' ').filter(|name| !name.is_empty()).map(String::from).collect();
    rules(pipeline, one.class).units.iter().map(names).collect()
}

/// Slots all instructions of a program.
pub fn slot(machine: &Machine, program: &[Executed]) -> Vec<Slotted> {
    let pipeline = machine.pipeline.as_ref().unwrap();
    let predictor = machine.predictor.as_ref().unwrap();
    let mut line = None;
    let mut counters = HashMap::new();
    let mut taken: Vec<String> = Vec::new();
    let mut slotted = Vec::new();
    for (index, one) in program.iter().enumerate() {
        let reached = match index.checked_sub(1) {
            None => Reached::InSequence,
            Some(before) => reached(predictor.bits, &mut counters, &program[before], one),
        };
        for address in [one.address, one.last_byte()] {
            if line.replace(address / 32) != Some(address / 32)
                && predictor.reset_by_refill
                && (serve(address).level > 0 || serve(address).is_ahead)
            {
                let first = address / 32 * 8;
                counters.extend((first..first + 8).map(|counter| (counter % 2048, None)));
            }
        }
        let before = index.checked_sub(1).map(|before| program[before].last_byte());
        let fetches = fetches(pipeline, before, reached, one);
        let choices = choices(pipeline, program, index);
        let is_free = |choice: &&Vec<String>| !choice.iter().any(|unit| taken.contains(unit));
        let free = choices.iter().find(is_free).cloned();
        let is_later = !fetches.is_empty() || free.is_none() || is_third_of_split(pipeline, program, index);
        if is_later {
            taken.clear();
        }
        let units = if is_later { choices[0].clone() } else { free.unwrap() };
        taken.extend(units.iter().cloned());
        slotted.push(Slotted { fetches, is_later, units });
    }
    slotted
}

/// The group that an address is in.
fn group_of(pipeline: &Pipeline, address: u64) -> u64 {
    address / (4 * u64::from(pipeline.group))
}

/// The groups that are fetched for an instruction: those of its bytes, but for the one of the byte before, unless
/// control was transferred.
fn fetches(
    pipeline: &Pipeline,
    before: Option<u64>,
    reached: Reached,
    one: &Executed,
) -> Vec<(Reached, u64)> {
    let mut fetched =
        before.map(|before| group_of(pipeline, before)).filter(|_| reached == Reached::InSequence);
    let mut fetches = Vec::new();
    for address in one.address..=one.last_byte() {
        let group = group_of(pipeline, address);
        if fetched.replace(group) != Some(group) {
            fetches.push((if fetches.is_empty() { reached } else { Reached::InSequence }, address));
        }
    }
    fetches
}

impl Executed {
    pub fn last_byte(&self) -> u64 {
        self.address + self.length - 1
    }
}

/// Conditional branches are predicted by 2,048 counters. One without a value begins with the direction.
fn reached(bits: u8, counters: &mut HashMap<u64, Option<u8>>, before: &Executed, one: &Executed) -> Reached {
    let is_taken = one.address != before.address + before.length;
    match before.class {
        InstructionClass::Branch | InstructionClass::FloatBranch => {
            let highest = (1 << bits) - 1;
            let is_backward = before.target.unwrap() <= before.address;
            let counter = counters.entry(before.address / 4 % 2048).or_insert(Some(highest / 2));
            let counter = counter.get_or_insert(highest / 2 + u8::from(is_backward));
            let is_right = (*counter > highest / 2) == is_taken;
            *counter = if is_taken { (*counter + 1).min(highest) } else { counter.saturating_sub(1) };
            match (is_right, is_taken) {
                (false, _) => Reached::ByMisprediction,
                (true, true) => Reached::ByBranch,
                (true, false) => Reached::InSequence,
            }
        }
        InstructionClass::Jump => Reached::ByBranch,
        InstructionClass::CallPal => Reached::AfterCall,
        _ => Reached::InSequence,
    }
}

/// The instructions of the same group and the same execution of a block, and which of them it is.
fn group<'a>(pipeline: &Pipeline, program: &'a [Executed], index: usize) -> (&'a [Executed], usize) {
    let one = &program[index];
    let group = |one: &Executed| group_of(pipeline, one.last_byte());
    let same = |other: &&Executed| other.block == one.block && group(other) == group(one);
    let before = program[..index].iter().rev().take_while(same).count();
    let after = program[index..].iter().take_while(same).count();
    (&program[index - before..index + after], before)
}

/// The units that an instruction may take, the preferred ones first.
fn choices(pipeline: &Pipeline, program: &[Executed], index: usize) -> Vec<Vec<String>> {
    let mut own = alternatives(pipeline, &program[index]);
    let (group, number) = group(pipeline, program, index);
    let rivals = group[number + 1..].iter().map(|other| alternatives(pipeline, other));
    let is_rival = |rival: &Vec<Vec<String>>| {
        rival.iter().flatten().any(|unit| own.iter().flatten().any(|mine| mine == unit))
    };
    if let Some(rival) = rivals.into_iter().find(is_rival)
        && rival.len() == 1
        && own.len() == 2
    {
        let is_wanted = |choice: &Vec<String>| {
            choice.iter().any(|unit| rival[0].contains(unit) && pipeline.left_to_next.contains(unit))
        };
        if is_wanted(&own[0]) && !is_wanted(&own[1]) {
            own.reverse();
        }
    }
    own
}

fn is_third_of_split(pipeline: &Pipeline, program: &[Executed], index: usize) -> bool {
    let (group, number) = group(pipeline, program, index);
    let letter = |one: &Executed| rules(pipeline, one.class).units[0].chars().next().unwrap_or('-');
    number == 2 && pipeline.split.contains(&group.iter().map(letter).collect::<String>())
}
