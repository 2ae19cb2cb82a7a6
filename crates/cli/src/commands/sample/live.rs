//! The table that `sample --live` refreshes on the terminal.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::{Duration, Instant};

use anyhow::bail;
use engine::ProcessState;
use session::sampling::{FunctionNames, SampledFolder};

/// How often the table is refreshed.
const REFRESHED_EVERY: Duration = Duration::from_secs(1);
/// Enters and leaves the terminal's second screen.
const SCREEN: [&str; 2] = ["\x1b[?1049h", "\x1b[?1049l"];

/// The table.
pub struct LiveView {
    began: Instant,
    shown: Option<Instant>,
    names: FunctionNames,
    /// By process, program and thread, how many samples were seen.
    seen: HashMap<(String, u32, u32), usize>,
    /// By function and image: all samples, and those since the last refresh.
    functions: HashMap<(String, String), [u64; 2]>,
    /// The same with what functions call.
    inclusive: HashMap<(String, String), u64>,
    total: u64,
}

impl LiveView {
    /// On standard error, which must be a terminal.
    pub fn new() -> anyhow::Result<LiveView> {
        if !std::io::stderr().is_terminal() {
            bail!("--live shows a table on a terminal, but standard error is none: leave it out");
        }
        eprint!("{}", SCREEN[0]);
        Ok(LiveView {
            began: Instant::now(),
            shown: None,
            names: FunctionNames::default(),
            seen: HashMap::new(),
            functions: HashMap::new(),
            inclusive: HashMap::new(),
            total: 0,
        })
    }

    /// Shows the samples so far, unless they were shown less than a second ago.
    pub fn show(&mut self, sampled: &SampledFolder) {
        if self.shown.is_some_and(|shown| shown.elapsed() < REFRESHED_EVERY) {
            return;
        }
        let elapsed = self.shown.map_or(self.began, |shown| shown).elapsed();
        self.shown = Some(Instant::now());
        let new = self.add(sampled);
        let running = sampled.programs.iter().filter(|program| program.state == ProcessState::Running);
        let screen = self.render(new, elapsed, running.count());
        // One write, so that the screen does not flicker. If it fails, nobody looks.
        let _ = std::io::stderr().write_all(screen.as_bytes());
    }

    /// Adds new samples; their number.
    fn add(&mut self, sampled: &SampledFolder) -> u64 {
        self.functions.values_mut().for_each(|samples| samples[1] = 0);
        let mut new = 0;
        for program in &sampled.programs {
            for thread in &program.threads {
                let key = (program.number.to_string(), program.host_process, thread.number);
                let seen = self.seen.entry(key).or_default();
                // Another program of the process begins anew.
                let first = if *seen > thread.samples.len() { 0 } else { *seen };
                *seen = thread.samples.len();
                for sample in &thread.samples[first..] {
                    let weight = u64::from(sample.weight.max(1));
                    new += weight;
                    let chain: Vec<(String, String)> = (0..)
                        .zip(&sample.chain)
                        .map(|(index, &at)| self.names.name(program, if index == 0 { at } else { at - 4 }))
                        .collect();
                    if let Some(function) = chain.first() {
                        let samples = self.functions.entry(function.clone()).or_default();
                        samples.iter_mut().for_each(|samples| *samples += weight);
                    }
                    let mut counted: Vec<&(String, String)> = Vec::new();
                    for function in &chain {
                        if !counted.contains(&function) {
                            counted.push(function);
                            *self.inclusive.entry(function.clone()).or_default() += weight;
                        }
                    }
                }
            }
        }
        self.total += new;
        new
    }

    fn render(&self, new: u64, elapsed: Duration, running: usize) -> String {
        let (width, height) = size();
        let mut screen = String::from("\x1b[H");
        let mut line = |text: &str| {
            let cut: String = text.chars().take(width).collect();
            let _ = write!(screen, "{cut}\x1b[K\r\n");
        };
        let seconds = self.began.elapsed().as_secs();
        let rate = new as f64 / elapsed.as_secs_f64().max(0.001);
        let processes = if running == 1 { "process" } else { "processes" };
        line(&format!(
            "pathlength sample --live   {seconds} s   {running} {processes}   {} samples, {rate:.0}/s   Ctrl-C ends",
            self.total
        ));
        line("");
        line("    now   total  with callees  function                                  image");
        let mut rows: Vec<_> = self.functions.iter().collect();
        rows.sort_by(|(a, of_a), (b, of_b)| (of_b[1], of_b[0], a).cmp(&(of_a[1], of_a[0], b)));
        let percent = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
        for (function, [all, now]) in rows.into_iter().take(height.saturating_sub(4)) {
            let inclusive = self.inclusive.get(function).copied().unwrap_or(0);
            line(&format!(
                "{:>5.1} % {:>5.1} %       {:>5.1} %  {:<40}  {}",
                percent(*now, new),
                percent(*all, self.total),
                percent(inclusive, self.total),
                function.0.chars().take(40).collect::<String>(),
                function.1
            ));
        }
        screen.push_str("\x1b[J");
        screen
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        eprint!("{}", SCREEN[1]);
    }
}

/// Columns and lines of the terminal.
fn size() -> (usize, usize) {
    // SAFETY: an all-zero winsize is valid, and the call writes one.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &raw mut size) == 0).then_some(size)
    };
    let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}
