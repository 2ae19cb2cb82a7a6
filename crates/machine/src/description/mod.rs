//! Machines as data: a file in TOML says what a machine is made of, and why one believes so.

mod check;
mod hierarchy;

use std::path::Path;

use serde::Deserialize;

use crate::pipeline::{Emulation, Pipeline};
use crate::predictor::Predictor;
use crate::storage::Storage;

pub(crate) use check::{Checked, require};
pub use hierarchy::{
    Cache, Crossing, Holds, Memory, Prefetch, Replacement, TranslationBuffer, Write, WriteBuffer,
};

/// The machines that come with the crate: their names, and their files.
const KNOWN: [(&str, &str); 6] = [
    ("alphaserver8400", include_str!("../../../../machines/alphaserver8400.toml")),
    ("alphastation500", include_str!("../../../../machines/alphastation500.toml")),
    ("alphastation500-ev5", include_str!("../../../../machines/alphastation500-ev5.toml")),
    ("dec3000", include_str!("../../../../machines/dec3000.toml")),
    ("present-day", include_str!("../../../../machines/present-day.toml")),
    ("qemu", include_str!("../../../../machines/qemu.toml")),
];

/// Why a description is none.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its file cannot be read.
    #[error("cannot read the machine's file {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the host says.
        error: std::io::Error,
    },
    /// Neither a known machine nor a file.
    #[error("no machine is called {0:?}: use {known}, or the path of a file, as mine.toml", known = names())]
    Unknown(String),
    /// It is not TOML, or has fields that no machine has.
    #[error("{0}")]
    Syntax(String),
    /// No machine can be so.
    #[error("{field}: {reason}")]
    Impossible {
        /// The field, as `caches.dcache.ways`.
        field: String,
        /// What is wrong with its value.
        reason: String,
    },
}

impl From<toml::de::Error> for Error {
    /// In one line: where it is, and what.
    fn from(error: toml::de::Error) -> Error {
        let text = error.to_string();
        // The line itself is shown in between, behind a bar.
        let parts = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains('|'));
        Error::Syntax(parts.collect::<Vec<_>>().join(": "))
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// What it is, in one line.
    pub title: String,
    /// The processor as a whole.
    pub processor: Processor,
    /// Caches; the nearest first, of one level those of instructions first.
    #[serde(default, deserialize_with = "hierarchy::named")]
    pub caches: Vec<Cache>,
    /// Translation buffers, in the same order.
    #[serde(default, deserialize_with = "hierarchy::named")]
    pub translation_buffers: Vec<TranslationBuffer>,
    /// Its disks.
    pub storage: Option<Storage>,
    /// What is behind the caches.
    #[serde(default)]
    pub memory: Memory,
    /// How instructions are issued: a machine without it has no time.
    pub pipeline: Option<Pipeline>,
    /// How branches are predicted.
    pub predictor: Option<Predictor>,
    /// What instructions cost that the processor has not.
    pub emulation: Option<Emulation>,
}

/// The processor as a whole.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// What it is called.
    pub name: String,
    /// Which instructions it has: `ev4` to `ev67`. Programs run as on this processor unless told otherwise.
    pub cpu: Option<String>,
    /// Cycles in a microsecond.
    pub clock_mhz: f64,
    /// What an access does that crosses the end of a line.
    #[serde(default)]
    pub crossing: Crossing,
}

/// The names of the machines that come with the crate.
pub fn names() -> String {
    KNOWN.map(|(name, _)| name).join(", ")
}

/// Reads a description: nothing that never ends.
fn read(path: &str) -> std::io::Result<String> {
    /// Far more than any machine takes.
    const LARGEST: u64 = 1 << 20;
    let refused = |what: &str| Err(std::io::Error::other(what));
    match std::fs::metadata(path)? {
        file if !file.is_file() => refused("it is not a regular file"),
        file if file.len() > LARGEST => refused("no description is larger than 1 MiB"),
        _ => std::fs::read_to_string(path),
    }
}

impl Machine {
    /// A machine that comes with the crate, or one in a file.
    ///
    /// ```
    /// use pathlength_machine::Machine;
    /// let machine = Machine::find("alphastation500").unwrap();
    /// assert_eq!(machine.processor.clock_mhz, 400.0);
    /// assert_eq!(machine.caches[0].name, "icache");
    /// ```
    pub fn find(name_or_path: &str) -> Result<Machine, Error> {
        if let Some(text) = known(name_or_path) {
            return Machine::from_toml(text);
        }
        if !name_or_path.ends_with(".toml") && !Path::new(name_or_path).exists() {
            return Err(Error::Unknown(name_or_path.into()));
        }
        let text =
            read(name_or_path).map_err(|error| Error::Unreadable { path: name_or_path.into(), error })?;
        Machine::from_toml(&text)
    }

    /// What serves instructions or data at a level, as [`Cause::InstructionMiss`](crate::Cause::InstructionMiss)
    /// and [`Cause::DataMiss`](crate::Cause::DataMiss) number them: the name of a cache, or `memory`.
    ///
    /// ```
    /// let machine = pathlength_machine::Machine::find("alphastation500").unwrap();
    /// assert_eq!([1, 2, 3].map(|level| machine.level_name(false, level)), ["scache", "bcache", "memory"]);
    /// ```
    pub fn level_name(&self, instructions: bool, level: u8) -> &str {
        let mut path = self.caches.iter().filter(|cache| cache.holds.has(instructions));
        path.nth(level.into()).map_or("memory", |cache| &cache.name)
    }

    /// All machines that come with the crate, by name.
    pub fn all() -> impl Iterator<Item = (&'static str, Machine)> {
        KNOWN.into_iter().map(|(name, text)| {
            (name, Machine::from_toml(text).expect("a test reads the machines that come with the crate"))
        })
    }

    /// Reads a description, and checks it. One that says `base = "alphastation500"` changes that machine.
    pub fn from_toml(text: &str) -> Result<Machine, Error> {
        let machine: Machine = match toml::from_str::<Based>(text) {
            Ok(Based { base: Some(base) }) => {
                let mut described = described(&base)?;
                let mut changes: toml::Table = toml::from_str(text)?;
                changes.remove("base");
                merge(&mut described, changes);
                described.try_into()?
            }
            _ => toml::from_str(text)?,
        };
        check::check(&machine)?;
        Ok(machine)
    }
}

/// What is looked at first.
#[derive(Deserialize)]
struct Based {
    base: Option<String>,
}

fn known(wanted: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(name, _)| *name == wanted).map(|(_, text)| *text)
}

/// The description of a machine that comes with the crate, whose base is one too.
fn described(name: &str) -> Result<toml::Table, Error> {
    let text = known(name).ok_or_else(|| Error::Impossible {
        field: "base".into(),
        reason: format!("no machine is called {name:?}: use {}", names()),
    })?;
    let mut changes: toml::Table = toml::from_str(text)?;
    let Some(toml::Value::String(base)) = changes.remove("base") else { return Ok(changes) };
    let mut whole = described(&base)?;
    merge(&mut whole, changes);
    Ok(whole)
}

fn merge(whole: &mut toml::Table, changes: toml::Table) {
    for (key, change) in changes {
        match (whole.get_mut(&key), change) {
            (Some(toml::Value::Table(part)), toml::Value::Table(changes)) => merge(part, changes),
            (_, change) => drop(whole.insert(key, change)),
        }
    }
}
