//! The options of the command line and the environment.

use std::path::PathBuf;

use crate::Error;

/// A part of the bench: its name, and what it measures.
pub const PARTS: [(&str, &str); 11] = [
    ("start", "a program that does nothing: what a start costs"),
    ("sqlite", "TPC-B on SQLite, 20,000 transactions and TRANSACTIONS: run, counted, traced"),
    (
        "postgresql",
        "TPC-B on PostgreSQL, 5,000 transactions; builds PostgreSQL the first time, which takes some minutes",
    ),
    ("server", "PostgreSQL with four clients: what counts of all processes, attaching and models cost"),
    ("traces", "SQLite recorded: three transactions, and all"),
    ("models", "models of caches and of time, beside QEMU's plugin for caches and cachegrind"),
    (
        "coherence",
        "PostgreSQL recorded with four clients: coherent caches, buses in time, out-of-order cores, samples",
    ),
    ("strides", "strides of SQLite and of the paper's loop"),
    ("network", "models of network adapters, beside packets over a link in ns-3"),
    ("graphics", "lit vertices by a library for OpenGL, beside Mesa's llvmpipe and softpipe"),
    (
        "system",
        "SQLite on a whole machine, 2,000 transactions: recorded, repeated, traced; builds a kernel the first time, which takes \
         some minutes",
    ),
];

/// The parts to measure, and how often.
#[derive(Debug, PartialEq)]
pub struct BenchOptions {
    /// The names of the parts, in the order of [`PARTS`].
    pub parts: Vec<&'static str>,
    pub transactions: u32,
    pub runs: u32,
    /// An older `pathlength`, which is measured beside this one.
    pub baseline: Option<PathBuf>,
}

impl BenchOptions {
    /// Reads the names of parts, of which none means all, and the variables of the environment.
    pub fn read(names: &[String], variable: impl Fn(&str) -> Option<String>) -> Result<BenchOptions, Error> {
        if let Some(unknown) = names.iter().find(|name| PARTS.iter().all(|(part, _)| part != name)) {
            let known = PARTS.map(|(part, _)| part).join(", ");
            return Err(format!("there is no part '{unknown}'; the parts are {known}").into());
        }
        let number = |name: &str, default: u32| match variable(name).filter(|text| !text.is_empty()) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(format!("{name}={text}: a number from 1 is needed")),
            },
        };
        let is_wanted = |part: &str| names.is_empty() || names.iter().any(|name| name == part);
        Ok(BenchOptions {
            parts: PARTS.map(|(part, _)| part).into_iter().filter(|part| is_wanted(part)).collect(),
            transactions: number("TRANSACTIONS", 200_000)?,
            runs: number("RUNS", 3)?,
            baseline: variable("BASELINE").filter(|path| !path.is_empty()).map(PathBuf::from),
        })
    }
}

/// The text of `--help`.
pub fn help() -> String {
    let parts = PARTS.map(|(name, text)| format!("  {name:<11} {text}\n")).concat();
    format!(
        "Measures processor time of pathlength and its peers.\n\n\
         Usage: make bench [PART=\"PART...\"] [RUNS=3] [TRANSACTIONS=200000] [BASELINE=PATHLENGTH]\n       \
         target/release/bench [PART...]\n\n\
         Parts (default: all):\n{parts}\n\
         Each result is the cheapest of RUNS runs. It is printed as soon as it is there, and kept in bench/runs/ with\n\
         machine, date and commit. BASELINE is an older target/release/pathlength: `start`, `sqlite` and `postgresql`\n\
         measure it beside this one, in turns.\n\n\
         Example: make bench PART=\"start sqlite\" RUNS=5 TRANSACTIONS=20000\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(names: &[&str], variables: &[(&str, &str)]) -> Result<BenchOptions, Error> {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let value =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, text)| text.to_string());
        BenchOptions::read(&names, value)
    }

    #[test]
    fn all_parts_are_measured_unless_some_are_named() {
        let all = read(&[], &[]).unwrap();
        assert_eq!(all.parts, PARTS.map(|(name, _)| name));
        assert_eq!((all.transactions, all.runs, all.baseline), (200_000, 3, None));
        let some =
            read(&["sqlite", "start"], &[("RUNS", "5"), ("TRANSACTIONS", "10"), ("BASELINE", "")]).unwrap();
        assert_eq!(
            (some.parts, some.transactions, some.runs, some.baseline),
            (vec!["start", "sqlite"], 10, 5, None)
        );
    }

    #[test]
    fn errors_list_the_parts_and_name_the_variable() {
        let error = read(&["sqlit"], &[]).unwrap_err().to_string();
        assert!(error.contains("'sqlit'") && PARTS.iter().all(|(name, _)| error.contains(name)), "{error}");
        for text in ["0", "many", "-1"] {
            let error = read(&[], &[("RUNS", text)]).unwrap_err().to_string();
            assert_eq!(error, format!("RUNS={text}: a number from 1 is needed"));
        }
    }

    #[test]
    fn the_help_lists_every_part() {
        assert!(PARTS.iter().all(|(name, text)| help().contains(name) && help().contains(text)));
    }
}
