//! The data of TPC-H, by the crate `tpchgen`: a file for each table, kept for later studies.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSupp,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use workloads::build::{Error, io_error};
use workloads::build_options::{publish, unfinished};

const SCHEMA: &str = include_str!("../../../../workloads/tpch/schema.sql");
const INDEXES: &str = include_str!("../../../../workloads/tpch/indexes.sql");

/// The tables, in the order in which they are loaded.
pub(super) const TABLES: [&str; 8] =
    ["region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem"];

/// A folder with the rows of each table (`TABLE.tbl`), the statements that make the tables (`schema.sql`, and `schema-sqlite.sql` with
/// SQLite's types), and those that follow (`indexes.sql`).
pub(super) struct TableFiles {
    /// Where they are.
    pub(super) folder: PathBuf,
}

impl TableFiles {
    /// Those of a scale factor in this folder of builds: made, or made earlier.
    pub(super) fn of(scale: f64, builds: &Path) -> Result<TableFiles, Error> {
        let hash: String = Sha256::new()
            .chain_update(SCHEMA)
            .chain_update(sqlite_schema())
            .chain_update(INDEXES)
            .finalize()
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let folder = builds.join(format!("data-{scale}-{hash}"));
        if !folder.is_dir() {
            std::fs::create_dir_all(builds).map_err(io_error("creating", builds))?;
            let unfinished = unfinished(builds)?;
            generate(scale, unfinished.path()).map_err(io_error("writing tables to", unfinished.path()))?;
            publish(unfinished, &folder)?;
        }
        Ok(TableFiles { folder })
    }

    /// The name of its folder, which tells it from others.
    pub(super) fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Dates are texts in SQLite, which has no type for them: a column of the type `date` would have numeric affinity, and each
/// comparison would try to read its date as a number.
fn sqlite_schema() -> String {
    SCHEMA.replace("date date not null", "date text not null")
}

fn generate(scale: f64, folder: &Path) -> io::Result<()> {
    std::fs::write(folder.join("schema.sql"), SCHEMA)?;
    std::fs::write(folder.join("schema-sqlite.sql"), sqlite_schema())?;
    std::fs::write(folder.join("indexes.sql"), INDEXES)?;
    for table in TABLES {
        let path = folder.join(format!("{table}.tbl"));
        match table {
            "region" => rows(&path, RegionGenerator::new(scale, 1, 1).iter()),
            "nation" => rows(&path, NationGenerator::new(scale, 1, 1).iter()),
            "part" => rows(&path, PartGenerator::new(scale, 1, 1).iter()),
            "supplier" => rows(&path, SupplierGenerator::new(scale, 1, 1).iter()),
            "partsupp" => rows(&path, part_suppliers(scale)),
            "customer" => rows(&path, CustomerGenerator::new(scale, 1, 1).iter()),
            "orders" => rows(&path, OrderGenerator::new(scale, 1, 1).iter()),
            _ => rows(&path, LineItemGenerator::new(scale, 1, 1).iter()),
        }?;
    }
    Ok(())
}

/// The suppliers of each part. Where there are fewer than 100 suppliers, which the specification does not foresee, its formula gives
/// some parts the same supplier twice: the second time is left out, as the key forbids it.
fn part_suppliers(scale: f64) -> impl Iterator<Item = PartSupp<'static>> {
    let (mut part, mut suppliers) = (0, Vec::new());
    PartSuppGenerator::new(scale, 1, 1).iter().filter(move |row| {
        if row.ps_partkey != part {
            (part, suppliers) = (row.ps_partkey, Vec::new());
        }
        let is_new = !suppliers.contains(&row.ps_suppkey);
        suppliers.push(row.ps_suppkey);
        is_new
    })
}

/// A line for each row. Columns are separated by '|'; the generator also ends the last one so, which PostgreSQL would take for
/// a column more.
fn rows(path: &Path, rows: impl Iterator<Item = impl Display>) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for row in rows {
        let row = row.to_string();
        writeln!(out, "{}", row.strip_suffix('|').unwrap_or(&row))?;
    }
    out.flush()
}
