//! Runs of the library's programs: on Alpha, observed by models of machines, and on the host, timed.

use std::path::Path;
use std::process::Command;
use std::thread;

use engine::{Plan, UnitPlan};
use isa::CpuModel;
use machine::{Caches, Machine, MachineSetting, TimingModel, WarmUp};
use serde::{Deserialize, Serialize};
use session::forked_run::{self, ForkedRun};
use session::live;
use session::measure::Ending;
use workloads::build::Build;
use workloads::toolchain::{EV6, NATIVE, ORIGINAL};

use super::error::Error;
use crate::environment::repeatable;
use crate::models::Models;

/// A machine of the nineties, and the build of the library for it.
pub(super) struct GraphicsSystem {
    pub(super) label: &'static str,
    pub(super) machine: &'static str,
    pub(super) build: &'static str,
}

pub(super) const SYSTEMS: [GraphicsSystem; 2] = [
    GraphicsSystem { label: "21164, 400 MHz", machine: "alphastation500-ev5", build: ORIGINAL.name },
    GraphicsSystem { label: "21264, 500 MHz", machine: "alpha21264", build: EV6.name },
];

impl GraphicsSystem {
    /// Its machine, at another clock if one is given. Caches outside of the processor and memory keep their time.
    pub(super) fn machine(&self, clock_mhz: Option<u32>) -> Machine {
        let setting = clock_mhz.map(|mhz| format!("processor.clock_mhz={mhz}"));
        let settings: Vec<MachineSetting> =
            setting.iter().map(|text| text.parse().expect("the study's settings are FIELD=VALUE")).collect();
        Machine::find_with(self.machine, &settings).expect("the machine is built in")
    }
}

/// A program, its arguments, and the frames of it that are observed, after one that warms up.
#[derive(Clone, Debug)]
pub(super) struct FrameJob {
    pub(super) build: &'static str,
    /// Its path in the folder of the build.
    pub(super) program: &'static str,
    /// The arguments before and after the number of frames.
    pub(super) arguments: [Vec<String>; 2],
    pub(super) variable: Option<(&'static str, String)>,
    pub(super) machines: Vec<Machine>,
    pub(super) frames: u64,
}

/// The cost of observed frames.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct FrameCost {
    pub(super) instructions: u64,
    /// On each machine.
    pub(super) cycles: Vec<u64>,
    pub(super) instruction_misses: Vec<u64>,
    pub(super) data_misses: Vec<u64>,
    pub(super) frames: u64,
}

impl FrameCost {
    /// Instructions of one of `parts` equal parts of a frame.
    pub(super) fn instructions_of(&self, parts: u64) -> f64 {
        self.instructions as f64 / (self.frames * parts) as f64
    }

    /// Its cycles on a machine.
    pub(super) fn cycles_of(&self, machine: usize, parts: u64) -> f64 {
        self.cycles[machine] as f64 / (self.frames * parts) as f64
    }
}

/// The builds, and where Alpha's libraries are.
pub(super) struct GraphicsRunner<'s> {
    pub(super) builds: &'s [Build],
    pub(super) sysroot: &'s Path,
}

impl GraphicsRunner<'_> {
    /// The build of this name, if it was made.
    pub(super) fn build(&self, name: &str) -> Option<&Build> {
        self.builds.iter().find(|build| build.name == name)
    }

    /// Runs jobs, as many at once as there are processors; their costs are in the same order.
    pub(super) fn costs(&self, jobs: &[FrameJob]) -> Result<Vec<FrameCost>, Error> {
        let at_once = thread::available_parallelism().map_or(1, usize::from);
        let mut costs = Vec::new();
        for jobs in jobs.chunks(at_once) {
            let running = jobs.iter().map(|job| self.start(job)).collect::<Result<Vec<_>, _>>()?;
            for (job, running) in jobs.iter().zip(running) {
                costs.push(wait(job, running)?.0);
            }
        }
        Ok(costs)
    }

    /// The numbers that a job's program prints on Alpha.
    pub(super) fn numbers(&self, job: &FrameJob) -> Result<Vec<u64>, Error> {
        let (_, printed) = wait(job, self.start(job)?)?;
        read_numbers(&printed).map_err(|reason| Error::Program { program: job.to_string(), reason })
    }

    /// Starts a job in a process of its own.
    fn start(&self, job: &FrameJob) -> Result<ForkedRun<FrameCost, ()>, Error> {
        let running = forked_run::start(|_: &mut (dyn FnMut(()) + Send)| self.observe(job));
        running.map_err(|error| Error::Run { program: job.to_string(), error })
    }

    /// Runs a job here. The program's output goes where this process' output goes.
    fn observe(&self, job: &FrameJob) -> Result<FrameCost, String> {
        let build = self.build(job.build).ok_or("there is no such build")?;
        let cpu = if job.build == EV6.name { CpuModel::Ev6 } else { CpuModel::Ev5 };
        let [before, after] = &job.arguments;
        let arguments =
            before.iter().cloned().chain([(job.frames + 1).to_string()]).chain(after.iter().cloned());
        let program = build.folder.join(job.program);
        let mut configuration = repeatable(program, arguments.map(Into::into).collect(), cpu, self.sysroot);
        configuration
            .environment
            .extend(job.variable.iter().map(|(name, value)| format!("{name}={value}").into()));
        let function = if job.program.ends_with("viewer") { "viewer_frame" } else { "vertices_frame" };
        let unit = UnitPlan { function: function.into(), skip: 0, units: Some(job.frames + 1) };
        let plan = Plan { unit: Some(unit), ..Plan::default() };
        let models = Models {
            caches: job.machines.iter().map(Caches::new).collect(),
            times: job
                .machines
                .iter()
                .map(TimingModel::new)
                .collect::<Result<_, _>>()
                .map_err(|error| error.to_string())?,
        };
        let live = live::run(&configuration, &plan, WarmUp::new(models, 0..1), false);
        let live = live.map_err(|error| error.to_string())?;
        match live.ending {
            Ending::Exited(0) => Ok(cost(&live.model.model, job.frames)),
            Ending::Exited(status) => Err(format!("exit status {status}")),
            Ending::Killed { report, .. } => Err(report),
        }
    }

    /// The fastest of several runs on the host, in seconds a frame; none if there is no build for the host.
    pub(super) fn native_seconds(
        &self,
        program: &str,
        arguments: &[&str],
        frames: u32,
    ) -> Result<Option<f64>, Error> {
        const RUNS: usize = 5;
        let Some(build) = self.build(NATIVE.name) else { return Ok(None) };
        let failed =
            |reason| Error::Program { program: format!("{program} {}", arguments.join(" ")), reason };
        let path = build.folder.canonicalize().unwrap_or_else(|_| build.folder.clone()).join(program);
        let mut least = f64::INFINITY;
        for _ in 0..RUNS {
            let output = Command::new(&path).args(arguments).env("TIMED", "1").output();
            let output = output.map_err(|error| failed(error.to_string()))?;
            if !output.status.success() {
                return Err(failed(String::from_utf8_lossy(&output.stderr).trim().into()));
            }
            let numbers = read_numbers(&String::from_utf8_lossy(&output.stdout)).map_err(failed)?;
            let microseconds = numbers.last().copied().unwrap_or_default();
            least = least.min(microseconds as f64 / 1e6 / f64::from(frames));
        }
        Ok(Some(least))
    }
}

/// Waits for a job that was started. Returns its cost, and what its program printed.
fn wait(job: &FrameJob, running: ForkedRun<FrameCost, ()>) -> Result<(FrameCost, String), Error> {
    let ended = running.wait(&mut |()| ());
    ended.map_err(|error| Error::Run { program: job.to_string(), error })
}

/// Numbers between white space, or what else was printed.
fn read_numbers(printed: &str) -> Result<Vec<u64>, String> {
    let numbers: Result<Vec<u64>, _> = printed.split_whitespace().map(str::parse).collect();
    numbers.map_err(|_| format!("it printed '{}'", printed.trim()))
}

impl std::fmt::Display for FrameJob {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} {} (build {})", self.program, self.arguments.concat().join(" "), self.build)
    }
}

fn cost(models: &Models, frames: u64) -> FrameCost {
    let of = |name: &str| -> Vec<(u64, u64)> {
        let found = models
            .caches
            .iter()
            .filter_map(|caches| caches.structures().into_iter().find(|one| one.name == name));
        found.map(|one| (one.accesses, one.misses)).collect()
    };
    let instruction_cache = of("icache");
    FrameCost {
        // L1 of instructions has an access for each.
        instructions: instruction_cache.first().map_or(0, |counts| counts.0),
        cycles: models.times.iter().map(|time| time.cycles().total()).collect(),
        instruction_misses: instruction_cache.iter().map(|counts| counts.1).collect(),
        data_misses: of("dcache").iter().map(|counts| counts.1).collect(),
        frames,
    }
}
