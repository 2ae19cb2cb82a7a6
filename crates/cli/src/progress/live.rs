//! The progress of a program that runs: a line on standard error, if that is a terminal and the program's standard output
//! goes elsewhere. It is drawn by a thread of its own, from counters that the program's threads update anyway.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use analysis::units::Phase;

/// The time between two lines; a program that ends sooner has none.
const INTERVAL: Duration = Duration::from_millis(250);
/// Clears the rest of the line, and leaves the cursor at its beginning, so that messages of the program begin there.
const END: &str = "\x1b[K\r";

/// What is shown.
#[derive(Debug, Default)]
struct Counters {
    /// Instructions that the program has executed.
    instructions: Arc<AtomicU64>,
    units: AtomicU64,
    /// The number of units before measuring began, and 1; 0 before.
    measured_from: AtomicU64,
    is_over: AtomicBool,
}

/// The progress of one run.
pub struct LiveProgress {
    counters: Arc<Counters>,
    thread: Option<JoinHandle<()>>,
}

impl LiveProgress {
    /// Begins to show it; not if the program's standard output goes to standard error.
    pub fn new(is_output_moved: bool) -> LiveProgress {
        let counters = Arc::new(Counters::default());
        let is_shown = io::stderr().is_terminal() && !io::stdout().is_terminal() && !is_output_moved;
        // The program may close its own standard error.
        let terminal = is_shown.then(|| linux_user::high_copy(io::stderr().as_raw_fd())).flatten();
        let shown = counters.clone();
        let thread = terminal.and_then(|terminal| {
            let body = move || show(&shown, File::from(terminal));
            host::spawn("progress", body).ok()
        });
        LiveProgress { counters, thread }
    }

    /// Where the program's instructions are counted; None if they are not shown.
    pub fn instructions(&self) -> Option<Arc<AtomicU64>> {
        self.thread.is_some().then(|| self.counters.instructions.clone())
    }

    /// Another unit of work ended.
    pub fn unit(&self, seen: u64, phase: Phase) {
        self.counters.units.store(seen, Relaxed);
        if phase != Phase::WarmingUp && self.counters.measured_from.load(Relaxed) == 0 {
            self.counters.measured_from.store(seen, Relaxed);
        }
    }
}

impl Drop for LiveProgress {
    /// Removes the line.
    fn drop(&mut self) {
        self.counters.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Draws the line until the run is over. Errors of the terminal are ignored.
fn show(counters: &Counters, mut terminal: File) {
    let start = Instant::now();
    let mut next = start + INTERVAL;
    while !counters.is_over.load(Relaxed) {
        std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
        if Instant::now() >= next {
            next = Instant::now() + INTERVAL;
            let _ = terminal.write_all(line(counters, start.elapsed()).as_bytes());
        }
    }
    let _ = terminal.write_all(format!("\r{END}").as_bytes());
}

fn line(counters: &Counters, elapsed: Duration) -> String {
    let number = |counter: &AtomicU64| indicatif::HumanCount(counter.load(Relaxed));
    let units = match (counters.units.load(Relaxed), counters.measured_from.load(Relaxed)) {
        (0, _) => String::new(),
        (_, 0) => format!("warming up, {} units; ", number(&counters.units)),
        (seen, from) => {
            let measured = indicatif::HumanCount((seen + 1).saturating_sub(from));
            format!("measuring, {measured} units after {} to warm up; ", indicatif::HumanCount(from - 1))
        }
    };
    let instructions = number(&counters.instructions);
    format!("\r{units}{instructions} instructions, {} s{END}", elapsed.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_units_instructions_and_time() {
        let progress = LiveProgress { counters: Arc::default(), thread: None };
        let shown = |progress: &LiveProgress| {
            let line = line(&progress.counters, Duration::from_millis(3700));
            line.trim_start_matches('\r').trim_end_matches(END).to_string()
        };
        progress.counters.instructions.store(1_234_567, Relaxed);
        assert_eq!(shown(&progress), "1,234,567 instructions, 3 s");
        progress.unit(1500, Phase::WarmingUp);
        assert_eq!(shown(&progress), "warming up, 1,500 units; 1,234,567 instructions, 3 s");
        progress.unit(1501, Phase::Measuring);
        progress.unit(1510, Phase::Measuring);
        assert_eq!(
            shown(&progress),
            "measuring, 10 units after 1,500 to warm up; 1,234,567 instructions, 3 s"
        );
    }
}
