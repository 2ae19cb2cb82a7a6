//! A guest with a program: its libraries and files are found, and everything that is executed has an image.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{Configuration, Plan, ProgramLocation, SymbolName, SystemSettings, UnitName};
use image::Image;
use session::startup;
use trace::{EnvironmentSummary, Header, Writer};

use crate::job::{AwaitedFile, GuestCommand, GuestJob, GuestResult, SharedFile};
use crate::kernel::GuestKernel;
use crate::machine::{GuestHardware, OutputSink, ReportedAccesses, VirtualMachine};
use crate::{Converted, Error, GuestImages, INSTRUCTION_SET, convert, count, exact_blocks};

/// The guest's time when a program begins: the beginning of 2000, so that runs repeat.
const TIME: u64 = 946_684_800;
/// The program's standard input in the guest.
const INPUT: &str = "/.stdin";

/// The setup in which a program is run.
#[derive(Clone, Debug)]
pub struct GuestSetup {
    /// The hardware of the guest.
    pub hardware: GuestHardware,
    /// Where its disk is mounted, if it has one.
    pub disk: Option<PathBuf>,
    /// Where libraries are searched first.
    pub sysroot: PathBuf,
    /// The environment of all programs.
    pub environment: Vec<OsString>,
    /// Programs with their arguments that are started before it, and killed after it.
    pub background: Vec<Vec<OsString>>,
    /// Files that they make; the program is started once all are there.
    pub awaited: Vec<AwaitedFile>,
    /// The number of the user and the group that all of them run as.
    pub user: u32,
    /// The host's file that the program reads as its standard input.
    pub input: Option<PathBuf>,
    /// Files and folders that are put in beside the programs and their libraries.
    pub files: Vec<SharedFile>,
    /// Files that are taken out.
    pub outputs: Vec<SharedFile>,
    /// The working directory.
    pub folder: PathBuf,
}

/// Reads the stream of the recorder.
type Consume<'a> = dyn FnOnce(PipeReader) -> Result<Converted, Error> + Send + 'a;

/// Makes the writer of a trace, for a first process with this number.
type OpenWriter<'a> = dyn FnOnce(u32) -> io::Result<Arc<Writer>> + Send + 'a;

/// A guest with a program.
#[derive(Debug)]
pub struct PreparedGuest {
    kernel: GuestKernel,
    machine: VirtualMachine,
    configuration: Configuration,
    /// The program and its libraries.
    programs: Vec<PathBuf>,
}

impl PreparedGuest {
    /// Prepares a program with its arguments. `kernel` makes the kernel once it is known that there are programs to run.
    pub fn new<E: From<Error>>(
        setup: &GuestSetup,
        (program, arguments): (&Path, &[OsString]),
        kernel: impl FnOnce() -> Result<GuestKernel, E>,
    ) -> Result<PreparedGuest, E> {
        let configuration = setup.configuration(program, arguments);
        let mut programs = image_paths(&configuration)?;
        let mut background = Vec::new();
        for words in &setup.background {
            let beside = setup.configuration(Path::new(&words[0]), &words[1..]);
            programs.extend(image_paths(&beside)?);
            background.push(beside);
        }
        let job = setup.job(&configuration, &background, &programs).map_err(Error::Files)?;
        if let Some((path, folder)) = job.hidden_path() {
            return Err(Error::Hidden { path: path.into(), folder }.into());
        }
        let kernel = kernel()?;
        let machine = VirtualMachine::new(&kernel, &job, setup.hardware)?;
        // Modules that programs load are among the files.
        setup.files.iter().for_each(|file| find_images(&file.host, &mut programs));
        programs.sort();
        programs.dedup();
        Ok(PreparedGuest { kernel, machine, configuration, programs })
    }

    /// The guest's machine.
    pub fn machine(&self) -> &VirtualMachine {
        &self.machine
    }

    /// All images that may be executed.
    pub fn images(&self) -> Vec<PathBuf> {
        [self.programs.clone(), vec![self.kernel.image.clone(), self.machine.palcode().path.clone()]].concat()
    }

    /// An error if an image has none of the symbols that a plan names.
    pub fn check_names(&self, plan: &Plan) -> Result<(), Error> {
        let images: Vec<Image> = self.images().iter().filter_map(|path| Image::open(path).ok()).collect();
        let has = |name: &SymbolName, is_function: bool| {
            images.iter().any(|image| {
                let segments = image.segments().iter().map(image::Segment::addresses);
                let loaded = events::LoadedImage {
                    path: image.path().into(),
                    start: segments.clone().map(|range| range.start).min().unwrap_or(0),
                    end: segments.map(|range| range.end).max().unwrap_or(0),
                    bias: 0,
                };
                let symbols = if name.may_be_in(&loaded) { name.symbols_in(image) } else { Vec::new() };
                symbols.iter().any(|symbol| symbol.function || !is_function)
            })
        };
        let unit = plan.unit.as_ref().map(|unit| UnitName::new(&unit.function));
        let functions = unit.iter().flat_map(UnitName::functions).map(|name| (name.clone(), true));
        let locations = plan.from.iter().chain(&plan.until).filter_map(ProgramLocation::symbol);
        let mut names = functions.chain(locations.map(|text| (SymbolName::new(text), false)));
        match names.find(|(name, is_function)| !has(name, *is_function)) {
            Some((name, is_function)) => {
                let kind = if is_function { "function" } else { "symbol" };
                Err(Error::NoName { kind, name: name.to_string() })
            }
            None => Ok(()),
        }
    }

    /// Runs the program, and writes the trace of a plan, to a file that replaces an older one once it is complete.
    pub fn trace(
        &self,
        plan: &Plan,
        path: &Path,
        sink: &mut OutputSink,
    ) -> Result<(GuestResult, Converted), Error> {
        self.write(plan, path, |consume| self.machine.trace(consume, sink))
    }

    /// Repeats the run that was recorded last ([`VirtualMachine::record`]), and writes the trace of a plan.
    pub fn replay(&self, plan: &Plan, path: &Path) -> Result<Converted, Error> {
        self.write(plan, path, |consume| self.machine.replay(ReportedAccesses::All, consume))
    }

    /// Runs the program, and counts what is executed ([`count`]); the trace that belongs to the counts replaces an older file. The
    /// guest must have one processor.
    pub fn count(&self, path: &Path, sink: &mut OutputSink) -> Result<(GuestResult, Converted), Error> {
        let result = self.machine.record(sink)?;
        Ok((result, self.replay_counts(path)?))
    }

    /// Repeats the run that was recorded last, and counts as [`PreparedGuest::count`] does.
    pub fn replay_counts(&self, path: &Path) -> Result<Converted, Error> {
        let reported = ReportedAccesses::NumberBut(exact_blocks(&self.kernel.image)?);
        self.create(None, path, |images, open| {
            self.machine.replay(reported, |stream| count(stream, images, open))
        })
    }

    /// Writes a trace while the guest executes with the recorder.
    fn write<T>(
        &self,
        plan: &Plan,
        path: &Path,
        execute: impl FnOnce(Box<Consume<'_>>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let unit = plan.unit.as_ref().map(|unit| unit.function.clone());
        self.create(unit, path, |images, open| {
            execute(Box::new(|stream| convert(stream, images, plan, open)))
        })
    }

    /// Makes a trace's file for the time in which it is written.
    fn create<T>(
        &self,
        unit: Option<String>,
        path: &Path,
        write: impl FnOnce(&GuestImages, Box<OpenWriter<'_>>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut programs = self.programs.clone();
        programs.push(self.kernel.init.clone());
        let palcode = self.machine.palcode().clone();
        let images = GuestImages { kernel: self.kernel.image.clone(), palcode, programs };
        let (file, name) = output_files::create(path)?;
        let open = |process| Writer::new(file, &Header { unit, ..self.header(process) });
        let result = write(&images, Box::new(open))?;
        name.commit()?;
        Ok(result)
    }

    fn header(&self, process: u32) -> Header {
        let Configuration { program, arguments, environment, model, .. } = &self.configuration;
        let code = &self.machine.palcode().code;
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Header {
            program: program.clone(),
            arguments: arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            instruction_set: INSTRUCTION_SET.into(),
            cpu: model.to_string(),
            palcode: Some((code.start, code.end)),
            environment: Some(EnvironmentSummary::new(environment)),
            time: time.map_or(0, |time| time.as_secs()),
            process,
            ..Header::default()
        }
    }
}

impl GuestSetup {
    /// How a program is found and started.
    fn configuration(&self, program: &Path, arguments: &[OsString]) -> Configuration {
        Configuration {
            program: program.into(),
            name: None,
            arguments: arguments.to_vec(),
            environment: self.environment.clone(),
            model: isa::Processors::default(),
            settings: SystemSettings { sysroot: Some(self.sysroot.clone()), ..SystemSettings::default() },
        }
    }

    /// The job of the guest: the program with its libraries and files.
    fn job(
        &self,
        configuration: &Configuration,
        background: &[Configuration],
        programs: &[PathBuf],
    ) -> io::Result<GuestJob> {
        let sysroot = std::path::absolute(&self.sysroot)?;
        let in_guest = |path: &Path| -> io::Result<SharedFile> {
            let host = std::path::absolute(path)?;
            // What is found in the sysroot has the path by which it was searched.
            let guest = match host.strip_prefix(&sysroot) {
                Ok(inside) => Path::new("/").join(inside),
                Err(_) => host.clone(),
            };
            Ok(SharedFile { host, guest })
        };
        let command = |configuration: &Configuration| -> io::Result<GuestCommand> {
            let mut arguments = vec![configuration.program.clone().into_os_string()];
            arguments.extend(configuration.arguments.iter().cloned());
            Ok(GuestCommand { program: in_guest(&configuration.program)?.guest, arguments })
        };
        let mut files = programs.iter().map(|path| in_guest(path)).collect::<io::Result<Vec<_>>>()?;
        files.extend(self.files.iter().cloned());
        let input = self.input.as_ref().map(|_| PathBuf::from(INPUT));
        files.extend(self.input.iter().map(|host| SharedFile { host: host.clone(), guest: INPUT.into() }));
        Ok(GuestJob {
            command: command(configuration)?,
            background: background.iter().map(command).collect::<io::Result<_>>()?,
            awaited: self.awaited.clone(),
            user: self.user,
            environment: self.environment.clone(),
            input,
            folder: self.folder.clone(),
            disk: self.disk.clone(),
            time: TIME,
            files,
            outputs: self.outputs.clone(),
        })
    }
}

/// The program and its libraries.
fn image_paths(configuration: &Configuration) -> Result<Vec<PathBuf>, Error> {
    let images =
        startup::images(configuration).ok_or_else(|| Error::NoProgram(configuration.program.clone()))?;
    Ok(images.into_iter().map(|image| image.path).collect())
}

/// Adds the images among files and folders.
fn find_images(path: &Path, images: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| find_images(&entry.path(), images));
    } else if path.is_file() && is_image(path) {
        images.push(path.into());
    }
}

fn is_image(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}
