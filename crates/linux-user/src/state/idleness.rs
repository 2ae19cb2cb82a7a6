//! Whether another process waits, for runs with dilated time: there, a process that sends another one a signal, as to wake it,
//! goes on when that one waits again, so that the two do not run at the same time in an order that the host decides.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::reserved;

/// How long a process must wait to be taken for idle.
const PAUSE: Duration = Duration::from_millis(2);
/// A process that works for longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits until a process waits, or has ended.
pub fn wait(process: i32) {
    let began = Instant::now();
    let mut last = None;
    while began.elapsed() < PATIENCE {
        // Files that are open meanwhile must not take numbers from the program.
        let Some(now) = reserved::beyond_limit(|| used_if_waiting(process)) else {
            // It runs, or is no more.
            if !fs::exists(format!("/proc/{process}")).unwrap_or(false) {
                return;
            }
            last = None;
            sleep(PAUSE / 4);
            continue;
        };
        if last.as_ref() == Some(&now) {
            return;
        }
        last = Some(now);
        sleep(PAUSE);
    }
}

/// The processor time of each thread of a process, if all of them wait for something else than a disk (proc(5)).
fn used_if_waiting(process: i32) -> Option<Vec<String>> {
    let mut used = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()? {
        let thread = thread.ok()?.path();
        let status = fs::read_to_string(thread.join("stat")).ok()?;
        // Behind the name, which may contain anything.
        let (_, state) = status.rsplit_once(") ")?;
        if !state.starts_with(['S', 'Z', 'T']) {
            return None;
        }
        used.push(fs::read_to_string(thread.join("schedstat")).ok()?);
    }
    Some(used)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_waits_is_idle() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        wait(cat.id() as i32);
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
        assert!(used_if_waiting(cat.id() as i32).is_some());
        drop(cat.stdin.take());
        cat.wait().unwrap();
        wait(cat.id() as i32);
    }
}
