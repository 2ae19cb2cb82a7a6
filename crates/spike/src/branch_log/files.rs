//! Logs and their images as files.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::log::LogHeader;
use super::{LogImage, LoggedImage};
use crate::error::Error;
use crate::{optimize, profile};

/// A log that was read.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    /// Its header.
    pub header: LogHeader,
    /// All of it.
    pub bytes: Vec<u8>,
}

impl LogFile {
    /// Reads a log, which may be in use.
    pub fn open(path: &Path) -> Result<LogFile, Error> {
        let failed = |problem| Error::Profile { path: path.into(), problem };
        let bytes = profile::read(path).map_err(failed)?;
        let header = LogHeader::read(&bytes).map_err(failed)?;
        Ok(LogFile { path: path.into(), header, bytes })
    }

    /// Changes a field, which running programs see at once.
    pub fn put(&self, offset: usize, value: u64) -> io::Result<()> {
        OpenOptions::new().write(true).open(&self.path)?.write_all_at(&value.to_le_bytes(), offset as u64)
    }

    /// The images, of which these are the originals.
    pub fn images(&self, originals: &[impl AsRef<Path>]) -> Result<Vec<LoggedImage>, Error> {
        let LogHeader { id, switches, capacity } = &self.header;
        let (plans, found) = plan(originals, *capacity)?;
        if plans.len() != switches.len() || found != *id {
            let problem = format!(
                "is the log of other images, or in another order, or another version of pathlength made it; give the {} original \
                 images in the order in which they were patched",
                switches.len()
            );
            return Err(Error::Profile { path: self.path.clone(), problem });
        }
        let each = plans.into_iter().zip(originals).zip(switches);
        let image = |((plan, path), &switch): ((LogImage, _), &u64)| {
            let path: &Path = AsRef::as_ref(path);
            let problem = |problem| Error::Unsuitable { path: path.into(), problem };
            LoggedImage::new(plan, optimize::open(path)?, switch).map_err(problem)
        };
        each.map(image).collect()
    }
}

/// The plans of images for a log with two to the power of `capacity` records, and the identity of the log.
pub fn plan(images: &[impl AsRef<Path>], capacity: u32) -> Result<(Vec<LogImage>, u64), Error> {
    let (mut plans, mut id) = (Vec::new(), 0);
    for (path, number) in images.iter().map(AsRef::as_ref).zip(0..) {
        let plan = LogImage::new(optimize::open(path)?, number, capacity);
        id = plan.hash(id).map_err(|problem| Error::Unsuitable { path: path.into(), problem })?;
        plans.push(plan);
    }
    Ok((plans, id))
}
