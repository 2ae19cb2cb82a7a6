//! Progress on standard error: a bar on a terminal, nothing in a pipe.

use std::time::Duration;

use analysis::units::Phase;
use indicatif::{ProgressBar, ProgressStyle};
use lab::build;
use lab::study::Progress;

/// The progress of a measurement of units of work.
pub struct Units {
    bar: ProgressBar,
    wanted: u64,
    warm_up: u64,
}

impl Units {
    /// For a measurement of `wanted` units.
    pub fn new(wanted: u32) -> Units {
        let style =
            ProgressStyle::with_template("{spinner} {msg} {pos} ({elapsed})").expect("a valid template");
        Units { bar: ProgressBar::no_length().with_style(style), wanted: wanted.into(), warm_up: 0 }
    }

    /// Another unit ended.
    pub fn show(&mut self, seen: u64, phase: Phase) {
        let message = match phase {
            Phase::WarmingUp => {
                self.warm_up = seen;
                "warming up, units:".to_string()
            }
            Phase::Measuring => {
                format!("measuring {} units after {} to warm up, units:", self.wanted, self.warm_up)
            }
            // The program runs on to its end, and its output needs the line.
            Phase::Done => return self.clear(),
        };
        // Every so often is often enough: a unit may be a few instructions long.
        if seen.is_multiple_of(64) {
            self.bar.set_message(message);
            self.bar.set_position(seen);
        }
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// How far a trace has been gone through.
pub struct Replaying {
    bar: ProgressBar,
}

impl Replaying {
    /// Of so many instructions; not shown if the output needs the terminal.
    pub fn new(instructions: u64, is_shown: bool) -> Replaying {
        let template = "{wide_bar} {percent} % of {human_len} instructions, {eta} to go";
        let style = ProgressStyle::with_template(template).expect("a valid template");
        let bar = if is_shown { ProgressBar::new(instructions) } else { ProgressBar::hidden() };
        Replaying { bar: bar.with_style(style) }
    }

    /// So many more instructions.
    pub fn show(&self, instructions: u64) {
        self.bar.inc(instructions);
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of a study, step by step: lines in a pipe, a line that changes on a terminal.
pub struct Steps {
    bar: ProgressBar,
}

impl Steps {
    /// Nothing done yet.
    pub fn new() -> Steps {
        let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})").expect("a valid template");
        Steps { bar: ProgressBar::new_spinner().with_style(style) }
    }

    /// Shows that time passes, by a thread: not for what forks.
    pub fn animate(&self) {
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    /// Shows what is being done.
    pub fn show(&self, step: &Progress) {
        let message = match step {
            Progress::Building(build::Progress::Downloading { package }) => {
                format!("downloading the sources of {package}")
            }
            Progress::Building(build::Progress::Step { build, doing, what }) => {
                format!("{doing} {what} ({build})")
            }
            Progress::Building(build::Progress::Done { build }) => format!("the {build} build is ready"),
            Progress::Loading => "loading the database".into(),
            Progress::Running(mode) => format!("running both builds, {mode}"),
            Progress::Timing(mode) => format!("timing both builds on the machines, {mode}"),
            Progress::Units(units, phase) => {
                self.bar.set_message(match phase {
                    Phase::WarmingUp => format!("warming up: {units} transactions"),
                    Phase::Measuring => format!("measuring: {units} transactions"),
                    Phase::Done => "measured; running on to the end and its checks".to_string(),
                });
                return;
            }
        };
        self.tell(message);
    }

    /// Shows a step in words.
    pub fn tell(&self, message: String) {
        if self.bar.is_hidden() {
            eprintln!("pathlength: {message}");
        }
        self.bar.set_message(message);
        self.bar.tick();
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
