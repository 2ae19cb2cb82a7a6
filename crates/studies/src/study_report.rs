//! The results of a study.

use report::{Page, PageBlock, PageSection};
use table::Table;

/// The results of a study.
pub struct StudyReport {
    /// The tables for the terminal: the answer and little more.
    pub summary: Vec<Table>,
    /// Every table.
    pub tables: Vec<Table>,
    /// The page.
    pub page: Page,
}

/// A section of a text and tables.
pub(crate) fn section(heading: &str, text: &str, tables: impl IntoIterator<Item = Table>) -> PageSection {
    let blocks = std::iter::once(PageBlock::Paragraph(text.into()));
    PageSection {
        heading: heading.into(),
        blocks: blocks.chain(tables.into_iter().map(PageBlock::Table)).collect(),
    }
}
