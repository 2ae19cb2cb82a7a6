//! Compares RISC-V's decoder with the encodings of <https://github.com/riscv/riscv-opcodes>, whose folder is the argument: random
//! words of each instruction there have its name here, and random words that have a name here have it there. It prints what differs:
//! reserved words and instructions of privileged modes are no instructions here. The exit status is 1 if a name here is not there.

use std::collections::BTreeSet;

use pathlength_isa::{decode_riscv, riscv_length};

/// The files with the extensions of the table.
const FILES: [&str; 47] = [
    "rv_i",
    "rv64_i",
    "rv_m",
    "rv64_m",
    "rv_a",
    "rv64_a",
    "rv_f",
    "rv64_f",
    "rv_d",
    "rv64_d",
    "rv_c",
    "rv64_c",
    "rv_c_d",
    "rv_zicsr",
    "rv_zifencei",
    "rv_zicond",
    "rv_zicbo",
    "rv_zimop",
    "rv_zcmop",
    "rv_zawrs",
    "rv_zacas",
    "rv64_zacas",
    "rv_zabha",
    "rv_zabha_zacas",
    "rv_zba",
    "rv64_zba",
    "rv_zbb",
    "rv64_zbb",
    "rv_zbc",
    "rv_zbkb",
    "rv64_zbkb",
    "rv_zbkc",
    "rv_zbkx",
    "rv_zbs",
    "rv64_zbs",
    "rv_zcb",
    "rv64_zcb",
    "rv_zfh",
    "rv64_zfh",
    "rv_zfhmin",
    "rv_d_zfhmin",
    "rv_f_zfa",
    "rv_d_zfa",
    "rv_zfh_zfa",
    "rv_c_zihintntl",
    "rv_zihintntl",
    "rv_system",
];

struct Row {
    name: String,
    mask: u32,
    value: u32,
    arguments: Vec<String>,
}

/// A number as the files write it.
fn number(text: &str) -> u32 {
    match text.split_at_checked(2) {
        Some(("0x", digits)) => u32::from_str_radix(digits, 16),
        Some(("0b", digits)) => u32::from_str_radix(digits, 2),
        _ => text.parse(),
    }
    .unwrap_or_else(|_| panic!("a number: {text}"))
}

/// A line: the name, arguments, and bits with values (`31..25=0`, `12=0`).
fn row(line: &str) -> Option<Row> {
    let line = line.split('#').next()?;
    let line = match line.strip_prefix("$pseudo_op") {
        Some(rest) => rest.trim().split_once(' ')?.1,
        None => line,
    };
    let mut words = line.split_whitespace();
    let mut row = Row { name: words.next()?.replace('_', "."), mask: 0, value: 0, arguments: Vec::new() };
    for word in words {
        let Some((bits, value)) = word.split_once('=') else {
            row.arguments.push(word.into());
            continue;
        };
        let (high, low) = bits.split_once("..").unwrap_or((bits, bits));
        // Aliases whose fields are equal to each other are left out.
        if bits.starts_with("rs") {
            return None;
        }
        let (high, low) = (number(high), number(low));
        let mask = (u32::MAX >> (31 - high)) & (u32::MAX << low);
        row.mask |= mask;
        row.value |= number(value) << low & mask;
    }
    Some(row)
}

fn main() {
    let folder = std::env::args().nth(1).expect("usage: riscv_opcodes FOLDER");
    let mut rows = Vec::new();
    for file in FILES {
        if let Ok(text) = std::fs::read_to_string(format!("{folder}/extensions/{file}")) {
            rows.extend(text.lines().filter(|line| !line.starts_with("$import")).filter_map(row));
        }
    }
    let mut random = fastrand::Rng::with_seed(1);
    let (mut compared, mut differences) = (BTreeSet::new(), BTreeSet::new());
    for row in &rows {
        for _ in 0..2000 {
            let word = row.value | random.u32(..) & !row.mask;
            // The files' masks of two-byte instructions have bits of 16 only, and lines that are more special follow others.
            let word = if riscv_length(word) == 2 { word & 0xffff } else { word };
            let matching: Vec<&Row> = rows.iter().filter(|row| word & row.mask == row.value).collect();
            let most = matching.iter().map(|row| row.mask.count_ones()).max().unwrap_or(0);
            let name = decode_riscv(word).map(|found| found.mnemonic());
            match name {
                Some(name) if matching.iter().any(|row| is_named(&row.name, name)) => {
                    compared.insert(row.name.clone());
                }
                _ => {
                    if row.mask.count_ones() == most {
                        differences
                            .insert(format!("{} {:?} {:?} here {name:?}", row.name, row.arguments, row.mask));
                    }
                }
            }
        }
    }
    let mut strangers = BTreeSet::new();
    for _ in 0..2_000_000 {
        let word = random.u32(..);
        let word = if riscv_length(word) == 2 { word & 0xffff } else { word };
        let Some(name) = decode_riscv(word).map(|found| found.mnemonic()) else { continue };
        if !rows.iter().any(|row| word & row.mask == row.value && is_named(&row.name, name)) {
            strangers.insert(name);
        }
    }
    println!("{} of {} instructions compared", compared.len(), rows.len());
    differences.iter().for_each(|text| println!("there: {text}"));
    strangers.iter().for_each(|name| println!("not there: {name}"));
    std::process::exit(i32::from(!strangers.is_empty()));
}

/// Whether an instruction's name there is the one here. Aliases there have further names.
fn is_named(there: &str, here: &str) -> bool {
    let numbered =
        |name: &str| here == name && there.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    there == here || ["mop.r", "mop.rr", "c.mop"].into_iter().any(numbered)
}
