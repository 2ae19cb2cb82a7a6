//! The study as a page.

use report::{Arrangement, Error, Page, PageBlock, PageFigure, PageSection, bars};

use super::measure::{CACHES, Scope};
use super::{SystemStudy, tables};
use crate::StudyReport;

impl SystemStudy {
    /// Its tables and its page.
    pub fn report(&self) -> Result<StudyReport, Error> {
        Ok(StudyReport { summary: tables::summary(self), tables: tables::all(self), page: page(self)? })
    }
}

/// The report as a page.
fn page(study: &SystemStudy) -> Result<Page, Error> {
    let scopes = Scope::ALL.map(Scope::name);
    let chart = |table: &table::Table| bars(table, "program", &scopes, Arrangement::Grouped);
    let blocks = tables::block_sizes(study);
    let mut sections = vec![
        section("Instruction counts", &[COUNTS], vec![PageBlock::Table(tables::instructions(study))]),
        section(
            "Average basic block sizes",
            &["A basic block ends with an instruction that may transfer control."],
            vec![PageBlock::Chart(chart(&blocks)?), PageBlock::Table(blocks)],
        ),
        section("Instruction caches", &[MISSES], miss_blocks(study, chart)?),
        section("Percent composition", &[], vec![PageBlock::Table(tables::composition(study))]),
    ];
    let byte_word = tables::byte_word(study);
    if !byte_word.rows.is_empty() {
        sections.push(section(
            "Byte and word instructions in the kernel",
            &[BYTE_WORD],
            vec![PageBlock::Table(byte_word)],
        ));
    }
    sections.push(section("The slides", &[SLIDES], Vec::new()));
    sections.push(section("The programs", &[], vec![PageBlock::Table(tables::workloads(study))]));
    Ok(Page {
        title: "The operating system in the picture".into(),
        headline: headline(study),
        lead: LEAD.map(String::from).into(),
        figures: figures(study),
        chart: Some(bars(&tables::shares(study), "program", &tables::PARTS, Arrangement::Percent)?),
        sections,
        provenance: study.provenance.clone(),
    })
}

fn section(heading: &str, paragraphs: &[&str], blocks: Vec<PageBlock>) -> PageSection {
    let text = paragraphs.iter().map(|text| PageBlock::Paragraph((*text).into()));
    PageSection { heading: heading.into(), blocks: text.chain(blocks).collect() }
}

/// A chart of the smallest caches, and a table of all.
fn miss_blocks(
    study: &SystemStudy,
    chart: impl Fn(&table::Table) -> Result<report::Chart, Error>,
) -> Result<Vec<PageBlock>, Error> {
    let charts =
        (0..2.min(CACHES.len())).map(|cache| chart(&tables::miss_rate(study, cache)).map(PageBlock::Chart));
    let mut blocks = charts.collect::<Result<Vec<_>, _>>()?;
    blocks.push(PageBlock::Table(tables::miss_rates(study)));
    Ok(blocks)
}

/// The operating system's share of a program's instructions, in percent.
fn system_share(result: &super::SystemProgramResult) -> f64 {
    let [user, kernel, pal] = result.counted.modes;
    100.0 * (kernel + pal) as f64 / ((user + kernel + pal) as f64).max(1.0)
}

fn headline(study: &SystemStudy) -> String {
    let largest = study.programs.iter().max_by(|a, b| system_share(a).total_cmp(&system_share(b)));
    match largest {
        Some(result) => format!(
            "The operating system executes {:.0} % of the instructions of {}",
            system_share(result),
            result.program.name
        ),
        None => "No program was studied".into(),
    }
}

fn figures(study: &SystemStudy) -> Vec<PageFigure> {
    let figure = |result: &super::SystemProgramResult| PageFigure {
        value: format!("{:.1} %", system_share(result)),
        label: format!("of the instructions of {} are the kernel's and PALcode's", result.program.name),
    };
    let databases = study.programs.iter().filter(|result| result.program.unit.is_some());
    databases.take(4).map(figure).collect()
}

const LEAD: [&str; 2] = [
    "In 1998 Casmira, Kaeli and Hunter showed at a workshop what had been missing from traces: the operating system, which \
     shortens basic blocks, changes the behaviour of caches and the mix of instructions, and can dominate commercial applications. \
     They traced Windows NT on Alpha with PatchWrx.",
    "Here programs of today run on Linux for Alpha, of which everything is recorded: the application, its libraries, the \
     kernel and PALcode. Each figure is shown for the application alone, with its libraries, and with the operating system.",
];
const COUNTS: &str = "Databases: of a unit of work. Others: of the whole run, with its start. *application* is the program's \
     own image, *and libraries* all that is executed in user mode.";
const MISSES: &str = "Each scope has caches of its own: those of the application see nothing else, as in a trace of the \
     application alone.";
const BYTE_WORD: &str = "The question of Hunter and Betts, extended to the operating system: kernel and database, both \
     compiled with byte and word instructions, and without.";
const SLIDES: &str = "The slides (\"Tracing and Characterization of NT-based System Workloads\") give their workload instruction \
     counts, block sizes, miss rates and compositions as charts, whose values are not printed. Printed are the conclusions: the \
     operating system can dominate execution in commercial applications, reduces the average basic block length, can \
     dramatically change the cache behaviour, and can significantly alter the instruction mix; and PatchWrx's slow-down, 2 when \
     instrumented and 4 while tracing.";
