//! Folders of tables, which appear complete.

use std::io::Write;
use std::path::Path;

use output_files::OutputFolder;
use table::Table;

use crate::destination::{extension, write_with};
use crate::names::{slug, unused};
use crate::{Error, Format, render};

/// A folder to which tables are added, a file each.
#[derive(Debug)]
pub struct TableFolder(OutputFolder);

impl TableFolder {
    /// Begins a folder, or a change of one that is there.
    pub fn new(path: &Path) -> Result<TableFolder, Error> {
        Ok(TableFolder(OutputFolder::new(path)?))
    }

    /// Adds a table of this name, by a function that writes it.
    pub fn write_table(
        &mut self,
        name: &str,
        format: Format,
        write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let extension = extension(format);
        let file_name = |stem: &str| format!("{stem}.{extension}");
        let name = file_name(&unused(slug(name), '-', |stem| self.0.has(&file_name(stem))));
        let file = self.0.create(&name)?;
        write_with(&self.0.path().join(name), &file, write)
    }

    /// Adds a file for each table.
    pub fn write_tables(&mut self, tables: &[Table], format: Format) -> Result<(), Error> {
        tables
            .iter()
            .try_for_each(|table| self.write_table(&table.name, format, |out| render(table, format, out)))
    }

    /// Gives the folder and its files their names.
    pub fn commit(self) -> Result<(), Error> {
        Ok(self.0.commit()?)
    }
}
