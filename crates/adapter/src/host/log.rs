//! The log of a driver: what it told an adapter, and which packets came. [`LogReplay`](crate::LogReplay) gives it to a model.
//!
//! A log is text. Its first line is `pathlength-adapter-log 1`; each further line is a record, words and decimal numbers with single spaces
//! between them; empty lines and lines that begin with `#` are skipped. The order is the order in which the driver did things;
//! the times are the model's. docs/adapters.md lists the records.

use std::fmt;
use std::io::{BufRead, Read};
use std::str::FromStr;

use crate::hardware::{AdapterRegister, DmaCommand};

/// The first line.
pub const FIRST_LINE: &str = "pathlength-adapter-log 1";

/// The longest line.
const LONGEST_LINE: usize = 200;

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdapterLogRecord {
    /// The processor works for so many ns.
    Delay(u32),
    /// It reads a CSR, and waits for the value.
    Read(AdapterRegister),
    /// It writes a CSR.
    Write(AdapterRegister, u32),
    /// It writes a command into the ring, at an index.
    Command(u32, DmaCommand),
    /// It writes bytes to the data memory by programmed I/O: the address there, and the number.
    Store(u32, u32),
    /// It reads a packet by programmed I/O: the packet, and the number of bytes.
    Load(u32, u32),
    /// The network brings a packet: its circuit, and its bytes.
    Arrive(u32, u32),
    /// The driver waits until so many of something have come since the beginning.
    Await(Awaited, u64),
}

/// An event that a driver can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Summaries of packets in host memory.
    Summaries,
    /// Commands that were executed.
    Executed,
    /// Transmissions whose cells have all left.
    Transmitted,
    /// Interrupts.
    Interrupts,
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It cannot be read at all.
    #[error("cannot read the adapter's log: {0}")]
    Unreadable(#[from] std::io::Error),
    /// It is no log, or of another version.
    #[error("line 1: this is no adapter's log; its first line must be {FIRST_LINE:?}")]
    NoLog,
    /// A line is wrong.
    #[error("line {line}: {reason}")]
    Line {
        /// The number of the line.
        line: u64,
        /// Why.
        reason: String,
    },
}

const REGISTERS: [(&str, AdapterRegister); 8] = [
    ("cause", AdapterRegister::Cause),
    ("command-producer", AdapterRegister::CommandProducer),
    ("command-consumer", AdapterRegister::CommandConsumer),
    ("summary-consumer", AdapterRegister::SummaryConsumer),
    ("first-holdoff", AdapterRegister::FirstHoldoff),
    ("second-holdoff", AdapterRegister::SecondHoldoff),
    ("reset", AdapterRegister::Reset),
    ("other", AdapterRegister::Other),
];

const AWAITED: [(&str, Awaited); 4] = [
    ("summaries", Awaited::Summaries),
    ("executed", Awaited::Executed),
    ("transmitted", Awaited::Transmitted),
    ("interrupts", Awaited::Interrupts),
];

fn named<T: Copy + PartialEq>(names: &'static [(&str, T)], value: T) -> &'static str {
    names.iter().find(|(_, one)| *one == value).map_or("", |(name, _)| name)
}

impl fmt::Display for AdapterLogRecord {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match *self {
            AdapterLogRecord::Delay(nanoseconds) => write!(f, "delay {nanoseconds}"),
            AdapterLogRecord::Read(register) => write!(f, "read {}", named(&REGISTERS, register)),
            AdapterLogRecord::Write(register, value) => {
                write!(f, "write {} {value}", named(&REGISTERS, register))
            }
            AdapterLogRecord::Store(adapter, bytes) => write!(f, "store {adapter} {bytes}"),
            AdapterLogRecord::Load(packet, bytes) => write!(f, "load {packet} {bytes}"),
            AdapterLogRecord::Arrive(circuit, bytes) => write!(f, "arrive {circuit} {bytes}"),
            AdapterLogRecord::Await(awaited, number) => {
                write!(f, "await {} {number}", named(&AWAITED, awaited))
            }
            AdapterLogRecord::Command(index, command) => {
                write!(f, "command {index} ")?;
                match command {
                    DmaCommand::CopyToAdapter { host, adapter, bytes } => {
                        write!(f, "copy-to-adapter {host} {adapter} {bytes}")
                    }
                    DmaCommand::Transmit { circuit, adapter, bytes, packet_bytes } => {
                        write!(f, "transmit {circuit} {adapter} {bytes} {packet_bytes}")
                    }
                    DmaCommand::Send { circuit, host, bytes } => write!(f, "send {circuit} {host} {bytes}"),
                    DmaCommand::CopyToHost { packet, offset, host, bytes } => {
                        write!(f, "copy-to-host {packet} {offset} {host} {bytes}")
                    }
                    DmaCommand::Recycle { packet } => write!(f, "recycle {packet}"),
                    DmaCommand::Report => f.write_str("report"),
                }
            }
        }
    }
}

/// The words of a line.
struct RecordWords<'a>(std::str::Split<'a, char>);

impl RecordWords<'_> {
    fn number<T: FromStr>(&mut self, name: &str) -> Result<T, String> {
        let word = self.0.next().ok_or_else(|| format!("{name} is missing"))?;
        let is_decimal = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let number = word.parse().ok().filter(|_| is_decimal);
        number.ok_or_else(|| format!("{name} is {word:?}, which is no number that fits"))
    }

    fn name<T: Copy>(&mut self, kind: &str, names: &[(&str, T)]) -> Result<T, String> {
        let word = self.0.next().unwrap_or("");
        let found = names.iter().find(|(name, _)| *name == word);
        found.map(|&(_, value)| value).ok_or_else(|| {
            let all: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            format!("{word:?} is no {kind}: give {}", all.join(", "))
        })
    }

    fn command(&mut self) -> Result<DmaCommand, String> {
        Ok(match self.0.next().unwrap_or("") {
            "copy-to-adapter" => DmaCommand::CopyToAdapter {
                host: self.number("the host's address")?,
                adapter: self.number("the adapter's address")?,
                bytes: self.number("the number of bytes")?,
            },
            "transmit" => DmaCommand::Transmit {
                circuit: self.number("the circuit")?,
                adapter: self.number("the adapter's address")?,
                bytes: self.number("the number of bytes")?,
                packet_bytes: self.number("the size of packets")?,
            },
            "send" => DmaCommand::Send {
                circuit: self.number("the circuit")?,
                host: self.number("the host's address")?,
                bytes: self.number("the number of bytes")?,
            },
            "copy-to-host" => DmaCommand::CopyToHost {
                packet: self.number("the packet")?,
                offset: self.number("the offset")?,
                host: self.number("the host's address")?,
                bytes: self.number("the number of bytes")?,
            },
            "recycle" => DmaCommand::Recycle { packet: self.number("the packet")? },
            "report" => DmaCommand::Report,
            other => {
                return Err(format!(
                    "{other:?} is no command: give copy-to-adapter, transmit, send, copy-to-host, recycle, report"
                ));
            }
        })
    }
}

impl FromStr for AdapterLogRecord {
    type Err = String;

    fn from_str(line: &str) -> Result<AdapterLogRecord, String> {
        let mut words = RecordWords(line.split(' '));
        let record = match words.0.next().unwrap_or("") {
            "delay" => AdapterLogRecord::Delay(words.number("the time")?),
            "read" => AdapterLogRecord::Read(words.name("register", &REGISTERS)?),
            "write" => {
                AdapterLogRecord::Write(words.name("register", &REGISTERS)?, words.number("the value")?)
            }
            "command" => AdapterLogRecord::Command(words.number("the index")?, words.command()?),
            "store" => AdapterLogRecord::Store(
                words.number("the adapter's address")?,
                words.number("the number of bytes")?,
            ),
            "load" => {
                AdapterLogRecord::Load(words.number("the packet")?, words.number("the number of bytes")?)
            }
            "arrive" => {
                AdapterLogRecord::Arrive(words.number("the circuit")?, words.number("the number of bytes")?)
            }
            "await" => AdapterLogRecord::Await(words.name("event", &AWAITED)?, words.number("the number")?),
            other => {
                return Err(format!(
                    "{other:?} is no record: give delay, read, write, command, store, load, arrive, await"
                ));
            }
        };
        match words.0.next() {
            None => Ok(record),
            Some(word) => Err(format!("{word:?} is too much")),
        }
    }
}

/// The records of a log, read one after another.
#[derive(Debug)]
pub struct LogReader<R> {
    from: R,
    line: u64,
    text: Vec<u8>,
    has_failed: bool,
}

impl<R: BufRead> LogReader<R> {
    /// Reads a log's first line.
    pub fn new(from: R) -> Result<LogReader<R>, LogError> {
        let mut reader = LogReader { from, line: 0, text: Vec::new(), has_failed: false };
        match reader.next_line()? {
            Some(FIRST_LINE) => Ok(reader),
            _ => Err(LogError::NoLog),
        }
    }

    /// The number of the line that was read last.
    pub fn line(&self) -> u64 {
        self.line
    }

    fn next_line(&mut self) -> Result<Option<&str>, LogError> {
        self.text.clear();
        self.line += 1;
        self.from.by_ref().take(LONGEST_LINE as u64 + 1).read_until(b'\n', &mut self.text)?;
        let wrong = |reason: String| LogError::Line { line: self.line, reason };
        if self.text.is_empty() {
            return Ok(None);
        }
        match self.text.pop_if(|last| *last == b'\n') {
            None if self.text.len() > LONGEST_LINE => {
                return Err(wrong(format!("it is longer than {LONGEST_LINE} bytes")));
            }
            None => return Err(wrong("its end is missing: the log was cut".into())),
            Some(_) => {}
        }
        std::str::from_utf8(&self.text).map(Some).map_err(|_| wrong("it is not text".into()))
    }

    fn next_record(&mut self) -> Result<Option<AdapterLogRecord>, LogError> {
        loop {
            let Some(text) = self.next_line()? else { return Ok(None) };
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let record = text.parse().map(Some);
            return record.map_err(|reason| LogError::Line { line: self.line, reason });
        }
    }
}

impl<R: BufRead> Iterator for LogReader<R> {
    type Item = Result<AdapterLogRecord, LogError>;

    fn next(&mut self) -> Option<Result<AdapterLogRecord, LogError>> {
        if self.has_failed {
            return None;
        }
        let next = self.next_record().transpose();
        self.has_failed = matches!(next, Some(Err(_)));
        next
    }
}
