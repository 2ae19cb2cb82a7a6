//! The report of the study of multiprocessors as a page.

use report::{Arrangement, Error, Page, PageBlock, PageFigure, PageSection};
use table::Table;

use super::SmpStudy;
use super::alphaserver::ALLOCATION;
use super::machines::PROCESSORS;
use super::pentium_pro::{BASE, BusConfiguration, FIGURES};
use super::pentium_pro_tables::COMPONENTS;
use super::workloads::CLIENTS;

/// Makes the page.
pub(super) fn page(study: &SmpStudy) -> Result<Page, Error> {
    let found = &study.pentium_pro;
    let core = found.base_core();
    let bus = |processors| found.bus(&BusConfiguration { processors, ..BASE });
    let scaling = bus(4).throughput() / bus(1).throughput();
    let stalls = 100.0 * (1.0 - core.not_overlapped.computation / core.cpi());
    let figure = |value: String, label: &str| PageFigure { value, label: label.into() };
    Ok(Page {
        title: "A database on multiprocessors".into(),
        headline: format!(
            "In {stalls:.0} % of the cycles of a database on a Pentium Pro no instruction retires; four of them do {scaling:.1} times the \
             work of one."
        ),
        lead: lead(),
        figures: vec![
            figure(
                format!("{:.2}", core.cpi()),
                "cycles per instruction of a core with 1 MB of L2; printed: 1.37 per µop",
            ),
            figure(
                format!("{:.1} %", bus(4).utilization()),
                "utilization of the bus with four processors; printed: 38.7 %",
            ),
            figure(
                format!("{:.1} %", bus(4).dirty_share()),
                "of the misses are to lines that are dirty in another cache; printed: 21.5 %",
            ),
            figure(format!("{scaling:.2}"), "times the throughput with four processors; printed: 3.4"),
        ],
        chart: Some(allocation_chart(study)?),
        sections: sections(study)?,
        provenance: study.provenance.clone(),
    })
}

fn lead() -> Vec<String> {
    vec![
        "In 1998 K. Keeton and others measured, by hardware counters, what a commercial database does on a server with four Pentium Pro \
         processors, and Z. Cvetanovic compared commercial and technical workloads on AlphaServers. They found that databases wait: for \
         caches, for each other's data, and that what makes technical programs fast helps them little."
            .into(),
        format!(
            "This page asks the same of PostgreSQL. Its server, compiled for Alpha, does transactions of TPC-C for {CLIENTS} clients; all \
             instructions and addresses of the transactions were recorded once, and models of the machines execute them. The \
             operating system's work is not part of it, and an x86 instruction is not one of Alpha: compare the shapes, not the digits. \
             Technical workloads are kernels: sweeps over vectors, conjugate gradients, a stencil, as four processes (rates) or \
             four threads (parallel)."
        ),
    ]
}

/// Where the time goes.
fn allocation_chart(study: &SmpStudy) -> Result<report::Chart, Error> {
    let chart = report::bars(&study.alphaserver.allocation(), "workload", &ALLOCATION, Arrangement::Stacked)?;
    let chart = chart.titled(
        "allocation-chart",
        "Where the cycles of an instruction go, four processors of an AlphaServer 4100",
    );
    Ok(chart.captioned(
        "Issuing and stalls within the processor, then what it waits for on the bus with three others; idle time is left out.",
    ))
}

fn section(heading: &str, text: &str, blocks: Vec<PageBlock>) -> PageSection {
    let text = PageBlock::Paragraph(text.into());
    PageSection { heading: heading.into(), blocks: std::iter::once(text).chain(blocks).collect() }
}

fn tables<const N: usize>(tables: [Table; N]) -> Vec<PageBlock> {
    tables.map(PageBlock::Table).into()
}

fn sections(study: &SmpStudy) -> Result<Vec<PageSection>, Error> {
    let (found, alpha) = (&study.pentium_pro, &study.alphaserver);
    let mut sections = vec![
        PageSection {
            heading: "What they concluded, and what holds here".into(),
            blocks: study.findings().into_iter().map(PageBlock::Table).collect(),
        },
        section(
            "Cycles per instruction",
            "Each process of the server has an out-of-order core of its own, with caches that nobody else changes.",
            tables([found.cpi_table(), found.sizes(), found.outstanding()]),
        ),
        section(
            "Caches",
            "Four processors on their bus, each with 8 KB and 8 KB of L1 and a second level whose size changes.",
            tables([found.caches()]),
        ),
        section(
            "Superscalar issue, and branches",
            "How many instructions are decoded and retired in a cycle, and how well branches are predicted.",
            tables([found.profiles(), found.branches()]),
        ),
        overlap(study)?,
        scaling(study)?,
        section(
            "States, and whether E is worth having",
            "The state in which a request finds its line, before the request changes it; and the same database with a protocol that has \
             no state E.",
            tables([found.states(), found.protocols()]),
        ),
        section(
            "Commercial and technical workloads",
            "The same database and the technical kernels on an AlphaServer 4100. The slides' figures have no numbers; their conclusions \
             are in the second table of this page.",
            tables([alpha.issuing(), alpha.events(), alpha.requests(), alpha.allocation()]),
        ),
    ];
    let commands = found.tables().into_iter().chain(alpha.tables());
    let commands = commands.filter(|table| table.name.ends_with("commands"));
    sections.push(section(
        "Commands",
        "Each simulation of this page can be repeated with its instructions behind it: the command prints its numbers, `--by function`, \
         `--by line` and `--by instruction` of `time` where they come from. Traces are kept where the commands name them.",
        commands.map(PageBlock::Table).collect(),
    ));
    Ok(sections)
}

/// Figures 2 and 3.
fn overlap(study: &SmpStudy) -> Result<PageSection, Error> {
    let mut blocks = Vec::new();
    for l2 in FIGURES {
        let table = study.pentium_pro.not_overlapped(l2);
        let chart = report::bars(&table, "memory latency", &COMPONENTS, Arrangement::Stacked)?;
        let caption = "Bars are what would be needed if nothing overlapped; the table below has what was.";
        blocks.push(PageBlock::Chart(
            chart.titled(&format!("{}-chart", table.name), &table.title).captioned(caption),
        ));
        blocks.push(PageBlock::Table(table));
    }
    let text = "Every event at its full penalty, for the four speeds of memory of the study, without other processors on the bus.";
    Ok(section("What out-of-order execution hides", text, blocks))
}

/// Tables 11 to 14, and the four speeds of memory.
fn scaling(study: &SmpStudy) -> Result<PageSection, Error> {
    let found = &study.pentium_pro;
    let utilization = found.utilization();
    let columns: Vec<String> = PROCESSORS
        .iter()
        .flat_map(|number| ["printed", "here"].map(|who| format!("{who} {number} P")))
        .collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let chart = report::bars(&utilization, "L2", &columns, Arrangement::Grouped)?;
    let chart = chart.titled("utilization-chart", "Utilization of the bus, in percent");
    let mut blocks = vec![PageBlock::Chart(chart)];
    blocks.extend(tables([found.throughput(), utilization, found.latency(), found.dirty(), found.speeds()]));
    let text = "The same transactions on one, two and four processors. Clients ask without a pause: a processor executes a transaction of the process that waits for the longest time.";
    Ok(section("Scaling, and the bus", text, blocks))
}
