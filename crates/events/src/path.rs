//! Paths as plain data: text, or bytes if a path is not UTF-8.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path as it is written.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenPath<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes(Vec<u8>),
}

impl<'a> WrittenPath<'a> {
    fn new(path: &'a Path) -> WrittenPath<'a> {
        match path.to_str() {
            Some(text) => WrittenPath::Text(text.into()),
            None => WrittenPath::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }

    fn into_path(self) -> PathBuf {
        match self {
            WrittenPath::Text(text) => PathBuf::from(text.into_owned()),
            WrittenPath::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
}

/// For serde's attribute `with`: a path.
pub mod any_path {
    use super::*;

    /// Writes a path.
    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        WrittenPath::new(path).serialize(serializer)
    }

    /// Reads a path.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        WrittenPath::deserialize(deserializer).map(WrittenPath::into_path)
    }
}

/// For serde's attribute `with`: a list of paths.
pub mod any_paths {
    use super::*;

    /// Writes paths.
    pub fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| WrittenPath::new(path)))
    }

    /// Reads paths.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        let paths = Vec::<WrittenPath>::deserialize(deserializer)?;
        Ok(paths.into_iter().map(WrittenPath::into_path).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Files {
        #[serde(with = "any_path")]
        first: PathBuf,
        #[serde(with = "any_paths")]
        others: Vec<PathBuf>,
    }

    #[test]
    fn every_path_is_read_as_it_was_written() {
        let odd = PathBuf::from(OsString::from_vec(b"/tmp/\xff\xfe".to_vec()));
        let files = Files { first: odd.clone(), others: vec!["/tmp/ä".into(), odd] };
        let text = serde_json::to_string(&files).unwrap();
        assert!(text.contains("\"/tmp/ä\""), "{text}");
        assert_eq!(serde_json::from_str::<Files>(&text).unwrap(), files);
    }
}
