//! Descriptions of coherence: the protocol by which private caches observe a bus.

use serde::Deserialize;

use super::{Bus, BusProcessor, Cache, Nodes, TranslationBuffer, WritePolicy};
use crate::memory::coherence::Protocol;
use descriptions::{CheckResult, require};

/// How the private caches of several processors are kept coherent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coherence {
    /// The protocol: the states of a line.
    pub protocol: Protocol,
    /// The name of the outermost cache that each processor has for itself: it observes the bus, and its line is the unit of
    /// coherence. Without this, the outermost cache of data.
    pub private: Option<String>,
    /// Caches before it, and TLBs of data, that a context switch to another process empties.
    #[serde(default)]
    pub flushes: Vec<String>,
    /// Whether a device's writes put lines into the outermost private cache of the processor that they are for, instead of memory.
    #[serde(default)]
    pub direct_cache_access: bool,
    /// The bus, if its time is described.
    pub bus: Option<Bus>,
    /// The behaviour of processors until the bus has served them.
    pub processor: Option<BusProcessor>,
    /// The nodes, if not all processors share one memory.
    pub nodes: Option<Nodes>,
}

impl Coherence {
    /// The caches of data that each processor has for itself, from the innermost to the one that observes the bus.
    pub fn private_caches<'a>(&self, caches: &'a [Cache]) -> Vec<&'a Cache> {
        let mut path: Vec<&Cache> = caches.iter().filter(|cache| cache.holds.has(false)).collect();
        let last = self.private.as_ref().and_then(|name| path.iter().position(|cache| cache.name == *name));
        path.truncate(last.map_or(path.len(), |last| last + 1));
        path
    }

    /// The instruction cache of each processor, if the caches beyond it are private ones of data and instructions: the fetches
    /// that miss it are then requests to these.
    pub fn instruction_cache<'a>(&self, caches: &'a [Cache]) -> Option<&'a Cache> {
        let private = self.private_caches(caches);
        let mut path = caches.iter().filter(|cache| cache.holds.has(true));
        let first = path.next().filter(|cache| !cache.holds.has(false))?;
        let is_shared = private.len() > 1 && private[1..].iter().all(|cache| cache.holds.has(true));
        let fits = private.last().is_some_and(|outer| first.line <= outer.line);
        let joins = path.next().map(|cache| &cache.name) == private.get(1).map(|cache| &cache.name);
        (is_shared && fits && joins).then_some(first)
    }

    /// Names the field that is wrong, and says why.
    pub(super) fn check(&self, caches: &[Cache], buffers: &[TranslationBuffer]) -> CheckResult {
        let path: Vec<&Cache> = caches.iter().filter(|cache| cache.holds.has(false)).collect();
        let names: Vec<&str> = path.iter().map(|cache| cache.name.as_str()).collect();
        require(!path.is_empty(), "coherence", "there is no cache of data to keep coherent")?;
        if let Some(private) = &self.private {
            let reason = format!("{private:?} is no cache of data; there are {}", names.join(", "));
            require(names.contains(&private.as_str()), "coherence.private", reason)?;
        }
        let private = self.private_caches(caches);
        let inner = private[..private.len() - 1].iter().copied().chain(self.instruction_cache(caches));
        let buffers = buffers.iter().filter(|buffer| buffer.holds.has(false));
        let inner: Vec<&str> = inner
            .map(|cache| cache.name.as_str())
            .chain(buffers.map(|buffer| buffer.name.as_str()))
            .collect();
        for name in &self.flushes {
            let reason = format!(
                "{name:?} is none of the caches before {} and of the TLBs of data: {}",
                names[private.len() - 1],
                inner.join(", ")
            );
            require(inner.contains(&name.as_str()), "coherence.flushes", reason)?;
        }
        self.bus.as_ref().map_or(Ok(()), Bus::check)?;
        self.processor.as_ref().map_or(Ok(()), BusProcessor::check)?;
        let reason = "a machine with a timed bus has both";
        require(
            self.bus.is_some() == self.processor.is_some(),
            "coherence.bus and coherence.processor",
            reason,
        )?;
        let bus = self.private_caches(caches).pop().expect("there is a cache of data");
        let reason = format!("{} observes the bus, and must have write = \"back\"", bus.name);
        require(bus.write == WritePolicy::Back, format!("caches.{}.write", bus.name), reason)?;
        let reason = format!("{} observes the bus, and must allocate the lines that are stored to", bus.name);
        require(bus.allocate_on_write, format!("caches.{}.allocate_on_write", bus.name), reason)?;
        self.nodes.as_ref().map_or(Ok(()), |nodes| nodes.check(bus, self.protocol))
    }
}
