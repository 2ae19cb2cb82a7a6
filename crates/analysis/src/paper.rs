//! The tables of the 1997 study of SQL Server (Hunter and Betts, "Measured Effects of Adding Byte
//! and Word Instructions to the Alpha Architecture") as data, for comparison with today's.
//!
//! Only what was measured is read: Tables 6, 7, 8, 11 and 12. The others follow from these, and
//! [`check`] compares what follows with what was printed.

mod check;

pub use check::{PaperFinding, check, findings};

use crate::mix::{self, Mix};
use crate::statics::{self, BYTE_WORD, ImageStatics, Pair};
use table::{Kind, Table, Value};

/// Transactions per second of the three schemes, cached, on a 21164 of 400 MHz.
pub const THROUGHPUT: [(&str, u64); 3] = [("original", 444), ("byte-word", 460), ("emulation", 116)];

const TABLE_6: &str = include_str!("../paper/table06_static_deltas.csv");
const TABLE_7: &str = include_str!("../paper/table07_byte_word_images.csv");
const TABLE_8: &str = include_str!("../paper/table08_original_images.csv");
const TABLE_9: &str = include_str!("../paper/table09_differences.csv");
const TABLE_10: &str = include_str!("../paper/table10_changes.csv");
const TABLE_11: &str = include_str!("../paper/table11_scaled_transaction.csv");
const TABLE_12: &str = include_str!("../paper/table12_cached_transaction.csv");

const LABELS: [&str; 2] = ["original", "byte/word"];

/// The lines of a file of ours: heading, then rows.
fn lines(csv: &'static str) -> (Vec<&'static str>, impl Iterator<Item = Vec<&'static str>>) {
    let mut lines = csv.lines().map(|line| line.split(',').collect());
    (lines.next().unwrap_or_default(), lines)
}

/// A number of a file of ours.
fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text} in the paper's data is no count"))
}

fn images(csv: &'static str) -> Vec<ImageStatics> {
    let (heading, rows) = lines(csv);
    let image = |row: Vec<&'static str>| {
        let cell =
            |name: &str| heading.iter().zip(&row).find(|(column, _)| **column == name).map(|(_, cell)| *cell);
        let count = |name: &str| number(cell(name).expect("a column of Tables 7 and 8"));
        let counted = BYTE_WORD.iter().chain(&["trapb"]);
        ImageStatics {
            image: row[0].into(),
            file_bytes: count("file_bytes"),
            text_bytes: count("text_bytes"),
            code_bytes: count("code_bytes"),
            functions: count("functions"),
            mix: counted.map(|&name| (name, count(name))).collect(),
            nops: count("nops"),
            unops: None,
            fnops: None,
        }
    };
    rows.map(image).collect()
}

fn transaction(csv: &'static str) -> [Mix; 2] {
    [1, 2].map(|column| {
        let rows = lines(csv).1.filter(|row| row[0] != "total");
        rows.map(|row| (row[0], number(row[column]))).collect()
    })
}

/// The images of the original build (Table 8).
pub fn original_images() -> Vec<ImageStatics> {
    images(TABLE_8)
}

/// The images of the byte/word build (Table 7).
pub fn byte_word_images() -> Vec<ImageStatics> {
    images(TABLE_7)
}

/// Instructions of a scaled transaction, original and byte/word (Table 11).
pub fn scaled() -> [Mix; 2] {
    transaction(TABLE_11)
}

/// Instructions of a cached transaction, original and byte/word (Table 12).
pub fn cached() -> [Mix; 2] {
    transaction(TABLE_12)
}

/// The images of both builds.
fn pairs() -> Vec<Pair> {
    original_images().into_iter().zip(byte_word_images()).collect()
}

/// How many more of each instruction the byte/word images have (Table 6). What the scan does not
/// show readably is missing.
pub fn static_differences() -> Table {
    let (heading, rows) = lines(TABLE_6);
    let columns: Vec<_> = std::iter::once(("instruction", Kind::Text))
        .chain(heading.iter().skip(1).map(|image| (*image, Kind::Delta)))
        .collect();
    let mut table =
        Table::new("paper-table-6", "Instructions in 1997's images, byte/word minus original", &columns);
    for row in rows {
        let deltas = row[1..].iter().map(|cell| Value::from(cell.parse::<i64>().ok()));
        table.row(std::iter::once(row[0].into()).chain(deltas).collect());
    }
    table.notes.push("Four cells cannot be read in the scan.".into());
    table
}

/// Every table of the paper that reports a count, computed by the code that computes today's, with
/// what was printed differently as notes.
pub fn tables() -> Vec<Table> {
    let findings = check();
    let mut tables = computed_tables();
    for table in &mut tables {
        let source = table.name.replace("paper-table-", "Table ");
        let here = findings.iter().filter(|finding| finding.source == source);
        table.notes.extend(here.map(|finding| {
            format!("Printed as {} ({}); follows: {}.", finding.printed, finding.subject, finding.follows)
        }));
    }
    tables
}

fn computed_tables() -> Vec<Table> {
    let ([a, b], [c, d]) = (&scaled(), &cached());
    let mixes =
        [("scaled original", a), ("scaled byte/word", b), ("cached original", c), ("cached byte/word", d)];
    vec![
        static_differences(),
        statics::images("paper-table-7", "1997's byte/word images", &byte_word_images()),
        statics::images("paper-table-8", "1997's original images", &original_images()),
        statics::differences("paper-table-9", "1997's images, byte/word minus original", &pairs()),
        statics::changes("paper-table-10", "1997's images, change from original to byte/word", &pairs()),
        mix::difference("paper-table-11", "1997's scaled transaction", LABELS, a, b),
        mix::difference("paper-table-12", "1997's cached transaction", LABELS, c, d),
        mix::group_shares("paper-figure-4", "Instruction groups of 1997's transactions", &mixes),
        mix::scaled_minus_cached(
            "paper-table-14",
            "1997's scaled transaction minus the cached one",
            LABELS,
            [a, b],
            [c, d],
        ),
    ]
}
