//! The report of the study of TPC-H as a page.

use report::{Arrangement, Error, Page, PageBlock, PageFigure, PageSection};
use table::Table;

use super::findings::{CRITERIA, MISSES};
use super::result::{MACHINES, TpchStudy};
use super::statements::label;
use super::tables;
use crate::byteword::schemes::KINDS;
use crate::tpcc::DatabaseSystem;

/// Makes the page.
pub(super) fn page(study: &TpchStudy) -> Result<Page, Error> {
    let [instructions, data] = study.misses(0, 1);
    let share = |part: u64, rest: u64| 100.0 * part as f64 / (part + rest) as f64;
    let l1 = share(instructions, data);
    let [l2_instructions, l2_data] = study.misses(0, 2);
    let dominate = if l1 > 50.0 { "dominate" } else { "do not dominate" };
    Ok(Page {
        title: "TPC-H, query by query".into(),
        headline: format!(
            "Instruction misses {dominate} in the first level: {l1:.0} % of its misses on an Origin 200"
        ),
        lead: lead(study),
        figures: vec![
            figure(format!("{l1:.0} %"), "of the first level's misses are of instructions"),
            figure(
                format!("{:.0} %", share(l2_instructions, l2_data)),
                "of the second level's misses are of instructions",
            ),
            figure(
                faster(study).to_string(),
                "queries have a count of misses that grows faster than the data",
            ),
        ],
        chart: Some(by_query(&tables::misses(study, 0))?),
        sections: sections(study)?,
        provenance: study.provenance.clone(),
    })
}

fn figure(value: String, label: &str) -> PageFigure {
    PageFigure { value, label: label.into() }
}

/// How many queries have a count of misses that grows faster than the data.
fn faster(study: &TpchStudy) -> usize {
    let mut all: Vec<u32> = MISSES.flat_map(|criterion| study.faster_than_data(criterion)).collect();
    all.sort_unstable();
    all.dedup();
    all.len()
}

fn lead(study: &TpchStudy) -> Vec<String> {
    let how = match study.system {
        DatabaseSystem::Sqlite => "SQLite, embedded in a program for Alpha",
        DatabaseSystem::Postgresql => "a PostgreSQL server for Alpha, one process a query",
    };
    vec![
        "In 1998 Q. Cao, P. Trancoso and J. Torrellas counted the misses of TPC-D's queries on Postgres95, by the counters of a MIPS \
         R10000: instruction misses of the first level dominated, some queries' misses grew faster than the data, and the better \
         access path depended on the selectivity. This page asks the same today."
            .into(),
        format!(
            "All queries have the validation parameters of TPC-H's specification and are executed by {how}; the database has the scale \
             factor {}, primary and foreign keys have indexes, and statistics are up to date. Machines are models: an Origin 200 and \
             a present-day one, both out of order and executing Alpha's instructions, without the operating system's work. Nothing here is a result of TPC-H: TPC \
             has not audited it.",
            study.scale
        ),
    ]
}

/// The misses of the first level by query.
fn by_query(misses: &Table) -> Result<report::Chart, Error> {
    let chart = report::bars(misses, "query", &["icache misses", "dcache misses"], Arrangement::Percent)?;
    let chart = chart.titled("l1-misses", "First-level misses of each query, Origin 200");
    Ok(chart.captioned(
        "The shares of instruction and data misses; a query's height does not show how many there are.",
    ))
}

fn sections(study: &TpchStudy) -> Result<Vec<PageSection>, Error> {
    let mut sections = vec![PageSection {
        heading: "The queries".into(),
        blocks: vec![
            PageBlock::Table(tables::queries(study)),
            PageBlock::Table(tables::misses(study, 0)),
            PageBlock::Table(tables::findings_of_1998(study)),
        ],
    }];
    for (number, name) in MACHINES.iter().enumerate() {
        let cycles = tables::cycles(study, number);
        let chart = report::bars(&cycles, "query", &KINDS, Arrangement::Percent)?;
        let chart = chart.titled(&format!("{}-chart", cycles.name), &format!("Where cycles go, {name}"));
        let caption = "Cycles in which nothing retires belong to what the oldest instruction waits for; what overlaps with older ones is \
                       hidden.";
        let mut blocks = vec![PageBlock::Chart(chart.captioned(caption))];
        if number > 0 {
            blocks.push(PageBlock::Table(tables::misses(study, number)));
        }
        sections.push(PageSection { heading: format!("Cycles on {}", study.machines[number].title), blocks });
    }
    sections.extend([growth(study)?, scans(study)?, access_paths(study)?]);
    let shown = ["queries", "in-1998", "growth", "scans", "switching", "selectivity"];
    let rest = tables::all(study).into_iter();
    let rest =
        rest.filter(|table| !shown.contains(&table.name.as_str()) && !table.name.starts_with("misses"));
    sections
        .push(PageSection { heading: "All numbers".into(), blocks: rest.map(PageBlock::Table).collect() });
    Ok(sections)
}

fn growth(study: &TpchStudy) -> Result<PageSection, Error> {
    let table = tables::growth(study);
    let columns: Vec<String> =
        MISSES.map(|criterion| format!("times the {}", CRITERIA[criterion].name)).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let chart = report::bars(&table, "query", &columns, Arrangement::Grouped)?;
    let chart = chart
        .titled("growth-chart", "How many times as many misses the largest database has as the smallest");
    let caption = format!("The data are {:.2} times as large.", study.data_growth());
    let named = MISSES.map(|criterion| {
        let queries: Vec<String> = study.faster_than_data(criterion).into_iter().map(label).collect();
        let queries = if queries.is_empty() { "none".into() } else { queries.join(", ") };
        format!("{}: {queries}.", CRITERIA[criterion].name)
    });
    let sentence = format!("Faster than the data grow — {}", named.collect::<Vec<_>>().join(" "));
    let blocks = vec![
        PageBlock::Paragraph(sentence),
        PageBlock::Chart(chart.captioned(&caption)),
        PageBlock::Table(table),
    ];
    Ok(PageSection { heading: "Growth with the scale factor".into(), blocks })
}

fn scans(study: &TpchStudy) -> Result<PageSection, Error> {
    let table = tables::scans(study);
    let columns = ["% of the instructions", "% of the dcache misses", "% of the cycles"];
    let chart = report::bars(&table, "query", &columns, Arrangement::Grouped)?;
    let chart = chart.titled("scans-chart", "What bringing rows has of each query, Origin 200, percent");
    let caption = "The rest is evaluation, joins, sorting, grouping, and planning.";
    let blocks = vec![PageBlock::Chart(chart.captioned(caption)), PageBlock::Table(table)];
    Ok(PageSection { heading: "Scans against the rest of the query".into(), blocks })
}

fn access_paths(study: &TpchStudy) -> Result<PageSection, Error> {
    let paths: Vec<&str> = study.paths.iter().map(|path| path.name).collect();
    let mut blocks = Vec::new();
    for criterion in MISSES.chain([CRITERIA.len() - 1]) {
        let table = tables::by_path(study, criterion);
        let chart = report::lines(&table, "% of the rows", &paths, CRITERIA[criterion].name)?;
        let name = format!("{}-chart", table.name);
        let chart = chart.titled(&name, &format!("{} by access path, Origin 200", CRITERIA[criterion].name));
        blocks.push(PageBlock::Chart(
            chart.captioned("Against the share of the rows that are read, not to scale."),
        ));
    }
    let all = tables::all(study).into_iter();
    let own = all.filter(|table| ["switching", "selectivity"].contains(&table.name.as_str()));
    blocks.extend(own.map(PageBlock::Table));
    Ok(PageSection { heading: "Index scan against sequential scan".into(), blocks })
}
