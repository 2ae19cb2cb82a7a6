//! Operations: chains, throughputs, barriers, calls, and transfers of control.

use isa::InstructionClass::{self, *};
use pathlength_machine::TimingModel;
use pathlength_machine::pipeline::PerfectMemory;

use super::described::{Core, execution, issued_together, traps_are_imprecise, width};
use super::loops::{Program, each_of};
use super::{Described, Expected, MicroBenchmark, bench};

/// A class, an instruction that needs its own result, and one that does not.
const OPERATIONS: &[(&str, InstructionClass, &str, &str)] = &[
    ("addition", Add, "addq r1,r20,r1", "addq r20,r21,rNUMBER"),
    ("logical operation", Logical, "xor r1,r20,r1", "xor r20,r21,rNUMBER"),
    ("shift", Shift, "sll r1,r20,r1", "sll r20,r21,rNUMBER"),
    ("comparison", Compare, "cmpeq r1,r20,r1", "cmpeq r20,r21,rNUMBER"),
    ("conditional move", ConditionalMove, "cmoveq r20,r1,r1", "cmoveq r20,r21,rNUMBER"),
    ("mull", MultiplyLong, "mull r1,r20,r1", "mull r20,r21,rNUMBER"),
    ("mulq", MultiplyQuad, "mulq r1,r20,r1", "mulq r20,r21,rNUMBER"),
    ("umulh", MultiplyHigh, "umulh r1,r20,r1", "umulh r20,r21,rNUMBER"),
    ("addt", FloatAdd, "addt f1,f20,f1", "addt f20,f21,fNUMBER"),
    ("mult", FloatMultiply, "mult f1,f20,f1", "mult f20,f21,fNUMBER"),
    ("cpys", FloatCopy, "cpys f1,f20,f1", "cpys f20,f21,fNUMBER"),
    ("divs", FloatDivideSingle, "divs f1,f20,f1", "divs f20,f21,fNUMBER"),
    ("divt", FloatDivideDouble, "divt f1,f20,f1", "divt f20,f21,fNUMBER"),
];

/// Instructions that depend on nothing, with their classes.
const INDEPENDENT: &[(&str, InstructionClass, &str)] = &[
    ("unop", Nothing, "unop"),
    ("ldq, L1 hits", Load, "ldq rNUMBER,0(r20)"),
    ("ldt, L1 hits", FloatLoad, "ldt fNUMBER,0(r20)"),
    ("wmb", MemoryHint, "wmb"),
    ("implver", Logical, "implver rNUMBER"),
    ("amask", Logical, "amask r20,rNUMBER"),
    ("rpcc", Miscellaneous, "rpcc rNUMBER"),
];

/// All of them.
pub fn all() -> Vec<MicroBenchmark> {
    let mut list = Vec::new();
    for &(name, class, chained, independent) in OPERATIONS {
        // The latency, or the time for which a unit works that is not pipelined.
        list.push(bench("Chains of operations, cycles each", name, move |described, core| {
            let expected = core.latency(class, 0.0).max(core.occupied(class));
            Some((each_of(described, chained, 16), Expected::Exactly(expected)))
        }));
        list.push(bench("Independent operations, cycles each", name, move |described, core| {
            Some((each_of(described, independent, 24), Expected::Exactly(core.cycles_each(class))))
        }));
    }
    for &(name, class, text) in INDEPENDENT {
        list.push(bench("Independent operations, cycles each", name, move |described, core| {
            Some((each_of(described, text, 24), Expected::Exactly(core.cycles_each(class))))
        }));
    }
    // As many as the narrowest of ports, of stores written in a cycle, and of widths.
    list.push(bench("Independent operations, cycles each", "stq, L1 hits", |described, core| {
        let written = match core {
            Core::InOrder(_) => 0.0,
            Core::OutOfOrder(core) => 1.0 / f64::from(core.stores.writes),
        };
        let expected = core.cycles_each(Store).max(written);
        Some((each_of(described, "stq r21,0(r20)", 24), Expected::Exactly(expected)))
    }));
    list.sort_by_key(|one| one.section);
    for barrier in ["trapb", "excb"] {
        list.push(bench(
            "Barriers and calls, cycles each",
            format!("addt and {barrier}"),
            move |described, core| {
                let expected = after_each_addition(core);
                let measured = each_of(described, &format!("addt f20,f21,fNUMBER; {barrier}"), 12);
                Some((measured, Expected::Exactly(expected)))
            },
        ));
    }
    // It is issued when it is the oldest, a cycle after the one before has retired.
    list.push(bench("Barriers and calls, cycles each", "mb", |described, core| {
        let expected = match core {
            Core::InOrder(_) => core.cycles_each(MemoryBarrier),
            Core::OutOfOrder(core) => 1.0 + f64::from(execution(core, MemoryBarrier).latency.unwrap_or(1)),
        };
        Some((each_of(described, "mb", 24), Expected::Exactly(expected)))
    }));
    for (name, function) in [("call_pal rduniq", 0x9e), ("call_pal wruniq", 0x9f), ("call_pal callsys", 0x83)]
    {
        list.push(bench("Barriers and calls, cycles each", name, move |described, core| {
            let is_call = function == 0x83 || !core.has(ThreadPointer);
            let expected = match core {
                _ if is_call => call(described, core),
                // All write one register, and in order.
                Core::InOrder(_) if function == 0x9e => core.cycles_each(ThreadPointer).max(1.0),
                _ => core.cycles_each(ThreadPointer),
            };
            Some((each_of(described, &format!("call_pal {function}"), 12), Expected::Exactly(expected)))
        }));
    }
    list.extend(transfers());
    list
}

/// An addition and a barrier of traps.
fn after_each_addition(core: &Core) -> f64 {
    match core {
        // The next one waits for the result.
        _ if traps_are_imprecise(core) => core.latency(FloatAdd, 0.0),
        Core::InOrder(pipeline) => {
            let pairs = pipeline.group as usize / 2;
            let cycles = |class| pairs.div_ceil(issued_together(pipeline, class));
            cycles(FloatAdd).max(cycles(TrapBarrier)) as f64 / pairs as f64
        }
        Core::OutOfOrder(own) => core.cycles_each(FloatAdd).max(2.0 / width(own)),
    }
}

/// A call of the system.
fn call(described: &Described, core: &Core) -> f64 {
    let refill = described.fetch_hit();
    match core {
        Core::InOrder(pipeline) => 1.0 + f64::from(pipeline.call_pal) + refill,
        Core::OutOfOrder(core) => {
            let latency = execution(core, CallPal).latency.unwrap_or(1);
            refill + f64::from(core.system_call + core.fetch.stages + core.dispatch_to_issue + latency)
        }
    }
}

fn transfers() -> Vec<MicroBenchmark> {
    const SECTION: &str = "Transfers of control";
    let model = |described: &Described| TimingModel::with_memory(&described.machine, PerfectMemory).unwrap();
    let taken = bench(SECTION, "a taken branch, cycles", move |described, core| {
        let lost = match core {
            Core::InOrder(pipeline) => pipeline.taken,
            Core::OutOfOrder(core) => core.fetch.taken,
        };
        let measured = Program::new(model(described), &[(0, "br r31,-4".into())], |_| 0).cycles(&[0]);
        Some((measured, Expected::Exactly((1.0 + f64::from(lost)).max(core.occupied(Jump)))))
    });
    // No call has filled the return stack: every return is mispredicted, and the next one is fetched after it is executed.
    let mispredicted = bench(SECTION, "a mispredicted return, cycles", move |described, core| {
        let refill = described.fetch_hit();
        let expected = match core {
            Core::InOrder(pipeline) => 1.0 + f64::from(pipeline.mispredict) + refill,
            Core::OutOfOrder(own) => {
                let front = own.fetch.stages + own.dispatch_to_issue + own.fetch.redirect;
                refill + f64::from(front) + core.latency(Jump, 0.0)
            }
        };
        let blocks = [(0, "ret r31,(r26)".to_owned()), (0x1040, "ret r31,(r26)".to_owned())];
        let measured = Program::new(model(described), &blocks, |_| 0).cycles(&[0, 1]) / 2.0;
        Some((measured, Expected::Exactly(expected)))
    });
    let mut list = vec![taken, mispredicted];
    // Calls as deep as the return stack have all their returns predicted; of one more, the outermost finds another's entry.
    for more in [0, 1] {
        let name = ["as deep as the return stack", "one deeper"][more];
        list.push(bench(SECTION, format!("calls {name}, mispredicted returns"), move |described, _| {
            let depth = described.machine.predictor.as_ref()?.return_stack as usize + more;
            // A loop calls a function, which calls the next one, and returns then; the last one only returns.
            let after = |level| if level == 0 { "br r31,-8" } else { "ret r31,(r26)" };
            let blocks: Vec<(u64, String)> = (0..depth as u64)
                .flat_map(|level| {
                    [(0x20 * level, "bsr r26,+28".into()), (0x20 * level + 4, after(level).into())]
                })
                .chain([(0x20 * depth as u64, "ret r31,(r26)".into())])
                .collect();
            let down = (0..depth).map(|level| 2 * level);
            let up = (0..depth).rev().map(|level| 2 * level + 1);
            let path: Vec<usize> = down.chain([2 * depth]).chain(up).collect();
            let mut program = Program::new(model(described), &blocks, |_| 0);
            (0..40).for_each(|_| program.execute(&path));
            let before = program.time.predictions().returns.mispredicted;
            (0..10).for_each(|_| program.execute(&path));
            let missed = program.time.predictions().returns.mispredicted - before;
            Some((missed as f64 / 10.0, Expected::Exactly(more as f64)))
        }));
    }
    list
}
