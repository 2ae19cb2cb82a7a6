//! What the paper found, beside what was found here.

use spike::hot_cold::{HotColdCategory, ProcedureOutcome};
use table::{Kind, Table, Value};

use super::figures::{self, Profiled, percent};
use super::tables::{change, name};
use super::{SpikeProgramResult, SpikeStudy, VARIANTS};

/// A finding of the paper, and the same of a program here.
struct SpikeFinding {
    figure: &'static str,
    what: &'static str,
    /// The paper's, in words.
    paper: &'static str,
    /// In percent, of a program.
    here: fn(&SpikeProgramResult) -> Option<f64>,
}

const FINDINGS: [SpikeFinding; 13] = [
    SpikeFinding {
        figure: "2, 3",
        what: "instructions in procedures with trip counts below 2",
        paper: "SQLSERVER 69 %, ACAD and EXCEL about 70 %, C2, WINWORD and USTATION about 40 %, MAXEDA and TEXIM about 10 %",
        here: |one| Some(Profiled::of(one).share(|one| one.trip_count < 2.0)),
    },
    SpikeFinding {
        figure: "4",
        what: "of procedures without loops: those with more than 16 blocks",
        paper: "SQLSERVER 90 %",
        here: |one| Some(Profiled::of(one).share_of_nonlooping(|one| one.blocks > 16)),
    },
    SpikeFinding {
        figure: "4, 5",
        what: "the same, frequent blocks only",
        paper: "SQLSERVER 65 %; every program more than half",
        here: |one| Some(Profiled::of(one).share_of_nonlooping(|one| one.frequent_blocks > 16)),
    },
    SpikeFinding {
        figure: "6",
        what: "prologues and epilogues",
        paper: "SQLSERVER 15 %; programs of Windows NT 2 to 23 %, SPECint95 0 to 24 %",
        here: |one| Some(Profiled::of(one).overhead()),
    },
    SpikeFinding {
        figure: "6",
        what: "of these, removed by hot-cold optimization",
        paper: "SQLSERVER about half",
        here: |one| {
            let removed = |one: &ProcedureOutcome| one.reduction.saves + one.reduction.adjustments;
            let removed = one.hot_cold.outcomes.iter().map(removed).fold(0, u64::saturating_add);
            Some(percent(removed, Profiled::of(one).overhead_instructions()))
        },
    },
    SpikeFinding {
        figure: "10",
        what: "speedup by the layout, 21064",
        paper: "SQLSERVER 16 %; without splitting less than 4 %",
        here: |one| speedup(one, 0),
    },
    SpikeFinding {
        figure: "11",
        what: "speedup by the layout, 21164",
        paper: "0 to 45 %",
        here: |one| speedup(one, 1),
    },
    SpikeFinding {
        figure: "15",
        what: "instructions in improved procedures",
        paper: "typically 60 %",
        here: |one| {
            let of = |is_counted: &dyn Fn(HotColdCategory) -> bool| -> u64 {
                one.hot_cold
                    .outcomes
                    .iter()
                    .filter(|one| is_counted(one.category))
                    .map(|one| one.executed)
                    .sum()
            };
            Some(percent(of(&|category| category == HotColdCategory::Optimized), of(&|_| true)))
        },
    },
    SpikeFinding {
        figure: "16",
        what: "shorter path by hot-cold optimization",
        paper: "most in SQLSERVER, ACAD and C2; dead code and saves equally",
        here: |one| {
            let removed: u64 = one.hot_cold.outcomes.iter().map(|one| one.reduction.total()).sum();
            Some(percent(removed, one.hot_cold.executed))
        },
    },
    SpikeFinding {
        figure: "17",
        what: "more instructions in leaf procedures, points",
        paper: "10 to 20 in C2, ACAD, SQLSERVER and MAXEDA, few elsewhere",
        here: |one| {
            let after = Profiled { procedures: figures::after(one) };
            Some(after.share(|one| one.is_leaf) - Profiled::of(one).share(|one| one.is_leaf))
        },
    },
    SpikeFinding {
        figure: "18",
        what: "growth of the code",
        paper: "SQLSERVER 3.1 %, C2 11.6 %, the most",
        here: |one| Some(figures::growth_of(one)[2]),
    },
    SpikeFinding {
        figure: "19",
        what: "hot parts, of the procedures' size before",
        paper: "20 to 50 %",
        here: |one| figures::improved_sizes(one).map(|[hot, ..]| hot),
    },
    SpikeFinding {
        figure: "abstract",
        what: "faster in all, 21164",
        paper: "up to 33 %",
        here: |one| {
            let [first, last] = [&one.variants[0], &one.variants[VARIANTS.len() - 1]];
            match change(last.cycles[1], first.cycles[1]) {
                Value::Real(percent) => Some(percent),
                _ => None,
            }
        },
    },
];

fn speedup(one: &SpikeProgramResult, machine: usize) -> Option<f64> {
    let [original, layout] = [0, 1].map(|variant| one.variants[variant].cycles[machine] as f64);
    (layout > 0.0).then(|| 100.0 * (original / layout - 1.0))
}

/// The paper's findings and ours.
pub(super) fn table(study: &SpikeStudy) -> Table {
    let names: Vec<String> = study.programs.iter().map(name).collect();
    let columns: Vec<(&str, Kind)> = [("figure", Kind::Text), ("what", Kind::Text), ("1997", Kind::Text)]
        .into_iter()
        .chain(names.iter().map(|name| (name.as_str(), Kind::Percent(0))))
        .collect();
    let mut table = Table::new("paper", "The paper's findings and today's", &columns);
    for finding in &FINDINGS {
        let here = study.programs.iter().map(|one| (finding.here)(one).map_or(Value::Missing, Value::from));
        let words = [finding.figure, finding.what, finding.paper].map(Value::from);
        table.row(words.into_iter().chain(here).collect());
    }
    table
}
