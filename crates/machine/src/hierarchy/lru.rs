//! Fully associative caches of several sizes at once, which replace the least recently used.

/// What such caches hold: a stack of keys, the last used on top, of which a cache of N entries holds the
/// topmost N (Mattson and others, "Evaluation techniques for storage hierarchies", 1970).
#[derive(Debug)]
pub struct Stack {
    /// Entries of each cache, the smallest first.
    capacities: Box<[u32]>,
    /// Of each cache that is full, the lowest node that it holds.
    lowest: Box<[u32]>,
    nodes: Vec<Node>,
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
        Stack {
            capacities: capacities.into(),
            lowest: vec![NONE; capacities.len()].into(),
            nodes: Vec::new(),
            top: NONE,
            bottom: NONE,
            table: vec![NONE; 64].into(),
        }
    }

    /// Uses a key. Returns how many of the caches, from the smallest on, did not have it.
    #[inline(always)]
    pub fn touch(&mut self, key: u64) -> usize {
        match self.nodes.get(self.top as usize) {
            Some(node) if node.key == key => 0,
            _ => self.touch_below(key),
        }
    }

    fn touch_below(&mut self, key: u64) -> usize {
        let place = self.place(key);
        let node = self.table[place];
        if node == NONE {
            self.enter(key, place);
            return self.capacities.len();
        }
        let zone = self.nodes[node as usize].zone as usize;
        self.take_out(node, zone);
        self.put_on_top(node);
        zone
    }

    /// A new key, whose place in the table is known.
    fn enter(&mut self, key: u64, place: usize) {
        let last = self.capacities.len() - 1;
        let lowest = self.lowest[last];
        if lowest != NONE {
            // What the largest cache has at last makes way.
            self.take_out(lowest, last);
            self.forget(self.nodes[lowest as usize].key);
            self.nodes[lowest as usize].key = key;
            let place = self.place(key);
            self.table[place] = lowest;
            return self.put_on_top(lowest);
        }
        let node = self.nodes.len() as u32;
        self.nodes.push(Node { key, above: NONE, below: NONE, zone: 0 });
        self.table[place] = node;
        self.sink(last, node);
        self.put_on_top(node);
        if let Ok(filled) = self.capacities.binary_search(&(node + 1)) {
            self.lowest[filled] = self.bottom;
        }
        if self.nodes.len() * 2 > self.table.len() {
            self.grow();
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

    /// Takes a node out from where it is, to come on top.
    fn take_out(&mut self, node: u32, zone: usize) {
        self.sink(zone, node);
        let Node { above, below, .. } = self.nodes[node as usize];
        if self.lowest[zone] == node && above != NONE {
            self.lowest[zone] = above;
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
