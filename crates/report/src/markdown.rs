//! Tables as Markdown, for comments on pull requests: GitHub's form of tables.

use std::io::{self, Write};

use table::Table;

use crate::cells;

/// Writes the title, the table and its notes.
pub(crate) fn render(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "**{}**\n", escaped(&text::printable(&table.title)))?;
    writeln!(out, "{}", line(table.columns.iter().map(|column| escaped(&cells::heading(column))).collect()))?;
    let alignment = |numeric| if numeric { "---:" } else { "---" }.to_string();
    let alignments = table.columns.iter().map(|column| alignment(cells::is_number(column.kind)));
    writeln!(out, "{}", line(alignments.collect()))?;
    rows(table, out)?;
    for note in &table.notes {
        writeln!(out, "\n{}", escaped(&text::printable(note)))?;
    }
    Ok(())
}

/// Writes the rows only.
pub(crate) fn rows(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    for row in &table.rows {
        let texts = row.iter().zip(&table.columns);
        let texts = texts.map(|(value, column)| escaped(&cells::text(value, column.kind)));
        writeln!(out, "{}", line(texts.collect()))?;
    }
    Ok(())
}

fn line(cells: Vec<String>) -> String {
    format!("| {} |", cells.join(" | "))
}

/// Names, as of C++ templates, must be neither markup nor the end of a cell.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '~' => escaped.extend(['\\', c]),
            // Otherwise a name with it would notify a user.
            '@' => escaped.push_str("@<!-- -->"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use table::Kind;

    #[test]
    fn names_are_no_markup() {
        let mut table = Table::new("t", "Functions", &[("function", Kind::Text), ("count", Kind::Count)]);
        table.row(vec!["vector<int>::push_back|x@y".into(), 1_234_u64.into()]);
        let mut out = Vec::new();
        render(&table, &mut out).unwrap();
        let expected = "**Functions**\n\n| function | count |\n| --- | ---: |\n\
                        | vector&lt;int>::push\\_back\\|x@<!-- -->y | 1,234 |\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
