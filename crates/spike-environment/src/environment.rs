//! The commands on the database.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

use crate::database::{self, add_part};
use crate::error::Error;
use crate::files;
use crate::identity::FileFingerprint;
use crate::rows::{Application, ApplicationPhase, ImageRole, ImageRow};

/// The database, opened.
#[derive(Debug)]
pub struct Environment {
    pub(crate) folder: PathBuf,
    pub(crate) connection: Connection,
}

/// The state of an image's file compared with when it was last read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileState {
    Same,
    Changed,
    Missing,
}

impl Environment {
    /// Opens the database in a folder, which is made if it does not exist.
    pub fn open(folder: &Path) -> Result<Environment, Error> {
        files::create_folder(folder)?;
        let folder = fs::canonicalize(folder).map_err(Error::file(folder))?;
        let connection = database::open(&folder.join("spike.db"))?;
        Ok(Environment { folder, connection })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Registers a program with the libraries that its loader finds.
    pub fn register(
        &mut self,
        program: &Path,
        libraries: &[PathBuf],
        name: Option<&str>,
    ) -> Result<Application, Error> {
        let absolute = |path: &Path| fs::canonicalize(path).map_err(Error::file(path));
        let program = absolute(program)?;
        if let Some(application) = self.application_of(&program)? {
            return Err(Error::Registered { path: program, name: application.name });
        }
        let own_name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.map_or(own_name, str::to_string);
        if self.applications()?.iter().any(|other| other.name == name) {
            return Err(Error::NameTaken(name));
        }
        let mut files = vec![(program, ImageRole::Program)];
        for library in libraries {
            files.push((absolute(library)?, ImageRole::Linked));
        }
        let mut parts = Vec::new();
        for (path, role) in files {
            let (identity, _) = FileFingerprint::read(&path).map_err(Error::file(&path))?;
            let problem = problem_of(&path);
            parts.push((path, identity, problem, role));
        }
        let id = self.change(|transaction| {
            transaction.execute("INSERT INTO application (name) VALUES (?)", [&name])?;
            let id = transaction.last_insert_rowid();
            for (path, identity, problem, role) in &parts {
                add_part(transaction, id, (path, identity, problem), *role)?;
            }
            Ok(id)
        })?;
        Ok(Application { id, name, phase: ApplicationPhase::Original })
    }

    /// All applications, by their names.
    pub fn applications(&self) -> Result<Vec<Application>, Error> {
        let query = format!("SELECT {} FROM application ORDER BY name", Application::COLUMNS);
        self.all(&query, [], Application::read)
    }

    /// An application by its name, or by its program's file.
    pub fn application(&self, name: &str) -> Result<Application, Error> {
        let all = self.applications()?;
        if let Some(application) = all.iter().find(|application| application.name == name) {
            return Ok(application.clone());
        }
        if let Ok(path) = fs::canonicalize(name)
            && let Some(application) = self.application_of(&path)?
        {
            return Ok(application);
        }
        let known = all.into_iter().map(|application| application.name).collect();
        Err(Error::Unknown { name: name.into(), known })
    }

    /// The file of an application's program.
    pub fn program(&self, application: &Application) -> Result<PathBuf, Error> {
        Ok(self.images_of(application)?.into_iter().next().map(|image| image.path).unwrap_or_default())
    }

    /// Chooses what is executed when the application's program is started.
    pub fn choose(&mut self, application: &Application, phase: ApplicationPhase) -> Result<(), Error> {
        self.change(|transaction| {
            transaction
                .execute("UPDATE application SET phase = ? WHERE id = ?", params![phase, application.id])
        })?;
        Ok(())
    }

    /// Removes an application, its versions and its profiles. Images that other applications have stay.
    pub fn remove(&mut self, application: &Application) -> Result<(), Error> {
        let _lock = self.lock()?;
        let removed = self.change(|transaction| {
            transaction.execute("DELETE FROM application WHERE id = ?", [application.id])?;
            let mut query = transaction
                .prepare("DELETE FROM image WHERE id NOT IN (SELECT image FROM part) RETURNING id")?;
            query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()
        })?;
        for image in removed {
            let folder = self.image_folder(image);
            if folder.exists() {
                fs::remove_dir_all(&folder).map_err(Error::file(&folder))?;
            }
        }
        Ok(())
    }

    /// Compares an image with its file. A changed one is described anew.
    pub(crate) fn refresh(&mut self, image: &ImageRow) -> Result<(ImageRow, FileState), Error> {
        let failed = Error::file(&image.path);
        let metadata = match fs::metadata(&image.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok((image.clone(), FileState::Missing));
            }
            metadata => metadata.map_err(&failed)?,
        };
        if image.identity.looks_like(&metadata) {
            return Ok((image.clone(), FileState::Same));
        }
        let (identity, _) = FileFingerprint::read(&image.path).map_err(&failed)?;
        let is_same = identity.hash == image.identity.hash;
        let problem = if is_same { image.problem.clone() } else { problem_of(&image.path) };
        self.change(|transaction| {
            transaction.execute(
                "UPDATE image SET size = ?, modified = ?, hash = ?, problem = ? WHERE id = ?",
                params![identity.size, identity.modified, identity.hash, problem, image.id],
            )
        })?;
        let state = if is_same { FileState::Same } else { FileState::Changed };
        Ok((ImageRow { identity, problem, ..image.clone() }, state))
    }
}

/// Why an image cannot be instrumented and optimized.
pub(crate) fn problem_of(path: &Path) -> Option<String> {
    spike::optimize::open(path).err().map(|error| reason(&error))
}

/// A failure without the name of the image.
pub(crate) fn reason(error: &spike::Error) -> String {
    match error {
        spike::Error::Unsuitable { problem, .. } => problem.to_string(),
        error => error.to_string(),
    }
}
