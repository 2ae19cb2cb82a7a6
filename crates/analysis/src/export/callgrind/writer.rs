//! Writes callgrind's format.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use trace::Trace;

use crate::call_tree::CodeAddress;
use crate::names::Names;

/// The tools' placeholder for unknown names.
pub const UNKNOWN: &str = "???";

/// A profile to be written: the costs of each function's instructions and calls. A cost has a number for each event.
#[derive(Default)]
pub struct CallgrindProfile {
    /// The short name of each event, and a description, if it has one.
    pub events: Vec<(String, Option<String>)>,
    pub total: Vec<u64>,
    pub functions: Vec<FunctionCosts>,
}

/// The costs of a function.
pub struct FunctionCosts {
    pub name: String,
    pub instructions: BTreeMap<CodeAddress, SiteCosts>,
}

/// The costs of an instruction, and of the calls that it makes.
#[derive(Default)]
pub struct SiteCosts {
    pub own: Vec<u64>,
    pub calls: Vec<CallCost>,
}

impl SiteCosts {
    /// Adds to the instruction's own cost.
    pub fn add(&mut self, cost: &[u64]) {
        self.own.resize(cost.len(), 0);
        self.own.iter_mut().zip(cost).for_each(|(sum, more)| *sum += more);
    }
}

/// The calls of a function by one instruction.
pub struct CallCost {
    pub callee: String,
    /// The instruction at which the callee is entered.
    pub entry: CodeAddress,
    pub count: u64,
    pub inclusive: Vec<u64>,
}

/// Writes a profile of a trace or of an execution.
pub fn write(
    profile: &CallgrindProfile,
    trace: &Trace,
    names: &Names,
    out: &mut dyn Write,
) -> io::Result<()> {
    let [objects, files, functions] = std::array::from_fn(|_| Aliases::default());
    CallgrindWriter { trace, names, out, objects, files, functions }.profile(profile)
}

struct CallgrindWriter<'a> {
    trace: &'a Trace,
    names: &'a Names,
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
                let text = format!("({next}) {}", text::printable(&name));
                self.0.insert(name, next);
                text
            }
        }
    }
}

/// The numbers of a cost.
fn numbers(cost: &[u64]) -> String {
    let numbers: Vec<String> = cost.iter().map(u64::to_string).collect();
    numbers.join(" ")
}

impl CallgrindWriter<'_> {
    fn profile(mut self, profile: &CallgrindProfile) -> io::Result<()> {
        let header = self.trace.header();
        let command = format!("{} {}", header.program.display(), header.arguments.join(" "));
        writeln!(self.out, "# callgrind format\nversion: 1\ncreator: pathlength")?;
        writeln!(
            self.out,
            "pid: {}\ncmd: {}\npart: 1\n",
            header.process,
            text::printable(command.trim_end())
        )?;
        writeln!(self.out, "positions: instr line")?;
        for (name, description) in &profile.events {
            if let Some(description) = description {
                writeln!(self.out, "event: {name} : {description}")?;
            }
        }
        let events: Vec<&str> = profile.events.iter().map(|(name, _)| name.as_str()).collect();
        let total = numbers(&profile.total);
        writeln!(self.out, "events: {}\nsummary: {total}", events.join(" "))?;
        for function in &profile.functions {
            self.function(function)?;
        }
        writeln!(self.out, "\ntotals: {total}")
    }

    fn function(&mut self, function: &FunctionCosts) -> io::Result<()> {
        let Some((first, _)) = function.instructions.first_key_value() else { return Ok(()) };
        let (file, _) = self.source(*first);
        let object = self.objects.write(self.object(first.image));
        let name = self.functions.write(function.name.clone());
        writeln!(self.out, "\nob={object}\nfl={}\nfn={name}", self.files.write(file.clone()))?;
        let mut current = file.clone();
        for (at, costs) in &function.instructions {
            let (source, number) = self.source(*at);
            if source != current {
                let key = if source == file { "fe" } else { "fi" };
                writeln!(self.out, "{key}={}", self.files.write(source.clone()))?;
                current = source;
            }
            let position = format!("{:#x} {number}", self.link_address(*at));
            if costs.own.iter().any(|number| *number > 0) {
                writeln!(self.out, "{position} {}", numbers(&costs.own))?;
            }
            for call in &costs.calls {
                self.call(call)?;
                writeln!(self.out, "{position} {}", numbers(&call.inclusive))?;
            }
        }
        Ok(())
    }

    /// Where a call goes; what it cost follows.
    fn call(&mut self, call: &CallCost) -> io::Result<()> {
        let (file, number) = self.source(call.entry);
        let object = self.objects.write(self.object(call.entry.image));
        let function = self.functions.write(call.callee.clone());
        writeln!(self.out, "cob={object}\ncfi={}\ncfn={function}", self.files.write(file))?;
        writeln!(self.out, "calls={} {:#x} {number}", call.count, self.link_address(call.entry))
    }

    /// The address by which tools find the instruction in its image's file.
    fn link_address(&self, at: CodeAddress) -> u64 {
        let bias = at.image.map_or(0, |image| self.trace.images()[image as usize].bias);
        at.address.wrapping_sub(bias)
    }

    /// File and line.
    fn source(&self, at: CodeAddress) -> (String, u32) {
        match self.names.location(at.image, at.address) {
            Some(location) => (location.file, location.line.unwrap_or(0)),
            None => (UNKNOWN.into(), 0),
        }
    }

    fn object(&self, image: Option<u32>) -> String {
        let path = |image| self.trace.images()[image as usize].path.display().to_string();
        image.map_or_else(|| UNKNOWN.into(), path)
    }
}
