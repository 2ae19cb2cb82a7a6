//! Descriptions of machines whose processors are divided into nodes, each with a part of the memory (CC-NUMA).

use serde::Deserialize;

use super::Cache;
use super::check::has_choice;
use super::hierarchy::bytes;
use crate::memory::coherence::{Directory, Protocol};
use crate::memory::hierarchy::Replacement;
use descriptions::{CheckResult, require};

/// Nodes with processors on a bus, a part of the memory, and a cache of the other nodes' memory. A directory at each line's
/// home node keeps the nodes coherent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// Processors of a node. The number of nodes follows from the number of processors.
    pub processors: u32,
    /// The directory: the knowledge of a line's home node about its copies.
    pub directory: Directory,
    /// Which node's memory a page is in.
    #[serde(default)]
    pub placement: Placement,
    /// The node, for `placement = "fixed"`.
    #[serde(default)]
    pub home: u32,
    /// The cache of lines of other nodes' memory, which includes what the node's processors have of them.
    pub far_cache: FarCache,
    /// How long a message takes from node to node, in nanoseconds.
    pub hop_ns: f64,
    /// How long the home node takes for a request: directory and memory, in nanoseconds.
    pub directory_ns: f64,
    /// How long an operation occupies the interface of the node that began it, in nanoseconds.
    #[serde(default)]
    pub interface_ns: f64,
}

/// Which node's memory a page is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The node whose processor accesses it first.
    #[default]
    FirstTouch,
    /// Round-robin: each page that is accessed for the first time is in the node after that of the last one.
    RoundRobin,
    /// One node for all pages.
    Fixed,
}

/// A node's cache of lines of other nodes' memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FarCache {
    /// Bytes: a number, or `"128M"`.
    #[serde(deserialize_with = "bytes")]
    pub size: u64,
    /// Associativity: 1 is direct-mapped.
    pub ways: u32,
    /// Bytes of a line: the unit of coherence between nodes.
    #[serde(deserialize_with = "bytes")]
    pub line: u64,
    /// The replacement policy.
    #[serde(default)]
    pub replacement: Replacement,
}

impl FarCache {
    /// The number of its sets.
    pub fn sets(&self) -> u64 {
        self.size / (self.line * u64::from(self.ways))
    }

    fn check(&self, private: &Cache) -> CheckResult {
        let field = |name: &str| format!("coherence.nodes.far_cache.{name}");
        let &FarCache { size, ways, line, .. } = self;
        let reason =
            format!("{line} is not a power of two from the {} of {} to 4096", private.line, private.name);
        require(line.is_power_of_two() && (private.line..=4096).contains(&line), field("line"), reason)?;
        require((1..=1 << 16).contains(&ways), field("ways"), format!("{ways} is not 1 to 65,536"))?;
        let set = line * u64::from(ways);
        let reason = format!("{size} bytes are not a power of two of sets of {ways} lines of {line} bytes");
        require(size.is_multiple_of(set) && (size / set).is_power_of_two(), field("size"), reason)?;
        let reason = format!("{size} bytes are more than {MOST_LINES} lines");
        require(size / line <= MOST_LINES, field("size"), reason)?;
        has_choice(self.replacement, ways, field("replacement"))
    }
}

/// The greatest number of lines of a far cache: each node of a simulation has one.
const MOST_LINES: u64 = 1 << 22;

impl Nodes {
    /// Names the field that is wrong, and says why.
    pub(super) fn check(&self, private: &Cache, protocol: Protocol) -> CheckResult {
        let fits = (1..=64).contains(&self.processors);
        require(fits, "coherence.nodes.processors", format!("{} is not 1 to 64", self.processors))?;
        let reason =
            "processors of nodes have msi or mesi: a line that another node reads is written to memory";
        require(protocol != Protocol::Moesi, "coherence.protocol", reason)?;
        let reason = format!("{} is not 0 to 63", self.home);
        require(self.home < 64, "coherence.nodes.home", reason)?;
        for (name, time) in [
            ("hop_ns", self.hop_ns),
            ("directory_ns", self.directory_ns),
            ("interface_ns", self.interface_ns),
        ] {
            let reason = format!("{time} is no time from 0 to 1000000 ns");
            require((0.0..=1e6).contains(&time), format!("coherence.nodes.{name}"), reason)?;
        }
        self.far_cache.check(private)
    }
}
