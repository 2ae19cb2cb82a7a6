//! Samples programs, and makes profiles of the samples: of a program that is run with all processes that it forks, or of one that
//! runs already.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use analysis::call_tree::WithCallTree;
use analysis::export::{ChainSample, ThreadSamples};
use analysis::names::file_name;
use analysis::run_counts::RunDescription;
use analysis::samples::{SampleCounts, SampleSummary, SampledInstructions};
use engine::{
    Configuration, ProcessNumber, ProcessState, ProcessTreeCounts, Sample, SampleKind, SampledProcessTree,
    SampledProgram, Sampling, UnitOfWork,
};
use events::{BlockId, Counts, LoadedImage, MappedImage};
use image::Image as ImageFile;
use isa::InstructionSet;
use rustix::fs::MemfdFlags;
use trace::{Header, Trace};

use crate::attached_program::AttachedProgram;
use crate::measure::{Ending, Error};
use crate::process_tree::{self, TreeDictionary};
use crate::record::{self, AttachFailure};

/// What is sampled, and how.
#[derive(Clone, Copy, Debug)]
pub struct SampleRequest {
    /// When samples are taken.
    pub sampling: Sampling,
    /// Whether the program is counted exactly, too.
    pub is_exact: bool,
}

impl SampleRequest {
    /// As the engine takes it.
    fn work(self) -> UnitOfWork {
        UnitOfWork { sampling: Some(self.sampling), is_uncounted: !self.is_exact, ..UnitOfWork::default() }
    }
}

/// A profile made of samples.
pub struct SampledProfile {
    /// The samples by chain of calls.
    pub calls: WithCallTree<SampleCounts>,
    /// The samples by instruction, and the exact counts.
    pub instructions: SampledInstructions,
    /// The instructions that were sampled, their functions and images; without records.
    pub trace: Trace,
    /// The whole.
    pub summary: SampleSummary,
    /// The processes.
    pub processes: Vec<SampledProcess>,
    /// The samples of each thread in the order of time.
    pub threads: Vec<ThreadSamples>,
}

/// A process that was sampled.
#[derive(Clone, Debug)]
pub struct SampledProcess {
    /// Its number in the process tree.
    pub number: ProcessNumber,
    /// The host's number.
    pub host_process: u32,
    /// The program that it executed last.
    pub program: PathBuf,
    /// How it ended, if it has.
    pub state: ProcessState,
    /// Its samples.
    pub samples: u64,
}

/// Runs a program until all of its processes have ended, or the user has enough of it, and samples all of them in a folder.
/// `show` is called with the samples since the last time, every now and then.
pub fn sample(
    configuration: &Configuration,
    request: SampleRequest,
    folder: &process_tree::CountFolder,
    show: &mut dyn FnMut(&SampledFolder),
) -> Result<(SampledProfile, Option<Ending>), Error> {
    let description = RunDescription::default();
    let mut sampled = SampledFolder::new(folder.path());
    let ending =
        process_tree::count_watched(configuration, &request.work(), folder, &description, &mut || {
            sampled.refresh();
            show(&sampled);
        })?;
    let header = record::header(configuration, &engine::Plan::default());
    let profile = sampled.profile(header, request, folder.path())?;
    Ok((profile, ending))
}

/// Samples a program that runs already in a folder: until it ends, the
/// user ends the command, or the time is over. The program goes on.
pub fn sample_running(
    attached: &AttachedProgram,
    request: SampleRequest,
    folder: &Path,
    show: &mut dyn FnMut(&SampledFolder),
) -> Result<SampledProfile, AttachFailure> {
    let mut sampled = SampledFolder::new(folder);
    process_tree::attach_watched(attached, &request.work(), folder, &mut || {
        sampled.refresh();
        show(&sampled);
    })?;
    sampled.refresh();
    let program = sampled.programs.first().and_then(|program| program.images.first());
    let program =
        program.map_or(PathBuf::from(format!("process {}", attached.process)), |image| image.path.clone());
    let header = engine::Plan::default().header(program, Vec::new(), isa::Processors::default());
    Ok(sampled.profile(header, request, folder)?)
}

/// The samples in a folder so far.
pub struct SampledFolder {
    tree: SampledProcessTree,
    /// All programs, each with all of its samples.
    pub programs: Vec<SampledProgram>,
    /// Why the folder cannot be read any more.
    failure: Option<String>,
}

impl SampledFolder {
    /// The samples in a folder.
    fn new(folder: &Path) -> SampledFolder {
        SampledFolder { tree: SampledProcessTree::new(folder), programs: Vec::new(), failure: None }
    }

    /// Adds the new samples.
    fn refresh(&mut self) {
        match self.tree.new_samples() {
            Ok(programs) => self.add(programs),
            Err(error) => self.failure = Some(error.to_string()),
        }
    }

    fn add(&mut self, programs: Vec<SampledProgram>) {
        for mut program in programs {
            let earlier = self.programs.iter_mut().find(|earlier| {
                earlier.host_process == program.host_process
                    && earlier.number == program.number
                    && earlier.images.first() == program.images.first()
            });
            match earlier {
                Some(earlier) => {
                    for thread in &mut program.threads {
                        let before = earlier.threads.iter_mut().find(|it| it.number == thread.number);
                        if let Some(before) = before {
                            let new = std::mem::take(&mut thread.samples);
                            thread.samples = std::mem::take(&mut before.samples);
                            thread.samples.extend(new);
                        }
                    }
                    *earlier = program;
                }
                None => self.programs.push(program),
            }
        }
    }

    /// The profile of all samples.
    fn profile(
        mut self,
        header: Header,
        request: SampleRequest,
        folder: &Path,
    ) -> Result<SampledProfile, Error> {
        self.refresh();
        if let Some(failure) = self.failure {
            return Err(Error::Simulation(io::Error::other(failure)));
        }
        let counts = match request.is_exact {
            true => Some(
                ProcessTreeCounts::read(folder)
                    .map_err(|error| Error::Simulation(io::Error::other(error)))?
                    .counts,
            ),
            false => None,
        };
        make(&header, &self.programs, request.sampling, counts.as_ref()).map_err(Error::Simulation)
    }
}

/// Makes a profile of samples, and of exact counts of the same run.
fn make(
    header: &Header,
    programs: &[SampledProgram],
    sampling: Sampling,
    counts: Option<&Counts>,
) -> io::Result<SampledProfile> {
    let file = rustix::fs::memfd_create("dictionary", MemfdFlags::CLOEXEC)?;
    let dictionary = TreeDictionary::new(crate::descriptors::out_of_reach(File::from(file)), header)?;
    let mut maker = Maker {
        dictionary,
        calls: WithCallTree::new(SampleCounts::default()),
        instructions: SampledInstructions::default(),
        summary: SampleSummary { interval: describe(sampling), ..SampleSummary::default() },
        files: HashMap::new(),
        blocks: HashMap::new(),
        threads: Vec::new(),
    };
    let mut processes: BTreeMap<ProcessNumber, SampledProcess> = BTreeMap::new();
    for program in programs {
        let samples = maker.add(program)?;
        let path = program.images.first().map(|image| image.path.clone()).unwrap_or_default();
        let process = processes.entry(program.number.clone()).or_insert_with(|| SampledProcess {
            number: program.number.clone(),
            host_process: program.host_process,
            program: path.clone(),
            state: program.state.clone(),
            samples: 0,
        });
        (process.program, process.state) = (path, program.state.clone());
        process.samples += samples;
    }
    if let Some(counts) = counts {
        maker.add_counts(counts)?;
    }
    maker.summary.processes = processes.len() as u64;
    let Maker { dictionary, calls, instructions, summary, threads, .. } = maker;
    let trace = dictionary.finish(&header.program)?;
    let processes = processes.into_values().collect();
    Ok(SampledProfile { calls, instructions, trace, summary, processes, threads })
}

/// How was sampled, for people.
pub fn describe(sampling: Sampling) -> String {
    match sampling {
        Sampling::Time(nanoseconds) => {
            format!("every {} ms of a thread's processor time", nanoseconds as f64 / 1e6)
        }
        Sampling::Instructions(instructions) => {
            let instructions = table::separated(&instructions.to_string());
            format!("every {instructions} instructions of a thread, on average")
        }
    }
}

struct Maker {
    dictionary: TreeDictionary,
    calls: WithCallTree<SampleCounts>,
    instructions: SampledInstructions,
    summary: SampleSummary,
    /// The files of images.
    files: HashMap<PathBuf, Option<Arc<ImageFile>>>,
    /// By image and address, the block of a single instruction.
    blocks: HashMap<(Option<u32>, u64), BlockId>,
    threads: Vec<ThreadSamples>,
}

impl Maker {
    /// Adds a program's samples; their number.
    fn add(&mut self, program: &SampledProgram) -> io::Result<u64> {
        let mut numbers = Vec::new();
        for image in &program.images {
            numbers.push(self.image(image));
        }
        let first = program.images.first().and_then(|image| self.file(&image.path));
        let set = first.map_or(isa::INSTRUCTION_SETS[0], |file| file.instruction_set());
        let mut total = 0;
        let mut known: HashMap<u64, BlockId> = HashMap::new();
        for thread in &program.threads {
            self.summary.threads += u64::from(!thread.samples.is_empty());
            self.summary.lost += thread.lost;
            let program_name = program.images.first().map(|image| file_name(&image.path)).unwrap_or_default();
            let mut profiled = ThreadSamples {
                process_name: format!("{program_name} ({})", program.number),
                process: program.host_process,
                thread: thread.number,
                samples: Vec::new(),
            };
            for sample in &thread.samples {
                let weight = u64::from(sample.weight.max(1));
                total += weight;
                self.count(sample, weight, set);
                let mut chain = Vec::with_capacity(sample.chain.len());
                for (index, &address) in sample.chain.iter().enumerate().rev() {
                    // A return address is behind its call.
                    let address = if index == 0 { address } else { address.wrapping_sub(4) };
                    let block = match known.get(&address) {
                        Some(&block) => block,
                        None => {
                            let block = self.block(program, &numbers, address)?;
                            known.insert(address, block);
                            block
                        }
                    };
                    chain.push(block);
                }
                self.calls.add_sample(&chain, weight);
                if let Some(&block) = chain.last() {
                    self.instructions.add_samples(block, weight);
                }
                if let Some(&outermost) = sample.chain.last()
                    && self.is_start(program, outermost.wrapping_sub(4))
                {
                    self.summary.complete += weight;
                }
                profiled.samples.push(ChainSample { time: sample.time, weight: sample.weight, chain });
            }
            self.threads.push(profiled);
        }
        Ok(total)
    }

    fn count(&mut self, sample: &Sample, weight: u64, set: &dyn InstructionSet) {
        let summary = &mut self.summary;
        summary.samples += weight;
        match sample.kind {
            SampleKind::Compiled => summary.compiled += weight,
            SampleKind::Interpreted => summary.interpreted += weight,
            SampleKind::SystemCall(number) => {
                *summary.system_calls.entry(engine::system_call_name(set, number)).or_default() += weight;
            }
            SampleKind::Instruction => {}
        }
    }

    fn image(&mut self, image: &LoadedImage) -> u32 {
        let build_id =
            self.file(&image.path).and_then(|file| file.build_id().map(Vec::from)).unwrap_or_default();
        let &LoadedImage { ref path, start, end, bias } = image;
        let image = MappedImage { path: path.clone(), start, end, bias, build_id, functions: Vec::new() };
        self.dictionary.image(image, &mut self.calls)
    }

    fn file(&mut self, path: &Path) -> Option<Arc<ImageFile>> {
        let read = |path: &Path| linux_user::read_image(path).ok().map(Arc::new);
        self.files.entry(path.into()).or_insert_with(|| read(path)).clone()
    }

    /// The block of a program's instruction, which lies in the image that was mapped last where it is.
    fn block(&mut self, program: &SampledProgram, numbers: &[u32], address: u64) -> io::Result<BlockId> {
        let index = image_of(program, address);
        let image = index.map(|index| numbers[index]);
        if let Some(&block) = self.blocks.get(&(image, address)) {
            return Ok(block);
        }
        let word = index.and_then(|index| {
            let image = &program.images[index];
            let (file, address) = (self.file(&image.path)?, address.wrapping_sub(image.bias));
            let code = file.code().iter().find(|code| (code.address..code.end()).contains(&address))?;
            file.instructions_from(code, address).next().map(|(_, word)| word)
        });
        let block = self.dictionary.block((address, image, vec![word.unwrap_or(0)]), &mut self.calls)?;
        self.blocks.insert((image, address), block);
        Ok(block)
    }

    /// Whether a function begins programs or threads.
    fn is_start(&mut self, program: &SampledProgram, address: u64) -> bool {
        let Some(index) = image_of(program, address) else { return false };
        let image = &program.images[index];
        let Some(file) = self.file(&image.path) else { return false };
        let starts =
            ["_start", "__start", "__clone", "clone", "__thread_start", "thread_start", "_dl_start_user"];
        let function = file.function_at(address.wrapping_sub(image.bias));
        function.is_some_and(|function| {
            starts.contains(&function.name.as_str()) || function.name.starts_with("__libc_start")
        })
    }

    fn add_counts(&mut self, counts: &Counts) -> io::Result<()> {
        let numbers: Vec<u32> = counts.images.iter().map(|image| self.image(image)).collect();
        let mut total = 0;
        for (block, &executions) in counts.blocks.iter().zip(&counts.executions) {
            if executions == 0 {
                continue;
            }
            let image = block.image.map(|image| numbers[image as usize]);
            let id = self.dictionary.block((block.address, image, block.words.clone()), &mut self.calls)?;
            self.instructions.add_executions(id, block.words.len(), executions);
            total += executions * block.words.len() as u64;
        }
        self.summary.instructions = Some(total);
        Ok(())
    }
}

/// The image that was mapped last at an address.
fn image_of(program: &SampledProgram, address: u64) -> Option<usize> {
    program.images.iter().rposition(|image| (image.start..image.end).contains(&address))
}

/// The functions of a program's samples, by the address of an instruction: for a view that is shown while it runs.
#[derive(Default)]
pub struct FunctionNames {
    files: HashMap<PathBuf, Option<Arc<ImageFile>>>,
    names: HashMap<(PathBuf, u64), String>,
}

impl FunctionNames {
    /// The function at an address of a program, and its image.
    pub fn name(&mut self, program: &SampledProgram, address: u64) -> (String, String) {
        let Some(index) = image_of(program, address) else { return ("(unnamed)".into(), String::new()) };
        let image = &program.images[index];
        let file_name = image.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let linked = address.wrapping_sub(image.bias);
        let key = (image.path.clone(), linked);
        if let Some(name) = self.names.get(&key) {
            return (name.clone(), file_name);
        }
        let read = |path: &Path| linux_user::read_image(path).ok().map(Arc::new);
        let file = self.files.entry(image.path.clone()).or_insert_with(|| read(&image.path));
        let function = file.as_ref().and_then(|file| file.function_at(linked));
        let name = function
            .map_or_else(|| "(unnamed)".to_string(), |function| image::demangle(&function.name).into_owned());
        self.names.insert(key, name.clone());
        (name, file_name)
    }
}
