//! The results of the tests, as tables and in words.

use std::path::Path;

use table::{Kind, Table, Value};

use crate::Error;
use crate::build::FOLDER;
use crate::jobs::End;
use crate::runner::TestRunner;
use crate::suite::Known;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestOutcome {
    Passed,
    /// Cannot be done here.
    Skipped,
    Failed(End),
}

impl std::fmt::Display for TestOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TestOutcome::Passed => write!(f, "passed"),
            TestOutcome::Skipped => write!(f, "skipped"),
            TestOutcome::Failed(End::Exited(status)) => write!(f, "failed (status {status})"),
            TestOutcome::Failed(End::Killed(signal)) => write!(f, "failed (signal {signal})"),
            TestOutcome::Failed(End::TimedOut) => write!(f, "timed out"),
        }
    }
}

/// A test with its result under each runner.
#[derive(Debug)]
pub struct TestResult {
    suite: String,
    test: String,
    outcomes: [Option<TestOutcome>; TestRunner::ALL.len()],
    /// Whether it passed only alone.
    pub passed_alone: bool,
}

impl TestResult {
    pub fn new(suite: &str, test: &str) -> TestResult {
        TestResult {
            suite: suite.into(),
            test: test.into(),
            outcomes: Default::default(),
            passed_alone: false,
        }
    }

    pub fn set(&mut self, runner: TestRunner, outcome: TestOutcome) {
        self.outcomes[runner as usize] = Some(outcome);
    }

    /// The outcome of another try.
    pub fn set_again(&mut self, runner: TestRunner, outcome: TestOutcome) {
        self.passed_alone |= outcome == TestOutcome::Passed;
        self.set(runner, outcome);
    }

    pub fn title(&self) -> String {
        format!("{} {}", self.suite, self.test)
    }

    fn passed(&self, runner: TestRunner) -> bool {
        self.outcomes[runner as usize] == Some(TestOutcome::Passed)
    }

    pub fn failed(&self, runner: TestRunner) -> bool {
        matches!(self.outcomes[runner as usize], Some(TestOutcome::Failed(_)))
    }

    /// Whether it went otherwise by us than by qemu-alpha, or failed though the host passes it.
    pub fn differs(&self) -> bool {
        self.outcomes[TestRunner::Qemu as usize] != self.outcomes[TestRunner::Pathlength as usize]
            || self.is_wrong()
    }

    /// Whether we do not pass what another passes.
    pub fn is_wrong(&self) -> bool {
        !self.passed(TestRunner::Pathlength)
            && (self.passed(TestRunner::Qemu) || self.passed(TestRunner::Native))
    }

    pub fn reason<'a>(&self, known: &'a [Known]) -> Option<&'a str> {
        known.iter().find(|known| known.explains(&self.suite, &self.test)).map(|known| &*known.reason)
    }

    /// The difference in words, with where to look and how to see it again.
    pub fn difference(&self, known: &[Known]) -> String {
        let went =
            |runner: TestRunner| Some(format!("{} {}", runner.name(), self.outcomes[runner as usize]?));
        let went: Vec<_> = TestRunner::ALL.into_iter().filter_map(went).collect();
        let mut text = format!("{}: {}", self.title(), went.join(", "));
        if let Some(reason) = self.reason(known) {
            text += &format!("\n    known: {reason}");
        }
        let log = self.test.replace(['/', ' '], "_");
        text += &format!("\n    {FOLDER}/{}/logs/{}/{log}", self.suite, TestRunner::Pathlength.name());
        text + &format!("\n    make conformance SUITE={} TEST='{}'", self.suite, self.test)
    }
}

/// A line for each suite.
pub fn summary(results: &[TestResult], known: &[Known]) -> Table {
    let columns = [
        ("suite", Kind::Text),
        ("tests", Kind::Count),
        ("native", Kind::Count),
        ("qemu-alpha", Kind::Count),
        ("pathlength", Kind::Count),
        ("differ", Kind::Count),
        ("known", Kind::Count),
    ];
    let mut table = Table::new("conformance", "Tests that passed", &columns);
    for tests in results.chunk_by(|a, b| a.suite == b.suite) {
        table.row(row(&tests[0].suite, tests, known));
    }
    if table.rows.len() > 1 {
        table.total_row(row("all", results, known));
    }
    let alone: Vec<_> = results.iter().filter(|result| result.passed_alone).map(TestResult::title).collect();
    if !alone.is_empty() {
        table.notes.push(format!("Passed only alone: {}.", alone.join(", ")));
    }
    table
}

fn row(name: &str, tests: &[TestResult], known: &[Known]) -> Vec<Value> {
    let count = |counts: &dyn Fn(&TestResult) -> bool| -> Value {
        (tests.iter().filter(|test| counts(test)).count() as u64).into()
    };
    let passed = |runner: TestRunner| match tests.iter().any(|test| test.outcomes[runner as usize].is_some())
    {
        true => count(&|test| test.passed(runner)),
        false => Value::Missing,
    };
    vec![
        name.into(),
        (tests.len() as u64).into(),
        passed(TestRunner::Native),
        passed(TestRunner::Qemu),
        passed(TestRunner::Pathlength),
        count(&|test| test.differs()),
        count(&|test| test.differs() && test.reason(known).is_some()),
    ]
}

/// Writes all results as CSV.
pub fn write(results: &[TestResult], known: &[Known], path: &Path) -> Result<(), Error> {
    let names = TestRunner::ALL.map(|runner| (runner.name(), Kind::Text));
    let columns =
        [&[("suite", Kind::Text), ("test", Kind::Text)], &names[..], &[("known", Kind::Text)]].concat();
    let mut table = Table::new("results", "Results of tests", &columns);
    let text = |text: Option<String>| text.map_or(Value::Missing, Value::Text);
    for result in results {
        let mut row = vec![result.suite.as_str().into(), result.test.as_str().into()];
        row.extend(result.outcomes.map(|outcome| text(outcome.map(|outcome| outcome.to_string()))));
        let reason = if result.differs() { result.reason(known) } else { None };
        row.push(text(reason.map(String::from)));
        table.row(row);
    }
    report::write_all(&[table], report::Format::Csv, Some(path))?;
    Ok(())
}
