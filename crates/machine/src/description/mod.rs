//! Descriptions of machines in TOML: their structures, and the sources of each figure.

mod built_in;
mod bus;
mod check;
pub(crate) mod choice;
mod coherence;
mod granularity;
mod hierarchy;
mod nodes;
mod setting;

pub use descriptions::DescriptionError;
use serde::Deserialize;

use crate::core::out_of_order::OutOfOrder;
use crate::core::pipeline::{Emulation, Pipeline};
use crate::core::predictor::Predictor;
use crate::throughput::Storage;

use built_in::MACHINES;
pub use built_in::names;
pub use bus::{Bus, BusProcessor};
pub use coherence::Coherence;
pub use granularity::{HintedRegion, HintedRegions};
pub use hierarchy::{Cache, Crossing, Holds, MainMemory, TranslationBuffer, WriteBuffer, WritePolicy};
pub use nodes::{FarCache, Nodes, Placement};
pub use setting::{MachineSetting, Sweep};

/// A machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The machine, in one line.
    pub title: String,
    /// The processor as a whole.
    pub processor: Processor,
    /// Caches, ordered by level; within a level, those of instructions first.
    #[serde(default, deserialize_with = "hierarchy::named")]
    pub caches: Vec<Cache>,
    /// Translation buffers, in the same order.
    #[serde(default, deserialize_with = "hierarchy::named")]
    pub translation_buffers: Vec<TranslationBuffer>,
    /// Its disks.
    pub storage: Option<Storage>,
    /// The main memory.
    #[serde(default)]
    pub memory: MainMemory,
    /// How the caches of several processors are kept coherent; a machine without it has one processor.
    pub coherence: Option<Coherence>,
    /// The pipeline; a machine without it has no timing model.
    pub pipeline: Option<Pipeline>,
    /// An out-of-order core, in the place of a pipeline.
    pub out_of_order: Option<OutOfOrder>,
    /// The branch predictor.
    pub predictor: Option<Predictor>,
    /// The cost of emulated instructions, which the processor lacks.
    pub emulation: Option<Emulation>,
}

/// The processor as a whole.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Its name.
    pub name: String,
    /// The instructions that it has: `ev4` to `ev67`. Programs run on this processor by default.
    pub cpu: Option<String>,
    /// Clock frequency in MHz.
    pub clock_mhz: f64,
    /// How accesses that cross the end of a line are simulated.
    #[serde(default)]
    pub crossing: Crossing,
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
    pub fn find(name_or_path: &str) -> Result<Machine, DescriptionError> {
        Machine::from_toml(&MACHINES.text_of(name_or_path)?)
    }

    /// The same machine with some fields changed, in the order of the settings. Whether the machine is possible is checked
    /// after all of them.
    ///
    /// ```
    /// use pathlength_machine::Machine;
    /// let settings = ["dcache.size=24K", "dcache.ways=3"].map(|text| text.parse().unwrap());
    /// let machine = Machine::find_with("alphastation500", &settings).unwrap();
    /// assert_eq!((machine.caches[1].size, machine.caches[1].ways), (24 << 10, 3));
    /// let error = Machine::find_with("alphastation500", &settings[..1]).unwrap_err();
    /// assert!(error.to_string().starts_with("caches.dcache.size: 768 (the number of sets) is not a power of two"));
    /// ```
    pub fn find_with(name_or_path: &str, settings: &[MachineSetting]) -> Result<Machine, DescriptionError> {
        if settings.is_empty() {
            return Machine::find(name_or_path);
        }
        let mut description = MACHINES.with_base(&MACHINES.text_of(name_or_path)?)?;
        settings.iter().try_for_each(|setting| setting.apply(&mut description))?;
        let machine: Machine = description.try_into()?;
        check::check(&machine)?;
        Ok(machine)
    }

    /// The name of the cache that serves instructions or data at a level, or `memory`; levels are numbered as by
    /// [`Cause::InstructionMiss`](crate::Cause::InstructionMiss) and [`Cause::DataMiss`](crate::Cause::DataMiss).
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
        MACHINES.files.iter().map(|&(name, text)| {
            (name, Machine::from_toml(text).expect("a test reads the machines that come with the crate"))
        })
    }

    /// Reads a description, and checks it. One that says `base = "alphastation500"` changes that machine.
    pub fn from_toml(text: &str) -> Result<Machine, DescriptionError> {
        let machine: Machine = MACHINES.parse(text)?;
        check::check(&machine)?;
        Ok(machine)
    }
}
