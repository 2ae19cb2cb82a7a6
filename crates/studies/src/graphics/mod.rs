//! The study of graphics: what the paths of a library for OpenGL cost on Alpha and on the host, a generic one and special ones
//! ("PowerStorm 4DT: A High-performance Graphics Software Architecture", 1997), and which part of a workstation limits a viewer.

mod composite;
mod error;
mod growth;
mod page;
mod runs;
mod stages;
mod tables;
mod vertices;

use std::path::PathBuf;

use table::Table;
use workloads::build::{Build, BuildFolders, Error as BuildError, build};
use workloads::toolchain::NATIVE;
use workloads::workload::Workload;

use composite::ViewerResult;
pub use error::Error;
use growth::LibrarySize;
use runs::GraphicsRunner;
use stages::{CompositeRate, StageTimes};
use vertices::{ChangeCost, ClockRate, VariantCost, VertexCost};

use crate::StudyReport;
use crate::database::StudyProgress;
use crate::environment::check_library;

/// Where the study builds, and where Alpha's libraries are.
#[derive(Clone, Debug)]
pub struct GraphicsStudySettings {
    /// Where builds are kept.
    pub build: BuildFolders,
    /// Where Alpha's libraries are.
    pub sysroot: PathBuf,
}

/// Everything that was found.
#[derive(Clone, Debug)]
pub struct GraphicsStudy {
    vertices: Vec<VertexCost>,
    validation: Vec<ChangeCost>,
    variants: Vec<VariantCost>,
    clocks: Vec<ClockRate>,
    sizes: Vec<LibrarySize>,
    tests: Vec<ViewerResult>,
    stages: Vec<StageTimes>,
    composites: Vec<CompositeRate>,
    builds: Vec<Build>,
    /// Why there are no rates of the host, if there are none.
    without_host: Option<String>,
}

/// Builds the library, and measures everything.
pub fn graphics(
    settings: &GraphicsStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<GraphicsStudy, Error> {
    check_library(&settings.sysroot)?;
    let workload = Workload::named("graphics").expect("the workload is in the table");
    let without_host = match NATIVE.version() {
        Err(error @ BuildError::NoTool { .. }) => Some(error.to_string()),
        _ => None,
    };
    let toolchains: Vec<_> =
        workload.toolchains.iter().copied().filter(|one| without_host.is_none() || *one != NATIVE).collect();
    let builds =
        build(workload, &toolchains, &settings.build, &|step| progress(StudyProgress::Building(step)))?;
    let runner = GraphicsRunner { builds: &builds, sysroot: &settings.sysroot };
    let doing = |what: &str| progress(StudyProgress::Doing(what.into()));
    doing("vertices by conditions and path");
    let vertices = vertices::by_conditions(&runner)?;
    doing("changes of state");
    let validation = vertices::validation(&runner)?;
    doing("variants that alternate");
    let variants = vertices::variants(&runner)?;
    doing("clocks");
    let clocks = vertices::by_clock(&runner)?;
    doing("the viewer's tests");
    let tests = composite::tests(&runner)?;
    doing("the library's growth with conditions: 22 libraries are compiled");
    let sizes = growth::growth(&runner, &composite::used_masks(&tests))?;
    let stages = stages::stages(&tests);
    let composites = stages::composites(&tests, &stages);
    Ok(GraphicsStudy {
        vertices,
        validation,
        variants,
        clocks,
        sizes,
        tests,
        stages,
        composites,
        builds,
        without_host,
    })
}

impl GraphicsStudy {
    /// Its tables and its page.
    pub fn report(&self) -> Result<StudyReport, report::Error> {
        Ok(StudyReport { summary: self.summary(), tables: self.tables(), page: page::page(self)? })
    }

    /// The tables that matter most.
    fn summary(&self) -> Vec<Table> {
        vec![
            tables::rates(&self.vertices),
            tables::shares(&self.vertices),
            tables::composites(&self.composites),
        ]
    }

    /// Every table.
    fn tables(&self) -> Vec<Table> {
        vec![
            tables::vertices(&self.vertices),
            tables::rates(&self.vertices),
            tables::shares(&self.vertices),
            tables::clocks(&self.clocks),
            tables::validation(&self.validation),
            tables::variants(&self.variants),
            tables::sizes(&self.sizes),
            tables::tests(&self.tests),
            tables::composites(&self.composites),
            tables::stages(&self.stages),
            tables::devices(),
        ]
    }
}
