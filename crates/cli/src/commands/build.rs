//! `pathlength build`: the builds of a workload.

use std::process::ExitCode;

use anyhow::Context;
use studies::StudyProgress;
use table::{Kind, Table};
use workloads::build::{self, build_patched};
use workloads::workload::Workload;

use crate::arguments::BuildOptions;
use crate::progress::Steps;

/// Builds for the processors that the workload names, the host among them, and lists the programs.
pub fn run(options: &BuildOptions) -> anyhow::Result<ExitCode> {
    options.output.check(false)?;
    let workload = Workload::named(&options.workload).context("no such workload")?;
    let places = build::BuildFolders { folder: options.folder.clone(), sources: options.sources.clone() };
    let steps = Steps::new();
    steps.animate();
    let show = |progress| steps.show(&StudyProgress::Building(progress));
    let builds = build_patched(workload, workload.toolchains, &places, &options.patch, &show)?;
    steps.clear();
    let title = format!("Builds of {}", workload.title);
    let columns = ["build", "program", "switches", "compiler", "sources"].map(|name| (name, Kind::Text));
    let mut table = Table::new("builds", &title, &columns);
    for build in &builds {
        let program = build.program.display().to_string();
        let (switches, sources) = (build.flags.join(" "), sources_in_brief(&build.sources));
        table.row(
            [build.name.into(), program, switches, build.compiler.clone(), sources].map(Into::into).to_vec(),
        );
    }
    crate::console::write(&[table], &options.output)?;
    Ok(ExitCode::SUCCESS)
}

/// The files of sources, as many as fit into a table, and the number of the others: the folder of the build has all.
fn sources_in_brief(files: &[String]) -> String {
    const SHOWN: usize = 3;
    let (shown, others) = files.split_at(files.len().min(SHOWN));
    match others.len() {
        0 => shown.join(" "),
        number => format!("{} and {number} more", shown.join(" ")),
    }
}
