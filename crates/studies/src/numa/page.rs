//! The report of the study as a page.

use report::{Arrangement, Block, Error, Figure, Page, Section};

use super::tables::{self, PRINTED};
use super::{CLIENTS, NumaStudy};

/// What was changed in PostgreSQL, and why.
const CHANGES: &str = include_str!("../../../../workloads/postgresql/cache-lines.sh");

/// Makes the page.
pub(super) fn page(study: &NumaStudy) -> Result<Page, Error> {
    let [before, after] = tables::steps_here(study);
    let figure = |value: f64, label: &str| Figure {
        value: table::separated(&format!("{value:.0}")),
        label: label.into(),
    };
    let clients = CLIENTS[CLIENTS.len() - 1];
    let section = |heading: &str, text: &str, tables: Vec<table::Table>| {
        let blocks = std::iter::once(Block::Paragraph(text.into()));
        Section {
            heading: heading.into(),
            blocks: blocks.chain(tables.into_iter().map(Block::Table)).collect(),
        }
    };
    let mut changed = section(
        "Find, fix, trace again",
        "`pathlength sharing` finds what the processes share: data of different processes in one line, and a lock that is not in the \
         line of what it protects. PostgreSQL was changed by this script, built and traced again.",
        vec![tables::changes(study), tables::steps(study)],
    );
    changed.blocks.insert(1, Block::Code(CHANGES.into()));
    Ok(Page {
        title: "A server on CC-NUMA".into(),
        headline: format!(
            "A transaction of {clients} PostgreSQL processes needs {:.0} operations between the nodes of a machine of 1998",
            before
        ),
        lead: vec![
            format!(
                "In 1998 Data General tuned DG/UX and Oracle for a machine of nodes that was not built yet, by traces of a smaller machine \
                 and a simulation of its caches and SCI directories. What mattered was the number of operations on the interconnect for a \
                 unit of work: {:.0} for a New-Order transaction of TPC-C at first, and {:.0} in the end.",
                PRINTED[0].1, PRINTED[1].1
            ),
            format!(
                "Here a PostgreSQL server with {clients} clients, who ask for transactions of TPC-B, is traced, and the same machine \
                 simulated: four nodes of four Pentium Pro, with far memory caches of 128 MB. The trace has PostgreSQL's own code, not \
                 the kernel's, so that the numbers are not those of the slides; the question is the same."
            ),
        ],
        figures: vec![
            figure(before, "operations on the interconnect a transaction"),
            figure(after, "after the changes to PostgreSQL"),
            figure(study.timed[0][0].operations_a_second, "operations a second: the demand"),
        ],
        chart: Some(report::bars(
            &tables::changes_by_kind(study),
            "operation",
            &["before", "after"],
            Arrangement::Grouped,
        )?),
        sections: vec![
            section(
                "The machines",
                "Each operation is a message from a node to another one with its answer. SCI's lists need more of them than a directory \
                 with a bit for each node: nodes enter the lists and leave them, and are purged one after another.",
                vec![tables::machines(&study.machines)],
            ),
            section(
                "Who causes them",
                "By function, and by the lines of shared memory, which are named by the functions that allocate them.",
                vec![study.functions.clone(), study.data[0].clone(), study.partners.clone()],
            ),
            changed,
            section(
                "What is left",
                "The lines that move most after the changes: locks, and data that all processes store to.",
                vec![study.data[1].clone()],
            ),
            section(
                "Nodes, clients, scheduling",
                "Processes and processors are free of each other: the same trace on nodes of other sizes, with other schedulers, and with pages \
                 in other nodes' memory.",
                vec![
                    tables::nodes(&study.nodes),
                    tables::clients(&study.clients),
                    tables::schedules(&study.schedules),
                ],
            ),
        ],
        provenance: study.provenance.clone(),
    })
}
