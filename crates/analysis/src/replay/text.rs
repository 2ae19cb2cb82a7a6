//! A fast writer for the lines of a listing.

use std::io::{self, Write};

use events::record::{Heap, Mark, Register};
use image::SourceLocation;
use trace::{ThreadStream, Trace};

use super::listing::{EffectPart, effect_column};

/// The size of the buffer in bytes.
const ENOUGH: usize = 64 << 10;
/// The least number of digits of instruction numbers.
const DIGITS: usize = 9;

/// Writes a listing's lines.
pub(super) struct ListingText<'a, W: Write> {
    trace: &'a Trace,
    system_call: &'a dyn Fn(u32) -> String,
    out: W,
    line: Vec<u8>,
    stream: Option<u32>,
    effect_column: usize,
}

impl<'a, W: Write> ListingText<'a, W> {
    /// Writes to `out`; `system_call` maps the numbers of system calls to names. Effects are in the column after
    /// addresses of this number of digits.
    pub fn new(
        trace: &'a Trace,
        system_call: &'a dyn Fn(u32) -> String,
        out: W,
        digits: usize,
    ) -> ListingText<'a, W> {
        let line = Vec::with_capacity(2 * ENOUGH);
        ListingText { trace, system_call, out, line, stream: None, effect_column: effect_column(digits) }
    }

    /// Writes the remaining lines.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.write_all(&self.line)?;
        self.out.flush()
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.line.push(b'\n');
        if self.line.len() >= ENOUGH {
            self.out.write_all(&self.line)?;
            self.line.clear();
        }
        Ok(())
    }

    /// Writes the thread, if it is another one than before.
    pub fn thread(&mut self, stream: u32, before: u64) -> io::Result<()> {
        if self.stream.replace(stream) == Some(stream) || self.trace.streams().len() == 1 {
            return Ok(());
        }
        let known = &self.trace.streams()[stream as usize];
        let host = host_process(self.trace, known);
        let text = format!("process {} (number {host}), thread {}", known.process, known.thread);
        self.remark(before, &text)
    }

    /// Writes a mark.
    pub fn mark(&mut self, stream: u32, before: u64, mark: Mark) -> io::Result<()> {
        let text = match mark {
            // There are some dozens of them where a process begins.
            Mark::Order(_) | Mark::Mapping(_) => return Ok(()),
            Mark::Gap if before == 0 => "the trace begins".into(),
            Mark::Gap => "the trace continues after a gap".into(),
            Mark::Discontinuity => {
                "control continues elsewhere: a signal's handler begins or ends, or another program begins"
                    .into()
            }
            Mark::Exception(exception) => format!("exception: {}", exception.name()),
            Mark::PalCall(_) | Mark::PalReturn | Mark::ObjectEntered(_) | Mark::ObjectLeft(_) => {
                return Ok(());
            }
            Mark::LockAcquired(_) | Mark::LockReleased(_) | Mark::LockAwaited(_) => return Ok(()),
            Mark::SystemCall(number) => format!("system call {number}: {}", (self.system_call)(number)),
            Mark::UnitBegins(number) => format!("unit of work {number} begins"),
            Mark::UnitEnds(number) => format!("unit of work {number} ends"),
            Mark::UnitCut(number) => format!("unit of work {number} goes on, but is recorded no more"),
            Mark::UnitLeft(number) => format!("unit of work {number} is left, not by its function's return"),
            Mark::Heap(Heap::Caller(address)) => format!("allocated for the caller before {address:#x}"),
            Mark::Heap(Heap::Name(bytes)) => {
                format!(
                    "a block that was allocated before: {}",
                    String::from_utf8_lossy(&bytes.to_le_bytes())
                )
            }
            Mark::Heap(Heap::Size(bytes)) => format!("allocated: {bytes} bytes"),
            Mark::Heap(Heap::Block(0)) => "not allocated: the last freed block is still there".into(),
            Mark::Heap(Heap::Block(address)) => format!("allocated: the block at {address:#x}"),
            Mark::Heap(Heap::Freed(address)) => format!("freed: the block at {address:#x}"),
            Mark::Heap(Heap::Copied(process)) => format!("the heap is a copy of that of process {process}"),
            Mark::Heap(Heap::Gone) => "the heap is empty: another program begins".into(),
        };
        self.thread(stream, before)?;
        self.remark(before, &text)
    }

    /// A line that is not an instruction.
    pub fn remark(&mut self, before: u64, text: &str) -> io::Result<()> {
        self.number(before);
        self.line.extend(b"  ** ");
        self.line.extend(::text::printable(text).as_bytes());
        self.end_line()
    }

    /// A line that says where control is.
    pub fn heading(&mut self, text: &str) -> io::Result<()> {
        self.line.resize(self.line.len() + DIGITS + 2, b' ');
        self.line.extend(::text::printable(text).as_bytes());
        self.end_line()
    }

    /// A line with an instruction and its effect.
    pub fn line(&mut self, number: u64, text: &str, effect: [EffectPart; 3]) -> io::Result<()> {
        self.number(number);
        self.line.extend(b"  ");
        self.line.extend(text.as_bytes());
        if effect[0] != EffectPart::Nothing {
            let padding = self.effect_column.saturating_sub(text.len());
            self.line.resize(self.line.len() + padding, b' ');
            self.line.extend(b" // ");
            effect.into_iter().for_each(|part| self.part(part));
        }
        self.end_line()
    }

    fn part(&mut self, part: EffectPart) {
        match part {
            EffectPart::Nothing => {}
            EffectPart::Word(word) => self.line.extend(word.as_bytes()),
            EffectPart::Number(number) => self.hexadecimal(number),
            EffectPart::At(address) => {
                self.line.push(b'@');
                self.hexadecimal(address);
            }
            EffectPart::Register(register) => self.register(register),
            EffectPart::Tested(register) => {
                self.line.push(b'(');
                self.register(register);
                self.line.extend(b" is ");
            }
        }
    }

    fn register(&mut self, register: Register) {
        self.line.extend(self.trace.instruction_set().register_name(register).as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.decimal(number, DIGITS);
    }

    /// Right-aligned to this number of columns.
    fn decimal(&mut self, mut number: u64, width: usize) {
        let mut digits = [b' '; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.line.extend(&digits[at.min(digits.len() - width)..]);
    }

    fn hexadecimal(&mut self, number: u64) {
        let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
        for digit in (0..digits).rev() {
            self.line.push(b"0123456789abcdef"[(number >> (4 * digit) & 15) as usize]);
        }
    }
}

/// The host's number of a stream's process.
pub(crate) fn host_process(trace: &Trace, stream: &ThreadStream) -> u32 {
    if stream.host_process == 0 { trace.header().process } else { stream.host_process }
}

/// A thread in the notation of the command line.
pub(super) fn thread(stream: &ThreadStream) -> String {
    format!("{}.{}", stream.process, stream.thread)
}

/// File and line, for people.
pub(super) fn describe(source: &SourceLocation) -> String {
    match source.line {
        Some(line) => format!("{}:{line}", source.file),
        None => source.file.clone(),
    }
}
