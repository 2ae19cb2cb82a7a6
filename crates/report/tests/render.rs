//! The text formats byte by byte, and their outputs.

use std::fs;
use std::io::{self, Write};

use arrow_array::{Array, Int64Array, RecordBatch};
use insta::assert_snapshot;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pathlength_report::{Error, Format, TableWriter, render, terminal, write_all, write_file};
use table::{Kind, Table, Value};

fn sample() -> Table {
    let mut table = Table::new(
        "functions",
        "Functions that shrank or grew",
        &[
            ("function", Kind::Text),
            ("address", Kind::Address),
            ("original", Kind::Count),
            ("difference", Kind::Delta),
            ("change", Kind::Change(1)),
            ("share (%)", Kind::Percent(2)),
        ],
    );
    let address = Value::Integer(0x1_2000_4560);
    table.row(vec![
        "sqlite3VdbeExec_with_a_rather_long_name".into(),
        address,
        1_234_567_u64.into(),
        (-61_234_i64).into(),
        (-4.96).into(),
        62.5.into(),
    ]);
    table.row(vec![
        "né, \"quoted\"".into(),
        Value::Missing,
        0_u64.into(),
        Value::Integer(12),
        Value::Missing,
        (1.0 / 3.0).into(),
    ]);
    table.total_row(vec![
        "all".into(),
        Value::Missing,
        1_234_567_u64.into(),
        (-61_222_i64).into(),
        (-4.959).into(),
        100.0.into(),
    ]);
    table.notes.push("A dash stands for what is not defined.".into());
    table
}

fn rendered(format: Format) -> String {
    let mut out = Vec::new();
    render(&sample(), format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn on_terminal(width: usize, color: bool) -> String {
    let mut out = Vec::new();
    terminal::render(&sample(), terminal::Style { width: Some(width), color }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn in_a_pipe_nothing_is_cut() {
    assert_snapshot!(rendered(Format::Table), @r##"
Functions that shrank or grew
──────────────────────────────────────────────────────────────────────────────────────────────────
function                                     address   original  difference  change (%)  share (%)
──────────────────────────────────────────────────────────────────────────────────────────────────
sqlite3VdbeExec_with_a_rather_long_name  0x120004560  1,234,567     -61,234        -5.0      62.50
né, "quoted"                                       –          0         +12           –       0.33
──────────────────────────────────────────────────────────────────────────────────────────────────
all                                                –  1,234,567     -61,222        -5.0     100.00
A dash stands for what is not defined.
"##);
}

#[test]
fn on_a_terminal_names_are_cut_to_fit() {
    assert_snapshot!(on_terminal(72, false), @r##"
Functions that shrank or grew
────────────────────────────────────────────────────────────────────────
                                                          change   share
function                  address   original  difference     (%)     (%)
────────────────────────────────────────────────────────────────────────
sqlite3Vdb…long_name  0x120004560  1,234,567     -61,234    -5.0   62.50
né, "quoted"                    –          0         +12       –    0.33
────────────────────────────────────────────────────────────────────────
all                             –  1,234,567     -61,222    -5.0  100.00
A dash stands for what is not defined.
"##);
}

#[test]
fn emphasis_changes_nothing_else() {
    let plain = anstyle_stripped(&on_terminal(72, true));
    assert_eq!(plain, on_terminal(72, false));
    assert!(on_terminal(72, true).contains("\u{1b}[1mFunctions"));
}

fn anstyle_stripped(text: &str) -> String {
    ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m"].iter().fold(text.into(), |text, code| text.replace(code, ""))
}

#[test]
fn csv() {
    assert_snapshot!(rendered(Format::Csv), @r##"
function,address,original,difference,change,share (%),is_total
sqlite3VdbeExec_with_a_rather_long_name,0x120004560,1234567,-61234,-4.96,62.5,false
"né, ""quoted""",,0,12,,0.3333333333333333,false
all,,1234567,-61222,-4.959,100,true
"##);
}

/// A name as an attacker chooses it does nothing anywhere.
#[test]
fn hostile_names_are_harmless() {
    let mut table =
        Table::new("t", "Of \u{1b}]0;title\u{7}", &[("function", Kind::Text), ("n", Kind::Count)]);
    for name in ["\u{1b}[2J\u{9b}31m\u{202e}evil\n", "<script>alert(1)</script>", "=1+1"] {
        table.row(vec![name.into(), 1_u64.into()]);
    }
    table.notes.push("note on \u{1b}[1m".into());
    let is_active = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
    for format in [Format::Table, Format::Csv, Format::Json, Format::Markdown] {
        let mut out = Vec::new();
        render(&table, format, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains(is_active), "{format}: {text:?}");
        assert!(format != Format::Csv || text.contains("\n'=1+1,"), "{text}");
    }
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    write_all(std::slice::from_ref(&table), Format::Table, Some(&page)).unwrap();
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("<!DOCTYPE html>") && text.contains("&lt;script&gt;alert(1)"));
    assert!(!text.contains("<script>alert(1)") && !text.contains(['\u{1b}', '\u{202e}', '\u{9b}']));
    let refused = write_all(&[table], Format::Csv, Some(&page)).unwrap_err().to_string();
    assert!(refused.contains("leave out --format csv"), "{refused}");
}

#[test]
fn json() {
    assert_snapshot!(rendered(Format::Json), @r##"
{
  "name": "functions",
  "title": "Functions that shrank or grew",
  "columns": [
    {
      "name": "function",
      "kind": "text"
    },
    {
      "name": "address",
      "kind": "address"
    },
    {
      "name": "original",
      "kind": "count"
    },
    {
      "name": "difference",
      "kind": "delta"
    },
    {
      "name": "change",
      "kind": "change"
    },
    {
      "name": "share (%)",
      "kind": "percent"
    }
  ],
  "rows": [
    {
      "function": "sqlite3VdbeExec_with_a_rather_long_name",
      "address": 4831855968,
      "original": 1234567,
      "difference": -61234,
      "change": -4.96,
      "share (%)": 62.5
    },
    {
      "function": "né, \"quoted\"",
      "address": null,
      "original": 0,
      "difference": 12,
      "change": null,
      "share (%)": 0.3333333333333333
    },
    {
      "function": "all",
      "address": null,
      "original": 1234567,
      "difference": -61222,
      "change": -4.959,
      "share (%)": 100.0
    }
  ],
  "total": true,
  "notes": [
    "A dash stands for what is not defined."
  ]
}
"##);
}

#[test]
fn one_table_is_a_file_and_several_are_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("one.csv");
    write_all(&[sample()], Format::Csv, Some(&file)).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), rendered(Format::Csv));

    let (one, mut other) = (sample(), sample());
    other.name = "../other".into();
    for (format, names) in [
        (Format::Csv, ["---other.csv", "functions.csv"]),
        (Format::Json, ["---other.json", "functions.json"]),
        (Format::Parquet, ["---other.parquet", "functions.parquet"]),
    ] {
        let several = directory.path().join("some/new").join(format.to_string());
        write_all(&[one.clone(), other.clone()], format, Some(&several)).unwrap();
        let mut found: Vec<_> =
            fs::read_dir(&several).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        found.sort();
        assert_eq!(found, names);
    }
    let twice = directory.path().join("twice");
    write_all(&[one.clone(), one.clone()], Format::Csv, Some(&twice)).unwrap();
    assert!(twice.join("functions.csv").exists() && twice.join("functions-2.csv").exists());

    let text = directory.path().join("both.txt");
    write_all(&[one, other], Format::Table, Some(&text)).unwrap();
    let table = rendered(Format::Table);
    assert_eq!(fs::read_to_string(&text).unwrap(), format!("{table}\n{table}"));
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result.csv");
    fs::write(&path, "old").unwrap();
    let error = write_file(&path, |out| {
        out.write_all(b"half of the new")?;
        Err(io::Error::from(io::ErrorKind::StorageFull).into())
    })
    .unwrap_err();
    assert!(error.to_string().contains("result.csv") && error.to_string().contains("room"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_missing_directory_is_named() {
    let error = write_all(&[sample()], Format::Csv, Some("/nonexistent/a.csv".as_ref())).unwrap_err();
    assert!(error.to_string().starts_with("cannot write /nonexistent/a.csv: "), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn links_are_followed_devices_kept_and_new_files_readable() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("file"), directory.path().join("link"));
    fs::write(&file, "old").unwrap();
    symlink(&file, &link).unwrap();
    write_file(&link, |out| Ok(out.write_all(b"new")?)).unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");

    fs::write(directory.path().join("ordinary"), "").unwrap();
    let mode = |name| fs::metadata(directory.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("file"), mode("ordinary"));

    write_all(&[sample()], Format::Csv, Some("/dev/null".as_ref())).unwrap();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let full = write_all(&[sample()], Format::Csv, Some("/dev/full".as_ref())).unwrap_err();
    assert!(full.to_string().starts_with("cannot write /dev/full: No space left"), "{full}");
}

#[test]
fn a_closed_pipe_is_told_from_other_failures() {
    struct Closed(io::ErrorKind);
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }
    // Longer than any buffer, so that it fails in the middle.
    let mut long = sample();
    long.rows = std::iter::repeat_n(long.rows[0].clone(), 10_000).collect();
    for format in [Format::Table, Format::Csv, Format::Json, Format::Parquet] {
        let failure = |kind| render(&long, format, &mut Closed(kind)).unwrap_err();
        assert!(failure(io::ErrorKind::BrokenPipe).is_broken_pipe(), "{format}");
        assert!(!failure(io::ErrorKind::StorageFull).is_broken_pipe(), "{format}");
    }
}

#[test]
fn formats_have_names() {
    for format in [Format::Table, Format::Csv, Format::Json, Format::Parquet] {
        assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
    }
    assert!(matches!("xml".parse::<Format>(), Err(Error::UnknownFormat(_))));
}

/// A table written in parts is the same table.
#[test]
fn pieces_make_the_whole() {
    let whole = Table { total: false, ..sample() };
    let rendered = |format| {
        let mut out = Vec::new();
        render(&whole, format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let piece = |rows: &[Vec<Value>]| Table { rows: rows.to_vec(), ..whole.clone() };
    let in_pieces = |format| {
        let mut out = Vec::new();
        let mut table_writer = TableWriter::begin(&piece(&whole.rows[..1]), format, &mut out).unwrap();
        table_writer.write(&piece(&[])).unwrap();
        table_writer.write(&piece(&whole.rows[1..])).unwrap();
        table_writer.finish().unwrap();
        out
    };
    let text = |format| String::from_utf8(in_pieces(format)).unwrap();
    assert_eq!(text(Format::Csv), rendered(Format::Csv));
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(json(&text(Format::Json)), json(&rendered(Format::Json)));
    let rows = |bytes: Vec<u8>| -> Vec<String> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        let batches = reader.build().unwrap().map(Result::unwrap);
        let column = |batch: &RecordBatch| -> Vec<String> {
            let counts = batch.column(2).as_any().downcast_ref::<Int64Array>().unwrap();
            counts.iter().map(|count| format!("{count:?}")).collect()
        };
        batches.flat_map(|batch| column(&batch)).collect()
    };
    let mut once = Vec::new();
    render(&whole, Format::Parquet, &mut once).unwrap();
    assert_eq!(rows(in_pieces(Format::Parquet)), rows(once));
    assert_eq!(text(Format::Table).lines().count(), 1 + whole.rows.len());
}
