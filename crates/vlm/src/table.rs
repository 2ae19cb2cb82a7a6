//! Tables for people and, as CSV, for programs.

use std::io::Write;

use clap::ValueEnum;

/// How a table is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Aligned columns.
    #[default]
    Table,
    /// Comma-separated values.
    Csv,
}

/// Rows of text under column names; numbers are aligned to the right.
#[derive(Clone, Debug)]
pub struct TextTable {
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    pub fn new(columns: &[&'static str]) -> TextTable {
        TextTable { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push(cells);
    }

    pub fn write(&self, format: TableFormat, output: &mut dyn Write) -> anyhow::Result<()> {
        match format {
            TableFormat::Table => self.write_aligned(output)?,
            TableFormat::Csv => {
                let mut writer = csv::Writer::from_writer(output);
                writer.write_record(&self.columns)?;
                for row in &self.rows {
                    writer.write_record(
                        row.iter().map(
                            |cell| {
                                if is_number(cell) { cell.replace(',', "") } else { cell.clone() }
                            },
                        ),
                    )?;
                }
                writer.flush()?;
            }
        }
        Ok(())
    }

    fn write_aligned(&self, output: &mut dyn Write) -> std::io::Result<()> {
        let is_right: Vec<bool> = (0..self.columns.len())
            .map(|column| {
                !self.rows.is_empty()
                    && self
                        .rows
                        .iter()
                        .all(|row| row[column].starts_with(|c: char| c.is_ascii_digit() || c == '-'))
            })
            .collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                self.rows
                    .iter()
                    .map(|row| row[column].len())
                    .chain([self.columns[column].len()])
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let names: Vec<String> = self.columns.iter().map(|&name| name.to_owned()).collect();
        for row in std::iter::once(&names).chain(&self.rows) {
            let cells: Vec<String> = row
                .iter()
                .enumerate()
                .map(|(column, cell)| {
                    let width = widths[column];
                    if is_right[column] { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
                })
                .collect();
            writeln!(output, "{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// Whether a cell is digits with thousands separators.
fn is_number(cell: &str) -> bool {
    !cell.is_empty() && cell.chars().all(|c| c.is_ascii_digit() || ",.-".contains(c))
}

/// A whole number with thousands separators.
pub fn separated(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_align_and_csv_has_plain_numbers() {
        let mut table = TextTable::new(&["name", "faults"]);
        table.row(vec!["a".into(), separated(1_234_567)]);
        table.row(vec!["bcdef".into(), separated(999)]);
        let text = |format| {
            let mut output = Vec::new();
            table.write(format, &mut output).unwrap();
            String::from_utf8(output).unwrap()
        };
        assert_eq!(text(TableFormat::Table), "name      faults\na      1,234,567\nbcdef        999\n");
        assert_eq!(text(TableFormat::Csv), "name,faults\na,1234567\nbcdef,999\n");
    }
}
