//! What is measured of a trace: for the application alone, with its libraries, and with the operating system.

use std::convert::Infallible;
use std::path::Path;

use analysis::names::Names;
use analysis::replay::summary::{Summary, SummarySettings};
use analysis::replay::{Accesses, Dictionary, Filter, Replay, ReplayOrder, Selection};
use isa::{InstructionSet, Op};
use machine::{Caches, Machine};
use trace::{ExecutionMode, Trace};

use super::StudyError;

/// What of a trace is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The program's own image.
    Application,
    /// All that is executed in user mode.
    Libraries,
    /// Everything.
    System,
}

impl Scope {
    /// All scopes, each with the one before.
    pub const ALL: [Scope; 3] = [Scope::Application, Scope::Libraries, Scope::System];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Application => "application",
            Scope::Libraries => "and libraries",
            Scope::System => "and the OS",
        }
    }
}

/// Kibibytes of the instruction caches, which are direct-mapped with lines of 32 bytes, as the 21064's of 8 KiB.
pub const CACHES: [u32; 5] = [8, 16, 32, 64, 128];

/// The kinds of a composition.
pub const KINDS: [&str; 7] =
    ["loads", "stores", "branches and jumps", "integer", "floating point", "no-operations", "PALcode"];

/// What was counted of a scope.
#[derive(Clone, Debug, Default)]
pub struct ScopeCounts {
    /// Instructions.
    pub instructions: u64,
    /// Instructions of a basic block, in the mean.
    pub block: f64,
    /// Instructions of each of [`KINDS`].
    pub kinds: [u64; KINDS.len()],
    /// Misses of each of [`CACHES`].
    pub misses: [u64; CACHES.len()],
}

/// What was counted of a program.
#[derive(Clone, Debug)]
pub struct CountedScopes {
    /// By [`Scope::ALL`].
    pub scopes: [ScopeCounts; Scope::ALL.len()],
    /// Instructions by [`ExecutionMode::ALL`].
    pub modes: [u64; ExecutionMode::ALL.len()],
    /// Units of work; 1 if a whole run was recorded.
    pub units: u64,
}

/// The index of an instruction's kind in [`KINDS`].
fn kind(set: &dyn InstructionSet, word: u32) -> usize {
    const PALCODE: usize = 6;
    if isa::nop_kind(word).is_some() {
        return 5;
    }
    let Some(op) = isa::decode_op(word) else { return PALCODE };
    let summary = set.summary(word);
    let access = summary.as_ref().and_then(|summary| summary.access);
    match (op, access) {
        (Op::CallPal, _) => PALCODE,
        (_, Some(access)) => usize::from(access.is_store),
        _ if summary.is_some_and(|summary| summary.transfer.is_some()) => 2,
        _ if op.is_float() => 4,
        _ => 3,
    }
}

/// A processor with an instruction cache of this size.
fn machine(kibibytes: u32) -> Machine {
    let text = format!(
        "title = \"An instruction cache of {kibibytes} KiB\"\n\
         [processor]\nname = \"study\"\ncpu = \"ev67\"\nclock_mhz = 400\n\
         [caches.icache]\nlevel = 1\nholds = \"instructions\"\nsize = \"{kibibytes}K\"\nways = 1\nline = 32\nlatency = 1\n\
         [caches.dcache]\nlevel = 1\nholds = \"data\"\nsize = \"64K\"\nways = 2\nline = 64\nlatency = 1\n\
         [memory]\nlatency_ns = 100\n"
    );
    Machine::from_toml(&text).expect("the description is complete")
}

/// Counts a trace.
pub fn count(path: &Path, program: &Path, units: u64) -> Result<CountedScopes, StudyError> {
    let trace = Trace::open(path)?;
    let names = Names::of_trace(&trace);
    let dictionary = Dictionary::new(&trace, &names);
    let accesses = Accesses::new(&trace);
    let own = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut modes = [0; ExecutionMode::ALL.len()];
    let mut scopes = [const { None }; Scope::ALL.len()];
    for (scope, counts) in Scope::ALL.into_iter().zip(&mut scopes) {
        let images = if scope == Scope::Application { vec![own.clone()] } else { Vec::new() };
        let user = if scope == Scope::System { Vec::new() } else { vec![ExecutionMode::User] };
        let selection = Selection { images, modes: user, ..Selection::default() };
        let filter =
            Filter::new(&selection, &dictionary).map_err(|error| StudyError::Trace(error.to_string()))?;
        let replay = Replay {
            dictionary: &dictionary,
            accesses: &accesses,
            filter: &filter,
            order: ReplayOrder::Time,
        };
        let (counted, by_mode) = count_scope(&trace, &replay)?;
        modes = by_mode;
        *counts = Some(counted);
    }
    Ok(CountedScopes { scopes: scopes.map(Option::unwrap_or_default), modes, units: units.max(1) })
}

/// Counts a scope. Returns its instructions by mode, too.
fn count_scope(
    trace: &Trace,
    replay: &Replay,
) -> Result<(ScopeCounts, [u64; ExecutionMode::ALL.len()]), StudyError> {
    let settings = SummarySettings { line_sizes: Vec::new(), page_sizes: Vec::new(), window: u64::MAX };
    let mut summary = Summary::new(replay.dictionary, replay.accesses, settings);
    let problems =
        replay.run(&mut summary, &mut |_| {}).map_err(|error| StudyError::Trace(error.to_string()))?;
    whole(problems)?;
    let totals = summary.totals();
    let mut counts = ScopeCounts { block: totals.mean_block.unwrap_or(0.0), ..ScopeCounts::default() };
    let mut modes = [0; ExecutionMode::ALL.len()];
    for (block, index, times) in totals.executions {
        let block = &trace.blocks()[block as usize];
        counts.instructions += times;
        counts.kinds[kind(block.instruction_set, block.words[index])] += times;
        modes[trace.header().mode(block.address) as usize] += times;
    }
    let mut caches: Vec<Caches> = CACHES.iter().map(|&size| Caches::new(&machine(size))).collect();
    let Ok(problems) = replay.run_consumer(&mut caches, &mut |_| Ok::<(), Infallible>(()));
    whole(problems)?;
    for (misses, caches) in counts.misses.iter_mut().zip(&caches) {
        let structures = caches.structures();
        *misses = structures.iter().filter(|one| one.name == "icache").map(|one| one.misses).sum();
    }
    Ok((counts, modes))
}

/// An error if a part of the trace could not be read.
pub(crate) fn whole(problems: Vec<trace::Error>) -> Result<(), StudyError> {
    problems.into_iter().next().map_or(Ok(()), |error| Err(error.into()))
}

#[cfg(test)]
mod tests {
    use isa::AlphaSystem;

    use super::*;

    #[test]
    fn instructions_have_kinds() {
        let words = [
            (0xa43e_0000, "loads"),              // ldq t0,0(sp)
            (0x8c3e_0000, "loads"),              // ldt $f1,0(sp)
            (0xb43e_0008, "stores"),             // stq t0,8(sp)
            (0xf43f_fffc, "branches and jumps"), // bne
            (0x6bfa_8001, "branches and jumps"), // ret
            (0x4020_3401, "integer"),            // addq t0,1,t0
            (0x23de_0010, "integer"),            // lda sp,16(sp)
            (0x5821_1401, "floating point"),     // addt
            (0x2ffe_0000, "no-operations"),      // unop
            (0x47ff_041f, "no-operations"),      // nop
            (0x0000_0083, "PALcode"),            // call_pal callsys
            (0x7be8_8000, "PALcode"),            // hw_ret
        ];
        for (word, expected) in words {
            assert_eq!(KINDS[kind(&AlphaSystem, word)], expected, "{word:#x}");
        }
    }

    #[test]
    fn instruction_caches_have_the_sizes_of_their_columns() {
        for size in CACHES {
            let machine = machine(size);
            let cache = machine.caches.iter().find(|cache| cache.name == "icache").unwrap();
            assert_eq!(cache.size, u64::from(size) << 10);
        }
    }
}
