//! Runs a program in one of several ways, and measures its processor time.

use std::ops::{Add, Sub};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Error;

pub const SYSROOT: &str = "/usr/alpha-linux-gnu";
pub const QEMU: &str = "qemu-alpha";

/// How a program is run.
#[derive(Clone)]
pub struct MeasuredCommand {
    pub name: String,
    /// The words before the program.
    pub command: Vec<PathBuf>,
    /// A variable of its environment.
    pub variable: Option<(&'static str, &'static str)>,
    /// The program's build for the host.
    pub is_native: bool,
}

impl MeasuredCommand {
    /// By a command, to which the Alpha program is added.
    pub fn new(
        name: impl Into<String>,
        command: impl IntoIterator<Item = impl Into<PathBuf>>,
    ) -> MeasuredCommand {
        let command = command.into_iter().map(Into::into).collect();
        MeasuredCommand { name: name.into(), command, variable: None, is_native: false }
    }

    /// By a subcommand of ours with its options, which writes a file.
    pub fn writing(name: &str, pathlength: &Path, words: &[&str], file: &Path) -> MeasuredCommand {
        let words = words.iter().map(Path::new);
        MeasuredCommand::new(name, [pathlength].into_iter().chain(words).chain(["-o".as_ref(), file]))
    }

    /// The command that runs a program.
    pub fn command(&self, alpha: &Path, native: &Path) -> Command {
        let program = if self.is_native { native } else { alpha };
        let mut words = self.command.iter().map(PathBuf::as_path).chain([program]);
        let mut command = Command::new(words.next().unwrap_or(program));
        command.args(words).envs(self.variable);
        command
    }
}

/// One program and its arguments. `{database}` stands for a fresh copy of the workload's.
pub struct Job {
    pub title: String,
    pub native: PathBuf,
    pub alpha: PathBuf,
    pub arguments: Vec<String>,
}

/// Processor seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    pub user: f64,
    pub system: f64,
}

impl Used {
    pub fn new(usage: &libc::rusage) -> Used {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Used { user: seconds(usage.ru_utime), system: seconds(usage.ru_stime) }
    }

    pub fn total(self) -> f64 {
        self.user + self.system
    }

    /// The resources that a living process, its children, and those of them that have ended have used so far (proc(5): stat).
    pub fn of_process(process: u32) -> Result<Used, Error> {
        let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"))?;
        let children = children.split_whitespace().filter_map(|child| child.parse().ok());
        let mut used = ticks(process, 4).ok_or("the server has ended")?;
        // A child may have ended meanwhile.
        for child in children.filter_map(|child| ticks(child, 2)) {
            used = used + child;
        }
        // SAFETY: accesses no memory.
        let second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
        Ok(Used { user: used.user / second, system: used.system / second })
    }
}

impl Add for Used {
    type Output = Used;

    fn add(self, other: Used) -> Used {
        Used { user: self.user + other.user, system: self.system + other.system }
    }
}

impl Sub for Used {
    type Output = Used;

    fn sub(self, other: Used) -> Used {
        Used { user: self.user - other.user, system: self.system - other.system }
    }
}

/// The clock ticks of a process: its own, in two fields, or in four with those of the children that it has waited for.
fn ticks(process: u32, fields: usize) -> Option<Used> {
    const USER: usize = 11;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program before may have spaces.
    let words = stat.rsplit(')').next()?.split_whitespace().skip(USER).take(fields);
    let numbers: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
    let sum = |first: usize| numbers.iter().skip(first).step_by(2).sum();
    Some(Used { user: sum(0), system: sum(1) })
}

/// Runs a job once. Its processor time is what all children have used more than before.
pub fn measure(job: &Job, runner: &MeasuredCommand, loaded: &Path, directory: &Path) -> Result<Used, Error> {
    let database = directory.join("run.db");
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(directory.join(format!("run.db{suffix}")));
    }
    std::fs::copy(loaded, &database)?;
    let mut command = runner.command(&job.alpha, &job.native);
    for argument in &job.arguments {
        command.arg(argument.replace("{database}", &database.display().to_string()));
    }
    let before = children()?;
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
    let after = children()?;
    if !output.status.success() {
        let how = output.status.signal().map_or_else(String::new, |signal| format!(" (signal {signal})"));
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} failed under {}{how}: {errors}", job.title, runner.name).into());
    }
    Ok(after - before)
}

/// The cheapest of this number of runs, and its elapsed seconds; `cost` computes a run's cost from both times.
pub fn best(
    runs: u32,
    cost: impl Fn(Used, f64) -> f64,
    mut run: impl FnMut() -> Result<Used, Error>,
) -> Result<(Used, f64), Error> {
    let timed = (0..runs).map(|_| {
        let began = Instant::now();
        Ok((run()?, began.elapsed().as_secs_f64()))
    });
    let timed = timed.collect::<Result<Vec<_>, Error>>()?;
    let cheapest = timed.into_iter().min_by(|a, b| cost(a.0, a.1).total_cmp(&cost(b.0, b.1)));
    Ok(cheapest.ok_or("no run")?)
}

/// The run of each of several runners that has used the least; they take turns, so that all meet the same disturbances.
pub fn best_of_each<R, U: Copy>(
    runners: &[R],
    runs: u32,
    total: impl Fn(U) -> f64,
    mut run: impl FnMut(&R) -> Result<U, Error>,
) -> Result<Vec<U>, Error> {
    let mut least: Vec<Option<U>> = runners.iter().map(|_| None).collect();
    for _ in 0..runs {
        for (runner, least) in runners.iter().zip(&mut least) {
            let used = run(runner)?;
            if least.is_none_or(|least| total(used) < total(least)) {
                *least = Some(used);
            }
        }
    }
    least.into_iter().map(|used| used.ok_or_else(|| "no run".into())).collect()
}

/// The resources that work in this process uses, with its children that end meanwhile.
pub fn measure_here(work: impl FnOnce() -> Result<(), Error>) -> Result<Used, Error> {
    let used = || Ok::<_, Error>(usage(libc::RUSAGE_SELF)? + children()?);
    let before = used()?;
    work()?;
    Ok(used()? - before)
}

/// The resources of all children that have ended.
fn children() -> Result<Used, Error> {
    usage(libc::RUSAGE_CHILDREN)
}

fn usage(who: libc::c_int) -> Result<Used, Error> {
    // SAFETY: an all-zero rusage is a valid value, which the call fills in.
    let (result, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(who, &mut usage), usage)
    };
    if result != 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok(Used::new(&usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runners_take_turns_and_each_keeps_its_cheapest_run() {
        let mut order = String::new();
        let mut costs = [3.0, 5.0, 4.0, 2.0, 6.0, 9.0].into_iter();
        let used = best_of_each(&["a", "b"], 3, Used::total, |runner| {
            order += runner;
            Ok(Used { user: costs.next().ok_or("too many runs")?, system: 0.0 })
        });
        let totals: Vec<f64> = used.unwrap().into_iter().map(Used::total).collect();
        assert_eq!((order.as_str(), totals), ("ababab", vec![3.0, 2.0]));
    }

    #[test]
    fn a_failed_run_fails_the_measurement() {
        assert!(best_of_each(&[()], 2, Used::total, |()| Err("it failed".into())).is_err());
    }
}
