//! The machines of the study: described ones, of which fields are changed. The same names and settings are options of the
//! commands that repeat a number.

use machine::{Machine, MachineSetting};

/// A described machine with changes.
#[derive(Clone, Debug)]
pub(super) struct MachineVariant {
    name: &'static str,
    settings: Vec<String>,
}

impl MachineVariant {
    /// A machine as it is described.
    pub(super) fn new(name: &'static str) -> MachineVariant {
        MachineVariant { name, settings: Vec::new() }
    }

    /// The same with another value of a field.
    pub(super) fn with(mut self, field: &str, value: impl std::fmt::Display) -> MachineVariant {
        self.settings.push(format!("{field}={value}"));
        self
    }

    /// The machine.
    pub(super) fn machine(&self) -> Machine {
        let settings = self.settings.iter().map(|text| text.parse::<MachineSetting>());
        let settings: Vec<MachineSetting> =
            settings.collect::<Result<_, _>>().expect("settings of this study");
        Machine::find_with(self.name, &settings).expect("it comes with the crate")
    }

    /// The options of a command that has this machine.
    pub(super) fn options(&self) -> String {
        let settings = self.settings.iter().map(|setting| format!(" --set {setting}"));
        format!("--machine {}{}", self.name, settings.collect::<String>())
    }
}

/// The sizes of the second-level cache of the study.
pub(super) const L2_SIZES: [&str; 3] = ["256K", "512K", "1M"];
/// The numbers of processors of the study.
pub(super) const PROCESSORS: [u32; 3] = [1, 2, 4];

/// One of the study's four memory speeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemorySpeed {
    /// The latency that lmbench measured, in nanoseconds.
    pub(super) latency_ns: u32,
    /// Cycles of the bus from the address to the first data.
    pub(super) bus_cycles: u32,
}

/// The four, the base system's first.
pub(super) const SPEEDS: [MemorySpeed; 4] = [
    MemorySpeed { latency_ns: 190, bus_cycles: 9 },
    MemorySpeed { latency_ns: 266, bus_cycles: 14 },
    MemorySpeed { latency_ns: 332, bus_cycles: 18 },
    MemorySpeed { latency_ns: 470, bus_cycles: 27 },
];

/// The out-of-order core with a second-level cache and a speed of memory.
pub(super) fn core(l2: &str, speed: MemorySpeed) -> MachineVariant {
    MachineVariant::new("pentium-pro-core").with("l2.size", l2).with("memory.latency_ns", speed.latency_ns)
}

/// The processors on their bus. `cycles` are those of an instruction while no processor waits for the bus.
pub(super) fn bus(l2: &str, speed: MemorySpeed, cycles: f64) -> MachineVariant {
    MachineVariant::new("pentium-pro")
        .with("l2.size", l2)
        .with("coherence.bus.memory", speed.bus_cycles)
        .with("coherence.processor.cycles_per_instruction", format!("{cycles:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_machines_exist() {
        for l2 in L2_SIZES {
            for speed in SPEEDS {
                assert!(core(l2, speed).machine().out_of_order.is_some());
                let coherence = bus(l2, speed, 1.25).machine().coherence.unwrap();
                assert_eq!(coherence.processor.unwrap().cycles_per_instruction, 1.25);
                // Arbitration, the address, memory's cycles and the first data.
                let cycles = 1 + 2 + speed.bus_cycles + 1;
                let latency = f64::from(cycles) * 1000.0 / 66.67;
                assert!((latency / f64::from(speed.latency_ns) - 1.0).abs() < 0.04, "{speed:?}: {latency}");
            }
        }
    }
}
