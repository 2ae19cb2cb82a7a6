//! Prints results as they come, and keeps them in a file with the machine, the date and the commit.

use std::fs;
use std::io::{Stdout, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;

use report::{Format, TableWriter};
use serde_json::{Value as Json, json};
use table::{Kind, Table, Value};

use crate::Error;
use crate::options::BenchOptions;

/// Where runs are kept.
pub const FOLDER: &str = "bench/runs";
/// How wide columns of text are printed: rows are not known in advance.
const TEXT_WIDTH: usize = 36;

/// The results of a run. Its file is complete after every result.
pub struct BenchRecord {
    file: PathBuf,
    /// Date, commit, machine, options.
    head: Json,
    tables: Vec<Table>,
    printed: Option<TableWriter<Stdout>>,
}

impl BenchRecord {
    /// A record in a folder, whose file is made with the first result.
    pub fn new(folder: &Path, options: &BenchOptions) -> Result<BenchRecord, Error> {
        let date = output("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"])?;
        let commit = output("git", &["rev-parse", "HEAD"]).unwrap_or_else(|_| "unknown".into());
        let changes = output("git", &["status", "--porcelain", "--untracked-files=no"]).unwrap_or_default();
        let short: String = commit.chars().take(10).collect();
        let file = folder.join(format!("{}-{short}.json", date.replace(':', "")));
        let head = json!({
            "date": date,
            "commit": commit,
            "changed_since_commit": !changes.is_empty(),
            "machine": machine(),
            "runs": options.runs,
            "transactions": options.transactions,
        });
        Ok(BenchRecord { file, head, tables: Vec::new(), printed: None })
    }

    /// Begins a table, and prints its title.
    pub fn begin(&mut self, name: &str, title: &str, columns: &[(&str, Kind)]) -> Result<(), Error> {
        let separator = if self.tables.is_empty() { "" } else { "\n" };
        writeln!(stdout(), "{separator}{title}")?;
        self.tables.push(Table::new(name, title, columns));
        self.printed = None;
        Ok(())
    }

    /// Prints a result and keeps it.
    pub fn row(&mut self, cells: Vec<Value>) -> Result<(), Error> {
        let table = self.tables.last_mut().ok_or("a result without a table")?;
        let mut part = Table { rows: Vec::new(), ..table.clone() };
        part.row(cells.iter().map(padded).collect());
        match &mut self.printed {
            Some(writer) => writer.write(&part)?,
            None => self.printed = Some(TableWriter::begin(&part, Format::Table, stdout())?),
        }
        stdout().flush()?;
        table.row(cells);
        self.save()
    }

    /// Prints a remark on the table and keeps it.
    pub fn note(&mut self, note: String) -> Result<(), Error> {
        writeln!(stdout(), "{note}")?;
        self.tables.last_mut().ok_or("a remark without a table")?.notes.push(note);
        self.save()
    }

    /// The file of the run, once there was a result.
    pub fn file(&self) -> &Path {
        &self.file
    }

    fn save(&self) -> Result<(), Error> {
        let mut record = self.head.clone();
        record["tables"] = self.tables.iter().map(document).collect::<Result<_, _>>()?;
        fs::create_dir_all(self.file.parent().ok_or("no folder for runs")?)?;
        let (mut file, name) = output_files::create(&self.file)?;
        serde_json::to_writer_pretty(&mut file, &record)?;
        writeln!(file)?;
        Ok(name.commit()?)
    }
}

fn padded(cell: &Value) -> Value {
    match cell {
        Value::Text(text) => Value::Text(format!("{text:TEXT_WIDTH$}")),
        other => other.clone(),
    }
}

/// A table as JSON.
fn document(table: &Table) -> Result<Json, Error> {
    let mut text = Vec::new();
    report::render(table, Format::Json, &mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// The machine: the processor, how many, memory, the kernel.
fn machine() -> Json {
    let line = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once(':'));
        line.map(|(_, value)| value.trim().to_string())
    };
    json!({
        "processor": line("/proc/cpuinfo", "model name"),
        "processors": std::thread::available_parallelism().ok().map(usize::from),
        "memory": line("/proc/meminfo", "MemTotal"),
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|text| text.trim().to_string()),
    })
}

/// The output of a command, without the end of the line.
fn output(command: &str, arguments: &[&str]) -> Result<String, Error> {
    let output = Command::new(command).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("{command} {}: {}", arguments.join(" "), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [(&str, Kind); 2] = [("program", Kind::Text), ("sum s", Kind::Real(2))];

    #[test]
    fn a_run_is_kept_with_machine_date_and_commit_after_every_result() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("bench/runs");
        let options = BenchOptions::read(&[], |name| (name == "RUNS").then(|| "5".into())).unwrap();
        let mut record = BenchRecord::new(&runs, &options).unwrap();
        record.begin("start", "A start", &COLUMNS).unwrap();
        let mut rows = Vec::new();
        for seconds in [0.25, 0.5] {
            record.row(vec!["hello".into(), seconds.into()]).unwrap();
            rows.push(json!({"program": "hello", "sum s": seconds}));
            let kept: Json = serde_json::from_slice(&fs::read(record.file()).unwrap()).unwrap();
            assert_eq!(kept["tables"][0]["rows"], json!(rows));
            assert_eq!((kept["runs"].as_u64(), kept["transactions"].as_u64()), (Some(5), Some(200_000)));
            assert!(
                kept["machine"]["processors"].as_u64().unwrap() > 0 && kept["machine"]["kernel"].is_string()
            );
            let date = kept["date"].as_str().unwrap();
            assert!(date.len() == 20 && date.ends_with('Z') && date.as_bytes()[10] == b'T', "{date}");
            assert!(kept["commit"].is_string() && kept["changed_since_commit"].is_boolean());
        }
        let files: Vec<_> = fs::read_dir(&runs).unwrap().collect();
        assert_eq!(files.len(), 1, "one file a run, and nothing temporary: {files:?}");
    }

    #[test]
    fn a_result_needs_a_table() {
        let options = BenchOptions::read(&[], |_| None).unwrap();
        let mut record = BenchRecord::new(Path::new("nowhere"), &options).unwrap();
        assert!(record.row(Vec::new()).is_err() && record.note(String::new()).is_err());
    }
}
