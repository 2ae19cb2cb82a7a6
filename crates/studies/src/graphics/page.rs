//! The report of the study as a page.

use report::{Arrangement, Chart, Error, Page, PageBlock, PageFigure, PageSection};

use super::runs::SYSTEMS;
use super::vertices::{CONDITIONS, EXACT, HOST, PATHS, VertexCost};
use super::{GraphicsStudy, tables};

/// Makes the page.
pub(super) fn page(study: &GraphicsStudy) -> Result<Page, Error> {
    let [old, new] =
        [0, 1].map(|system| lit(study, SYSTEMS[system].label).expect("both machines are measured"));
    let host = lit(study, HOST);
    let measured = host.map_or(String::new(), |pair| format!(", {} on this host", share(pair)));
    Ok(Page {
        title: "Graphics by generic and special paths".into(),
        headline: format!(
            "A generic path has {} of the rate of a path compiled for lit vertices on the 21164, {} on the 21264{measured}",
            share(old),
            share(new),
        ),
        lead: LEAD.map(String::from).into(),
        figures: figures(study, old, new, host),
        chart: Some(shares_chart(study)?),
        sections: vec![
            pictures(study),
            PageSection::of_tables(
                "The cost of a vertex",
                VERTICES,
                [tables::rates(&study.vertices), tables::vertices(&study.vertices)],
            ),
            PageSection::of_tables("The generic path's share", SHARES, [tables::shares(&study.vertices)]),
            traps(study),
            clocks(study)?,
            PageSection::of_tables("Changes of state", VALIDATION, [tables::validation(&study.validation)]),
            variants(study)?,
            sizes(study)?,
            composite(study)?,
            PageSection::of_tables(
                "What limits a frame",
                STAGES,
                [tables::stages(&study.stages), tables::devices()],
            ),
        ],
        provenance: provenance(study),
    })
}

/// The lit case in immediate mode by both paths.
fn lit<'s>(study: &'s GraphicsStudy, machine: &str) -> Option<[&'s VertexCost; 2]> {
    tables::pair(&study.vertices, CONDITIONS[1].1, "immediate", machine)
}

fn share([generic, special]: [&VertexCost; 2]) -> String {
    format!("{:.0} %", 100.0 * generic.rate / special.rate)
}

fn figures(
    study: &GraphicsStudy,
    old: [&VertexCost; 2],
    new: [&VertexCost; 2],
    host: Option<[&VertexCost; 2]>,
) -> Vec<PageFigure> {
    let figure = |value: String, label: &str| PageFigure { value, label: label.into() };
    let at_500 = study.clocks.iter().find(|clock| clock.mhz == 500);
    let rate = |pair: [&VertexCost; 2], label: &str| figure(format!("{:.2}", pair[1].rate), label);
    let mut figures = vec![rate(old, "M lit vertices/s on a 21164 at 400 MHz, special path")];
    figures.extend(at_500.map(|clock| figure(format!("{:.2}", clock.rates[1]), "M/s at 500 MHz")));
    figures.push(rate(new, "M/s on a 21264 at 500 MHz"));
    figures.extend(
        host.map(|pair| figure(format!("{:.0}", pair[1].rate), "M/s on this host, measured on one core")),
    );
    figures
}

fn shares_chart(study: &GraphicsStudy) -> Result<Chart, Error> {
    let table = tables::shares(&study.vertices);
    let machines = [SYSTEMS[0].label, SYSTEMS[1].label, HOST];
    let columns = &machines[..if study.without_host.is_some() { 2 } else { 3 }];
    let mut immediate = table.clone();
    immediate.rows.retain(|row| row[1] == table::Value::Text("immediate".into()));
    Ok(report::bars(&immediate, "conditions", columns, Arrangement::Grouped)?
        .titled("shares-chart", "The generic path's rate as a share of the special path's, by conditions.")
        .captioned(SHARES_CHART))
}

fn pictures(study: &GraphicsStudy) -> PageSection {
    let pictures = study.tests.iter().filter_map(|test| test.picture.clone()).collect();
    let mut section = PageSection::of_tables("The viewer's pictures", PICTURES, []);
    section.blocks.push(PageBlock::Pictures(pictures));
    section
}

/// The cost of exact traps, in words.
fn traps(study: &GraphicsStudy) -> PageSection {
    let measured = lit(study, EXACT).zip(lit(study, SYSTEMS[0].label));
    let words = measured.map_or(String::new(), |(exact, imprecise)| {
        let of = |pair: [&VertexCost; 2], path: usize| {
            let [instructions, cycles] = [pair[path].instructions, pair[path].cycles].map(Option::unwrap_or_default);
            format!("{instructions:.0} instructions and {cycles:.0} cycles")
        };
        format!(
            "A lit vertex takes {} by the special path with exact traps, {} without; by the generic path {} and {}.",
            of(exact, 1),
            of(imprecise, 1),
            of(exact, 0),
            of(imprecise, 0)
        )
    });
    PageSection::of_tables("Exact traps", &format!("{TRAPS} {words}"), [])
}

/// A section with a chart between its text and its tables.
fn charted(mut section: PageSection, chart: Chart) -> PageSection {
    section.blocks.insert(1, PageBlock::Chart(chart));
    section
}

fn clocks(study: &GraphicsStudy) -> Result<PageSection, Error> {
    let table = tables::clocks(&study.clocks);
    let chart = report::lines(&table, "MHz", &PATHS, "M vertices/s")?
        .titled("clocks-chart", "Lit vertices by the clock of a 21164.")
        .captioned("A client and the library alone, in immediate mode.");
    Ok(charted(PageSection::of_tables("Vertices against clock", CLOCKS, [table]), chart))
}

fn variants(study: &GraphicsStudy) -> Result<PageSection, Error> {
    let chart = report::bars(
        &tables::gains(&study.variants),
        "variants",
        &["12 vertices a change", "96 vertices a change"],
        Arrangement::Grouped,
    )?
    .titled(
        "gains-chart",
        "Cycles a vertex that special paths save on a 21164, by the number of variants that alternate.",
    )
    .captioned("Below zero the larger library is slower than the generic path.");
    Ok(charted(PageSection::of_tables("Many variants", VARIANTS, [tables::variants(&study.variants)]), chart))
}

fn sizes(study: &GraphicsStudy) -> Result<PageSection, Error> {
    let table = tables::sizes(&study.sizes);
    let chart = report::lines(
        &table,
        "conditions",
        &["nominal variants", "distinct", "used by the viewer"],
        "variants",
    )?
    .titled("sizes-chart", "Variants by the number of conditions.")
    .captioned(SIZES_CHART);
    Ok(charted(PageSection::of_tables("Coverage, text and compile time", SIZES, [table]), chart))
}

fn composite(study: &GraphicsStudy) -> Result<PageSection, Error> {
    let table = tables::composites(&study.composites);
    let mut section = PageSection::of_tables(
        "A composite of the viewer's tests",
        COMPOSITE,
        [table, tables::tests(&study.tests)],
    );
    if let Some(reason) = &study.without_host {
        section.blocks.push(PageBlock::Paragraph(format!("There are no rates of the host: {reason}.")));
    }
    Ok(section)
}

fn provenance(study: &GraphicsStudy) -> Vec<(String, String)> {
    let mut facts = vec![
        ("Command".into(), "pathlength study graphics".into()),
        ("pathlength".into(), env!("CARGO_PKG_VERSION").into()),
        ("Machines".into(), SYSTEMS.map(|system| system.machine).join(", ")),
    ];
    for build in &study.builds {
        facts.push((format!("{} build", build.name), build.commands.join("\n")));
        facts.push((format!("{} compiler", build.name), build.compiler.clone()));
    }
    facts
}

const LEAD: [&str; 2] = [
    "In 1996 the processor of a workstation computed geometry and lighting, and DIGITAL's PowerStorm 4DT had two kinds of code for it: a \
     *generic path*, which tests all state at each vertex, and *speed-of-light paths*, compiled from one template for each combination of \
     conditions. The paper of 1997 says that they pay, but has few numbers. Shaders pose the same question today: one for all materials, or one \
     for each.",
    "Here a library for OpenGL 1.1 in that structure, ten conditions and 396 special paths that equal the generic one bit for bit, is compiled \
     for Alpha and for the host. On Alpha, instructions are counted and cycles are those of models of the 21164 and the 21264. Rates of the \
     host are measured times on one core of this machine.",
];

const SHARES_CHART: &str = "Immediate mode, client and library together. Both paths are ours: the ratio depends on how good the generic one is.";

const PICTURES: &str = "Five tests of a viewer, drawn by the library on Alpha; the model, a turned part with flutes, and the panel are our own. \
     Their work and frame rates are below.";

const VERTICES: &str = "A torus of 1,280 triangles, all culled, so that client, library and the assembly of triangles are counted, and \
     nothing is drawn. Each call of glNormal and glVertex of immediate mode is in it. Rates of the machines are their clock divided by cycles.";

const SHARES: &str = "The paper: under certain conditions the generic path is incapable of driving the hardware at more than 33 % of its rate. \
     In immediate mode a part of the time is the client's calls, which are the same for both paths.";

const TRAPS: &str = "Debian's compiler for Alpha makes code for exact floating-point traps (`-mieee`): a barrier, `trapb`, follows most \
     operations. The library does without (`-mfp-trap-mode=n -mtrap-precision=p`), since vertices are clipped before they are divided by w.";

const CLOCKS: &str = "The cache on the board and memory do not become faster with the processor; what is left of a straight line is their part.";

const VALIDATION: &str = "A change of the material makes the library derive its products with the lights anew and choose the path, when the next \
     primitive begins. It costs the same with generic paths, since both read what is derived, but for the choice itself: a variant that \
     is compiled already pays from the first vertices on. *Vertices that cost as much* is the cost of a change in vertices.";

const VARIANTS: &str = "After 12 or 96 vertices the conditions change to those of the next variant, in turn. Each special path is two to three \
     KB of text, the 21164's first cache for instructions has 8 KB, and its second one 96 KB for instructions and data. The generic path is the \
     same code for all.";

const SIZES_CHART: &str = "Nominal variants double with each condition. Distinct ones are fewer, since validation ignores conditions without \
     meaning, such as a second light without lighting.";

const SIZES: &str = "Special paths compiled for the first conditions alone. *Covered* are the vertices of the viewer's tests whose conditions \
     are among them; all others take the generic path.";

const COMPOSITE: &str = "Frames a second of the five tests, as a geometric mean with weights: in the manner of the benchmark CDRS, on a viewer, \
     models and weights of our own. With a device, a frame takes as long as the slowest of three stages; drawn in software, the processor \
     does all.";

const STAGES: &str = "The processor executes client and library, the bus carries vertices by DMA, and the device draws; each works at another \
     frame meanwhile. The processor's time is that of the machine's model, with all but the drawing of pixels; the client's alone is that of \
     the same program with a library that does nothing. The devices' rates are those that the paper gives.";
