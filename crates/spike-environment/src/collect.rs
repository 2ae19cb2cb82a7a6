//! From counts to profiles.
//!
//! All processes that execute an instrumented version count in one file. The profile of the version is what the file has
//! now, and replaces what it had before: reading it twice, or while a program runs, or after one was killed, does no harm.

use std::path::{Path, PathBuf};

use rusqlite::params;
use spike::instrument::Update;
use spike::profile::{ImageProfile, ImageProfiles};

use crate::environment::{Environment, reason};
use crate::error::Error;
use crate::files::FileLock;
use crate::identity::hash;
use crate::rows::{ApplicationPhase, ImageRow};

/// How hard zstd tries.
const LEVEL: i32 = 3;

/// The profile collected of an image.
#[derive(Clone, Debug)]
pub struct Collected {
    /// The image.
    pub image: PathBuf,
    /// Instructions that were executed in all runs; or why the counts cannot be used.
    pub executed: Result<u64, String>,
}

/// An instrumented version.
struct CountingVersion {
    image: ImageRow,
    original: String,
    /// The number of its file of counts.
    file: i64,
    /// The hash of the counts that were read last.
    read: Option<String>,
    loads: u64,
}

impl Environment {
    /// Brings all profiles up to date with what instrumented versions have counted, in runs that have ended in any way, or go on.
    /// Returns those that changed.
    pub fn collect(&mut self) -> Result<Vec<Collected>, Error> {
        let lock = self.lock()?;
        self.collect_all(&lock)
    }

    pub(crate) fn collect_all(&mut self, _lock: &FileLock) -> Result<Vec<Collected>, Error> {
        let query = format!(
            "SELECT {}, version.original, version.file, version.counts, version.loads FROM version
             JOIN image ON image.id = version.image WHERE version.kind = 'instrumented'",
            ImageRow::COLUMNS
        );
        let versions = self.all(&query, [], |row| {
            let loads = row.get::<_, i64>(9)? as u64;
            let (original, file, read) = (row.get(6)?, row.get(7)?, row.get(8)?);
            Ok(CountingVersion { image: ImageRow::read(row)?, original, file, read, loads })
        })?;
        let mut collected = Vec::new();
        for version in versions {
            let image = version.image.path.clone();
            if let Some(executed) = self.collect_version(&version)? {
                collected.push(Collected { image, executed });
            }
        }
        Ok(collected)
    }

    /// Returns nothing if the counts have not changed.
    fn collect_version(&mut self, version: &CountingVersion) -> Result<Option<Result<u64, String>>, Error> {
        let path = self.counts_path(&version.image, &version.original);
        let counts = match std::fs::read(&path) {
            Ok(counts) => counts,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::File { path, error }),
        };
        let read = hash(&counts);
        if version.read.as_ref() == Some(&read) {
            return Ok(None);
        }
        let original = self.version_path(&version.image, &version.original, ApplicationPhase::Original);
        let mut profile = match profile(&original, &counts) {
            Ok(profile) => profile,
            Err(problem) => return Ok(Some(Err(problem))),
        };
        let executed = profile.executed();
        profile.runs = version.loads.max(1);
        let data = encode(profile);
        let (image, original, file) = (version.image.id, &version.original, version.file);
        self.change(|transaction| {
            if executed > 0 {
                transaction.execute(
                    "INSERT INTO profile (image, original, file, executed, data) VALUES (?, ?, ?, ?, ?)
                     ON CONFLICT DO UPDATE SET executed = excluded.executed, data = excluded.data",
                    params![image, original, file, executed as i64, data],
                )?;
            }
            transaction.execute(
                "UPDATE version SET counts = ? WHERE image = ? AND kind = 'instrumented' AND original = ?",
                params![read, image, original],
            )
        })?;
        Ok((executed > 0).then_some(Ok(executed)))
    }

    /// The profile of an image, if there is one: of its present contents, or of the latest ones that have one.
    pub(crate) fn image_profile(&self, image: &ImageRow) -> Result<Option<ImageProfile>, Error> {
        let data = self.all(
            "SELECT original, data FROM profile WHERE image = ? ORDER BY original = ? DESC, id DESC",
            params![image.id, image.identity.hash],
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?)),
        )?;
        let mut merged = ImageProfiles::default();
        for (original, file) in &data {
            if *original == data[0].0 {
                merged = merged.merge(decode(file).map_err(|error| self.damaged(error))?);
            }
        }
        Ok(merged.images.into_iter().next())
    }

    fn damaged(&self, error: std::io::Error) -> Error {
        Error::File { path: self.database_path(), error }
    }
}

/// The profile of an image from the counts of its instrumented version.
fn profile(image: &Path, counts: &[u8]) -> Result<ImageProfile, String> {
    let open = || spike::optimize::open(image).map_err(|error| reason(&error));
    let mut program = open()?;
    let plan = spike::instrument::InstrumentationPlan::new(open()?, Update::Atomic)
        .map_err(|problem| problem.to_string())?;
    let calls = plan.apply(counts, &mut program)?;
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    Ok(ImageProfile::of(&program, &name, &calls))
}

fn encode(profile: ImageProfile) -> Vec<u8> {
    let json = ImageProfiles::new(vec![profile]).encode();
    // Compression fails only without memory; the text itself is as good.
    zstd::encode_all(&json[..], LEVEL).unwrap_or(json)
}

fn decode(data: &[u8]) -> std::io::Result<ImageProfiles> {
    Ok(ImageProfiles::decode(&zstd::decode_all(data)?)?)
}
