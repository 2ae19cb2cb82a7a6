//! The report of the study of very large memory as a page.

use report::{Arrangement, Error, Page, PageBlock, PageFigure, PageSection};

use super::VlmStudy;
use super::tables::{
    self, ALPHA, BACKINGS, Measure, PAGE_TABLES, START_UP, by_processes, by_size, most_processes, ratios,
    sizes,
};

/// Makes the page.
pub fn page(study: &VlmStudy) -> Result<Page, Error> {
    let ratios = ratios(study);
    let mut sections = figures(study)?;
    sections.extend(postgresql(study)?);
    sections.extend(unmeasured(study));
    let numbers = tables::all(study).into_iter();
    let has_own_section = |name: &str| ["postgresql", "not-measured"].contains(&name);
    sections.push(PageSection {
        heading: "All numbers".into(),
        blocks: std::iter::once(PageBlock::Paragraph(LIMITS.into()))
            .chain(numbers.filter(|table| !has_own_section(&table.name)).map(PageBlock::Table))
            .collect(),
    });
    Ok(Page {
        title: "Very large memory".into(),
        headline: ratios.as_ref().map_or_else(|| HEADLINE.into(), |ratios| ratios.sentence()),
        lead: LEAD.map(String::from).into(),
        figures: ratios
            .into_iter()
            .flat_map(|ratios| {
                [
                    PageFigure {
                        value: format!("1/{:.0}", ratios.page_tables),
                        label: "of the page tables".into(),
                    },
                    PageFigure {
                        value: format!("1/{:.0}", ratios.start_up),
                        label: "of the time to start".into(),
                    },
                ]
            })
            .collect(),
        sections,
        provenance: study.provenance.clone(),
        ..Page::default()
    })
}

/// Figures 4, 8 and 9.
fn figures(study: &VlmStudy) -> Result<Vec<PageSection>, Error> {
    let (Some(&largest), Some(most)) = (sizes(study).last(), most_processes(study)) else {
        return Ok(Vec::new());
    };
    let of_largest = |measure: Measure| by_processes(study, measure, largest);
    let of_most = |measure: Measure| by_size(study, measure, most);
    let kinds: Vec<&str> = BACKINGS.map(|backing| backing.title()).into();
    let with_alpha: Vec<&str> = kinds.iter().copied().chain([ALPHA]).collect();
    let tables_title = format!("Memory of page tables against the number of processes, {largest}");
    let start_title = format!("Start-up against the number of processes, {largest}");
    let size_title = format!("Start-up of {most} processes against the size");
    [
        ("Figure 4: page tables", of_largest(PAGE_TABLES), "processes", with_alpha, tables_title, FIGURE_4),
        ("Figure 8: processes", of_largest(START_UP), "processes", kinds.clone(), start_title, FIGURE_8),
        ("Figure 9: size", of_most(START_UP), "size, GiB", kinds, size_title, FIGURE_9),
    ]
    .into_iter()
    .map(|(heading, table, category, columns, title, caption)| {
        let measure = table.title.clone();
        let chart = report::lines(&table, category, &columns, &measure)?;
        let chart = chart.titled(&format!("{}-chart", table.name), &format!("{title}.")).captioned(caption);
        Ok(PageSection { heading: heading.into(), blocks: vec![PageBlock::Chart(chart)] })
    })
    .collect()
}

fn postgresql(study: &VlmStudy) -> Result<Option<PageSection>, Error> {
    let Some(table) = tables::postgresql(study) else { return Ok(None) };
    let columns =
        ["connect, seconds", "connect and first touch, seconds", "server's processor time, seconds"];
    let chart = report::bars(&table, "shared memory", &columns, Arrangement::Grouped)?;
    let chart = chart.titled("postgresql-chart", "PostgreSQL's connections.").captioned(POSTGRESQL);
    Ok(Some(PageSection {
        heading: "PostgreSQL".into(),
        blocks: vec![PageBlock::Chart(chart), PageBlock::Table(table)],
    }))
}

fn unmeasured(study: &VlmStudy) -> Option<PageSection> {
    let table = tables::unmeasured(study)?;
    Some(PageSection { heading: "What could not be measured".into(), blocks: vec![PageBlock::Table(table)] })
}

const HEADLINE: &str = "Page tables and start-up of processes that map gigabytes";

const LEAD: [&str; 2] = [
    "In 1998 K. L. Noel and N. Y. Karkhanis described what OpenVMS did for databases with gigabytes of shared memory: sections \
     that are resident, reserved by name, and mapped by page tables that all processes share. This page repeats their measurements \
     on Linux, with sections of `vlm`.",
    "Each process is started by `exec`, maps the memory, and reads a byte of each page; a first process has touched all of it before. \
     *Pages of 4 KiB* are what shared memory consists of without preparation. *Private tables* are huge pages that each process \
     maps by tables of its own; *shared tables* are sections as `vlm` maps them.",
];

const FIGURE_4: &str = "With pages of 4 KiB each process has 2 MiB of page tables for each GiB that it maps: those of 512 processes are as large as the \
     memory. Alpha's tables, whose pages have 8 KiB, are computed.";
const FIGURE_8: &str = "Each process that maps by tables of its own has a fault for each page; with shared tables, one for each GiB.";
const FIGURE_9: &str = "With shared tables the time does not depend on the size.";
const POSTGRESQL: &str = "Each connection reads all shared buffers. The server forks its processes, so that huge pages of its own have \
     shared tables too, where whole GiB are mapped; a section adds that its memory is reserved by name.";
const LIMITS: &str = "Page tables are the growth of the whole machine's, in which programs that start and end meanwhile count too: a small \
     number may be wrong by some hundred KiB, and even negative. Times of start-up depend on what else runs; processor time and faults \
     hardly do. What page tables remain with sharing are those of the processes' own program, stack and libraries.";
