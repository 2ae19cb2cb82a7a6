//! The results of a study.

use report::Page;
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
