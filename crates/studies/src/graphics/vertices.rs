//! The cost of a vertex: by conditions and path, with changes of state, with many variants, and by clock.

use workloads::toolchain::EXACT_TRAPS;

use super::error::Error;
use super::runs::{FrameCost, FrameJob, GraphicsRunner, SYSTEMS};

/// The vertices of a frame of the program `vertices`.
pub(super) const VERTICES: u64 = 3840;

/// Masks of conditions that are measured, and their names.
pub(super) const CONDITIONS: [(u32, &str); 6] = [
    (0, "none"),
    (LIT, "lit, normalized"),
    (51, "and a second light, specular"),
    (263, "lit, texture, generated coordinates"),
    (179, "two positional lights, specular"),
    (1023, "all ten"),
];

/// The conditions of the lit case.
pub(super) const LIT: u32 = 3;

/// The two kinds of paths.
pub(super) const PATHS: [&str; 2] = ["generic", "special"];

/// The cost of a vertex on a machine.
#[derive(Clone, Debug)]
pub(super) struct VertexCost {
    pub(super) conditions: &'static str,
    pub(super) mode: &'static str,
    pub(super) path: &'static str,
    /// A machine's label, or the host's.
    pub(super) machine: &'static str,
    pub(super) instructions: Option<f64>,
    pub(super) cycles: Option<f64>,
    /// Misses of the first caches for 1,000 vertices.
    pub(super) instruction_misses: Option<f64>,
    pub(super) data_misses: Option<f64>,
    /// Millions of vertices a second.
    pub(super) rate: f64,
}

/// The label of measured rates of the host.
pub(super) const HOST: &str = "this host, measured";

/// The lit case on a 21164 whose code has exact traps.
pub(super) const EXACT: &str = "21164, exact traps";

/// Drawn as separate calls, from a display list, and from arrays.
const MODES: [&str; 3] = ["immediate", "list", "array"];

/// A job of the program `vertices`.
fn job(system: usize, masks: &str, mode: &str, path: &str) -> FrameJob {
    let is_generic = path == PATHS[0];
    FrameJob {
        build: SYSTEMS[system].build,
        program: "vertices",
        arguments: [vec![masks.into(), mode.into()], if is_generic { vec![path.into()] } else { vec![] }],
        variable: None,
        machines: vec![SYSTEMS[system].machine(None)],
        frames: 1,
    }
}

/// Every pair of conditions and mode that is measured.
pub(super) fn cases() -> Vec<(u32, &'static str, &'static str)> {
    let immediate = CONDITIONS.map(|(mask, name)| (mask, name, MODES[0]));
    let lit = MODES[1..].iter().map(|&mode| (LIT, CONDITIONS[1].1, mode));
    immediate.into_iter().chain(lit).collect()
}

/// The cost of a vertex for all cases, both paths, both machines, and on the host.
pub(super) fn by_conditions(runner: &GraphicsRunner) -> Result<Vec<VertexCost>, Error> {
    let mut jobs = Vec::new();
    let mut labels = Vec::new();
    for (mask, conditions, mode) in cases() {
        for path in PATHS {
            for (number, system) in SYSTEMS.iter().enumerate() {
                jobs.push(job(number, &mask.to_string(), mode, path));
                labels.push((conditions, mode, path, system.label));
            }
            if (mask, mode) == (LIT, MODES[0]) {
                let exact = FrameJob { build: EXACT_TRAPS.name, ..job(0, &mask.to_string(), mode, path) };
                jobs.push(exact);
                labels.push((conditions, mode, path, EXACT));
            }
        }
    }
    let costs = runner.costs(&jobs)?;
    let on_alpha = labels.into_iter().zip(&jobs).zip(costs).map(|((label, job), cost)| {
        let (conditions, mode, path, machine) = label;
        let cycles = cost.cycles_of(0, VERTICES);
        let thousands = (cost.frames * VERTICES) as f64 / 1000.0;
        VertexCost {
            conditions,
            mode,
            path,
            machine,
            instructions: Some(cost.instructions_of(VERTICES)),
            cycles: Some(cycles),
            instruction_misses: Some(cost.instruction_misses[0] as f64 / thousands),
            data_misses: Some(cost.data_misses[0] as f64 / thousands),
            rate: job.machines[0].processor.clock_mhz / cycles,
        }
    });
    let mut all: Vec<VertexCost> = on_alpha.collect();
    for (mask, conditions, mode) in cases() {
        for path in PATHS {
            all.extend(on_host(runner, mask, conditions, mode, path)?);
        }
    }
    Ok(all)
}

fn on_host(
    runner: &GraphicsRunner,
    mask: u32,
    conditions: &'static str,
    mode: &'static str,
    path: &'static str,
) -> Result<Option<VertexCost>, Error> {
    const FRAMES: u32 = 500;
    let (mask, frames) = (mask.to_string(), FRAMES.to_string());
    let mut arguments = vec![mask.as_str(), mode, &frames];
    arguments.extend((path == PATHS[0]).then_some(path));
    let seconds = runner.native_seconds("vertices", &arguments, FRAMES)?;
    Ok(seconds.map(|seconds| VertexCost {
        conditions,
        mode,
        path,
        machine: HOST,
        instructions: None,
        cycles: None,
        instruction_misses: None,
        data_misses: None,
        rate: VERTICES as f64 / seconds / 1e6,
    }))
}

/// The cost of a change of state, and of a vertex, from two lengths of primitives.
#[derive(Clone, Debug)]
pub(super) struct ChangeCost {
    pub(super) machine: &'static str,
    pub(super) path: &'static str,
    /// Instructions and cycles of a change of the material with its validation and a primitive.
    pub(super) change: [f64; 2],
    /// Of a vertex.
    pub(super) vertex: [f64; 2],
}

/// Changes of the material after few and after many vertices.
pub(super) fn validation(runner: &GraphicsRunner) -> Result<Vec<ChangeCost>, Error> {
    const EVERY: [u64; 2] = [12, 192];
    let mut jobs = Vec::new();
    let mut labels = Vec::new();
    for (number, system) in SYSTEMS.iter().enumerate() {
        for path in PATHS {
            for every in EVERY {
                let variable = Some(("EVERY", every.to_string()));
                jobs.push(FrameJob { variable, ..job(number, &LIT.to_string(), MODES[0], path) });
            }
            labels.push((system.label, path));
        }
    }
    let costs = runner.costs(&jobs)?;
    let fit = |((machine, path), pair): ((&'static str, &'static str), &[FrameCost])| {
        let of = |few: f64, many: f64| {
            let changes = EVERY.map(|every| (VERTICES / every) as f64);
            let change = (few - many) / (changes[0] - changes[1]);
            (change, (many - change * changes[1]) / VERTICES as f64)
        };
        let instructions = of(pair[0].instructions_of(1), pair[1].instructions_of(1));
        let cycles = of(pair[0].cycles_of(0, 1), pair[1].cycles_of(0, 1));
        ChangeCost { machine, path, change: [instructions.0, cycles.0], vertex: [instructions.1, cycles.1] }
    };
    Ok(labels.into_iter().zip(costs.chunks(EVERY.len())).map(fit).collect())
}

/// The cost of a vertex while variants alternate.
#[derive(Clone, Debug)]
pub(super) struct VariantCost {
    pub(super) variants: u32,
    /// Vertices between two changes of the variant.
    pub(super) every: u64,
    pub(super) path: &'static str,
    /// On the 21164.
    pub(super) instructions: f64,
    pub(super) cycles: f64,
    pub(super) instruction_misses: f64,
}

/// How many variants alternate. Masks of lighting are the first of them that are canonical.
pub(super) const VARIANTS: [u32; 5] = [1, 4, 16, 64, 256];

/// Variants that alternate after few and after many vertices, on the 21164.
pub(super) fn variants(runner: &GraphicsRunner) -> Result<Vec<VariantCost>, Error> {
    // All masks with light and texture or without it, so that none is the same as another one.
    let canonical: Vec<String> = (1..1024u32)
        .filter(|mask| mask & 1 != 0 && (mask & 4 != 0 || mask & 256 == 0))
        .map(|mask| mask.to_string())
        .collect();
    let mut jobs = Vec::new();
    let mut labels = Vec::new();
    for every in [12, 96] {
        for variants in VARIANTS {
            for path in PATHS {
                let masks = canonical[..variants as usize].join(",");
                let masks = if variants == 1 { format!("{masks},{masks}") } else { masks };
                let variable = Some(("EVERY", every.to_string()));
                jobs.push(FrameJob { variable, frames: 3, ..job(0, &masks, MODES[0], path) });
                labels.push((variants, every, path));
            }
        }
    }
    let costs = runner.costs(&jobs)?;
    let row = |((variants, every, path), cost): ((u32, u64, &'static str), FrameCost)| VariantCost {
        variants,
        every,
        path,
        instructions: cost.instructions_of(VERTICES),
        cycles: cost.cycles_of(0, VERTICES),
        instruction_misses: cost.instruction_misses[0] as f64 / (cost.frames * VERTICES) as f64,
    };
    Ok(labels.into_iter().zip(costs).map(row).collect())
}

/// Millions of lit vertices a second by the clock of a 21164.
#[derive(Clone, Debug)]
pub(super) struct ClockRate {
    pub(super) mhz: u32,
    /// By generic and special paths.
    pub(super) rates: [f64; 2],
}

/// One execution on machines of several clocks; the time of the outer cache and of memory stays.
pub(super) fn by_clock(runner: &GraphicsRunner) -> Result<Vec<ClockRate>, Error> {
    const CLOCKS: [u32; 6] = [200, 300, 400, 500, 600, 1000];
    let jobs = PATHS.map(|path| {
        let machines = CLOCKS.map(|mhz| SYSTEMS[0].machine(Some(mhz))).to_vec();
        FrameJob { machines, ..job(0, &LIT.to_string(), MODES[0], path) }
    });
    let costs = runner.costs(&jobs)?;
    let rate = |(index, &mhz): (usize, &u32)| {
        let of = |path: usize| f64::from(mhz) / costs[path].cycles_of(index, VERTICES);
        ClockRate { mhz, rates: [of(0), of(1)] }
    };
    Ok(CLOCKS.iter().enumerate().map(rate).collect())
}
