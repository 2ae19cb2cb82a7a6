//! Fully associative LRU caches of several sizes at once: a Mattson stack.

use super::recent::Recent;

/// A stack of keys, the most recently used on top, of which a cache of N entries holds the topmost N (Mattson
/// and others, "Evaluation techniques for storage hierarchies", 1970). The topmost keys, which all caches
/// hold, are kept apart in [`Recent`], as using them changes nothing else; the linked list begins below them.
/// Keys are small numbers: memory is allocated up to the largest.
#[derive(Debug)]
pub struct LruStack {
    recent: Recent,
    /// Entries of each cache, the smallest first, less those in `recent`.
    capacities: Box<[u32]>,
    /// The number of caches that are full: the smaller ones.
    full: usize,
    /// Of each full cache, its least recently used node.
    lowest: Box<[u32]>,
    /// By key.
    nodes: Vec<StackNode>,
    /// Nodes in the list.
    listed: u32,
    top: u32,
    bottom: u32,
}

#[derive(Clone, Copy, Debug)]
struct StackNode {
    above: u32,
    below: u32,
    /// The smallest cache that holds it, if it is in the list.
    zone: u32,
}

const NONE: u32 = Recent::NONE;

impl LruStack {
    /// For caches of these numbers of entries, in ascending order.
    pub fn new(capacities: &[u32]) -> LruStack {
        // The smallest cache has at least one entry in the list.
        let recent = Recent::new(capacities[0] as usize - 1);
        LruStack {
            capacities: capacities.iter().map(|entries| entries - recent.most() as u32).collect(),
            recent,
            full: 0,
            lowest: vec![NONE; capacities.len()].into(),
            nodes: Vec::new(),
            listed: 0,
            top: NONE,
            bottom: NONE,
        }
    }

    /// Uses a key. Returns how many of the caches, from the smallest on, missed.
    #[inline(always)]
    pub fn touch(&mut self, key: u32) -> usize {
        if self.recent.touch(key) { 0 } else { self.touch_below(key) }
    }

    /// The node of a key, allocated if it is new.
    #[inline(always)]
    fn node(&mut self, key: u32) -> &mut StackNode {
        let index = key as usize;
        if self.nodes.len() <= index {
            self.nodes.resize(index + 1, StackNode { above: NONE, below: NONE, zone: NONE });
        }
        &mut self.nodes[index]
    }

    fn touch_below(&mut self, key: u32) -> usize {
        let zone = self.node(key).zone;
        let (last, is_full) = (self.capacities.len() - 1, self.full == self.capacities.len());
        let (leaving, cache_misses) = match zone {
            // The least recently used key of the largest cache is evicted.
            NONE if is_full => (Some((self.lowest[last], last)), last + 1),
            NONE => (None, last + 1),
            zone => (Some((key, zone as usize)), zone as usize),
        };
        if let Some(coming) = self.recent.enter(key) {
            if let Some((node, zone)) = leaving {
                self.take_out(node, zone, coming);
            }
            self.put_on_top(coming);
            match leaving {
                Some((_, zone)) => self.sink(zone),
                None => self.count_one_more(),
            }
        }
        cache_misses
    }

    /// The keys that the largest cache holds.
    pub fn keys(&mut self) -> impl Iterator<Item = u32> {
        let below = |&key: &u32| Some(self.nodes[key as usize].below).filter(|&below| below != NONE);
        let listed = std::iter::successors(Some(self.top).filter(|&top| top != NONE), below);
        listed.chain(self.recent.keys_mut().iter().copied())
    }

    /// Renames all keys.
    pub fn rename(&mut self, rename: impl Fn(u32) -> u32) {
        let rename = |key| if key == NONE { NONE } else { rename(key) };
        let before = std::mem::take(&mut self.nodes);
        let mut key = self.top;
        while key != NONE {
            let StackNode { above, below, zone } = before[key as usize];
            *self.node(rename(key)) = StackNode { above: rename(above), below: rename(below), zone };
            key = below;
        }
        let ends = [&mut self.top, &mut self.bottom].into_iter();
        for key in ends.chain(&mut self.lowest).chain(self.recent.keys_mut()) {
            *key = rename(*key);
        }
    }

    /// The list has become longer by one.
    fn count_one_more(&mut self) {
        self.sink(self.full);
        self.listed += 1;
        if self.capacities[self.full] == self.listed {
            self.lowest[self.full] = self.bottom;
            self.full += 1;
        }
    }

    /// Of the smaller caches, the least recently used node moves on to the next larger cache, as another node
    /// has come on top.
    fn sink(&mut self, caches: usize) {
        for (cache, lowest) in (0..).zip(&mut self.lowest[..caches.min(self.full)]) {
            let sinking = &mut self.nodes[*lowest as usize];
            sinking.zone = cache + 1;
            *lowest = sinking.above;
        }
    }

    /// Unlinks a node; `coming` will be put on top.
    fn take_out(&mut self, node: u32, zone: usize, coming: u32) {
        let StackNode { above, below, .. } = self.nodes[node as usize];
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
        self.nodes[node as usize].zone = NONE;
    }

    fn put_on_top(&mut self, node: u32) {
        let below = std::mem::replace(&mut self.top, node);
        match below {
            NONE => self.bottom = node,
            below => self.nodes[below as usize].above = node,
        }
        *self.node(node) = StackNode { above: NONE, below, zone: 0 };
    }
}
