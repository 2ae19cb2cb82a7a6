//! Consumers of executions, of a running program or a replayed trace.

use serde::{Deserialize, Serialize};

use crate::{Block, BlockId, HitFilter, MappedImage, ProcessEnd};

/// The thread that executed something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The number of its process, from 0.
    pub process: u32,
    /// Its own number among the threads of all processes, from 0.
    pub number: u32,
}

/// Something that functions of the program work on, such as an operator of a query: calls with an argument that identifies
/// it are calls for the object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Object {
    /// The number of the object for which the first call of this one was made; 0 if there is none.
    pub parent: u32,
    /// Its name; objects with the same parent have different ones.
    pub name: String,
    /// A number that it has in all processes that work on it.
    pub identity: Option<u64>,
}

/// The parent of objects that are none, but labels of the numbers that are their identities.
pub const LABELS: u32 = u32::MAX;

/// The character before a number that its label replaces in names: a character of no text.
pub const LABELLED_NUMBER: char = '\u{e000}';

/// Consumes an execution in order.
pub trait Consumer: Send {
    /// Defines an image that later blocks may refer to. Images are numbered from 0 in the order of definition.
    fn map(&mut self, _image: &MappedImage) {}

    /// Defines a block that later records may refer to. Blocks are numbered from 0 in the order of definition.
    fn define(&mut self, block: &Block);

    /// Defines an object that marks may refer to. Objects are numbered from 1 in the order of definition; a parent comes before its
    /// children.
    fn object(&mut self, _object: &Object) {}

    /// Consumes whole [`record`](crate::record)s of a thread. Their blocks are defined. Records of different threads
    /// alternate; those of a running program have no order marks.
    fn executed(&mut self, thread: Thread, records: &[u64]);

    /// Executions of a thread that follow are on this processor. Only replays that assign threads to processors call it.
    fn runs_on(&mut self, _thread: Thread, _processor: u32) {}

    /// The hit filter, if the consumer has one. While a single thread executes and reports to the consumer directly,
    /// compiled code may look up accesses in the filter. It then reports only accesses that miss the filter
    /// ([`FilterTable::on_unfiltered`](crate::FilterTable::on_unfiltered)) and how often each block was executed
    /// ([`Consumer::executed_filtered`]), instead of records. The consumer must then stay at its address.
    fn hit_filter(&mut self) -> Option<HitFilter> {
        None
    }

    /// The consumer's number of a block's first instruction; the block's other instructions are numbered
    /// consecutively. Unfiltered accesses are reported with these numbers.
    fn first_instruction(&self, _block: BlockId) -> u32 {
        0
    }

    /// The block was executed this many times, of which only unfiltered accesses were reported, and no records.
    /// Called before marks of units of work that follow are reported.
    fn executed_filtered(&mut self, _block: BlockId, _executions: u64) {}

    /// A unit of work is of this class. Called before the mark of the unit's end is reported, and only if the classes of units
    /// are wanted.
    fn unit_class(&mut self, _unit: u64, _class: &str) {}

    /// The observed process executes another program from now on. Not called on a thread of the consumer's own.
    fn replaced(&mut self) {}

    /// The observed process has ended, if it could say so. Not called on a thread of the consumer's own.
    fn ended(&mut self, _how: ProcessEnd) {}

    /// The process of this number, one of several that are observed, executes nothing any more.
    fn process_ended(&mut self, _process: u32) {}
}

/// A consumer whose type is known at run time only.
impl<C: Consumer + ?Sized> Consumer for Box<C> {
    fn map(&mut self, image: &MappedImage) {
        (**self).map(image);
    }

    fn define(&mut self, block: &Block) {
        (**self).define(block);
    }

    fn object(&mut self, object: &Object) {
        (**self).object(object);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        (**self).executed(thread, records);
    }

    fn runs_on(&mut self, thread: Thread, processor: u32) {
        (**self).runs_on(thread, processor);
    }

    fn hit_filter(&mut self) -> Option<HitFilter> {
        (**self).hit_filter()
    }

    fn first_instruction(&self, block: BlockId) -> u32 {
        (**self).first_instruction(block)
    }

    fn executed_filtered(&mut self, block: BlockId, executions: u64) {
        (**self).executed_filtered(block, executions);
    }

    fn unit_class(&mut self, unit: u64, class: &str) {
        (**self).unit_class(unit, class);
    }

    fn replaced(&mut self) {
        (**self).replaced();
    }

    fn ended(&mut self, how: ProcessEnd) {
        (**self).ended(how);
    }

    fn process_ended(&mut self, process: u32) {
        (**self).process_ended(process);
    }
}

/// Several consumers of the same execution.
impl<C: Consumer> Consumer for Vec<C> {
    fn map(&mut self, image: &MappedImage) {
        self.iter_mut().for_each(|one| one.map(image));
    }

    fn define(&mut self, block: &Block) {
        self.iter_mut().for_each(|one| one.define(block));
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.iter_mut().for_each(|one| one.executed(thread, records));
    }

    fn hit_filter(&mut self) -> Option<HitFilter> {
        // An access may hit one consumer's filter and miss another's, so several consumers use none.
        if let [one] = &mut self[..] { one.hit_filter() } else { None }
    }

    fn first_instruction(&self, block: BlockId) -> u32 {
        self.first().map_or(0, |one| one.first_instruction(block))
    }

    fn executed_filtered(&mut self, block: BlockId, executions: u64) {
        self.iter_mut().for_each(|one| one.executed_filtered(block, executions));
    }

    fn unit_class(&mut self, unit: u64, class: &str) {
        self.iter_mut().for_each(|one| one.unit_class(unit, class));
    }

    fn process_ended(&mut self, process: u32) {
        self.iter_mut().for_each(|one| one.process_ended(process));
    }
}
