//! A report as one file of HTML that needs nothing else: style, scripts and data are inside, and
//! its content security policy forbids the browser to fetch anything.

use std::io::{self, Write};

use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
use serde_json::{Map, json};
use table::{Column, Kind, Table, Value};

use crate::names::{slug, unused};
use crate::{Chart, Error, Picture, cells, comma};

/// The contents of a page, in order.
///
/// Wherever prose stands, `` `code` ``, `*emphasis*` and `**strong emphasis**` are understood;
/// all else is shown as it is.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The name of the report, small above the headline and in the browser's tab.
    pub title: String,
    /// The answer, in one sentence.
    pub headline: String,
    /// An introduction for readers, in a few sentences.
    pub lead: Vec<String>,
    /// The three or four numbers that matter.
    pub figures: Vec<PageFigure>,
    /// The one chart that shows the answer.
    pub chart: Option<Chart>,
    /// Everything else.
    pub sections: Vec<PageSection>,
    /// How the report was made: what, and its value (commands, versions); printed at the end.
    pub provenance: Vec<(String, String)>,
}

/// A number that matters.
#[derive(Clone, Debug, Default)]
pub struct PageFigure {
    /// The number, formatted.
    pub value: String,
    /// The quantity that it shows (prose).
    pub label: String,
}

impl PageFigure {
    /// A number without its decimals.
    pub fn rounded(number: f64, label: impl Into<String>) -> PageFigure {
        PageFigure { value: table::rounded(number), label: label.into() }
    }
}

/// A part of the page with its own heading.
#[derive(Clone, Debug, Default)]
pub struct PageSection {
    /// The heading (prose).
    pub heading: String,
    /// The elements below it, in order.
    pub blocks: Vec<PageBlock>,
}

impl PageSection {
    /// A text and tables.
    pub fn of_tables(heading: &str, text: &str, tables: impl IntoIterator<Item = Table>) -> PageSection {
        let blocks = std::iter::once(PageBlock::Paragraph(text.into()));
        let blocks = blocks.chain(tables.into_iter().map(PageBlock::Table)).collect();
        PageSection { heading: heading.into(), blocks }
    }
}

/// A part of a section.
#[derive(Clone, Debug)]
pub enum PageBlock {
    /// Prose.
    Paragraph(String),
    /// A table that can be sorted, filtered and saved as CSV.
    Table(Table),
    /// A chart.
    Chart(Chart),
    /// Text in a fixed-width face, line by line: commands, listings.
    Code(String),
    /// Pictures side by side.
    Pictures(Vec<Picture>),
}

/// The libraries that draw the charts; see assets/README.md.
const LIBRARIES: [&str; 3] = [
    include_str!("../assets/vega.min.js"),
    include_str!("../assets/vega-lite.min.js"),
    include_str!("../assets/vega-embed.min.js"),
];
const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:";

/// Longer tables show their first rows only until they are expanded.
const ROWS_SHOWN: usize = 25;

impl Page {
    /// A page that shows tables as they are, a section each.
    pub fn of_tables(tables: &[Table]) -> Page {
        let section = |table: &Table| PageSection {
            heading: table.title.clone(),
            blocks: vec![PageBlock::Table(table.clone())],
        };
        Page {
            title: "Pathlength".into(),
            headline: tables.first().map_or_else(String::new, |first| first.title.clone()),
            sections: tables.iter().map(section).collect(),
            ..Page::default()
        }
    }

    /// Writes the page.
    pub fn write(&self, out: &mut dyn Write) -> Result<(), Error> {
        let mut data = Data::default();
        let body = self.body(&mut data)?;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (head(&self.title, STYLE, Some(POLICY)))
                body {
                    (body)
                    script type="application/json" #page-data { (PreEscaped(data.in_script())) }
                    @if !data.charts.is_empty() {
                        @for library in LIBRARIES { script { (PreEscaped(in_script(library))) } }
                    }
                    script { (PreEscaped(in_script(SCRIPT))) }
                }
            }
        };
        Ok(out.write_all(page.into_string().as_bytes())?)
    }

    fn body(&self, data: &mut Data) -> io::Result<Markup> {
        let chart = self.chart.as_ref().map(|chart| data.chart(chart));
        let sections =
            self.sections.iter().map(|section| section.markup(data)).collect::<Result<Vec<_>, _>>()?;
        Ok(html! {
            header {
                p.title { (text::printable(&self.title)) }
                h1 { (Prose(&self.headline)) }
                @for paragraph in &self.lead { p.lead { (Prose(paragraph)) } }
                @if !self.figures.is_empty() {
                    ul.figures {
                        @for figure in &self.figures {
                            li { strong { (text::printable(&figure.value)) } span { (Prose(&figure.label)) } }
                        }
                    }
                }
                @if let Some(chart) = chart { (chart) }
            }
            @if self.sections.len() > 1 {
                nav aria-label="Contents" {
                    ol {
                        @for section in &self.sections {
                            li { a href={ "#" (section.anchor()) } { (Prose(&section.heading)) } }
                        }
                    }
                }
            }
            main { @for section in sections { (section) } }
            @if !self.provenance.is_empty() {
                footer {
                    h2 { "How this report was made" }
                    dl {
                        @for (what, value) in &self.provenance { dt { (text::printable(what)) } dd { code { (text::printable_lines(value)) } } }
                    }
                }
            }
        })
    }
}

/// The head of a page of HTML, with its title, its styles, and the policy by which a browser restricts it.
pub(crate) fn head(title: &str, style: &str, policy: Option<&str>) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            @if let Some(policy) = policy {
                meta http-equiv="Content-Security-Policy" content=(policy);
            }
            title { (text::printable(title)) }
            style { (PreEscaped(style)) }
        }
    }
}

impl PageSection {
    fn anchor(&self) -> String {
        format!("section-{}", slug(&self.heading.to_lowercase()))
    }

    fn markup(&self, data: &mut Data) -> io::Result<Markup> {
        let block = |block: &PageBlock| {
            Ok(match block {
                PageBlock::Paragraph(text) => html! { p { (Prose(text)) } },
                PageBlock::Code(text) => {
                    html! { pre tabindex="0" { code { (text::printable_lines(text)) } } }
                }
                PageBlock::Pictures(pictures) => gallery(pictures)?,
                PageBlock::Chart(chart) => data.chart(chart),
                PageBlock::Table(table) => data.table(table)?,
            })
        };
        let blocks = self.blocks.iter().map(block).collect::<io::Result<Vec<_>>>()?;
        Ok(html! {
            section id=(self.anchor()) {
                h2 { (Prose(&self.heading)) }
                @for block in blocks { (block) }
            }
        })
    }
}

/// Pictures side by side, each with its title.
fn gallery(pictures: &[Picture]) -> io::Result<Markup> {
    let urls = pictures.iter().map(Picture::data_url).collect::<io::Result<Vec<_>>>()?;
    Ok(html! {
        div.pictures {
            @for (picture, url) in pictures.iter().zip(urls) {
                figure {
                    img src=(url) width=(picture.width) height=(picture.height()) alt=(text::printable(&picture.title));
                    figcaption { (Prose(&picture.title)) }
                }
            }
        }
    })
}

/// The data of the page's script: specifications of charts, and CSV files to save, by the
/// id of their element.
#[derive(Default)]
struct Data {
    charts: Map<String, serde_json::Value>,
    files: Map<String, serde_json::Value>,
}

impl Data {
    fn chart(&mut self, chart: &Chart) -> Markup {
        let id = unused(format!("chart-{}", slug(&chart.name)), '-', |id| self.charts.contains_key(id));
        self.charts.insert(id.clone(), chart.spec.clone());
        html! {
            figure.chart {
                figcaption {
                    strong { (Prose(&chart.title)) }
                    @if !chart.caption.is_empty() { " " (Prose(&chart.caption)) }
                }
                div.drawing id=(id) role="img" aria-label=(text::printable(&chart.title)) {}
                noscript { p { "This chart is drawn with JavaScript; the tables hold its numbers." } }
            }
        }
    }

    fn table(&mut self, table: &Table) -> io::Result<Markup> {
        let mut csv = Vec::new();
        comma::render(table, &mut csv)?;
        let csv = String::from_utf8(csv).map_err(io::Error::other)?;
        let id = unused(slug(&table.name), '-', |id| self.files.contains_key(id));
        self.files.insert(id.clone(), csv.into());
        let (body, total) = table.rows.split_at(table.rows.len().saturating_sub(table.total.into()));
        let long = body.len() > ROWS_SHOWN;
        let order = in_page_order(&table.columns);
        Ok(html! {
            figure.table id=(id) data-rows=[long.then_some(ROWS_SHOWN)] {
                figcaption { strong { (Prose(&table.title)) } }
                div.tools hidden {
                    @if long {
                        input type="search" placeholder="Filter rows" aria-label={ "Filter the rows of " (text::printable(&table.title)) };
                    }
                    button.save type="button" { "Save as CSV" }
                }
                div.scroll tabindex="0" role="region" aria-label=(text::printable(&table.title)) {
                    table {
                        thead { tr { @for &column in &order {
                            @let column = &table.columns[column];
                            th scope="col" class=[class(column.kind)] {
                                button type="button" { (cells::heading(column)) }
                            }
                        } } }
                        tbody { @for row in body { (cells_of(table, &order, row)) } }
                        @if table.total { tfoot { @for row in total { (cells_of(table, &order, row)) } } }
                    }
                }
                @if long { button.more type="button" hidden {} }
                @for note in &table.notes { p.note { (Prose(note)) } }
            }
        })
    }

    fn in_script(&self) -> String {
        // JSON is also JavaScript's if no tag can begin in it; \u003c is the same character.
        json!({"charts": self.charts, "files": self.files}).to_string().replace('<', "\\u003c")
    }
}

/// A row, with its columns in an order.
fn cells_of(table: &Table, order: &[usize], row: &[Value]) -> Markup {
    html! {
        tr { @for &column in order {
            @let (column, value) = (&table.columns[column], &row[column]);
            td class=[class(column.kind)] data-value=[sort_key(value)] {
                // The typographic minus is as wide as the plus.
                @let text = cells::text(value, column.kind);
                @if cells::is_number(column.kind) { (text.replace('-', "−")) } @else { (text) }
            }
        } }
    }
}

/// Indexes of columns from left to right: code at the end moves behind the first share, so that narrow screens show both.
fn in_page_order(columns: &[Column]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..columns.len()).collect();
    let share = columns.iter().position(|column| matches!(column.kind, Kind::Percent(_)));
    if let (Some(share), Some(Column { kind: Kind::Code, .. })) = (share, columns.last()) {
        order[share + 1..].rotate_right(1);
    }
    order
}

/// The class of a column's cells.
fn class(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Code => Some("code"),
        _ => cells::is_number(kind).then_some("number"),
    }
}

/// The sort key of a cell: the number, or the text; empty if the value is missing.
fn sort_key(value: &Value) -> Option<String> {
    match value {
        Value::Text(_) => None,
        Value::Integer(number) => Some(number.to_string()),
        Value::Real(number) => Some(number.to_string()),
        Value::Missing => Some(String::new()),
    }
}

/// A script that can stand in a page, without the pointer to its source that a browser's tools
/// would follow.
fn in_script(script: &str) -> String {
    let script = script.rsplit_once("//# sourceMappingURL=").map_or(script, |(script, _)| script);
    script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
}

/// Text with inline emphasis.
struct Prose<'t>(&'t str);

impl Render for Prose<'_> {
    fn render(&self) -> Markup {
        let Some((before, mark, inside, after)) = first_mark(self.0) else {
            return html! { (text::printable(self.0)) };
        };
        html! {
            (text::printable(before))
            @match mark {
                "`" => { code { (text::printable(inside)) } },
                "**" => { strong { (Prose(inside)) } },
                _ => { em { (Prose(inside)) } },
            }
            (Prose(after))
        }
    }
}

/// The first marked passage: the text before it, the mark, the marked text, the text after it. A
/// mark opens before a letter and closes after one, so that `2 * 3 * 4` has none.
fn first_mark(text: &str) -> Option<(&str, &str, &str, &str)> {
    text.match_indices(['`', '*']).find_map(|(start, found)| {
        let mark = if text[start..].starts_with("**") { "**" } else { found };
        let inside = &text[start + mark.len()..];
        let end = inside.match_indices(mark).map(|(end, _)| end).find(|&end| end > 0)?;
        let (inside, after) = (&inside[..end], &inside[end + mark.len()..]);
        (inside.trim() == inside).then_some((&text[..start], mark, inside, after))
    })
}
