//! Fully associative caches of several sizes at once, which replace the least recently used.

use super::recent::Recent;

/// What such caches hold: a stack of keys, the last used on top, of which a cache of N entries holds the
/// topmost N (Mattson and others, "Evaluation techniques for storage hierarchies", 1970). The topmost keys, which all
/// caches hold, are kept apart: nothing else changes when they are used. The list begins below them.
#[derive(Debug)]
pub struct Stack {
    recent: Recent,
    /// Entries of each cache, the smallest first, but those that hold the recent keys.
    capacities: Box<[u32]>,
    /// Of each cache that is full, the lowest node that it holds.
    lowest: Box<[u32]>,
    nodes: Vec<Node>,
    /// Nodes that are in the list.
    listed: u32,
    top: u32,
    bottom: u32,
    /// Each node at the hash of its key, or behind where other nodes are.
    table: Box<[u32]>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    above: u32,
    below: u32,
    /// The smallest cache that holds it.
    zone: u32,
}

const NONE: u32 = u32::MAX;

impl Stack {
    /// Of caches with these numbers of entries, each larger than the one before.
    pub fn new(capacities: &[u32]) -> Stack {
        // The smallest cache holds one more at least.
        let recent = Recent::new(capacities[0] as usize - 1);
        Stack {
            capacities: capacities.iter().map(|entries| entries - recent.most() as u32).collect(),
            recent,
            lowest: vec![NONE; capacities.len()].into(),
            nodes: Vec::new(),
            listed: 0,
            top: NONE,
            bottom: NONE,
            table: vec![NONE; 64].into(),
        }
    }

    /// Uses a key. Returns how many of the caches, from the smallest on, did not have it.
    #[inline(always)]
    pub fn touch(&mut self, key: u64) -> usize {
        if self.recent.touch(key) { 0 } else { self.touch_below(key) }
    }

    fn touch_below(&mut self, key: u64) -> usize {
        let place = self.place(key);
        let last = self.capacities.len() - 1;
        let (node, zone, missed) = match (self.table[place], self.lowest[last]) {
            (NONE, NONE) => (self.add(key, place), None, last + 1),
            (NONE, lowest) => {
                // What the largest cache has at last makes way.
                self.rename(lowest, key);
                (lowest, Some(last), last + 1)
            }
            (node, _) => {
                let zone = self.nodes[node as usize].zone as usize;
                (node, Some(zone), zone)
            }
        };
        if let Some(coming) = self.recent.enter(key, node) {
            match zone {
                Some(zone) => self.take_out(node, zone, coming),
                None => self.sink(last, coming),
            }
            self.put_on_top(coming);
            if zone.is_none() {
                self.count_one_more();
            }
        }
        missed
    }

    /// A new node, which is not in the list, for a key whose place in the table is known.
    fn add(&mut self, key: u64, place: usize) -> u32 {
        let node = self.nodes.len() as u32;
        self.nodes.push(Node { key, above: NONE, below: NONE, zone: 0 });
        self.table[place] = node;
        if self.nodes.len() * 2 > self.table.len() {
            self.grow();
        }
        node
    }

    /// A node gets another key, which is new.
    fn rename(&mut self, node: u32, key: u64) {
        self.forget(self.nodes[node as usize].key);
        self.nodes[node as usize].key = key;
        let place = self.place(key);
        self.table[place] = node;
    }

    /// The list has become longer.
    fn count_one_more(&mut self) {
        self.listed += 1;
        if let Ok(filled) = self.capacities.binary_search(&self.listed) {
            self.lowest[filled] = self.bottom;
        }
    }

    /// Of the first caches, the lowest node goes to the next cache, as another node comes on top.
    fn sink(&mut self, caches: usize, coming: u32) {
        for (cache, lowest) in self.lowest[..caches].iter_mut().enumerate() {
            if *lowest != NONE {
                let sinking = &mut self.nodes[*lowest as usize];
                sinking.zone = cache as u32 + 1;
                *lowest = if sinking.above == NONE { coming } else { sinking.above };
            }
        }
    }

    /// Takes a node out from where it is, as another one, or the same, comes on top.
    fn take_out(&mut self, node: u32, zone: usize, coming: u32) {
        self.sink(zone, coming);
        let Node { above, below, .. } = self.nodes[node as usize];
        if self.lowest[zone] == node {
            self.lowest[zone] = if above == NONE { coming } else { above };
        }
        match above {
            NONE => self.top = below,
            above => self.nodes[above as usize].below = below,
        }
        match below {
            NONE => self.bottom = above,
            below => self.nodes[below as usize].above = above,
        }
    }

    fn put_on_top(&mut self, node: u32) {
        let below = std::mem::replace(&mut self.top, node);
        match below {
            NONE => self.bottom = node,
            below => self.nodes[below as usize].above = node,
        }
        let on_top = &mut self.nodes[node as usize];
        (on_top.above, on_top.below, on_top.zone) = (NONE, below, 0);
    }

    /// Where in the table a key would be if nothing were in its way (Fibonacci hashing).
    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.table.len().ilog2())) as usize
    }

    fn behind(&self, place: usize) -> usize {
        (place + 1) & (self.table.len() - 1)
    }

    /// Where in the table a key is, or is to go.
    fn place(&self, key: u64) -> usize {
        let mut place = self.home(key);
        while self.table[place] != NONE && self.nodes[self.table[place] as usize].key != key {
            place = self.behind(place);
        }
        place
    }

    /// Takes a key out of the table; what is behind it moves up, unless it would come before its home.
    fn forget(&mut self, key: u64) {
        let mut hole = self.place(key);
        let mut place = self.behind(hole);
        while self.table[place] != NONE {
            let home = self.home(self.nodes[self.table[place] as usize].key);
            let mask = self.table.len() - 1;
            if place.wrapping_sub(home) & mask >= place.wrapping_sub(hole) & mask {
                self.table[hole] = self.table[place];
                hole = place;
            }
            place = self.behind(place);
        }
        self.table[hole] = NONE;
    }

    fn grow(&mut self) {
        self.table = vec![NONE; self.table.len() * 4].into();
        for node in 0..self.nodes.len() {
            let place = self.place(self.nodes[node].key);
            self.table[place] = node as u32;
        }
    }
}
