//! Instrumented versions of images.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, params};
use spike::counts::HEADER_BYTES;
use spike::instrument::Update;
use spike::program::Program;

use crate::environment::{Environment, FileState, reason};
use crate::error::Error;
use crate::files::{self, FileLock};
use crate::identity::FileFingerprint;
use crate::rows::{Application, ApplicationPhase, ImageRow};

/// Why there is no version of an image whose file was removed.
pub(crate) const MISSING: &str = "the file does not exist any more";

/// The result for an image of which a version was to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// The image.
    pub image: PathBuf,
    /// Why it has no such version.
    pub problem: Option<String>,
    /// If its profile is of other contents, the share of that profile that was matched.
    pub matched: Option<f64>,
}

impl Made {
    pub(crate) fn without(image: &ImageRow, problem: impl Into<String>) -> Made {
        Made { image: image.path.clone(), problem: Some(problem.into()), matched: None }
    }
}

impl Environment {
    /// Makes instrumented versions of an application's images, which count wherever they are executed, and chooses them. Those that are
    /// there stay, with their counts, unless these are to be replaced. `done` is called after each image.
    pub fn instrument(
        &mut self,
        application: &Application,
        replace: bool,
        done: &mut dyn FnMut(&Made),
    ) -> Result<(), Error> {
        self.instrument_images(application, replace, done)?;
        self.choose(application, ApplicationPhase::Instrumented)
    }

    /// Makes instrumented versions, and does not choose them.
    pub fn instrument_images(
        &mut self,
        application: &Application,
        replace: bool,
        done: &mut dyn FnMut(&Made),
    ) -> Result<(), Error> {
        let lock = self.lock()?;
        let mut reason = None;
        let mut is_any = false;
        for image in self.images_of(application)? {
            let (image, state) = self.refresh(&image)?;
            if replace {
                self.forget(&image)?;
            }
            let problem = match state {
                FileState::Missing => Some(MISSING.into()),
                FileState::Same | FileState::Changed => self.instrument_image(&image, &lock)?,
            };
            is_any |= problem.is_none();
            // The program is the first image.
            reason = reason.or(problem.clone());
            done(&Made { image: image.path, problem, matched: None });
        }
        match is_any {
            true => Ok(()),
            false => Err(Error::NothingToInstrument {
                name: application.name.clone(),
                reason: reason.unwrap_or_default(),
            }),
        }
    }

    /// Makes an instrumented version, if there is none of the present contents. Returns why that is impossible.
    pub(crate) fn instrument_image(
        &mut self,
        image: &ImageRow,
        _lock: &FileLock,
    ) -> Result<Option<String>, Error> {
        let original = &image.identity.hash;
        let (path, counts) = (
            self.version_path(image, original, ApplicationPhase::Instrumented),
            self.counts_path(image, original),
        );
        if self.has_version(image, ApplicationPhase::Instrumented)? && path.exists() && counts.exists() {
            return Ok(None);
        }
        if image.problem.is_some() {
            return Ok(image.problem.clone());
        }
        let program = match self.lift(image)? {
            Ok(program) => program,
            Err(problem) => return self.unsuitable(image, problem).map(Some),
        };
        let made = match spike::instrument::instrument(program, counts.as_os_str().as_bytes(), Update::Atomic)
        {
            Ok(made) => made,
            Err(problem) => return self.unsuitable(image, problem.to_string()).map(Some),
        };
        // Processes may count in a file that fits.
        let is_kept =
            self.has_version(image, ApplicationPhase::Instrumented)? && is_counting(&counts, &made.counts);
        if !is_kept {
            files::write(&counts, &made.counts, 0o600)?;
        }
        files::write(&path, &made.bytes, mode(&image.path))?;
        let summary = made.summary;
        let (before, after) = (summary.original_instructions as i64, summary.instructions as i64);
        self.change(|transaction| {
            transaction.execute(
                "INSERT INTO version (image, kind, original, code_before, code_after) VALUES (?, ?, ?, ?, ?)
                 ON CONFLICT DO UPDATE SET file = file + ?, counts = NULL",
                params![image.id, ApplicationPhase::Instrumented, original, before, after, !is_kept],
            )
        })?;
        Ok(None)
    }

    /// Forgets what was collected of an image.
    fn forget(&mut self, image: &ImageRow) -> Result<(), Error> {
        self.change(|transaction| {
            transaction.execute("DELETE FROM profile WHERE image = ?", [image.id])?;
            let kind = ApplicationPhase::Instrumented;
            transaction.execute("DELETE FROM version WHERE image = ? AND kind = ?", params![image.id, kind])
        })?;
        Ok(())
    }

    /// Records why an image cannot be instrumented.
    fn unsuitable(&mut self, image: &ImageRow, problem: String) -> Result<String, Error> {
        self.change(|transaction| {
            transaction.execute("UPDATE image SET problem = ? WHERE id = ?", params![problem, image.id])
        })?;
        Ok(problem)
    }

    /// Whether there is a version of an image's present contents.
    pub(crate) fn has_version(&self, image: &ImageRow, phase: ApplicationPhase) -> Result<bool, Error> {
        let query = "SELECT 1 FROM version WHERE image = ? AND kind = ? AND original = ?";
        let values = params![image.id, phase, image.identity.hash];
        let found = self.connection.query_row(query, values, |_| Ok(())).optional();
        Ok(found.map_err(self.failed())?.is_some())
    }

    /// Takes an image apart, or says why that is impossible. A copy is kept, as the file may change.
    pub(crate) fn lift(&self, image: &ImageRow) -> Result<Result<Program, String>, Error> {
        let copy = self.version_path(image, &image.identity.hash, ApplicationPhase::Original);
        if !copy.exists() {
            let failed = Error::file(&image.path);
            let (identity, bytes) = FileFingerprint::read(&image.path).map_err(&failed)?;
            if identity.hash != image.identity.hash {
                return Err(failed(std::io::Error::other("changes while it is read; repeat the command")));
            }
            files::write(&copy, &bytes, mode(&image.path))?;
        }
        Ok(spike::optimize::open(&copy).map_err(|error| reason(&error)))
    }

    /// Removes versions of an image that had other contents. Their counts are in the profile.
    pub(crate) fn remove_stale(&mut self, image: &ImageRow) -> Result<(), Error> {
        let stale = self.all(
            "SELECT DISTINCT original FROM version WHERE image = ? AND original <> ?",
            params![image.id, image.identity.hash],
            |row| row.get::<_, String>(0),
        )?;
        for original in stale {
            self.change(|transaction| {
                transaction.execute(
                    "DELETE FROM version WHERE image = ? AND original = ?",
                    params![image.id, original],
                )
            })?;
            let folder = self.contents_folder(image.id, &original);
            if folder.exists() {
                fs::remove_dir_all(&folder).map_err(Error::file(&folder))?;
            }
        }
        Ok(())
    }
}

/// Whether a file has the counts of the image with this empty file.
fn is_counting(path: &Path, empty: &[u8]) -> bool {
    let header = HEADER_BYTES as usize;
    fs::read(path).is_ok_and(|file| file.len() == empty.len() && file.get(..header) == empty.get(..header))
}

/// The permissions of an image, of which this user gets all that are needed.
pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).map_or(0o755, |metadata| metadata.permissions().mode() & 0o777 | 0o600)
}
