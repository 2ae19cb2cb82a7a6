//! The tables of the 1998 study as data: K. Keeton, D. A. Patterson, Y. Q. He, R. C. Raphael and W. E. Baker, "Performance
//! characterization of a quad Pentium Pro SMP using OLTP workloads", ISCA 1998. What is wrong in the print stays; notes of the
//! tables say so.

/// A table of the study: its rows by their first cells.
pub(super) struct PrintedTable(&'static str);

/// Table 3: components of cycles per instruction.
pub(super) const CPI: PrintedTable = PrintedTable(include_str!("printed/table03.csv"));
/// Table 4: caches.
pub(super) const CACHES: PrintedTable = PrintedTable(include_str!("printed/table04.csv"));
/// Table 5: the size of the second-level cache.
pub(super) const SIZES: PrintedTable = PrintedTable(include_str!("printed/table05.csv"));
/// Table 6: outstanding requests.
pub(super) const OUTSTANDING: PrintedTable = PrintedTable(include_str!("printed/table06.csv"));
/// Tables 7 to 9: decoding and retirement.
pub(super) const PROFILES: PrintedTable = PrintedTable(include_str!("printed/tables07-09.csv"));
/// Table 10: branches.
pub(super) const BRANCHES: PrintedTable = PrintedTable(include_str!("printed/table10.csv"));
/// Tables 11 to 14: scaling.
pub(super) const SCALING: PrintedTable = PrintedTable(include_str!("printed/tables11-14.csv"));
/// Table 15: states of lines.
pub(super) const STATES: PrintedTable = PrintedTable(include_str!("printed/table15.csv"));

impl PrintedTable {
    /// The numbers of the row that begins with these cells; an empty cell is no number.
    pub(super) fn row(&self, names: &[&str]) -> Vec<Option<f64>> {
        let rows = self.0.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let mut found = rows.filter(|row| row.starts_with(names));
        let row = found.next().unwrap_or_else(|| panic!("no row {names:?} was printed"));
        row[names.len()..].iter().map(|cell| cell.parse().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_rows_are_found() {
        assert_eq!(CPI.row(&["measured"])[3], Some(2.52));
        assert_eq!(
            CACHES.row(&["ITLB misses"]),
            [3.0, 4.0, 4.0].map(Some).into_iter().flat_map(|n| [n, None]).collect::<Vec<_>>()
        );
        assert_eq!(SIZES.row(&["measured CPI"])[0], Some(3.41));
        assert_eq!(OUTSTANDING.row(&["computed total"]), [Some(2.81), Some(2.77)]);
        assert_eq!(PROFILES.row(&["µop retire", "3"]), [Some(12.6), Some(53.7)]);
        assert_eq!(BRANCHES.row(&["BTB miss ratio (%)"])[0], Some(55.6));
        assert_eq!(SCALING.row(&["12", "bus utilization (%)", "1M"]), [15.3, 24.6, 38.7].map(Some));
        assert_eq!(STATES.row(&["load", "4"]), [25.7, 15.6, 46.4, 12.2].map(Some));
    }

    /// Table 3's own components: computation, resources and instructions.
    #[test]
    fn printed_components_add_up() {
        let column = |name: &str| CPI.row(&[name])[3].unwrap();
        let parts = ["computation: µops", "resource stalls", "instruction-related stalls"].map(column);
        assert!((parts.iter().sum::<f64>() - column("computed")).abs() < 0.011);
    }
}
