//! Reads the samples of all processes, also while they are taken.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use events::LoadedImage;

use super::log::{LogName, ProcessNumber, ProcessState};
use super::read::{Logs, ProcessTreeError};
use crate::sampling::{Sample, SampleReader, Sampling};

/// The samples in a folder, in which a [`ProcessTreeCounter`](super::ProcessTreeCounter) that samples counts.
pub struct SampledProcessTree {
    folder: PathBuf,
    readers: BTreeMap<(LogName, u32), SampleReader>,
}

/// A program in one of the processes, with its new samples.
#[derive(Clone, Debug)]
pub struct SampledProgram {
    /// The process's number in the tree.
    pub number: ProcessNumber,
    /// The host's number of the process.
    pub host_process: u32,
    /// How the process has ended, if it has.
    pub state: ProcessState,
    /// The images that it has mapped.
    pub images: Vec<LoadedImage>,
    /// Its threads.
    pub threads: Vec<NewSamples>,
}

/// A thread with its new samples.
#[derive(Clone, Debug)]
pub struct NewSamples {
    /// Its number in the process.
    pub number: u32,
    /// How it is sampled, once it is.
    pub sampling: Option<Sampling>,
    /// The new samples.
    pub samples: Vec<Sample>,
    /// Samples that were lost so far, as there was no room for them.
    pub lost: u64,
}

impl SampledProcessTree {
    /// The samples in a folder.
    pub fn new(folder: &Path) -> SampledProcessTree {
        SampledProcessTree { folder: folder.into(), readers: BTreeMap::new() }
    }

    /// All programs of all processes so far, with the samples since the last call.
    pub fn new_samples(&mut self) -> Result<Vec<SampledProgram>, ProcessTreeError> {
        self.read().map_err(|error| ProcessTreeError::new(&self.folder, error))
    }

    fn read(&mut self) -> io::Result<Vec<SampledProgram>> {
        let logs = Logs::open(&self.folder)?;
        let (mut programs, mut replays) = (Vec::new(), logs.replays());
        for name in logs.0.keys() {
            let program = replays.whole(name);
            let mut threads = Vec::new();
            for number in 0.. {
                let Some(thread) = self.thread(name, number)? else { break };
                threads.push(thread);
            }
            programs.push(SampledProgram {
                number: name.process.clone(),
                host_process: program.host_process,
                state: program.state(),
                images: program.images,
                threads,
            });
        }
        Ok(programs)
    }

    /// The thread of this number; None if there is none.
    fn thread(&mut self, name: &LogName, number: u32) -> io::Result<Option<NewSamples>> {
        let key = (name.clone(), number);
        if !self.readers.contains_key(&key) {
            match SampleReader::open(&self.folder.join(name.samples(number))) {
                Ok(reader) => self.readers.insert(key.clone(), reader),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
        }
        let Some(reader) = self.readers.get_mut(&key) else { return Ok(None) };
        let (sampling, lost) = (reader.sampling(), reader.lost());
        Ok(Some(NewSamples { number, sampling, samples: reader.new_samples()?, lost }))
    }
}
