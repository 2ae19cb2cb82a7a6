//! Lines of data that were requested, and have not arrived (miss status holding registers).

/// A request of a line.
#[derive(Clone, Copy, Debug)]
struct LineRequest {
    line: u64,
    requested: u64,
    arrives: u64,
    level: u8,
}

/// The outstanding lines of data.
pub(super) struct OutstandingLines {
    requests: Vec<LineRequest>,
    /// The most lines, and the most that come from memory.
    most: usize,
    most_from_memory: usize,
    /// The level of memory.
    memory: u8,
    /// When the last line arrives.
    until: u64,
}

/// How an access finds its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineState {
    /// In L1.
    Present,
    /// It was requested before, and arrives in this cycle from this level.
    Arrives(u64, u8),
    /// It has to be requested from this level.
    Absent(u8),
}

impl OutstandingLines {
    pub fn new(most: u32, most_from_memory: Option<u32>, memory: u8) -> OutstandingLines {
        let most_from_memory = most_from_memory.unwrap_or(most) as usize;
        OutstandingLines { requests: Vec::new(), most: most as usize, most_from_memory, memory, until: 0 }
    }

    /// The state of a line for an access in this cycle, by an instruction dispatched in cycle `now`. `level` says where the
    /// line is in program order.
    #[inline(always)]
    pub fn find(&mut self, line: u64, level: u8, cycle: u64, now: u64) -> LineState {
        match level {
            0 if self.until <= now => LineState::Present,
            _ => self.find_slow(line, level, cycle, now),
        }
    }

    fn find_slow(&mut self, line: u64, level: u8, cycle: u64, now: u64) -> LineState {
        self.requests.retain(|request| request.arrives > now);
        let own = || self.requests.iter().filter(|request| request.line == line);
        let outstanding = own().filter(|one| one.requested <= cycle && one.arrives > cycle);
        if let Some(first) = outstanding.min_by_key(|one| one.arrives) {
            return LineState::Arrives(first.arrives, first.level);
        }
        if level > 0 {
            return LineState::Absent(level);
        }
        // An older instruction brings the line in program order, but requests it later: this one has to request it itself.
        let later = own().filter(|one| one.requested > cycle).min_by_key(|one| one.requested);
        later.map_or(LineState::Present, |later| LineState::Absent(later.level))
    }

    /// The first cycle from `cycle` on in which a line may be requested from a level.
    pub fn next_request(&self, mut cycle: u64, level: u8) -> u64 {
        loop {
            let open = self.requests.iter().filter(|one| one.requested <= cycle && one.arrives > cycle);
            let from_memory = open.clone().filter(|one| one.level >= self.memory);
            let is_full = open.clone().count() >= self.most;
            let is_memory_full = level >= self.memory && from_memory.clone().count() >= self.most_from_memory;
            let wait = match (is_full, is_memory_full) {
                (false, false) => return cycle,
                (true, _) => open.map(|one| one.arrives).min(),
                (false, true) => from_memory.map(|one| one.arrives).min(),
            };
            cycle = wait.unwrap_or(cycle + 1);
        }
    }

    /// Requests a line.
    pub fn request(&mut self, line: u64, requested: u64, arrives: u64, level: u8) {
        self.until = self.until.max(arrives);
        self.requests.push(LineRequest { line, requested, arrives, level });
    }
}
