//! Exports from the database.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use spike::profile::Profile;

use crate::environment::Environment;
use crate::error::Error;
use crate::files;
use crate::making::mode;
use crate::rows::{Application, ApplicationPhase};

impl Environment {
    /// Writes the optimized images of an application into a folder, under their own names. Returns their paths.
    pub fn export(&mut self, application: &Application, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let mut exported = Vec::new();
        for image in self.images_of(application)? {
            let (image, _) = self.refresh(&image)?;
            let version = self.version_path(&image, &image.identity.hash, ApplicationPhase::Optimized);
            if !self.has_version(&image, ApplicationPhase::Optimized)? || !version.exists() {
                continue;
            }
            let target = folder.join(image.path.file_name().unwrap_or_default());
            refuse_original(&target, &image.path)?;
            let bytes = fs::read(&version).map_err(Error::file(&version))?;
            fs::create_dir_all(folder).map_err(Error::file(folder))?;
            files::write(&target, &bytes, mode(&image.path))?;
            exported.push(target);
        }
        match exported.is_empty() {
            true => Err(Error::NotOptimized(application.name.clone())),
            false => Ok(exported),
        }
    }

    /// The profile of an application: of each image that of its present contents, or the latest one.
    pub fn profile(&mut self, application: &Application) -> Result<Profile, Error> {
        self.collect()?;
        let mut images = Vec::new();
        for image in self.images_of(application)? {
            images.extend(self.image_profile(&image)?);
        }
        match images.is_empty() {
            true => Err(Error::NoProfile(application.name.clone())),
            false => Ok(Profile::new(images)),
        }
    }
}

/// Originals are never changed.
fn refuse_original(target: &Path, original: &Path) -> Result<(), Error> {
    let identity = |path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    if identity(target).is_some_and(|file| identity(original) == Some(file)) {
        let error = std::io::Error::other("is the original image, which stays as it is; name another folder");
        return Err(Error::File { path: target.into(), error });
    }
    Ok(())
}
