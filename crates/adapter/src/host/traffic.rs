//! Regular traffic: packets of one size, sent, received, or both, as the driver of the description does it.

use super::cpu::{HostProcessor, TaskCost};
use super::regular::{DataOrigin, TrafficDirection, TrafficError, TrafficResult, TrafficSettings};
use super::ring::CommandRing;
use super::{AdapterModel, AdapterProgram};
use crate::aal5;
use crate::description::{AdapterDescription, Buffering, DriverDescription, Mover};
use crate::faults::LinkFaults;
use crate::hardware::{AdapterRegister, DmaCommand, FarEnd, Hardware, HostEvent, PacketSummary};

/// A task of the processor.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DriverTask {
    /// The application makes a packet, and the stack sends it.
    Send(u64),
    /// A packet whose data are in the adapter's or the host's memory.
    Transmit(u64),
    /// An interrupt of a class, or (none) a summary that polling finds.
    Service(Option<usize>),
    /// A packet has come.
    Receive(PacketSummary),
    /// A packet's data are where the application wants them.
    Deliver,
    /// The end of an interrupt's service.
    End(usize),
}

/// The driver, and the application above it.
#[derive(Clone, Debug)]
pub struct Traffic {
    settings: TrafficSettings,
    driver: DriverDescription,
    buffering: Buffering,
    page: u32,
    stride: u32,
    inline: u32,
    has_interrupts: bool,
    holdoff_ns: [u32; 2],
    processor: HostProcessor<DriverTask>,
    ring: CommandRing,
    /// Reads of CSRs whose values the present task awaits.
    awaited: u32,
    is_moving: bool,
    sent: u64,
    in_flight: u64,
    done: u64,
    requested: u64,
    received: u32,
    /// Summaries that no interrupt service has handled.
    summaries: Vec<PacketSummary>,
    completed: u32,
}

impl Traffic {
    /// A driver, if the traffic is possible.
    pub fn new(description: &AdapterDescription, settings: TrafficSettings) -> Result<Traffic, TrafficError> {
        let exposed = description.buffering == Buffering::Exposed;
        let impossible = |reason: String| Err(TrafficError::Impossible(reason));
        let stride = settings.bytes.next_multiple_of(64);
        let places = u64::from(description.driver.window) * u64::from(stride);
        let one = if settings.hardware_packets > 0 { settings.hardware_packets } else { settings.bytes };
        if one == 0 || one as usize > aal5::LONGEST || settings.bytes == 0 {
            return impossible(format!("packets have 1 to {} bytes, not {one}", aal5::LONGEST));
        }
        if settings.circuits == 0 || settings.circuits > description.link.circuits {
            return impossible(format!(
                "link.circuits: the link has {} circuits, not {}",
                description.link.circuits, settings.circuits
            ));
        }
        if exposed
            && settings.direction != TrafficDirection::Receive
            && places > description.send_memory().into()
        {
            return impossible(format!(
                "driver.window: {} packets of {} bytes do not fit the adapter's {} bytes for sending",
                description.driver.window,
                settings.bytes,
                description.send_memory()
            ));
        }
        let is_special = settings.hardware_packets > 0 || settings.origin == DataOrigin::DeviceToAdapter;
        if is_special && !(exposed && settings.direction == TrafficDirection::Send) {
            return impossible(
                "only exposed buffers take data of devices, or data to divide, and only to send".into(),
            );
        }
        Ok(Traffic {
            driver: description.driver.clone(),
            buffering: description.buffering,
            page: description.host.page,
            stride,
            inline: if description.driver.uses_summary { description.receive.inline() } else { 0 },
            has_interrupts: description.interrupts.is_some(),
            holdoff_ns: description.interrupts.as_ref().map_or([0; 2], |one| one.holdoff_ns),
            processor: HostProcessor::new(),
            ring: CommandRing::default(),
            awaited: 0,
            is_moving: false,
            sent: 0,
            in_flight: 0,
            done: 0,
            requested: 0,
            received: 0,
            summaries: Vec::new(),
            completed: 0,
            settings,
        })
    }

    /// Runs traffic on an adapter.
    ///
    /// ```
    /// use pathlength_adapter::{AdapterDescription, Traffic, TrafficDirection, TrafficSettings};
    /// let dart = AdapterDescription::find("dart-simulation").unwrap();
    /// let loops = TrafficSettings::new(TrafficDirection::Loop, 1528, 100);
    /// let result = Traffic::run(&dart, loops).unwrap();
    /// assert_eq!(result.counts.cells_received, 3200);
    /// assert!((300.0..542.5).contains(&result.payload_mbps()));
    /// ```
    pub fn run(
        description: &AdapterDescription,
        settings: TrafficSettings,
    ) -> Result<TrafficResult, TrafficError> {
        let traffic = Traffic::new(description, settings)?;
        let far_end = match settings.direction {
            TrafficDirection::Loop => FarEnd::Loop,
            _ => FarEnd::Network,
        };
        let mut model = AdapterModel::new(description, far_end, LinkFaults::NONE, traffic);
        model.run()?;
        let (hardware, host) = (model.hardware(), model.host());
        let time = hardware.now();
        Ok(TrafficResult {
            time,
            packets: settings.packets,
            bytes: settings.packets * u64::from(settings.bytes),
            units: description.link.units(settings.bytes),
            counts: hardware.counts(),
            bus: hardware.bus_counts(),
            bus_cycles: hardware.bus_clock().edge(time),
            memories: hardware.memories_busy().map(|busy| busy as f64 / time as f64),
            processor: host.processor.busy() as f64 / time as f64,
        })
    }

    fn cost(
        driver: &DriverDescription,
        settings: &TrafficSettings,
        moves_itself: bool,
    ) -> impl Fn(&DriverTask) -> TaskCost {
        let bytes = u64::from(settings.bytes);
        // A driver that only sends reads no data.
        let receives = settings.direction != TrafficDirection::Send;
        let receive = if receives { u64::from(driver.receive_passes) } else { 0 };
        let send = u64::from(driver.send_passes);
        let lock = if moves_itself { 0 } else { u64::from(driver.lock_ns) };
        let is_application = settings.origin == DataOrigin::Application;
        let (send_ns, receive_ns, latency_ns) = (driver.send_ns, driver.receive_ns, driver.latency_ns);
        move |task| match task {
            DriverTask::Send(_) if is_application => {
                TaskCost { nanoseconds: u64::from(send_ns) + lock, memory_bytes: send * bytes }
            }
            DriverTask::Send(_) | DriverTask::End(_) => TaskCost::default(),
            // Data of a device were not made by an application: the stack's time is spent when they are there.
            DriverTask::Transmit(_) if is_application => TaskCost::default(),
            DriverTask::Transmit(_) => TaskCost { nanoseconds: send_ns.into(), memory_bytes: 0 },
            DriverTask::Service(_) => TaskCost { nanoseconds: latency_ns.into(), memory_bytes: 0 },
            DriverTask::Receive(_) => TaskCost { nanoseconds: u64::from(receive_ns) + lock, memory_bytes: 0 },
            DriverTask::Deliver => TaskCost { nanoseconds: 0, memory_bytes: receive * bytes },
        }
    }

    fn programmed(&self, mover: Mover) -> bool {
        mover == Mover::Programmed || self.settings.bytes < self.driver.programmed_below
    }

    /// Begins what there is to do.
    fn go_on(&mut self, hardware: &mut Hardware) {
        while self.settings.direction != TrafficDirection::Receive
            && self.sent < self.settings.packets
            && self.in_flight < self.driver.window.into()
        {
            self.processor.push(DriverTask::Send(self.sent));
            self.sent += 1;
            self.in_flight += 1;
        }
        let moves_itself = self.programmed(self.driver.send) || self.buffering == Buffering::Hidden;
        self.processor.begin(hardware, Traffic::cost(&self.driver, &self.settings, moves_itself));
    }

    fn end_task(&mut self, hardware: &mut Hardware) {
        self.processor.end(hardware);
        self.go_on(hardware);
    }

    /// The time of the present task has passed.
    fn task_done(&mut self, hardware: &mut Hardware) {
        let Some(task) = self.processor.present() else { return };
        match task {
            DriverTask::Send(packet) => self.send(packet, hardware),
            DriverTask::Transmit(packet) => self.transmit(packet, hardware),
            DriverTask::Service(_) => {
                self.awaited = self.driver.service_reads;
                (0..self.awaited).for_each(|read| {
                    let first =
                        if self.has_interrupts { AdapterRegister::Cause } else { AdapterRegister::Other };
                    hardware.read_register(if read == 0 { first } else { AdapterRegister::CommandConsumer });
                });
            }
            DriverTask::Receive(summary) => self.receive(summary, hardware),
            DriverTask::Deliver => self.deliver(),
            DriverTask::End(class) => self.end_service(class, hardware),
        }
        self.end_unless_waiting(hardware);
    }

    /// Ends the present task, unless it awaits the adapter.
    fn end_unless_waiting(&mut self, hardware: &mut Hardware) {
        if self.awaited > 0 || self.is_moving {
            return;
        }
        if let Some(DriverTask::Service(class)) = self.processor.present() {
            self.found(class);
        }
        self.end_task(hardware);
    }

    /// A service looks at host memory, and makes tasks of what it finds.
    fn found(&mut self, class: Option<usize>) {
        let completed = std::mem::take(&mut self.completed);
        let summaries = std::mem::take(&mut self.summaries);
        let delivered = std::iter::repeat_n(DriverTask::Deliver, completed as usize);
        let end = class.map(DriverTask::End);
        let tasks: Vec<DriverTask> =
            summaries.into_iter().map(DriverTask::Receive).chain(delivered).chain(end).collect();
        self.processor.push_first(tasks.into_iter());
    }

    fn host_address(&self, packet: u64) -> u64 {
        let buffer = u64::from(self.stride.next_multiple_of(self.page));
        (packet % u64::from(self.driver.window)) * buffer
    }

    fn adapter_address(&self, packet: u64) -> u32 {
        (packet % u64::from(self.driver.window)) as u32 * self.stride
    }

    fn send(&mut self, packet: u64, hardware: &mut Hardware) {
        let (host, adapter, bytes) =
            (self.host_address(packet), self.adapter_address(packet), self.settings.bytes);
        let circuit = (packet % u64::from(self.settings.circuits)) as u32;
        match self.settings.origin {
            DataOrigin::Application => {}
            DataOrigin::DeviceToHost => return hardware.peer_write(bytes, false, packet as u32),
            DataOrigin::DeviceToAdapter => return hardware.peer_write(bytes, true, packet as u32),
        }
        if self.buffering == Buffering::Hidden {
            self.ring.push(hardware, DmaCommand::Send { circuit, host, bytes });
        } else if self.programmed(self.driver.send) {
            self.is_moving = true;
            return hardware.programmed_write(host, adapter, bytes, packet as u32);
        } else {
            self.copy_to_adapter(packet, hardware);
            self.push_transmit(packet, hardware);
        }
        self.send_registers(hardware);
    }

    fn copy_to_adapter(&mut self, packet: u64, hardware: &mut Hardware) {
        let (host, adapter) = (self.host_address(packet), self.adapter_address(packet));
        for (offset, bytes) in pages(self.settings.bytes, self.page) {
            let (host, adapter) = (host + u64::from(offset), adapter + offset);
            self.ring.push(hardware, DmaCommand::CopyToAdapter { host, adapter, bytes });
        }
    }

    fn push_transmit(&mut self, packet: u64, hardware: &mut Hardware) {
        let (adapter, bytes) = (self.adapter_address(packet), self.settings.bytes);
        let (circuit, packet_bytes) =
            (packet % u64::from(self.settings.circuits), self.settings.hardware_packets);
        let command = DmaCommand::Transmit { circuit: circuit as u32, adapter, bytes, packet_bytes };
        self.ring.push(hardware, command);
    }

    /// Data that the processor did not move by a command are there.
    fn transmit(&mut self, packet: u64, hardware: &mut Hardware) {
        match (self.settings.origin, self.buffering) {
            (DataOrigin::DeviceToHost, Buffering::Exposed) => {
                self.copy_to_adapter(packet, hardware);
                self.push_transmit(packet, hardware);
            }
            (DataOrigin::DeviceToHost, Buffering::Hidden) => {
                let (host, bytes) = (self.host_address(packet), self.settings.bytes);
                let circuit = (packet % u64::from(self.settings.circuits)) as u32;
                self.ring.push(hardware, DmaCommand::Send { circuit, host, bytes });
            }
            _ => self.push_transmit(packet, hardware),
        }
        self.send_registers(hardware);
    }

    fn send_registers(&mut self, hardware: &mut Hardware) {
        (0..self.driver.send_reads).for_each(|_| hardware.read_register(AdapterRegister::Other));
        self.awaited += self.driver.send_reads;
        (1..self.driver.send_writes).for_each(|_| hardware.write_register(AdapterRegister::Other, 0));
        self.tell_producer(hardware);
    }

    fn tell_producer(&mut self, hardware: &mut Hardware) {
        if let Some(producer) = self.ring.take_producer() {
            hardware.write_register(AdapterRegister::CommandProducer, producer);
        }
    }

    fn receive(&mut self, summary: PacketSummary, hardware: &mut Hardware) {
        self.received = (self.received + 1) % hardware.description().receive.ring;
        match summary.packet {
            None => self.processor.push_first(std::iter::once(DriverTask::Deliver)),
            Some(packet) if summary.bytes <= self.inline => {
                self.ring.push(hardware, DmaCommand::Recycle { packet });
                self.processor.push_first(std::iter::once(DriverTask::Deliver));
            }
            Some(packet) if self.programmed(self.driver.receive) => {
                self.is_moving = true;
                hardware.programmed_read(packet, self.host_address(self.done), summary.bytes, packet);
            }
            Some(packet) => {
                let host = self.host_address(self.done);
                for (offset, bytes) in pages(summary.bytes, self.page) {
                    let host = host + u64::from(offset);
                    self.ring.push(hardware, DmaCommand::CopyToHost { packet, offset, host, bytes });
                }
                self.ring.push(hardware, DmaCommand::Recycle { packet });
            }
        }
        if !self.has_interrupts {
            let writes = self.driver.service_writes.saturating_sub(2);
            (0..writes).for_each(|_| hardware.write_register(AdapterRegister::Other, 0));
            hardware.write_register(AdapterRegister::SummaryConsumer, self.received);
            self.tell_producer(hardware);
        }
    }

    fn end_service(&mut self, class: usize, hardware: &mut Hardware) {
        self.tell_producer(hardware);
        hardware.write_register(AdapterRegister::SummaryConsumer, self.received);
        let writes = self.driver.service_writes.saturating_sub(3);
        (0..writes).for_each(|_| hardware.write_register(AdapterRegister::Other, 0));
        let register = [AdapterRegister::FirstHoldoff, AdapterRegister::SecondHoldoff][class];
        hardware.write_register(register, self.holdoff_ns[class]);
    }

    /// A packet has reached its application, or has left.
    fn deliver(&mut self) {
        self.done += 1;
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Something is complete: a service sees it, or polling does.
    fn complete(&mut self, hardware: &mut Hardware) {
        if self.has_interrupts {
            self.completed += 1;
        } else {
            self.processor.push(DriverTask::Deliver);
            self.go_on(hardware);
        }
    }

    /// Has the other system send, a few packets ahead.
    fn request(&mut self, hardware: &mut Hardware) {
        const AHEAD: u64 = 64;
        if self.settings.direction != TrafficDirection::Receive {
            return;
        }
        while self.requested < self.settings.packets && hardware.remote_waiting() < AHEAD {
            let circuit = (self.requested % u64::from(self.settings.circuits)) as u32;
            hardware.remote_send(circuit, self.settings.bytes);
            self.requested += 1;
        }
    }
}

impl AdapterProgram for Traffic {
    fn start(&mut self, hardware: &mut Hardware) {
        hardware.set_remote_interval(self.settings.interval);
        self.request(hardware);
        self.go_on(hardware);
    }

    fn observe(&mut self, event: HostEvent, hardware: &mut Hardware) {
        match event {
            HostEvent::Timer => self.task_done(hardware),
            HostEvent::Value(..) => {
                self.awaited = self.awaited.saturating_sub(1);
                self.end_unless_waiting(hardware);
            }
            HostEvent::Interrupt(class) => {
                self.processor.push_first(std::iter::once(DriverTask::Service(Some(class))));
                self.go_on(hardware);
            }
            HostEvent::Summary(summary) => {
                self.request(hardware);
                self.summaries.push(summary);
                if !self.has_interrupts {
                    self.processor.push(DriverTask::Service(None));
                    self.go_on(hardware);
                }
            }
            HostEvent::Executed(command) => {
                self.ring.executed(hardware);
                // The last part of a packet; its buffers are recycled by the next command.
                if matches!(command, DmaCommand::CopyToHost { offset, bytes, .. } if offset + bytes >= self.settings.bytes)
                {
                    self.complete(hardware);
                }
            }
            HostEvent::Transmitted if self.settings.direction == TrafficDirection::Send => {
                self.complete(hardware)
            }
            HostEvent::Transmitted => {}
            HostEvent::Moved(packet) => match self.processor.present() {
                Some(DriverTask::Send(sent)) if self.is_moving => {
                    self.is_moving = false;
                    self.push_transmit(sent, hardware);
                    self.send_registers(hardware);
                    self.end_unless_waiting(hardware);
                }
                Some(DriverTask::Receive(_)) if self.is_moving => {
                    self.is_moving = false;
                    self.ring.push(hardware, DmaCommand::Recycle { packet });
                    self.processor.push_first(std::iter::once(DriverTask::Deliver));
                    if !self.has_interrupts {
                        self.tell_producer(hardware);
                    }
                    self.end_unless_waiting(hardware);
                }
                _ => {
                    self.processor.push(DriverTask::Transmit(packet.into()));
                    self.go_on(hardware);
                }
            },
        }
    }

    fn is_finished(&self) -> bool {
        self.done == self.settings.packets
    }
}

/// Parts of a buffer, a page each: offsets and bytes.
fn pages(bytes: u32, page: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..bytes).step_by(page as usize).map(move |offset| (offset, page.min(bytes - offset)))
}
