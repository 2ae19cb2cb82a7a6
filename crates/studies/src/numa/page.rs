//! The report of the study as a page.

use report::{Arrangement, Error, Page, PageBlock, PageFigure};
use table::rounded;

use super::benchmarks::STEPS;
use super::tables::{self, PRINTED};
use super::{MOST_CLIENTS, NumaStudy};
use crate::study_report::section;

/// What was changed in PostgreSQL, and why.
const CHANGES: &str = include_str!("../../../../workloads/postgresql/cache-lines.sh");

/// Makes the page.
pub(super) fn page(study: &NumaStudy) -> Result<Page, Error> {
    let first = &study.benchmarks[0];
    let last = STEPS.len() - 1;
    let (unit, title) = (first.benchmark.unit(), first.benchmark.title());
    let [before, after] = [0, last].map(|step| tables::mean(&first.operations(step)));
    let change = first.change(0, last);
    let figure = |value: f64, label: &str| PageFigure { value: rounded(value), label: label.into() };
    let interval = change.half_width.map_or(String::new(), |half| format!(" ± {half:.1}"));
    let of_all = |tables: &dyn Fn(&super::BenchmarkResult) -> Vec<table::Table>| {
        study.benchmarks.iter().flat_map(tables).collect::<Vec<_>>()
    };
    let mut changed = section(
        "Find, fix, trace again",
        "`pathlength sharing` finds what the processes share. First each client gets a branch or warehouse of its own, and the rows that its \
         transactions change pages of their own: they stay in the memory of the client's node. What all share stays: then PostgreSQL was \
         changed by this script, built and traced again.",
        std::iter::once(tables::steps(&study.benchmarks)).chain(study.benchmarks.iter().map(tables::changes)),
    );
    changed.blocks.insert(1, PageBlock::Code(CHANGES.into()));
    Ok(Page {
        title: "A server on CC-NUMA".into(),
        headline: format!(
            "A {unit} of {title} on {MOST_CLIENTS} PostgreSQL processes needs {} operations between the nodes of a machine of 1998, \
             and {} after changes ({:.1}{interval} %)",
            rounded(before),
            rounded(after),
            change.percent
        ),
        lead: vec![
            format!(
                "In 1998 Data General tuned DG/UX and Oracle for a machine of nodes that was not built yet, by traces of a smaller machine \
                 and a simulation of its caches and SCI directories. What mattered was the number of operations on the interconnect for a \
                 unit of work: {} for a New-Order transaction of TPC-C at first, and {} in the end.",
                rounded(PRINTED[0].1),
                rounded(PRINTED[1].1)
            ),
            format!(
                "Here a PostgreSQL server with {MOST_CLIENTS} clients is traced, and the same machine simulated: four nodes of four Pentium Pro, \
                 with far memory caches of 128 MB. The trace has PostgreSQL's own code, not the kernel's, so that the numbers are not \
                 those of the slides; the question is the same. Each step was recorded {} times.",
                first.operations(0).len()
            ),
        ],
        figures: vec![
            figure(before, &format!("operations on the interconnect for a {unit} of {title}")),
            figure(after, "after the changes"),
            figure(first.steps[0].timed.operations_a_second, "operations a second: the demand at first"),
        ],
        chart: Some(report::bars(
            &tables::changes_by_kind(first),
            "of a transaction",
            &STEPS.each_ref().map(|step| step.name),
            Arrangement::Grouped,
        )?),
        sections: vec![
            section(
                "The machines",
                "Each operation is a message from a node to another one with its answer. SCI's lists need more of them than a directory \
                 with a bit for each node: nodes enter the lists and leave them, and are purged one after another.",
                [tables::machines(&study.machines, first.benchmark)],
            ),
            section(
                "Who causes them",
                "By function, and by the lines of shared memory, which are named by the functions that allocate them.",
                of_all(&|one| vec![one.functions.clone(), one.lines[0].clone(), one.partners.clone()]),
            ),
            changed,
            section(
                "What PostgreSQL shares, and what is left",
                "By structure in shared memory; and the lines that move most after the changes.",
                of_all(&|one| vec![one.shared.clone(), one.lines[1].clone()]),
            ),
            section(
                "Nodes, clients, scheduling",
                "Processes and processors are free of each other: the same trace on nodes of other sizes, with other schedulers, and with pages \
                 in other nodes' memory.",
                [
                    tables::nodes(&study.nodes),
                    tables::clients(&study.clients),
                    tables::schedules(&study.schedules),
                ],
            ),
        ],
        provenance: study.provenance.clone(),
    })
}
