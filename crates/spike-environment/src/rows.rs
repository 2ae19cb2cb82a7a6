//! Rows of the database.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::Serialize;

use crate::identity::FileFingerprint;

/// Which version of its images an application executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApplicationPhase {
    /// The images themselves.
    Original,
    /// Those that count.
    Instrumented,
    /// Those that were optimized.
    Optimized,
}

impl ApplicationPhase {
    /// All of them.
    pub const ALL: [ApplicationPhase; 3] =
        [ApplicationPhase::Original, ApplicationPhase::Instrumented, ApplicationPhase::Optimized];

    /// Its name, also that of the folder with such versions.
    pub fn name(self) -> &'static str {
        match self {
            ApplicationPhase::Original => "original",
            ApplicationPhase::Instrumented => "instrumented",
            ApplicationPhase::Optimized => "optimized",
        }
    }
}

impl fmt::Display for ApplicationPhase {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl ToSql for ApplicationPhase {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.name().into())
    }
}

impl FromSql for ApplicationPhase {
    fn column_result(value: ValueRef) -> FromSqlResult<ApplicationPhase> {
        let name = value.as_str()?;
        ApplicationPhase::ALL.into_iter().find(|phase| phase.name() == name).ok_or(FromSqlError::InvalidType)
    }
}

/// An application: a program with its libraries.
#[derive(Clone, Debug)]
pub struct Application {
    pub(crate) id: i64,
    /// Its name.
    pub name: String,
    /// The version that is executed when the program is started.
    pub phase: ApplicationPhase,
}

impl Application {
    pub(crate) const COLUMNS: &str = "application.id, application.name, application.phase";

    pub(crate) fn read(row: &Row) -> rusqlite::Result<Application> {
        Ok(Application { id: row.get(0)?, name: row.get(1)?, phase: row.get(2)? })
    }
}

/// An image.
#[derive(Clone, Debug)]
pub struct ImageRow {
    pub id: i64,
    pub path: PathBuf,
    pub identity: FileFingerprint,
    /// Why it cannot be instrumented or optimized.
    pub problem: Option<String>,
}

impl ImageRow {
    pub const COLUMNS: &str = "image.id, image.path, image.size, image.modified, image.hash, image.problem";

    pub fn read(row: &Row) -> rusqlite::Result<ImageRow> {
        let path: Vec<u8> = row.get(1)?;
        let identity = FileFingerprint { size: row.get(2)?, modified: row.get(3)?, hash: row.get(4)? };
        Ok(ImageRow {
            id: row.get(0)?,
            path: PathBuf::from(OsStr::from_bytes(&path)),
            identity,
            problem: row.get(5)?,
        })
    }
}

/// How an image belongs to an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageRole {
    /// It is the program.
    Program,
    /// A library that the program's loader finds at the start.
    Linked,
    /// A library that was loaded later.
    Loaded,
}

impl ImageRole {
    pub fn name(self) -> &'static str {
        match self {
            ImageRole::Program => "program",
            ImageRole::Linked => "linked",
            ImageRole::Loaded => "loaded",
        }
    }
}
