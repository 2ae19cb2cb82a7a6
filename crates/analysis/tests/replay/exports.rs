//! Exports of random traces and filters equal a simple recount.

use events::record::Mark;
use isa::Flags;
use pathlength_analysis::export::{Callgrind, Firefox, InstructionSink, Instructions};
use pathlength_analysis::replay::{Replay, Selection};
use proptest::prelude::*;
use serde_json::Value;
use trace::export::{ChampSim, Din};

use crate::made::{Item, Made};
use crate::recount::{One, expand, is_conditional, made, selection, went_elsewhere};

/// A profile as it is written, and the number of instructions that it is said to hold.
fn callgrind(made: &Made, selection: &Selection) -> (u64, String) {
    made.replay(selection, |shown| {
        let mut profile = Callgrind::new(shown.replay.dictionary, shown.replay.accesses);
        shown.to(&mut profile);
        let mut out = Vec::new();
        (profile.write(&mut out).unwrap(), String::from_utf8(out).unwrap())
    })
}

fn firefox(made: &Made, selection: &Selection) -> (u64, Value) {
    made.replay(selection, |shown| {
        let mut profile = Firefox::new(shown.replay.dictionary);
        shown.to(&mut profile);
        let mut out = Vec::new();
        let total = profile.write(&mut out).unwrap();
        (total, serde_json::from_slice(&out).unwrap_or_default())
    })
}

/// Gives the instructions to what `sink` makes.
fn each<S: InstructionSink>(made: &Made, selection: &Selection, sink: impl FnOnce(&Replay) -> S) -> (u64, S) {
    made.replay(selection, |shown| {
        let Replay { dictionary, accesses, .. } = shown.replay;
        let mut instructions = Instructions::new(dictionary, accesses, sink(&shown.replay));
        shown.to(&mut instructions);
        instructions.finish()
    })
}

fn champsim(made: &Made, selection: &Selection) -> Vec<u8> {
    let mut out = Vec::new();
    let sink = &mut out;
    let (_, champsim) =
        each(made, selection, |replay| ChampSim::new(&isa::Alpha, replay.dictionary.trace.blocks(), sink));
    champsim.finish().unwrap();
    out
}

fn count<'a>(all: impl IntoIterator<Item = &'a One>) -> [u64; 3] {
    let mut counts = [0; 3];
    for one in all {
        counts[0] += 1;
        one.access.iter().for_each(|(.., is_store)| counts[1 + usize::from(*is_store)] += 1);
    }
    counts
}

/// The numbers of a line of costs after the position.
fn costs(line: &str, behind: usize) -> Vec<u64> {
    line.split(' ').skip(behind).map(|number| number.parse().unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn profiles_add_up(made in made(), selection in selection()) {
        let all = expand(&made, &selection);
        let counts = count(all.iter().filter(|one| one.is_selected));
        let (total, text) = callgrind(&made, &selection);
        prop_assert_eq!(total, counts[0]);
        let (weight, profile) = firefox(&made, &selection);
        prop_assert_eq!(weight, counts[0]);
        if total == 0 {
            prop_assert!(text.is_empty() && profile.is_null());
            return Ok(());
        }
        let mut own = [0; 3];
        let mut is_call = false;
        for line in text.lines() {
            if let Some(summary) = line.strip_prefix("summary: ") {
                prop_assert_eq!(costs(summary, 0), counts);
            } else if line.starts_with("0x") && !std::mem::take(&mut is_call) {
                own.iter_mut().zip(costs(line, 2)).for_each(|(sum, cost)| *sum += cost);
            } else if line.starts_with("0x") {
                prop_assert!(costs(line, 2).iter().zip(counts).all(|(&cost, all)| cost <= all), "{}", line);
            }
            is_call = line.starts_with("calls=");
        }
        prop_assert_eq!(own, counts);
        let threads = profile["threads"].as_array().unwrap();
        let weights = threads.iter().flat_map(|thread| thread["samples"]["weight"].as_array().unwrap());
        prop_assert_eq!(weights.map(|weight| weight.as_u64().unwrap()).sum::<u64>(), counts[0]);
    }

    #[test]
    fn every_instruction_is_there_in_order(made in made(), selection in selection()) {
        let made = Made { threads: made.threads[..1].to_vec(), ..made };
        let all = expand(&made, &selection);
        let selected: Vec<usize> = (0..all.len()).filter(|&index| all[index].is_selected).collect();
        let mut text = String::new();
        for &index in &selected {
            let one = &all[index];
            text += &format!("2 {:x}\n", one.pc);
            if let Some((address, _, is_store)) = one.access {
                text += &format!("{} {address:x}\n", u8::from(is_store));
            }
        }
        let mut out = Vec::new();
        let (total, din) = each(&made, &selection, |_| Din::new(&mut out, true));
        din.finish().unwrap();
        prop_assert_eq!(total, selected.len() as u64);
        prop_assert_eq!(String::from_utf8(out).unwrap(), text);

        let out = champsim(&made, &selection);
        let records: Vec<&[u8]> = out.chunks(64).collect();
        prop_assert_eq!(records.len(), selected.len());
        for (record, &index) in records.into_iter().zip(&selected) {
            let one = &all[index];
            prop_assert_eq!(&record[..8], one.pc.to_le_bytes());
            let is_branch = isa::decode(one.word).is_some_and(|one| one.op.is(Flags::BRANCH));
            let is_taken = is_branch && (!is_conditional(one.word) || went_elsewhere(&all, index));
            prop_assert_eq!([record[8], record[9]], [is_branch, is_taken].map(u8::from), "at {:#x}", one.pc);
        }
    }
}

/// Where a branch at a unit's end went is found in the next chunk, whichever record of a chunk begins the next unit.
#[test]
fn the_last_branch_of_a_unit_is_taken() {
    for executions in 1..20 {
        // beq to itself.
        let mut items = vec![Item::Mark(Mark::UnitBegins(1))];
        items.extend(vec![Item::Block(0, vec![]); executions]);
        items.extend([Item::Mark(Mark::UnitBegins(2)), Item::Block(0, vec![])]);
        let made = Made::thread(&[(0x1000, &[0xe41f_ffff])], items);
        let out = champsim(&made, &Selection { units: Some(1..=1), ..Selection::default() });
        let taken: Vec<u8> = out.chunks(64).map(|record| record[9]).collect();
        assert_eq!(taken, vec![1; executions]);
    }
}

const CALL: u32 = 0xd340_0000; // bsr ra
const BRANCH: u32 = 0xc3e0_0000; // br
const RETURN: u32 = 0x6bfa_8001;
const NOP: u32 = 0x47ff_041f;

/// `main` calls `f`, which ends with a jump to `g`; that calls `h`, and `h` itself once.
fn tail_call() -> Made {
    let blocks: [(u64, &[u32]); 7] = [
        (0x1000, &[NOP, CALL]),
        (0x1008, &[NOP]),
        (0x1100, &[NOP, NOP, BRANCH]),
        (0x1200, &[NOP, CALL]),
        (0x1208, &[RETURN]),
        (0x1300, &[NOP, NOP, NOP, CALL]),
        (0x1310, &[RETURN]),
    ];
    let order = [0, 2, 3, 5, 5, 6, 6, 4, 1];
    let mut items = vec![Item::Mark(Mark::UnitBegins(4))];
    items.extend(order.map(|block| Item::Block(block, vec![])));
    items.push(Item::Mark(Mark::UnitEnds(4)));
    Made::thread(&blocks, items)
}

#[test]
fn a_tail_call_is_a_call_by_the_first_caller() {
    let (total, text) = callgrind(&tail_call(), &Selection::default());
    assert_eq!(total, 19);
    let calls: Vec<&str> =
        text.lines().filter(|line| line.starts_with("calls=")).map(|line| &line[6..]).collect();
    // The lines after them: the line of the call, and its cost.
    let mut lines = text.lines();
    let mut behind = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with("calls=") {
            behind.push(lines.next().unwrap());
        }
    }
    assert_eq!(calls, ["1 0x1100 0", "1 0x1200 0", "1 0x1300 0", "1 0x1300 0"]);
    assert_eq!(behind, ["0x1004 0 3 0 0", "0x1004 0 13 0 0", "0x1204 0 10 0 0", "0x130c 0 5 0 0"]);
}

#[test]
fn firefox_has_the_paths_of_calls_and_the_units() {
    let (_, profile) = firefox(&tail_call(), &Selection::default());
    let thread = &profile["threads"][0];
    let text = |index: &Value| thread["stringArray"][index.as_u64().unwrap() as usize].as_str().unwrap();
    let at = |table: &str, column: &str, index: &Value| {
        thread[table][column][index.as_u64().unwrap() as usize].clone()
    };
    let path = |mut stack: Value| {
        let mut names = Vec::new();
        while !stack.is_null() {
            let function = at("frameTable", "func", &at("stackTable", "frame", &stack));
            names.insert(0, text(&at("funcTable", "name", &function)));
            stack = at("stackTable", "prefix", &stack);
        }
        names.join(" ")
    };
    let samples = &thread["samples"];
    let stacks = samples["stack"].as_array().unwrap().iter().cloned().map(path);
    let weights = samples["weight"].as_array().unwrap().iter().map(|weight| weight.as_u64().unwrap());
    let expected = [
        ("main", 2),
        ("main f", 3),
        ("main g", 2),
        ("main g h", 4),
        ("main g h h", 5),
        ("main g h", 1),
        ("main g", 1),
        ("main", 1),
    ];
    let found: Vec<(String, u64)> = stacks.zip(weights).collect();
    assert_eq!(found, expected.map(|(path, weight)| (path.to_owned(), weight)));
    let unit = &thread["markers"]["data"][0];
    assert_eq!((unit["number"].as_f64(), unit["instructions"].as_f64()), (Some(4.0), Some(19.0)));
}
