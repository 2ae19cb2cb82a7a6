//! Block templates: the memory accesses of each block, computed once when the block is defined.

use std::cell::Cell;
use std::ops::Range;

use events::Block;

/// The fetches, loads and stores of a block, the same in each execution. The fields, and the accesses of most
/// blocks, fit into one line of the host's caches.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct BlockTemplate {
    /// Executions so far.
    pub executions: Cell<u64>,
    /// The address of its first instruction.
    address: u64,
    first_line: u32,
    /// Instruction lines.
    pub lines: u32,
    first_access: u32,
    /// Loads and stores.
    pub accesses: u32,
    /// The site of its first instruction. Sites number the instructions of all blocks.
    pub first_site: u32,
    /// Instructions.
    pub instructions: u32,
    /// Its accesses, if they fit.
    inline: [TemplateAccess; INLINE_ACCESSES],
}

/// Accesses that fit into a template itself.
const INLINE_ACCESSES: usize = 6;

/// The instructions of a block within one instruction line.
#[derive(Clone, Copy, Debug)]
pub struct FetchLine {
    /// The address of the first of them.
    pub address: u64,
    /// Loads and stores.
    pub accesses: u32,
    /// The site of the first instruction.
    pub site: u32,
}

/// A load or store of a block. The low bits are its size in bytes less one, bit 7 says whether it is a store, and
/// the others are the position of the instruction in its block (blocks are far shorter than 2^24 instructions).
#[derive(Clone, Copy, Debug)]
pub struct TemplateAccess(u32);

impl TemplateAccess {
    /// An access of `last_byte` + 1 bytes.
    #[inline(always)]
    pub fn new(position: u32, last_byte: u8, is_store: bool) -> TemplateAccess {
        TemplateAccess(position << 8 | u32::from(is_store) << 7 | u32::from(last_byte))
    }

    /// Whether it is a store.
    #[inline(always)]
    pub fn is_store(self) -> bool {
        self.0 & 1 << 7 != 0
    }

    /// The distance from its first to its last byte: 0, 1, 3 or 7.
    #[inline(always)]
    pub fn last_byte(self) -> u64 {
        u64::from(self.0 & 7)
    }

    /// The instruction's position in its block.
    pub fn position(self) -> u32 {
        self.0 >> 8
    }
}

/// The templates of all blocks.
#[derive(Debug)]
pub struct BlockTemplates {
    /// Bytes of an instruction line.
    line: u64,
    templates: Vec<BlockTemplate>,
    /// The number of accesses of each block, which says where the next record begins. In a list of their own
    /// they stay in the host's caches.
    counts: Vec<u32>,
    lines: Vec<FetchLine>,
    accesses: Vec<TemplateAccess>,
    sites: u32,
}

impl BlockTemplates {
    /// Without blocks; `line` is the size of an instruction line, a power of two.
    pub fn new(line: u64) -> BlockTemplates {
        BlockTemplates {
            line,
            templates: Vec::new(),
            counts: Vec::new(),
            lines: Vec::new(),
            accesses: Vec::new(),
            sites: 0,
        }
    }

    /// Adds a block.
    pub fn define(&mut self, block: &Block) {
        let Block { words, instruction_set, .. } = block;
        let (first_line, first_access) = (self.lines.len() as u32, self.accesses.len() as u32);
        for (position, (&word, address)) in (0..).zip(words.iter().zip(block.addresses())) {
            self.fetch(position, address, instruction_set.length(word));
            for access in instruction_set.summary(word).unwrap_or_default().accesses() {
                self.accesses.push(TemplateAccess::new(position, access.size - 1, access.is_store));
                self.lines.last_mut().expect("the first instruction begins a line").accesses += 1;
            }
        }
        let accesses = &self.accesses[first_access as usize..];
        let mut inline = [TemplateAccess(0); INLINE_ACCESSES];
        inline.iter_mut().zip(accesses).for_each(|(entry, &access)| *entry = access);
        self.counts.push(accesses.len() as u32);
        self.templates.push(BlockTemplate {
            executions: Cell::new(0),
            address: block.address,
            first_line,
            lines: self.lines.len() as u32 - first_line,
            first_access,
            accesses: self.accesses.len() as u32 - first_access,
            first_site: self.sites,
            instructions: words.len() as u32,
            inline,
        });
        self.sites += words.len() as u32;
    }

    /// Adds the instruction lines of a block's next instruction. One that crosses the end of a line is fetched from both.
    fn fetch(&mut self, position: u32, mut address: u64, mut length: u64) {
        let site = self.sites + position;
        let mut is_new = position == 0;
        loop {
            if is_new || address.is_multiple_of(self.line) {
                self.lines.push(FetchLine { address, accesses: 0, site });
            }
            let rest = self.line - address % self.line;
            if rest >= length {
                return;
            }
            (address, length, is_new) = (address.wrapping_add(rest), length - rest, false);
        }
    }

    /// Resets the executions of all blocks.
    pub fn reset_executions(&self) {
        self.templates.iter().for_each(|template| template.executions.set(0));
    }

    /// Adds the executions of the same blocks elsewhere.
    pub fn add_executions(&self, other: &BlockTemplates) {
        for (own, other) in self.templates.iter().zip(&other.templates) {
            own.executions.update(|times| times + other.executions.get());
        }
    }

    /// The template of a block.
    #[inline(always)]
    pub fn get(&self, block: u32) -> Option<&BlockTemplate> {
        self.templates.get(block as usize)
    }

    /// The number of accesses of a block.
    #[inline(always)]
    pub fn accesses_of(&self, block: u32) -> Option<usize> {
        self.counts.get(block as usize).map(|&count| count as usize)
    }

    /// The templates of all blocks, in order.
    pub fn iter(&self) -> impl Iterator<Item = &BlockTemplate> {
        self.templates.iter()
    }

    /// The number of sites: instructions of all blocks.
    pub fn sites(&self) -> usize {
        self.sites as usize
    }

    /// An address in the instruction line with this number, from 0, of a block.
    #[inline(always)]
    pub fn line_address(&self, template: &BlockTemplate, number: u32) -> u64 {
        template.address.wrapping_add(self.line * u64::from(number))
    }

    /// The instruction lines in a range ([`BlockTemplate::own_lines`]).
    #[inline(always)]
    pub fn lines(&self, lines: Range<usize>) -> &[FetchLine] {
        &self.lines[lines]
    }

    /// The accesses of a block.
    #[inline(always)]
    pub fn accesses<'a>(&'a self, template: &'a BlockTemplate) -> &'a [TemplateAccess] {
        match template.inline.get(..template.accesses as usize) {
            Some(inline) => inline,
            None => &self.accesses[template.first_access as usize..][..template.accesses as usize],
        }
    }
}

impl BlockTemplate {
    /// Its instruction lines, as a range for [`BlockTemplates::lines`].
    pub fn own_lines(&self) -> Range<usize> {
        self.first_line as usize..(self.first_line + self.lines) as usize
    }

    /// The sites of its instructions.
    pub fn sites(&self) -> Range<usize> {
        self.first_site as usize..(self.first_site + self.instructions) as usize
    }
}
