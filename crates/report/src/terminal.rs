//! Tables as aligned text, fitted to a terminal when there is one.

use std::io::{self, Write};

use anstyle::Style as Ansi;
use table::{Kind, Table};
use unicode_width::UnicodeWidthChar;

use crate::cells;
use crate::stream::StandardStream;

/// The room between columns.
const GAP: usize = 2;
/// A text column is not cut shorter than this.
const SHORTEST: usize = 12;
/// Where prose is wrapped when no terminal says otherwise.
const PROSE: usize = 100;

/// The capabilities of the output. The default, for files and pipes, truncates nothing and has no colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Columns of characters available, if limited.
    pub width: Option<usize>,
    /// Whether emphasis may be used.
    pub color: bool,
}

impl Style {
    /// What a stream can show. Colour respects NO_COLOR (no-color.org) and a dumb terminal.
    pub fn of(stream: StandardStream) -> Style {
        if !stream.is_terminal() {
            return Style::default();
        }
        let set = |name, plain: fn(&str) -> bool| std::env::var(name).is_ok_and(|value| plain(&value));
        let size = match stream {
            StandardStream::Output => terminal_size::terminal_size_of(io::stdout()),
            StandardStream::Error => terminal_size::terminal_size_of(io::stderr()),
        };
        let width = size.map(|(width, _)| width.0.into());
        let color = !set("NO_COLOR", |value| !value.is_empty()) && !set("TERM", |value| value == "dumb");
        Style { width, color }
    }

    fn emphasis(self, ansi: Ansi) -> Ansi {
        if self.color { ansi } else { Ansi::new() }
    }
}

/// Writes the title, the table and its notes.
pub fn render(table: &Table, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let prose = style.width.unwrap_or(PROSE);
    let (bold, dim) = (style.emphasis(Ansi::new().bold()), style.emphasis(Ansi::new().dimmed()));
    for line in textwrap::wrap(&text::printable(&table.title), prose) {
        writeln!(out, "{bold}{line}{bold:#}")?;
    }
    for (index, grid) in Grid::fitted(table, style.width).iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        grid.render(table.total, bold, dim, out)?;
    }
    for note in &table.notes {
        let options = textwrap::Options::new(prose).subsequent_indent("  ");
        for line in textwrap::wrap(&text::printable(note), options) {
            writeln!(out, "{dim}{line}{dim:#}")?;
        }
    }
    Ok(())
}

/// The cells as text, and the width of each column.
struct Grid {
    kinds: Vec<Kind>,
    widths: Vec<usize>,
    headings: Vec<Vec<String>>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    fn new(table: &Table, limit: Option<usize>) -> Grid {
        let headings: Vec<String> = table.columns.iter().map(cells::heading).collect();
        let kinds: Vec<Kind> = table.columns.iter().map(|column| column.kind).collect();
        let row =
            |row: &Vec<_>| row.iter().zip(&kinds).map(|(value, &kind)| cells::text(value, kind)).collect();
        let rows: Vec<Vec<String>> = table.rows.iter().map(row).collect();
        let body: Vec<usize> = (0..kinds.len())
            .map(|column| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0))
            .collect();
        let widths = body.iter().zip(&headings).map(|(&body, heading)| body.max(width(heading))).collect();
        let mut grid = Grid { kinds, widths, headings: vec![headings], rows };
        if let Some(limit) = limit
            && grid.width() > limit
        {
            grid.wrap_headings(&body);
            grid.cut_text(limit);
        }
        grid
    }

    /// The table, or if it has more numbers than fit side by side, its parts, one below the other, each
    /// with the first column.
    fn fitted(table: &Table, limit: Option<usize>) -> Vec<Grid> {
        let grid = Grid::new(table, limit);
        let Some(limit) = limit.filter(|&limit| grid.width() > limit) else { return vec![grid] };
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let mut room = 0;
        for column in 1..grid.widths.len() {
            let needed = grid.widths[column] + GAP;
            match parts.last_mut() {
                Some(part) if needed <= room => part.push(column),
                _ => {
                    parts.push(vec![0, column]);
                    room = limit.saturating_sub(grid.widths[0]);
                }
            }
            room = room.saturating_sub(needed);
        }
        parts.iter().map(|part| Grid::new(&select(table, part), Some(limit))).collect()
    }

    /// Writes headings and rows between rules; the last row may be a total.
    fn render(&self, total: bool, bold: Ansi, dim: Ansi, out: &mut dyn Write) -> io::Result<()> {
        let rule = "─".repeat(self.width());
        writeln!(out, "{dim}{rule}{dim:#}")?;
        for line in &self.headings {
            self.line(line, bold, out)?;
        }
        writeln!(out, "{dim}{rule}{dim:#}")?;
        for (index, row) in self.rows.iter().enumerate() {
            let total = total && index + 1 == self.rows.len();
            if total {
                writeln!(out, "{dim}{rule}{dim:#}")?;
            }
            self.line(row, if total { bold } else { Ansi::new() }, out)?;
        }
        Ok(())
    }

    fn width(&self) -> usize {
        self.widths.iter().sum::<usize>() + GAP * self.widths.len().saturating_sub(1)
    }

    /// Breaks headings between words, so that a column is no wider than its cells need.
    fn wrap_headings(&mut self, body: &[usize]) {
        let mut columns: Vec<Vec<String>> = Vec::new();
        for (column, heading) in self.headings.concat().iter().enumerate() {
            let longest = heading.split(' ').map(width).max().unwrap_or(0);
            self.widths[column] = longest.max(body[column]);
            let lines =
                textwrap::wrap(heading, textwrap::Options::new(self.widths[column]).break_words(false));
            columns.push(lines.into_iter().map(String::from).collect());
        }
        let height = columns.iter().map(Vec::len).max().unwrap_or(0);
        let line = |from_top: usize| {
            let cell = |lines: &Vec<String>| match (from_top + lines.len()).checked_sub(height) {
                Some(line) => lines[line].clone(),
                None => String::new(),
            };
            columns.iter().map(cell).collect()
        };
        self.headings = (0..height).map(line).collect();
    }

    /// Cuts the widest columns of text until the table fits. Numbers are never cut.
    fn cut_text(&mut self, limit: usize) {
        while let Some(excess) = self.width().checked_sub(limit).filter(|&excess| excess > 0) {
            let texts = (0..self.kinds.len()).filter(|&column| !cells::is_number(self.kinds[column]));
            let Some(widest) = texts.max_by_key(|&column| self.widths[column]) else { return };
            let spare = self.widths[widest].saturating_sub(SHORTEST);
            if spare == 0 {
                return;
            }
            let others = (0..self.kinds.len())
                .filter(|&column| column != widest && !cells::is_number(self.kinds[column]))
                .map(|column| self.widths[column]);
            let ahead = self.widths[widest] - others.max().unwrap_or(0);
            self.widths[widest] -= excess.min(spare).min(ahead.max(1));
        }
    }

    fn line(&self, cells: &[String], style: Ansi, out: &mut dyn Write) -> io::Result<()> {
        let mut line = String::new();
        for ((cell, &column), &kind) in cells.iter().zip(&self.widths).zip(&self.kinds) {
            let cell = cut(cell, kind, column);
            let pad = " ".repeat(column - width(&cell));
            let (left, right) =
                if cells::is_number(kind) { (pad, String::new()) } else { (String::new(), pad) };
            line += &(left + &cell + &right + &" ".repeat(GAP));
        }
        writeln!(out, "{style}{}{style:#}", line.trim_end())
    }
}

/// The widths of a table's columns where nothing limits them.
pub(crate) fn widths(table: &Table) -> Vec<usize> {
    Grid::new(table, None).widths
}

/// Columns of a terminal that the text takes.
fn width(text: &str) -> usize {
    text.chars().filter_map(char::width).sum()
}

/// A table of these columns only.
fn select(table: &Table, columns: &[usize]) -> Table {
    Table {
        columns: columns.iter().map(|&column| table.columns[column].clone()).collect(),
        rows: table
            .rows
            .iter()
            .map(|row| columns.iter().map(|&column| row[column].clone()).collect())
            .collect(),
        ..table.clone()
    }
}

/// The text, a part replaced by an ellipsis if it is too wide: the end of code, and the middle of names, which differ at
/// their beginnings and ends.
fn cut(text: &str, kind: Kind, limit: usize) -> String {
    if width(text) <= limit {
        return text.into();
    }
    let room = limit.saturating_sub(1);
    let end = if kind == Kind::Code { 0 } else { room / 2 };
    let beginning = fitting(text.chars(), room - end);
    let end: Vec<char> = fitting(text.chars().rev(), end).collect();
    beginning.chain(['…']).chain(end.into_iter().rev()).collect()
}

/// The first characters, as many as fit.
fn fitting(text: impl Iterator<Item = char>, room: usize) -> impl Iterator<Item = char> {
    let mut used = 0;
    text.take_while(move |c| {
        used += c.width().unwrap_or(0);
        used <= room
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use table::Value;

    #[test]
    fn long_names_lose_their_middle_and_code_its_end() {
        for (kind, limit, expected) in [
            (Kind::Text, 16, "std::vec…reserve"),
            (Kind::Text, 17, "std::vec…:reserve"),
            (Kind::Code, 16, "std::vector<int…"),
            (Kind::Text, 28, "std::vector<int>::v::reserve"),
        ] {
            assert_eq!(cut("std::vector<int>::v::reserve", kind, limit), expected);
        }
        assert_eq!(cut("漢字漢字漢字", Kind::Text, 7), "漢…字", "characters of two columns");
    }

    proptest! {
        #[test]
        fn a_terminal_is_never_too_narrow_for_names(
            rows in proptest::collection::vec((".{0,60}", any::<i64>(), ".{0,60}"), 1..8), limit in 60..120_usize) {
            let mut table = Table::new("t", "A title of several words that may have to be wrapped to fit",
                &[("function", Kind::Text), ("instructions a unit", Kind::Delta), ("image", Kind::Text)]);
            rows.iter().for_each(|(a, n, b)| table.row(vec![a.as_str().into(), (*n).into(), b.as_str().into()]));
            let mut out = Vec::new();
            render(&table, Style { width: Some(limit), color: false }, &mut out).unwrap();
            let shown = String::from_utf8(out).unwrap();
            prop_assert!(shown.lines().all(|line| width(line) <= limit), "{shown}");
            let kind = Kind::Delta;
            prop_assert!(rows.iter().all(|&(_, n, _)| shown.contains(&cells::text(&n.into(), kind))), "{shown}");
        }

        #[test]
        fn a_terminal_is_never_too_narrow_for_numbers(numbers in proptest::collection::vec(any::<i64>(), 1..40),
            limit in 45..120_usize) {
            let names: Vec<String> = (0..numbers.len()).map(|n| format!("column {n}")).collect();
            let columns = names.iter().map(|name| (name.as_str(), Kind::Delta));
            let columns: Vec<_> = std::iter::once(("image", Kind::Text)).chain(columns).collect();
            let mut table = Table::new("t", "A title", &columns);
            let cells = numbers.iter().map(|&n| Value::from(n));
            table.row(std::iter::once("program".into()).chain(cells).collect());
            let mut out = Vec::new();
            render(&table, Style { width: Some(limit), color: false }, &mut out).unwrap();
            let shown = String::from_utf8(out).unwrap();
            prop_assert!(shown.lines().all(|line| width(line) <= limit), "{shown}");
            prop_assert!(numbers.iter().all(|&n| shown.contains(&cells::text(&n.into(), Kind::Delta))), "{shown}");
            let parts = shown.matches("image").count();
            prop_assert_eq!(shown.matches("program").count(), parts, "{}", shown);
        }
    }
}
