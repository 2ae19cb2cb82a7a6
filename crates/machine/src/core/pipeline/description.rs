//! The sections `[pipeline]` and `[emulation]` of a machine.

use std::collections::BTreeMap;

use serde::Deserialize;

use descriptions::{CheckResult, require};
use isa::InstructionClass;

/// The most instructions that a pipeline can issue in a cycle.
pub(crate) const MAX_ISSUE: usize = 8;

/// An in-order pipeline.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Instructions of a group: they are fetched together, aligned to their size, and all of a group must be
    /// issued before the next one is considered. It is also the issue width. Of an instruction set with shorter
    /// instructions, a group is as many bytes as this number of instructions of four bytes has. An instruction that
    /// crosses two groups belongs to the second one; a transfer of control to it waits for both, a cycle more.
    pub group: u32,
    /// Units that an instruction with a choice leaves to a later one that has none.
    #[serde(default)]
    pub left_to_next: Vec<String>,
    /// Groups of which only the first two instructions are issued together, by the first letter of each
    /// instruction's first unit, as `"FEEE"`.
    #[serde(default)]
    pub split: Vec<String>,
    /// Cycles lost between a taken branch, predicted correctly, and its target.
    pub taken: u32,
    /// Cycles lost after a misprediction, beyond the latency of the L1 instruction cache.
    pub mispredict: u32,
    /// Cycles that a call of the privileged architecture library takes, beyond the latency of the L1 instruction cache.
    pub call_pal: u32,
    /// Traps are precise: barriers of traps (Alpha's `trapb`, `excb`) wait for nothing.
    #[serde(default)]
    pub precise_traps: bool,
    /// Cycles between two lines that the instruction prefetcher receives.
    #[serde(default = "one")]
    pub prefetch_interval: u32,
    /// Rules of loads.
    #[serde(default)]
    pub loads: Loads,
    /// Rules of stores.
    #[serde(default)]
    pub stores: Stores,
    /// The classes of instructions; `default` is for those that are not named.
    pub classes: BTreeMap<String, ClassRules>,
    /// Latencies for particular consumers, in place of the producer's own.
    #[serde(default)]
    pub bypasses: Vec<Bypass>,
}

/// The rules of a class.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassRules {
    /// The units one of which must be free; several that must be free together are one text, as `"E0 L0"`.
    pub units: Vec<String>,
    /// Cycles from its issue until an instruction that needs its result can be issued; 1 if it is not stated. Loads have that of
    /// the cache that serves them.
    pub latency: Option<u8>,
    /// Of loads: cycles that they take beyond the latency of the cache that serves them.
    #[serde(default)]
    pub beyond_cache: u8,
    /// Cycles from its issue until it writes its register, if that is not the latency.
    pub write: Option<u8>,
    /// Cycles until the result has reached its register, for consumers without bypass.
    #[serde(default)]
    pub to_register: u8,
    /// It reads operands from registers, without bypass: it is issued before they arrive, and takes that much
    /// longer.
    #[serde(default)]
    pub from_registers: bool,
    /// A unit that works on one at a time, and for how many cycles.
    pub occupies: Option<Occupies>,
    /// Another unit to which nothing is issued this number of cycles before the result.
    pub blocks: Option<Blocks>,
}

/// A unit that is occupied for a while.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "{ unit = NAME, cycles = NUMBER }")]
pub struct Occupies {
    /// Its name.
    pub unit: String,
    /// Cycles.
    pub cycles: u8,
}

/// Cycles in which nothing is issued to a unit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// One of the units of `units`.
    pub unit: String,
    /// Cycles before the result.
    pub before: Vec<u8>,
}

/// A latency between two classes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bypass {
    /// Classes of the producer.
    pub from: Vec<InstructionClass>,
    /// Classes of the consumer.
    pub to: Vec<InstructionClass>,
    /// Only for the operand that is tested or stored.
    pub operand: Option<OperandRole>,
    /// Cycles.
    pub latency: u8,
}

/// Which of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperandRole {
    /// The register that a conditional branch or move tests.
    Tested,
    /// The register that a store stores.
    Stored,
}

/// Rules of loads.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loads {
    /// Entries of the miss address file: no load is issued while this number of lines is outstanding.
    #[serde(default = "one")]
    pub outstanding: u32,
    /// Cycles of a replay of a load that found the file full.
    #[serde(default)]
    pub outstanding_replay: u32,
    /// Cycles until an instruction that was issued in the shadow of a load that missed is replayed; it is
    /// issued later if the data arrive later.
    #[serde(default)]
    pub use_replay: u32,
    /// No load is issued within this number of cycles after a store; 0 for no such rule.
    #[serde(default)]
    pub not_after_store: u32,
    /// Cycles of a replay of a load of data stored in the cycle before.
    #[serde(default)]
    pub after_store_replay: u32,
}

/// Rules of stores.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stores {
    /// Entries of the write buffer in use from which on it drains.
    pub drain_from: u32,
    /// Cycles to write an entry that hits.
    pub drain_cycles: u32,
    /// Cycles of a replay of a store that found the buffer full; 0 if it waits.
    pub full_replay: u32,
}

/// The cost of an instruction that the processor lacks and the system emulates.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Emulation {
    /// Microseconds each.
    pub microseconds: f64,
}

impl Default for Loads {
    fn default() -> Loads {
        Loads {
            outstanding: 1,
            outstanding_replay: 0,
            use_replay: 0,
            not_after_store: 0,
            after_store_replay: 0,
        }
    }
}

impl Default for Stores {
    fn default() -> Stores {
        Stores { drain_from: 1, drain_cycles: 1, full_replay: 0 }
    }
}

fn one() -> u32 {
    1
}

impl Pipeline {
    /// The rules of a class. The thread pointer is accessed by a call of the system where nothing else is described.
    pub(crate) fn rules(&self, class: InstructionClass) -> Option<&ClassRules> {
        let own = self.classes.get(class.name());
        let call =
            || (!self.has_thread_pointer(class)).then(|| self.classes.get(InstructionClass::CallPal.name()));
        own.or_else(|| call().flatten()).or_else(|| self.classes.get(DEFAULT))
    }

    /// Whether a class is described as an access to a thread pointer that needs no call of the system; true for other classes.
    pub(crate) fn has_thread_pointer(&self, class: InstructionClass) -> bool {
        class != InstructionClass::ThreadPointer || self.classes.contains_key(class.name())
    }

    /// The latency of a class, where loads that hit take `hit` cycles.
    pub(crate) fn latency(&self, class: InstructionClass, hit: u32) -> u8 {
        let rules = self.rules(class).expect("a check found rules for each class");
        match class.is_load() {
            true => u8::try_from(hit).unwrap_or(u8::MAX).saturating_add(rules.beyond_cache),
            false => rules.latency.unwrap_or(1),
        }
    }

    /// The names of its units, in the order in which classes name them.
    pub(crate) fn units(&self) -> Vec<&str> {
        let mut units = Vec::new();
        for unit in self.classes.values().flat_map(|rules| &rules.units).flat_map(|text| text.split(' ')) {
            if !unit.is_empty() && !units.contains(&unit) {
                units.push(unit);
            }
        }
        units
    }

    /// Names the field that is wrong, and says why.
    pub(crate) fn check(&self) -> CheckResult {
        let group = self.group;
        let reason = format!("{group} is not 1, 2, 4 or {MAX_ISSUE} instructions");
        require(group.is_power_of_two() && group as usize <= MAX_ISSUE, "pipeline.group", reason)?;
        for class in InstructionClass::ALL {
            let reason = "neither this class nor \"default\" is described";
            require(self.rules(class).is_some(), format!("pipeline.classes.{}", class.name()), reason)?;
        }
        let units = self.units();
        let reason = format!("{} units are more than 16", units.len());
        require(units.len() <= 16, "pipeline.classes", reason)?;
        for name in &self.left_to_next {
            require(units.contains(&name.as_str()), "pipeline.left_to_next", unknown(name))?;
        }
        for bypass in &self.bypasses {
            let reason = "loads take the latency of the cache that serves them";
            require(!bypass.from.iter().any(|class| class.is_load()), "pipeline.bypasses", reason)?;
        }
        for pattern in &self.split {
            let reason = format!("{pattern:?} is not a letter for each of {group} instructions");
            require(pattern.len() == group as usize && group > 2, "pipeline.split", reason)?;
        }
        let outstanding = self.loads.outstanding;
        let reason = format!("{outstanding} is not 1 to 64");
        require((1..=64).contains(&outstanding), "pipeline.loads.outstanding", reason)?;
        let stores = &self.stores;
        require(stores.drain_from >= 1, "pipeline.stores.drain_from", "it is never empty before")?;
        for (name, rules) in &self.classes {
            let cached = name == DEFAULT || InstructionClass::ALL.iter().any(|class| class.name() == name);
            let reason = format!(
                "there is no such class: {}, {DEFAULT}",
                InstructionClass::ALL.map(InstructionClass::name).join(", ")
            );
            require(cached, format!("pipeline.classes.{name}"), reason)?;
            rules.check(name, &units)?;
        }
        Ok(())
    }
}

/// The name of the rules for classes that are not named.
const DEFAULT: &str = "default";

fn unknown(unit: &str) -> String {
    format!("no class is issued to {unit:?}")
}

impl ClassRules {
    fn check(&self, name: &str, units: &[&str]) -> CheckResult {
        let field = |field: &str| format!("pipeline.classes.{name}.{field}");
        let alternatives = self.units.len();
        let reason = format!("{alternatives} alternatives are not 1 or 2");
        require((1..=2).contains(&alternatives), field("units"), reason)?;
        check_latency(name, self.latency.map(u32::from), self.beyond_cache.into(), "pipeline")?;
        if let Some(blocks) = &self.blocks {
            require(units.contains(&blocks.unit.as_str()), field("blocks.unit"), unknown(&blocks.unit))?;
            let latency = self.latency.unwrap_or(1);
            let reason = format!("the result is there after {latency} cycles");
            let fits = blocks.before.iter().all(|&before| before < latency);
            require(fits, field("blocks.before"), reason)?;
            require(blocks.before.len() <= 2, field("blocks.before"), "more than 2 cycles")?;
        }
        Ok(())
    }
}

/// Checks that loads state no latency of their own, and only loads one beyond that of caches.
pub(crate) fn check_latency(
    name: &str,
    latency: Option<u32>,
    beyond_cache: u32,
    section: &str,
) -> CheckResult {
    let is_load = InstructionClass::ALL.iter().any(|class| class.name() == name && class.is_load());
    let field = |field: &str| format!("{section}.classes.{name}.{field}");
    let reason =
        "loads take the latency of the cache that serves them: set that of the cache, or beyond_cache";
    require(!is_load || latency.is_none(), field("latency"), reason)?;
    require(is_load || beyond_cache == 0, field("beyond_cache"), "only loads take the latency of a cache")
}

impl Emulation {
    /// Names the field that is wrong, and says why.
    pub(crate) fn check(&self) -> CheckResult {
        let time = self.microseconds;
        require(
            time.is_finite() && (0.0..=1e6).contains(&time),
            "emulation.microseconds",
            format!("{time} is no time"),
        )
    }
}
