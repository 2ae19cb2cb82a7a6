//! The files in the database's folder. For each image and each contents that it had there is a folder:
//!
//! ```text
//! images/7/9f86d081884c7d65/original/sort        a copy, of which the plan of the counters is made again
//!                           instrumented/sort
//!                           optimized/sort
//!                           counts               what the instrumented one has counted, in all processes
//! ```
//!
//! Files are written under temporary names and renamed when they are complete. A process that writes files holds the lock: temporary files that
//! it finds were left by processes that were killed, and are removed.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::environment::Environment;
use crate::error::Error;
use crate::rows::{ApplicationPhase, ImageRow};

/// How names of unfinished files begin.
const UNFINISHED: &str = ".unfinished-";

/// The lock is released when this is dropped, or the process ends.
pub struct FileLock(#[allow(dead_code)] File);

/// Makes a folder for this user only.
pub fn create_folder(path: &Path) -> Result<(), Error> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(Error::file(path))
}

/// Writes a file that appears when it is complete.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
    let failed = Error::file(path);
    let folder = path.parent().unwrap_or(Path::new("."));
    create_folder(folder)?;
    let mut file = NamedTempFile::with_prefix_in(UNFINISHED, folder).map_err(&failed)?;
    file.write_all(bytes).map_err(&failed)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(mode)).map_err(&failed)?;
    file.as_file().sync_data().map_err(&failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Waits for the lock of a database's folder.
pub fn lock(folder: &Path) -> Result<FileLock, Error> {
    let path = folder.join("lock");
    let open = File::options().create(true).truncate(false).write(true).open(&path);
    open.and_then(|file| file.lock().map(|()| FileLock(file))).map_err(Error::file(&path))
}

impl Environment {
    /// The database's file.
    pub(crate) fn database_path(&self) -> PathBuf {
        self.folder.join("spike.db")
    }

    /// Waits until nobody else makes versions of images, and removes what killed ones left.
    pub(crate) fn lock(&self) -> Result<FileLock, Error> {
        let lock = lock(&self.folder)?;
        remove_unfinished(&self.images_folder());
        Ok(lock)
    }

    fn images_folder(&self) -> PathBuf {
        self.folder.join("images")
    }

    /// All versions of an image.
    pub(crate) fn image_folder(&self, image: i64) -> PathBuf {
        self.images_folder().join(image.to_string())
    }

    /// The versions of an image that had these contents.
    pub(crate) fn contents_folder(&self, image: i64, original: &str) -> PathBuf {
        self.image_folder(image).join(&original[..original.len().min(16)])
    }

    /// A version of an image that had the contents `original`.
    pub(crate) fn version_path(&self, image: &ImageRow, original: &str, phase: ApplicationPhase) -> PathBuf {
        let name = image.path.file_name().unwrap_or_default();
        self.contents_folder(image.id, original).join(phase.name()).join(name)
    }

    /// The file with the counts of an instrumented version.
    pub(crate) fn counts_path(&self, image: &ImageRow, original: &str) -> PathBuf {
        self.contents_folder(image.id, original).join("counts")
    }
}

/// Removes unfinished files, three folders deep.
fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = fs::remove_file(entry.path());
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_unfinished(&entry.path());
        }
    }
}
