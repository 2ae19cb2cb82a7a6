//! Counts all processes of a program. This process waits until all have ended, and reads what they counted, however they or
//! the program ended.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use analysis::classes::UnitClass;
use analysis::components::Components;
use analysis::run_counts::{ProcessSums, ProcessWork, RunCounts, RunDescription};
use engine::{
    Configuration, CountedProcess, Process, ProcessNumber, ProcessTreeCounter, ProcessTreeCounts, UnitOfWork,
};
use output_files::ScratchFolder;
use serde::Serialize;

use super::forked_tree::ForkedTree;
use super::{describe, file_name};
use crate::attached_program::{AttachedProgram, ObservationEnd};
use crate::measure::{self, Ending, Error};
use crate::record::AttachFailure;
use crate::scratch::temporary_folder;

/// What was counted in all processes of a program.
#[derive(Debug)]
pub struct CountedTree {
    /// The counts.
    pub tree: ProcessTreeCounts,
    /// How the first process ended, if it did.
    pub ending: Option<Ending>,
}

/// The file with the description of the run, in the folder of counts.
const DESCRIPTION: &str = "description.json";
/// How long to wait at a time for the end of all processes.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs the program until all of its processes have ended, or until the user has enough of it. All processes count in
/// `folder`. If this process is killed, they go on if the folder is a lasting one, and are ended otherwise.
pub fn count(
    configuration: &Configuration,
    work: &UnitOfWork,
    folder: &CountFolder,
    description: &RunDescription,
) -> Result<CountedTree, Error> {
    let ending = count_watched(configuration, work, folder, description, &mut || ())?;
    let tree =
        ProcessTreeCounts::read(folder.path()).map_err(|error| Error::Simulation(io::Error::other(error)))?;
    Ok(CountedTree { tree, ending })
}

/// The same without reading the counts. `watch` is called every now and then.
pub fn count_watched(
    configuration: &Configuration,
    work: &UnitOfWork,
    folder: &CountFolder,
    description: &RunDescription,
    watch: &mut dyn FnMut(),
) -> Result<Option<Ending>, Error> {
    write_json(&folder.path().join(DESCRIPTION), description).map_err(Error::Simulation)?;
    let mut forked =
        ForkedTree::run(!folder.is_lasting(), || count_first(configuration, work, folder.path()))?;
    while !forked.is_over(PAUSE) {
        watch();
    }
    forked.ending()
}

/// Counts a program that runs already in `folder`: until it ends,
/// the user ends the command, or the time is over. The program goes on.
pub fn count_running(
    attached: &AttachedProgram,
    work: &UnitOfWork,
    folder: &Path,
    description: &RunDescription,
) -> Result<ProcessTreeCounts, AttachFailure> {
    write_json(&folder.join(DESCRIPTION), description).map_err(Error::Simulation)?;
    attach_watched(attached, work, folder, &mut || ())?;
    ProcessTreeCounts::read(folder).map_err(|error| Error::Simulation(io::Error::other(error)).into())
}

/// The same without reading the counts. `watch` is called every now and then.
pub fn attach_watched(
    attached: &AttachedProgram,
    work: &UnitOfWork,
    folder: &Path,
    watch: &mut dyn FnMut(),
) -> Result<(), AttachFailure> {
    let open = || {
        // The program's user writes there.
        let user = fs::metadata(Path::new("/proc").join(attached.process.to_string()));
        user.and_then(|user| std::os::unix::fs::chown(folder, Some(user.uid()), None)).ok();
        File::open(folder)
    };
    let opened = open().map_err(Error::Simulation)?;
    let (end, watch) = (ObservationEnd::of(attached), RefCell::new(watch));
    let is_enough = |has_begun| {
        watch.borrow_mut()();
        end.has_come(has_begun)
    };
    attached.target().count(work, &opened, &is_enough)?;
    Ok(())
}

/// What is in a folder of counts, whose command was killed or still runs.
pub fn read(folder: &Path) -> Result<(ProcessTreeCounts, RunDescription), Error> {
    let tree = ProcessTreeCounts::read(folder).map_err(|error| Error::Simulation(io::Error::other(error)))?;
    let description = fs::read(folder.join(DESCRIPTION)).ok();
    let description = description.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    Ok((tree, description))
}

/// Whether a path is a folder of counts.
pub fn is_folder(path: &Path) -> bool {
    path.join(DESCRIPTION).is_file()
}

/// The units of each class, the classes in the order of the instructions in them.
pub fn classes(tree: &ProcessTreeCounts) -> Vec<UnitClass> {
    let mut classes: Vec<UnitClass> = Vec::new();
    for (name, executions) in &tree.classes {
        let units = tree.units.iter().filter(|unit| unit.class == *name);
        classes.push(UnitClass::of(name, units.map(|unit| unit.instructions).collect(), executions.clone()));
    }
    classes.retain(|class| class.units() > 0);
    classes.sort_by_key(|class| std::cmp::Reverse(class.instructions()));
    classes
}

/// The run by classes of units and kinds of processes; the rules say which kinds there are.
pub fn run_counts(
    tree: &ProcessTreeCounts,
    description: RunDescription,
    rules: Option<&Components>,
) -> RunCounts {
    let mut work = Vec::new();
    for (process, sums) in tree.processes.iter().zip(processes(tree)) {
        work.push(ProcessWork { sums, executions: &process.executions, in_units: &process.in_units });
    }
    RunCounts::of_owners(description, &tree.counts, &classes(tree), work, rules)
}

/// The processes, for tables.
pub fn processes(tree: &ProcessTreeCounts) -> Vec<ProcessSums> {
    let mut units = vec![0; tree.processes.len()];
    tree.units.iter().for_each(|unit| units[unit.process as usize] += 1);
    let sums = |(process, units): (&CountedProcess, u64)| ProcessSums {
        number: process.number.to_string(),
        program: process.programs.last().map_or_else(String::new, |path| file_name(path)),
        kind: String::new(),
        end: describe(&process.state),
        instructions: process.instructions(&tree.counts),
        units,
    };
    tree.processes.iter().zip(units).map(sums).collect()
}

fn write_json(path: &Path, what: &impl Serialize) -> io::Result<()> {
    Ok(serde_json::to_writer(File::create(path)?, what)?)
}

fn count_first(configuration: &Configuration, work: &UnitOfWork, folder: &Path) -> Result<Ending, Error> {
    let mut process = Process::new(configuration)?;
    let folder = File::open(folder).map_err(Error::Simulation)?;
    let counter = ProcessTreeCounter::new(folder.into(), ProcessNumber::first(), work.clone());
    let end = measure::run(&mut process, &mut counter.map_err(Error::Simulation)?, configuration)?;
    Ok(Ending::new(end, &process.images))
}

/// A folder for counts: beside the file that they are saved to, or else a temporary one. It is removed when this is dropped.
#[derive(Debug)]
pub struct CountFolder(Option<CountLocation>);

/// The folder in which processes count.
#[derive(Debug)]
enum CountLocation {
    /// Beside the file.
    Saved(PathBuf),
    /// In a temporary folder.
    Scratch(ScratchFolder),
}

impl CountFolder {
    /// Creates the folder.
    pub fn new(saved: Option<&Path>) -> Result<CountFolder, Error> {
        let Some(saved) = saved else {
            let made = temporary_folder("count");
            return Ok(CountFolder(Some(CountLocation::Scratch(made.map_err(Error::Simulation)?))));
        };
        let mut name = saved.file_name().unwrap_or_default().to_os_string();
        name.push(".d");
        let path = saved.with_file_name(name);
        match fs::create_dir(&path) {
            Ok(()) => {
                let path = std::path::absolute(&path).map_err(Error::Simulation)?;
                Ok(CountFolder(Some(CountLocation::Saved(path))))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::FolderExists { path }),
            Err(reason) => Err(Error::NotWritten { path, reason, is_partial: false }),
        }
    }

    /// Leaves it, for processes that still count there.
    pub fn keep(mut self) -> PathBuf {
        match self.0.take() {
            Some(CountLocation::Saved(path)) => path,
            Some(CountLocation::Scratch(folder)) => folder.keep(),
            None => PathBuf::new(),
        }
    }

    /// Whether its counts can be read if this process is killed.
    fn is_lasting(&self) -> bool {
        matches!(self.0, Some(CountLocation::Saved(_)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        match &self.0 {
            Some(CountLocation::Saved(path)) => path,
            Some(CountLocation::Scratch(folder)) => folder.path(),
            None => Path::new(""),
        }
    }
}

impl Drop for CountFolder {
    fn drop(&mut self) {
        if let Some(CountLocation::Saved(path)) = &self.0 {
            let _ = fs::remove_dir_all(path);
        }
    }
}
