//! Exports from the database.

use std::fs;
use std::path::PathBuf;

use spike::profile::ImageProfiles;

use crate::environment::Environment;
use crate::error::Error;
use crate::making::mode;
use crate::rows::{Application, ApplicationPhase};

/// An optimized image.
#[derive(Debug)]
pub struct ExportedImage {
    /// The image in place of which it can be used. It must never be overwritten.
    pub original: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// The contents of its file.
    pub bytes: Vec<u8>,
}

impl Environment {
    /// The optimized images of an application.
    pub fn export(&mut self, application: &Application) -> Result<Vec<ExportedImage>, Error> {
        let mut exported = Vec::new();
        for image in self.images_of(application)? {
            let (image, _) = self.refresh(&image)?;
            let version = self.version_path(&image, &image.identity.hash, ApplicationPhase::Optimized);
            if !self.has_version(&image, ApplicationPhase::Optimized)? || !version.exists() {
                continue;
            }
            let bytes = fs::read(&version).map_err(Error::file(&version))?;
            exported.push(ExportedImage { mode: mode(&image.path), original: image.path, bytes });
        }
        match exported.is_empty() {
            true => Err(Error::NotOptimized(application.name.clone())),
            false => Ok(exported),
        }
    }

    /// The profile of an application: of each image that of its present contents, or the latest one.
    pub fn profile(&mut self, application: &Application) -> Result<ImageProfiles, Error> {
        self.collect()?;
        let mut images = Vec::new();
        for image in self.images_of(application)? {
            images.extend(self.image_profile(&image)?);
        }
        match images.is_empty() {
            true => Err(Error::NoProfile(application.name.clone())),
            false => Ok(ImageProfiles::new(images)),
        }
    }
}
