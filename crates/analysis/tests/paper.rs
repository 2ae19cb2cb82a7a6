//! The paper's printed tables, from its measurements by our own table code.

use pathlength_analysis::{mix, paper};
use std::collections::{BTreeMap, BTreeSet};
use table::{Kind, Table, Value};

/// The file of the printed table with this number.
fn printed(number: u32) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/paper");
    let mut files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let prefix = format!("table{number:02}_");
    let path = files.find(|path| path.file_name().unwrap().to_string_lossy().starts_with(&prefix)).unwrap();
    std::fs::read_to_string(path).unwrap()
}

fn rows(csv: &str) -> Vec<Vec<&str>> {
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert!(rows.len() > 1, "the printed table has rows");
    rows
}

fn table(name: &str) -> Table {
    paper::tables().into_iter().find(|table| table.name == name).unwrap()
}

/// The cells of an image's row, without the columns that the paper lacks.
fn image_row(table: &Table, image: &str) -> Vec<Value> {
    let row = table.rows.iter().find(|row| row[0] == image.into()).unwrap();
    let printed = |name: &str| name != "unops" && name != "fnops";
    table
        .columns
        .iter()
        .zip(row)
        .filter(|(column, _)| printed(&column.name))
        .map(|(_, cell)| cell.clone())
        .collect()
}

fn real(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        _ => None,
    }
}

#[test]
fn tables_7_and_8_are_reproduced_with_their_shares() {
    for (name, number) in [("paper-table-7", 7), ("paper-table-8", 8)] {
        let table = table(name);
        for printed in rows(&printed(number)) {
            let ours = image_row(&table, printed[0]);
            assert_eq!(ours.len(), printed.len());
            for (ours, printed) in ours[1..].iter().zip(&printed[1..]) {
                // Shares are printed with two, three or four decimals.
                let tolerance = match printed.split_once('.') {
                    Some((_, decimals)) => 0.5001 * 10f64.powi(-(decimals.len() as i32)),
                    None => 0.0,
                };
                let difference = real(ours).unwrap() - printed.parse::<f64>().unwrap();
                assert!(difference.abs() <= tolerance, "{name} {ours:?} {printed}");
            }
        }
    }
}

#[test]
fn table_9_follows_from_7_and_8() {
    let table = table("paper-table-9");
    for printed in rows(&printed(9)) {
        for (ours, printed) in image_row(&table, printed[0])[1..].iter().zip(&printed[1..]) {
            let ours = match real(ours).unwrap().round() {
                0.0 => "0".into(),
                number => format!("{number:+}"),
            };
            assert_eq!(ours, *printed);
        }
    }
}

#[test]
fn table_10_follows_from_7_and_8() {
    let table = table("paper-table-10");
    for printed in rows(&printed(10)) {
        for (ours, printed) in image_row(&table, printed[0])[1..].iter().zip(&printed[1..]) {
            let ours = match real(ours) {
                None => "N/A".into(),
                Some(0.0) => "0.000%".into(),
                Some(change) => format!("{change:+.3}%"),
            };
            assert_eq!(ours, *printed);
        }
    }
}

#[test]
fn table_6_has_its_readable_cells_and_the_others_missing() {
    let table = paper::static_differences();
    assert_eq!((table.rows.len(), table.columns.len()), (60, 6));
    let missing: Vec<_> = table.rows.iter().filter(|row| row.contains(&Value::Missing)).collect();
    let names: Vec<_> = missing.iter().map(|row| row[0].clone()).collect();
    assert_eq!(names, ["ldah", "insll", "cmpult", "cmpule"].map(Value::from));
    // Its byte/word rows are those of Table 9.
    for printed in rows(&printed(9)) {
        let column = table.columns.iter().position(|column| column.name == printed[0]).unwrap();
        for (name, at) in [("ldbu", 7), ("ldwu", 9), ("stb", 11), ("stw", 13)] {
            let row = table.rows.iter().find(|row| row[0] == name.into()).unwrap();
            assert_eq!(real(&row[column]).unwrap(), printed[at].parse::<f64>().unwrap(), "{name}");
        }
    }
}

/// Rows of a printed transaction whose delta or percentage is not ours, the sign of the delta
/// apart.
fn misprints(name: &str, number: u32) -> Vec<String> {
    let table = table(name);
    let ours: BTreeMap<String, &Vec<Value>> =
        table.rows.iter().map(|row| (format!("{:?}", row[0]), row)).collect();
    let mut misprints = Vec::new();
    for printed in rows(&printed(number)) {
        let ours = ours[&format!("{:?}", Value::from(printed[0]))];
        let change = real(&ours[4]).map_or("N/A".into(), |change| format!("{:.0}%", change.round() + 0.0));
        let agree = ours[1] == Value::Integer(printed[1].parse().unwrap())
            && ours[2] == Value::Integer(printed[2].parse().unwrap())
            && real(&ours[3]).unwrap().abs().to_string() == printed[3].trim_matches(['+', '-', '(', ')'])
            && change == printed[4].trim_start_matches('+');
        if !agree {
            misprints.push(printed[0].to_string());
        }
    }
    misprints
}

#[test]
fn tables_11_and_12_follow_but_for_their_misprints() {
    assert_eq!(misprints("paper-table-11", 11), ["ldq", "total"]);
    assert_eq!(misprints("paper-table-12", 12), ["total"]);
    assert_eq!(paper::scaled().map(|mix| mix::total(&mix)), [115_895, 107_855]);
    assert_eq!(paper::cached().map(|mix| mix::total(&mix)), [111_299, 106_521]);
}

#[test]
fn table_14_follows_from_11_and_12_with_the_sign_reversed() {
    let table = table("paper-table-14");
    let printed = printed(14);
    let printed = rows(&printed);
    assert_eq!(table.rows.len(), printed.len());
    for printed in printed {
        let ours = table.rows.iter().find(|row| row[0] == printed[0].into()).unwrap();
        let numbers = [1, 2].map(|build| Value::Integer(-printed[build].parse::<i64>().unwrap()));
        assert_eq!(ours[1..], numbers, "{}", printed[0]);
    }
}

#[test]
fn groups_are_those_of_table_13() {
    let mut listed = Vec::new();
    let table_13 = printed(13);
    for row in rows(&table_13) {
        let (group, members) = (row[0], row[1]);
        // mskhl is a misprint of msklh.
        for member in members.split(' ').filter(|&member| member != "mskhl") {
            assert_eq!(mix::group(member).name(), group, "{member}");
            listed.push(member);
        }
    }
    let [mix, _] = paper::scaled();
    assert!(mix.keys().all(|name| listed.contains(name)));
    let table = table("paper-figure-4");
    for row in &table.rows[..7] {
        let printed = rows(&table_13).into_iter().find(|printed| row[0] == printed[0].into()).unwrap();
        let members: BTreeSet<&str> = printed[1].split(' ').collect();
        let count: u64 = members.iter().filter_map(|name| mix.get(name)).sum();
        let share = 100.0 * count as f64 / 115_895.0;
        assert!((real(&row[1]).unwrap() - share).abs() < 1e-9, "{row:?}");
    }
    assert_eq!(table.rows[7][1], Value::Real(100.0));
    assert!(table.columns[1..].iter().all(|column| column.kind == Kind::Percent(1)));
}

#[test]
fn the_errors_of_the_print_are_found() {
    let found: Vec<String> = paper::check()
        .into_iter()
        .map(|f| format!("{} | {} | {} | {}", f.source, f.subject, f.printed, f.follows))
        .collect();
    let expected: Vec<&str> = EXPECTED.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(found, expected);
    assert_eq!(paper::findings().rows.len(), expected.len());
    let note = "Printed as 111288 (total of original); follows: 111299.";
    assert!(table("paper-table-12").notes.iter().any(|found| found == note));
    assert!(table("paper-table-7").notes.is_empty());
}

const EXPECTED: &str = "
Table 6 | title | original minus byte/word | byte/word minus original
Table 9 | title | original minus byte/word | byte/word minus original
Table 10 | title | original minus byte/word | byte/word minus original
Table 6 | sextb among those that differ | no row | differs by 152 in Tables 7 and 8
Table 6 | sextw among those that differ | no row | differs by 3419 in Tables 7 and 8
Table 6 | trapb among those that differ | no row | differs by 33 in Tables 7 and 8
Table 6 | callsys among those that differ | a row | no difference
Table 6 | blt among those that differ | a row | no difference
Table 6 | sum of dbmssocn.dll, sextb, sextw and trapb added | -36 | -34 by Tables 7 and 8
Table 6 | sum of ntwdblib.dll, sextb, sextw and trapb added | -61 | -54 by Tables 7 and 8
Table 6 | sum of opends60.dll, sextb, sextw and trapb added | -2421 | -2074 by Tables 7 and 8
Table 6 | sum of ssmsso60.dll, sextb, sextw and trapb added | -110 | -74 by Tables 7 and 8
Table 11 | % delta of ldq | +7% | -7%
Table 11 | delta of total | 8042 | -8041
Table 11 | total of byte/word | 107854 | 107855
Table 11 | sum of the deltas | 8042 | -8040
Table 11 | sign of 38 deltas, from cmple on | original minus byte/word | byte/word minus original
Table 12 | total of original | 111288 | 111299
Table 12 | sum of the deltas | -4767 | -4778
Table 13 | mskhl | a member | no Alpha instruction
Table 13 | insbl | twice | once
Table 13 | extwh | twice | once
Table 14 | title, and the text about it: all 132 differences | scaled minus cached | cached minus scaled
text | types of instruction, scaled | 81 | 83
text | types that did not change, scaled | 21 | 17
text | types that decreased, cached | 22 | 24
text | types that increased, cached | 29 | 44
text | types that did not change, cached | 22 | 15
text | % integer loads, scaled byte/word | 32 | 33.1
text | % integer loads, cached byte/word | 32 | 32.9
text | % ldbu and ldwu of the integer instructions, scaled | 1 | 2.3
text | % stb and stw of the integer stores, scaled | 18 | 2.9
text | % fewer of the group that shrank most, scaled | 54 | 30.9
text | % more performance, by the abstract | 5 | 3.6
text | % more transactions per second, byte/word | 3.5 | 3.6
text | microseconds to emulate an instruction (5 to 7) | 5 | 2.2
";
