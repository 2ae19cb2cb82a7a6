//! Files of profiles.

use std::fs;
use std::path::Path;

use super::{ImageProfiles, ProcedureProfile, VERSION};
use crate::Error;

/// No run executes as many blocks. Counts below it can be multiplied by the length of a block, or by 100.
const MOST_EXECUTIONS: u64 = 1 << 52;

/// Reads a regular file: a device may have no end.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err("is not a regular file; check the path".into()),
        _ => fs::read(path).map_err(|error| format!("cannot be read: {error}")),
    }
}

impl ImageProfiles {
    /// A profile of these images.
    pub fn new(images: Vec<super::ImageProfile>) -> ImageProfiles {
        ImageProfiles { version: VERSION, images }
    }

    /// Reads a file.
    pub fn open(path: &Path) -> Result<ImageProfiles, Error> {
        let failed = |problem: String| Error::Profile { path: path.into(), problem };
        let bytes = read(path).map_err(failed)?;
        let profile = ImageProfiles::decode(&bytes).map_err(|error| {
            failed(format!("is not a profile ({error}); pathlength spike profile -o FILE PROGRAM makes one"))
        })?;
        if profile.version != VERSION {
            let version = profile.version;
            return Err(failed(format!("has version {version} of the format, not {VERSION}; make it again")));
        }
        profile.check().map_err(|problem| failed(format!("damaged profile: {problem}; make it again")))?;
        Ok(profile)
    }

    /// Refuses what no run can have.
    fn check(&self) -> Result<(), String> {
        let procedures = self.images.iter().flat_map(|image| &image.procedures);
        let mut executions = 0u64;
        for one in procedures {
            if !one.is_consistent() {
                return Err(format!("the counts of {} contradict each other", one.name));
            }
            executions = one.counts().fold(executions, u64::saturating_add);
        }
        match executions < MOST_EXECUTIONS {
            true => Ok(()),
            false => Err("it has more executions than any run".into()),
        }
    }

    /// Reads the contents of a file.
    pub fn decode(bytes: &[u8]) -> serde_json::Result<ImageProfiles> {
        serde_json::from_slice(bytes)
    }

    /// Adds another profile. Images with the same code are one.
    pub fn merge(mut self, other: ImageProfiles) -> ImageProfiles {
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

impl ProcedureProfile {
    /// Whether all lists are of the same blocks.
    fn is_consistent(&self) -> bool {
        let blocks = self.taken.iter().map(|one| one.0).chain(self.jumps.iter().map(|one| one.0));
        let blocks = blocks.chain(self.calls.iter().map(|one| one.0));
        let mut blocks = blocks.chain(self.external.iter().map(|one| one.0));
        let has_shapes = self.shapes.is_empty() || self.shapes.len() == self.blocks.len();
        has_shapes && blocks.all(|block| (block as usize) < self.blocks.len())
    }

    /// All counts.
    fn counts(&self) -> impl Iterator<Item = u64> {
        let edges = self.taken.iter().map(|one| one.1).chain(self.jumps.iter().map(|one| one.2));
        let calls = self.calls.iter().map(|one| one.2).chain(self.external.iter().map(|one| one.2));
        self.blocks.iter().copied().chain(edges).chain(calls)
    }
}
