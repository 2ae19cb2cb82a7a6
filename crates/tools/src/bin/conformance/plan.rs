//! Selects and runs the tests of a suite.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;
use crate::build::{self, ALPHA, HOST};
use crate::jobs::{self, End};
use crate::results::{TestOutcome, TestResult};
use crate::runner::{Runners, TestRunner};
use crate::suite::{Scripts, Suite, TestSelection, Tests};
use crate::torture;

/// A suite that is ready to be run.
pub struct SuitePlan<'a> {
    suite: &'a Suite,
    runners: &'a Runners,
    by: &'static [TestRunner],
    tests: Vec<PlannedTest>,
    /// The script of tests that are not programs.
    script: Option<String>,
    folders: Folders,
    /// How many tests there are no programs of.
    pub not_compiled: usize,
}

struct PlannedTest {
    name: String,
    program: Option<PathBuf>,
}

/// Where the suite was built, and where what tests say is kept.
struct Folders {
    native: PathBuf,
    alpha: PathBuf,
    logs: PathBuf,
}

impl<'a> SuitePlan<'a> {
    /// Builds a suite, where builds are missing, and finds the selected tests.
    pub fn new(
        suite: &'a Suite,
        runners: &'a Runners,
        selection: &TestSelection,
    ) -> Result<SuitePlan<'a>, Error> {
        let logs = std::path::absolute(build::FOLDER)?.join(&suite.name).join("logs");
        let Some(scripts) = suite.scripts() else {
            return SuitePlan::torture(suite, runners, selection, logs);
        };
        let native = build::build(suite, &HOST, &scripts.build)?;
        let alpha = build::build(suite, &ALPHA, &scripts.build)?;
        let mut names = names(suite, &scripts, &native)?;
        names.retain(|name| selection.wants_test(name));
        let tests = names.into_iter().map(|name| PlannedTest { name, program: None }).collect();
        let folders = Folders { native, alpha, logs };
        Ok(SuitePlan {
            suite,
            runners,
            by: &TestRunner::ALL,
            tests,
            script: Some(scripts.test),
            folders,
            not_compiled: 0,
        })
    }

    fn torture(
        suite: &'a Suite,
        runners: &'a Runners,
        selection: &TestSelection,
        logs: PathBuf,
    ) -> Result<SuitePlan<'a>, Error> {
        let Tests::Torture { folder, levels } = &suite.tests else { return Err("no torture tests".into()) };
        let alpha = build::build(suite, &ALPHA, "")?;
        let tests = torture::tests(&alpha.join(folder), levels, &alpha.join("programs"), selection)?;
        let compiled = jobs::each(&format!("{}: compiling", suite.name), &tests, torture::compile)?;
        let not_compiled = compiled.iter().filter(|&&compiled| !compiled).count();
        let tests = tests.into_iter().zip(compiled).filter(|&(_, compiled)| compiled);
        let tests =
            tests.map(|(test, _)| PlannedTest { name: test.name, program: Some(test.program) }).collect();
        let folders = Folders { native: alpha.clone(), alpha, logs };
        Ok(SuitePlan { suite, runners, by: &TestRunner::ALPHA, tests, script: None, folders, not_compiled })
    }

    /// Runs all tests with every runner, in directories in `scratch`. Tests that fail and differ are run once more,
    /// alone, since some depend on time.
    pub fn carry_out(&self, scratch: &Path) -> Result<Vec<TestResult>, Error> {
        let mut results: Vec<_> =
            self.tests.iter().map(|test| TestResult::new(&self.suite.name, &test.name)).collect();
        for &runner in self.by {
            self.install(runner)?;
            let what = format!("{}: {}", self.suite.name, runner.name());
            let outcomes = jobs::each(&what, &self.tests, |test| self.run(test, runner, scratch))?;
            results.iter_mut().zip(outcomes).for_each(|(result, outcome)| result.set(runner, outcome));
        }
        let again: Vec<_> = (0..results.len()).filter(|&index| results[index].differs()).collect();
        for &runner in self.by.iter().filter(|_| !again.is_empty()) {
            self.install(runner)?;
            for &index in &again {
                if results[index].failed(runner) {
                    results[index].set_again(runner, self.run(&self.tests[index], runner, scratch)?);
                }
            }
        }
        Ok(results)
    }

    fn folder(&self, runner: TestRunner) -> &Path {
        if runner == TestRunner::Native { &self.folders.native } else { &self.folders.alpha }
    }

    /// Prepares the programs that scripts start.
    fn install(&self, runner: TestRunner) -> Result<(), Error> {
        match self.script {
            Some(_) if runner != TestRunner::Native => self.runners.install(runner, &self.folders.alpha),
            _ => Ok(()),
        }
    }

    fn run(&self, test: &PlannedTest, runner: TestRunner, scratch: &Path) -> Result<TestOutcome, Error> {
        let file_name = test.name.replace(['/', ' '], "_");
        let work = scratch.join(format!("{}-{file_name}", runner.name()));
        fs::create_dir_all(&work)?;
        let (mut command, folder) = match &test.program {
            Some(program) => (self.runners.program(runner, program), &*work),
            None => {
                let script = self.script.as_deref().unwrap_or_default();
                (self.runners.script(runner, script), self.folder(runner))
            }
        };
        command.current_dir(folder).env("TEST", &test.name);
        command.envs([("HOME", &work), ("TMPDIR", &work), ("WORK", &work)]);
        let logs = self.folders.logs.join(runner.name());
        fs::create_dir_all(&logs)?;
        let log = logs.join(file_name);
        let end = jobs::run(&mut command, Duration::from_secs(self.suite.seconds), &log)?;
        // What a test has made unreadable stays until all is removed.
        let _ = fs::remove_dir_all(&work);
        Ok(match end {
            End::Exited(0) => TestOutcome::Passed,
            End::Exited(SKIPPED) if test.program.is_none() => TestOutcome::Skipped,
            end => TestOutcome::Failed(end),
        })
    }
}

/// The status of a test that cannot be done here, as automake has it.
const SKIPPED: i32 = 77;

/// The tests that the suite's script lists.
fn names(suite: &Suite, scripts: &Scripts, folder: &Path) -> Result<Vec<String>, Error> {
    let output = build::shell(&scripts.list, &HOST).env_remove("MAKEFLAGS").current_dir(folder).output()?;
    let mut names: Vec<_> = String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect();
    names.sort();
    names.dedup();
    if !output.status.success() || names.is_empty() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: the tests cannot be listed: {errors}", suite.name).into());
    }
    Ok(names)
}
