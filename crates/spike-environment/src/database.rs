//! The database's file and its tables.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::environment::Environment;
use crate::error::Error;
use crate::files;
use crate::identity::FileFingerprint;
use crate::rows::{Application, ImageRole, ImageRow};

/// The version of the tables.
const VERSION: i64 = 1;

/// How long a command waits for another one that writes.
const PATIENCE: Duration = Duration::from_secs(30);

const TABLES: &str = "
CREATE TABLE application (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    phase TEXT NOT NULL DEFAULT 'original'
) STRICT;
-- Files, with what they were when they were last read.
CREATE TABLE image (
    id INTEGER PRIMARY KEY,
    path BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    hash TEXT NOT NULL,
    problem TEXT
) STRICT;
CREATE TABLE part (
    application INTEGER NOT NULL REFERENCES application ON DELETE CASCADE,
    image INTEGER NOT NULL REFERENCES image,
    role TEXT NOT NULL,
    PRIMARY KEY (application, image)
) STRICT;
CREATE INDEX part_image ON part (image);
-- Instrumented and optimized versions of an image that had the contents `original`.
CREATE TABLE version (
    image INTEGER NOT NULL REFERENCES image ON DELETE CASCADE,
    kind TEXT NOT NULL,
    original TEXT NOT NULL,
    -- How often it was loaded.
    loads INTEGER NOT NULL DEFAULT 0,
    -- Of an instrumented one: the number of its file of counts, since that may have been removed and made again, and a hash of the
    -- counts that the profile has.
    file INTEGER NOT NULL DEFAULT 0,
    counts TEXT,
    -- Instructions of the original code and of this one.
    code_before INTEGER NOT NULL,
    code_after INTEGER NOT NULL,
    -- Of an optimized one: instructions that the profiled run executed, and how many of them were removed.
    executed INTEGER NOT NULL DEFAULT 0,
    removed INTEGER NOT NULL DEFAULT 0,
    -- What its profile is of, if that is not the same contents: the share of the profile that was matched.
    matched REAL,
    PRIMARY KEY (image, kind, original)
) STRICT;
-- What a file of counts had when it was read last.
CREATE TABLE profile (
    id INTEGER PRIMARY KEY,
    image INTEGER NOT NULL REFERENCES image ON DELETE CASCADE,
    original TEXT NOT NULL,
    file INTEGER NOT NULL,
    executed INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (image, original, file)
) STRICT;
";

/// Opens the database's file, and makes its tables if there are none.
pub fn open(path: &Path) -> Result<Connection, Error> {
    let failed = |error| Error::Database { path: path.into(), error };
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
    // Each program that is started opens and closes the database; it need not wait for the disk.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
    match version(&connection).map_err(failed)? {
        VERSION => return Ok(connection),
        0 => {}
        version => return Err(Error::Version { path: path.into(), version }),
    }
    // SQLite does not wait for others that change the journal.
    let _lock = files::lock(path.parent().unwrap_or(path))?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    // Another process may have been quicker.
    if version(&transaction).map_err(failed)? == 0 {
        transaction.execute_batch(TABLES).map_err(failed)?;
        transaction.pragma_update(None, "user_version", VERSION).map_err(failed)?;
    }
    transaction.commit().map_err(failed)?;
    Ok(connection)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

impl Environment {
    /// For `map_err`: a failure of the database.
    pub(crate) fn failed(&self) -> impl Fn(rusqlite::Error) -> Error + use<> {
        let path = self.database_path();
        move |error| Error::Database { path: path.clone(), error }
    }

    /// Changes the database: completely or not at all.
    pub(crate) fn change<T>(
        &mut self,
        what: impl FnOnce(&Transaction) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let failed = self.failed();
        let begin = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begin.map_err(&failed)?;
        let result = what(&transaction).map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(result)
    }

    /// The application whose program is a file.
    pub(crate) fn application_of(&self, program: &Path) -> Result<Option<Application>, Error> {
        let query = format!(
            "SELECT {} FROM application JOIN part ON part.application = application.id
             JOIN image ON image.id = part.image WHERE image.path = ? AND part.role = 'program'",
            Application::COLUMNS
        );
        let path = program.as_os_str().as_bytes();
        self.connection.query_row(&query, [path], Application::read).optional().map_err(self.failed())
    }

    /// The image of an application with a path.
    pub(crate) fn image_of(&self, application: &Application, path: &Path) -> Result<Option<ImageRow>, Error> {
        let query = format!(
            "SELECT {} FROM image JOIN part ON part.image = image.id WHERE image.path = ? AND part.application = ?",
            ImageRow::COLUMNS
        );
        let values = params![path.as_os_str().as_bytes(), application.id];
        self.connection.query_row(&query, values, ImageRow::read).optional().map_err(self.failed())
    }

    /// The images of an application, its program first.
    pub(crate) fn images_of(&self, application: &Application) -> Result<Vec<ImageRow>, Error> {
        let query = format!(
            "SELECT {} FROM image JOIN part ON part.image = image.id WHERE part.application = ?
             ORDER BY part.role <> 'program', image.path",
            ImageRow::COLUMNS
        );
        self.all(&query, params![application.id], ImageRow::read)
    }

    /// The rows of a query.
    pub(crate) fn all<T>(
        &self,
        query: &str,
        values: impl rusqlite::Params,
        read: fn(&rusqlite::Row) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let rows = || -> rusqlite::Result<Vec<T>> {
            self.connection.prepare_cached(query)?.query_map(values, read)?.collect()
        };
        rows().map_err(self.failed())
    }
}

/// Adds an image, or finds it, and makes it a part of an application.
pub fn add_part(
    transaction: &Transaction,
    application: i64,
    (path, identity, problem): (&Path, &FileFingerprint, &Option<String>),
    role: ImageRole,
) -> rusqlite::Result<()> {
    let path = path.as_os_str().as_bytes();
    transaction.execute(
        "INSERT INTO image (path, size, modified, hash, problem) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (path) DO UPDATE SET size = excluded.size, modified = excluded.modified, hash = excluded.hash,
         problem = excluded.problem",
        params![path, identity.size, identity.modified, identity.hash, problem],
    )?;
    transaction.execute(
        "INSERT INTO part (application, image, role) SELECT ?, id, ? FROM image WHERE path = ? ON CONFLICT DO NOTHING",
        params![application, role.name(), path],
    )?;
    Ok(())
}
