//! Logs of drivers, replayed on the model of DART.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use adapter::log::LogReader;
use adapter::{LogReplay, ReplayResult};

use super::error::Error;
use super::measure::adapter_with;

/// A log's replay on a bus of a width.
#[derive(Clone, Debug)]
pub struct ReplayedLog {
    /// The file's name.
    pub name: String,
    pub bits: u32,
    pub result: ReplayResult,
    /// The bus's cycles in that time.
    pub bus_cycles: f64,
}

/// The records of a log, one after another.
fn open(path: &Path) -> Result<LogReader<BufReader<File>>, Error> {
    let wrong = |error: adapter::log::LogError| Error::Log(path.into(), error.to_string());
    let file = File::open(path).map_err(|error| wrong(error.into()))?;
    LogReader::new(BufReader::new(file)).map_err(wrong)
}

/// Reads logs to their ends, so that a wrong one is refused before anything is simulated.
pub fn check(paths: &[PathBuf]) -> Result<(), Error> {
    for path in paths {
        let wrong = |reason: String| Error::Log(path.clone(), reason);
        let mut records = 0u64;
        for record in open(path)? {
            record.map_err(|error| wrong(error.to_string()))?;
            records += 1;
        }
        if records == 0 {
            return Err(wrong("the log has no records after its first line".into()));
        }
    }
    Ok(())
}

/// Replays logs on both widths of DART's bus.
pub fn replay(paths: &[PathBuf]) -> Result<Vec<ReplayedLog>, Error> {
    let mut all = Vec::new();
    for path in paths {
        for width in ["bus.bits=32", "bus.bits=64"] {
            let dart = adapter_with("dart", &[width])?;
            let result = LogReplay::run(&dart, open(path)?)
                .map_err(|error| Error::Log(path.clone(), error.to_string()))?;
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            let bus_cycles = result.time as f64 * dart.bus.clock_mhz * 1e-6;
            all.push(ReplayedLog { name, bits: dart.bus.bits, result, bus_cycles });
        }
    }
    Ok(all)
}
