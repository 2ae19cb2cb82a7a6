//! All pairs of options of the commands that simulate or count: each has an effect beside the other, or is refused for a reason
//! that is listed here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use crate::support::{guest, outcome, pathlength};

/// The options of a command, and which of them do not go together.
struct CommandPairs {
    /// The command, with options that all have.
    command: &'static str,
    /// Options that have an effect alone; those with the same first word are not combined.
    options: &'static [&'static str],
    /// Pairs that are refused, with a part of the reason. An empty option stands for each other one, and for none.
    refused: &'static [(&'static str, &'static str, &'static str)],
    /// Pairs of which the first option changes nothing beside the second one, with the reason.
    without_effect: &'static [(&'static str, &'static str, &'static str)],
}

const WINDOW: &str = "--skip 1 --units 3";
const TWO_MACHINES: &str = "--machine dec3000 --machine alphastation500-ev5";
const SWEEP: &str = "--sweep dcache.size=1K,8K";

const COMMANDS: [CommandPairs; 6] = [
    CommandPairs {
        command: "caches",
        options: &[
            "--by function",
            "--by unit",
            "--by callee",
            "--by process",
            "--by class",
            "--by mode",
            "--children",
            TWO_MACHINES,
            SWEEP,
            "--classify",
            "--inclusive",
            WINDOW,
        ],
        refused: &[
            ("--by function", "--inclusive", ""),
            ("--inclusive", "", "--by"),
            ("--by mode", "--children", "leave out --children"),
            ("--by mode", "", "a trace of programs only"),
            ("--by process", "--children", ""),
            ("--by process", "", "add --children"),
            (TWO_MACHINES, SWEEP, "give --machine once"),
        ],
        without_effect: &[],
    },
    CommandPairs {
        command: "time --machine dec3000",
        options: &[
            "--by line",
            "--by class",
            "--by callee",
            "--children",
            "--sample 2000",
            SWEEP,
            "--warm-up 1",
        ],
        refused: &[
            ("--sample 2000", "--by line", "--sample estimates the time of everything"),
            ("--sample 2000", "--by callee", "--sample estimates the time of everything"),
        ],
        without_effect: &[],
    },
    CommandPairs {
        command: "calls",
        options: &["--by callee", "--by unit", "--by class", "--function work", "--threshold 30", WINDOW],
        refused: &[
            ("--function work", "--by callee", ""),
            ("--function work", "", "--function selects rows"),
            ("--threshold 30", "--by callee", "--threshold leaves out rows of --by call-tree"),
            ("--threshold 30", "--by unit", "--threshold leaves out rows of --by call-tree"),
            ("--threshold 30", "--by class", "--threshold leaves out rows of --by call-tree"),
        ],
        without_effect: &[],
    },
    CommandPairs {
        command: "sharing --machine pentium-pro",
        options: &[
            "--by class",
            "--by function",
            "--by processor",
            "--time",
            "--scaling 1,2",
            "--sample 1000",
            "--check",
            "--device-reads statement",
            "--warm-up 1",
        ],
        refused: &[
            ("--by function", "--time", "in time, rows are"),
            ("--by function", "--scaling 1,2", "in time, rows are"),
            ("--by function", "--sample 1000", "in time, rows are"),
            ("--by processor", "--sample 1000", "--sample estimates the cycles of everything"),
            ("--check", "--by processor", "--check is for caches without time"),
            ("--check", "--time", "--check is for caches without time"),
            ("--check", "--scaling 1,2", "--check is for caches without time"),
            ("--check", "--sample 1000", "--check is for caches without time"),
            ("--device-reads statement", "--by processor", "--device-reads is for caches without time"),
            ("--device-reads statement", "--time", "--device-reads is for caches without time"),
            ("--device-reads statement", "--scaling 1,2", "--device-reads is for caches without time"),
            ("--device-reads statement", "--sample 1000", "--device-reads is for caches without time"),
        ],
        without_effect: &[
            ("--time", "--by processor", "these rows are of time"),
            ("--time", "--scaling 1,2", "it is in time"),
            ("--time", "--sample 1000", "it is in time"),
        ],
    },
    CommandPairs {
        command: "strides",
        options: &[
            "--by line",
            "--by class",
            "--advice",
            "--histograms",
            "--depth 2",
            "--minimum-stride 0",
            "--function work",
        ],
        refused: &[
            ("--advice", "--by line", "cannot be used with"),
            ("--advice", "--by class", "cannot be used with"),
            ("--advice", "--histograms", "cannot be used with"),
            ("--advice", "--depth 2", "cannot be used with"),
            ("--advice", "--minimum-stride 0", "cannot be used with"),
        ],
        without_effect: &[("--function work", "--advice", "there is none for this program")],
    },
    CommandPairs {
        command: "mrc --streams data",
        options: &["--line-size 32", "--largest 64K", "--children", WINDOW],
        refused: &[],
        without_effect: &[],
    },
];

/// Words of a command line, with the tables and notes in JSON if it succeeds, or else the error.
type Outcomes = Mutex<BTreeMap<String, Result<String, String>>>;

#[test]
fn options_go_together_or_are_refused_for_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let mut record = pathlength(["trace", "--heap", "--from", "main", "-o"]);
    record.arg(&trace).args(["--unit", "begin_transaction", "--class", "statement($1) ~ ^[a-z]+"]);
    record.arg(guest("ev56/family")).arg("transactions");
    outcome(record).noted_success();
    let mut all = Vec::new();
    for CommandPairs { command, options, .. } in &COMMANDS {
        all.push(command.to_string());
        all.extend(options.iter().map(|option| format!("{command} {option}")));
        all.extend(pairs(options).map(|(a, b)| format!("{command} {a} {b}")));
    }
    let (queue, outcomes) = (Mutex::new(all.into_iter()), Outcomes::default());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().next();
                    let Some(words) = next else { break };
                    let result = result_of(&words, &trace);
                    outcomes.lock().unwrap().insert(words, result);
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap();
    let problems: Vec<String> = COMMANDS.iter().flat_map(|command| command.problems(&outcomes)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The pairs of options that can be given together.
fn pairs<'o>(options: &'o [&'o str]) -> impl Iterator<Item = (&'o str, &'o str)> {
    let first_word = |option: &str| option.split(' ').next().unwrap_or("").to_string();
    let all = options.iter().enumerate().flat_map(|(at, a)| options[at + 1..].iter().map(move |b| (*a, *b)));
    all.filter(move |(a, b)| first_word(a) != first_word(b))
}

fn result_of(words: &str, trace: &Path) -> Result<String, String> {
    let mut command = pathlength(words.split(' ').map(String::from).collect::<Vec<_>>());
    command.args(["--format", "json"]).arg(trace);
    let outcome = outcome(command);
    if outcome.status.success() { Ok(outcome.stdout) } else { Err(outcome.stderr) }
}

impl CommandPairs {
    /// The reason for which a pair, or an option alone, is to be refused.
    fn reason(&self, a: &str, b: &str) -> Option<&'static str> {
        let is_it = |(one, other, _): &&(&str, &str, &str)| {
            [(a, b), (b, a)].contains(&(*one, *other)) || other.is_empty() && [a, b].contains(one)
        };
        self.refused.iter().find(is_it).map(|(_, _, reason)| *reason).filter(|reason| !reason.is_empty())
    }

    fn problems(&self, outcomes: &BTreeMap<String, Result<String, String>>) -> Vec<String> {
        let of = |words: &[&str]| &outcomes[&[&[self.command], words].concat().join(" ")];
        let alone = self.options.iter().map(|option| (*option, ""));
        let mut problems = Vec::new();
        for (a, b) in alone.chain(pairs(self.options)) {
            let words: Vec<&str> = [a, b].into_iter().filter(|word| !word.is_empty()).collect();
            let mut problem =
                |what: &str| problems.push(format!("{} {}: {what}", self.command, words.join(" ")));
            match (of(&words), self.reason(a, b)) {
                (Ok(_), Some(reason)) => problem(&format!("is not refused: {reason}")),
                (Err(error), Some(reason)) if !error.contains(reason) => {
                    problem(&format!("is refused, and not because of '{reason}': {error}"));
                }
                (Err(error), None) => problem(&format!("is refused: {error}")),
                (Err(_), Some(_)) => {}
                (Ok(both), None) => {
                    for (option, other) in [(a, b), (b, a)].into_iter().filter(|(one, _)| !one.is_empty()) {
                        let rest: Vec<&str> = [other].into_iter().filter(|word| !word.is_empty()).collect();
                        let is_ignored = of(&rest).as_ref() == Ok(both);
                        let is_known = self
                            .without_effect
                            .iter()
                            .any(|(one, beside, _)| (*one, *beside) == (option, other));
                        if is_ignored != is_known {
                            problem(&format!("{option} has {} effect", if is_ignored { "no" } else { "an" }));
                        }
                    }
                }
            }
        }
        problems
    }
}
