//! Progress on standard error: a bar on a terminal, nothing in a pipe.

mod live;

use std::time::Duration;

use analysis::units::Phase;
use indicatif::{ProgressBar, ProgressStyle};
use studies::StudyProgress;
use workloads::build;

pub use live::LiveProgress;

/// The progress of a replay.
pub struct Replaying {
    bar: ProgressBar,
}

impl Replaying {
    /// For this number of instructions; hidden if the output needs the terminal.
    pub fn new(instructions: u64, is_shown: bool) -> Replaying {
        let template = "{wide_bar} {percent} % of {human_len} instructions, {eta} to go";
        let style = ProgressStyle::with_template(template).expect("a valid template");
        let bar = if is_shown { ProgressBar::new(instructions) } else { ProgressBar::hidden() };
        Replaying { bar: bar.with_style(style) }
    }

    /// Advances by this number of instructions.
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
    /// Without steps.
    pub fn new() -> Steps {
        let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})").expect("a valid template");
        Steps { bar: ProgressBar::new_spinner().with_style(style) }
    }

    /// Animates the line by a thread: not for processes that fork.
    pub fn animate(&self) {
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    /// Shows the current step.
    pub fn show(&self, step: &StudyProgress) {
        let message = match step {
            StudyProgress::Building(build::BuildProgress::Downloading { package }) => {
                format!("downloading the sources of {package}")
            }
            StudyProgress::Building(build::BuildProgress::Step { build, doing, what }) => {
                format!("{doing} {what} ({build})")
            }
            StudyProgress::Building(build::BuildProgress::Done { build }) => {
                format!("the {build} build is ready")
            }
            StudyProgress::Loading => "loading the database".into(),
            StudyProgress::Running(mode) => format!("running both builds, {mode}"),
            StudyProgress::Timing(mode) => format!("timing both builds on the machines, {mode}"),
            StudyProgress::Doing(what) => what.clone(),
            StudyProgress::Units(units, phase) => {
                self.bar.set_message(match phase {
                    Phase::WarmingUp => format!("warming up: {units} transactions"),
                    Phase::Measuring => format!("measuring: {units} transactions"),
                    Phase::Done => "measured; running to the end and its checks".to_string(),
                });
                return;
            }
        };
        self.message(message);
    }

    /// Shows a message.
    pub fn message(&self, message: String) {
        if self.bar.is_hidden() {
            text::message!("{message}");
        }
        self.bar.set_message(message);
        self.bar.tick();
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
