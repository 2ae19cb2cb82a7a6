//! Errors of the print, as far as its own figures show them.

use table::{Kind, Table};

/// Errors of the print: the printed figure, and the right one.
const ERRORS: [(&str, &str, &str); 5] = [
    (
        "the formula 540*(1+15+L) = L <= 1437",
        "540 (16 + L) / L <= 1437",
        "the division is lost; 675 and 1,437 are right",
    ),
    ("at least 9 cycles, 72 bytes", "10 cycles, 80 bytes", "L >= 9.63; 9 cycles need 1,500 Mb/s"),
    (
        "540 Mb/s",
        "542.5 Mb/s",
        "622.08 * 260 / 270 * 48 / 53, rounded; the 400 Mb/s of footnote b assume a line of 1,000 Mb/s, with 542.5 they are 1,315",
    ),
    (
        "32-cell packets (1536 bytes)",
        "at most 1,528 bytes of data",
        "the last cell ends with AAL5's trailer of 8 bytes",
    ),
    (
        "if_xmbufalloc and if_xmtbufalloc; WITLES; reference 8 of 1983",
        "one function; WITLESS; 1993",
        "names and a year",
    ),
];

/// The errors, as a table.
pub fn errors() -> Table {
    let columns = [("printed", Kind::Text), ("right", Kind::Text), ("reason", Kind::Text)];
    let mut table = Table::new("errors", "Errors of the print.", &columns);
    ERRORS.iter().for_each(|(printed, right, reason)| {
        table.row(vec![(*printed).into(), (*right).into(), (*reason).into()]);
    });
    table
}
