//! PostgreSQL with 4 KiB pages, with huge pages of its own, and on a section: the crate `vlm` has the script.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use vlm::Size;

/// A PostgreSQL server on a section.
#[derive(Clone, Copy, Debug)]
pub struct PostgresqlSettings {
    /// Its shared memory.
    pub size: Size,
    /// The connections that touch all of it.
    pub connections: usize,
}

/// What a server and its connections cost.
#[derive(Clone, Debug, PartialEq)]
pub struct PostgresqlRow {
    /// What the shared memory consists of.
    pub memory: String,
    /// Seconds until the server accepts connections.
    pub start: f64,
    /// Seconds until all connections are made.
    pub connect: f64,
    /// Seconds until all connections are made and have touched all shared buffers.
    pub touch: f64,
    /// The server's processor time meanwhile, in seconds.
    pub cpu: f64,
    /// How much the machine's page tables grew, in KiB.
    pub page_tables: i64,
}

impl PostgresqlRow {
    /// A line of the script's output; none for its heading.
    fn parse(line: &str) -> Option<PostgresqlRow> {
        let cells: Vec<&str> = line.split(',').collect();
        let [memory, start, connect, touch, cpu, page_tables] = cells[..] else { return None };
        let seconds = |text: &str| text.parse().ok();
        Some(PostgresqlRow {
            memory: memory.to_owned(),
            start: seconds(start)?,
            connect: seconds(connect)?,
            touch: seconds(touch)?,
            cpu: seconds(cpu)?,
            page_tables: page_tables.parse().ok()?,
        })
    }
}

/// Runs the script, and passes each row to `measured`.
pub fn measure(
    vlm: &Path,
    settings: &PostgresqlSettings,
    measured: &mut dyn FnMut(PostgresqlRow),
) -> Result<(), String> {
    check(settings)?;
    let failed = |error: std::io::Error| format!("cannot run its script with bash: {error}");
    let mut script = Command::new("bash")
        .arg("-s")
        .env("VLM", vlm)
        .env("SIZE_MIB", (settings.size.bytes() >> 20).to_string())
        .env("CONNECTIONS", settings.connections.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut input = script.stdin.take().expect("it is piped");
    let mut errors = script.stderr.take().expect("it is piped");
    // Its end is read by a thread, so that no pipe is ever full.
    let said = thread::spawn(move || {
        let mut text = String::new();
        let _ = errors.read_to_string(&mut text);
        text
    });
    // Programs that the script starts must not read the script.
    let text = format!("main() {{\n{}\n}}\nmain < /dev/null\n", vlm::study::POSTGRESQL);
    let sent = thread::spawn(move || input.write_all(text.as_bytes()));
    let output = BufReader::new(script.stdout.take().expect("it is piped"));
    output.lines().map_while(Result::ok).filter_map(|line| PostgresqlRow::parse(&line)).for_each(measured);
    let status = script.wait().map_err(failed)?;
    let said = said.join().unwrap_or_default();
    let is_sent = matches!(sent.join(), Ok(Ok(())));
    match status.success() && is_sent {
        true => Ok(()),
        false => Err(format!("its script failed: {}", last_lines(&said))),
    }
}

/// Says what is missing before anything is started.
fn check(settings: &PostgresqlSettings) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err(
            "it reserves huge pages and runs the server as the user postgres, which needs root's rights"
                .into(),
        );
    }
    let has_program = |name: &str| {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        versions.into_iter().any(|version| version.path().join("bin").join(name).is_file())
    };
    for (program, package) in [("postgres", "postgresql"), ("pgbench", "postgresql-contrib")] {
        if !has_program(program) {
            return Err(format!("{program} is not installed (Debian: apt-get install {package})"));
        }
    }
    let available = vlm::memory::available().map_err(|error| error.to_string())?;
    let needed = 2 * (settings.size.bytes() >> 20);
    if available.bytes() >> 20 < needed {
        let available = available.bytes() >> 20;
        return Err(format!(
            "it needs {needed} MiB of free memory, and {available} MiB are available: give a smaller size"
        ));
    }
    Ok(())
}

fn last_lines(text: &str) -> String {
    const LINES: usize = 3;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_rows_are_read_and_its_heading_is_not() {
        assert_eq!(
            PostgresqlRow::parse("memory,start_s,connect_s,connect_and_touch_s,server_cpu_s,page_tables_kib"),
            None
        );
        let row = PostgresqlRow::parse("huge pages of PostgreSQL's own,0.31,1.20,8.30,14.50,-24").unwrap();
        assert_eq!(
            (row.start, row.connect, row.touch, row.cpu, row.page_tables),
            (0.31, 1.2, 8.3, 14.5, -24)
        );
        assert_eq!(PostgresqlRow::parse("pg_ctl: no server"), None);
    }
}
