//! Comparisons: what two builds of a program execute.

use std::cmp::Reverse;
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;

use analysis::classes::owner_differences;
use analysis::environment::environment_difference;
use analysis::mix;
use analysis::names::check_executed;
use analysis::pairing::Pairing;
use analysis::profile::{FunctionName, Profile, function_differences, image_shares};
use analysis::run_counts::{RunCounts, TraceCounts};
use analysis::units::{SteadyRules, path_lengths};
use anyhow::{Context, bail};
use engine::UnitOfWork;
use image::{Image, SymbolPattern};
use report::Format;
use table::{Table, Value, rounded, separated};

use crate::console::Console;
use crate::counting::{count_steady, counts_of_trace, names_in_work, run_counts_of};
use crate::input::Input;
use crate::program::{ExpectedEnding, ProgramSettings, check_ending, check_names};
use crate::translated::is_translated;

/// The exit status if the second side executes too much more than the first.
const ABOVE: u8 = 3;
/// How many functions the gate's message names.
const WORST: usize = 3;
/// How many rows a table of Markdown has unless --top says otherwise.
const MARKDOWN_ROWS: usize = 10;

/// One part of the comparison.
struct Side {
    label: String,
    counts: RunCounts,
    /// A program was run for it.
    has_run: bool,
    /// The program ended with another status than 0, or parts of the trace cannot be read.
    has_failed: bool,
}

/// Two sides, and how they are compared.
pub struct Comparison<'a> {
    /// Programs, traces or saved counts.
    pub sides: [Input; 2],
    /// The surroundings of programs.
    pub program: ProgramSettings,
    /// The unit of work, and the rules of its measurement.
    pub unit: Option<(UnitOfWork, SteadyRules)>,
    /// How programs are to end.
    pub expected: ExpectedEnding,
    /// The gate, if there is one.
    pub gate: Option<Gate>,
    /// Where tables and progress go.
    pub console: &'a dyn Console,
}

/// A limit of what the second side may execute more.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The limit.
    pub threshold: Threshold,
    /// The function whose instructions are compared, instead of all.
    pub function: Option<String>,
}

/// How much more may be executed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A share of the first side, in percent.
    Percent(f64),
    /// A number of instructions.
    Instructions(f64),
}

impl Threshold {
    /// Whether growth from `a` to `b` is above it.
    pub fn is_exceeded(self, a: f64, b: f64) -> bool {
        match self {
            Threshold::Percent(percent) => b - a > a * percent / 100.0,
            Threshold::Instructions(most) => b - a > most,
        }
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Threshold, String> {
        let (number, new): (_, fn(f64) -> Threshold) = match text.strip_suffix('%') {
            Some(number) => (number, Threshold::Percent),
            None => (text, Threshold::Instructions),
        };
        let number =
            number.trim_end().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
        number.map(new).ok_or_else(|| "give a percentage, such as 0.5%, or a number of instructions".into())
    }
}

impl Comparison<'_> {
    /// Runs the programs, or reads saved counts and traces, and writes the tables of their differences. Returns the exit status.
    pub fn write(&self) -> anyhow::Result<ExitCode> {
        report::check(true, self.console.format(), self.console.path())?;
        if self.unit.as_ref().is_some_and(|(work, _)| work.functions.len() > 1) {
            bail!(
                "builds are compared by one unit of work: give --unit once, or save the counts of classes of each (count --unit … --unit … -o \
                 A.counts) and compare these"
            );
        }
        // Check the second program before a long run of the first.
        let [a, b] = &self.sides;
        for input in [a, b] {
            let Input::Program { path, arguments } = input else { continue };
            let configuration = self.program.configuration(path, arguments, true);
            if !is_translated(&configuration) {
                Image::open(path)?;
            }
            if let Some((work, _)) = &self.unit {
                check_names(&configuration, &names_in_work(work))
                    .with_context(|| path.display().to_string())?;
            }
        }
        let [label_a, label_b] = labels(a, b);
        let a = self.side(a, label_a)?;
        let b = self.side(b, label_b)?;
        for (side, other) in [(&a, &b), (&b, &a)] {
            if let (Some(unit), None) = (side.counts.unit(), other.counts.unit()) {
                bail!("{} has units of work, calls of '{unit}', and {} has none", side.label, other.label);
            }
        }
        let pairing = Pairing::new(&a.counts.images, &b.counts.images);
        let profiles = [pairing.rename(0, &a.counts.profile()), pairing.rename(1, &b.counts.profile())];
        let mut tables = self.tables([&a, &b], &profiles, pairing);
        let sorted = self.console.sort(&mut tables);
        let is_short = self.console.format() == Format::Markdown;
        for table in tables.iter_mut().filter(|table| ["instructions", "functions"].contains(&&*table.name)) {
            self.console.shorten(table, is_short.then_some(MARKDOWN_ROWS), "--top shows more");
        }
        self.console.write(&tables, a.has_run || b.has_run)?;
        sorted?;
        if a.has_failed || b.has_failed {
            return Ok(ExitCode::FAILURE);
        }
        let span = a.counts.span();
        let is_above = self.gate.as_ref().map_or(Ok(false), |gate| gate.is_exceeded(span, &profiles))?;
        Ok(if is_above { ABOVE.into() } else { ExitCode::SUCCESS })
    }

    fn tables(
        &self,
        sides: [&Side; 2],
        [profile_a, profile_b]: &[Profile; 2],
        pairing: Pairing,
    ) -> Vec<Table> {
        let [a, b] = sides;
        let pair = [a.label.as_str(), b.label.as_str()];
        let mut tables = Vec::new();
        if let (Some(first), Some(second)) = (a.counts.measurement(), b.counts.measurement()) {
            let title = "Path length: instructions a unit of work";
            tables.push(path_lengths("path-length", title, &[(pair[0], first), (pair[1], second)]));
        }
        let (mix_a, mix_b) = (profile_a.mix(), profile_b.mix());
        let mixes = [(pair[0], &mix_a), (pair[1], &mix_b)];
        let mut images = image_shares("images", "Images", &[(pair[0], profile_a), (pair[1], profile_b)]);
        images.notes.extend(pairing.notes);
        let mut instructions =
            mix::difference("instructions", "Instructions, most changed first", pair, &mix_a, &mix_b);
        let title = "Functions, most changed first";
        let mut functions = function_differences("functions", title, pair, profile_a, profile_b);
        most_changed(&mut instructions, "instructions");
        most_changed(&mut functions, "functions");
        if self.console.format() == Format::Markdown {
            tables.push(functions);
        } else {
            let groups = mix::group_shares("groups", "Instruction groups", &mixes);
            tables.extend([images, groups, instructions, functions]);
        }
        if sides.iter().all(|side| side.counts.has_owners()) {
            tables.insert(0, owner_differences(pair, sides.map(|side| &side.counts)));
        }
        for side in sides {
            let notes = side.counts.description.notes.iter().map(|note| format!("{}: {note}", side.label));
            tables[0].notes.extend(notes);
        }
        let environments = sides.map(|side| side.counts.description.environment.as_ref());
        tables[0].notes.extend(environment_difference(pair, environments));
        tables[0].notes.extend(path_difference(sides.map(|side| side.counts.description.program.as_str())));
        tables
    }

    fn side(&self, input: &Input, label: String) -> anyhow::Result<Side> {
        match input {
            Input::SavedCounts(path) => {
                Ok(Side { label, counts: RunCounts::open(path)?, has_run: false, has_failed: false })
            }
            Input::Trace(path) => {
                let (TraceCounts { counts, .. }, is_whole) = counts_of_trace(self.console, path, None)?;
                Ok(Side { label, counts, has_run: false, has_failed: !is_whole })
            }
            Input::Attached(_) => bail!("{input} cannot be compared while it runs: save its counts first"),
            Input::Program { path, arguments } => {
                let configuration = self.program.configuration(path, arguments, true);
                let counted = count_steady(self.console, configuration, self.unit.clone());
                let unit = self.unit.as_ref().and_then(|(work, _)| work.functions.first());
                let (configuration, counted) = counted.with_context(|| path.display().to_string())?;
                let ended = check_ending(&counted.ending, path, &self.expected)?;
                let counts = run_counts_of(&configuration, unit, counted);
                Ok(Side { label, counts, has_run: true, has_failed: ended != ExitCode::SUCCESS })
            }
        }
    }
}

impl Gate {
    /// Whether the second profile has too much more than the first; says so on standard error.
    fn is_exceeded(&self, span: &str, [a, b]: &[Profile; 2]) -> anyhow::Result<bool> {
        let of = |profile: &Profile, pattern: &SymbolPattern| -> f64 {
            let named = profile.functions.iter().filter(|(function, _)| function.is_named(pattern));
            named.map(|(_, n)| *n).sum()
        };
        let (what, before, after) = match &self.function {
            Some(name) => {
                let executed = a.functions.keys().chain(b.functions.keys());
                check_executed(std::slice::from_ref(name), executed).context("on neither side")?;
                let pattern = SymbolPattern::new(name);
                (name.clone(), of(a, &pattern), of(b, &pattern))
            }
            None => (span.into(), a.total, b.total),
        };
        if !self.threshold.is_exceeded(before, after) {
            return Ok(false);
        }
        let share = if before > 0.0 {
            format!(", {:+.2} %", 100.0 * (after - before) / before)
        } else {
            String::new()
        };
        text::message!(
            "{what} grew from {} to {} instructions (+{}{share}), more than --fail-above allows",
            rounded(before),
            rounded(after),
            rounded(after - before)
        );
        let growth = |(name, n): (_, &f64)| (name, n - a.functions.get(name).unwrap_or(&0.0));
        let mut worst: Vec<(&FunctionName, f64)> =
            b.functions.iter().map(growth).filter(|(_, n)| *n >= 0.5).collect();
        worst.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        for (name, n) in worst.iter().take(if self.function.is_some() { 0 } else { WORST }) {
            text::message!("note: {} in {}: +{}", name.function, name.image, rounded(*n));
        }
        Ok(true)
    }
}

/// A note on programs whose paths have different lengths: a program may process its own path, as a server that finds its files by it.
fn path_difference([a, b]: [&str; 2]) -> Option<String> {
    let (of_a, of_b) = (a.chars().count(), b.chars().count());
    (of_a != of_b).then(|| {
        format!(
            "The paths of the programs have {of_a} and {of_b} characters: programs that look at their own path, as PostgreSQL \
             does, execute some instructions more for a longer one."
        )
    })
}

/// Leaves only the rows of a table that changed, those that changed most first.
fn most_changed(table: &mut Table, what: &str) {
    let Some(column) = table.columns.iter().position(|column| column.name == "delta") else { return };
    let total = if table.total { table.rows.pop() } else { None };
    let delta = |row: &Vec<Value>| match row[column] {
        Value::Integer(delta) => delta.unsigned_abs(),
        _ => 0,
    };
    let all = table.rows.len();
    table.rows.retain(|row| delta(row) != 0);
    let changed = table.rows.len();
    table.rows.sort_by_key(|row| Reverse(delta(row)));
    if changed < all {
        let unchanged = separated(&(all - changed).to_string());
        table.notes.push(format!("{unchanged} {what} did not change and are left out."));
    }
    table.rows.extend(total);
}

/// Names for the two columns: the last components of the paths in which they differ.
fn labels(a: &Input, b: &Input) -> [String; 2] {
    let parts = |path: &Path| -> Vec<String> {
        path.components().rev().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
    };
    let path = |input: &Input| input.path().map_or(Vec::new(), parts);
    let (parts_a, parts_b) = (path(a), path(b));
    match parts_a.iter().zip(&parts_b).find(|(a, b)| a != b) {
        Some((a, b)) => [a.clone(), b.clone()],
        None => ["first".into(), "second".into()],
    }
}
