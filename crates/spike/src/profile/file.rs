//! Files of profiles.

use std::fs;
use std::path::Path;

use super::{Profile, VERSION};
use crate::Error;

impl Profile {
    /// A profile of these images.
    pub fn new(images: Vec<super::ImageProfile>) -> Profile {
        Profile { version: VERSION, images }
    }

    /// Reads a file.
    pub fn open(path: &Path) -> Result<Profile, Error> {
        let failed = |problem: String| Error::Profile { path: path.into(), problem };
        let bytes = fs::read(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        let profile = Profile::decode(&bytes).map_err(|error| {
            failed(format!("is not a profile ({error}); pathlength profile -o FILE PROGRAM makes one"))
        })?;
        if profile.version != VERSION {
            let version = profile.version;
            return Err(failed(format!("has version {version} of the format, not {VERSION}; make it again")));
        }
        Ok(profile)
    }

    /// Reads the contents of a file.
    pub fn decode(bytes: &[u8]) -> serde_json::Result<Profile> {
        serde_json::from_slice(bytes)
    }

    /// Adds another profile. Images with the same code are one.
    pub fn merge(mut self, other: Profile) -> Profile {
        self.version = VERSION;
        for image in other.images {
            match self.images.iter_mut().find(|one| one.code == image.code && one.name == image.name) {
                Some(one) => one.add(&image),
                None => self.images.push(image),
            }
        }
        self
    }

    /// The contents of a file.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}
