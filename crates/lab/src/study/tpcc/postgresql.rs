//! TPC-C on PostgreSQL: the terminals are a program of the host, which is compiled from the sources of the workload `tpcc`
//! with PostgreSQL's own client library.

use std::path::PathBuf;
use std::process::Command;

use engine::{Family, UnitOfWork};

use super::{
    CLASSES, DatabaseSystem, MODE, StudyProgress, TpccStudy, TpccStudySettings, details, finished, summary,
};
use crate::family;
use crate::measure::{ClassesCounted, Ending};
use crate::study::error::Error;
use crate::study::provenance_of;
use crate::study::server::{REPEATABILITY, ServerBuilds, ServerConnection, TRANSACTION};
use crate::workload::{Source, Workload};

/// The terminals name statements after their transactions.
const CLASS: &str = "FetchPreparedStatement($1) ~ ^(new_order|payment|order_status|delivery|stock_level)";

/// Builds, loads a warehouse, counts both servers, and compares.
pub(super) fn study(
    settings: &TpccStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<TpccStudy, Error> {
    let server = ServerBuilds::prepare(&settings.build, &settings.sysroot, progress)?;
    let terminals = compile(&server)?;
    let tpcc = |command: &'static str, more: Vec<String>| {
        let terminals = terminals.clone();
        move |connection: &ServerConnection| {
            let mut tpcc = Command::new(&terminals);
            tpcc.arg(command).arg(connection.text()).args(&more);
            tpcc
        }
    };
    progress(StudyProgress::Loading);
    server.load(&[&tpcc("load", Vec::new())])?;
    progress(StudyProgress::Running(MODE));
    let class = CLASS.parse().expect("it is a rule");
    let work =
        UnitOfWork { functions: vec![TRANSACTION.into()], classes: vec![class], ..UnitOfWork::default() };
    let transactions = vec!["--transactions".into(), settings.transactions.to_string(), "--unchecked".into()];
    let mut counted = Vec::new();
    for (number, build) in server.builds.iter().enumerate() {
        let one = server.count(number, &work, &tpcc("run", transactions.clone()))?;
        // What is on the disk is consistent, and all of it.
        server.with_native(build.name, &[&tpcc("check", Vec::new())])?;
        server.remove(number);
        let failed = |reason| Error::Workload { build: build.name, mode: MODE, reason };
        counted.push(classes(one).map_err(failed)?);
    }
    let counted: [ClassesCounted; 2] = counted.try_into().unwrap_or_else(|_| unreachable!("two builds"));
    let command = "pathlength study tpcc --database postgresql";
    let system = DatabaseSystem::Postgresql;
    let mut summary = summary(system, &counted);
    summary.iter_mut().for_each(|table| table.notes.push(REPEATABILITY.into()));
    Ok(TpccStudy {
        system,
        summary,
        details: details(&server.builds, &counted),
        provenance: provenance_of(
            command,
            ("PostgreSQL", server.version()),
            &server.builds,
            &settings.sysroot,
        ),
    })
}

/// The transactions in the order of their names.
fn classes(family: Family) -> Result<ClassesCounted, String> {
    let mut found = family::classes(&family);
    let mut classes = Vec::new();
    let mut never_called = Vec::new();
    for (function, _) in CLASSES {
        let name = function.strip_prefix("tpcc_").unwrap_or(function);
        match found.iter().position(|class| class.name == name) {
            Some(index) => classes.push(found.remove(index)),
            None => never_called.push(function.to_string()),
        }
    }
    let ending = Ending::Exited(0);
    let counted = ClassesCounted { counts: family.counts, classes, never_called, ending, forked: 0 };
    finished(counted, "")
}

/// Compiles the terminals for the host.
fn compile(server: &ServerBuilds) -> Result<PathBuf, Error> {
    let workload = Workload::named("tpcc").expect("the workload is in the table");
    let embedded = workload.sources.iter().filter_map(|source| match source {
        Source::Embedded { name, text } if *name != "database.c" => Some((*name, *text)),
        _ => None,
    });
    let own = ("postgresql.c", include_str!("../../../../../workloads/tpcc/postgresql.c"));
    let files: Vec<_> = embedded.chain([own]).collect();
    server.compile("terminals", &files, &["-DPOSTGRESQL"])
}
