//! Checks that a described machine is possible.

use super::{Cache, Holds, Machine, TranslationBuffer, WritePolicy};
use crate::core::out_of_order::OutOfOrder;
use crate::core::pipeline::{Emulation, Pipeline};
use crate::core::predictor::Predictor;
use crate::memory::hierarchy::{Prefetch, Replacement};
use crate::throughput::Storage;
use descriptions::{CheckResult, require};

/// The greatest number of lines or entries of a structure.
const MOST_LINES: u64 = 1 << 24;
/// The greatest number of ways, and of entries of a TLB.
const MOST_WAYS: u32 = 1 << 16;
/// The longest latency of the L1 data cache of an in-order pipeline.
const MOST_LATENCY: f64 = 200.0;
/// The most pages of a block.
const MOST_PAGES: u32 = 1 << 16;

/// Names the field that is wrong, and says why.
pub(super) fn check(machine: &Machine) -> CheckResult {
    let clock = machine.processor.clock_mhz;
    require(clock.is_finite() && clock > 0.0, "processor.clock_mhz", format!("{clock} is no clock"))?;
    if let Some(cpu) = &machine.processor.cpu {
        cpu.parse::<isa::CpuModel>().or_else(|error| {
            require(false, "processor.cpu", error.to_string()).map(|()| isa::CpuModel::Ev4)
        })?;
    }
    for cache in &machine.caches {
        cache_alone(cache)?;
    }
    for buffer in &machine.translation_buffers {
        buffer_alone(buffer)?;
    }
    for instructions in [true, false] {
        cache_path(machine, instructions)?;
        let buffers = machine.translation_buffers.iter().filter(|buffer| buffer.holds.has(instructions));
        levels(buffers.map(|buffer| (format!("translation_buffers.{}", buffer.name), buffer.level)))?;
    }
    let buffers = &machine.translation_buffers;
    machine.coherence.as_ref().map_or(Ok(()), |coherence| coherence.check(&machine.caches, buffers))?;
    machine.pipeline.as_ref().map_or(Ok(()), Pipeline::check)?;
    machine.out_of_order.as_ref().map_or(Ok(()), OutOfOrder::check)?;
    if let (Some(cache), true) =
        (machine.caches.iter().find(|one| one.holds.has(false)), machine.pipeline.is_some())
    {
        let reason = format!("{} cycles are more than {MOST_LATENCY}", cache.latency);
        require(cache.latency <= MOST_LATENCY, format!("caches.{}.latency", cache.name), reason)?;
    }
    let reason = "a machine has a pipeline or an out-of-order core, not both";
    require(machine.pipeline.is_none() || machine.out_of_order.is_none(), "out_of_order", reason)?;
    machine.predictor.as_ref().map_or(Ok(()), Predictor::check)?;
    machine.emulation.as_ref().map_or(Ok(()), Emulation::check)?;
    machine.storage.as_ref().map_or(Ok(()), Storage::check)?;
    let latency = machine.memory.latency_ns;
    require(latency.is_finite() && latency >= 0.0, "memory.latency_ns", format!("{latency} is no time"))?;
    let last = machine.caches.iter().map(|cache| cache.latency).fold(0.0, f64::max);
    let cycles = latency * clock / 1000.0;
    let reason = format!("{latency} ns are {cycles:.0} cycles, less than the {last} of a cache");
    require(machine.caches.is_empty() || cycles >= last, "memory.latency_ns", reason)
}

/// Whether a replacement policy can choose among so many ways.
pub(super) fn has_choice(replacement: Replacement, ways: u32, field: String) -> CheckResult {
    let reason = "with one way there is nothing to choose: not-last-used needs two";
    require(ways > 1 || !replacement.has_victim_pointer(), field, reason)
}

fn power_of_two(field: String, number: u64, what: &str) -> CheckResult {
    require(number.is_power_of_two(), field, format!("{number}{what} is not a power of two"))
}

fn cache_alone(cache: &Cache) -> CheckResult {
    let field = |name: &str| format!("caches.{}.{name}", cache.name);
    let &Cache { size, ways, line, .. } = cache;
    require(cache.level >= 1, field("level"), "levels are numbered from 1")?;
    power_of_two(field("line"), line, "")?;
    require((4..=4096).contains(&line), field("line"), format!("{line} is not between 4 and 4096 bytes"))?;
    require(ways >= 1, field("ways"), "a set has at least one line")?;
    require(ways <= MOST_WAYS, field("ways"), format!("{ways} are more than {MOST_WAYS}"))?;
    require(size >= line, field("size"), format!("{size} bytes do not hold a line of {line}"))?;
    require(
        size / line <= MOST_LINES,
        field("size"),
        format!("{size} bytes are more than {MOST_LINES} lines"),
    )?;
    let set = line * u64::from(ways);
    let reason = format!("{size} bytes are not a number of sets of {ways} lines of {line} bytes");
    require(size.is_multiple_of(set) && size > 0, field("size"), reason)?;
    power_of_two(field("size"), size / set, " (the number of sets)")?;
    has_choice(cache.replacement, ways, field("replacement"))?;
    if let Some(buffer) = cache.write_buffer {
        let entries = buffer.entries;
        require(
            (1..=1024).contains(&entries),
            field("write_buffer.entries"),
            format!("{entries} is not 1 to 1024"),
        )?;
        let reason = "only a cache that writes through has a write buffer: others write back lines";
        require(cache.write == WritePolicy::Through, field("write_buffer"), reason)?;
    }
    if let Some(Prefetch::NextLines(lines) | Prefetch::Stream(lines)) = cache.prefetch {
        require((1..=64).contains(&lines), field("prefetch"), format!("{lines} is not 1 to 64 lines"))?;
    }
    require(cache.victim_lines <= 1024, field("victim_lines"), "more than 1024 are a cache")?;
    let latency = cache.latency;
    require(
        latency.is_finite() && latency >= 0.0,
        field("latency"),
        format!("{latency} is no number of cycles"),
    )
}

fn buffer_alone(buffer: &TranslationBuffer) -> CheckResult {
    let field = |name: &str| format!("translation_buffers.{}.{name}", buffer.name);
    let &TranslationBuffer { entries, page, .. } = buffer;
    let ways = buffer.ways();
    require(buffer.level >= 1, field("level"), "levels are numbered from 1")?;
    require(entries >= 1, field("entries"), "a translation buffer has at least one entry")?;
    require(entries <= MOST_WAYS, field("entries"), format!("{entries} are more than {MOST_WAYS}"))?;
    require(ways >= 1, field("ways"), "a set has at least one entry")?;
    let reason = format!("{entries} entries are not a number of sets of {ways}");
    require(entries.is_multiple_of(ways), field("ways"), reason)?;
    power_of_two(field("ways"), (entries / ways).into(), " (the number of sets)")?;
    power_of_two(field("page"), page, "")?;
    require(
        (512..=1 << 32).contains(&page),
        field("page"),
        format!("{page} is not between 512 bytes and 4G"),
    )?;
    has_choice(buffer.replacement, ways, field("replacement"))?;
    granularity_hints(buffer)?;
    let cycles = buffer.miss_cycles;
    require(
        (0.0..=1e6).contains(&cycles),
        field("miss_cycles"),
        format!("{cycles} is no number of cycles up to a million"),
    )
}

fn granularity_hints(buffer: &TranslationBuffer) -> CheckResult {
    let field = format!("translation_buffers.{}.granularity_hints", buffer.name);
    let sizes = &buffer.granularity_hints;
    let reason =
        "blocks of different sizes belong to no single set: only a fully associative buffer has them";
    require(sizes.is_empty() || buffer.ways() == buffer.entries, field.clone(), reason)?;
    let are_sizes = sizes.iter().all(|size| size.is_power_of_two() && (2..=MOST_PAGES).contains(size));
    let reason = format!(
        "{sizes:?} are not numbers of pages as [8, 64, 512]: ascending powers of two up to {MOST_PAGES}"
    );
    require(are_sizes && sizes.is_sorted_by(|one, next| one < next), field, reason)
}

/// Each level occurs once, without gaps.
fn levels(path: impl Iterator<Item = (String, u8)>) -> CheckResult {
    let mut before = 0;
    for (name, level) in path {
        let reason = match level == before {
            true => format!("another one holds the same at level {level}"),
            false => format!("there is level {level} but no level {}", before + 1),
        };
        require(level == before + 1, format!("{name}.level"), reason)?;
        before = level;
    }
    Ok(())
}

/// The conditions between the caches of a path.
fn cache_path(machine: &Machine, instructions: bool) -> CheckResult {
    let path: Vec<&Cache> = machine.caches.iter().filter(|cache| cache.holds.has(instructions)).collect();
    levels(path.iter().map(|cache| (format!("caches.{}", cache.name), cache.level)))?;
    for pair in path.windows(2) {
        let (cache, next) = (pair[0], pair[1]);
        let field = |name: &str| format!("caches.{}.{name}", next.name);
        let reason = format!(
            "{} is less than the {} of {}, which is closer to the processor",
            next.line, cache.line, cache.name
        );
        require(next.line >= cache.line, field("line"), reason)?;
        let reason = format!(
            "{} is less than the {} of {}, which is closer to the processor",
            next.latency, cache.latency, cache.name
        );
        require(next.latency >= cache.latency, field("latency"), reason)?;
        let reason = format!("{} holds both, and so must the next level", cache.name);
        require(cache.holds != Holds::Both || next.holds == Holds::Both, field("holds"), reason)?;
    }
    for (depth, cache) in path.iter().enumerate() {
        for name in &cache.includes {
            let is_closer =
                machine.caches.iter().any(|other| other.name == *name && other.level < cache.level);
            let field = format!("caches.{}.includes", cache.name);
            require(is_closer && depth > 0, field, format!("{name:?} is no cache closer to the processor"))?;
        }
    }
    Ok(())
}
