//! The section `[out_of_order]` of a machine: a core that executes instructions out of order.

use std::collections::BTreeMap;

use isa::InstructionClass;
use serde::Deserialize;

use crate::core::pipeline::{MAX_ISSUE, check_latency};
use descriptions::{CheckResult, require};

/// An out-of-order core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutOfOrder {
    /// The front end.
    pub fetch: Fetch,
    /// Instructions that are renamed and dispatched in a cycle.
    pub dispatch: u32,
    /// Entries of the reorder buffer.
    pub reorder_buffer: u32,
    /// Instructions in the window that may write an integer register: registers for renaming.
    pub integer_registers: Option<u32>,
    /// The same of floating-point registers.
    pub float_registers: Option<u32>,
    /// Reservation stations (issue queues) by name, and their entries.
    pub stations: BTreeMap<String, u32>,
    /// Cycles from dispatch until an instruction can be issued.
    #[serde(default = "one")]
    pub dispatch_to_issue: u32,
    /// Instructions that retire in a cycle.
    pub retire: u32,
    /// Loads.
    pub loads: LoadQueue,
    /// Stores.
    pub stores: StoreQueueSize,
    /// Cycles from the retirement of a call of the system until the next instruction is fetched.
    #[serde(default)]
    pub system_call: u32,
    /// The classes of instructions; `default` is for those that are not named.
    pub classes: BTreeMap<String, ExecutionClass>,
}

/// The front end of an out-of-order core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    /// Instructions of four bytes that are fetched in a cycle.
    pub width: u32,
    /// They come from one block of memory of their size, aligned to it.
    #[serde(default)]
    pub aligned: bool,
    /// Instructions that are fetched, and not yet dispatched, at most: those in the stages included.
    pub buffer: u32,
    /// Cycles from the fetch of an instruction to its dispatch, beyond the latency of the L1 instruction cache.
    pub stages: u32,
    /// Cycles lost after a taken branch whose target is known when it is fetched.
    #[serde(default)]
    pub taken: u32,
    /// Cycles lost after a taken branch whose target is known when it is decoded.
    #[serde(default)]
    pub misfetch: u32,
    /// Cycles from the execution of a mispredicted branch to the fetch of the right instruction.
    #[serde(default)]
    pub redirect: u32,
    /// Cycles between two lines that the instruction prefetcher receives.
    #[serde(default = "one")]
    pub prefetch_interval: u32,
}

/// Loads of an out-of-order core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadQueue {
    /// Entries of the load queue.
    pub queue: u32,
    /// The behaviour of a load while older stores have unknown addresses.
    pub unknown_stores: UnknownStores,
    /// Loads, by the low bits of their addresses, that were replayed, and wait from then on; 0 if there is no such table.
    #[serde(default)]
    pub wait_table: u32,
    /// Cycles after which this table is cleared.
    #[serde(default = "wait_table_cycles")]
    pub wait_table_cycles: u32,
    /// Cycles from a replay trap to the fetch of the load.
    #[serde(default)]
    pub replay: u32,
    /// Cycles from the issue of a load to its data, if an older store of the queue supplies them.
    pub forward: u32,
    /// Cycles from the write of a store that has only some of a load's bytes until the load is issued again, to L1.
    #[serde(default)]
    pub partial_forward: u32,
    /// Lines that L1 has requested, at most (miss status holding registers).
    pub outstanding: u32,
    /// Lines that are requested from memory, at most.
    pub outstanding_memory: Option<u32>,
}

/// The behaviour of a load while the addresses of older stores are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownStores {
    /// It waits until they are known.
    Wait,
    /// It passes them. If one of them turns out to store what it loads, the load and all younger instructions are fetched
    /// again (a replay trap).
    Pass,
}

/// Stores of an out-of-order core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreQueueSize {
    /// Entries of the store queue: until the data are written to L1.
    pub queue: u32,
    /// A store is issued when its address is there, and takes its data later.
    #[serde(default)]
    pub split: bool,
    /// Stores that are written to L1 in a cycle.
    #[serde(default = "one")]
    pub writes: u32,
}

/// The rules of a class.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionClass {
    /// The reservation station in which it waits; none for instructions that need no execution.
    pub station: Option<String>,
    /// The ports to one of which it is issued.
    #[serde(default)]
    pub ports: Vec<String>,
    /// Cycles from its issue until an instruction that needs its result can be issued; 1 if it is not stated. Loads have that of
    /// the cache that serves them.
    pub latency: Option<u32>,
    /// Of loads: cycles that they take beyond the latency of the cache that serves them.
    #[serde(default)]
    pub beyond_cache: u32,
    /// A unit that is not pipelined, and works for this number of cycles.
    pub occupies: Option<OccupiedUnit>,
    /// The instructions that it waits for, and those that wait for it.
    #[serde(default)]
    pub order: ExecutionOrder,
}

/// A unit that is not pipelined.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "{ unit = NAME, cycles = NUMBER }")]
pub struct OccupiedUnit {
    /// Its name.
    pub unit: String,
    /// Cycles.
    pub cycles: u32,
}

/// The order in which an instruction is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionOrder {
    /// As soon as its operands are ready.
    #[default]
    Free,
    /// When it is the oldest.
    Oldest,
    /// When it is the oldest, and older stores are written; younger loads and stores wait for it (a memory barrier).
    Memory,
    /// When it is the oldest; all younger instructions wait for it (a barrier of traps).
    All,
    /// When it is the oldest; younger instructions are fetched after it (a call of the system).
    System,
}

fn one() -> u32 {
    1
}

fn wait_table_cycles() -> u32 {
    16384
}

/// The name of the rules for classes that are not named.
const DEFAULT: &str = "default";
/// The most entries of a queue, and cycles of a latency.
const MOST: u32 = 4096;
/// The most ports.
const MOST_PORTS: usize = 32;

impl OutOfOrder {
    /// The rules of a class. The thread pointer is accessed by a call of the system where nothing else is described.
    pub(crate) fn rules(&self, class: InstructionClass) -> Option<&ExecutionClass> {
        let is_call = class == InstructionClass::ThreadPointer;
        let call = || self.classes.get(InstructionClass::CallPal.name()).filter(|_| is_call);
        self.classes.get(class.name()).or_else(call).or_else(|| self.classes.get(DEFAULT))
    }

    /// The names of its ports, in the order in which classes name them.
    pub(super) fn ports(&self) -> Vec<&str> {
        unique(self.classes.values().flat_map(|class| &class.ports).map(String::as_str))
    }

    /// The names of its units that are not pipelined.
    pub(super) fn units(&self) -> Vec<&str> {
        unique(self.classes.values().filter_map(|class| class.occupies.as_ref()).map(|one| one.unit.as_str()))
    }

    /// Names the field that is wrong, and says why.
    pub(crate) fn check(&self) -> CheckResult {
        let fetch = &self.fetch;
        let widths = [
            ("fetch.width", fetch.width, 32),
            ("dispatch", self.dispatch, 32),
            ("stores.writes", self.stores.writes, 32),
            ("retire", self.retire, MAX_ISSUE as u32),
        ];
        let entries = [
            ("fetch.buffer", fetch.buffer),
            ("fetch.stages", fetch.stages),
            ("reorder_buffer", self.reorder_buffer),
            ("integer_registers", self.integer_registers.unwrap_or(1)),
            ("float_registers", self.float_registers.unwrap_or(1)),
            ("loads.queue", self.loads.queue),
            ("loads.outstanding", self.loads.outstanding),
            ("loads.outstanding_memory", self.loads.outstanding_memory.unwrap_or(1)),
            ("loads.wait_table_cycles", self.loads.wait_table_cycles.min(MOST)),
            ("stores.queue", self.stores.queue),
        ]
        .map(|(field, number)| (field, number, MOST));
        for (field, number, most) in widths.into_iter().chain(entries) {
            let reason = format!("{number} is not 1 to {most}");
            require((1..=most).contains(&number), format!("out_of_order.{field}"), reason)?;
        }
        let latencies = [
            ("fetch.taken", fetch.taken),
            ("fetch.misfetch", fetch.misfetch),
            ("fetch.redirect", fetch.redirect),
            ("fetch.prefetch_interval", fetch.prefetch_interval),
            ("dispatch_to_issue", self.dispatch_to_issue),
            ("loads.forward", self.loads.forward),
            ("loads.partial_forward", self.loads.partial_forward),
            ("loads.replay", self.loads.replay),
        ];
        for (field, number) in latencies {
            let reason = format!("{number} cycles are more than {MOST}");
            require(number <= MOST, format!("out_of_order.{field}"), reason)?;
        }
        let table = self.loads.wait_table;
        let reason = format!("{table} is neither 0 nor a power of two up to 65,536");
        let is_table = table == 0 || table.is_power_of_two() && table <= 1 << 16;
        require(is_table, "out_of_order.loads.wait_table", reason)?;
        let width = fetch.width;
        let reason = format!("aligned blocks have a power of two of instructions, and not {width}");
        require(!fetch.aligned || width.is_power_of_two(), "out_of_order.fetch.width", reason)?;
        self.check_classes()
    }

    fn check_classes(&self) -> CheckResult {
        let names = self.stations.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        for (name, &entries) in &self.stations {
            let reason = format!("{entries} is not 1 to {MOST}");
            require((1..=MOST).contains(&entries), format!("out_of_order.stations.{name}"), reason)?;
        }
        for class in InstructionClass::ALL {
            let reason = "neither this class nor \"default\" is described";
            require(self.rules(class).is_some(), format!("out_of_order.classes.{}", class.name()), reason)?;
        }
        let ports = self.ports().len();
        let reason = format!("{ports} ports are more than {MOST_PORTS}");
        require(ports <= MOST_PORTS, "out_of_order.classes", reason)?;
        for (name, class) in &self.classes {
            let field = |field: &str| format!("out_of_order.classes.{name}.{field}");
            let is_class = name == DEFAULT || InstructionClass::ALL.iter().any(|class| class.name() == name);
            let all = InstructionClass::ALL.map(InstructionClass::name).join(", ");
            let reason = format!("there is no such class: {all}, {DEFAULT}");
            require(is_class, format!("out_of_order.classes.{name}"), reason)?;
            if let Some(station) = &class.station {
                let reason = format!("there is no reservation station {station:?}; there are {names}");
                require(self.stations.contains_key(station), field("station"), reason)?;
            }
            let latency = class.latency.unwrap_or(class.beyond_cache);
            check_latency(name, class.latency, class.beyond_cache, "out_of_order")?;
            require(latency <= MOST, field("latency"), format!("{latency} cycles are more than {MOST}"))?;
            let cycles = class.occupies.as_ref().map_or(0, |occupied| occupied.cycles);
            require(cycles <= MOST, field("occupies.cycles"), format!("{cycles} are more than {MOST}"))?;
        }
        Ok(())
    }
}

fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut list = Vec::new();
    for name in names {
        if !list.contains(&name) {
            list.push(name);
        }
    }
    list
}
