//! The properties that distinguish a file from its former contents.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha2::{Digest, Sha256};

/// The size, the time of the last modification in nanoseconds, and a hash of the contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFingerprint {
    pub size: i64,
    pub modified: i64,
    pub hash: String,
}

/// A hash of bytes, in hexadecimal digits.
pub fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl FileFingerprint {
    /// Of a file, with its contents.
    pub fn read(path: &Path) -> io::Result<(FileFingerprint, Vec<u8>)> {
        let metadata = fs::metadata(path)?;
        let bytes = fs::read(path)?;
        let identity =
            FileFingerprint { size: bytes.len() as i64, modified: modified(&metadata), hash: hash(&bytes) };
        Ok((identity, bytes))
    }

    /// Whether a file has the same size and the same time, so that its contents need not be read.
    pub fn looks_like(&self, metadata: &Metadata) -> bool {
        self.size == metadata.len() as i64 && self.modified == modified(metadata)
    }
}

fn modified(metadata: &Metadata) -> i64 {
    metadata.mtime().wrapping_mul(1_000_000_000).wrapping_add(metadata.mtime_nsec())
}
