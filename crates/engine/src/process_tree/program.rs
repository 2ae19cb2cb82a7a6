//! A program that a process executes: what its threads share.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;

use events::LoadedImage;

use super::area::{Area, ClassBlockCounts};
use super::log::{Inherited, Log, LogEntry, LogName, UnitEntry};
use crate::platform::Platform;
use guest::DecodedBlock;

/// The most classes of units of a process; those that come later are one.
const MOST_CLASSES: usize = 500;
/// The class of the units of later classes.
pub(super) const OTHER_CLASSES: &str = "(other classes)";

/// A program, whose threads enter what they define into its log.
pub(super) struct LoggedProgram {
    folder: i32,
    name: LogName,
    log: Log,
    /// The guest is in the log.
    has_guest: bool,
    /// The numbers of blocks, by address and words.
    ids: HashMap<(u64, Vec<u32>), u32>,
    /// Number of threads so far.
    threads: u32,
    /// Number of images in the log.
    images: usize,
    classes: HashMap<String, u32>,
    sums: Vec<ClassBlockCounts>,
    /// The engine's descriptors are open as long as this exists.
    _descriptors: linux_user::DescriptorOwner,
}

impl LoggedProgram {
    pub(super) fn new(folder: i32, name: LogName, inherited: Option<Inherited>) -> io::Result<LoggedProgram> {
        let log = Log::new(folder, &name, inherited)?;
        Ok(LoggedProgram {
            folder,
            name,
            log,
            has_guest: false,
            ids: HashMap::new(),
            threads: 0,
            images: 0,
            classes: HashMap::new(),
            sums: Vec::new(),
            _descriptors: linux_user::DescriptorOwner::new(),
        })
    }

    /// The program in a process that a thread of `parent` forked, and whether it has what that thread defined. It has not if
    /// another thread of the parent was changing the log then.
    pub(super) fn forked(
        parent: &Mutex<LoggedProgram>,
        (folder, name): (i32, LogName),
        thread: u32,
    ) -> io::Result<(LoggedProgram, bool)> {
        match parent.try_lock() {
            Ok(mut parent) => {
                let (log, bytes) = (parent.name.clone(), parent.log.bytes());
                let child = LoggedProgram::new(folder, name, Some(Inherited { log, bytes, thread }))?;
                let (ids, images) = (std::mem::take(&mut parent.ids), parent.images);
                Ok((LoggedProgram { has_guest: parent.has_guest, ids, images, ..child }, true))
            }
            Err(_) => Ok((LoggedProgram::new(folder, name, None)?, false)),
        }
    }

    /// Another program takes the place of this one, which has ended.
    pub(super) fn replaced(&mut self) -> io::Result<LoggedProgram> {
        self.end(LogEntry::Replaced)?;
        LoggedProgram::new(self.folder, self.name.next(), None)
    }

    /// A new thread.
    pub(super) fn thread(&mut self) -> io::Result<(u32, Area)> {
        let thread = self.threads;
        self.threads += 1;
        Ok((thread, Area::new(self.folder, self.name.area(thread))?))
    }

    /// Appends to the log.
    pub(super) fn log(&mut self, entries: &[LogEntry]) -> io::Result<()> {
        self.log.append(entries)
    }

    /// A thread has mapped its image of this number, from 1. Each thread reports each image.
    pub(super) fn mapped(&mut self, number: usize, image: &LoadedImage) -> io::Result<()> {
        if number <= self.images {
            return Ok(());
        }
        self.images = number;
        self.log(&[LogEntry::Image(image.clone())])
    }

    /// Numbers the next blocks of a thread.
    pub(super) fn define<G: Platform>(
        &mut self,
        thread: u32,
        blocks: &[DecodedBlock<G>],
    ) -> io::Result<Vec<u32>> {
        let mut entries = Vec::new();
        if !std::mem::replace(&mut self.has_guest, true) {
            entries.push(LogEntry::Guest(G::INSTRUCTION_SET));
        }
        let number = |block: &DecodedBlock<G>| {
            let next = self.ids.len() as u32;
            let key = (block.address, block.words.clone());
            let number = *self.ids.entry(key).or_insert_with_key(|(address, words)| {
                entries.push(LogEntry::Block(*address, words.clone()));
                next
            });
            entries.push(LogEntry::Numbered(thread, number));
            number
        };
        let numbers = blocks.iter().map(number).collect();
        self.log(&entries)?;
        Ok(numbers)
    }

    /// A unit of a class has ended, with these executions of blocks.
    pub(super) fn unit(
        &mut self,
        class: &str,
        unit: UnitEntry,
        executed: impl Iterator<Item = (u32, u64)>,
    ) -> io::Result<()> {
        let class = self.class(class)?;
        self.sums[class as usize].add(self.ids.len(), executed)?;
        self.log(&[LogEntry::Unit(UnitEntry { class, ..unit })])
    }

    /// The number of a class.
    fn class(&mut self, name: &str) -> io::Result<u32> {
        let is_known = self.classes.contains_key(name) || self.classes.len() < MOST_CLASSES;
        let name = if is_known { name } else { OTHER_CLASSES };
        if let Some(&number) = self.classes.get(name) {
            return Ok(number);
        }
        let number = self.sums.len() as u32;
        self.sums.push(ClassBlockCounts::new(self.folder, self.name.class(number))?);
        self.classes.insert(name.into(), number);
        self.log(&[LogEntry::Class(name.into())])?;
        Ok(number)
    }

    /// The program has ended in this way, and all threads have settled.
    pub(super) fn end(&mut self, how: LogEntry) -> io::Result<()> {
        let sums = (0..).zip(&self.sums).map(|(class, sums)| LogEntry::ClassSettled(class, sums.executed()));
        let entries: Vec<LogEntry> = sums.chain([how]).collect();
        self.log(&entries)?;
        self.sums.iter().for_each(ClassBlockCounts::remove);
        Ok(())
    }
}
