//! Runs jobs on all processors up to a limit, with progress on the terminal.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The limit of a run.
#[derive(Clone, Copy)]
pub struct Limit {
    pub count: u64,
    pub until: Option<Instant>,
}

/// The results of jobs.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    pub done: u64,
    /// Not compared because of a timeout.
    pub skipped: u64,
    pub failed: u64,
}

impl Tally {
    pub fn and(self, other: Tally) -> Tally {
        Tally {
            done: self.done + other.done,
            skipped: self.skipped + other.skipped,
            failed: self.failed + other.failed,
        }
    }
}

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Whether Ctrl-C was pressed.
pub fn is_stopped() -> bool {
    STOPPED.load(Relaxed)
}

/// Makes Ctrl-C end the run with the results so far.
pub fn stop_on_interrupt() {
    extern "C" fn stop(_: i32) {
        STOPPED.store(true, Relaxed);
    }
    // SAFETY: the handler only sets a flag.
    unsafe { libc::signal(libc::SIGINT, stop as *const () as usize) };
}

/// Number of parallel jobs.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs jobs 0, 1, 2 and so on, up to the limit in time or number.
pub fn run(what: &str, limit: Limit, job: impl Fn(u64) -> Tally + Sync) -> Tally {
    let [next, done, skipped, failed] = std::array::from_fn(|_| AtomicU64::new(0));
    let tally =
        || Tally { done: done.load(Relaxed), skipped: skipped.load(Relaxed), failed: failed.load(Relaxed) };
    let begin = Instant::now();
    let work = || {
        while !is_stopped() && limit.until.is_none_or(|until| Instant::now() < until) {
            let number = next.fetch_add(1, Relaxed);
            if number >= limit.count {
                break;
            }
            let one = job(number);
            for (sum, one) in [(&done, one.done), (&skipped, one.skipped), (&failed, one.failed)] {
                sum.fetch_add(one, Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads()).map(|_| scope.spawn(work)).collect();
        let every = Duration::from_millis(if std::io::stderr().is_terminal() { 200 } else { 20_000 });
        let mut shown = Instant::now();
        while !workers.iter().all(|worker| worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(50));
            if shown.elapsed() >= every {
                shown = Instant::now();
                show(what, tally(), begin.elapsed(), false);
            }
        }
    });
    show(what, tally(), begin.elapsed(), true);
    tally()
}

fn show(what: &str, tally: Tally, elapsed: Duration, is_last: bool) {
    let terminal = std::io::stderr().is_terminal();
    let (start, end) = (if terminal { "\r\x1b[K" } else { "" }, if terminal && !is_last { "" } else { "\n" });
    let per_second = tally.done as f64 / elapsed.as_secs_f64().max(0.001);
    let skipped =
        if tally.skipped > 0 { format!(", {} took too long", tally.skipped) } else { String::new() };
    eprint!(
        "{start}fuzz: {} {what}{skipped}, {} differences, {:.0} s, {per_second:.1} a second{end}",
        tally.done,
        tally.failed,
        elapsed.as_secs_f64()
    );
    // Errors in showing progress are ignored.
    let _ = std::io::stderr().flush();
}

/// Reports a difference.
pub fn report(text: &str) {
    let start = if std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    eprintln!("{start}{text}");
}
