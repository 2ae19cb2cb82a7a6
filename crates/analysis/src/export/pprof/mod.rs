//! pprof's form: what each line cost in each chain of calls, for all events of a model. Samples of classes of units of work have the
//! class as a label.

mod messages;
mod of_trace;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use image::SourceLocation;
use prost::Message;
use trace::Trace;

use crate::call_tree::{CallProfile, CallTree, CodeAddress, InstructionCosts, NodeId, ProfilePart};
use crate::export::event_name;
use crate::names::Names;
pub use of_trace::Pprof;

use messages::{
    PprofFunction, PprofLabel, PprofLine, PprofLocation, PprofMapping, PprofProfile, PprofSample, ValueType,
};

/// The key of the label of a class of units of work.
const CLASS: &str = "class";

/// The first location of a chain, and the node of the call that it belongs to.
type SampleKey = (NodeId, u64);

/// Writes a profile. Returns the total of its first event; if nothing cost anything, nothing is written.
pub fn write(costs: CallProfile, trace: &Trace, out: &mut dyn Write) -> io::Result<u64> {
    let names = Names::of_trace(trace);
    let mut encoder = PprofEncoder::new(trace, &names, costs.tree);
    let CallProfile { columns, event, parts, .. } = costs;
    for part in parts {
        encoder.samples(part, columns.len());
    }
    let samples = &encoder.profile.samples;
    let total = samples.iter().map(|sample| sample.values[0] as u64).sum();
    if samples.is_empty() {
        return Ok(total);
    }
    for column in &columns {
        let (kind, unit) = (encoder.string(&event_name(column)), encoder.string("count"));
        encoder.profile.sample_types.push(ValueType { kind, unit });
    }
    encoder.profile.default_sample_type = encoder.profile.sample_types[event].kind;
    out.write_all(&encoder.profile.encode_to_vec())?;
    Ok(total)
}

struct PprofEncoder<'a> {
    trace: &'a Trace,
    names: &'a Names,
    tree: &'a CallTree,
    profile: PprofProfile,
    strings: HashMap<String, i64>,
    sources: HashMap<CodeAddress, Option<SourceLocation>>,
    /// By function, file and line.
    locations: HashMap<(u32, i64, i64), u64>,
    /// By function and file.
    functions: HashMap<(u32, i64), u64>,
    /// The location from which a node was called.
    sites: HashMap<NodeId, u64>,
}

impl<'a> PprofEncoder<'a> {
    fn new(trace: &'a Trace, names: &'a Names, tree: &'a CallTree) -> PprofEncoder<'a> {
        let mut encoder = PprofEncoder {
            trace,
            names,
            tree,
            profile: PprofProfile::default(),
            strings: HashMap::new(),
            sources: HashMap::new(),
            locations: HashMap::new(),
            functions: HashMap::new(),
            sites: HashMap::new(),
        };
        encoder.string("");
        let header = trace.header();
        let command = format!("{} {}", header.program.display(), header.arguments.join(" "));
        let comment = encoder.string(command.trim_end());
        encoder.profile.comments.push(comment);
        encoder.profile.time = (header.time as i64).saturating_mul(1_000_000_000);
        for (number, image) in (1..).zip(trace.images()) {
            let build_id: String = image.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            let mapping = PprofMapping {
                id: number,
                start: image.start,
                limit: image.end,
                file: encoder.string(&image.path.display().to_string()),
                build_id: encoder.string(&build_id),
                has_functions: true,
                has_files: true,
                has_lines: true,
            };
            encoder.profile.mappings.push(mapping);
        }
        encoder
    }

    /// Adds what each line cost in each chain of calls, in a part of the execution.
    fn samples(&mut self, part: ProfilePart, events: usize) {
        let mut samples: BTreeMap<SampleKey, Vec<i64>> = BTreeMap::new();
        for InstructionCosts { node, block, rows } in part.costs {
            let block = &self.trace.blocks()[block as usize];
            let function = self.tree.nodes()[node as usize].function;
            for (address, row) in block.addresses().zip(rows) {
                if row.iter().all(|cost| *cost == 0) {
                    continue;
                }
                let location = self.location(function, CodeAddress { address, image: block.image });
                let sums = samples.entry((node, location)).or_insert_with(|| vec![0; events]);
                sums.iter_mut().zip(row).for_each(|(sum, cost)| *sum += cost as i64);
            }
        }
        let label = part.class.map(|class| PprofLabel { key: self.string(CLASS), text: self.string(&class) });
        for ((node, location), values) in samples {
            let sample = PprofSample {
                locations: self.chain(node, location),
                values,
                labels: label.iter().cloned().collect(),
            };
            self.profile.samples.push(sample);
        }
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(&index) = self.strings.get(text) {
            return index;
        }
        let index = self.profile.strings.len() as i64;
        self.profile.strings.push(text.into());
        self.strings.insert(text.into(), index);
        index
    }

    /// The number of the location of an instruction of a function. All instructions of a line share it.
    fn location(&mut self, function: u32, at: CodeAddress) -> u64 {
        let (names, sources) = (self.names, &mut self.sources);
        let source = sources.entry(at).or_insert_with(|| names.location(at.image, at.address)).clone();
        let (file, line) = match source {
            Some(source) => (self.string(&source.file), source.line.map_or(0, i64::from)),
            None => (0, 0),
        };
        if let Some(&number) = self.locations.get(&(function, file, line)) {
            return number;
        }
        let lines = vec![PprofLine { function: self.function(function, file), line }];
        let id = self.profile.locations.len() as u64 + 1;
        let mapping = at.image.filter(|image| (*image as usize) < self.trace.images().len());
        let mapping = mapping.map_or(0, |image| u64::from(image) + 1);
        self.profile.locations.push(PprofLocation { id, mapping, address: at.address, lines });
        self.locations.insert((function, file, line), id);
        id
    }

    fn function(&mut self, function: u32, file: i64) -> u64 {
        if let Some(&number) = self.functions.get(&(function, file)) {
            return number;
        }
        let name = self.tree.functions()[function as usize].function.clone();
        let name = self.string(&name);
        let id = self.profile.functions.len() as u64 + 1;
        self.profile.functions.push(PprofFunction { id, name, system_name: name, file });
        self.functions.insert((function, file), id);
        id
    }

    /// The locations of a chain of calls: the first one, then where each call was made.
    fn chain(&mut self, node: NodeId, first: u64) -> Vec<u64> {
        let mut locations = vec![first];
        let mut called = node;
        while let Some(caller) = self.tree.nodes()[called as usize].parent {
            locations.push(self.site(called, caller));
            called = caller;
        }
        locations
    }

    fn site(&mut self, called: NodeId, caller: NodeId) -> u64 {
        if let Some(&location) = self.sites.get(&called) {
            return location;
        }
        let nodes = self.tree.nodes();
        let caller = &nodes[caller as usize];
        // The caller's function may have been entered between the two, so that the site belongs to another one.
        let site = nodes[called as usize].site.filter(|site| self.is_in(*site, caller.function));
        let location = self.location(caller.function, site.unwrap_or(caller.entry));
        self.sites.insert(called, location);
        location
    }

    fn is_in(&self, at: CodeAddress, function: u32) -> bool {
        self.names.name(at.image, at.address) == self.tree.functions()[function as usize]
    }
}
