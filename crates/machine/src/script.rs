//! What blocks do to memory, worked out once a block.

use std::cell::Cell;
use std::ops::Range;

use isa::Flags;

/// What a block does each time, as a piece of the lists of lines and of accesses. What most blocks need lies in one
/// line of the host's caches.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Script {
    /// Executions so far.
    pub executions: Cell<u64>,
    /// Of its first instruction.
    address: u64,
    first_line: u32,
    /// Lines that its instructions are in.
    pub lines: u32,
    first_access: u32,
    /// Loads and stores.
    pub accesses: u32,
    /// The site of its first instruction: all instructions of all blocks are numbered.
    pub first_site: u32,
    /// Instructions.
    pub instructions: u32,
    /// Its accesses, if they are so few.
    few: [Access; FEW],
}

/// Accesses that have room in a script.
const FEW: usize = 6;

/// Instructions of one line, and how many accesses they make.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Of the first of its instructions that is in the block.
    pub address: u64,
    /// Loads and stores.
    pub accesses: u32,
    /// The first instruction's.
    pub site: u32,
}

/// What an instruction does to memory: the low bits are the number of bytes behind the first, bit 7 says
/// whether it writes, and the others are its position in its block, which is far shorter than 2^24 instructions.
#[derive(Clone, Copy, Debug)]
pub struct Access(u32);

impl Access {
    /// Of so many bytes behind the first.
    #[inline(always)]
    pub fn new(position: u32, more: u8, is_store: bool) -> Access {
        Access(position << 8 | u32::from(is_store) << 7 | u32::from(more))
    }

    /// Whether it writes.
    #[inline(always)]
    pub fn is_store(self) -> bool {
        self.0 & 1 << 7 != 0
    }

    /// Bytes behind the first one: 0, 1, 3 or 7.
    #[inline(always)]
    pub fn more(self) -> u64 {
        u64::from(self.0 & 7)
    }

    /// The instruction's position in its block.
    pub fn position(self) -> u32 {
        self.0 >> 8
    }
}

/// All blocks.
#[derive(Debug)]
pub struct Scripts {
    /// Bytes of a line.
    line: u64,
    scripts: Vec<Script>,
    /// The accesses of each: so short a list is near, and where the next record begins follows from it.
    counts: Vec<u32>,
    lines: Vec<Line>,
    accesses: Vec<Access>,
    sites: u32,
}

impl Scripts {
    /// Where lines of instructions have so many bytes, a power of two.
    pub fn new(line: u64) -> Scripts {
        Scripts {
            line,
            scripts: Vec::new(),
            counts: Vec::new(),
            lines: Vec::new(),
            accesses: Vec::new(),
            sites: 0,
        }
    }

    /// Adds a block.
    pub fn define(&mut self, address: u64, words: &[u32]) {
        let (first_line, first_access) = (self.lines.len() as u32, self.accesses.len() as u32);
        for (position, &word) in words.iter().enumerate() {
            let address = address.wrapping_add(4 * position as u64);
            let site = self.sites + position as u32;
            if position == 0 || address.is_multiple_of(self.line) {
                self.lines.push(Line { address, accesses: 0, site });
            }
            let instruction = isa::decode(word);
            if let Some((instruction, size)) = instruction.and_then(|one| Some((one, one.access_size()?))) {
                let is_store = instruction.op.is(Flags::STORE);
                self.accesses.push(Access::new(position as u32, size - 1, is_store));
                self.lines.last_mut().expect("the first instruction begins one").accesses += 1;
            }
        }
        let accesses = &self.accesses[first_access as usize..];
        let mut few = [Access(0); FEW];
        few.iter_mut().zip(accesses).for_each(|(few, &access)| *few = access);
        self.counts.push(accesses.len() as u32);
        self.scripts.push(Script {
            executions: Cell::new(0),
            address,
            first_line,
            lines: self.lines.len() as u32 - first_line,
            first_access,
            accesses: self.accesses.len() as u32 - first_access,
            first_site: self.sites,
            instructions: words.len() as u32,
            few,
        });
        self.sites += words.len() as u32;
    }

    /// No block was executed so far.
    pub fn forget_executions(&self) {
        self.scripts.iter().for_each(|script| script.executions.set(0));
    }

    /// A block's.
    #[inline(always)]
    pub fn get(&self, block: u32) -> Option<&Script> {
        self.scripts.get(block as usize)
    }

    /// How many accesses a block makes.
    #[inline(always)]
    pub fn accesses_of(&self, block: u32) -> Option<usize> {
        self.counts.get(block as usize).map(|&count| count as usize)
    }

    /// Those of all blocks, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Script> {
        self.scripts.iter()
    }

    /// How many instructions all blocks have.
    pub fn sites(&self) -> usize {
        self.sites as usize
    }

    /// An address in one of a script's lines, from 0.
    #[inline(always)]
    pub fn line_address(&self, script: &Script, number: u32) -> u64 {
        script.address.wrapping_add(self.line * u64::from(number))
    }

    /// The lines that a range of a script's is.
    #[inline(always)]
    pub fn lines(&self, lines: Range<usize>) -> &[Line] {
        &self.lines[lines]
    }

    /// The accesses of a script.
    #[inline(always)]
    pub fn accesses<'a>(&'a self, script: &'a Script) -> &'a [Access] {
        match script.few.get(..script.accesses as usize) {
            Some(few) => few,
            None => &self.accesses[script.first_access as usize..][..script.accesses as usize],
        }
    }
}

impl Script {
    /// Which lines are its own.
    pub fn own_lines(&self) -> Range<usize> {
        self.first_line as usize..(self.first_line + self.lines) as usize
    }

    /// Which sites are its own.
    pub fn sites(&self) -> Range<usize> {
        self.first_site as usize..(self.first_site + self.instructions) as usize
    }
}
