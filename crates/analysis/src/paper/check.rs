//! The paper's figures against those that follow from its own measurements.

use super::{
    TABLE_6, TABLE_9, TABLE_10, TABLE_11, TABLE_12, THROUGHPUT, cached, lines, number, pairs, scaled,
    static_differences,
};
use crate::mix::{self, Mix};
use crate::statics::BYTE_WORD;
use isa::{Group, Op};
use std::collections::BTreeSet;
use table::{Kind, Table, Value};

const TABLE_13: &str = include_str!("../../paper/table13_groups.csv");
const TABLE_14: &str = include_str!("../../paper/table14_scaled_minus_cached.csv");

/// Something printed that does not follow from the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaperFinding {
    /// The table, or the text.
    pub source: &'static str,
    /// Which row, column or statement.
    pub subject: String,
    /// The printed value.
    pub printed: String,
    /// The figure that follows from the measurements.
    pub follows: String,
}

impl PaperFinding {
    fn new(
        source: &'static str,
        subject: impl ToString,
        printed: impl ToString,
        follows: impl ToString,
    ) -> PaperFinding {
        PaperFinding {
            source,
            subject: subject.to_string(),
            printed: printed.to_string(),
            follows: follows.to_string(),
        }
    }
}

/// Every inconsistency of the printed tables and of the statements about them. Tables 7 to 10 are
/// consistent, save for the direction that their titles give.
pub fn check() -> Vec<PaperFinding> {
    let mut findings = directions();
    findings.extend(table_6());
    findings.extend(transaction("Table 11", TABLE_11));
    findings.extend(transaction("Table 12", TABLE_12));
    findings.extend(table_13());
    findings.extend(table_14());
    findings.extend(statements());
    findings
}

/// [`check`] as a table.
pub fn findings() -> Table {
    let columns = ["place", "subject", "printed", "follows"].map(|name| (name, Kind::Text));
    let mut table = Table::new("paper-findings", "Where the 1997 paper contradicts itself", &columns);
    for finding in check() {
        table.row(vec![
            finding.source.into(),
            finding.subject.into(),
            finding.printed.into(),
            finding.follows.into(),
        ]);
    }
    table
}

/// The titles of Tables 6, 9 and 10 promise the original minus the byte/word build: `stb`, which
/// only the latter has, would be negative, and code bytes, of which it has fewer, positive.
fn directions() -> Vec<PaperFinding> {
    let cell = |csv, row: &str, column: usize| {
        lines(csv).1.find(|cells| cells[0] == row).map_or(0.0, |cells| real(cells[column]))
    };
    let reversed = [
        ("Table 6", cell(TABLE_6, "stb", 4) > 0.0),
        ("Table 9", cell(TABLE_9, "sqlservr.exe", 3) < 0.0),
        ("Table 10", cell(TABLE_10, "sqlservr.exe", 3) < 0.0),
    ];
    let reversed = reversed.into_iter().filter(|(_, reversed)| *reversed);
    let finding = |(source, _)| {
        PaperFinding::new(source, "title", "original minus byte/word", "byte/word minus original")
    };
    reversed.map(finding).collect()
}

/// A printed number, perhaps a percentage.
fn real(text: &str) -> f64 {
    text.trim_end_matches('%').parse().unwrap_or(f64::NAN)
}

/// Table 6 is to hold all instructions that differ and only those, so its columns should account
/// for the difference in code bytes.
fn table_6() -> Vec<PaperFinding> {
    let mut findings = Vec::new();
    let table = static_differences();
    let pairs = pairs();
    for name in BYTE_WORD.into_iter().chain(["trapb"]) {
        let listed = table.rows.iter().any(|row| row[0] == Value::from(name));
        let differ = pairs.iter().map(|(a, b)| mix::minus(b.mix[name], a.mix[name]));
        let differ: i64 = differ.map(i64::abs).sum();
        if !listed && differ > 0 {
            let follows = format!("differs by {differ} in Tables 7 and 8");
            findings.push(PaperFinding::new(
                "Table 6",
                format!("{name} among those that differ"),
                "no row",
                follows,
            ));
        }
    }
    for row in &table.rows {
        if row[1..].iter().all(|cell| *cell == Value::Integer(0)) {
            let Value::Text(name) = &row[0] else { continue };
            findings.push(PaperFinding::new(
                "Table 6",
                format!("{name} among those that differ"),
                "a row",
                "no difference",
            ));
        }
    }
    for (a, b) in &pairs {
        let column = table.columns.iter().position(|column| column.name == a.image).unwrap_or_default();
        let deltas = table.rows.iter().map(|row| match row[column] {
            Value::Integer(delta) => Some(delta),
            _ => None,
        });
        // One unreadable cell and the sum is not known.
        let Some(listed) = deltas.sum::<Option<i64>>() else { continue };
        let unlisted: i64 =
            ["sextb", "sextw", "trapb"].map(|name| mix::minus(b.mix[name], a.mix[name])).iter().sum();
        let code = mix::minus(b.code_bytes, a.code_bytes) / 4;
        if listed + unlisted != code {
            let subject = format!("sum of {}, sextb, sextw and trapb added", a.image);
            findings.push(PaperFinding::new(
                "Table 6",
                subject,
                listed + unlisted,
                format!("{code} by Tables 7 and 8"),
            ));
        }
    }
    findings
}

/// A printed difference: `-5`, `+5`, and `(5)` for a negative one.
fn delta(text: &str) -> i64 {
    let magnitude: i64 = text.trim_matches(['(', ')', '+', '-']).parse().unwrap_or_default();
    if text.starts_with(['-', '(']) { -magnitude } else { magnitude }
}

/// Each delta and percentage against the two counts before it, and the totals against the rows.
fn transaction(source: &'static str, csv: &'static str) -> Vec<PaperFinding> {
    let mut findings = Vec::new();
    let mut reversed = Vec::new();
    let mut sums = (0, 0);
    for row in lines(csv).1 {
        let (name, a, b) = (row[0], number(row[1]), number(row[2]));
        let follows = mix::minus(b, a);
        let printed = delta(row[3]);
        if printed == -follows && follows != 0 {
            reversed.push(name);
        } else if printed.abs() != follows.abs() {
            findings.push(PaperFinding::new(source, format!("delta of {name}"), row[3], follows));
        }
        let change = match mix::change(a as f64, b as f64) {
            Value::Real(change) => format!("{:+}%", change.round() as i64),
            _ => "N/A".into(),
        };
        if row[4].trim_start_matches('+') != change.trim_start_matches('+') {
            findings.push(PaperFinding::new(source, format!("% delta of {name}"), row[4], change));
        }
        if name == "total" {
            for (column, printed, sum) in [("original", a, sums.0), ("byte/word", b, sums.1)] {
                if printed != sum {
                    findings.push(PaperFinding::new(source, format!("total of {column}"), printed, sum));
                }
            }
            let sum = mix::minus(sums.1, sums.0);
            if printed.abs() != sum.abs() {
                findings.push(PaperFinding::new(source, "sum of the deltas", row[3], sum));
            }
        } else {
            sums = (sums.0 + a, sums.1 + b);
        }
    }
    if !reversed.is_empty() {
        let subject = format!("sign of {} deltas, from {} on", reversed.len(), reversed[0]);
        findings.push(PaperFinding::new(
            source,
            subject,
            "original minus byte/word",
            "byte/word minus original",
        ));
    }
    findings
}

/// Table 13 names every instruction once, and only instructions.
fn table_13() -> Vec<PaperFinding> {
    let mut findings = Vec::new();
    let executed = scaled()[0].clone();
    let mut seen = BTreeSet::new();
    for name in lines(TABLE_13).1.flat_map(|row| row[1].split(' ')) {
        if !seen.insert(name) {
            findings.push(PaperFinding::new("Table 13", name, "twice", "once"));
        }
        let instruction = Op::ALL.iter().any(|op| op.mnemonic() == name);
        if !instruction && !executed.contains_key(name) {
            findings.push(PaperFinding::new("Table 13", name, "a member", "no Alpha instruction"));
        }
    }
    findings
}

/// Table 14 against Tables 11 and 12. It is to hold the scaled minus the cached transaction.
fn table_14() -> Vec<PaperFinding> {
    let (scaled, cached) = (scaled(), cached());
    let mut findings = Vec::new();
    let (mut agree, mut opposite) = (0, 0);
    let mut sums = [0, 0];
    for row in lines(TABLE_14).1 {
        for build in [0, 1] {
            let printed = delta(row[build + 1]);
            if row[0] == "total" {
                if printed != sums[build] {
                    findings.push(PaperFinding::new("Table 14", "total", printed, sums[build]));
                }
                continue;
            }
            sums[build] += printed;
            let follows = mix::minus(scaled[build][row[0]], cached[build][row[0]]);
            match printed {
                _ if printed == follows => agree += usize::from(follows != 0),
                _ if printed == -follows => opposite += 1,
                _ => findings.push(PaperFinding::new("Table 14", row[0], printed, follows)),
            }
        }
    }
    if opposite > agree {
        findings.push(PaperFinding::new(
            "Table 14",
            format!("title, and the text about it: all {opposite} differences"),
            "scaled minus cached",
            "cached minus scaled",
        ));
    }
    findings
}

/// The measurements that the text speaks of.
struct PaperMeasurements {
    scaled: [Mix; 2],
    cached: [Mix; 2],
}

impl PaperMeasurements {
    fn throughput(&self, scheme: &str) -> f64 {
        THROUGHPUT.iter().find(|(name, _)| *name == scheme).map_or(f64::NAN, |(_, rate)| *rate as f64)
    }
}

fn sum(mix: &Mix, counted: impl Fn(&str) -> bool) -> f64 {
    mix.iter().filter(|(name, _)| counted(name)).map(|(_, n)| *n as f64).sum()
}

fn share(mix: &Mix, part: impl Fn(&str) -> bool, whole: impl Fn(&str) -> bool) -> f64 {
    100.0 * sum(mix, part) / sum(mix, whole)
}

fn decrease([a, b]: &[Mix; 2], counted: impl Fn(&str) -> bool) -> f64 {
    100.0 - 100.0 * sum(b, &counted) / sum(a, &counted)
}

/// Instructions whose count compares as asked.
fn count([a, b]: &[Mix; 2], compares: impl Fn(u64, u64) -> bool) -> f64 {
    a.iter().filter(|(name, n)| compares(**n, b[*name])).count() as f64
}

fn any(_: &str) -> bool {
    true
}

fn load(name: &str) -> bool {
    mix::group(name) == Group::IntegerLoad
}

fn byte_word(name: &str) -> bool {
    BYTE_WORD.contains(&name)
}

/// A statement of the text: what it speaks of, the figure it gives, and how that follows.
type PaperStatement = (&'static str, &'static str, fn(&PaperMeasurements) -> f64);

#[rustfmt::skip]
const STATEMENTS: &[PaperStatement] = &[
    ("% fewer instructions, scaled", "7", |m| decrease(&m.scaled, any)),
    ("% fewer instructions, cached", "4", |m| decrease(&m.cached, any)),
    ("% of scaled instructions that are new", "2.6", |m| share(&m.scaled[1], byte_word, any)),
    ("% of cached instructions that are new", "2.7", |m| share(&m.cached[1], byte_word, any)),
    ("% fewer ldl_l and stl_c, scaled", "3", |m| decrease(&m.scaled, |name| name == "ldl_l" || name == "stl_c")),
    ("% fewer inswl, scaled", "47", |m| decrease(&m.scaled, |name| name == "inswl")),
    ("% fewer insbl, scaled", "90", |m| decrease(&m.scaled, |name| name == "insbl")),
    ("% fewer sll, scaled", "38", |m| decrease(&m.scaled, |name| name == "sll")),
    ("% fewer sra, cached", "53", |m| decrease(&m.cached, |name| name == "sra")),
    ("% fewer ldq_u, scaled", "22", |m| decrease(&m.scaled, |name| name == "ldq_u")),
    ("% fewer ldq_u, cached", "20", |m| decrease(&m.cached, |name| name == "ldq_u")),
    ("% fewer lda, scaled", "16", |m| decrease(&m.scaled, |name| name == "lda")),
    ("% fewer lda, cached", "15", |m| decrease(&m.cached, |name| name == "lda")),
    ("types of instruction, scaled", "81", |m| m.scaled[0].len() as f64),
    ("types that decreased, scaled", "58", |m| count(&m.scaled, |a, b| b < a)),
    ("types that did not change, scaled", "21", |m| count(&m.scaled, |a, b| b == a)),
    ("types that increased, scaled, the new ones apart", "4", |m| count(&m.scaled, |a, b| b > a && a > 0)),
    ("types that decreased, cached", "22", |m| count(&m.cached, |a, b| b < a)),
    ("types that increased, cached", "29", |m| count(&m.cached, |a, b| b > a)),
    ("types that did not change, cached", "22", |m| count(&m.cached, |a, b| b == a)),
    ("% integer loads, scaled original", "32", |m| share(&m.scaled[0], load, any)),
    ("% integer loads, scaled byte/word", "32", |m| share(&m.scaled[1], load, any)),
    ("% integer loads, cached original", "32", |m| share(&m.cached[0], load, any)),
    ("% integer loads, cached byte/word", "32", |m| share(&m.cached[1], load, any)),
    ("% ldbu and ldwu of the integer instructions, scaled", "1",
        |m| share(&m.scaled[1], |name| byte_word(name) && load(name), |name| mix::group(name) != Group::Other)),
    ("% stb and stw of the integer stores, scaled", "18",
        |m| share(&m.scaled[1], |name| byte_word(name) && !load(name), |name| mix::group(name) == Group::IntegerStore)),
    ("% fewer of the group that shrank most, scaled", "54",
        |m| Group::ALL.map(|group| decrease(&m.scaled, |name| mix::group(name) == group)).into_iter().fold(0.0, f64::max)),
    ("% more performance, by the abstract", "5",
        |m| 100.0 * m.throughput("byte-word") / m.throughput("original") - 100.0),
    ("% more transactions per second, byte/word", "3.5",
        |m| 100.0 * m.throughput("byte-word") / m.throughput("original") - 100.0),
    ("% fewer transactions per second, emulation", "73.9",
        |m| 100.0 - 100.0 * m.throughput("emulation") / m.throughput("original")),
    ("microseconds to emulate an instruction (5 to 7)", "5",
        |m| 1e6 * (m.throughput("emulation").recip() - m.throughput("byte-word").recip()) / sum(&m.cached[1], byte_word)),
];

/// Every statement whose figure is not the one that follows, with as many decimals as printed.
fn statements() -> Vec<PaperFinding> {
    let measured = PaperMeasurements { scaled: scaled(), cached: cached() };
    let mut findings = Vec::new();
    for (subject, printed, follows) in STATEMENTS {
        let follows = follows(&measured);
        let decimals = printed.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        if format!("{follows:.decimals$}") != *printed {
            let digits = if follows.fract() == 0.0 { 0 } else { decimals.max(1) };
            findings.push(PaperFinding::new("text", subject, printed, format!("{follows:.digits$}")));
        }
    }
    findings
}
