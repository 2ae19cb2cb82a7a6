//! Descriptions of caches, TLBs and memory.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

use super::granularity::HintedRegions;
use crate::memory::hierarchy::{Prefetch, Replacement};

/// A cache.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Its name: `[caches.NAME]`.
    #[serde(skip)]
    pub name: String,
    /// Its level: 1 is accessed first.
    pub level: u8,
    /// Instructions, data, or both.
    pub holds: Holds,
    /// Bytes: a number, or `"8K"`, `"2M"`.
    #[serde(deserialize_with = "bytes")]
    pub size: u64,
    /// Associativity: 1 is direct-mapped.
    pub ways: u32,
    /// Bytes of a line.
    #[serde(deserialize_with = "bytes")]
    pub line: u64,
    /// The replacement policy.
    #[serde(default)]
    pub replacement: Replacement,
    /// The write policy.
    #[serde(default)]
    pub write: WritePolicy,
    /// Whether a store that misses allocates the line.
    #[serde(default)]
    pub allocate_on_write: bool,
    /// The write buffer to the next level.
    pub write_buffer: Option<WriteBuffer>,
    /// Lines of the victim buffer: 0 for none.
    #[serde(default)]
    pub victim_lines: u32,
    /// Prefetching.
    pub prefetch: Option<Prefetch>,
    /// The caches that it includes: evicting a line here invalidates it there.
    #[serde(default)]
    pub includes: Vec<String>,
    /// Load-to-use latency of a hit, in cycles.
    pub latency: f64,
}

/// A TLB (translation buffer).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TranslationBuffer {
    /// Its name: `[translation_buffers.NAME]`.
    #[serde(skip)]
    pub name: String,
    /// Its level: 1 is accessed first.
    #[serde(default = "first")]
    pub level: u8,
    /// The accesses that it translates.
    pub holds: Holds,
    /// Its entries.
    pub entries: u32,
    /// Associativity; fully associative without this.
    pub ways: Option<u32>,
    /// Bytes of a page.
    #[serde(deserialize_with = "bytes")]
    pub page: u64,
    /// The sizes of blocks, in pages, that one entry can map instead of a page, where the operating system has given a
    /// granularity hint ([`MainMemory::granularity_hints`]).
    #[serde(default)]
    pub granularity_hints: Vec<u32>,
    /// The replacement policy.
    #[serde(default)]
    pub replacement: Replacement,
    /// Cycles of a miss: until the next level responds, or until the entry is filled.
    pub miss_cycles: f64,
    /// Whether a trap to software fills the entry, and no hardware: then accesses of wrong paths that miss are not made, as traps
    /// are those of instructions that retire.
    #[serde(default)]
    pub software_refill: bool,
}

/// The main memory.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MainMemory {
    /// Load-to-use latency in nanoseconds of a load that no cache serves.
    pub latency_ns: f64,
    /// The regions that the operating system maps with granularity hints.
    #[serde(default)]
    pub granularity_hints: HintedRegions,
}

/// The accesses that a cache or a TLB serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// Fetches of instructions.
    Instructions,
    /// Loads and stores.
    Data,
    /// Both.
    Both,
}

/// The write policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WritePolicy {
    /// Write-back: a store makes the line dirty, and a dirty line is written to the next level when it is evicted.
    #[default]
    Back,
    /// Write-through: a store writes the line and the next level.
    Through,
    /// A store counts as a load, and nothing is written to the next level, as in other simulators (QEMU's plugin,
    /// cachegrind).
    Ignored,
}

/// A write buffer to the next level. Stores to a block that is in the buffer are merged. The oldest block is written
/// when a new one finds the buffer full, and blocks are written before a load of their line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "{ entries = NUMBER }")]
pub struct WriteBuffer {
    /// Blocks, each of the size of a line.
    pub entries: u32,
}

/// How an access that crosses the end of a line or page is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Crossing {
    /// As accesses to both.
    #[default]
    Both,
    /// As an access to the first only, as in QEMU's plugin.
    First,
}

impl Holds {
    /// Whether it serves instructions (true) or data (false).
    pub fn has(self, instructions: bool) -> bool {
        self == Holds::Both || (self == Holds::Instructions) == instructions
    }
}

impl Cache {
    /// The number of sets.
    pub fn sets(&self) -> u64 {
        self.size / (self.line * u64::from(self.ways))
    }
}

impl TranslationBuffer {
    /// Associativity.
    pub fn ways(&self) -> u32 {
        self.ways.unwrap_or(self.entries)
    }
}

fn first() -> u8 {
    1
}

/// A structure with a name, a level and what it holds.
pub(super) trait NamedStructure {
    fn set_name(&mut self, name: String);
    /// By which a list is sorted.
    fn order(&self) -> (u8, Holds);
}

impl NamedStructure for Cache {
    fn set_name(&mut self, name: String) {
        self.name = name;
    }
    fn order(&self) -> (u8, Holds) {
        (self.level, self.holds)
    }
}

impl NamedStructure for TranslationBuffer {
    fn set_name(&mut self, name: String) {
        self.name = name;
    }
    fn order(&self) -> (u8, Holds) {
        (self.level, self.holds)
    }
}

/// A table whose keys are names, as a list from the first level on.
pub(super) fn named<'a, D: Deserializer<'a>, T: NamedStructure + Deserialize<'a>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    let table = BTreeMap::<String, T>::deserialize(from)?;
    let mut list: Vec<T> = table
        .into_iter()
        .map(|(name, mut one)| {
            one.set_name(name);
            one
        })
        .collect();
    list.sort_by_key(NamedStructure::order);
    Ok(list)
}

/// A number of bytes: an integer, or a text as `"96K"`.
pub(super) fn bytes<'a, D: Deserializer<'a>>(from: D) -> Result<u64, D::Error> {
    struct Bytes;
    impl Visitor<'_> for Bytes {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a number of bytes, as 32, \"8K\" or \"2M\"")
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
            u64::try_from(number).map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
            let units = [("K", 10), ("M", 20), ("G", 30)];
            let unit = units.into_iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
            let (digits, shift) = unit.unwrap_or((text, 0));
            let number =
                digits.trim_end().parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
            number.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
        }
    }
    from.deserialize_any(Bytes)
}
