//! Exact counts: of every block, and of each call of one function apart.

use trace::{BlockId, Counts, LoadedImage, Unit};

use crate::alpha::block::{Block, BlockCache};
use crate::alpha::cpu::{Cpu, register};
use crate::alpha::interpreter::Observer;
use crate::memory::Memory;

/// A table of counts by small numbers that grows as needed.
#[derive(Clone, Debug, Default)]
struct Tally(Vec<u64>);

impl Tally {
    #[inline(always)]
    fn slot(&mut self, id: u32) -> &mut u64 {
        let index = id as usize;
        if index >= self.0.len() {
            self.grow(index);
        }
        &mut self.0[index]
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        self.0.resize((index + 1).next_power_of_two(), 0);
    }

    /// What is not zero, by number.
    fn nonzero(&self) -> impl Iterator<Item = (u32, u64)> {
        (0..).zip(&self.0).filter(|(_, n)| **n != 0).map(|(id, n)| (id, *n))
    }
}

/// Counts executions of blocks and system calls over the whole run.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    executions: Tally,
    system_calls: Tally,
    images: Vec<LoadedImage>,
}

impl Counter {
    /// What was counted, with the blocks it refers to.
    pub fn counts(&self, cache: &BlockCache) -> Counts {
        let blocks = cache.blocks().iter().map(|block| trace::Block {
            address: block.address,
            words: block.words.clone(),
            image: self.image_of(block.address),
        });
        let mut executions = self.executions.0.clone();
        executions.resize(cache.blocks().len(), 0);
        Counts {
            images: self.images.clone(),
            blocks: blocks.collect(),
            executions,
            system_calls: self.system_calls.nonzero().collect(),
        }
    }

    /// The image mapped last at an address.
    fn image_of(&self, address: u64) -> Option<u32> {
        let holds = |image: &LoadedImage| (image.start..image.end).contains(&address);
        self.images.iter().rposition(holds).map(|index| index as u32)
    }
}

impl Observer for Counter {
    #[inline(always)]
    fn enter(&mut self, id: BlockId, _: &Block, _: &Cpu, _: &Memory) {
        *self.executions.slot(id) += 1;
    }

    fn cut(&mut self, entered: BlockId, executed: Option<(BlockId, &Block)>) {
        *self.executions.slot(entered) -= 1;
        if let Some((id, _)) = executed {
            *self.executions.slot(id) += 1;
        }
    }

    fn system_call(&mut self, number: u32) {
        *self.system_calls.slot(number) += 1;
    }

    fn mapped(&mut self, image: &LoadedImage) {
        self.images.push(image.clone());
    }
}

/// What to watch as a unit of work.
#[derive(Clone, Debug, Default)]
pub struct UnitOfWork {
    /// The function whose calls are counted apart: `name` or `image!name`.
    pub function: String,
    /// Variables of 8 bytes whose values each unit records at its end.
    pub gauges: Vec<String>,
}

/// Receives each unit as it ends. Returns false when it needs no more of them.
pub type UnitSink<'a> = Box<dyn FnMut(Unit) -> bool + 'a>;

/// A unit that has begun and not ended.
#[derive(Clone, Debug)]
struct Open {
    return_address: u64,
    stack_pointer: u64,
    instructions: u64,
}

/// Counts the whole run, and each unit of work apart.
pub struct UnitCounter<'a> {
    /// The counts of the whole run.
    pub total: Counter,
    work: UnitOfWork,
    sink: UnitSink<'a>,
    /// Addresses at which the unit's function is entered.
    entries: Vec<u64>,
    gauges: Vec<Option<u64>>,
    open: Option<Open>,
    number: u64,
    wanted: bool,
    executions: Tally,
    ran: Vec<BlockId>,
    system_calls: Vec<(u32, u64)>,
    previous_end: u64,
}

impl<'a> UnitCounter<'a> {
    /// Counts calls of `work.function` and hands each to `sink`.
    pub fn new(work: UnitOfWork, sink: UnitSink<'a>) -> UnitCounter<'a> {
        UnitCounter {
            total: Counter::default(),
            gauges: vec![None; work.gauges.len()],
            work,
            sink,
            entries: Vec::new(),
            open: None,
            number: 0,
            wanted: true,
            executions: Tally::default(),
            ran: Vec::new(),
            system_calls: Vec::new(),
            previous_end: 0,
        }
    }

    /// Whether any image that was mapped has the unit's function.
    pub fn found(&self) -> bool {
        !self.entries.is_empty()
    }

    /// The first gauge that no image that was mapped has.
    pub fn missing_gauge(&self) -> Option<&str> {
        let missing = self.gauges.iter().position(Option::is_none)?;
        Some(&self.work.gauges[missing])
    }

    /// How many units began.
    pub fn begun(&self) -> u64 {
        self.number + u64::from(self.open.is_some())
    }

    /// The program has ended: a unit that is still open ends with it.
    pub fn finish(&mut self, cpu: &Cpu, memory: &Memory) {
        if self.open.is_some() {
            self.end(cpu, memory, false);
        }
    }

    /// Control enters the unit's function: a unit begins, unless this is a call from within one.
    #[cold]
    fn called(&mut self, cpu: &Cpu, memory: &Memory) {
        if let Some(open) = &self.open {
            // A unit left by longjmp never returned. That it was left shows when the function is
            // called from a frame that must have outlived it. A tail call of the function to itself
            // looks alike, but is a jump: it leaves ra as it is.
            let stack_pointer = cpu.r[register::SP];
            let by_call = cpu.r[register::RA] & !3 == self.previous_end;
            let outlived = stack_pointer > open.stack_pointer;
            if !(outlived || stack_pointer == open.stack_pointer && by_call) {
                return;
            }
            self.end(cpu, memory, false);
        }
        self.open = Some(Open {
            return_address: cpu.r[register::RA] & !3,
            stack_pointer: cpu.r[register::SP],
            instructions: cpu.instructions,
        });
    }

    #[cold]
    fn end(&mut self, cpu: &Cpu, memory: &Memory, returned: bool) {
        let began = self.open.take().map_or(cpu.instructions, |open| open.instructions);
        let gauge = |address: &Option<u64>| address.and_then(|a| memory.load::<8>(a).ok()).unwrap_or(0);
        let mut unit = Unit {
            number: self.number,
            instructions: cpu.instructions - began,
            blocks: Vec::with_capacity(self.ran.len()),
            system_calls: std::mem::take(&mut self.system_calls),
            gauges: self.gauges.iter().map(gauge).collect(),
            returned,
        };
        for id in self.ran.drain(..) {
            let executions = std::mem::take(self.executions.slot(id));
            // Zero if the one execution was cut short.
            if executions > 0 {
                unit.blocks.push((id, executions));
            }
        }
        self.number += 1;
        self.wanted = (self.sink)(unit);
    }
}

/// Counts one more execution of `id` within a unit.
#[inline(always)]
fn count(executions: &mut Tally, ran: &mut Vec<BlockId>, id: BlockId) {
    let slot = executions.slot(id);
    if *slot == 0 {
        ran.push(id);
    }
    *slot += 1;
}

impl Observer for UnitCounter<'_> {
    #[inline(always)]
    fn enter(&mut self, id: BlockId, block: &Block, cpu: &Cpu, memory: &Memory) {
        self.total.enter(id, block, cpu, memory);
        if let Some(open) = &self.open
            && block.address == open.return_address
            && cpu.r[register::SP] == open.stack_pointer
        {
            self.end(cpu, memory, true);
        }
        if self.entries.contains(&block.address) && self.wanted {
            self.called(cpu, memory);
        }
        if self.open.is_some() {
            self.previous_end = block.end();
            count(&mut self.executions, &mut self.ran, id);
        }
    }

    fn cut(&mut self, entered: BlockId, executed: Option<(BlockId, &Block)>) {
        self.total.cut(entered, executed);
        if self.open.is_some() {
            *self.executions.slot(entered) -= 1;
            if let Some((id, _)) = executed {
                count(&mut self.executions, &mut self.ran, id);
            }
        }
    }

    fn system_call(&mut self, number: u32) {
        self.total.system_call(number);
        if self.open.is_some() {
            match self.system_calls.iter_mut().find(|(known, _)| *known == number) {
                Some((_, times)) => *times += 1,
                None => self.system_calls.push((number, 1)),
            }
        }
    }

    fn mapped(&mut self, image: &LoadedImage) {
        self.total.mapped(image);
        let (wanted_image, function) = split_name(&self.work.function);
        if !names(image, wanted_image) && self.work.gauges.is_empty() {
            return;
        }
        // An image that cannot be read any more has no symbols.
        let Ok(file) = image::Image::open(&image.path) else { return };
        if names(image, wanted_image) {
            for symbol in file.symbols(function).iter().filter(|symbol| symbol.function) {
                self.entries.extend(entries(&file, symbol.address).map(|at| at.wrapping_add(image.bias)));
            }
        }
        for (gauge, address) in self.work.gauges.iter().zip(&mut self.gauges) {
            let (wanted_image, name) = split_name(gauge);
            if names(image, wanted_image)
                && let Some(symbol) = file.symbol(name)
            {
                address.get_or_insert(symbol.address.wrapping_add(image.bias));
            }
        }
    }
}

/// Splits `image!symbol`.
fn split_name(name: &str) -> (Option<&str>, &str) {
    name.split_once('!').map_or((None, name), |(image, symbol)| (Some(image), symbol))
}

/// Whether a wanted image, by file name or its beginning, is this one.
fn names(image: &LoadedImage, wanted: Option<&str>) -> bool {
    let file = image.path.file_name().map(|name| name.to_string_lossy());
    wanted.is_none_or(|wanted| {
        file.is_some_and(|file| {
            file.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    })
}

/// A function is entered at its address and, by callers that share its global pointer, behind the
/// two instructions that compute the global pointer (Calling Standard for Alpha, 3.1): `ldah gp`
/// and `lda gp`.
fn entries(file: &image::Image, address: u64) -> impl Iterator<Item = u64> {
    let gp = register::GP as u8;
    let word = |at| {
        file.code().iter().find(|code| (code.address..code.end()).contains(&at)).and_then(|code| {
            let start = code.file.start + (at - code.address) as usize;
            file.bytes()
                .get(start..start + 4)
                .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
        })
    };
    let sets_gp = |at, op| word(at).and_then(isa::decode).is_some_and(|i| i.op == op && i.ra() == gp);
    let second = sets_gp(address, isa::Op::Ldah) && sets_gp(address + 4, isa::Op::Lda);
    std::iter::once(address).chain(second.then_some(address + 8))
}
