//! The code with which an instrumented image starts: it maps a file over a segment of the image.
//!
//! It needs no library: an image's start may run before that of its C library. It changes no register but pv, and no memory but the
//! segment, and whatever fails, the program runs on, uncounted, after a message.

use isa::encode::{self, EncodeError, SecondOperand};
use isa::{Op, encode::SecondOperand::Literal as L, encode::SecondOperand::Register as R};
use object::elf;

use crate::assemble::{CodeLayout, Fragment};
use crate::counts::{CountsHeader, HEADER_BYTES, PAGE};
use crate::elf::Elf;
use crate::error::Problem;
use crate::layout::ALIGN;
use crate::program::{
    Anchor, BranchTarget, CodeBlock, CodeBlockId, CodeExit, CounterSegment, Frozen, ImageCounter,
    LiftedInstruction, PV, Procedure, ProcedureId, Program, Reference, SP, ZERO,
};
use crate::unwind::NO_ROW;

/// System calls of Linux on Alpha.
mod call {
    pub const WRITE: i16 = 4;
    pub const CLOSE: i16 = 6;
    pub const LSEEK: i16 = 19;
    pub const MMAP: i16 = 71;
    pub const MUNMAP: i16 = 73;
    pub const MADVISE: i16 = 75;
    pub const OPENAT: i16 = 450;
}
const AT_FDCWD: i16 = -100;
/// `O_RDWR | O_CLOEXEC`: the upper and the lower half.
const OPEN_FLAGS: (i16, i16) = (0x20, 2);
const SEEK_END: i16 = 2;
/// `PROT_READ | PROT_WRITE`.
const PROTECTION: i16 = 3;
const MAP_SHARED: i16 = 1;
const MAP_FIXED: i16 = 0x100;
const MADV_WIPEONFORK: i16 = 18;
const CALLSYS: u32 = 0x83;
const STANDARD_ERROR: i16 = 2;

// The registers that the code uses between system calls, which preserve them.
const CODE: u8 = 9;
const FILE: u8 = 10;
const COPY: u8 = 11;
const COUNTERS: u8 = 12;
const END: u8 = 13;
const SIZE: u8 = 14;
const V0: u8 = 0;
const T: [u8; 3] = [1, 2, 3];
const A: [u8; 6] = [16, 17, 18, 19, 20, 21];
const ERROR: u8 = 19;
/// Registers that are saved.
const SAVED: [u8; 30] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
    29,
];
const FRAME: i16 = 240;

/// The original address of the code that is executed first: of a program its entry, of a shared object its initialisation.
fn entry(elf: &Elf) -> Result<u64, Problem> {
    let is_program = elf.headers.iter().any(|header| header.kind == elf::PT_INTERP.0)
        || !elf.headers.iter().any(|header| header.kind == elf::PT_DYNAMIC.0);
    if is_program {
        return Ok(elf.entry);
    }
    let table = elf.sections.iter().find(|section| section.kind == elf::SHT_DYNAMIC.0);
    let entries = table.map(|table| elf.data(table).as_chunks::<16>().0).unwrap_or_default();
    let word =
        |entry: &[u8; 16], at: usize| u64::from_le_bytes(std::array::from_fn(|index| entry[at + index]));
    let found = entries.iter().find(|entry| word(entry, 0) == elf::DT_INIT.0 as u64);
    found.map(|entry| word(entry, 8)).ok_or(Problem::NoInitialisation)
}

/// The file that an image maps.
#[derive(Clone, Copy, Debug)]
pub struct MappedFile<'a> {
    /// The required second word of the file.
    pub id: u64,
    /// Its bytes, a multiple of a page.
    pub size: u64,
    /// Its absolute path.
    pub path: &'a [u8],
    /// The offset of the first counter, if what the segment holds is to be added to the file: another image's start may have
    /// called code of this one.
    pub first_counter: Option<u64>,
    /// Whether each process has a page of its own before the file, which is empty in a child.
    pub has_own_page: bool,
    /// The message to the user if the file cannot be mapped.
    pub message: &'a str,
}

impl<'a> MappedFile<'a> {
    /// The file with the counts of an image.
    pub fn counts(header: &CountsHeader, path: &'a [u8]) -> MappedFile<'a> {
        MappedFile {
            id: header.id,
            size: header.size,
            path,
            first_counter: Some(u64::from(HEADER_BYTES) + 8 * header.calls),
            has_own_page: false,
            message: ": is missing, cannot be written, or is not that of this instrumented image; this run is not counted. Instrument the image again\n",
        }
    }

    fn before(&self) -> i16 {
        if self.has_own_page { PAGE as i16 } else { 0 }
    }
}

/// Adds the code, and a segment for the file, to a program that is not yet laid out otherwise.
pub fn add(program: &mut Program, layout: &mut CodeLayout, file: &MappedFile) -> Result<(), Problem> {
    let entry = entry(&program.elf)?;
    let original = program.code.block(entry);
    let original = original.ok_or_else(|| Problem::Damaged(format!("no code at the entry {entry:#x}")))?;
    let start = add_block(program, original, file);
    let procedure = program.blocks[start as usize].procedure;
    layout.fragments.push(Fragment { procedure, blocks: vec![start], align: ALIGN });
    program.counters = Some(CounterSegment { size: file.size + file.before() as u64, entry, start });
    Ok(())
}

/// The code, which continues with the block `original`.
fn add_block(program: &mut Program, original: CodeBlockId, file: &MappedFile) -> CodeBlockId {
    let procedure = program.procedures.len() as ProcedureId;
    let mut writer = StartWriter::default();
    match writer.all(file).and_then(|()| writer.address(PV, original)) {
        Ok(()) => {}
        Err(error) => unreachable!("the start code has legal operands: {error}"),
    }
    let instruction =
        |(word, reference)| LiftedInstruction { reference, ..LiftedInstruction::new(word, NO_ROW) };
    let branch = instruction((encode::branch(Op::Br, ZERO, 0).unwrap_or_default(), Reference::None));
    let block = CodeBlock {
        procedure,
        instructions: writer.finish().into_iter().map(instruction).collect(),
        exit: CodeExit::Branch { branch, target: BranchTarget::Block(original) },
        is_address_taken: false,
        call_site: None,
        count: 0,
    };
    let id = program.add_block(block);
    program.procedures.push(Procedure {
        name: "pathlength_start".into(),
        blocks: vec![id],
        frozen: Some(Frozen::Data),
        global_pointer: 0,
        frame: None,
        original: None,
    });
    id
}

/// A label in the code that branches go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartLabel {
    Loop,
    Again,
    Next,
    Unmap,
    Close,
    Message,
    Done,
}

#[derive(Debug, Default)]
struct StartWriter {
    words: Vec<(u32, Reference)>,
    labels: Vec<(StartLabel, usize)>,
    branches: Vec<(StartLabel, usize)>,
}

impl StartWriter {
    fn push(&mut self, word: u32) {
        self.words.push((word, Reference::None));
    }

    fn memory(&mut self, op: Op, a: u8, b: u8, displacement: i16) -> Result<(), EncodeError> {
        self.push(encode::memory(op, a, b, displacement)?);
        Ok(())
    }

    fn operate(&mut self, op: Op, a: u8, b: SecondOperand, c: u8) -> Result<(), EncodeError> {
        self.push(encode::operate(op, a, b, c)?);
        Ok(())
    }

    fn branch(&mut self, op: Op, a: u8, label: StartLabel) -> Result<(), EncodeError> {
        self.branches.push((label, self.words.len()));
        self.push(encode::branch(op, a, 0)?);
        Ok(())
    }

    fn label(&mut self, label: StartLabel) {
        self.labels.push((label, self.words.len()));
    }

    /// Sets a register to a constant.
    fn constant(&mut self, register: u8, value: i64) -> Result<(), EncodeError> {
        let low = value as i16;
        let high = ((value - i64::from(low)) >> 16) as i16;
        self.memory(Op::Ldah, register, ZERO, high)?;
        self.memory(Op::Lda, register, register, low)
    }

    fn system_call(&mut self, number: i16) -> Result<(), EncodeError> {
        self.memory(Op::Lda, V0, ZERO, number)?;
        self.push(encode::call_pal(CALLSYS)?);
        Ok(())
    }

    /// The distance from the first data to CODE, and the data, behind a branch over them.
    fn data(&mut self, id: u64, path: &[u8], message: &[u8]) -> Result<(i16, i16, i16), EncodeError> {
        let mut bytes = id.to_le_bytes().to_vec();
        bytes.extend(path);
        bytes.push(0);
        let message_at = bytes.len() as i16;
        bytes.extend(message);
        // The branch is behind an even number of instructions, so that the data is aligned.
        if self.words.len().is_multiple_of(2) {
            self.operate(Op::Bis, ZERO, R(ZERO), ZERO)?;
        }
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self.push(encode::branch(Op::Br, CODE, bytes.len() as i64)?);
        for word in bytes.as_chunks::<4>().0 {
            self.push(u32::from_le_bytes(*word));
        }
        Ok((0, 8, message_at))
    }

    fn all(&mut self, file: &MappedFile) -> Result<(), EncodeError> {
        let message = [b"pathlength: ".as_slice(), file.path, file.message.as_bytes()].concat();
        self.memory(Op::Lda, SP, SP, -FRAME)?;
        for (register, at) in SAVED.into_iter().zip(0..) {
            self.memory(Op::Stq, register, SP, at * 8)?;
        }
        let (id_at, path_at, message_at) = self.data(file.id, file.path, &message)?;
        self.segment()?;
        if file.has_own_page {
            self.own_page()?;
        }
        self.constant(SIZE, file.size as i64)?;

        self.memory(Op::Lda, A[0], ZERO, AT_FDCWD)?;
        self.memory(Op::Lda, A[1], CODE, path_at)?;
        self.memory(Op::Ldah, A[2], ZERO, OPEN_FLAGS.0)?;
        self.memory(Op::Lda, A[2], A[2], OPEN_FLAGS.1)?;
        self.operate(Op::Bis, ZERO, R(ZERO), A[3])?;
        self.system_call(call::OPENAT)?;
        self.branch(Op::Bne, ERROR, StartLabel::Message)?;
        self.operate(Op::Bis, V0, R(ZERO), FILE)?;

        self.operate(Op::Bis, FILE, R(ZERO), A[0])?;
        self.memory(Op::Lda, A[1], ZERO, 0)?;
        self.memory(Op::Lda, A[2], ZERO, SEEK_END)?;
        self.system_call(call::LSEEK)?;
        self.branch(Op::Bne, ERROR, StartLabel::Close)?;
        self.operate(Op::Cmpeq, V0, R(SIZE), T[0])?;
        self.branch(Op::Beq, T[0], StartLabel::Close)?;

        self.map(MAP_SHARED, ZERO)?;
        self.branch(Op::Bne, ERROR, StartLabel::Close)?;
        self.operate(Op::Bis, V0, R(ZERO), COPY)?;
        self.memory(Op::Ldq, T[0], COPY, 8)?;
        self.memory(Op::Ldq, T[1], CODE, id_at)?;
        self.operate(Op::Cmpeq, T[0], R(T[1]), T[0])?;
        self.branch(Op::Beq, T[0], StartLabel::Unmap)?;

        if let Some(first) = file.first_counter {
            self.add_counts(first as i64)?;
        }
        self.map(MAP_SHARED | MAP_FIXED, COUNTERS)?;
        self.operate(Op::Bis, ERROR, R(ZERO), END)?;
        self.unmap()?;
        self.close()?;
        self.branch(Op::Bne, END, StartLabel::Message)?;
        self.branch(Op::Br, ZERO, StartLabel::Done)?;

        self.label(StartLabel::Unmap);
        self.unmap()?;
        self.label(StartLabel::Close);
        self.close()?;
        self.label(StartLabel::Message);
        self.memory(Op::Lda, A[0], ZERO, STANDARD_ERROR)?;
        self.memory(Op::Lda, A[1], CODE, message_at)?;
        self.constant(A[2], message.len() as i64)?;
        self.system_call(call::WRITE)?;

        self.label(StartLabel::Done);
        for (register, at) in SAVED.into_iter().zip(0..) {
            self.memory(Op::Ldq, register, SP, at * 8)?;
        }
        self.memory(Op::Lda, SP, SP, FRAME)
    }

    /// The address of the segment.
    fn segment(&mut self) -> Result<(), EncodeError> {
        let counter = |back| ImageCounter { offset: 0, anchor: Anchor::Instruction(back) };
        self.push(encode::branch(Op::Br, COUNTERS, 0)?);
        let high = encode::memory(Op::Ldah, COUNTERS, COUNTERS, 0)?;
        self.words.push((high, Reference::CounterHigh(counter(0))));
        let low = encode::memory(Op::Lda, COUNTERS, COUNTERS, 0)?;
        self.words.push((low, Reference::CounterLow(counter(1))));
        Ok(())
    }

    /// The first page of the segment stays before the file, and is empty in children.
    fn own_page(&mut self) -> Result<(), EncodeError> {
        self.operate(Op::Bis, COUNTERS, R(ZERO), A[0])?;
        self.constant(A[1], PAGE as i64)?;
        self.memory(Op::Lda, A[2], ZERO, MADV_WIPEONFORK)?;
        self.system_call(call::MADVISE)?;
        self.memory(Op::Lda, COUNTERS, COUNTERS, PAGE as i16)
    }

    /// Sets a register to the address of a block: pv, by which procedures find their global pointer.
    fn address(&mut self, register: u8, block: CodeBlockId) -> Result<(), EncodeError> {
        let counter = |back| ImageCounter { offset: 0, anchor: Anchor::Block(back, block) };
        self.push(encode::branch(Op::Br, register, 0)?);
        let high = encode::memory(Op::Ldah, register, register, 0)?;
        self.words.push((high, Reference::CounterHigh(counter(0))));
        let low = encode::memory(Op::Lda, register, register, 0)?;
        self.words.push((low, Reference::CounterLow(counter(1))));
        Ok(())
    }

    fn map(&mut self, flags: i16, address: u8) -> Result<(), EncodeError> {
        self.operate(Op::Bis, address, R(ZERO), A[0])?;
        self.operate(Op::Bis, SIZE, R(ZERO), A[1])?;
        self.memory(Op::Lda, A[2], ZERO, PROTECTION)?;
        self.memory(Op::Lda, A[3], ZERO, flags)?;
        self.operate(Op::Bis, FILE, R(ZERO), A[4])?;
        self.operate(Op::Bis, ZERO, R(ZERO), A[5])?;
        self.system_call(call::MMAP)
    }

    fn unmap(&mut self) -> Result<(), EncodeError> {
        self.operate(Op::Bis, COPY, R(ZERO), A[0])?;
        self.operate(Op::Bis, SIZE, R(ZERO), A[1])?;
        self.system_call(call::MUNMAP)
    }

    fn close(&mut self) -> Result<(), EncodeError> {
        self.operate(Op::Bis, FILE, R(ZERO), A[0])?;
        self.system_call(call::CLOSE)
    }

    /// Adds what was counted before to the file: other images' starts may have called this one.
    fn add_counts(&mut self, first_counter: i64) -> Result<(), EncodeError> {
        let [from, to, value] = T;
        self.constant(value, first_counter)?;
        self.operate(Op::Addq, COUNTERS, R(value), from)?;
        self.operate(Op::Addq, COPY, R(value), to)?;
        self.operate(Op::Addq, COUNTERS, R(SIZE), END)?;
        self.label(StartLabel::Loop);
        self.memory(Op::Ldq, value, from, 0)?;
        self.branch(Op::Beq, value, StartLabel::Next)?;
        self.label(StartLabel::Again);
        self.memory(Op::LdqL, A[0], to, 0)?;
        self.operate(Op::Addq, A[0], R(value), A[0])?;
        self.memory(Op::StqC, A[0], to, 0)?;
        self.branch(Op::Beq, A[0], StartLabel::Again)?;
        self.label(StartLabel::Next);
        self.operate(Op::Addq, from, L(8), from)?;
        self.operate(Op::Addq, to, L(8), to)?;
        self.operate(Op::Cmpult, from, R(END), value)?;
        self.branch(Op::Bne, value, StartLabel::Loop)
    }

    fn finish(mut self) -> Vec<(u32, Reference)> {
        for (label, at) in self.branches {
            let to = self.labels.iter().find(|one| one.0 == label).map_or(at, |one| one.1);
            let distance = to as i64 - at as i64 - 1;
            self.words[at].0 |= distance as u32 & 0x1f_ffff;
        }
        self.words
    }
}
