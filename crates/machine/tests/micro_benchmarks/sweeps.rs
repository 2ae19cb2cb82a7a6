//! Sweeps of every numeric field of the machines' descriptions: a longer latency makes no program faster, and more entries or a greater
//! width make none slower, but for the anomalies that [`ANOMALIES`] explains.

use std::collections::BTreeSet;
use std::path::Path;

use events::{Block, Consumer, Thread};
use pathlength_machine::{Machine, MachineSetting, TimingModel};
use toml::{Table, Value};

use super::DIFFERENT_MACHINES;
use super::assembler::assemble;
use super::described::Described;

/// The last names of fields with times: more of them is never faster.
const TIMES: &[&str] = &[
    "latency",
    "beyond_cache",
    "miss_cycles",
    "latency_ns",
    "mispredict",
    "call_pal",
    "system_call",
    "taken",
    "misfetch",
    "redirect",
    "stages",
    "dispatch_to_issue",
    "replay",
    "partial_forward",
    "forward",
    "prefetch_interval",
    "cycles",
    "drain_cycles",
    "full_replay",
    "use_replay",
    "outstanding_replay",
    "after_store_replay",
];

/// Those of fields with sizes and widths: more of them is never slower.
const SIZES: &[&str] = &[
    "size",
    "entries",
    "buffer",
    "width",
    "dispatch",
    "retire",
    "reorder_buffer",
    "integer_registers",
    "float_registers",
    "queue",
    "outstanding",
    "outstanding_memory",
    "writes",
    "return_stack",
];

/// Fields that are neither: properties of the processor whose effect has no sign, and what other models use.
const OTHERS: &[&str] = &[
    // A clock, and geometry: other lines and pages are other misses.
    "clock_mhz",
    "level",
    "ways",
    "line",
    "page",
    "granularity_hints",
    "stream",
    "next_lines",
    // A group of another length is aligned differently; the 21164's rules name cycles after a store; draining later merges more.
    "group",
    "not_after_store",
    "drain_from",
    "to_register",
    "write",
    "before",
    // Predictors learn other things; a table of loads that wait makes loads wait.
    "bits",
    "history",
    "histories",
    "tag_bits",
    "wait_table",
    "wait_table_cycles",
];

/// Sections of other models.
const OTHER_SECTIONS: &[&str] = &["coherence", "storage", "emulation", "predictor"];

/// Machines, and fields of which more is not monotone on the program of the test: the share of its cycles.
const ANOMALIES: &[(&str, &str, f64)] = &[
    // Blocks leave a larger buffer later, and L2 replaces other lines; a load of a line's other half finds it absent for longer.
    ("alphastation500", "write_buffer.entries", 0.006),
    // Registers are written in order: what writes its register later is issued sooner after a multiplication that writes the same one.
    ("dec3000", "logical.latency", 0.0001),
    // A load that is issued later leaves the entry for an outstanding line to another one (a scheduling anomaly, as Graham's); with 60
    // entries there is none.
    ("pentium-pro-core", "loads.forward", 0.0001),
];

/// The description of a machine with its base.
fn description(name: &str) -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../data/machines/{name}.toml"));
    let mut own: Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let Some(Value::String(base)) = own.remove("base") else { return own };
    let mut whole = description(&base);
    merge(&mut whole, own);
    whole
}

fn merge(whole: &mut Table, own: Table) {
    for (key, value) in own {
        match (whole.get_mut(&key), value) {
            (Some(Value::Table(part)), Value::Table(own)) => merge(part, own),
            (_, Value::String(none)) if none == "none" => drop(whole.remove(&key)),
            (_, value) => drop(whole.insert(key, value)),
        }
    }
}

/// Adds the fields with numbers, by their paths.
fn numbers(table: &Table, path: &str, list: &mut Vec<(String, f64)>) {
    for (key, value) in table {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match value {
            Value::Table(table) => numbers(table, &path, list),
            Value::Integer(number) => list.push((path, *number as f64)),
            Value::Float(number) => list.push((path, *number)),
            Value::String(text) if key == "size" => {
                let (digits, unit) = text.split_at(text.len() - 1);
                let unit = f64::from(if unit == "K" { 1 << 10 } else { 1 << 20 });
                list.push((path, digits.parse::<f64>().unwrap() * unit));
            }
            _ => {}
        }
    }
}

/// A program of blocks with a walk through them: records.
struct Walk {
    blocks: Vec<(u64, Vec<u32>)>,
    records: Vec<u64>,
}

const CODE: u64 = 0x1_2000_0000;
const BLOCKS: usize = 150;
const EXECUTIONS: usize = 700;

fn body(random: &mut fastrand::Rng) -> String {
    let mut register = || random.u8(1..12);
    let [a, b, c] = [register(), register(), register()];
    match random.u32(..40) {
        0..9 => format!("addq r{a},r{b},r{c}"),
        9..11 => format!("sll r{a},r{b},r{c}"),
        11 => format!("mulq r{a},r{b},r{c}"),
        12..14 => format!("cmplt r{a},r{b},r{c}"),
        14..22 => format!("ldq r{a},0(r{b})"),
        22 => format!("ldl r{a},4(r{b})"),
        23..27 => format!("stq r{a},0(r{b})"),
        27 => format!("stl r{a},4(r{b})"),
        28 => format!("ldt f{a},0(r{b})"),
        29 => format!("stt f{a},0(r{b})"),
        30..32 => format!("addt f{a},f{b},f{c}"),
        32 => format!("mult f{a},f{b},f{c}"),
        33 => format!("divt f{a},f{b},f{c}"),
        34 => ["mb", "wmb", "trapb"][random.usize(..3)].into(),
        35 => ["call_pal 158", "call_pal 131", "unop"][random.usize(..3)].into(),
        _ => format!("xor r{a},r{b},r{c}"),
    }
}

/// An address of data: most in few lines, some in many pages.
fn address(random: &mut fastrand::Rng) -> u64 {
    let most = match random.u32(..20) {
        0..10 => 1 << 9,
        10..15 => 1 << 13,
        15..18 => 1 << 17,
        18 => 1 << 21,
        _ => 1 << 24,
    };
    0x1_4000_0000 + (random.u64(..most) & !7)
}

fn walk(seed: u64) -> Walk {
    let mut random = fastrand::Rng::with_seed(seed);
    let bodies: Vec<Vec<String>> =
        (0..BLOCKS).map(|_| (0..random.usize(1..9)).map(|_| body(&mut random)).collect()).collect();
    let mut starts = vec![CODE];
    bodies.iter().for_each(|body| starts.push(starts.last().unwrap() + 4 * body.len() as u64 + 4));
    let targets: Vec<usize> = (0..BLOCKS).map(|_| random.usize(..BLOCKS)).collect();
    let mut blocks = Vec::new();
    for (number, body) in bodies.iter().enumerate() {
        let end = starts[number] + 4 * body.len() as u64;
        let distance = starts[targets[number]] as i64 - end as i64 - 4;
        let end = format!("bne r{},{distance}", random.u8(1..12));
        let is_last = number + 1 == BLOCKS;
        let end = if is_last { format!("br r31,{distance}") } else { end };
        blocks.push((starts[number], assemble(&[&body[..], &[end]].concat().join(";"))));
    }
    let (mut records, mut block) = (Vec::new(), 0);
    for _ in 0..EXECUTIONS {
        records.push(!(block as u64));
        let accesses =
            blocks[block].1.iter().filter(|&&word| isa::decode(word).unwrap().access_size().is_some());
        records.extend(accesses.map(|_| address(&mut random)));
        let is_taken = block + 1 == BLOCKS || random.u32(..4) == 0;
        block = if is_taken { targets[block] } else { block + 1 };
    }
    Walk { blocks, records }
}

fn cycles(machine: &Machine, walk: &Walk) -> u64 {
    let mut time = TimingModel::new(machine).unwrap();
    walk.blocks
        .iter()
        .for_each(|(start, words)| time.define(&Block::new(&isa::Alpha, *start, words.clone())));
    time.executed(Thread::default(), &walk.records);
    time.cycles().total()
}

#[test]
fn sweeps_are_monotone() {
    let walk = walk(1);
    let (mut wrong, mut unknown, mut swept) = (Vec::new(), BTreeSet::new(), 0);
    for described in Described::all().iter().filter(|one| DIFFERENT_MACHINES.contains(&one.name)) {
        let name = described.name;
        let base = cycles(&described.machine, &walk) as f64;
        let mut fields = Vec::new();
        numbers(&description(name), "", &mut fields);
        for (field, value) in fields {
            let last = field.rsplit('.').next().unwrap();
            let (is_time, is_station) = (TIMES.contains(&last), field.contains(".stations."));
            if OTHER_SECTIONS.iter().any(|section| field.starts_with(section)) || OTHERS.contains(&last) {
                continue;
            }
            if !is_time && !is_station && !SIZES.contains(&last) {
                unknown.insert(field);
                continue;
            }
            let values = if is_time { vec![value + 1.0, 2.0 * value + 3.0] } else { vec![2.0 * value] };
            for more in values {
                let setting: MachineSetting = format!("{field}={more}").parse().unwrap();
                // Some values are impossible, as a latency beyond that of the next level.
                let Ok(machine) = Machine::find_with(name, &[setting]) else { continue };
                let found = cycles(&machine, &walk) as f64;
                swept += 1;
                let share = if is_time { base - found } else { found - base } / base;
                let allowed = ANOMALIES.iter().find(|one| one.0 == name && field.ends_with(one.1));
                if share > allowed.map_or(0.0, |one| one.2) {
                    wrong.push(format!(
                        "{name}: {field} {value} to {more}: {base} to {found} cycles, {:.2} %",
                        100.0 * share
                    ));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "fields that are neither times nor sizes: {unknown:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(swept > 500, "{swept}");
}
