//! Replays a driver's log on a model.

use std::collections::VecDeque;

use super::log::{AdapterLogRecord, Awaited, LogError};
use super::{AdapterModel, AdapterProgram};
use crate::clock::{NANOSECOND, Picoseconds};
use crate::description::AdapterDescription;
use crate::faults::LinkFaults;
use crate::hardware::{AdapterCounts, DmaCommand, FarEnd, Hardware, HostEvent};
use crate::interconnect::InterconnectCounts;

/// A log as a program of the host: it does what the log says, one record after another.
#[derive(Debug)]
pub struct LogReplay<I> {
    records: I,
    error: Option<LogError>,
    /// Records so far.
    done: u64,
    is_finished: bool,
    waits: Option<Waiting>,
    counts: [u64; 4],
    /// Packets that will come, by circuit, with their places in the log.
    expected: Vec<VecDeque<usize>>,
    /// The adapter's numbers of packets, by their places in the log.
    packets: Vec<Option<u32>>,
}

/// The condition that the next record waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Timer,
    Value,
    Moved,
    Events(Awaited, u64),
}

/// Why a replay has no result.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log waits for something that does not come.
    #[error("record {record} of the log waits for what does not come any more: {reason}")]
    Stalled {
        /// The number of the record, from 1.
        record: u64,
        /// The condition that it waits for.
        reason: String,
    },
}

/// Results of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayResult {
    /// The time until nothing happens any more.
    pub time: Picoseconds,
    /// The records.
    pub records: u64,
    /// The adapter's counts.
    pub counts: AdapterCounts,
    /// The bus's counts.
    pub bus: InterconnectCounts,
}

impl<I: Iterator<Item = Result<AdapterLogRecord, LogError>>> LogReplay<I> {
    /// Replays records on an adapter.
    ///
    /// ```
    /// use pathlength_adapter::{AdapterDescription, LogReplay, log::LogReader};
    /// let log = "pathlength-adapter-log 1\n\
    ///     arrive 3 1000\n\
    ///     await summaries 1\n\
    ///     command 0 copy-to-host 0 0 65536 1000\n\
    ///     command 1 recycle 0\n\
    ///     write command-producer 2\n\
    ///     await executed 2\n";
    /// let dart = AdapterDescription::find("dart").unwrap();
    /// let result = LogReplay::run(&dart, LogReader::new(log.as_bytes()).unwrap()).unwrap();
    /// assert_eq!((result.counts.cells_received, result.counts.cells_recycled), (21, 21));
    /// ```
    pub fn run(description: &AdapterDescription, records: I) -> Result<ReplayResult, ReplayError> {
        let replay = LogReplay {
            records,
            error: None,
            done: 0,
            is_finished: false,
            waits: None,
            counts: [0; 4],
            expected: vec![VecDeque::new(); description.link.circuits as usize],
            packets: Vec::new(),
        };
        let mut model = AdapterModel::new(description, FarEnd::Network, LinkFaults::NONE, replay);
        let ended = model.run();
        // The adapter finishes its work after the last record.
        while ended.is_ok() && model.step() {}
        let hardware = model.hardware();
        let (time, counts, bus) = (hardware.now(), hardware.counts(), hardware.bus_counts());
        let replay = model.into_host();
        if let Some(error) = replay.error {
            return Err(error.into());
        }
        match ended {
            Ok(()) => Ok(ReplayResult { time, records: replay.done, counts, bus }),
            Err(_) => Err(ReplayError::Stalled { record: replay.done, reason: replay.wanted() }),
        }
    }

    /// The condition that the present record waits for, in words.
    fn wanted(&self) -> String {
        match self.waits {
            Some(Waiting::Events(awaited, number)) => {
                format!("{number} {awaited:?}, and there were {}", self.counts[awaited as usize])
                    .to_lowercase()
            }
            _ => "the end of an operation".into(),
        }
    }

    /// Does records until one must wait.
    fn go_on(&mut self, hardware: &mut Hardware) {
        loop {
            match self.waits {
                Some(Waiting::Events(awaited, number)) if self.counts[awaited as usize] >= number => {}
                Some(_) => return,
                None => {}
            }
            self.waits = None;
            match self.records.next() {
                Some(Ok(record)) => {
                    self.done += 1;
                    self.apply(record, hardware);
                }
                Some(Err(error)) => {
                    self.error = Some(error);
                    self.is_finished = true;
                    return;
                }
                None => {
                    self.is_finished = true;
                    return;
                }
            }
        }
    }

    fn apply(&mut self, record: AdapterLogRecord, hardware: &mut Hardware) {
        match record {
            AdapterLogRecord::Delay(nanoseconds) => {
                hardware.wake_after(Picoseconds::from(nanoseconds) * NANOSECOND);
                self.waits = Some(Waiting::Timer);
            }
            AdapterLogRecord::Read(register) => {
                hardware.read_register(register);
                self.waits = Some(Waiting::Value);
            }
            AdapterLogRecord::Write(register, value) => hardware.write_register(register, value),
            AdapterLogRecord::Command(index, command) => {
                hardware.write_command(index, self.with_packet(command));
            }
            AdapterLogRecord::Store(adapter, bytes) if bytes > 0 => {
                hardware.programmed_write(0, adapter, bytes, 0);
                self.waits = Some(Waiting::Moved);
            }
            AdapterLogRecord::Load(packet, bytes) if bytes > 0 => {
                hardware.programmed_read(self.number(packet), 0, bytes, 0);
                self.waits = Some(Waiting::Moved);
            }
            AdapterLogRecord::Store(..) | AdapterLogRecord::Load(..) => {}
            AdapterLogRecord::Arrive(circuit, bytes) => {
                if let Some(expected) = self.expected.get_mut(circuit as usize) {
                    expected.push_back(self.packets.len());
                }
                self.packets.push(None);
                hardware.remote_send(circuit, bytes);
            }
            AdapterLogRecord::Await(awaited, number) => self.waits = Some(Waiting::Events(awaited, number)),
        }
    }

    /// The adapter's number of the log's packet; one that it does not have if the packet has not come.
    fn number(&self, packet: u32) -> u32 {
        self.packets.get(packet as usize).copied().flatten().unwrap_or(u32::MAX)
    }

    fn with_packet(&self, command: DmaCommand) -> DmaCommand {
        match command {
            DmaCommand::CopyToHost { packet, offset, host, bytes } => {
                DmaCommand::CopyToHost { packet: self.number(packet), offset, host, bytes }
            }
            DmaCommand::Recycle { packet } => DmaCommand::Recycle { packet: self.number(packet) },
            other => other,
        }
    }
}

impl<I: Iterator<Item = Result<AdapterLogRecord, LogError>>> AdapterProgram for LogReplay<I> {
    fn start(&mut self, hardware: &mut Hardware) {
        self.go_on(hardware);
    }

    fn observe(&mut self, event: HostEvent, hardware: &mut Hardware) {
        let counted = match event {
            HostEvent::Summary(summary) => {
                let place = self.expected.get_mut(summary.circuit as usize).and_then(VecDeque::pop_front);
                if let Some(packet) = place.and_then(|place| self.packets.get_mut(place)) {
                    *packet = summary.packet;
                }
                Some(Awaited::Summaries)
            }
            HostEvent::Executed(_) => Some(Awaited::Executed),
            HostEvent::Transmitted => Some(Awaited::Transmitted),
            HostEvent::Interrupt(_) => Some(Awaited::Interrupts),
            _ => None,
        };
        if let Some(awaited) = counted {
            self.counts[awaited as usize] += 1;
        }
        let ended = match event {
            HostEvent::Timer => Waiting::Timer,
            HostEvent::Value(..) => Waiting::Value,
            HostEvent::Moved(_) => Waiting::Moved,
            _ => return self.go_on(hardware),
        };
        if self.waits == Some(ended) {
            self.waits = None;
            self.go_on(hardware);
        }
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }
}
