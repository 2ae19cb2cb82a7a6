//! Traces made up by proptest.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use events::record::{Event, Heap, Mark, Shape};
use events::{Block, BlockId, Image};
use pathlength_trace::{Function, Header, Process, StreamWriter, Trace, Writer};
use proptest::collection::vec;
use proptest::prelude::*;

/// What a file is made of.
#[derive(Clone, Debug)]
pub struct Made {
    pub has_values: bool,
    pub blocks: Vec<Block>,
    /// Of each thread, in pieces as they are written.
    pub threads: Vec<Vec<Piece>>,
}

/// A part of a thread's records: executions, and marks.
pub type Piece = Vec<Item>;

#[derive(Clone, Debug)]
pub enum Item {
    /// Of a block (by any number), whose addresses and values come from these.
    Execution(usize, Vec<u64>),
    Mark(Mark),
}

/// Instructions that the format has rules for, with registers of every kind, and arbitrary words.
fn instruction() -> impl Strategy<Value = u32> {
    let opcode = prop_oneof![
        Just(0x08u32), // lda
        Just(0x09),    // ldah
        Just(0x29),    // ldq
        Just(0x2d),    // stq
        Just(0x0b),    // ldq_u
        Just(0x0f),    // stq_u
        Just(0x28),    // ldl
        Just(0x2f),    // stq_c
        Just(0x34),    // bsr
        Just(0x39),    // beq
    ];
    let register = || prop_oneof![Just(30u32), Just(31), Just(16), 0u32..32];
    let memory = (opcode, register(), register(), any::<u16>())
        .prop_map(|(opcode, a, b, low)| opcode << 26 | a << 21 | b << 16 | u32::from(low));
    let jump = (register(), register(), 0u32..4)
        .prop_map(|(a, b, kind)| 0x1a << 26 | a << 21 | b << 16 | kind << 14);
    let operate = (prop_oneof![Just(0x20u32), Just(0x29), Just(0x00)], any::<u32>())
        .prop_map(|(function, rest)| 0x10 << 26 | rest & 0x03ff_f01f | function << 5);
    let copy = (register(), register()).prop_map(|(a, c)| 0x11 << 26 | a << 21 | a << 16 | 0x20 << 5 | c);
    prop_oneof![4 => memory, 1 => jump, 1 => operate, 1 => copy, 1 => any::<u32>(), 1 => Just(0x83u32)]
}

pub fn mark() -> impl Strategy<Value = Mark> {
    let number = || prop_oneof![0u64..5, 0u64..1 << 56];
    prop_oneof![
        number().prop_map(Mark::Order),
        Just(Mark::Gap),
        Just(Mark::Discontinuity),
        any::<u32>().prop_map(Mark::SystemCall),
        number().prop_map(Mark::UnitBegins),
        number().prop_map(Mark::UnitEnds),
        number().prop_map(Mark::UnitLeft),
        number().prop_map(|address| Mark::Heap(Heap::Caller(address))),
        number().prop_map(|bytes| Mark::Heap(Heap::Size(bytes))),
        number().prop_map(|address| Mark::Heap(Heap::Block(address))),
        number().prop_map(|address| Mark::Heap(Heap::Freed(address))),
        any::<u32>().prop_map(|process| Mark::Heap(Heap::Copied(process))),
        Just(Mark::Heap(Heap::Gone)),
    ]
}

/// A word of a record: often one that was there before, or near it.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => (0u64..64).prop_map(|n| 0x1_2000_0000 + 8 * n),
        1 => any::<u64>(),
        1 => Just(0),
    ]
}

pub fn made() -> impl Strategy<Value = Made> {
    let block = (prop_oneof![0u64..16, any::<u64>()], vec(instruction(), 1..8))
        .prop_map(|(address, words)| Block { address: address & !3, words, image: None });
    let item = prop_oneof![
        8 => (any::<usize>(), vec(word(), 16)).prop_map(|(block, words)| Item::Execution(block, words)),
        1 => mark().prop_map(Item::Mark),
    ];
    (any::<bool>(), vec(block, 1..12), vec(vec(vec(item, 0..60), 0..4), 0..3))
        .prop_map(|(has_values, blocks, threads)| Made { has_values, blocks, threads })
}

/// A file's path that no other test has.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.trace"))
}

/// Begins a trace anew.
pub fn begin(path: &Path, header: &Header) -> Arc<Writer> {
    let _ = std::fs::remove_file(path);
    let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    Writer::new(file, header).unwrap()
}

impl Made {
    pub fn header(&self) -> Header {
        Header { cpu: "ev67".into(), has_values: self.has_values, ..Header::default() }
    }

    /// Writes the file; returns the words of each thread, its blocks numbered as in the file.
    pub fn write(&self, path: &Path) -> Vec<Vec<u64>> {
        let writer = begin(path, &self.header());
        let process = Process::new(&writer, 0, 1);
        let (start, end) = (0, 1 << 40);
        process.add_image(Image { path: "a".into(), start, end, bias: 5, build_id: vec![1] });
        let mut shapes = Vec::new();
        let ids: Vec<BlockId> =
            self.blocks.iter().map(|block| add(&process, &mut shapes, block, self.has_values)).collect();
        let mut streams: Vec<_> = self.threads.iter().map(|_| StreamWriter::new(&process)).collect();
        let mut written = vec![Vec::new(); streams.len()];
        for (index, pieces) in self.threads.iter().enumerate() {
            for piece in pieces {
                let words = words(piece, &ids, &shapes);
                streams[index].write(&words).unwrap();
                written[index].extend(words);
            }
            streams[index].finish().unwrap();
        }
        written
    }
}

fn add(process: &Arc<Process>, shapes: &mut Vec<Shape>, block: &Block, has_values: bool) -> BlockId {
    let block = Block { image: Some(0), ..block.clone() };
    let (words, address) = (block.words.clone(), block.address);
    let function = Function { name: format!("f{}", address % 3), image: 0, address: address % 3, size: 4 };
    let id = process.block(block, || (address % 5 > 0).then_some(function)).unwrap();
    if id as usize == shapes.len() {
        shapes.push(Shape::new(&words, has_values));
    }
    id
}

fn words(piece: &Piece, ids: &[BlockId], shapes: &[Shape]) -> Vec<u64> {
    let mut words = Vec::new();
    for item in piece {
        match item {
            Item::Mark(mark) => words.push(Event::Mark(*mark).word()),
            Item::Execution(block, rest) => {
                let id = ids[block % ids.len()];
                words.push(Event::Block(id).word());
                let shape = shapes[id as usize];
                words.extend(&rest[..(shape.accesses + shape.values) as usize]);
            }
        }
    }
    words
}

/// All records of a stream.
pub fn read_stream(trace: &Trace, stream: usize) -> Vec<u64> {
    let (mut all, mut words) = (Vec::new(), Vec::new());
    for (index, chunk) in trace.chunks().iter().enumerate() {
        if chunk.stream as usize == stream {
            trace.read(index, &mut words).unwrap();
            all.extend_from_slice(&words);
        }
    }
    all
}
