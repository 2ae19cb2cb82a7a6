//! TPC-H on PostgreSQL: a program of the host asks the server, each statement over a connection of its own. The server's process
//! for this connection is observed while it executes the statement for the second time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use engine::{Configuration, Plan, UnitPlan};
use machine::PerProcess;
use session::measure::Ending;
use session::process_tree;
use workloads::build::Build;
use workloads::toolchain::BYTE_WORD;

use super::data::{TABLES, TableFiles};
use super::database::{Answered, MODE, TpchDatabase, TpchStudySettings};
use super::measured::{FunctionComponents, MachineModels, Measured};
use super::statements::{AccessPath, POSTGRESQL_PATHS, Statement};
use crate::database::StudyProgress;
use crate::error::Error;
use crate::server::{Client, ServerBuilds, ServerConnection};

/// The number of the build that is measured.
const BUILD: usize = 0;
/// What executes a statement of the simple protocol, and sends its rows.
const UNIT: &str = "exec_simple_query";
/// Statements of a run of a server.
const BATCH: usize = 6;
/// The most servers at the same time. Each has models of the machines for each of its statements.
const MOST_SERVERS: usize = 4;
/// A statement is executed in one process.
const SETTING: &str = "max_parallel_workers_per_gather=0";

/// The server's builds, and the client.
pub(super) struct PostgresqlDatabase {
    server: ServerBuilds,
    client: PathBuf,
    /// The folder of archives.
    folder: PathBuf,
}

impl PostgresqlDatabase {
    /// Builds PostgreSQL and the client.
    pub(super) fn prepare(
        settings: &TpchStudySettings,
        progress: &(dyn Fn(StudyProgress) + Sync),
    ) -> Result<PostgresqlDatabase, Error> {
        let server = ServerBuilds::prepare(&[BYTE_WORD], &settings.build, &settings.sysroot, progress)?;
        let files = [
            ("rows.h", include_str!("../../../../workloads/tpch/rows.h")),
            ("rows.c", include_str!("../../../../workloads/tpch/rows.c")),
            ("postgresql.c", include_str!("../../../../workloads/tpch/postgresql.c")),
        ];
        let client = server.compile("tpch", &files, &[])?;
        let folder = settings.build.folder.join("tpch");
        Ok(PostgresqlDatabase { server, client, folder })
    }

    /// What asks the statements, whose files are written.
    fn client(&self, statements: &[Statement]) -> Result<impl Fn(&ServerConnection) -> Command, Error> {
        let mut arguments: Vec<std::ffi::OsString> = Vec::new();
        for statement in statements {
            let path = self.server.folder().join(format!("{}.sql", statement.name));
            fs::write(&path, &statement.sql).map_err(|error| Error::Files { path: path.clone(), error })?;
            arguments.extend(
                statement.settings.iter().chain([&SETTING]).map(|setting| format!("-c{setting}").into()),
            );
            arguments.push(path.into());
        }
        let client = self.client.clone();
        Ok(move |connection: &ServerConnection| {
            let mut command = Command::new(&client);
            command.arg(connection.text()).args(&arguments);
            command
        })
    }

    /// The rows of each statement.
    fn rows(&self, output: &Output, statements: &[Statement]) -> Result<Vec<String>, Error> {
        let text = String::from_utf8_lossy(&output.stdout);
        let mut rest = &*text;
        let mut rows = Vec::new();
        for (number, statement) in statements.iter().enumerate() {
            let head = |statement: &Statement| format!("\"{}.sql\"\n", statement.name);
            let Some(after) = rest.strip_prefix(head(statement).as_str()) else { break };
            let next = statements.get(number + 1).and_then(|next| after.find(&head(next)));
            let (own, later) = after.split_at(next.unwrap_or(after.len()));
            rows.push(own.to_string());
            rest = later;
        }
        if rows.len() == statements.len() {
            return Ok(rows);
        }
        Err(Error::Server(format!(
            "the client printed the rows of {} statements of {}",
            rows.len(),
            statements.len()
        )))
    }

    /// Measures the statements of several servers at the same time.
    fn measure_batches(
        &self,
        batches: &[&[Statement]],
        models_of: &MachineModels,
    ) -> Result<Vec<Answered>, Error> {
        let clients = batches.iter().map(|batch| self.client(batch)).collect::<Result<Vec<_>, _>>()?;
        let clients: Vec<Client> = clients.iter().map(|client| client as Client).collect();
        let observe = |configuration: &Configuration| observe(configuration, models_of);
        let ended = self.server.run_concurrently(BUILD, &clients, observe)?;
        self.server.remove(BUILD);
        let answered = ended.into_iter().zip(batches).map(|(ended, batch)| self.answered(ended, batch));
        Ok(answered.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// What a server was asked, and answered.
    fn answered(
        &self,
        (measured, output): (Vec<Measured>, Output),
        statements: &[Statement],
    ) -> Result<Vec<Answered>, Error> {
        if measured.len() != statements.len() {
            let reason = format!("{} of {} statements were observed", measured.len(), statements.len());
            return Err(Error::Workload { build: self.server.builds[BUILD].name, mode: MODE, reason });
        }
        let rows = self.rows(&output, statements)?;
        Ok(measured.into_iter().zip(rows).map(|(measured, rows)| Answered { measured, rows }).collect())
    }
}

/// What each process that executed a statement did, in the order of the processes, which is that of the connections.
fn observe(
    configuration: &Configuration,
    models_of: &MachineModels,
) -> Result<(Vec<Measured>, Option<Ending>), String> {
    models_of.make()?;
    let own = models_of.clone();
    let each = PerProcess::new(move || own.make().expect("it was possible before"));
    let plan =
        Plan { unit: Some(UnitPlan { function: UNIT.into(), skip: 0, units: None }), ..Plan::default() };
    let observed =
        process_tree::observe(configuration, &plan, each, |_| ()).map_err(|error| error.to_string())?;
    let components = FunctionComponents::of(&observed.trace);
    let models = observed.model.models();
    let measured = observed.processes.iter().filter_map(|process| models.get(&process.process));
    let measured = measured.map(|models| components.measured(models, &models_of.machines));
    Ok((measured.filter(|measured| measured.instructions > 0).collect(), observed.ending))
}

/// The statements for `psql` that make the database.
fn script(tables: &TableFiles) -> String {
    let file =
        |name: &str| std::path::absolute(tables.folder.join(name)).unwrap_or_default().display().to_string();
    let mut script = format!("\\i '{}'\n", file("schema.sql"));
    for table in TABLES {
        script += &format!("\\copy {table} from '{}' with (delimiter '|')\n", file(&format!("{table}.tbl")));
    }
    // Later scans find all rows marked as visible to everybody, and do not write.
    script + &format!("\\i '{}'\nvacuum (freeze, analyze);\ncheckpoint;\n", file("indexes.sql"))
}

impl TpchDatabase for PostgresqlDatabase {
    const EXPLAIN: &str = "explain (costs off)";

    fn builds(&self) -> Vec<&Build> {
        vec![&self.server.builds[BUILD]]
    }

    fn version(&self) -> Option<String> {
        self.server.version()
    }

    fn is_sqlite(&self) -> bool {
        false
    }

    fn paths(&self) -> &'static [AccessPath] {
        POSTGRESQL_PATHS
    }

    fn plan<'a>(&self, row: &'a str) -> &'a str {
        row
    }

    fn load(&mut self, tables: &TableFiles) -> Result<(), Error> {
        let path = self.server.folder().join("load.psql");
        fs::write(&path, script(tables)).map_err(|error| Error::Files { path: path.clone(), error })?;
        let load = |connection: &ServerConnection| {
            let mut psql = connection.program("psql");
            psql.args(["-q", "-X", "-v", "ON_ERROR_STOP=1", "-f"]).arg(&path).arg("postgres");
            psql
        };
        let build = self.server.builds[BUILD].folder.file_name().unwrap_or(Path::new("").as_os_str());
        let name = format!("{}-postgresql-{}.tar", tables.name(), build.to_string_lossy());
        self.server.load_archived(&self.folder.join(name), &[&load])
    }

    fn ask(&self, statements: &[Statement]) -> Result<Vec<String>, Error> {
        let client = self.client(statements)?;
        let outputs = self.server.with_native("loaded", &[&client])?;
        self.rows(&outputs[0], statements)
    }

    fn measure(
        &self,
        statements: &[Statement],
        models_of: &MachineModels,
        progress: &dyn Fn(&str),
    ) -> Result<Vec<Answered>, Error> {
        let servers = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_SERVERS);
        let mut answered = Vec::new();
        for together in statements.chunks(BATCH * servers) {
            match together {
                [first, .., last] => progress(&format!("{} to {}", first.title, last.title)),
                _ => progress(&together[0].title),
            }
            let batches: Vec<_> = together.chunks(together.len().div_ceil(servers)).collect();
            answered.extend(self.measure_batches(&batches, models_of)?);
        }
        Ok(answered)
    }
}
