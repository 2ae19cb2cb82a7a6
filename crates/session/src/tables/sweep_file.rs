//! The results of a sweep in a file, so that an interrupted one goes on: a line of JSON for each configuration.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What the file begins with: results of another execution or model are none of this sweep.
#[derive(PartialEq, Serialize, Deserialize)]
struct FileHeading {
    pathlength: String,
    sweep: u64,
}

/// A configuration's results.
#[derive(Serialize, Deserialize)]
struct KeptLine<R> {
    machine: u64,
    result: R,
}

/// A file with the results of a sweep.
pub struct SweepFile<R> {
    file: File,
    results: HashMap<u64, R>,
}

/// A number for something by its description, the same in each run of this program.
fn fingerprint(description: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    description.hash(&mut hasher);
    hasher.finish()
}

impl<R: Serialize + DeserializeOwned> SweepFile<R> {
    /// Opens or creates the file of a sweep, which `description` tells from others.
    pub fn open(path: &Path, description: &str) -> anyhow::Result<SweepFile<R>> {
        let failed = || format!("the file of results {}", path.display());
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).open(path).with_context(failed)?;
        // Two sweeps would write into each other's lines.
        file.try_lock().with_context(failed)?;
        let heading =
            FileHeading { pathlength: env!("CARGO_PKG_VERSION").into(), sweep: fingerprint(description) };
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(failed)?;
        // What follows the last line was being written when the sweep was interrupted.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut lines = text[..whole].lines();
        let results = match lines.next() {
            None if text.is_empty() || heading_begins_with(&heading, &text) => HashMap::new(),
            first => {
                let is_own = first.is_some_and(|line| {
                    serde_json::from_str(line).is_ok_and(|one: FileHeading| one == heading)
                });
                if !is_own {
                    bail!(
                        "{} has no results of this sweep: remove it, or give --resume another file",
                        path.display()
                    );
                }
                let kept = lines.map(serde_json::from_str::<KeptLine<R>>).collect::<Result<Vec<_>, _>>();
                kept.with_context(failed)?.into_iter().map(|line| (line.machine, line.result)).collect()
            }
        };
        file.set_len(whole as u64).with_context(failed)?;
        file.seek(SeekFrom::End(0)).with_context(failed)?;
        if whole == 0 {
            write_line(&mut file, &heading).with_context(failed)?;
        }
        Ok(SweepFile { file, results })
    }

    /// Takes the results of a machine, if there are any.
    pub fn take(&mut self, machine: &str) -> Option<R> {
        self.results.remove(&fingerprint(machine))
    }

    /// Adds the results of a machine.
    pub fn add(&mut self, machine: &str, result: &R) -> anyhow::Result<()> {
        let line = KeptLine { machine: fingerprint(machine), result };
        write_line(&mut self.file, &line).context("the results of a sweep cannot be kept")
    }
}

/// Whether a sweep was interrupted while it wrote the first line.
fn heading_begins_with(heading: &FileHeading, text: &str) -> bool {
    serde_json::to_string(heading).is_ok_and(|whole| whole.starts_with(text))
}

/// Writes a line at once, so that nobody sees a part of it unless the host stops.
fn write_line(file: &mut File, value: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(file.write_all(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_found_again_wherever_the_file_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        let mut sweep = SweepFile::<Vec<u64>>::open(&path, "one").unwrap();
        assert!(SweepFile::<Vec<u64>>::open(&path, "one").is_err(), "it is used");
        let machines = ["a", "b", "c"];
        for (number, machine) in (0..).zip(machines) {
            sweep.add(machine, &vec![number, 7]).unwrap();
        }
        drop(sweep);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let mut sweep = SweepFile::<Vec<u64>>::open(&path, "one").unwrap();
            let lines = whole[..length].iter().filter(|&&byte| byte == b'\n').count();
            let expected = lines.saturating_sub(1);
            let found = machines.map(|machine| sweep.take(machine));
            let is_there = |number: usize| (number < expected).then(|| vec![number as u64, 7]);
            assert_eq!(found, [0, 1, 2].map(is_there), "{length}");
            // What is missing is added, and all is there.
            for (number, machine) in (0..).zip(machines).skip(expected) {
                sweep.add(machine, &vec![number, 7]).unwrap();
            }
            drop(sweep);
            assert_eq!(std::fs::read(&path).unwrap(), whole, "{length}");
        }
        let other = SweepFile::<Vec<u64>>::open(&path, "another").err().unwrap().to_string();
        assert!(other.contains("has no results of this sweep"), "{other}");
        std::fs::write(&path, "a letter").unwrap();
        assert!(SweepFile::<Vec<u64>>::open(&path, "one").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"a letter", "it is kept");
    }
}
