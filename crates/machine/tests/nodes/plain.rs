//! A plain model of nodes: it goes the way of the hardware, from a processor to its node's bus, its far cache, the home node
//! and the nodes with copies, one line at a time. It has the values of all copies, SCI's lists as pointers in both
//! directions, and searches everything.

use std::collections::{BTreeMap, BTreeSet};

use super::plain_cache::{PlainCache, remove_inner, use_first};
use pathlength_machine::{
    BusOperation, CoherenceState, Directory, InterconnectOperation, Machine, Placement, Protocol,
};

/// An error that is planted into the model, so that a comparison finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    Nothing,
    /// The last node of a list keeps its copy when others are purged.
    LastIsNotPurged,
    /// A far cache evicts a changed line, and memory does not get it.
    WriteBackIsLost,
    /// Processors keep lines that their far cache evicts.
    NotIncluded,
    /// A processor may store if no other processor has a copy, though another node has one.
    ExclusiveWithoutNode,
    /// Of a line between nodes, only the part that was accessed is invalidated in other nodes.
    OtherPartsStay,
    /// A node that leaves a list does not tell its successor.
    ListIsBroken,
}

type Bytes = BTreeMap<u64, u64>;

#[derive(Clone)]
struct PlainCopy {
    state: CoherenceState,
    data: Bytes,
}

/// The knowledge of the home node about a line.
#[derive(Clone, Debug, Default)]
struct PlainHome {
    /// SCI: the first node, and each node's next and previous one.
    head: Option<usize>,
    next: BTreeMap<usize, usize>,
    previous: BTreeMap<usize, usize>,
    /// Bits: who may have a copy, and who may store.
    sharers: BTreeSet<usize>,
    owner: Option<usize>,
    /// Memory is stale.
    is_stale: bool,
}

impl PlainHome {
    /// The nodes of the list, from the head.
    fn list(&self) -> Vec<usize> {
        let mut nodes = Vec::new();
        let mut at = self.head;
        while let Some(node) = at {
            nodes.push(node);
            at = self.next.get(&node).copied().filter(|next| !nodes.contains(next));
        }
        nodes
    }

    fn prepend(&mut self, node: usize) {
        if let Some(head) = self.head.replace(node) {
            self.next.insert(node, head);
            self.previous.insert(head, node);
        }
    }

    fn leave(&mut self, node: usize, planted: Planted) {
        let (next, previous) = (self.next.remove(&node), self.previous.remove(&node));
        match previous {
            Some(previous) => match next {
                Some(next) if planted != Planted::ListIsBroken => drop(self.next.insert(previous, next)),
                _ => drop(self.next.remove(&previous)),
            },
            None => self.head = next,
        }
        if let Some(next) = next {
            match previous {
                Some(previous) => drop(self.previous.insert(next, previous)),
                None => drop(self.previous.remove(&next)),
            }
        }
    }
}

/// The operations that an access needed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlainEvent {
    pub operation: Option<BusOperation>,
    pub supplier: Option<u8>,
    pub invalidated: Vec<u8>,
    pub interconnect: [u8; 7],
    pub hops: u8,
    pub lookups: u8,
}

impl PlainEvent {
    fn count(&mut self, operation: InterconnectOperation, hops: u8) {
        self.interconnect[operation as usize] += 1;
        self.hops += hops;
    }
}

pub struct Plain {
    planted: Planted,
    protocol: Protocol,
    directory: Directory,
    placement: Placement,
    fixed: usize,
    width: usize,
    pub line: u64,
    pub node_line: u64,
    caches: Vec<Vec<PlainCache>>,
    copies: Vec<BTreeMap<u64, PlainCopy>>,
    far: Vec<PlainCache>,
    /// By node: the data of the lines in its far cache.
    far_data: Vec<BTreeMap<u64, Bytes>>,
    memory: Bytes,
    homes: BTreeMap<u64, usize>,
    lines: BTreeMap<u64, PlainHome>,
    latest: Bytes,
}

impl Plain {
    pub fn new(machine: &Machine, processors: usize, planted: Planted) -> Plain {
        let coherence = machine.coherence.as_ref().unwrap();
        let nodes = coherence.nodes.as_ref().unwrap();
        let private = coherence.private_caches(&machine.caches);
        let caches: Vec<PlainCache> =
            private.iter().map(|cache| PlainCache::new(cache.line, cache.ways, cache.sets())).collect();
        let width = nodes.processors as usize;
        let count = processors.div_ceil(width);
        let far = PlainCache::new(
            nodes.far_cache.line,
            nodes.far_cache.ways,
            nodes.far_cache.size / nodes.far_cache.line / u64::from(nodes.far_cache.ways),
        );
        Plain {
            planted,
            protocol: coherence.protocol,
            directory: nodes.directory,
            placement: nodes.placement,
            fixed: nodes.home as usize % count,
            width,
            line: private.last().unwrap().line,
            node_line: nodes.far_cache.line,
            caches: vec![caches; processors],
            copies: vec![BTreeMap::new(); processors],
            far: vec![far; count],
            far_data: vec![BTreeMap::new(); count],
            memory: BTreeMap::new(),
            homes: BTreeMap::new(),
            lines: BTreeMap::new(),
            latest: BTreeMap::new(),
        }
    }

    pub fn state(&self, processor: usize, line: u64) -> CoherenceState {
        self.copies[processor].get(&line).map_or(CoherenceState::Invalid, |copy| copy.state)
    }

    fn processors_of(&self, node: usize) -> std::ops::Range<usize> {
        node * self.width..((node + 1) * self.width).min(self.copies.len())
    }

    /// The home node of a line between nodes, which the first access to its page decides.
    fn home(&mut self, line: u64, node: usize) -> usize {
        let next = match self.placement {
            Placement::FirstTouch => node,
            Placement::RoundRobin => self.homes.len() % self.far.len(),
            Placement::Fixed => self.fixed,
        };
        *self.homes.entry(line * self.node_line / 8192).or_insert(next)
    }

    /// The nodes with a copy in their far caches, and whether memory is valid.
    pub fn node_copies(&self, line: u64) -> (Vec<u8>, bool) {
        let Some(home) = self.lines.get(&line) else { return (Vec::new(), true) };
        let nodes: Vec<usize> = match self.directory {
            Directory::Sci => home.list(),
            Directory::BitVector => {
                (0..self.far.len()).filter(|&node| self.far_data[node].contains_key(&line)).collect()
            }
        };
        let is_valid = match self.directory {
            Directory::Sci => !home.is_stale,
            Directory::BitVector => home.owner.is_none(),
        };
        (nodes.into_iter().map(|node| node as u8).collect(), is_valid)
    }

    /// Data of a line go to its node: to memory, or to the far cache.
    fn write_to_node(&mut self, node: usize, data: &Bytes) {
        let Some(&first) = data.keys().next() else { return };
        let line = first / self.node_line;
        match self.home(line, node) == node {
            true => self.memory.extend(data),
            false => self.far_data[node].entry(line).or_default().extend(data),
        }
    }

    /// The data of a line that a node has.
    fn node_data(&mut self, node: usize, line: u64) -> Bytes {
        let range = line * self.node_line..(line + 1) * self.node_line;
        match self.home(line, node) == node {
            true => self.memory.range(range).map(|(&at, &value)| (at, value)).collect(),
            false => self.far_data[node].get(&line).cloned().unwrap_or_default(),
        }
    }

    /// A processor loses a copy; its data go to the node if they were changed.
    fn lose(&mut self, processor: usize, line: u64) {
        let Some(copy) = self.copies[processor].remove(&line) else { return };
        if copy.state == CoherenceState::Modified {
            self.write_to_node(processor / self.width, &copy.data);
        }
        let caches = &mut self.caches[processor];
        caches.last_mut().unwrap().remove(line);
        remove_inner(caches, line);
    }

    fn parts(&self, line: u64) -> std::ops::Range<u64> {
        let parts = self.node_line / self.line;
        line * parts..(line + 1) * parts
    }

    /// All processors of a node lose all parts of a line.
    fn node_loses(&mut self, node: usize, line: u64, accessed: u64) {
        for processor in self.processors_of(node) {
            for part in self.parts(line) {
                if self.planted != Planted::OtherPartsStay || part == accessed {
                    self.lose(processor, part);
                }
            }
        }
    }

    /// No processor of a node may store to a line any more.
    fn node_shares(&mut self, node: usize, line: u64) {
        for processor in self.processors_of(node) {
            for part in self.parts(line) {
                self.share(processor, part);
            }
        }
    }

    fn share(&mut self, processor: usize, line: u64) {
        let Some(copy) = self.copies[processor].get_mut(&line) else { return };
        let is_changed = copy.state == CoherenceState::Modified;
        let data = copy.data.clone();
        copy.state = CoherenceState::Shared;
        if is_changed {
            self.write_to_node(processor / self.width, &data);
        }
    }

    /// A node's far cache has lost a line.
    fn drop_far(&mut self, node: usize, line: u64) {
        self.far[node].remove(line);
        self.far_data[node].remove(&line);
    }

    /// A line comes into a far cache, which may evict another one.
    fn fill_far(&mut self, node: usize, line: u64, data: Bytes, event: &mut PlainEvent) {
        self.far_data[node].insert(line, data);
        let Some(evicted) = self.far[node].fill(line) else { return };
        if self.planted != Planted::NotIncluded {
            self.node_loses_evicted(node, evicted);
        }
        let data = self.node_data(node, evicted);
        let home = self.lines.entry(evicted).or_default();
        let mut write_back = false;
        match self.directory {
            Directory::Sci => {
                let list = home.list();
                let position = list.iter().position(|&other| other == node).unwrap_or(0);
                if list.len() == 1 && home.is_stale {
                    write_back = true;
                    home.is_stale = false;
                } else {
                    let told = usize::from(position == 0) + usize::from(position > 0);
                    let told = told + usize::from(position + 1 < list.len());
                    (0..told).for_each(|_| event.count(InterconnectOperation::DirectoryUpdate, 0));
                }
                home.leave(node, self.planted);
            }
            Directory::BitVector if home.owner == Some(node) => {
                write_back = home.is_stale;
                if !write_back {
                    event.count(InterconnectOperation::DirectoryUpdate, 0);
                }
                *home = PlainHome::default();
            }
            Directory::BitVector => {}
        }
        if write_back {
            event.count(InterconnectOperation::WriteBack, 0);
            if self.planted != Planted::WriteBackIsLost {
                self.memory.extend(data);
            }
        }
        self.far_data[node].remove(&evicted);
    }

    fn node_loses_evicted(&mut self, node: usize, line: u64) {
        for processor in self.processors_of(node) {
            self.parts(line).for_each(|part| self.lose(processor, part));
        }
    }

    /// A node gets a line to read.
    fn node_reads(&mut self, node: usize, line: u64, event: &mut PlainEvent) {
        let home = self.home(line, node);
        let known = self.lines.entry(line).or_default().clone();
        let is_valid = self.node_copies(line).1;
        if home == node {
            if !is_valid {
                let source = if self.directory == Directory::Sci { known.head } else { known.owner };
                self.node_shares(source.unwrap(), line);
                let data = self.node_data(source.unwrap(), line);
                self.memory.extend(data);
                event.count(InterconnectOperation::Read, 2);
                let known = self.lines.get_mut(&line).unwrap();
                (known.owner, known.is_stale) = (None, false);
            }
            return;
        }
        if self.far[node].touch(line) {
            return;
        }
        event.count(InterconnectOperation::Read, 2);
        event.lookups += 1;
        let source = match self.directory {
            Directory::Sci if known.is_stale => known.head,
            Directory::Sci => None,
            Directory::BitVector => known.owner,
        };
        let others = (0..self.far.len()).filter(|&other| other != node).collect::<Vec<_>>();
        let is_held = others.iter().any(|&other| {
            let mut processors = self.processors_of(other);
            processors.any(|one| self.parts(line).any(|part| self.copies[one].contains_key(&part)))
        });
        others.iter().for_each(|&other| self.node_shares(other, line));
        let data = self.node_data(source.unwrap_or(home), line);
        match self.directory {
            Directory::Sci => {
                match (source, known.head) {
                    (Some(_), _) => event.count(InterconnectOperation::Forward, 2),
                    (None, Some(_)) => event.count(InterconnectOperation::DirectoryUpdate, 0),
                    (None, None) => {}
                }
                self.lines.get_mut(&line).unwrap().prepend(node);
            }
            Directory::BitVector => {
                if source.is_some() {
                    event.count(InterconnectOperation::Forward, 1);
                    self.memory.extend(&data);
                }
                let known = self.lines.get_mut(&line).unwrap();
                let is_only = known.sharers.iter().all(|&other| other == node) && !is_held;
                known.owner = is_only.then_some(node);
                known.is_stale = false;
                known.sharers.insert(node);
            }
        }
        self.fill_far(node, line, data, event);
    }

    /// Whether a node may store to a line without asking.
    fn may_store(&mut self, node: usize, line: u64) -> bool {
        let home = self.home(line, node);
        let known = self.lines.entry(line).or_default();
        match self.directory {
            Directory::Sci if home == node => known.head.is_none(),
            Directory::Sci => known.is_stale && known.list() == [node],
            Directory::BitVector if home == node => known.sharers.is_empty(),
            Directory::BitVector => known.owner == Some(node),
        }
    }

    /// A node gets a line to store to it.
    fn node_stores(&mut self, node: usize, line: u64, accessed: u64, event: &mut PlainEvent) {
        let home = self.home(line, node);
        let has_copy = match home == node {
            true => self.node_copies(line).1,
            false => self.far[node].touch(line),
        };
        if self.may_store(node, line) {
            self.lines.get_mut(&line).unwrap().is_stale = home != node;
            // Another node's processors have nothing of it, unless this is the home node.
            return;
        }
        let known = self.lines[&line].clone();
        let others: Vec<usize> = (0..self.far.len()).filter(|&other| other != node).collect();
        let source = match self.directory {
            Directory::Sci if known.is_stale => known.head,
            Directory::Sci => None,
            Directory::BitVector => known.owner,
        };
        let last = known.list().last().copied();
        for &other in &others {
            if self.planted != Planted::LastIsNotPurged || last != Some(other) {
                self.node_loses(other, line, accessed);
            }
        }
        let data = match has_copy {
            true => self.node_data(node, line),
            false => self.node_data(source.unwrap_or(home), line),
        };
        match self.directory {
            Directory::Sci => self.sci_purges(node, home, line, event),
            Directory::BitVector => {
                let sharers = known.sharers.iter().filter(|&&other| other != node).count();
                match (home == node, known.owner) {
                    (true, Some(_)) => event.count(InterconnectOperation::ReadExclusive, 2),
                    (true, None) => {
                        (0..sharers).for_each(|_| event.count(InterconnectOperation::Invalidation, 0));
                        event.hops += 2;
                    }
                    (false, owner) => {
                        let request = match has_copy {
                            true => InterconnectOperation::Upgrade,
                            false => InterconnectOperation::ReadExclusive,
                        };
                        event.count(request, 2);
                        event.lookups += 1;
                        if owner.is_some() {
                            event.count(InterconnectOperation::Forward, 1);
                        } else if sharers > 0 {
                            (0..sharers).for_each(|_| event.count(InterconnectOperation::Invalidation, 0));
                            event.hops += 1;
                        }
                    }
                }
                let known = self.lines.get_mut(&line).unwrap();
                known.sharers = if home == node { BTreeSet::new() } else { BTreeSet::from([node]) };
                (known.owner, known.is_stale) = ((home != node).then_some(node), home != node);
            }
        }
        for &other in &others {
            self.drop_far(other, line);
        }
        match home == node {
            true => self.memory.extend(data),
            false if has_copy => drop(self.far_data[node].insert(line, data)),
            false => self.fill_far(node, line, data, event),
        }
    }

    /// SCI: a node becomes the head of a list, and purges the others one after another.
    fn sci_purges(&mut self, node: usize, home: usize, line: u64, event: &mut PlainEvent) {
        let planted = self.planted;
        let known = self.lines.get_mut(&line).unwrap();
        let list = known.list();
        let mut rest = list.clone();
        if home == node {
            if known.is_stale {
                event.count(InterconnectOperation::ReadExclusive, 2);
                rest.remove(0);
            }
        } else {
            let was_there = list.contains(&node);
            if was_there && list[0] != node {
                let position = list.iter().position(|&other| other == node).unwrap();
                let told = if position + 1 < list.len() { 2 } else { 1 };
                (0..told).for_each(|_| event.count(InterconnectOperation::DirectoryUpdate, 2));
                known.leave(node, planted);
            }
            if list.first() != Some(&node) {
                let request = match was_there {
                    true => InterconnectOperation::Upgrade,
                    false => InterconnectOperation::ReadExclusive,
                };
                event.count(request, 2);
                event.lookups += 1;
                if known.head.is_some() {
                    let link = match known.is_stale && !was_there {
                        true => InterconnectOperation::Forward,
                        false => InterconnectOperation::DirectoryUpdate,
                    };
                    event.count(link, 2);
                }
                known.prepend(node);
            } else if !known.is_stale {
                event.count(InterconnectOperation::Upgrade, 2);
                event.lookups += 1;
            }
            rest = known.list()[1..].to_vec();
        }
        rest.iter().for_each(|_| event.count(InterconnectOperation::Invalidation, 2));
        *known = PlainHome::default();
        if home != node {
            (known.head, known.is_stale) = (Some(node), true);
        }
    }

    /// Uses a processor's caches; what the outermost evicts goes to the node.
    fn use_caches(&mut self, processor: usize, address: u64) {
        for index in (0..use_first(&mut self.caches[processor], address)).rev() {
            let caches = &mut self.caches[processor];
            let line = address / caches[index].line;
            let evicted = caches[index].fill(line);
            if let Some(evicted) = evicted.filter(|_| index + 1 == caches.len()) {
                self.lose(processor, evicted);
            }
        }
    }

    /// An access; an error if a load does not return what was stored last.
    pub fn access(
        &mut self,
        processor: usize,
        address: u64,
        size: u64,
        value: Option<u64>,
    ) -> Result<PlainEvent, String> {
        let (node, line, whole) = (processor / self.width, address / self.line, address / self.node_line);
        let before = self.state(processor, line);
        self.use_caches(processor, address);
        self.home(whole, node);
        let mut event = PlainEvent::default();
        let others: Vec<usize> = (0..self.copies.len()).filter(|&other| other != processor).collect();
        let dirty = others.iter().copied().find(|&one| self.state(one, line) == CoherenceState::Modified);
        let held: Vec<usize> =
            others.iter().copied().filter(|&one| self.copies[one].contains_key(&line)).collect();
        event.operation = match (before, value) {
            (CoherenceState::Invalid, None) => Some(BusOperation::Read),
            (CoherenceState::Invalid, Some(_)) => Some(BusOperation::ReadForOwnership),
            (CoherenceState::Shared, Some(_)) => Some(BusOperation::Upgrade),
            _ => None,
        };
        if before == CoherenceState::Invalid {
            event.supplier = dirty.map(|one| one as u8);
        }
        if event.operation.is_some_and(|operation| operation != BusOperation::Read) {
            event.invalidated = held.iter().map(|&one| one as u8).collect();
        }
        let in_node: Vec<usize> = self.processors_of(node).filter(|&other| other != processor).collect();
        match value {
            None if before == CoherenceState::Invalid => {
                self.node_reads(node, whole, &mut event);
                in_node.iter().for_each(|&other| self.share(other, line));
                let is_alone = in_node.iter().all(|&other| !self.copies[other].contains_key(&line));
                let may_store = self.may_store(node, whole) || self.planted == Planted::ExclusiveWithoutNode;
                let state = match is_alone && may_store && self.protocol == Protocol::Mesi {
                    true => CoherenceState::Exclusive,
                    false => CoherenceState::Shared,
                };
                let data = self.line_data(node, line);
                self.copies[processor].insert(line, PlainCopy { state, data });
            }
            Some(_) if before != CoherenceState::Modified => {
                self.node_stores(node, whole, line, &mut event);
                in_node.iter().for_each(|&other| self.lose(other, line));
                let data = match self.copies[processor].get(&line) {
                    Some(copy) => copy.data.clone(),
                    None => self.line_data(node, line),
                };
                self.copies[processor].insert(line, PlainCopy { state: CoherenceState::Modified, data });
            }
            _ => {}
        }
        let copy = self.copies[processor].get_mut(&line).ok_or("the line is gone")?;
        for byte in address..address + size {
            match value {
                Some(value) => {
                    copy.data.insert(byte, value);
                    self.latest.insert(byte, value);
                }
                None if copy.data.get(&byte) != self.latest.get(&byte) => {
                    return Err(format!("the value of {byte:#x} is old"));
                }
                None => {}
            }
        }
        Ok(event)
    }

    /// The data of a private line, from its node.
    fn line_data(&mut self, node: usize, line: u64) -> Bytes {
        let range = line * self.line..(line + 1) * self.line;
        let whole = self.node_data(node, line * self.line / self.node_line);
        whole.range(range).map(|(&at, &value)| (at, value)).collect()
    }

    /// A modified or exclusive copy of a processor is the only one; nodes that have none cannot have it in a processor.
    pub fn check(&self, line: u64) -> Result<(), String> {
        let copies: Vec<&PlainCopy> = self.copies.iter().filter_map(|copies| copies.get(&line)).collect();
        let is_alone =
            |copy: &&&PlainCopy| matches!(copy.state, CoherenceState::Modified | CoherenceState::Exclusive);
        if copies.iter().any(|copy| is_alone(&copy)) && copies.len() > 1 {
            return Err(format!("line {line:#x} has a writer and other copies"));
        }
        match copies.windows(2).all(|pair| pair[0].data == pair[1].data) {
            true => Ok(()),
            false => Err(format!("copies of line {line:#x} differ")),
        }
    }
}
