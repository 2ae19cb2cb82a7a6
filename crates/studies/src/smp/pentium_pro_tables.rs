//! The tables of the study of the quad Pentium Pro, each with the printed values beside those found here.

use machine::{CoherenceState, ProcessorCause, ProcessorRequest, Transaction};
use table::{Kind, Table, Value};

use super::machines::{L2_SIZES, PROCESSORS, SPEEDS};
use super::measured::BusMeasured;
use super::pentium_pro::{ALONE, BASE, BusConfiguration, CoreMeasured, FIGURES, PentiumProResults};
use super::printed;
use super::table_forms::{commands_table, printed_value, table_of};

/// The columns of printed values, each beside the one found here.
fn beside(names: &[&str], kind: Kind) -> Vec<(String, Kind)> {
    let both = |name: &&str| [(format!("printed {name}"), kind), (format!("here {name}"), kind)];
    names.iter().flat_map(both).collect()
}

/// A row of printed values, each beside the one found here.
fn row(name: &str, printed: &[Option<f64>], here: &[f64]) -> Vec<Value> {
    let both = printed.iter().zip(here).flat_map(|(printed, here)| [printed_value(*printed), (*here).into()]);
    std::iter::once(name.into()).chain(both).collect()
}

/// The components of cycles per instruction, by the names that Tables 3 and 5 have for them.
fn components(core: &CoreMeasured) -> [(&'static str, f64); 3] {
    [
        ("computation: µops", core.not_overlapped.computation),
        ("resource stalls", core.not_overlapped.resources),
        ("instruction-related stalls", core.not_overlapped.instruction_stalls()),
    ]
}

/// The components of Figures 2 and 3.
pub(super) const COMPONENTS: [&str; 8] = [
    "computation",
    "resources",
    "mispredictions",
    "instructions from L2",
    "instructions from memory",
    "data from L2",
    "data from memory",
    "TLBs",
];

/// A figure of a configuration, from its bus or its core.
type BusFigure = fn(&BusMeasured, &CoreMeasured) -> f64;

impl PentiumProResults {
    /// All tables.
    pub(super) fn tables(&self) -> Vec<Table> {
        let mut tables = vec![
            self.cpi_table(),
            self.caches(),
            self.sizes(),
            self.outstanding(),
            self.profiles(),
            self.branches(),
        ];
        tables.extend(FIGURES.map(|l2| self.not_overlapped(l2)));
        tables.extend([
            self.throughput(),
            self.utilization(),
            self.latency(),
            self.dirty(),
            self.states(),
            self.protocols(),
            self.speeds(),
            self.commands_table(),
        ]);
        tables
    }

    /// Table 3.
    pub(super) fn cpi_table(&self) -> Table {
        let columns = ["printed, per µop", "printed, per instruction", "here, per instruction"];
        let mut table = table_of(
            "cpi",
            "Cycles per instruction of the database (Table 3)",
            "component",
            &columns.map(|name| (name.to_string(), Kind::Real(2))),
        );
        let core = self.base_core();
        let all =
            components(core).into_iter().chain([("computed", core.computed()), ("measured", core.cpi())]);
        for (name, here) in all {
            let printed = printed::CPI.row(&[name]);
            table.row(vec![name.into(), printed_value(printed[0]), printed_value(printed[3]), here.into()]);
        }
        table.notes.push(
            "An instruction of Alpha is about what the Pentium Pro calls a µop. Stalls are counted as the study did: events at their \
             full penalty, so that their sum differs from what was measured."
                .into(),
        );
        table
    }

    /// Table 4.
    pub(super) fn caches(&self) -> Table {
        let mut table = table_of(
            "caches",
            "Caches, in 1,000 instructions, by the size of L2 (Table 4)",
            "characteristic",
            &beside(&L2_SIZES, Kind::Real(1)),
        );
        let rows: [(&str, BusFigure); 7] = [
            ("data references", |bus, _| {
                let counts = bus.0.memory().counts();
                bus.in_thousand(counts.loads + counts.stores)
            }),
            ("L1 I-cache misses", |bus, _| bus.requests(&[ProcessorRequest::Fetch], &CoherenceState::ALL)),
            ("L1 D-cache misses", |bus, _| bus.requests(&DATA, &CoherenceState::ALL)),
            ("ITLB misses", |_, core| core.itlb_misses),
            ("L2 instruction-related misses", |bus, _| {
                bus.requests(&[ProcessorRequest::Fetch], &[CoherenceState::Invalid])
            }),
            ("L2 data-related misses", |bus, _| bus.requests(&DATA, &[CoherenceState::Invalid])),
            ("overall L2 misses", |bus, _| bus.requests(&ProcessorRequest::ALL, &[CoherenceState::Invalid])),
        ];
        for (name, here) in rows {
            let printed = printed::CACHES.row(&[name]);
            let printed: Vec<_> = printed.into_iter().step_by(2).collect();
            let here = L2_SIZES.map(|l2| {
                here(self.bus(&BusConfiguration { l2, ..BASE }), self.core(l2, BASE.speed, BASE.outstanding))
            });
            table.row(row(name, &printed, &here));
        }
        table.notes.push(
            "Here: four processors, with the misses of coherence; misses of L1 include stores to lines that others may have."
                .into(),
        );
        table
    }

    /// Table 5.
    pub(super) fn sizes(&self) -> Table {
        let mut table = table_of(
            "l2-sizes",
            "Throughput and cycles per instruction by the size of L2 (Table 5)",
            "characteristic",
            &beside(&L2_SIZES, Kind::Real(2)),
        );
        let bus = |l2| self.bus(&BusConfiguration { l2, ..BASE });
        let base = bus(BASE.l2).throughput();
        let throughput = L2_SIZES.map(|l2| 100.0 * bus(l2).throughput() / base);
        let name = "relative transaction throughput (%)";
        table.row(row(name, &printed::SIZES.row(&[name]), &throughput));
        let core = |l2| self.core(l2, BASE.speed, BASE.outstanding);
        table.row(row(
            "measured CPI",
            &printed::SIZES.row(&["measured CPI"]),
            &L2_SIZES.map(|l2| core(l2).cpi()),
        ));
        for component in 0..3 {
            let name = components(self.base_core())[component].0;
            let here = L2_SIZES.map(|l2| components(core(l2))[component].1);
            table.row(row(name, &printed::SIZES.row(&[name]), &here));
        }
        table
    }

    /// Table 6.
    pub(super) fn outstanding(&self) -> Table {
        let mut table = table_of(
            "outstanding",
            "One processor with one outstanding request, and with four; 256 KB of L2 (Table 6)",
            "characteristic",
            &beside(&["1 request", "4 requests"], Kind::Real(2)),
        );
        let requests = [1, ALONE.outstanding];
        let cores = requests.map(|outstanding| self.core(ALONE.l2, ALONE.speed, outstanding));
        let buses = requests.map(|outstanding| self.bus(&BusConfiguration { outstanding, ..ALONE }));
        let stalls = |core: &CoreMeasured| core.not_overlapped.instruction_stalls();
        for (name, here) in [
            ("measured CPI", cores.map(CoreMeasured::cpi)),
            ("computed total", cores.map(CoreMeasured::computed)),
            ("resource stall CPI", cores.map(|core| core.not_overlapped.resources)),
            ("instruction stall CPI", cores.map(stalls)),
            ("average memory latency (cycles)", buses.map(BusMeasured::memory_latency)),
        ] {
            table.row(row(name, &printed::OUTSTANDING.row(&[name]), &here));
        }
        table
    }

    /// Tables 7 to 9.
    pub(super) fn profiles(&self) -> Table {
        let columns = ["printed, cycles", "here, cycles", "printed, instructions", "here, instructions"];
        let mut table = table_of(
            "profiles",
            "Instructions decoded and retired in a cycle (Tables 7 to 9)",
            "in a cycle",
            &columns.map(|name| (name.to_string(), Kind::Percent(1))),
        );
        let core = self.base_core();
        let dispatched = &core.counts.dispatched;
        let busy: u64 = dispatched[1..].iter().sum();
        let decoded = [core.cycles as u64 - busy, dispatched[1], dispatched[2], dispatched[3]];
        for (what, here) in [
            ("macro-instruction decode", decoded),
            ("macro-instruction retire", core.retired),
            ("µop retire", core.retired),
        ] {
            let instructions: u64 = (0u64..).zip(here).map(|(number, cycles)| number * cycles).sum();
            for (number, cycles) in (0u64..).zip(here) {
                let printed = printed::PROFILES.row(&[what, &number.to_string()]);
                let of_instructions = 100.0 * (number * cycles) as f64 / instructions as f64;
                table.row(vec![
                    format!("{what}, {number}").into(),
                    printed_value(printed[0]),
                    (100.0 * cycles as f64 / core.cycles).into(),
                    printed_value(printed.get(1).copied().flatten()),
                    if number == 0 { Value::Missing } else { of_instructions.into() },
                ]);
            }
        }
        table.notes.push(
            "Here, decoded: dispatched to the window, also on wrong paths. One retirement of instructions stands beside both of the \
             printed ones."
                .into(),
        );
        table
    }

    /// Table 10.
    pub(super) fn branches(&self) -> Table {
        let columns = [("printed".to_string(), Kind::Real(2)), ("here".to_string(), Kind::Real(2))];
        let mut table = table_of("branches", "Branches (Table 10)", "characteristic", &columns);
        let core = self.base_core();
        let share = |part: u64, whole: f64| 100.0 * part as f64 / whole;
        let [executed, missed] = core.counts.targets;
        for (name, here) in [
            ("branch frequency (%)", share(core.branches, core.instructions)),
            ("branch misprediction ratio (%)", share(core.mispredicted, core.branches as f64)),
            ("BTB miss ratio (%)", share(missed, executed as f64)),
            ("speculative execution factor", core.speculation()),
        ] {
            table.row(row(name, &printed::BRANCHES.row(&[name]), &[here]));
        }
        table.notes.push(
            "Branches: conditional ones, jumps and returns; of the buffer also unconditional ones.".into(),
        );
        table
    }

    /// Figures 2 and 3.
    pub(super) fn not_overlapped(&self, l2: &str) -> Table {
        let names = COMPONENTS.into_iter().chain(["sum", "measured"]);
        let mut columns: Vec<_> = names.map(|name| (name.to_string(), Kind::Real(2))).collect();
        columns.push(("measured, of the sum".into(), Kind::Percent(0)));
        let figure = if l2 == FIGURES[0] { 2 } else { 3 };
        let mut table = table_of(
            &format!("not-overlapped-{l2}"),
            &format!("Cycles per instruction if nothing overlapped, {l2} of L2 (Figure {figure})"),
            "memory latency",
            &columns,
        );
        for (number, speed) in SPEEDS.iter().enumerate() {
            let core = self.core(l2, number, BASE.outstanding);
            let parts = &core.not_overlapped;
            let [code, data] = [parts.instructions, parts.data];
            let numbers = [
                parts.computation,
                parts.resources,
                parts.mispredictions,
                code[0],
                code[1],
                data[0],
                data[1],
                parts.translations.iter().sum(),
                parts.total(),
                core.cpi(),
                100.0 * core.cpi() / parts.total(),
            ];
            let name = Value::from(format!("{} ns", speed.latency_ns));
            table.row(std::iter::once(name).chain(numbers.map(Value::from)).collect());
        }
        let printed = if figure == 2 { 60 } else { 67 };
        table
            .notes
            .push(format!("The study measured {printed} % of the sum, about the same for all memories."));
        table
    }

    /// Table 11.
    pub(super) fn throughput(&self) -> Table {
        let columns = PROCESSORS.map(|number| format!("{number} P"));
        let columns = columns.each_ref().map(String::as_str);
        let mut table = table_of(
            "throughput",
            "Throughput by the number of processors, relative to four (Table 11)",
            "L2",
            &beside(&columns, Kind::Percent(0)),
        );
        let name = "relative transaction throughput (%)";
        for l2 in L2_SIZES {
            let here = PROCESSORS
                .map(|processors| self.bus(&BusConfiguration { l2, processors, ..BASE }).throughput());
            let printed = match l2 {
                "1M" => printed::SCALING.row(&["11", name, l2]),
                _ => vec![None; PROCESSORS.len()],
            };
            table.row(row(l2, &printed, &here.map(|one| 100.0 * one / here[2])));
        }
        table.notes.push(
            "Here work is counted in instructions, as transactions are of very different lengths, while all processors have some.".into(),
        );
        table
    }

    /// One of Tables 12 to 14.
    fn by_size_and_processors(
        &self,
        [name, title]: [&str; 2],
        kind: Kind,
        [number, printed]: [&str; 2],
        of: impl Fn(&BusMeasured) -> f64,
    ) -> Table {
        let columns = PROCESSORS.map(|number| format!("{number} P"));
        let columns = columns.each_ref().map(String::as_str);
        let mut table = table_of(name, title, "L2", &beside(&columns, kind));
        for l2 in L2_SIZES {
            let here =
                PROCESSORS.map(|processors| of(self.bus(&BusConfiguration { l2, processors, ..BASE })));
            table.row(row(l2, &printed::SCALING.row(&[number, printed, l2]), &here));
        }
        table
    }

    /// Table 12.
    pub(super) fn utilization(&self) -> Table {
        let names = ["bus-utilization", "Utilization of the bus (Table 12)"];
        self.by_size_and_processors(
            names,
            Kind::Percent(1),
            ["12", "bus utilization (%)"],
            BusMeasured::utilization,
        )
    }

    /// Table 13.
    pub(super) fn latency(&self) -> Table {
        let names = ["memory-latency", "Latency of a line from memory, in processor cycles (Table 13)"];
        let printed = ["13", "application memory latency (processor cycles)"];
        self.by_size_and_processors(names, Kind::Real(0), printed, BusMeasured::memory_latency)
    }

    /// Table 14.
    pub(super) fn dirty(&self) -> Table {
        let names = ["dirty-misses", "Misses to lines that are dirty in another cache (Table 14)"];
        let printed = ["14", "L2 misses to dirty data elsewhere (%)"];
        let mut table =
            self.by_size_and_processors(names, Kind::Percent(1), printed, BusMeasured::dirty_share);
        table.notes.push(
            "One processor has none here; the study explains its own by a signal with two meanings.".into(),
        );
        table
    }

    /// Table 15.
    pub(super) fn states(&self) -> Table {
        let mut table = table_of(
            "mesi-states",
            "State of the line that a request finds in L2 (Table 15)",
            "request",
            &beside(&["M", "E", "S", "I"], Kind::Percent(1)),
        );
        let states = [
            CoherenceState::Modified,
            CoherenceState::Exclusive,
            CoherenceState::Shared,
            CoherenceState::Invalid,
        ];
        for (name, request) in ["instruction fetch", "load", "store"].into_iter().zip(ProcessorRequest::ALL) {
            for processors in PROCESSORS {
                let found = &self.bus(&BusConfiguration { processors, ..BASE }).0.memory().counts().requests;
                let share = |state| 100.0 * found.get(request, state) as f64 / found.all(request) as f64;
                let printed = printed::STATES.row(&[name, &processors.to_string()]);
                table.row(row(&format!("{name}, {processors} P"), &printed, &states.map(share)));
            }
        }
        table
    }

    /// Whether the state Exclusive is worth having.
    pub(super) fn protocols(&self) -> Table {
        let columns = [
            ("relative throughput", Kind::Percent(2)),
            ("bus operations in 1,000 instructions", Kind::Real(2)),
            ("upgrades in 1,000 instructions", Kind::Real(2)),
            ("of them invalidate nothing", Kind::Percent(1)),
            ("stores to E in 1,000 instructions", Kind::Real(2)),
        ];
        let mut table = table_of(
            "protocols",
            "MESI and MSI, four processors: whether the state E is worth having",
            "protocol",
            &columns.map(|(name, kind)| (name.to_string(), kind)),
        );
        let base = self.bus(&BASE).throughput();
        for protocol in ["mesi", "msi"] {
            let bus = self.bus(&BusConfiguration { protocol, ..BASE });
            let counts = bus.0.memory().counts();
            table.row(vec![
                protocol.to_uppercase().into(),
                (100.0 * bus.throughput() / base).into(),
                bus.operations().into(),
                bus.in_thousand(counts.upgrades).into(),
                (100.0 * counts.upgrades_alone as f64 / counts.upgrades as f64).into(),
                bus.in_thousand(counts.silent_upgrades).into(),
            ]);
        }
        table
    }

    /// The four speeds of memory under the load of four processors.
    pub(super) fn speeds(&self) -> Table {
        let columns = [
            ("latency, idle bus", Kind::Real(0)),
            ("latency under load", Kind::Real(0)),
            ("bus utilization", Kind::Percent(1)),
            ("CPI", Kind::Real(2)),
            ("of it waiting for lines", Kind::Real(2)),
            ("relative throughput", Kind::Percent(1)),
        ];
        let mut table = table_of(
            "memory-speeds",
            "Four memories, four processors, 1 MB of L2: latencies in processor cycles",
            "memory latency",
            &columns.map(|(name, kind)| (name.to_string(), kind)),
        );
        let base = self.bus(&BASE).throughput();
        for (number, speed) in SPEEDS.iter().enumerate() {
            let bus = self.bus(&BusConfiguration { speed: number, ..BASE });
            let idle = bus.0.buses()[0].unloaded(Transaction::Memory) as f64 / bus.0.cycle() as f64;
            let waits = [ProcessorCause::Memory, ProcessorCause::Transfer, ProcessorCause::Instructions];
            let waits: f64 = waits.iter().map(|&cause| bus.cause(cause)).sum();
            let numbers = [
                idle,
                bus.memory_latency(),
                bus.utilization(),
                bus.cpi(),
                waits,
                100.0 * bus.throughput() / base,
            ];
            let name = Value::from(format!("{} ns", speed.latency_ns));
            table.row(std::iter::once(name).chain(numbers.map(Value::from)).collect());
        }
        table
    }

    /// The commands that have the same numbers.
    pub(super) fn commands_table(&self) -> Table {
        commands_table("commands", "The commands that have the same numbers", &self.commands)
    }
}

/// Requests for data.
const DATA: [ProcessorRequest; 2] = [ProcessorRequest::Load, ProcessorRequest::Store];
