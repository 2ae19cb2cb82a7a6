//! Checks whether an adapter is possible.

use descriptions::{CheckResult, require};

use super::{AdapterDescription, Buffering, BusKind, Framing, Mover};
use crate::aal5;

/// The most of anything that is counted in cycles, nanoseconds or entries: sums of such durations fit a u64 of picoseconds.
const MOST: u32 = 1 << 20;

/// A number between limits, both included.
fn within(field: &str, value: u32, least: u32, most: u32) -> CheckResult {
    require((least..=most).contains(&value), field, format!("{value} is not between {least} and {most}"))
}

fn frequency(field: &str, mhz: f64) -> CheckResult {
    require((0.01..=100_000.0).contains(&mhz), field, format!("{mhz} is not between 0.01 and 100000"))
}

fn power_of_two(field: &str, value: u32, least: u32) -> CheckResult {
    require(value.is_power_of_two(), field, format!("{value} is not a power of two"))?;
    within(field, value, least, 1 << 16)
}

impl AdapterDescription {
    /// Checks all fields.
    pub(super) fn check(&self) -> CheckResult {
        self.check_link()?;
        self.check_bus()?;
        self.check_memories()?;
        self.check_engine()?;
        self.check_receive()?;
        self.check_driver()
    }

    fn check_link(&self) -> CheckResult {
        let link = &self.link;
        require(
            (0.1..=1e6).contains(&link.mbps),
            "link.mbps",
            format!("{} is not between 0.1 and 1000000", link.mbps),
        )?;
        within("link.circuits", link.circuits, 1, 1 << 16)?;
        within("link.read_ahead", link.read_ahead, 1, 1 << 10)?;
        within("link.delay_ns", link.delay_ns, 0, 1 << 30)?;
        match (link.framing, link.frame) {
            (Framing::Ethernet, Some(frame)) => within("link.frame", frame, 46, 9216),
            (Framing::Ethernet, None) => require(false, "link.frame", "Ethernet's frames need a size"),
            (Framing::Aal5, None) => Ok(()),
            (Framing::Aal5, Some(_)) => {
                require(false, "link.frame", "cells of ATM have 48 bytes; leave it out")
            }
        }
    }

    fn check_bus(&self) -> CheckResult {
        let bus = &self.bus;
        frequency("bus.clock_mhz", bus.clock_mhz)?;
        match bus.kind {
            BusKind::Pci => require(
                matches!(bus.bits, 32 | 64),
                "bus.bits",
                format!("PCI has 32 or 64 bits, not {}", bus.bits),
            )?,
            BusKind::Express => power_of_two("bus.bits", bus.bits, 8)?,
        }
        power_of_two("bus.line", bus.line, bus.bits / 8)?;
        for (field, cycles) in [
            ("bus.arbitration", bus.arbitration),
            ("bus.read_latency", bus.read_latency),
            ("bus.write_stall", bus.write_stall),
            ("bus.turnaround", bus.turnaround),
            ("bus.retry", bus.retry),
            ("bus.retry_interval", bus.retry_interval),
            ("bus.merge", bus.merge),
            ("bus.latency_timer", bus.latency_timer.unwrap_or(0)),
        ] {
            within(field, cycles, 0, 1 << 12)?;
        }
        within("bus.address", bus.address, 1, 1 << 12)?;
        // A read that is tried again at once must advance the time.
        require(
            bus.retry + bus.retry_interval + bus.turnaround > 0,
            "bus.retry",
            "a try that is retried takes a cycle at least",
        )
    }

    fn check_memories(&self) -> CheckResult {
        let (data, control) = (&self.data_memory, &self.control_memory);
        frequency("data_memory.clock_mhz", data.clock_mhz)?;
        frequency("control_memory.clock_mhz", control.clock_mhz)?;
        within("data_memory.width", data.width, 1, 1 << 10)?;
        within("data_memory.overhead", data.overhead, 0, 1 << 12)?;
        within("data_memory.burst", data.burst, 1, 1 << 16)?;
        within("data_memory.kilobytes", data.kilobytes, 1, 1 << 20)?;
        within("control_memory.transmit", control.transmit, 0, 1 << 12)?;
        within("control_memory.receive", control.receive, 0, 1 << 12)?;
        within("control_memory.credit", control.credit, 0, 1 << 12)
    }

    fn check_engine(&self) -> CheckResult {
        let dma = &self.dma;
        within("dma.read_burst", dma.read_burst, 1, 1 << 16)?;
        power_of_two("dma.write_burst", dma.write_burst, 1)?;
        within("dma.command", dma.command, 1, 1 << 10)?;
        within("dma.ring", dma.ring, 2, 1 << 16)?;
        within("dma.fetch", dma.fetch, 1, 1 << 10)?;
        within("dma.prefetch", dma.prefetch, 1, 1 << 10)?;
        within("dma.reads", dma.reads, 1, 1 << 10)?;
        require(
            dma.reads == 1 || self.bus.kind == BusKind::Express,
            "dma.reads",
            "a master has one read at a time on PCI",
        )?;
        require(
            !dma.write_invalidate || dma.write_burst >= self.bus.line,
            "dma.write_invalidate",
            format!("bursts of {} bytes contain no whole line of {}", dma.write_burst, self.bus.line),
        )
    }

    fn check_receive(&self) -> CheckResult {
        let receive = &self.receive;
        within("receive.shared", receive.shared, 0, MOST)?;
        within("receive.per_circuit", receive.per_circuit, 0, MOST)?;
        within("receive.summary", receive.summary, 1, 1 << 12)?;
        within("receive.descriptor", receive.descriptor, 0, receive.summary)?;
        within("receive.ring", receive.ring, 2, 1 << 16)?;
        let buffers =
            u64::from(receive.per_circuit) * u64::from(self.link.circuits) + u64::from(receive.shared);
        require(buffers > 0, "receive.shared", "there are no buffers")?;
        let size = buffers * self.link.unit_payload() as u64;
        let memory = u64::from(self.data_memory.kilobytes) << 10;
        let reason = format!("{buffers} receive buffers leave no room for packets to send in {memory} bytes");
        require(size < memory, "data_memory.kilobytes", reason)?;
        let least = self.link.unit_payload() as u64 + u64::from(self.dma.read_burst);
        require(
            self.buffering == Buffering::Exposed || memory - size >= least,
            "data_memory.kilobytes",
            format!(
                "the FIFO of what is sent needs {least} bytes for a burst and a cell or frame, and has {}",
                memory - size
            ),
        )?;
        let Some(credits) = &self.credits else { return Ok(()) };
        require(self.link.framing == Framing::Aal5, "credits", "Ethernet has no credits")?;
        require(
            self.buffering == Buffering::Exposed,
            "credits",
            "circuits of hidden buffers have no quota to give credit for",
        )?;
        within("credits.batch", credits.batch, 1, receive.per_circuit)
    }

    fn check_driver(&self) -> CheckResult {
        let driver = &self.driver;
        for (field, number) in [
            ("driver.send_reads", driver.send_reads),
            ("driver.send_writes", driver.send_writes),
            ("driver.service_reads", driver.service_reads),
            ("driver.service_writes", driver.service_writes),
            ("driver.send_passes", driver.send_passes),
            ("driver.receive_passes", driver.receive_passes),
        ] {
            within(field, number, 0, 1000)?;
        }
        for (field, nanoseconds) in [
            ("driver.latency_ns", driver.latency_ns),
            ("driver.send_ns", driver.send_ns),
            ("driver.receive_ns", driver.receive_ns),
            ("driver.lock_ns", driver.lock_ns),
            ("target.csr_ns", self.target.csr_ns),
            ("target.read_ns", self.target.read_ns),
            (
                "interrupts.holdoff_ns",
                self.interrupts.as_ref().map_or(0, |one| one.holdoff_ns[0].max(one.holdoff_ns[1])),
            ),
        ] {
            within(field, nanoseconds, 0, 1 << 30)?;
        }
        within("driver.programmed_below", driver.programmed_below, 0, 1 << 16)?;
        within("driver.window", driver.window, 1, 1 << 16)?;
        within("target.write_bytes", self.target.write_bytes, 1, 1 << 12)?;
        within("target.read_bytes", self.target.read_bytes, 1, 1 << 12)?;
        let programmed = driver.send == Mover::Programmed
            || driver.receive == Mover::Programmed
            || driver.programmed_below > 0;
        require(
            !programmed || self.buffering == Buffering::Exposed,
            "driver.send",
            "programmed I/O needs exposed buffers",
        )?;
        require(
            (0.1..=1e7).contains(&self.host.megabytes_a_second),
            "host.megabytes_a_second",
            format!("{} is not between 0.1 and 10000000", self.host.megabytes_a_second),
        )?;
        power_of_two("host.page", self.host.page, 64)
    }
}

impl super::ReceiveDescription {
    /// The most bytes of a packet that its summary has as a whole.
    pub(crate) fn inline(&self) -> u32 {
        self.summary - self.descriptor
    }
}

impl super::LinkDescription {
    /// The most bytes of a packet in a cell or frame.
    pub(crate) fn unit_payload(&self) -> usize {
        self.frame.map_or(aal5::CELL_PAYLOAD, |frame| frame as usize)
    }
}
