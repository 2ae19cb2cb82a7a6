//! The parts of a sample: what its windows have of each process, and of each unit of work.

use std::collections::{BTreeMap, HashMap};

use events::Thread;

use super::sampling::WindowSums;

/// The owner of a part of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SampleOwner {
    /// The process.
    pub process: u32,
    /// The unit of work that the process's thread is in, if any.
    pub unit: Option<u64>,
}

/// Instructions and the count of an owner in a window.
#[derive(Clone, Copy, Debug)]
struct WindowShare {
    window: u64,
    instructions: u64,
    count: u64,
}

/// A sample's part of an owner.
#[derive(Clone, Debug, Default)]
struct SamplePart {
    /// All instructions, in windows or not.
    instructions: u64,
    shares: Vec<WindowShare>,
}

/// All parts of a sample. What is executed between two changes of the owner or of the sampler's phase belongs to one part, and to one
/// window or to none.
#[derive(Clone, Debug, Default)]
pub(super) struct SampleParts {
    parts: HashMap<SampleOwner, SamplePart>,
    /// The number of windows, with those of merged samples.
    windows: u64,
    /// The number of the last window that has begun.
    window: u64,
    thread: u32,
    owner: SampleOwner,
    /// By thread, the unit that it is in.
    open: HashMap<u32, u64>,
    /// Instructions and the count at the last change.
    last: (u64, u64),
}

impl SampleParts {
    /// Whether another thread than this one has executed last.
    pub fn is_other(&self, thread: Thread) -> bool {
        (self.thread, self.owner.process) != (thread.number, thread.process)
    }

    /// Adds to the owner what was executed since the last change. `now` has the instructions and the count altogether.
    pub fn settle(&mut self, now: (u64, u64), is_measured: bool) {
        let (instructions, count) = (now.0 - self.last.0, now.1 - self.last.1);
        self.last = now;
        if instructions == 0 && count == 0 {
            return;
        }
        let part = self.parts.entry(self.owner).or_default();
        part.instructions += instructions;
        if is_measured {
            part.shares.push(WindowShare { window: self.window, instructions, count });
        }
    }

    /// A window begins.
    pub fn begin_window(&mut self) {
        self.windows += 1;
        self.window = self.windows;
    }

    /// A thread executes from now on.
    pub fn enter(&mut self, thread: Thread) {
        self.thread = thread.number;
        self.owner = SampleOwner { process: thread.process, unit: self.open.get(&thread.number).copied() };
    }

    /// The thread is in this unit from now on, or in none.
    pub fn enter_unit(&mut self, unit: Option<u64>) {
        self.owner.unit = unit;
        match unit {
            Some(unit) => self.open.insert(self.thread, unit),
            None => self.open.remove(&self.thread),
        };
    }

    /// Forgets all parts; there are these instructions and this count from now on.
    pub fn reset(&mut self, now: (u64, u64)) {
        self.parts.clear();
        self.last = now;
    }

    /// Adds the parts of another execution, with so many instructions and such a count. Its windows are others.
    pub fn merge(&mut self, ended: SampleParts, (instructions, count): (u64, u64)) {
        for (owner, mut part) in ended.parts {
            part.shares.iter_mut().for_each(|share| share.window += self.windows);
            let own = self.parts.entry(owner).or_default();
            own.instructions += part.instructions;
            own.shares.append(&mut part.shares);
        }
        self.windows += ended.windows;
        self.last = (self.last.0 + instructions, self.last.1 + count);
    }

    /// The sums of owners with the same key: of a class or a process, which is a domain of the sample (Cochran, "Sampling Techniques",
    /// section 2.13). Windows without any of its instructions say nothing of it.
    pub fn sums<K: Ord>(&self, key: impl Fn(SampleOwner) -> K) -> BTreeMap<K, WindowSums<1>> {
        let mut domains: BTreeMap<K, (u64, BTreeMap<u64, [u64; 2]>)> = BTreeMap::new();
        for (&owner, part) in &self.parts {
            let (instructions, windows) = domains.entry(key(owner)).or_default();
            *instructions += part.instructions;
            for share in &part.shares {
                let sum = windows.entry(share.window).or_default();
                *sum = [sum[0] + share.instructions, sum[1] + share.count];
            }
        }
        let sums = |(instructions, windows): (u64, BTreeMap<u64, [u64; 2]>)| {
            let mut sums = WindowSums::unmeasured(instructions);
            windows.into_values().for_each(|[instructions, count]| sums.add_window(instructions, &[count]));
            sums
        };
        domains.into_iter().map(|(key, domain)| (key, sums(domain))).collect()
    }
}
