//! The contents of the database, for people.

use std::path::{Path, PathBuf};

use rusqlite::params;
use serde::{Serialize, Serializer};

use crate::environment::Environment;
use crate::error::Error;
use crate::making::MISSING;
use crate::rows::{Application, ApplicationPhase, ImageRow};

/// An application.
#[derive(Clone, Debug, Serialize)]
pub struct ApplicationView {
    /// Its name.
    pub name: String,
    /// The version that is executed when its program is started.
    pub phase: ApplicationPhase,
    /// Its images, the program first.
    pub images: Vec<ImageView>,
}

/// A path as people read it: bytes that are not UTF-8 are replaced.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// An image of an application.
#[derive(Clone, Debug, Serialize)]
pub struct ImageView {
    /// The file.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// How it belongs to the application: program, linked or loaded.
    pub role: String,
    /// Bytes of the file.
    pub size: u64,
    /// Whether there are versions of its present contents.
    pub instrumented: bool,
    /// As above.
    pub optimized: bool,
    /// How often an instrumented version was loaded: by processes, and again after dlclose.
    pub loads: u64,
    /// Instructions that the profile has.
    pub executed: u64,
    /// Instructions of its code, if a version was made.
    pub code: Option<u64>,
    /// Instructions of the optimized code.
    pub optimized_code: Option<u64>,
    /// The share of the executed instructions, in percent, that the optimized version does without.
    pub removed: Option<f64>,
    /// A note: why it cannot be optimized, or that it has changed.
    pub note: String,
}

/// The versions of an image in the database.
#[derive(Default)]
struct Versions {
    instrumented: bool,
    optimized: bool,
    stale: bool,
    loads: i64,
    code: Option<i64>,
    optimized_code: Option<i64>,
    removed: Option<f64>,
    matched: Option<f64>,
}

impl Environment {
    /// All applications.
    pub fn views(&mut self) -> Result<Vec<ApplicationView>, Error> {
        self.applications()?.iter().map(|application| self.view(application)).collect()
    }

    /// An application.
    pub fn view(&mut self, application: &Application) -> Result<ApplicationView, Error> {
        let images = self.images_of(application)?;
        let images: Result<Vec<ImageView>, Error> =
            images.iter().map(|image| self.image_view(application, image)).collect();
        Ok(ApplicationView { name: application.name.clone(), phase: application.phase, images: images? })
    }

    fn image_view(&mut self, application: &Application, image: &ImageRow) -> Result<ImageView, Error> {
        let is_there = image.path.exists();
        let is_same = is_there
            && std::fs::metadata(&image.path).is_ok_and(|metadata| image.identity.looks_like(&metadata));
        let versions = self.versions(image)?;
        let role = "SELECT role FROM part WHERE application = ? AND image = ?";
        let role = self.all(role, params![application.id, image.id], |row| row.get::<_, String>(0))?;
        let executed = "SELECT sum(executed) FROM profile WHERE image = ? GROUP BY original
            ORDER BY original = ? DESC, max(id) DESC";
        let executed =
            self.all(executed, params![image.id, image.identity.hash], |row| row.get::<_, i64>(0))?;
        let executed = executed.first().map_or(0, |executed| *executed as u64);
        let note = match &image.problem {
            _ if !is_there => MISSING.into(),
            _ if !is_same => "has changed since it was last read".into(),
            Some(problem) => format!("not optimizable: {problem}"),
            None if versions.stale && !versions.optimized => {
                "has changed since it was instrumented or optimized: optimize it again".into()
            }
            None => match versions.matched {
                Some(share) => {
                    format!("optimized by an older file's profile, of which {:.1} % match", 100.0 * share)
                }
                None if executed == 0 => "no profile".into(),
                None => String::new(),
            },
        };
        Ok(ImageView {
            path: image.path.clone(),
            role: role.into_iter().next().unwrap_or_default(),
            size: image.identity.size as u64,
            instrumented: versions.instrumented,
            optimized: versions.optimized,
            loads: versions.loads as u64,
            executed,
            code: versions.code.map(|code| code as u64),
            optimized_code: versions.optimized_code.map(|code| code as u64),
            removed: versions.removed,
            note,
        })
    }

    fn versions(&self, image: &ImageRow) -> Result<Versions, Error> {
        let rows = self.all(
            "SELECT kind, original, loads, code_before, code_after, executed, removed, matched FROM version
             WHERE image = ?",
            [image.id],
            |row| {
                let sizes = (row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?);
                Ok((row.get(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?, sizes, row.get(7)?))
            },
        )?;
        let mut versions = Versions::default();
        for (kind, original, loads, (before, after, executed, removed), matched) in rows {
            let is_present = original == image.identity.hash;
            versions.stale |= !is_present;
            match kind {
                ApplicationPhase::Instrumented => {
                    versions.instrumented |= is_present;
                    versions.loads += loads;
                }
                ApplicationPhase::Optimized if is_present => {
                    versions.optimized = true;
                    versions.optimized_code = Some(after);
                    let (executed, removed): (i64, i64) = (executed, removed);
                    versions.removed = (executed > 0).then(|| 100.0 * removed as f64 / executed as f64);
                    versions.matched = matched;
                }
                ApplicationPhase::Optimized | ApplicationPhase::Original => {}
            }
            if is_present {
                versions.code = Some(before);
            }
        }
        Ok(versions)
    }
}

impl ApplicationView {
    /// Instructions that the profiles of its images have.
    pub fn executed(&self) -> u64 {
        self.images.iter().map(|image| image.executed).fold(0, u64::saturating_add)
    }

    /// The share of these, in percent, that its optimized images do without.
    pub fn removed(&self) -> Option<f64> {
        let optimized =
            || self.images.iter().filter_map(|image| Some((image.executed as f64, image.removed?)));
        let removed: f64 = optimized().map(|(executed, removed)| executed * removed).sum();
        optimized().next().map(|_| removed / (self.executed() as f64).max(1.0))
    }
}
