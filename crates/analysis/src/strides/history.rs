//! The last addresses of each track in each thread. While strides repeat, only their number is recorded (a run).

use super::lockstep::CountedAccess;

/// Words of a line of the host's cache: the state of a track fits one line for up to five steps.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct TrackLine([u64; TrackLine::WORDS]);

impl TrackLine {
    const WORDS: usize = 8;
}

/// The last addresses of a thread, for the tracks that it executed.
#[derive(Clone, Debug, Default)]
pub struct History {
    lines: Vec<TrackLine>,
    /// By track: the index of its first line.
    of_tracks: Vec<u32>,
    /// By block.
    of_blocks: Vec<CountedAccesses>,
    /// Those of all these blocks.
    tracks: Vec<CountedTrack>,
}

/// The counted accesses of a block. Small, because the hottest loop depends on it.
#[derive(Clone, Copy, Debug)]
struct CountedAccesses {
    start: u32,
    counted: u16,
    /// The number of its accesses, counted or not.
    accesses: u16,
}

impl CountedAccesses {
    /// For a block that the thread has not entered.
    const NONE: CountedAccesses = CountedAccesses { start: u32::MAX, counted: 0, accesses: 0 };
}

/// An access that is counted, and its track's first line.
type CountedTrack = (CountedAccess, u32);

/// No line.
const NONE: u32 = u32::MAX;

/// The size of a track's history.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// The number of steps back.
    depth: u64,
    /// The size of the ring for all addresses but the last, less one; the size is a power of two.
    mask: u64,
}

/// The words at the beginning of a track; a ring of the addresses before the last one follows.
#[derive(Clone, Copy)]
enum Word {
    /// The last address.
    Last,
    /// The last stride.
    Stride,
    /// The length of the run: references that repeated the stride after `depth` repetitions. They are not in the ring.
    Repeats,
    /// [`TrackState`].
    State,
    Ring,
}

/// The bit fields of a track's state word.
#[derive(Clone, Copy)]
struct TrackState(u64);

impl TrackState {
    /// The index of the next address in the ring.
    const END: u32 = 0;
    /// References, at most the depth.
    const KNOWN: u32 = 8;
    /// How many times the last stride has been repeated, at most the depth.
    const EQUAL: u32 = 16;
    /// The unit of the last stride.
    const ELEMENT: u32 = 32;

    fn new(end: u64, known: u64, equal: u64, element: u32) -> TrackState {
        let element = u64::from(element) << TrackState::ELEMENT;
        TrackState((end & 0xff) | known << TrackState::KNOWN | equal << TrackState::EQUAL | element)
    }

    fn end(self) -> u64 {
        self.0 >> TrackState::END & 0xff
    }

    fn known(self) -> u64 {
        self.0 >> TrackState::KNOWN & 0xff
    }

    fn equal(self) -> u64 {
        self.0 >> TrackState::EQUAL & 0xff
    }

    fn element(self) -> u32 {
        (self.0 >> TrackState::ELEMENT) as u32
    }

    /// Whether one more repetition of a stride, in this unit, extends a run.
    #[inline(always)]
    fn repeats(self, depth: Depth, element: u32) -> bool {
        const WHICH: u64 = 0xffff_ffff << TrackState::ELEMENT | 0xff << TrackState::EQUAL;
        self.0 & WHICH == TrackState::new(0, 0, depth.depth, element).0
    }
}

/// A run: repetitions of a stride after `depth` equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrideRun {
    /// The stride.
    pub stride: i64,
    /// Its unit.
    pub element: u32,
    /// Its references.
    pub times: u64,
}

/// The state of a track.
pub struct Last<'a> {
    lines: &'a mut [TrackLine],
    depth: Depth,
}

impl Depth {
    #[inline(always)]
    pub fn new(depth: u32) -> Depth {
        Depth { depth: depth.into(), mask: u64::from(depth - 1).next_power_of_two() - 1 }
    }

    /// Lines of a track.
    #[inline(always)]
    fn lines(self) -> usize {
        (Word::Ring as usize + self.mask as usize + 1).div_ceil(TrackLine::WORDS)
    }
}

impl History {
    /// The state of a track.
    #[inline(always)]
    pub fn of(&mut self, track: u32, depth: Depth) -> Last<'_> {
        let line = self.line(track, depth);
        Last::new(&mut self.lines, line, depth)
    }

    /// The states of the tracks of a block's accesses; None if the thread has not [entered](History::enter) it.
    #[inline(always)]
    pub fn of_block(&mut self, block: u32, depth: Depth) -> Option<OfBlock<'_>> {
        let CountedAccesses { start, counted, accesses } = *self.of_blocks.get(block as usize)?;
        if start == CountedAccesses::NONE.start {
            return None;
        }
        let tracks = &self.tracks[start as usize..][..counted.into()];
        Some(OfBlock { lines: &mut self.lines, tracks, accesses: accesses.into(), depth })
    }

    /// The first line of a track.
    #[inline(always)]
    fn line(&mut self, track: u32, depth: Depth) -> u32 {
        match self.of_tracks.get(track as usize) {
            Some(&line) if line != NONE => line,
            _ => self.add(track, depth),
        }
    }

    #[cold]
    fn add(&mut self, track: u32, depth: Depth) -> u32 {
        if self.of_tracks.len() <= track as usize {
            self.of_tracks.resize(track as usize + 1, NONE);
        }
        let line = self.lines.len();
        self.lines.resize(line + depth.lines(), TrackLine([0; TrackLine::WORDS]));
        self.of_tracks[track as usize] = line as u32;
        line as u32
    }

    /// Enters a block with this number of accesses, of which `counted` are counted.
    pub fn enter(&mut self, block: u32, accesses: usize, counted: &[CountedAccess], depth: Depth) {
        if self.of_blocks.len() <= block as usize {
            self.of_blocks.resize(block as usize + 1, CountedAccesses::NONE);
        }
        let start = self.tracks.len() as u32;
        for &one in counted {
            let line = self.line(one.track, depth);
            self.tracks.push((one, line));
        }
        let short = |length: usize| u16::try_from(length).expect("blocks that are executed are short");
        let (counted, accesses) = (short(counted.len()), short(accesses));
        self.of_blocks[block as usize] = CountedAccesses { start, counted, accesses };
    }

    /// The counted accesses of a block change.
    pub fn leave(&mut self, block: u32) {
        if let Some(tracks) = self.of_blocks.get_mut(block as usize) {
            *tracks = CountedAccesses::NONE;
        }
    }

    /// Copies the state of a track to a new one.
    pub fn copy(&mut self, from: u32, to: u32, depth: Depth) {
        let from = self.of_tracks.get(from as usize).copied().filter(|&line| line != NONE);
        let Some(from) = from.map(|line| line as usize) else { return };
        let to = self.line(to, depth) as usize;
        self.lines.copy_within(from..from + depth.lines(), to);
    }

    /// The current run of a track, if there is one. None for a track without references.
    pub fn state(&self, track: u32) -> Option<Option<StrideRun>> {
        let line = *self.of_tracks.get(track as usize)?;
        let first = self.lines.get(line as usize)?;
        (TrackState(first.0[Word::State as usize]).known() > 0).then(|| run(first))
    }
}

/// The states of the tracks of a block's accesses.
pub struct OfBlock<'a> {
    lines: &'a mut [TrackLine],
    tracks: &'a [CountedTrack],
    /// The number of accesses, counted or not.
    pub accesses: usize,
    depth: Depth,
}

impl OfBlock<'_> {
    /// Calls `each` with every counted access and the state of its track.
    #[inline(always)]
    pub fn each(self, mut tell: impl FnMut(CountedAccess, Last)) {
        for &(access, line) in self.tracks {
            tell(access, Last::new(self.lines, line, self.depth));
        }
    }
}

/// The current run of the track with this first line.
#[inline(always)]
fn run(first: &TrackLine) -> Option<StrideRun> {
    let [stride, times, state] =
        [Word::Stride, Word::Repeats, Word::State].map(|word| first.0[word as usize]);
    (times > 0).then_some(StrideRun {
        stride: stride.cast_signed(),
        element: TrackState(state).element(),
        times,
    })
}

impl<'a> Last<'a> {
    #[inline(always)]
    fn new(lines: &'a mut [TrackLine], first: u32, depth: Depth) -> Last<'a> {
        let first = first as usize;
        Last { lines: &mut lines[first..first + depth.lines()], depth }
    }

    /// The same with a depth that is known at compile time.
    #[inline(always)]
    pub fn of(self, depth: Depth) -> Last<'a> {
        Last { lines: &mut self.lines[..depth.lines()], depth }
    }

    /// Adds an address if it continues the run. Returns whether it does.
    #[inline(always)]
    pub fn repeat(&mut self, address: u64, element: u32) -> bool {
        let words = &mut self.lines[0].0;
        let stride = address.wrapping_sub(words[Word::Last as usize]);
        let repeats = stride == words[Word::Stride as usize]
            && TrackState(words[Word::State as usize]).repeats(self.depth, element);
        if repeats {
            words[Word::Last as usize] = address;
            words[Word::Repeats as usize] += 1;
        }
        repeats
    }

    /// Ends the current run: its last references are put into the ring.
    #[inline(always)]
    pub fn end_run(&mut self) -> Option<StrideRun> {
        let run = run(&self.lines[0])?;
        let [last, state] = [Word::Last, Word::State].map(|word| self.lines[0].0[word as usize]);
        for back in 1..self.depth.depth {
            let address = last.wrapping_sub(run.stride.cast_unsigned().wrapping_mul(back));
            // The run had at least as many references as the ring.
            *self.slot(TrackState(state).end().wrapping_sub(back)) = address;
        }
        self.lines[0].0[Word::Repeats as usize] = 0;
        Some(run)
    }

    /// Adds an address that does not continue a run. Calls `next` with the earlier addresses, the last first, until it
    /// returns false.
    #[inline(always)]
    pub fn push(&mut self, address: u64, element: u32, mut next: impl FnMut(u64) -> bool) {
        let words = &mut self.lines[0].0;
        let (last, state) = (words[Word::Last as usize], TrackState(words[Word::State as usize]));
        let stride = address.wrapping_sub(last);
        let is_equal = stride == words[Word::Stride as usize] && element == state.element();
        let Depth { depth, .. } = self.depth;
        let (end, known) = (state.end(), state.known());
        // The first address has no stride, and the stride of the second one nothing to compare with.
        let equal = match (known, state.equal()) {
            (0, _) => 0,
            (_, equal @ 1..) if is_equal => (equal + 1).min(depth),
            _ => 1,
        };
        words[Word::Last as usize] = address;
        words[Word::Stride as usize] = stride;
        words[Word::State as usize] = TrackState::new(end + 1, (known + 1).min(depth), equal, element).0;
        if known > 0 && next(last) {
            let mut back = 1;
            while back < known && next(*self.slot(end.wrapping_sub(back))) {
                back += 1;
            }
        }
        *self.slot(end) = last;
    }

    #[inline(always)]
    fn slot(&mut self, number: u64) -> &mut u64 {
        let word = Word::Ring as usize + (number & self.depth.mask) as usize;
        &mut self.lines[word / TrackLine::WORDS].0[word % TrackLine::WORDS]
    }
}
