//! The throughput of a processor and its disks in transactions a second: a closed queueing network, solved
//! exactly by mean value analysis (Reiser and Lavenberg, JACM 27, 1980).

use serde::Deserialize;

use descriptions::{CheckResult, require};

/// The greatest number of disks, and of transactions in progress.
const MAX: u32 = 10_000;

/// The disks of a machine: its `[storage]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// Milliseconds that reading a page of the database takes.
    pub read_ms: f64,
    /// Milliseconds that writing a page of the database takes.
    pub write_ms: f64,
    /// Milliseconds that appending to the log takes.
    pub log_write_ms: f64,
    /// Disks over which the database is spread.
    pub disks: u32,
    /// Whether the log has a disk of its own; if not, it is spread with the database.
    pub log_disk: bool,
    /// Transactions in progress at a time, for each disk of the database.
    pub transactions_per_disk: u32,
}

/// The service demand of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// Processor time in seconds.
    pub processor: f64,
    /// Pages of the database read.
    pub reads: f64,
    /// Pages of the database written.
    pub writes: f64,
    /// Appends to the log.
    pub log_writes: f64,
}

/// The throughput and utilization of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// Transactions a second.
    pub per_second: f64,
    /// Response time of a transaction in seconds.
    pub response: f64,
    /// Utilization of the processor, 0 to 1.
    pub processor: f64,
    /// Utilization of the busiest disk, 0 to 1.
    pub disk: f64,
}

impl Storage {
    /// Says which field is wrong, and why.
    pub(crate) fn check(&self) -> CheckResult {
        let times =
            [("read_ms", self.read_ms), ("write_ms", self.write_ms), ("log_write_ms", self.log_write_ms)];
        for (field, time) in times {
            let reason = format!("{time} is not between 0 and a million milliseconds");
            require((0.0..=1e6).contains(&time), format!("storage.{field}"), reason)?;
        }
        for (field, number) in [("disks", self.disks), ("transactions_per_disk", self.transactions_per_disk)]
        {
            let reason = format!("{number} is not between 1 and {MAX}");
            require((1..=MAX).contains(&number), format!("storage.{field}"), reason)?;
        }
        Ok(())
    }

    /// Transactions that wait for their own reads and writes, each disk for one after the other.
    pub fn throughput(&self, demand: &Demand) -> Throughput {
        let log = demand.log_writes * self.log_write_ms / 1000.0;
        let data = (demand.reads * self.read_ms + demand.writes * self.write_ms) / 1000.0;
        let spread = if self.log_disk { data } else { data + log } / f64::from(self.disks);
        let log = if self.log_disk { log } else { 0.0 };
        let stations = [(demand.processor, 1), (log, 1), (spread, self.disks)];
        let (per_second, response) = mean_value_analysis(&stations, self.disks * self.transactions_per_disk);
        let (processor, disk) = (per_second * demand.processor, per_second * log.max(spread));
        Throughput { per_second, response, processor, disk }
    }

    /// The fewest disks with which the throughput is at least `share` of what the processor alone would do;
    /// None if no number is enough that a machine may have.
    pub fn disks_for(&self, demand: &Demand, share: f64) -> Option<u32> {
        let wanted = share / demand.processor;
        let reaches = |disks| Storage { disks, ..self.clone() }.throughput(demand).per_second >= wanted;
        // More disks, and more transactions with them, are never slower.
        let (mut low, mut high) = (1, MAX);
        if !reaches(high) {
            return None;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if reaches(middle) { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }
}

/// Throughput and response time of `customers` that circulate among stations, with these service times in seconds.
/// many seconds.
fn mean_value_analysis<const KINDS: usize>(stations: &[(f64, u32); KINDS], customers: u32) -> (f64, f64) {
    let mut queues = [0.0; KINDS];
    let (mut throughput, mut response) = (0.0, 0.0);
    for customer in 1..=customers {
        let times = std::array::from_fn(|kind| stations[kind].0 * (1.0 + queues[kind]));
        response =
            stations.iter().zip(times).map(|((_, number), time): (_, f64)| f64::from(*number) * time).sum();
        throughput = f64::from(customer) / response;
        queues = times.map(|time| throughput * time);
    }
    (throughput, response)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn storage(log_disk: bool, transactions_per_disk: u32) -> Storage {
        let (read_ms, write_ms, log_write_ms) = (10.0, 10.0, 5.0);
        Storage { read_ms, write_ms, log_write_ms, disks: 1, log_disk, transactions_per_disk }
    }

    const DEMAND: Demand = Demand { processor: 0.002, reads: 1.0, writes: 1.0, log_writes: 1.0 };

    /// By hand: one transaction is never in its own way; two at two equal stations keep each two thirds busy.
    #[test]
    fn small_networks_are_as_computed_by_hand() {
        let alone = storage(true, 1).throughput(&DEMAND);
        assert!((alone.response - 0.027).abs() < 1e-12 && (alone.per_second * 0.027 - 1.0).abs() < 1e-12);
        let (throughput, response) = mean_value_analysis(&[(1.0, 2)], 2);
        assert!((throughput - 2.0 / 3.0).abs() < 1e-12 && (response - 3.0).abs() < 1e-12);
        let (throughput, _) = mean_value_analysis(&[(1.0, 1), (2.0, 1)], 2);
        // States (2,0), (1,1), (0,2) have the weights 1, 2, 4: the first works in the first two.
        assert!((throughput - 3.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn enough_disks_leave_the_processor_busy() {
        let many = storage(false, 16);
        let disks = many.disks_for(&DEMAND, 0.8).unwrap();
        let share = |disks| Storage { disks, ..many.clone() }.throughput(&DEMAND).processor;
        assert!(share(disks) >= 0.8 && share(disks - 1) < 0.8, "{disks}");
        // A log's disk alone carries 200 transactions a second, the processor 500.
        assert_eq!(storage(true, 16).disks_for(&DEMAND, 0.8), None);
    }

    proptest! {
        /// The bounds of every closed network (Denning and Buzen, 1978), and the sum of the customers at all
        /// stations.
        #[test]
        fn no_network_breaks_the_laws(stations in [(0.001..1.0f64, 1u32..9), (0.001..1.0, 1..9)], n in 1u32..50) {
            let (throughput, response) = mean_value_analysis(&stations, n);
            let sum: f64 = stations.iter().map(|(demand, number)| demand * f64::from(*number)).sum();
            let most = stations[0].0.max(stations[1].0);
            prop_assert!(throughput <= (1.0 / most).min(f64::from(n) / sum) * (1.0 + 1e-9));
            prop_assert!(throughput >= f64::from(n) / (sum + f64::from(n - 1) * most) * (1.0 - 1e-9));
            prop_assert!((throughput * response / f64::from(n) - 1.0).abs() < 1e-9);
        }
    }
}
