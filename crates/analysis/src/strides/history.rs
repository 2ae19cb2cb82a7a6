//! The addresses that each series of references accessed last, thread by thread. While they are equally far apart,
//! it is enough to know how often.

/// What is known of a series is a line of the host's cache, as long as strides are counted to five steps.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; Line::WORDS]);

impl Line {
    const WORDS: usize = 8;
}

/// The last addresses of a thread, of as many series as it executed.
#[derive(Clone, Debug, Default)]
pub struct History {
    lines: Vec<Line>,
    /// By series: its first line.
    of_series: Vec<u32>,
    /// By block: where its accesses are in the next list.
    of_blocks: Vec<Option<(u32, u32)>>,
    /// For each access of these blocks the first line of its series; [`NONE`] if it is not counted.
    of_accesses: Vec<u32>,
}

/// No line.
const NONE: u32 = u32::MAX;

/// How many addresses are kept of a series.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// As many as strides are counted to.
    depth: u64,
    /// A ring for all but the last of them, less one: of a power of two.
    mask: u64,
}

/// What is kept of a series: some words by name, then a ring of the addresses before the last.
#[derive(Clone, Copy)]
enum Word {
    /// The last address.
    Last,
    /// From the last but one address to the last.
    Stride,
    /// How many references came with that stride since there were as many as the depth, one after another. They
    /// are not in the ring.
    Repeats,
    /// [`State`].
    State,
    Ring,
}

/// What else is known of a series, in a word of which each value takes some bits.
#[derive(Clone, Copy)]
struct State(u64);

impl State {
    /// Where the ring's next address goes.
    const END: u32 = 0;
    /// References, but no more than the depth.
    const KNOWN: u32 = 8;
    /// How many strides, the last one among them, were the same one after another; but no more than the depth.
    const EQUAL: u32 = 16;
    /// What the last stride was counted in.
    const ELEMENT: u32 = 32;

    fn new(end: u64, known: u64, equal: u64, element: u32) -> State {
        let element = u64::from(element) << State::ELEMENT;
        State((end & 0xff) | known << State::KNOWN | equal << State::EQUAL | element)
    }

    fn end(self) -> u64 {
        self.0 >> State::END & 0xff
    }

    fn known(self) -> u64 {
        self.0 >> State::KNOWN & 0xff
    }

    fn equal(self) -> u64 {
        self.0 >> State::EQUAL & 0xff
    }

    fn element(self) -> u32 {
        (self.0 >> State::ELEMENT) as u32
    }

    /// Whether a stride, counted in these elements, that is the same again need not be in the ring.
    #[inline(always)]
    fn repeats(self, depth: Depth, element: u32) -> bool {
        const WHICH: u64 = 0xffff_ffff << State::ELEMENT | 0xff << State::EQUAL;
        self.0 & WHICH == State::new(0, 0, depth.depth, element).0
    }
}

/// A stride that was repeated so often, behind as many of the same as the depth is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The stride.
    pub stride: i64,
    /// What it is counted in.
    pub element: u32,
    /// References.
    pub times: u64,
}

/// What is known of a series.
pub struct Last<'a> {
    lines: &'a mut [Line],
    depth: Depth,
}

impl Depth {
    #[inline(always)]
    pub fn new(depth: u32) -> Depth {
        Depth { depth: depth.into(), mask: u64::from(depth - 1).next_power_of_two() - 1 }
    }

    /// Lines of a series.
    #[inline(always)]
    fn lines(self) -> usize {
        (Word::Ring as usize + self.mask as usize + 1).div_ceil(Line::WORDS)
    }
}

impl History {
    /// What is known of a series.
    #[inline(always)]
    pub fn of(&mut self, series: u32, depth: Depth) -> Last<'_> {
        let line = self.line(series, depth);
        Last::new(&mut self.lines, line, depth).expect("was added")
    }

    /// What is known of the series of a block's accesses. `series` tells these when the thread executes the block
    /// for the first time; None for an access that is not counted.
    #[inline(always)]
    pub fn of_block<S: Iterator<Item = Option<u32>>>(
        &mut self,
        block: u32,
        depth: Depth,
        series: impl FnOnce() -> S,
    ) -> OfBlock<'_> {
        let (start, count) = match self.of_blocks.get(block as usize) {
            Some(&Some(known)) => known,
            _ => self.add_block(block, depth, series()),
        };
        OfBlock {
            lines: &mut self.lines,
            first: &self.of_accesses[start as usize..][..count as usize],
            depth,
        }
    }

    /// The first line of a series.
    #[inline(always)]
    fn line(&mut self, series: u32, depth: Depth) -> u32 {
        match self.of_series.get(series as usize) {
            Some(&line) if line != NONE => line,
            _ => self.add(series, depth),
        }
    }

    #[cold]
    fn add(&mut self, series: u32, depth: Depth) -> u32 {
        if self.of_series.len() <= series as usize {
            self.of_series.resize(series as usize + 1, NONE);
        }
        let line = self.lines.len();
        self.lines.resize(line + depth.lines(), Line([0; Line::WORDS]));
        self.of_series[series as usize] = line as u32;
        line as u32
    }

    #[cold]
    fn add_block(
        &mut self,
        block: u32,
        depth: Depth,
        series: impl Iterator<Item = Option<u32>>,
    ) -> (u32, u32) {
        if self.of_blocks.len() <= block as usize {
            self.of_blocks.resize(block as usize + 1, None);
        }
        let start = self.of_accesses.len();
        for series in series {
            let line = series.map_or(NONE, |series| self.line(series, depth));
            self.of_accesses.push(line);
        }
        let place = (start as u32, (self.of_accesses.len() - start) as u32);
        self.of_blocks[block as usize] = Some(place);
        place
    }

    /// The run that a series is in, if there is one. None for a series without references.
    pub fn state(&self, series: u32) -> Option<Option<Run>> {
        let line = *self.of_series.get(series as usize)?;
        let first = self.lines.get(line as usize)?;
        (State(first.0[Word::State as usize]).known() > 0).then(|| run(first))
    }
}

/// What is known of the series of a block's accesses.
pub struct OfBlock<'a> {
    lines: &'a mut [Line],
    first: &'a [u32],
    depth: Depth,
}

impl OfBlock<'_> {
    /// How many accesses there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.first.len()
    }

    /// Tells what is known of the series of each access, with the access's index and its address; not of those
    /// that are not counted.
    #[inline(always)]
    pub fn each(self, addresses: &[u64], mut tell: impl FnMut(usize, Last, u64)) {
        for (index, (&line, &address)) in self.first.iter().zip(addresses).enumerate() {
            if let Some(last) = Last::new(self.lines, line, self.depth) {
                tell(index, last, address);
            }
        }
    }
}

/// The run that a series is in, whose first line is given.
#[inline(always)]
fn run(first: &Line) -> Option<Run> {
    let [stride, times, state] =
        [Word::Stride, Word::Repeats, Word::State].map(|word| first.0[word as usize]);
    (times > 0).then_some(Run { stride: stride.cast_signed(), element: State(state).element(), times })
}

impl<'a> Last<'a> {
    #[inline(always)]
    fn new(lines: &'a mut [Line], first: u32, depth: Depth) -> Option<Last<'a>> {
        let first = first as usize;
        Some(Last { lines: lines.get_mut(first..first + depth.lines())?, depth })
    }

    /// Adds an address if it goes on as those before: true if it does.
    #[inline(always)]
    pub fn repeat(&mut self, address: u64, element: u32) -> bool {
        let words = &mut self.lines[0].0;
        let stride = address.wrapping_sub(words[Word::Last as usize]);
        let repeats = stride == words[Word::Stride as usize]
            && State(words[Word::State as usize]).repeats(self.depth, element);
        if repeats {
            words[Word::Last as usize] = address;
            words[Word::Repeats as usize] += 1;
        }
        repeats
    }

    /// Ends the run that there is: its references are in the ring from now on.
    #[inline(always)]
    pub fn end_run(&mut self) -> Option<Run> {
        let run = run(&self.lines[0])?;
        let [last, state] = [Word::Last, Word::State].map(|word| self.lines[0].0[word as usize]);
        for back in 1..self.depth.depth {
            let address = last.wrapping_sub(run.stride.cast_unsigned().wrapping_mul(back));
            // There were more than the depth.
            *self.slot(State(state).end().wrapping_sub(back)) = address;
        }
        self.lines[0].0[Word::Repeats as usize] = 0;
        Some(run)
    }

    /// Adds an address when there is no run; the ones before it, the last first, are told until `next` says that it
    /// is enough.
    #[inline(always)]
    pub fn push(&mut self, address: u64, element: u32, mut next: impl FnMut(u64) -> bool) {
        let words = &mut self.lines[0].0;
        let (last, state) = (words[Word::Last as usize], State(words[Word::State as usize]));
        let stride = address.wrapping_sub(last);
        let is_equal = stride == words[Word::Stride as usize] && element == state.element();
        let Depth { depth, .. } = self.depth;
        let (end, known) = (state.end(), state.known());
        // The first address has no stride, and the second one none to compare with.
        let equal = match (known, state.equal()) {
            (0, _) => 0,
            (_, equal @ 1..) if is_equal => (equal + 1).min(depth),
            _ => 1,
        };
        words[Word::Last as usize] = address;
        words[Word::Stride as usize] = stride;
        words[Word::State as usize] = State::new(end + 1, (known + 1).min(depth), equal, element).0;
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
        &mut self.lines[word / Line::WORDS].0[word % Line::WORDS]
    }
}
