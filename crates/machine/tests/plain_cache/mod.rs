//! The tags of a cache for plain models: sets of lines that are searched.

/// A cache as lists of lines, the least recently used first.
#[derive(Clone)]
pub struct PlainCache {
    pub line: u64,
    ways: usize,
    sets: Vec<Vec<u64>>,
}

impl PlainCache {
    /// An empty cache with lines of this size.
    pub fn new(line: u64, ways: u32, sets: u64) -> PlainCache {
        PlainCache { line, ways: ways as usize, sets: vec![Vec::new(); sets as usize] }
    }

    fn set(&mut self, line: u64) -> &mut Vec<u64> {
        let sets = self.sets.len() as u64;
        &mut self.sets[(line % sets) as usize]
    }

    /// Removes a line, if it is there.
    pub fn remove(&mut self, line: u64) {
        self.set(line).retain(|&other| other != line);
    }

    /// Uses a line. True if it is there.
    pub fn touch(&mut self, line: u64) -> bool {
        let is_there = self.set(line).contains(&line);
        if is_there {
            self.remove(line);
            self.set(line).push(line);
        }
        is_there
    }

    /// Adds a line that is not there. Returns the one that it replaces.
    pub fn fill(&mut self, line: u64) -> Option<u64> {
        let ways = self.ways;
        let set = self.set(line);
        let evicted = (set.len() == ways).then(|| set.remove(0));
        set.push(line);
        evicted
    }
}

/// Uses the line of an address in the first cache that has it, and returns which one that is: the number of caches if none has it.
pub fn use_first(caches: &mut [PlainCache], address: u64) -> usize {
    let first = caches.iter_mut().position(|cache| {
        let line = address / cache.line;
        cache.touch(line)
    });
    first.unwrap_or(caches.len())
}

/// Removes what the caches before the outermost have of a line of that one, which includes them.
pub fn remove_inner(caches: &mut [PlainCache], line: u64) {
    let (outer, inner) = caches.split_last_mut().unwrap();
    for cache in inner {
        let parts = outer.line / cache.line;
        (line * parts..(line + 1) * parts).for_each(|part| cache.remove(part));
    }
}
