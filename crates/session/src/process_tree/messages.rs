//! What a process sends to the one that observes it: the calls of a [`Consumer`], as words.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use engine::{AttachedConsumers, ConsumerOfFork, ForkedConsumer, ForkedProcess, ProcessNumber};
use events::{Block, Consumer, MappedImage, Object, ProcessEnd, Thread};
use serde::{Deserialize, Serialize};

use super::rings::{RingWriter, Rings};

/// A message.
#[derive(Debug, PartialEq)]
pub enum RingMessage<'a> {
    /// In JSON.
    Event(ProcessEvent),
    /// A block was defined: its address, its image and its words.
    Block(u64, Option<u32>, Vec<u32>),
    /// A thread executed these records.
    Records(u32, &'a mut [u64]),
}

/// A rare event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ProcessEvent {
    /// The first message: the process, and its number among all observed ones.
    Began(ProcessNumber, u32),
    /// The next image was mapped.
    Image(MappedImage),
    /// The next object was defined.
    Object(Object),
    /// A unit of work, by its number among those of all processes, is of this class.
    UnitClass(u64, String),
    /// Another program replaces this one.
    Replaced,
    /// The process ended.
    Ended(ProcessEnd),
}

const EVENT: u64 = 0;
const BLOCK: u64 = 1;
const RECORDS: u64 = 2;

/// The first word of a message: its kind, a thread, and the number of words that follow.
fn head(kind: u64, thread: u32, words: usize) -> u64 {
    assert!(words < 1 << 30);
    kind << 62 | u64::from(thread) << 30 | words as u64
}

/// The first message, if it is whole, and its length.
pub fn first(words: &mut [u64]) -> Option<(RingMessage<'_>, usize)> {
    let head = *words.first()?;
    let length = 1 + (head & ((1 << 30) - 1)) as usize;
    let words = words.get_mut(1..length)?;
    let message = match head >> 62 {
        EVENT => {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            RingMessage::Event(serde_json::from_slice(&bytes).expect("this program wrote it"))
        }
        BLOCK => {
            let image = u32::try_from(words[1]).ok();
            RingMessage::Block(words[0], image, words[2..].iter().map(|&word| word as u32).collect())
        }
        _ => RingMessage::Records((head >> 30) as u32, words),
    };
    Some((message, length))
}

/// Sends what a process executes to the one that observes it.
pub struct RingConsumer {
    ring: RingWriter,
}

impl RingConsumer {
    /// Of the first process.
    pub fn first(rings: Rings) -> Option<RingConsumer> {
        RingConsumer::new(&rings, &ProcessNumber::first(), 0)
    }

    fn new(rings: &Rings, process: &ProcessNumber, number: u32) -> Option<RingConsumer> {
        let mut consumer = RingConsumer { ring: rings.open()? };
        consumer.event(&ProcessEvent::Began(process.clone(), number));
        Some(consumer)
    }

    fn event(&mut self, event: &ProcessEvent) {
        let mut text = serde_json::to_vec(event).expect("events can be written as JSON");
        // JSON may end with spaces.
        text.resize(text.len().next_multiple_of(8), b' ');
        let words: Vec<u64> = text
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            .collect();
        self.ring.write(&[head(EVENT, 0, words.len())]);
        self.ring.write(&words);
    }
}

impl Consumer for RingConsumer {
    fn map(&mut self, image: &MappedImage) {
        self.event(&ProcessEvent::Image(image.clone()));
    }

    fn define(&mut self, block: &Block) {
        let image = block.image.map_or(u64::MAX, u64::from);
        let mut message = vec![head(BLOCK, 0, block.words.len() + 2), block.address, image];
        message.extend(block.words.iter().map(|&word| u64::from(word)));
        self.ring.write(&message);
    }

    fn object(&mut self, object: &Object) {
        self.event(&ProcessEvent::Object(object.clone()));
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.ring.write(&[head(RECORDS, thread.number, records.len())]);
        self.ring.write(records);
    }

    fn unit_class(&mut self, unit: u64, class: &str) {
        self.event(&ProcessEvent::UnitClass(unit, class.into()));
    }

    fn replaced(&mut self) {
        self.event(&ProcessEvent::Replaced);
    }

    fn ended(&mut self, how: ProcessEnd) {
        self.event(&ProcessEvent::Ended(how));
    }
}

/// Makes the consumers of processes that a process forks.
pub struct RingConsumers {
    rings: Rings,
    parent: ProcessNumber,
}

impl RingConsumers {
    /// Those of the first process's children.
    pub fn first(rings: Rings) -> RingConsumers {
        RingConsumers { rings, parent: ProcessNumber::first() }
    }
}

impl ForkedConsumer for RingConsumers {
    fn forked(&self, process: ForkedProcess) -> Option<ConsumerOfFork> {
        let number = self.parent.child(process.ordinal);
        let consumer = RingConsumer::new(&self.rings, &number, process.number)?;
        let heirs = RingConsumers { rings: self.rings.clone(), parent: number };
        Some((Arc::new(Mutex::new(consumer)), Arc::new(heirs)))
    }
}

/// Makes the consumers of processes that a client of [`observe_running`](super::observe_running) observes.
pub struct AttachedRings;

impl AttachedConsumers for AttachedRings {
    fn attached(&self, file: OwnedFd, process: ForkedProcess) -> io::Result<ConsumerOfFork> {
        let rings = Rings::map(&file.into())?;
        let number = ProcessNumber::root(process.ordinal);
        let consumer = RingConsumer::new(&rings, &number, process.number)
            .ok_or_else(|| io::Error::other("too many processes are observed at the same time"))?;
        Ok((Arc::new(Mutex::new(consumer)), Arc::new(RingConsumers { rings, parent: number })))
    }
}
