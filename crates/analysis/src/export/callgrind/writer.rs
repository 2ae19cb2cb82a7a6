//! Writes callgrind's format.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use events::BlockId;

use super::{Call, Callgrind, Cost, EVENTS};
use crate::replay::Dictionary;

/// The tools' placeholder for unknown names.
const UNKNOWN: &str = "???";

/// Writes a profile.
pub struct Writer<'a> {
    dictionary: &'a Dictionary<'a>,
    out: &'a mut dyn Write,
    objects: Aliases,
    files: Aliases,
    functions: Aliases,
}

/// Numbers for names, which are written once.
#[derive(Default)]
struct Aliases(HashMap<String, usize>);

impl Aliases {
    /// The name, or its number alone if it was written before.
    fn write(&mut self, name: String) -> String {
        let next = self.0.len() + 1;
        match self.0.get(&name) {
            Some(number) => format!("({number})"),
            None => {
                let text = format!("({next}) {}", name.replace(['\n', '\r'], "?"));
                self.0.insert(name, next);
                text
            }
        }
    }
}

/// The costs of an instruction of a function.
#[derive(Default)]
struct Line<'c> {
    cost: Cost,
    calls: Vec<&'c Call>,
}

/// Where an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// At run time.
    address: u64,
    image: Option<u32>,
}

impl<'a> Writer<'a> {
    /// Writes to `out`.
    pub fn new(dictionary: &'a Dictionary<'a>, out: &'a mut dyn Write) -> Writer<'a> {
        let [objects, files, functions] = std::array::from_fn(|_| Aliases::default());
        Writer { dictionary, out, objects, files, functions }
    }

    /// Writes the counts.
    pub fn profile(mut self, counted: &Callgrind, total: Cost) -> io::Result<()> {
        let header = self.dictionary.trace.header();
        let command = format!("{} {}", header.program.display(), header.arguments.join(" "));
        writeln!(self.out, "# callgrind format\nversion: 1\ncreator: pathlength")?;
        writeln!(
            self.out,
            "pid: {}\ncmd: {}\npart: 1\n",
            header.process,
            command.trim_end().replace('\n', " ")
        )?;
        writeln!(self.out, "positions: instr line\nevents: {EVENTS}\nsummary: {total}")?;
        let functions = self.functions_of(counted);
        for (place, lines) in functions {
            self.function(place, &lines)?;
        }
        writeln!(self.out, "\ntotals: {total}")
    }

    /// The lines of each function.
    fn functions_of<'c>(&self, counted: &'c Callgrind) -> BTreeMap<u32, BTreeMap<Place, Line<'c>>> {
        let (set, blocks) = (self.dictionary.trace.instruction_set(), self.dictionary.trace.blocks());
        let mut functions: BTreeMap<u32, BTreeMap<Place, Line>> = BTreeMap::new();
        for (id, costs) in counted.executed() {
            let block = &blocks[id as usize];
            let lines = functions.entry(self.dictionary.facts(id).place).or_default();
            for (address, cost) in
                block.addresses(set).zip(costs).filter(|(_, cost)| *cost != Cost::default())
            {
                lines.entry(Place { address, image: block.image }).or_default().cost.add(cost, 1);
            }
        }
        for call in counted.calls.all.iter().filter(|call| call.count > 0) {
            let lines = functions.entry(call.site.caller).or_default();
            let last = self.dictionary.facts(call.site.block).end.wrapping_sub(4);
            let place = Place { address: last, image: blocks[call.site.block as usize].image };
            lines.entry(place).or_default().calls.push(call);
        }
        functions
    }

    fn function(&mut self, place: u32, lines: &BTreeMap<Place, Line>) -> io::Result<()> {
        let Some((first, _)) = lines.first_key_value() else { return Ok(()) };
        let (file, _) = self.source(*first);
        let object = self.objects.write(self.object(first.image));
        let function = self.functions.write(self.name(place));
        writeln!(self.out, "\nob={object}\nfl={}\nfn={function}", self.files.write(file.clone()))?;
        let mut current = file.clone();
        for (place, line) in lines {
            let (source, number) = self.source(*place);
            if source != current {
                let key = if source == file { "fe" } else { "fi" };
                writeln!(self.out, "{key}={}", self.files.write(source.clone()))?;
                current = source;
            }
            let position = format!("{:#x} {number}", self.link_address(*place));
            if line.cost != Cost::default() {
                writeln!(self.out, "{position} {}", line.cost)?;
            }
            for call in &line.calls {
                self.call(call)?;
                writeln!(self.out, "{position} {}", call.inclusive)?;
            }
        }
        Ok(())
    }

    /// Where a call goes; what it cost follows.
    fn call(&mut self, call: &Call) -> io::Result<()> {
        let entry = self.place(call.entry);
        let (file, number) = self.source(entry);
        let object = self.objects.write(self.object(entry.image));
        let function = self.functions.write(self.name(call.site.callee));
        writeln!(self.out, "cob={object}\ncfi={}\ncfn={function}", self.files.write(file))?;
        writeln!(self.out, "calls={} {:#x} {number}", call.count, self.link_address(entry))
    }

    fn place(&self, block: BlockId) -> Place {
        let block = &self.dictionary.trace.blocks()[block as usize];
        Place { address: block.address, image: block.image }
    }

    /// The address by which tools find the instruction in its image's file.
    fn link_address(&self, place: Place) -> u64 {
        let bias = place.image.map_or(0, |image| self.dictionary.trace.images()[image as usize].bias);
        place.address.wrapping_sub(bias)
    }

    /// File and line.
    fn source(&self, place: Place) -> (String, u32) {
        match self.dictionary.names.location(place.image, place.address) {
            Some(location) => (location.file, location.line.unwrap_or(0)),
            None => (UNKNOWN.into(), 0),
        }
    }

    fn object(&self, image: Option<u32>) -> String {
        let path = |image| self.dictionary.trace.images()[image as usize].path.display().to_string();
        image.map_or_else(|| UNKNOWN.into(), path)
    }

    fn name(&self, place: u32) -> String {
        let name = &self.dictionary.places[place as usize].name;
        name.as_ref().map_or_else(|| UNKNOWN.into(), |name| name.function.clone())
    }
}
