//! Traces made by hand.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::sync::Arc;

use events::record::{Event, Mark};
use events::{Block, BlockId, MappedImage};
use pathlength_analysis::names::Names;
use pathlength_analysis::replay::{
    Accesses, Dictionary, Filter, FunctionTrace, Listing, Replay, ReplayOrder, Selection, Visitor,
};
use trace::{Function, Header, ProcessDictionary, StreamWriter, Trace, Writer};

/// The functions of every process's image: 0x100 bytes each.
pub const FUNCTIONS: [(&str, u64); 4] = [("main", 0x1000), ("f", 0x1100), ("g", 0x1200), ("h", 0x1300)];

/// Records in a chunk: few, so that there are many chunks.
const CHUNK: usize = 7;

/// An item of a thread's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An execution of a block: its index, addresses and values.
    Block(usize, Vec<u64>),
    /// A mark.
    Mark(Mark),
}

/// A thread's records.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub process: u32,
    pub items: Vec<Item>,
}

/// A trace: the blocks are the same in every process.
#[derive(Clone, Debug, Default)]
pub struct Made {
    pub has_values: bool,
    /// Of a whole system, where PALcode is.
    pub palcode: Option<(u64, u64)>,
    pub blocks: Vec<(u64, Vec<u32>)>,
    pub threads: Vec<Thread>,
}

impl Made {
    /// One thread that executes these blocks.
    pub fn thread(blocks: &[(u64, &[u32])], items: Vec<Item>) -> Made {
        let blocks = blocks.iter().map(|(address, words)| (*address, words.to_vec())).collect();
        Made { blocks, threads: vec![Thread { process: 0, items }], ..Made::default() }
    }

    /// Writes the file and opens it.
    pub fn open(&self) -> Trace {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let (has_values, palcode) = (self.has_values, self.palcode);
        let header = Header { has_values, palcode, process: 77, ..Header::default() };
        let writer = Writer::new(file, &header).unwrap();
        let mut processes = BTreeMap::new();
        for thread in &self.threads {
            let process =
                processes.entry(thread.process).or_insert_with(|| self.process(&writer, thread.process));
            let mut stream = StreamWriter::new(process);
            for chunk in thread.items.chunks(CHUNK) {
                stream.write(&words(chunk)).unwrap();
                stream.finish().unwrap();
            }
        }
        drop(processes);
        drop(writer);
        Trace::open(&path).unwrap()
    }

    fn process(&self, writer: &Arc<Writer>, number: u32) -> Arc<ProcessDictionary> {
        let process = ProcessDictionary::new(writer, number, if number == 0 { 0 } else { 1000 + number });
        let path = "/nowhere/prog.so".into();
        process.add_image(MappedImage {
            path,
            start: 0x1000,
            end: 0x2000,
            bias: 0,
            build_id: vec![],
            functions: vec![],
        });
        for (index, (address, words)) in self.blocks.iter().enumerate() {
            let image = (0x1000..0x2000).contains(address).then_some(0);
            let block = Block { image, ..Block::new(&isa::Alpha, *address, words.clone()) };
            let function = FUNCTIONS.iter().find(|(_, start)| (*start..start + 0x100).contains(address));
            let function = function.map(|(name, start)| Function {
                name: (*name).into(),
                image: 0,
                address: *start,
                size: 0x100,
            });
            assert_eq!(process.block(block, || function).unwrap(), index as BlockId, "blocks must differ");
        }
        process
    }

    /// Replays a selection of the trace with `show`.
    pub fn replay<R>(&self, selection: &Selection, show: impl FnOnce(&Shown) -> R) -> R {
        let trace = self.open();
        let names = Names::of_trace(&trace);
        let dictionary = Dictionary::new(&trace, &names);
        let accesses = Accesses::new(&trace);
        let filter = Filter::new(selection, &dictionary).unwrap();
        show(&Shown {
            replay: Replay {
                dictionary: &dictionary,
                accesses: &accesses,
                filter: &filter,
                order: ReplayOrder::Time,
            },
        })
    }

    /// The instruction listing.
    pub fn instructions(&self, selection: &Selection) -> String {
        self.replay(selection, |shown| {
            let mut out = Vec::new();
            let Replay { dictionary, accesses, .. } = shown.replay;
            let mut listing = Listing::new(dictionary, accesses, &|number| format!("call{number}"), &mut out);
            shown.to(&mut listing);
            listing.finish().unwrap();
            String::from_utf8(out).unwrap()
        })
    }

    /// The function trace.
    pub fn functions(&self, selection: &Selection) -> String {
        self.replay(selection, |shown| {
            let mut out = Vec::new();
            let name = |number| format!("call{number}");
            let mut functions = FunctionTrace::new(shown.replay.dictionary, &name, &mut out);
            shown.to(&mut functions);
            functions.finish().unwrap();
            String::from_utf8(out).unwrap()
        })
    }
}

pub fn words(items: &[Item]) -> Vec<u64> {
    let mut words = Vec::new();
    for item in items {
        match item {
            Item::Mark(mark) => words.push(Event::Mark(*mark).word()),
            Item::Block(block, rest) => {
                words.push(Event::Block(*block as BlockId).word());
                words.extend(rest);
            }
        }
    }
    words
}

/// A trace that is open.
pub struct Shown<'a> {
    pub replay: Replay<'a>,
}

impl Shown<'_> {
    /// Shows it to a visitor.
    pub fn to(&self, visitor: &mut impl Visitor) {
        assert!(self.replay.run(visitor, &mut |_| {}).unwrap().is_empty());
    }
}
