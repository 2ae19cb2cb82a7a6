//! The images that the engine loads in place of registered ones.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rusqlite::params;

use crate::database::add_part;
use crate::environment::{Environment, FileState, problem_of};
use crate::error::Error;
use crate::identity::FileFingerprint;
use crate::rows::{Application, ApplicationPhase, ImageRole, ImageRow};

/// The versions of registered images. The database is opened for each question, since processes fork in between, and since it
/// may change while a program runs.
#[derive(Clone, Debug)]
pub struct Substitutes {
    /// The database's folder.
    pub folder: PathBuf,
    /// Instead of what is chosen for each application.
    pub phase: Option<ApplicationPhase>,
}

impl engine::Substitution for Substitutes {
    fn substitute(&self, program: &Path, image: &Path) -> Option<PathBuf> {
        self.find(program, image).unwrap_or_else(|error| {
            text::message!("note: {} is executed itself: {error}", image.display());
            None
        })
    }
}

impl Substitutes {
    fn find(&self, program: &Path, image: &Path) -> Result<Option<PathBuf>, Error> {
        if !is_image(image) {
            return Ok(None);
        }
        let mut environment = Environment::open(&self.folder)?;
        let Some(application) = environment.application_of(program)? else { return Ok(None) };
        let phase = self.phase.unwrap_or(application.phase);
        if phase == ApplicationPhase::Original {
            return Ok(None);
        }
        let row = match environment.image_of(&application, image)? {
            Some(row) => row,
            None => environment.add_loaded(&application, image)?,
        };
        let (row, state) = environment.refresh(&row)?;
        if state == FileState::Changed {
            text::message!("note: {} has changed", image.display());
        }
        environment.version(&application, &row, phase)
    }
}

impl Environment {
    /// Makes a library that was loaded a part of the application.
    fn add_loaded(&mut self, application: &Application, path: &Path) -> Result<ImageRow, Error> {
        let (identity, _) = FileFingerprint::read(path).map_err(Error::file(path))?;
        let problem = problem_of(path);
        self.change(|transaction| {
            add_part(transaction, application.id, (path, &identity, &problem), ImageRole::Loaded)
        })?;
        let added = self.image_of(application, path)?;
        added.ok_or_else(|| {
            Error::file(path)(std::io::Error::other("was removed from the database meanwhile"))
        })
    }

    /// The file of an image's version. An instrumented one is made on the fly.
    fn version(
        &mut self,
        application: &Application,
        image: &ImageRow,
        phase: ApplicationPhase,
    ) -> Result<Option<PathBuf>, Error> {
        let path = self.version_path(image, &image.identity.hash, phase);
        let is_there = path.exists() && self.has_version(image, phase)?;
        if phase == ApplicationPhase::Instrumented {
            let is_counting = is_there && self.counts_path(image, &image.identity.hash).exists();
            if !is_counting {
                let lock = self.lock()?;
                if self.instrument_image(image, &lock)?.is_some() {
                    return Ok(None);
                }
            }
        } else if !is_there {
            if self.has_any_version(image, phase)? {
                text::message!(
                    "note: {} is executed itself, as it has changed since it was optimized, or its optimized version was \
                     removed; pathlength spike optimize {} makes a new one",
                    image.path.display(),
                    application.name
                );
            }
            return Ok(None);
        }
        self.count_load(image, phase)?;
        Ok(Some(path))
    }

    fn has_any_version(&self, image: &ImageRow, phase: ApplicationPhase) -> Result<bool, Error> {
        let query = "SELECT 1 FROM version WHERE image = ? AND kind = ?";
        let found = self.all(query, params![image.id, phase], |_| Ok(()))?;
        Ok(!found.is_empty())
    }

    fn count_load(&mut self, image: &ImageRow, phase: ApplicationPhase) -> Result<(), Error> {
        self.change(|transaction| {
            transaction.execute(
                "UPDATE version SET loads = loads + 1 WHERE image = ? AND kind = ? AND original = ?",
                params![image.id, phase, image.identity.hash],
            )
        })?;
        Ok(())
    }
}

/// Whether a file may be an image: the dynamic loader opens others, too.
fn is_image(path: &Path) -> bool {
    let mut start = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"\x7fELF"
}
