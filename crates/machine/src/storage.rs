//! Disks, and how many transactions a second a processor and its disks carry together: a closed queueing
//! network, solved exactly by mean value analysis (Reiser and Lavenberg, JACM 27, 1980).

use serde::Deserialize;

/// The disks of a machine: its `[storage]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// Where the figures are from.
    pub source: String,
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
    /// Transactions under way at a time.
    pub transactions: u32,
}

/// What a transaction takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// Seconds of the processor.
    pub processor: f64,
    /// Pages of the database read.
    pub reads: f64,
    /// Pages of the database written.
    pub writes: f64,
    /// Appends to the log.
    pub log_writes: f64,
}

/// What the machine does with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// Transactions a second.
    pub per_second: f64,
    /// Seconds from a transaction's beginning to its end.
    pub response: f64,
    /// The share of the time in which the processor works, 0 to 1.
    pub processor: f64,
    /// The share of the time in which the busiest disk works, 0 to 1.
    pub disk: f64,
}

impl Storage {
    /// What is wrong with it: the field, and why.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let times =
            [("read_ms", self.read_ms), ("write_ms", self.write_ms), ("log_write_ms", self.log_write_ms)];
        if let Some((field, _)) = times.into_iter().find(|(_, time)| !(0.0..=1e6).contains(time)) {
            return Err((field, "must lie between 0 and a million milliseconds"));
        }
        let numbers = [("disks", self.disks), ("transactions", self.transactions)];
        match numbers.into_iter().find(|(_, number)| !(1..=10_000).contains(number)) {
            Some((field, _)) => Err((field, "must lie between 1 and 10,000")),
            None => Ok(()),
        }
    }

    /// Transactions that wait for their own reads and writes, each disk for one after the other.
    pub fn throughput(&self, demand: &Demand) -> Throughput {
        let log = demand.log_writes * self.log_write_ms / 1000.0;
        let data = (demand.reads * self.read_ms + demand.writes * self.write_ms) / 1000.0;
        let spread = if self.log_disk { data } else { data + log } / f64::from(self.disks);
        let mut stations = vec![demand.processor];
        stations.extend(self.log_disk.then_some(log));
        stations.extend(std::iter::repeat_n(spread, self.disks as usize));
        let (per_second, response) = mean_value_analysis(&stations, self.transactions);
        let busiest = stations[1..].iter().copied().fold(0.0, f64::max);
        let (processor, disk) = (per_second * demand.processor, per_second * busiest);
        Throughput { per_second, response, processor, disk }
    }

    /// The fewest disks with which the throughput is at least `share` of what the processor alone would do;
    /// None if no number up to 10,000 is enough.
    pub fn disks_for(&self, demand: &Demand, share: f64) -> Option<u32> {
        let wanted = share / demand.processor;
        let reaches = |disks| Storage { disks, ..self.clone() }.throughput(demand).per_second >= wanted;
        // More disks are never slower.
        let (mut low, mut high) = (1, 10_000);
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

/// Throughput and response time of `customers` that go round stations, where they take these seconds each.
fn mean_value_analysis(stations: &[f64], customers: u32) -> (f64, f64) {
    let mut queues = vec![0.0; stations.len()];
    let (mut throughput, mut response) = (0.0, 0.0);
    for customer in 1..=customers {
        let times: Vec<f64> =
            stations.iter().zip(&queues).map(|(demand, queue)| demand * (1.0 + queue)).collect();
        response = times.iter().sum();
        throughput = f64::from(customer) / response;
        queues = times.iter().map(|time| throughput * time).collect();
    }
    (throughput, response)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn storage(disks: u32, log_disk: bool, transactions: u32) -> Storage {
        let source = String::new();
        Storage { source, read_ms: 10.0, write_ms: 10.0, log_write_ms: 5.0, disks, log_disk, transactions }
    }

    const DEMAND: Demand = Demand { processor: 0.002, reads: 1.0, writes: 1.0, log_writes: 1.0 };

    /// By hand: one transaction is never in its own way; two at two equal stations keep each two thirds busy.
    #[test]
    fn small_networks_are_as_computed_by_hand() {
        let alone = storage(1, true, 1).throughput(&DEMAND);
        assert!((alone.response - 0.027).abs() < 1e-12 && (alone.per_second * 0.027 - 1.0).abs() < 1e-12);
        let (throughput, response) = mean_value_analysis(&[1.0, 1.0], 2);
        assert!((throughput - 2.0 / 3.0).abs() < 1e-12 && (response - 3.0).abs() < 1e-12);
        let (throughput, _) = mean_value_analysis(&[1.0, 2.0], 2);
        // States (2,0), (1,1), (0,2) have the weights 1, 2, 4: the first works in the first two.
        assert!((throughput - 3.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn enough_disks_leave_the_processor_busy() {
        let many = storage(1, false, 64);
        let disks = many.disks_for(&DEMAND, 0.8).unwrap();
        let share = |disks| Storage { disks, ..many.clone() }.throughput(&DEMAND).processor;
        assert!(share(disks) >= 0.8 && share(disks - 1) < 0.8, "{disks}");
        // A log's disk alone carries 200 transactions a second, the processor 500.
        assert_eq!(storage(1, true, 64).disks_for(&DEMAND, 0.8), None);
    }

    proptest! {
        /// The bounds of every closed network (Denning and Buzen, 1978), and the sum of what is where.
        #[test]
        fn no_network_breaks_the_laws(stations in proptest::collection::vec(0.001..1.0f64, 1..8), n in 1u32..50) {
            let (throughput, response) = mean_value_analysis(&stations, n);
            let sum: f64 = stations.iter().sum();
            let most = stations.iter().copied().fold(0.0, f64::max);
            prop_assert!(throughput <= (1.0 / most).min(f64::from(n) / sum) * (1.0 + 1e-9));
            prop_assert!(throughput >= f64::from(n) / (sum + f64::from(n - 1) * most) * (1.0 - 1e-9));
            prop_assert!((throughput * response / f64::from(n) - 1.0).abs() < 1e-9);
        }
    }
}
