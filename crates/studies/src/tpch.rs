//! The study of TPC-H on SQLite or PostgreSQL: what its queries cost, where they miss the caches, how misses grow with the data,
//! and what an index scan costs against a sequential scan. It repeats Q. Cao, P. Trancoso and J. Torrellas, "Characterizing TPC-D
//! on a MIPS R10K Architecture" (1998).

mod data;
mod database;
mod findings;
mod measured;
mod page;
mod postgresql;
mod result;
mod sqlite;
mod statements;
mod tables;

use machine::Machine;

use self::data::TableFiles;
use self::database::{Answered, TpchDatabase};
pub use self::database::{SCALES, TpchStudySettings};
use self::measured::MachineModels;
use self::postgresql::PostgresqlDatabase;
pub use self::result::TpchStudy;
use self::result::{MACHINES, PathCosts, QueryCost, ScaleCosts};
use self::sqlite::SqliteDatabase;
pub use self::statements::numbers;
use self::statements::{DAYS, Statement, query, shipments};
use crate::StudyReport;
use crate::database::StudyProgress;
use crate::environment::LIBRARY;
use crate::error::Error;
use crate::provenance::version_after;
use crate::tpcc::DatabaseSystem;

/// The text of a query for SQLite, for a database of this scale factor.
pub fn sqlite_query(number: u32, scale: f64) -> String {
    query(number, scale, true).sql
}

/// Builds, loads the databases, runs and checks all statements.
pub fn tpch(
    settings: &TpchStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<TpchStudy, Error> {
    match settings.system {
        DatabaseSystem::Sqlite => study(settings, SqliteDatabase::prepare(settings, progress)?, progress),
        DatabaseSystem::Postgresql => {
            study(settings, PostgresqlDatabase::prepare(settings, progress)?, progress)
        }
    }
}

fn study<D: TpchDatabase>(
    settings: &TpchStudySettings,
    mut database: D,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<TpchStudy, Error> {
    let machines: Vec<Machine> =
        MACHINES.map(|name| Machine::find(name).expect("it comes with the crate")).into();
    let (mut scales, mut selectivities) = (Vec::new(), Vec::new());
    for scale in settings.scales() {
        progress(StudyProgress::Doing(format!("making the database of scale factor {scale}")));
        let tables = TableFiles::of(scale, &settings.build.folder.join("tpch"))?;
        database.load(&tables)?;
        let is_chosen = scale == settings.scale;
        let measure = |statements: &[Statement], models_of: &MachineModels| {
            let tell = |what: &str| {
                progress(StudyProgress::Doing(format!("executing {what} at scale factor {scale}")));
            };
            database.measure(statements, models_of, &tell)
        };
        // Growth is that of misses.
        let first = |have_cycles| MachineModels { machines: machines[..1].to_vec(), have_cycles };
        let all = MachineModels { machines: machines.clone(), have_cycles: true };
        let models_of = if is_chosen { all } else { first(false) };
        scales.push(costs(&database, settings, scale, |statements| measure(statements, &models_of))?);
        if is_chosen {
            selectivities = path_costs(&database, |statements| measure(statements, &first(true)))?;
        }
    }
    let provenance = provenance(settings, &database);
    let (system, scale, paths) = (settings.system, settings.scale, database.paths());
    Ok(TpchStudy { system, scale, scales, paths, selectivities, machines, provenance })
}

/// Executes the queries at a scale factor.
fn costs<D: TpchDatabase>(
    database: &D,
    settings: &TpchStudySettings,
    scale: f64,
    measure: impl Fn(&[Statement]) -> Result<Vec<Answered>, Error>,
) -> Result<ScaleCosts, Error> {
    let statements: Vec<Statement> =
        settings.queries.iter().map(|&number| query(number, scale, database.is_sqlite())).collect();
    let plans = plans(database, &statements)?;
    let answers = checked(database, &statements, measure)?;
    let queries = settings.queries.iter().zip(plans).zip(answers);
    let queries = queries.map(|((&number, plan), Answered { measured, rows })| QueryCost {
        number,
        rows: rows.lines().count(),
        plan,
        measured,
    });
    Ok(ScaleCosts { scale, queries: queries.collect() })
}

/// Reads shipments by all access paths.
fn path_costs<D: TpchDatabase>(
    database: &D,
    measure: impl Fn(&[Statement]) -> Result<Vec<Answered>, Error>,
) -> Result<Vec<PathCosts>, Error> {
    let is_sqlite = database.is_sqlite();
    let count = |rows: &str| rows.split('|').next().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let all = Statement {
        name: "all".into(),
        title: "all shipments".into(),
        sql: "select count(*), 0 from shipments\n".into(),
        settings: &[],
    };
    let all = count(&database.ask(&[all])?[0]);
    let free: Vec<Statement> = DAYS.iter().map(|&days| shipments(days, None, is_sqlite)).collect();
    let plans = plans(database, &free)?;
    let paths = database.paths();
    let forced: Vec<Statement> = DAYS
        .iter()
        .flat_map(|&days| paths.iter().map(move |path| shipments(days, Some(path), is_sqlite)))
        .collect();
    let answers = checked(database, &forced, measure)?;
    let mut costs = Vec::new();
    for (plan, answers) in plans.iter().zip(answers.chunks(paths.len())) {
        let rows = count(&answers[0].rows);
        costs.push(PathCosts {
            rows,
            selectivity: 100.0 * rows as f64 / all as f64,
            measured: answers.iter().map(|answer| answer.measured.clone()).collect(),
            chosen: paths.iter().position(|path| plan.contains(path.in_plan)),
        });
    }
    Ok(costs)
}

/// The plans that the host's own build has for statements.
fn plans<D: TpchDatabase>(database: &D, statements: &[Statement]) -> Result<Vec<String>, Error> {
    let explained: Vec<_> = statements.iter().map(|statement| statement.explained(D::EXPLAIN)).collect();
    let plans = database.ask(&explained)?;
    let plan = |rows: String| rows.lines().map(|row| format!("{}\n", database.plan(row))).collect();
    Ok(plans.into_iter().map(plan).collect())
}

/// Executes statements on Alpha, whose rows must be those that the host's own build finds.
fn checked<D: TpchDatabase>(
    database: &D,
    statements: &[Statement],
    measure: impl Fn(&[Statement]) -> Result<Vec<Answered>, Error>,
) -> Result<Vec<Answered>, Error> {
    let expected = database.ask(statements)?;
    let answers = measure(statements)?;
    for ((statement, expected), answer) in statements.iter().zip(&expected).zip(&answers) {
        check_rows(statement, expected, &answer.rows)?;
    }
    Ok(answers)
}

fn check_rows(statement: &Statement, expected: &str, found: &str) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    let (mut expected, mut found) = (expected.lines(), found.lines());
    for row in 1.. {
        let (expected, found) = (expected.next(), found.next());
        if expected != found || expected.is_none() {
            let text = |row: Option<&str>| row.unwrap_or("missing").to_string();
            let (found, expected) = (text(found), text(expected));
            return Err(Error::Rows { statement: statement.title.clone(), row, found, expected });
        }
    }
    unreachable!("some row differs")
}

fn provenance<D: TpchDatabase>(settings: &TpchStudySettings, database: &D) -> Vec<(String, String)> {
    let system = settings.system.name();
    let command =
        format!("pathlength study tpch --database {} --scale {}", system.to_lowercase(), settings.scale);
    let library = version_after(&settings.sysroot.join(LIBRARY), b"stable release version ");
    let unknown = || "unknown".to_string();
    let mut facts = vec![
        ("Command".into(), command),
        ("pathlength".into(), env!("CARGO_PKG_VERSION").into()),
        (system.into(), database.version().unwrap_or_else(unknown)),
        ("C library".into(), library.map_or_else(unknown, |version| format!("glibc {version}"))),
    ];
    for build in database.builds() {
        facts.push(("Compiler".into(), build.compiler.clone()));
        facts.push((format!("{} build", build.name), build.commands.join("\n")));
    }
    facts
}

impl TpchStudy {
    /// Its tables and its page.
    pub fn report(&self) -> Result<StudyReport, report::Error> {
        Ok(StudyReport { summary: tables::summary(self), tables: tables::all(self), page: page::page(self)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workloads::build::BuildFolders;

    fn settings(scale: f64) -> TpchStudySettings {
        TpchStudySettings {
            system: DatabaseSystem::Sqlite,
            scale,
            queries: Vec::new(),
            build: BuildFolders { folder: "build".into(), sources: None },
            sysroot: "/usr".into(),
        }
    }

    #[test]
    fn no_scale_factor_is_below_the_smallest() {
        assert_eq!(settings(0.01).scales(), [0.0025, 0.005, 0.01]);
        assert_eq!(settings(0.001).scales(), [0.001, 0.002, 0.004]);
        assert_eq!(settings(0.004).scales(), [0.001, 0.002, 0.004]);
    }

    #[test]
    fn the_first_row_that_differs_is_named() {
        let statement = query(6, 0.01, true);
        assert!(check_rows(&statement, "1|2\n3|4\n", "1|2\n3|4\n").is_ok());
        let error = |found| check_rows(&statement, "1|2\n3|4\n", found).unwrap_err().to_string();
        let begin = "Q6 on Alpha does not answer what it answers on the host: row 2 is ";
        assert_eq!(error("1|2\n3|5\n"), format!("{begin}'3|5' instead of '3|4'"));
        assert_eq!(error("1|2\n"), format!("{begin}'missing' instead of '3|4'"));
    }
}
