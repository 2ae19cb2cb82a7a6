//! The report of the study as a page.

use report::{Chart, Error, Page, PageBlock, PageSection};

use super::figures::{FIGURES, PaperFigure};
use super::{LOOPS, StridesStudy};

/// Makes the page.
pub fn page(study: &StridesStudy) -> Result<Page, Error> {
    let mut sections = Vec::new();
    for (of, is_modified) in LOOPS.iter().zip([false, true]) {
        let figures: Vec<&PaperFigure> =
            FIGURES.iter().filter(|figure| figure.is_modified == is_modified).collect();
        sections
            .push(PageSection { heading: format!("The {} loop", of.name), blocks: blocks(study, &figures)? });
    }
    let numbers = study.tables().into_iter().map(PageBlock::Table);
    let words = PageBlock::Paragraph(MISSES.into());
    sections.push(PageSection {
        heading: "All numbers, with and without unrolled loops".into(),
        blocks: std::iter::once(words).chain(numbers).collect(),
    });
    Ok(Page {
        title: "Memory access patterns".into(),
        headline: "The strides of a sparse matrix-vector product, in 1997 and today".into(),
        lead: LEAD.map(String::from).into(),
        sections,
        provenance: vec![
            ("Command".into(), "pathlength study strides".into()),
            ("pathlength".into(), env!("CARGO_PKG_VERSION").into()),
            ("Compiler".into(), study.build.compiler.clone()),
            ("Build".into(), study.build.commands.join("\n")),
        ],
        ..Page::default()
    })
}

/// The figures' charts, each with the paper's conclusion and today's result.
fn blocks(study: &StridesStudy, figures: &[&PaperFigure]) -> Result<Vec<PageBlock>, Error> {
    let seen = |figure: &PaperFigure| study.seen.iter().find(|seen| figure.shows(seen));
    let walk = |figure: &PaperFigure| seen(figure)?.walk(figure.array, figure.is_store);
    let tables: Vec<_> = figures.iter().filter_map(|figure| Some(walk(figure)?.chart.clone())).collect();
    let mut charts = report::histograms(&tables)?.into_iter();
    let mut blocks = Vec::new();
    for figure in figures {
        let (number, name) = (figure.number, figure.array.to_uppercase());
        let kind = if figure.is_store { "stores" } else { "loads" };
        let words = format!("{} {}", figure.conclusion, figure.verdict(walk(figure)));
        let title = format!("Figure {number}: {name}, {kind}.");
        match walk(figure) {
            Some(_) => {
                let chart: Chart = charts.next().expect("a chart for each that was accessed");
                blocks.push(PageBlock::Chart(
                    chart.titled(&format!("figure-{number}"), &title).captioned(&words),
                ));
            }
            None => blocks.push(PageBlock::Paragraph(format!("**{title}** {words}"))),
        }
    }
    Ok(blocks)
}

const LEAD: [&str; 2] = [
    "In 1997 S. M. Balle and S. C. Steely looked at how a loop in Fortran accesses its arrays, found that the compiler \
     did not do what they had thought, and changed the loop: their application took 8 % less time. Here both loops, \
     written down from the paper's Figures 1 and 10, are compiled with today's compiler and seen in the same way.",
    "A chart for each figure of the paper, with its number. A bar is as high as the share of the references that are so \
     many elements, as is written below it, from the one *1 back*, *2 back* and so on. A reference less than 128 bytes \
     from the one before is not compared with earlier ones.",
];

const MISSES: &str = "The paper counts misses over 26 calls with a larger matrix. It prints AA(204427,12) and *15 million \
    nonzero elements*, which do not fit together; 1,204,427 rows do, and with them the misses: each call reads 173 MB \
    of AA and ROWIDX once, 2.7 million lines of 64 bytes. So the large matrix has that shape here, and this is counted \
    in one call. Which elements of a column are there is made up: the paper does not tell.";
