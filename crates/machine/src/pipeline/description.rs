//! The sections `[pipeline]` and `[emulation]` of a machine.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::class::Class;
use crate::description::{Checked, require};

/// Instructions that a pipeline can issue in a cycle at most.
pub(crate) const WIDEST: usize = 8;

/// A pipeline that issues in order.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Instructions of a group: they are fetched together, aligned to their size, and all of a group must have
    /// been issued before the next one is looked at. At most so many are issued in a cycle.
    pub group: u32,
    /// Units that an instruction leaves to the next one which can be issued nowhere else, if it has a choice.
    #[serde(default)]
    pub left_to_next: Vec<String>,
    /// Groups of which only the first two instructions are issued together: the first letter of each
    /// instruction's first unit, as `"FEEE"`.
    #[serde(default)]
    pub split: Vec<String>,
    /// Cycles lost between a branch that is taken, as predicted, and its target.
    pub taken: u32,
    /// Cycles lost after a wrong prediction.
    pub mispredict: u32,
    /// Cycles that a call of the privileged architecture library takes.
    pub call_pal: u32,
    /// Cycles between two lines that the instruction prefetcher gets.
    #[serde(default = "one")]
    pub prefetch_interval: u32,
    /// What loads may do.
    #[serde(default)]
    pub loads: Loads,
    /// What stores may do.
    #[serde(default)]
    pub stores: Stores,
    /// Each class of instructions; `default` stands for those that are not named.
    pub classes: BTreeMap<String, ClassRules>,
    /// Latencies other than the producer's own, for some consumers.
    #[serde(default)]
    pub bypasses: Vec<Bypass>,
}

/// How instructions of a class are issued.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassRules {
    /// The units one of which must be free; several that must be free together are one text, as `"E0 L0"`.
    pub units: Vec<String>,
    /// Cycles from its issue until an instruction that needs its result can be issued.
    #[serde(default = "one_short")]
    pub latency: u8,
    /// Cycles from its issue until it writes its register, if that is not the latency.
    pub write: Option<u8>,
    /// Cycles more until the result has reached its register, for those that cannot have it earlier.
    #[serde(default)]
    pub to_register: u8,
    /// It takes its operands from registers: while they are on the way it is issued, but takes that longer.
    #[serde(default)]
    pub from_registers: bool,
    /// A unit that works on one at a time, and for how many cycles.
    pub occupies: Option<Occupies>,
    /// Another unit to which nothing is issued so many cycles before the result.
    pub blocks: Option<Blocks>,
}

/// A unit that is not free for a while.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Occupies {
    /// What it is called.
    pub unit: String,
    /// How long.
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
    pub from: Vec<Class>,
    /// Classes of the consumer.
    pub to: Vec<Class>,
    /// Only for the operand that is tested or stored.
    pub operand: Option<Operand>,
    /// Cycles.
    pub latency: u8,
}

/// One of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operand {
    /// The register that a conditional branch or move tests.
    Tested,
    /// The register that a store stores.
    Stored,
}

/// What loads may do.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loads {
    /// Blocks that can be missing at a time: no load is issued while so many are.
    #[serde(default = "one")]
    pub outstanding: u32,
    /// Cycles until a load comes back that found them all taken.
    #[serde(default)]
    pub outstanding_replay: u32,
    /// An instruction that was issued as if the load before it had hit comes back so many cycles later, or when
    /// the data are there if that is later.
    #[serde(default)]
    pub use_replay: u32,
    /// No load is issued so many cycles after a store; 0 for no such rule.
    #[serde(default)]
    pub not_after_store: u32,
    /// A load of what was stored in the cycle before comes back so many cycles later.
    #[serde(default)]
    pub after_store_replay: u32,
}

/// What stores may do.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stores {
    /// Entries of the write buffer in use from which on it is emptied.
    pub drain_from: u32,
    /// Cycles that an entry takes to be written where it hits.
    pub drain_cycles: u32,
    /// Cycles until a store comes back that found the buffer full; 0 if it waits.
    pub full_replay: u32,
}

/// What an instruction costs that the processor has not and the system emulates.
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

fn one_short() -> u8 {
    1
}

impl Pipeline {
    /// How instructions of a class are issued.
    pub(crate) fn rules(&self, class: Class) -> Option<&ClassRules> {
        self.classes.get(class.name()).or_else(|| self.classes.get(DEFAULT))
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

    /// Says which field is wrong, and why.
    pub(crate) fn check(&self) -> Checked {
        let group = self.group;
        let reason = format!("{group} is not 1, 2, 4 or {WIDEST} instructions");
        require(group.is_power_of_two() && group as usize <= WIDEST, "pipeline.group", reason)?;
        for class in Class::ALL {
            let reason = "neither this class nor \"default\" is described";
            require(self.rules(class).is_some(), format!("pipeline.classes.{}", class.name()), reason)?;
        }
        let units = self.units();
        let reason = format!("{} units are more than 16", units.len());
        require(units.len() <= 16, "pipeline.classes", reason)?;
        for name in &self.left_to_next {
            require(units.contains(&name.as_str()), "pipeline.left_to_next", unknown(name))?;
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
            let known = name == DEFAULT || Class::ALL.iter().any(|class| class.name() == name);
            let reason =
                format!("there is no such class: {}, {DEFAULT}", Class::ALL.map(Class::name).join(", "));
            require(known, format!("pipeline.classes.{name}"), reason)?;
            rules.check(name, &units)?;
        }
        Ok(())
    }
}

/// The name of the rules for classes that have none.
const DEFAULT: &str = "default";

fn unknown(unit: &str) -> String {
    format!("no class is issued to {unit:?}")
}

impl ClassRules {
    fn check(&self, name: &str, units: &[&str]) -> Checked {
        let field = |field: &str| format!("pipeline.classes.{name}.{field}");
        let alternatives = self.units.len();
        let reason = format!("{alternatives} alternatives are not 1 or 2");
        require((1..=2).contains(&alternatives), field("units"), reason)?;
        if let Some(blocks) = &self.blocks {
            require(units.contains(&blocks.unit.as_str()), field("blocks.unit"), unknown(&blocks.unit))?;
            let reason = format!("the result is there after {} cycles", self.latency);
            let fits = blocks.before.iter().all(|&before| before < self.latency);
            require(fits, field("blocks.before"), reason)?;
            require(blocks.before.len() <= 2, field("blocks.before"), "more than 2 cycles")?;
        }
        Ok(())
    }
}

impl Emulation {
    /// Says which field is wrong, and why.
    pub(crate) fn check(&self) -> Checked {
        let time = self.microseconds;
        require(
            time.is_finite() && (0.0..=1e6).contains(&time),
            "emulation.microseconds",
            format!("{time} is no time"),
        )
    }
}
