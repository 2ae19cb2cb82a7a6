//! Runs a program and counts: the whole run, and a unit of work in its steady state.

use std::path::PathBuf;

use analysis::classes::UnitClass;
use analysis::similar::{hint, similar};
use analysis::units::{Measurement, Phase, SteadyRules, SteadyState};
use engine::{Configuration, Process, ProgramEnd, ProgramObserver, RunCounter, UnitCounter, UnitOfWork};
use events::{Counts, LoadedImage, Unit};
use image::{Image, SymbolPattern};
use linux_user::GENERIC_SIGNALS;
use serde::{Deserialize, Serialize};

use crate::{crash, surroundings, translated};

/// What to run and what to count.
#[derive(Clone, Debug)]
pub struct CountRequest {
    /// The program and its surroundings.
    pub configuration: Configuration,
    /// The unit of work to measure, and the rules of the measurement.
    pub unit: Option<(UnitOfWork, SteadyRules)>,
}

/// A finished run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counted {
    /// Exact counts of the whole run.
    pub counts: Counts,
    /// The units of work measured, if there was a request for them.
    pub measurement: Option<Measurement>,
    /// How the program ended.
    pub ending: Ending,
    /// Accesses that were not aligned.
    pub unaligned: u64,
    /// Processes that the program and its children forked; they are not counted.
    pub forked: u64,
}

/// A finished run with units of several classes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClassesCounted {
    /// Exact counts of the whole run.
    pub counts: Counts,
    /// All units of each class that was called, in the order of the functions.
    pub classes: Vec<UnitClass>,
    /// Functions that were never called.
    pub never_called: Vec<String>,
    /// How the program ended.
    pub ending: Ending,
    /// Processes that the program and its children forked; they are not counted.
    pub forked: u64,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// With this status.
    Exited(i32),
    /// By a signal.
    Killed {
        /// The host's number.
        signal: i32,
        /// Whether it means a crash, and not a request to end the program.
        is_crash: bool,
        /// Where and in what state, for people.
        report: String,
    },
}

impl Ending {
    /// Of a program that had these images.
    pub fn new(end: ProgramEnd, images: &[LoadedImage]) -> Ending {
        match end {
            ProgramEnd::Exited(status) => Ending::Exited(status),
            ProgramEnd::Killed(crash) => {
                let is_crash = crash::is_crash(&crash);
                let report = crash::report(&crash, images);
                Ending::Killed { signal: crash.host_signal, is_crash, report }
            }
        }
    }

    /// Of a process of the host that a signal ended.
    pub fn of_host_signal(signal: i32) -> Ending {
        let known = GENERIC_SIGNALS.iter().find(|known| known.number == signal);
        let name = crash::signal_name(signal, known);
        let is_crash = known.is_some_and(|known| known.dumps_core);
        Ending::Killed { signal, is_crash, report: format!("the program was ended by {name}") }
    }
}

/// Why nothing was counted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be run.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// A program of the host's instruction set could not be run.
    #[error(transparent)]
    Translator(#[from] translator::Error),
    /// It has no units of work.
    #[error(
        "{}: units of work are counted in programs of Alpha and RISC-V; of an x86-64 program the whole run is counted", .0.display()
    )]
    UnitsOfTranslated(PathBuf),
    /// No image has the unit's function.
    #[error("no image of the program has a function '{function}'{}{}", searched(.images), suggestion(.similar))]
    NoSuchFunction {
        /// The requested name.
        function: String,
        /// The images' names.
        images: Vec<String>,
        /// Names that look alike.
        similar: Vec<String>,
    },
    /// No image has the variable that is to count cache hits or misses.
    #[error("no image of the program has a variable '{0}': name variables that nm lists")]
    NoSuchVariable(String),
    /// No image has the variable whose accesses are to be counted.
    #[error(
        "no variable '{name}' is known in the program{}{}",
        searched(.images), hint(.similar, "pathlength strides without --array lists those that are accessed")
    )]
    NoSuchArray {
        /// The name asked for.
        name: String,
        /// The images' names.
        images: Vec<String>,
        /// Names that look alike.
        similar: Vec<String>,
    },
    /// No image has the symbol that names a location.
    #[error("no image of the program has a symbol '{location}'{}{}", searched(.images), suggestion(.similar))]
    NoSuchLocation {
        /// The requested location.
        location: String,
        /// The images' names.
        images: Vec<String>,
        /// Names that look alike.
        similar: Vec<String>,
    },
    /// Recording never began.
    #[error("control never came to {0}: nothing was recorded; name a location that the program reaches")]
    NeverReached(String),
    /// The unit's function did not run often enough.
    #[error(
        "the function '{function}' was called {units} times: nothing was recorded, as the first {skip} calls were \
         to be skipped"
    )]
    TooFewUnits {
        /// The function.
        function: String,
        /// How often it was called.
        units: u64,
        /// How many calls were to be skipped.
        skip: u64,
    },
    /// The trace could not be written.
    #[error(
        "cannot write {}: {reason}{}", path.display(),
        if *.is_partial { "; the file holds what was recorded before" } else { "" }
    )]
    NotWritten {
        /// The file.
        path: PathBuf,
        /// The host's reason.
        reason: std::io::Error,
        /// Whether something was written before.
        is_partial: bool,
    },
    /// There are counts of another run already.
    #[error(
        "{path} holds the counts of a run that was interrupted: pathlength count {path} shows them; remove it to count again",
        path = path.display()
    )]
    FolderExists {
        /// The folder.
        path: PathBuf,
    },
    /// The trace's file could not be made.
    #[error(transparent)]
    Output(#[from] output_files::OutputError),
    /// The program could not be observed by a model.
    #[error("the program cannot be observed while it runs: {0}")]
    Simulation(std::io::Error),
    /// The unit's function never ran.
    #[error(
        "the function '{0}' was never called: name one that runs, or run the program with other arguments"
    )]
    NeverCalled(String),
    /// The dynamic loader ended before the program began.
    #[error(
        "{} did not start: its dynamic loader ended with status {status}, for the reason given above; a missing \
         library belongs in {}/lib or in a folder that LD_LIBRARY_PATH names",
        program.display(), sysroot.display()
    )]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// The loader's exit status.
        status: i32,
        /// Where libraries are looked up first.
        sysroot: PathBuf,
    },
}

impl Error {
    /// No image has the function.
    pub fn no_such_function(function: &str, images: &[LoadedImage]) -> Error {
        let similar = similar_functions(function, images);
        Error::NoSuchFunction { function: function.into(), images: names(images), similar }
    }

    /// No image has the symbol of a location.
    pub fn no_such_location(location: &engine::ProgramLocation, images: &[LoadedImage]) -> Error {
        let similar = location.symbol().map(|symbol| similar_functions(symbol, images)).unwrap_or_default();
        Error::NoSuchLocation { location: location.to_string(), images: names(images), similar }
    }

    /// No image has a variable of this name.
    pub fn no_such_array(name: &str, images: &[LoadedImage]) -> Error {
        let similar =
            similar_in(images, name, |image| image.variables().into_iter().map(|it| it.name).collect());
        Error::NoSuchArray { name: name.into(), images: names(images), similar }
    }
}

/// The images' names, each once.
fn names(images: &[LoadedImage]) -> Vec<String> {
    let name = |image: &LoadedImage| image.path.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = images.iter().filter_map(name).collect();
    names.sort();
    names.dedup();
    names
}

fn searched(images: &[String]) -> String {
    if images.is_empty() { String::new() } else { format!(" (searched: {})", images.join(", ")) }
}

fn suggestion(similar: &[String]) -> String {
    hint(similar, "pathlength count --by function lists the functions that ran")
}

/// Runs a loaded program to its end; our own surroundings are as before then.
pub fn run<O: ProgramObserver>(
    process: &mut Process,
    observer: &mut O,
    configuration: &Configuration,
) -> Result<ProgramEnd, Error> {
    let end = surroundings::keep(|| process.run(observer))?;
    match end {
        ProgramEnd::Exited(status) if status != 0 && !started(process) => Err(Error::NotStarted {
            program: configuration.program.clone(),
            status,
            sysroot: process.sysroot(),
        }),
        end => Ok(end),
    }
}

/// Whether any code of the program itself ran, and not just its dynamic loader's.
fn started(process: &Process) -> bool {
    let Some(program) = process.images.first() else { return true };
    process.has_executed(program.start..program.end)
}

/// Runs the program to its end and counts. `progress` is called at the end of each unit of work with the number of
/// units so far and the phase of the measurement.
pub fn count(
    request: &CountRequest,
    progress: &mut (dyn FnMut(u64, Phase) + Send),
) -> Result<Counted, Error> {
    if translated::is_translated(&request.configuration) {
        return match request.unit {
            None => translated::count(&request.configuration),
            Some(_) => Err(Error::UnitsOfTranslated(request.configuration.program.clone())),
        };
    }
    let mut process = Process::new(&request.configuration)?;
    let Some((work, rules)) = &request.unit else {
        let mut counter = RunCounter::default();
        let end = run(&mut process, &mut counter, &request.configuration)?;
        return Ok(counted(counter.counts(), None, end, &process));
    };
    let mut state = SteadyState::new(rules.clone());
    let mut seen = 0;
    let sink = Box::new(|_: u32, _: Option<&str>, unit| {
        let phase = state.push(unit);
        seen += 1;
        progress(seen, phase);
        phase != Phase::Done
    });
    let mut counter = UnitCounter::new(work.clone(), sink);
    let end = run(&mut process, &mut counter, &request.configuration)?;
    let missing_gauge = counter.missing_gauge().map(String::from);
    let missing_function = counter.missing_function().map(String::from);
    let (begun, total) = (counter.begun(), counter.total.counts());
    drop(counter);
    if let Some(function) = missing_function {
        return Err(Error::no_such_function(&function, &process.images));
    }
    if begun == 0 {
        return Err(Error::NeverCalled(work.functions.join(", ")));
    }
    if let Some(variable) = missing_gauge {
        return Err(Error::NoSuchVariable(variable));
    }
    Ok(counted(total, Some(state.finish()), end, &process))
}

/// Runs the program to its end and counts all units of several classes. `progress` is called at the end of each unit with the
/// number of units so far.
pub fn count_classes(
    configuration: &Configuration,
    work: &UnitOfWork,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<ClassesCounted, Error> {
    let mut process = Process::new(configuration)?;
    let mut classes: Vec<UnitClass> = work.functions.iter().map(|name| UnitClass::new(name)).collect();
    let mut seen = 0;
    let sink = Box::new(|number: u32, class: Option<&str>, unit: Unit| {
        let class = class.map_or(number as usize, |name| {
            classes.iter().position(|class| class.name == name).unwrap_or_else(|| {
                classes.push(UnitClass::new(name));
                classes.len() - 1
            })
        });
        classes[class].add(&unit);
        seen += 1;
        progress(seen);
        true
    });
    let mut counter = UnitCounter::new(work.clone(), sink);
    let end = run(&mut process, &mut counter, configuration)?;
    let missing_function = counter.missing_function().map(String::from);
    let counts = counter.total.counts();
    drop(counter);
    if let Some(function) = missing_function {
        return Err(Error::no_such_function(&function, &process.images));
    }
    let (classes, mut unused): (Vec<_>, Vec<_>) = classes.into_iter().partition(|class| class.units() > 0);
    // Units that have classes of their own have been executed, too.
    unused.retain(|_| work.classes.is_empty());
    if classes.is_empty() {
        return Err(Error::NeverCalled(work.functions.join(", ")));
    }
    let ending = Ending::new(end, &process.images);
    let never_called = unused.into_iter().map(|class| class.name).collect();
    Ok(ClassesCounted { counts, classes, never_called, ending, forked: process.forked })
}

fn counted(counts: Counts, measurement: Option<Measurement>, end: ProgramEnd, process: &Process) -> Counted {
    let ending = Ending::new(end, &process.images);
    Counted { counts, measurement, ending, unaligned: process.unaligned, forked: process.forked }
}

/// Up to three functions whose names resemble `misspelt`, the nearest first.
fn similar_functions(misspelt: &str, images: &[LoadedImage]) -> Vec<String> {
    let pattern = SymbolPattern::new(misspelt);
    let demangled = |function: &image::FunctionSymbol| image::demangle(&function.name).into_owned();
    similar_in(images, pattern.name(), |image| image.functions().iter().map(demangled).collect())
}

/// The names in the images that resemble `misspelt`.
fn similar_in(images: &[LoadedImage], misspelt: &str, names: impl Fn(&Image) -> Vec<String>) -> Vec<String> {
    let files = images.iter().filter_map(|image| Image::open(&image.path).ok());
    similar(misspelt, files.flat_map(|image| names(&image)))
}
