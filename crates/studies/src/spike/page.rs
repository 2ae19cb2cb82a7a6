//! The report as a page.

use report::{Arrangement, Chart, Error, Page, PageBlock, PageFigure, PageSection};
use table::{Table, Value};

use super::{SpikeStudy, figures, paper, tables};

/// The page.
pub(super) fn page(study: &SpikeStudy) -> Result<Page, Error> {
    let changes = tables::changes(study);
    Ok(Page {
        title: "Spike: today's programs after their profiles".into(),
        headline: headline(&changes),
        lead: LEAD.map(String::from).into(),
        figures: numbers(&changes),
        chart: Some(
            bars(&tables::cycle_steps(study)[1], Arrangement::Grouped)?
                .titled("cycles-chart", "Cycles on the 21164, one optimization after another, in percent")
                .captioned(
                    "To the left: fewer than the original. Each bar has what the bar above it has, too.",
                ),
        ),
        sections: sections(study)?,
        provenance: study.provenance.clone(),
    })
}

const LEAD: [&str; 2] = [
    "Compilers arrange code as its source is written. Spike, an optimizer of DIGITAL's for linked programs, arranged it as it is \
     executed: it took an image and a profile, laid out what is frequent in one piece, and freed it of what only rare \
     cases need. This report repeats the figures of its paper of 1997 with today's compiler and programs of several kinds.",
    "Each program is **trained on one input and measured on another one**, whole runs with every instruction of the program and its \
     libraries. The C library stays as it is. What an optimized program writes is compared with what the original writes.",
];

/// The values of a column of a table.
fn values(table: &Table, column: usize) -> Vec<(String, f64)> {
    let value = |row: &Vec<Value>| match (&row[0], &row[column]) {
        (Value::Text(name), Value::Real(value)) => Some((name.clone(), *value)),
        _ => None,
    };
    table.rows.iter().filter_map(value).collect()
}

fn column(table: &Table, name: &str) -> usize {
    table.columns.iter().position(|column| column.name == name).unwrap_or(1)
}

/// The column with the cycles of the 21164.
fn cycles(changes: &Table) -> usize {
    column(changes, &format!("cycles, {}", tables::processors()[1]))
}

fn headline(changes: &Table) -> String {
    let mut all = values(changes, cycles(changes));
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let words = |percent: f64| {
        format!("{:.1} % {} cycles", percent.abs(), if percent < 0.0 { "fewer" } else { "more" })
    };
    match &all[..] {
        [] => "Today's programs, optimized by their profiles".into(),
        [(name, only)] => {
            format!("{name} takes {} on a 21164 when it is optimized by its profile", words(*only))
        }
        [(name, best), .., (_, worst)] if *worst < 0.0 => format!(
            "Optimized by their profiles, programs take {:.1} to {} on a 21164; {name} wins most",
            worst.abs(),
            words(*best)
        ),
        [(name, best), ..] => {
            let faster = all.iter().filter(|one| one.1 < 0.0).count();
            format!(
                "Optimized by their profiles, {faster} of {} programs are faster on a 21164; {name} takes {}",
                all.len(),
                words(*best)
            )
        }
    }
}

fn signed(percent: f64) -> String {
    let sign = if percent < 0.0 { "\u{2212}" } else { "+" };
    format!("{sign}{:.1} %", percent.abs())
}

fn numbers(changes: &Table) -> Vec<PageFigure> {
    let best = |at: usize, what: &str| {
        let all = values(changes, at);
        let (name, value) = all.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(PageFigure { value: signed(value), label: format!("{what}: *{name}*, which wins most") })
    };
    let parts = [
        best(column(changes, "instructions"), "instructions"),
        best(column(changes, "misses, 8 KB direct-mapped"), "misses of an instruction cache of 8 KB"),
        best(cycles(changes), "cycles on the 21164"),
    ];
    parts.into_iter().flatten().collect()
}

/// Bars for each row of a table, one for each column but the first.
fn bars(table: &Table, arrangement: Arrangement) -> Result<Chart, Error> {
    let names: Vec<&str> = table.columns[1..].iter().map(|column| column.name.as_str()).collect();
    report::bars(table, &table.columns[0].name, &names, arrangement)
}

/// Lines over the rows of a table, one for each column but the first.
fn lines(table: &Table) -> Result<Chart, Error> {
    let names: Vec<&str> = table.columns[1..].iter().map(|column| column.name.as_str()).collect();
    report::lines(table, &table.columns[0].name, &names, "executed instructions, %")
}

fn paragraph(text: &str) -> PageBlock {
    PageBlock::Paragraph(text.into())
}

fn section(heading: &str, blocks: Vec<PageBlock>) -> PageSection {
    PageSection { heading: heading.into(), blocks }
}

/// A chart above its table.
fn shown(chart: Chart, table: Table) -> [PageBlock; 2] {
    [PageBlock::Chart(chart), PageBlock::Table(table)]
}

fn sections(study: &SpikeStudy) -> Result<Vec<PageSection>, Error> {
    Ok(vec![
        section(
            "What is won",
            vec![PageBlock::Table(tables::programs(study)), PageBlock::Table(tables::changes(study))],
        ),
        feedback(study)?,
        by_optimization(study)?,
        characteristics(study)?,
        layout(study)?,
        hot_cold(study)?,
        section(
            "The paper's findings beside today's",
            vec![
                paragraph(
                    "Figures from the text of R. Cohn, D. Goodwin and P. G. Lowney, *Optimizing Alpha Executables on Windows NT with \
                     Spike* (Digital Technical Journal 9(4), 1997). Its programs were larger, and except for the SPEC benchmarks they were \
                     measured on the input that they were trained on.",
                ),
                PageBlock::Table(paper::table(study)),
            ],
        ),
        section("Everything that was measured", vec![PageBlock::Table(tables::measured(study))]),
    ])
}

fn feedback(study: &SpikeStudy) -> Result<PageSection, Error> {
    let chart = bars(&tables::feedback_cycles(study, 1), Arrangement::Grouped)?;
    let blocks = vec![
        paragraph(
            "The compiler can use a profile itself: a build with counters is run on the training input, and the program is compiled again by \
             what they say (`-fprofile-generate`, `-fprofile-use`). It arranges blocks, inlines and unrolls as it has learnt, procedure by \
             procedure. Spike needs no second build, sees the whole image, and takes what GCC made as well as any other image.",
        ),
        PageBlock::Chart(chart.titled(
            "feedback-chart",
            "Cycles on the 21164, by GCC's profile feedback, Spike, and both, in percent",
        )),
        PageBlock::Table(tables::feedback(study)),
    ];
    Ok(section("Beside the compiler's profile feedback", blocks))
}

fn by_optimization(study: &SpikeStudy) -> Result<PageSection, Error> {
    let instructions = tables::instruction_steps(study);
    let chart = bars(&instructions, Arrangement::Grouped)?;
    let mut blocks = vec![paragraph(
        "**Layout**: blocks in chains, cold parts apart, procedures by the call graph, and no instructions that do nothing. \
         **Hot-cold**: hot parts without what only cold ones need. **Linkage**: needless computations of the global pointer, and last \
         calls as jumps. **Inlining**: hot parts of small procedures in the place of calls. Each with those before it.",
    )];
    blocks.extend(shown(chart, instructions));
    blocks.extend(tables::miss_steps(study).into_iter().map(PageBlock::Table));
    blocks.extend(tables::cycle_steps(study).into_iter().map(PageBlock::Table));
    Ok(section("By optimization", blocks))
}

fn characteristics(study: &SpikeStudy) -> Result<PageSection, Error> {
    let (sizes, loops, overhead) = (figures::sizes(study), figures::loops(study), figures::overhead(study));
    let mut blocks = Vec::new();
    blocks.extend(shown(report::bars(&sizes, "program", &["instructions"], Arrangement::Grouped)?, sizes));
    blocks.push(paragraph(
        "A program whose line begins high is *call-intensive*: its loops go through several procedures, so that compilers, which see \
         one procedure at a time, have little to optimize. One whose line begins low is *loop-intensive*.",
    ));
    blocks.extend(shown(lines(&loops)?, loops));
    if let Some(first) = figures::complexity_of_first(study) {
        blocks.extend(shown(lines(&first)?, first));
    }
    let complexity = figures::complexity(study);
    blocks.extend(shown(lines(&complexity)?, complexity));
    let chart = report::bars(&overhead, "program", &["prologues and epilogues"], Arrangement::Grouped)?;
    blocks.extend(shown(chart, overhead));
    Ok(section("What the programs are like (Figures 1 to 6)", blocks))
}

fn layout(study: &SpikeStudy) -> Result<PageSection, Error> {
    let (steps, speedup) = (figures::layouts(study), figures::layout_speedup(study));
    let mut blocks = vec![paragraph(
        "Speedups in percent. In a small cache without ways, where things happen to lie decides as much as any algorithm: two \
         procedures that call each other and share a cache line cost more than chaining wins.",
    )];
    blocks.extend(shown(bars(&steps, Arrangement::Grouped)?, steps));
    blocks.extend(shown(bars(&speedup, Arrangement::Grouped)?, speedup));
    Ok(section("Code layout (Figures 10 and 11)", blocks))
}

fn hot_cold(study: &SpikeStudy) -> Result<PageSection, Error> {
    let coverage = figures::coverage(study);
    let (reductions, leaves) = (figures::reductions(study), figures::leaves(study));
    let (growth, sizes) = (figures::growth(study), figures::optimized_sizes(study));
    let mut blocks = Vec::new();
    blocks.extend(shown(bars(&coverage, Arrangement::Percent)?, coverage));
    blocks.extend(shown(bars(&reductions, Arrangement::Stacked)?, reductions));
    blocks.extend(shown(bars(&leaves, Arrangement::Grouped)?, leaves));
    let chart = report::bars(&growth, "program", &["hot and cold", "stubs"], Arrangement::Stacked)?;
    blocks.extend(shown(chart, growth));
    let chart = report::bars(&sizes, "program", &["hot", "cold", "stubs"], Arrangement::Stacked)?;
    blocks.extend(shown(chart, sizes));
    blocks.push(paragraph(
        "The farther the two lines are apart, the more of the execution hot-cold optimization moved from large procedures to \
         small ones.",
    ));
    for table in figures::sizes_before_and_after(study) {
        blocks.push(PageBlock::Chart(lines(&table)?));
    }
    Ok(section("Hot-cold optimization (Figures 15 to 20)", blocks))
}
