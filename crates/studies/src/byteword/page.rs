//! The study's report: the answer first, for a reader who does not know Alpha, then the
//! evidence in the paper's order.

use analysis::paper;
use report::{Arrangement, Chart, Error, Page, PageBlock, PageFigure, PageSection};
use table::Table;

use super::{ModeResult, Study, schemes, tables};

/// How many functions the charts show.
const CHARTED: usize = 15;

/// Everything in one page.
pub(super) fn page(study: &Study) -> Result<Page, Error> {
    let first = &study.modes[0];
    let change = change(first);
    let direction = if change < 0.0 { "fewer" } else { "more" };
    let headline = format!(
        "With byte and word instructions, the same database transaction takes {:.1} % {direction} instructions.",
        change.abs()
    );
    Ok(Page {
        title: "What do byte and word instructions change?".into(),
        headline,
        lead: lead(study),
        figures: figures(study),
        chart: Some(answer_chart(study)?),
        sections: sections(study)?,
        provenance: study.provenance.clone(),
    })
}

/// By how many percent the byte/word build's path length differs.
fn change(result: &ModeResult) -> f64 {
    let [a, b] = result.runs.each_ref().map(tables::geometric_mean);
    100.0 * (b - a) / a
}

fn lead(study: &Study) -> Vec<String> {
    let measured = study.modes[0].runs[0].measurement.units.len();
    vec![
        "Early Alpha processors could load and store only 4 or 8 bytes at a time. To change one character in \
         memory, a program had to fetch the word around it, cut, shift, merge and write the word back. In 1995 six \
         instructions were added that load, store and extend single bytes and 16-bit words. In 1997 engineers at \
         DIGITAL measured what that was worth to a commercial database."
            .into(),
        format!(
            "This report repeats their experiment with today's software. One program, the TPC-B bank benchmark on \
             SQLite, was compiled twice by the same compiler, once without and once with the six instructions. Both \
             ran on an engine that counts every instruction, and {measured} transactions of each were compared. The \
             *path length* is the number of instructions of one transaction."
        ),
    ]
}

fn figures(study: &Study) -> Vec<PageFigure> {
    let first = &study.modes[0];
    let [a, b] = first.runs.each_ref().map(tables::geometric_mean);
    let mut figures = vec![
        PageFigure::rounded(
            a,
            format!("instructions a transaction in the *original* build ({})", first.mode.name),
        ),
        PageFigure::rounded(b, "in the *byte/word* build, for the same transactions"),
    ];
    let library = |build: usize| study.statics[build].iter().find(|image| image.image.contains("sqlite"));
    if let (Some(original), Some(byte_word)) = (library(0), library(1)) {
        let change = 100.0 * (byte_word.text_bytes as f64 / original.text_bytes as f64 - 1.0);
        figures.push(PageFigure { value: signed(change), label: "size of SQLite's machine code".into() });
    }
    let paper = tables::paper_lengths();
    if let Some((mode, a, b)) = paper.iter().find(|(mode, ..)| *mode == first.mode.name) {
        let change = 100.0 * (*b as f64 / *a as f64 - 1.0);
        figures.push(PageFigure {
            value: signed(change),
            label: format!("instructions a transaction in 1997, on SQL Server ({mode})"),
        });
    }
    figures
}

/// A change in percent with a true minus sign.
fn signed(percent: f64) -> String {
    let sign = if percent < 0.0 { "\u{2212}" } else { "+" };
    format!("{sign}{:.1} %", percent.abs())
}

fn answer_chart(study: &Study) -> Result<Chart, Error> {
    let mut table = tables::answer(study);
    // The chart's bars are named by study and mode together.
    for row in &mut table.rows {
        let text = |value: &table::Value| match value {
            table::Value::Text(text) => text.clone(),
            _ => String::new(),
        };
        row[0] = format!("{} ({})", text(&row[0]), text(&row[1])).into();
    }
    let chart = report::bars(&table, "study", &tables::LABELS, Arrangement::Grouped)?;
    Ok(chart.titled("answer-chart", "Instructions a transaction, in both builds").captioned(
        "The databases differ, so compare the bars of a pair, not the pairs: how much shorter is the second?",
    ))
}

fn sections(study: &Study) -> Result<Vec<PageSection>, Error> {
    let mut sections = vec![path_lengths(study)?, in_time(study)?, groups(study)?];
    for result in &study.modes {
        sections.push(mode(result)?);
    }
    sections.extend([input_output(study), images(study)?, paper_tables()]);
    Ok(sections)
}

fn section(heading: impl Into<String>, blocks: Vec<PageBlock>) -> PageSection {
    PageSection { heading: heading.into(), blocks }
}

fn paragraph(text: impl Into<String>) -> PageBlock {
    PageBlock::Paragraph(text.into())
}

fn path_lengths(study: &Study) -> Result<PageSection, Error> {
    let mut blocks = Vec::new();
    for result in &study.modes {
        blocks.push(paragraph(format!("**{}**: {}.", result.mode.name, result.mode.meaning)));
    }
    blocks.push(paragraph(
        "Transactions were measured in the *steady state*: when three successive batches of 250 transactions had mean \
         path lengths within 1 %, and 95 % or more of the page-cache accesses in the last batch were hits. At the \
         end of each run the program checked that the balances of accounts, tellers and branches and the history \
         agree.",
    ));
    blocks.push(PageBlock::Table(tables::answer(study)));
    blocks.push(PageBlock::Table(tables::lengths(study)));
    let strip = report::strip(&tables::transactions(study), "run", "instructions")?;
    blocks.push(PageBlock::Chart(strip.titled("transactions-chart", "Every transaction measured").captioned(
        "A dot is a transaction. The same transactions run in both builds; those to the right did more work, such \
         as starting a new page of the history.",
    )));
    Ok(section("Path lengths", blocks))
}

fn in_time(study: &Study) -> Result<PageSection, Error> {
    let relative = schemes::relative(study);
    let columns: Vec<&str> = relative.columns[1..].iter().map(|column| column.name.as_str()).collect();
    let chart = report::bars(&relative, "scheme", &columns, Arrangement::Grouped)?
        .titled("schemes-chart", "Transactions a second, the original build as 100 %")
        .captioned(
            "The new instructions make a transaction faster by about the share of instructions that they save. Where the \
             processor lacks them and the system has to emulate each, most of the throughput is lost.",
        );
    let cycles = report::bars(&schemes::allocation(study), "run", &schemes::KINDS, Arrangement::Stacked)?
        .titled("cycles-chart", "Where the cycles of a transaction go")
        .captioned(
            "Each cycle is counted once: instructions were issued in it, or the pipeline was stalled.",
        );
    let mut blocks = vec![
        paragraph(
            "The paper measured transactions a second on a prototype: an AlphaStation 500 with a 400 MHz 21164. Here a \
             model of that machine observes every instruction of the measured transactions and computes how many cycles they \
             take. Three *schemes* are compared: the **original** build; the **byte/word** build on a processor that \
             has the instructions; and the same build under **emulation**, on a processor that has not, where each of \
             them traps to the operating system.",
        ),
        PageBlock::Chart(chart),
        PageBlock::Table(schemes::throughput(study)),
        PageBlock::Chart(cycles),
        PageBlock::Table(schemes::causes(study)),
    ];
    if let Some(table) = schemes::disks(study) {
        blocks.push(paragraph(
            "Scaled transactions also wait for disks. With the single disk of the prototype all schemes are as fast as \
             that disk (so the paper measured only the cached mode); with enough disks the processor decides again.",
        ));
        blocks.push(PageBlock::Table(table));
    }
    Ok(section("In time: the three schemes", blocks))
}

fn groups(study: &Study) -> Result<PageSection, Error> {
    let table = tables::groups(study);
    let columns: Vec<&str> = table.columns[1..].iter().map(|column| column.name.as_str()).collect();
    let chart = report::shares(&table, "group", &columns)?;
    let chart = chart.titled("groups-chart", "Instruction groups of a transaction (Figure 4)").captioned(
        "Byte manipulation shrinks where its work is done by the new loads and stores. The paper counts `lda` and \
         `ldah`, which compute addresses and constants, as loads.",
    );
    let images = tables::image_shares(study);
    Ok(section(
        "Which kinds of instructions, and where",
        vec![
            PageBlock::Chart(chart),
            PageBlock::Table(table),
            paragraph(
                "As in 1997 the C library was not rebuilt: its part of a transaction is the same in both builds.",
            ),
            PageBlock::Table(images),
        ],
    ))
}

/// The first rows of a table of functions, named so that no two rows are alike.
fn charted(table: &Table) -> Table {
    let mut table = table.clone();
    table.rows.truncate(CHARTED.min(table.rows.len().saturating_sub(1)));
    table.total = false;
    let mut seen = std::collections::HashSet::new();
    table.rows.retain(|row| seen.insert(format!("{:?}", row[0])));
    table
}

fn mode(result: &ModeResult) -> Result<PageSection, Error> {
    let name = result.mode.name;
    let (instructions, functions) = (tables::instructions(result), tables::functions(result));
    let mut by_change = instructions.clone();
    by_change.rows.pop();
    by_change.rows.sort_by_key(|row| match row[3] {
        table::Value::Integer(delta) => std::cmp::Reverse(delta.unsigned_abs()),
        _ => std::cmp::Reverse(0),
    });
    by_change.rows.extend(instructions.rows.last().cloned());
    let instruction_chart = report::differences(&charted(&by_change), "instruction", "delta")?
        .titled(&format!("instructions-{name}-chart"), "Instructions that changed most")
        .captioned("To the left: executed less often in the byte/word build; to the right: more often.");
    let function_chart = report::differences(&charted(&functions), "function", "delta")?
        .titled(&format!("functions-{name}-chart"), "Functions that grew and shrank most")
        .captioned("Instructions a transaction, byte/word minus original.");
    Ok(section(
        format!("A {name} transaction, instruction by instruction"),
        vec![
            PageBlock::Chart(instruction_chart),
            PageBlock::Table(instructions),
            PageBlock::Chart(function_chart),
            PageBlock::Table(functions),
        ],
    ))
}

fn input_output(study: &Study) -> PageSection {
    let mut blocks = vec![PageBlock::Table(tables::system_calls(study))];
    if let Some(table) = tables::scaled_minus_cached(study) {
        blocks.push(paragraph(
            "The additional work of a scaled transaction, compared with a cached one: mostly, making room for a page in \
             the cache and reading it.",
        ));
        blocks.push(PageBlock::Table(table));
    }
    section("Input and output", blocks)
}

fn images(study: &Study) -> Result<PageSection, Error> {
    let [original, byte_word] = &study.statics;
    let counts = original.iter().chain(byte_word).map(|image| image.functions).sum::<u64>();
    let mut blocks = vec![paragraph(format!(
        "The images as they lie in their files, executed or not. *Text* is all executable sections; *code* is what \
         lies in functions ({counts} in both builds together), padding left out."
    ))];
    blocks.extend(tables::images(study).into_iter().map(PageBlock::Table));
    Ok(section("The code in the images", blocks))
}

/// The tables of the paper itself.
pub(super) fn paper_tables() -> PageSection {
    let mut blocks = vec![paragraph(
        "The figures of the paper (D. P. Hunter and E. B. Betts, *Measured Effects of Adding Byte and Word \
         Instructions to the Alpha Architecture*, Digital Technical Journal, 1997), run through the code that made \
         the tables above. Where one of its tables follows from another, what follows was compared with what was \
         printed.",
    )];
    blocks.push(PageBlock::Table(paper::findings()));
    blocks.extend(paper::tables().into_iter().map(PageBlock::Table));
    section("The paper's own tables", blocks)
}
