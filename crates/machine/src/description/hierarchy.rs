//! What is between the processor and its memory.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

/// A cache.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// What it is called: `[caches.NAME]`.
    #[serde(skip)]
    pub name: String,
    /// 1 is the one that the processor asks first.
    pub level: u8,
    /// What it holds.
    pub holds: Holds,
    /// Bytes: a number, or `"8K"`, `"2M"`.
    #[serde(deserialize_with = "bytes")]
    pub size: u64,
    /// Lines of a set: 1 is direct mapped.
    pub ways: u32,
    /// Bytes of a line.
    #[serde(deserialize_with = "bytes")]
    pub line: u64,
    /// Which line of a set leaves.
    #[serde(default)]
    pub replacement: Replacement,
    /// What a store does.
    #[serde(default)]
    pub write: Write,
    /// Whether a store that misses brings in the line.
    #[serde(default)]
    pub allocate_on_write: bool,
    /// What collects stores on their way to the next level.
    pub write_buffer: Option<WriteBuffer>,
    /// Lines that were replaced last and can come back: 0 for none.
    #[serde(default)]
    pub victim_lines: u32,
    /// What is fetched that nobody has asked for.
    pub prefetch: Option<Prefetch>,
    /// The caches whose lines it always has too: what leaves it, leaves them.
    #[serde(default)]
    pub includes: Vec<String>,
    /// Cycles from the start of a load until its result can be used, if this cache has it.
    pub latency: f64,
}

/// A translation buffer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TranslationBuffer {
    /// What it is called: `[translation_buffers.NAME]`.
    #[serde(skip)]
    pub name: String,
    /// 1 is the one that the processor asks first.
    #[serde(default = "first")]
    pub level: u8,
    /// Of which accesses it holds translations.
    pub holds: Holds,
    /// Pages that it can hold.
    pub entries: u32,
    /// Entries of a set; without this a page can be in any entry.
    pub ways: Option<u32>,
    /// Bytes of a page.
    #[serde(deserialize_with = "bytes")]
    pub page: u64,
    /// Which entry leaves.
    #[serde(default)]
    pub replacement: Replacement,
    /// Cycles that a miss costs: until the next level answers, or until the entry is filled.
    pub miss_cycles: f64,
}

/// What is behind the caches.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Nanoseconds from the start of a load until its result can be used, if no cache has it.
    pub latency_ns: f64,
}

/// Of which accesses a cache or a translation buffer holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// Of instructions.
    Instructions,
    /// Of data.
    Data,
    /// Of both.
    Both,
}

/// What leaves when something has to. Entries that hold nothing are filled first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// The least recently used.
    #[default]
    Lru,
    /// All in turn (round robin), which is the first that came in.
    #[serde(alias = "round-robin")]
    Fifo,
    /// Any; the same ones in each run.
    Random,
    /// The one that a pointer shows, which goes on to the next whenever that one is used or filled.
    NotLastUsed,
}

/// What a store does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Write {
    /// It changes the line; the next level hears when the line leaves.
    #[default]
    Back,
    /// It changes the line, and the next level too.
    Through,
    /// It is a load: the next level never hears of stores that hit, as in other simulators (QEMU's plugin,
    /// cachegrind).
    Ignored,
}

/// Collects stores on their way to the next level. Stores to a block that is in the buffer join it; the
/// oldest block leaves when a new one finds the buffer full, and before a load of what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBuffer {
    /// Blocks, each as long as a line.
    pub entries: u32,
}

/// What is fetched that nobody has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Prefetch {
    /// On a miss the next lines too, into the cache.
    NextLines(u32),
    /// On a miss the next lines too, into a buffer beside the cache that holds as many. A miss that finds its
    /// line there takes it into the cache, and one more line is fetched; another miss begins anew.
    Stream(u32),
}

/// What an access does that crosses the end of a line or page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Crossing {
    /// It asks for both.
    #[default]
    Both,
    /// It asks for the first only, as QEMU's plugin does.
    First,
}

impl Holds {
    /// Whether it holds something of accesses to instructions, or else of those to data.
    pub fn has(self, instructions: bool) -> bool {
        self == Holds::Both || (self == Holds::Instructions) == instructions
    }
}

impl Cache {
    /// Its sets.
    pub fn sets(&self) -> u64 {
        self.size / (self.line * u64::from(self.ways))
    }
}

impl TranslationBuffer {
    /// Entries of a set.
    pub fn ways(&self) -> u32 {
        self.ways.unwrap_or(self.entries)
    }
}

fn first() -> u8 {
    1
}

/// Something with a name and a place in the hierarchy.
pub(super) trait Named {
    fn set_name(&mut self, name: String);
    fn place(&self) -> (u8, Holds);
}

impl Named for Cache {
    fn set_name(&mut self, name: String) {
        self.name = name;
    }
    fn place(&self) -> (u8, Holds) {
        (self.level, self.holds)
    }
}

impl Named for TranslationBuffer {
    fn set_name(&mut self, name: String) {
        self.name = name;
    }
    fn place(&self) -> (u8, Holds) {
        (self.level, self.holds)
    }
}

/// A table whose keys are names, as a list in the order of places.
pub(super) fn named<'a, D: Deserializer<'a>, T: Named + Deserialize<'a>>(
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
    list.sort_by_key(Named::place);
    Ok(list)
}

/// A number of bytes: an integer, or a text as `"96K"`.
fn bytes<'a, D: Deserializer<'a>>(from: D) -> Result<u64, D::Error> {
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
