//! Descriptions in TOML, of machines and of network adapters: those that come with Pathlength are found by their names, users' own by
//! their paths. One that says `base = "NAME"` changes another, and single fields can be set.

mod error;
mod setting;

use std::path::Path;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

pub use error::{CheckResult, DescriptionError, require};
use setting::NONE;
pub use setting::{FieldSetting, assignment};

/// The descriptions of one kind that come with Pathlength.
#[derive(Clone, Copy, Debug)]
pub struct Descriptions {
    /// The kind of thing that is described, as errors call it: `machine`.
    pub kind: &'static str,
    /// The names, with their files.
    pub files: &'static [(&'static str, &'static str)],
}

impl Descriptions {
    /// The names, with commas between them.
    pub fn names(&self) -> String {
        self.files.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    fn file(&self, wanted: &str) -> Option<&'static str> {
        self.files.iter().find(|(name, _)| *name == wanted).map(|(_, text)| *text)
    }

    /// The text of the description with this name, or in this file.
    pub fn text_of(&self, name_or_path: &str) -> Result<String, DescriptionError> {
        if let Some(text) = self.file(name_or_path) {
            return Ok(text.into());
        }
        if !name_or_path.ends_with(".toml") && !Path::new(name_or_path).exists() {
            let (name, names) = (name_or_path.into(), self.names());
            return Err(DescriptionError::Unknown { kind: self.kind, name, names });
        }
        let unreadable =
            |error| DescriptionError::Unreadable { kind: self.kind, path: name_or_path.into(), error };
        read(name_or_path).map_err(unreadable)
    }

    /// Reads a description, with its base applied if it has one.
    pub fn parse<T: DeserializeOwned>(&self, text: &str) -> Result<T, DescriptionError> {
        let has_base = toml::from_str::<Table>(text).is_ok_and(|table| table.contains_key("base"));
        // Without a base, errors name lines.
        Ok(if has_base { self.with_base(text)?.try_into()? } else { toml::from_str(text)? })
    }

    /// The fields of a description and those of its base that it does not change.
    pub fn with_base(&self, text: &str) -> Result<Table, DescriptionError> {
        let mut changes: Table = toml::from_str(text)?;
        let base = match changes.remove("base") {
            None => return Ok(changes),
            Some(Value::String(base)) => base,
            Some(_) => String::new(),
        };
        let text = self.file(&base).ok_or_else(|| DescriptionError::Impossible {
            field: "base".into(),
            reason: format!("no {} is called {base:?}: use {}", self.kind, self.names()),
        })?;
        let mut whole = self.with_base(text)?;
        merge(&mut whole, changes);
        Ok(whole)
    }
}

/// Reads a description's file, up to a limit: a pipe may never end.
fn read(path: &str) -> std::io::Result<String> {
    /// Far more than any description needs.
    const LARGEST: u64 = 1 << 20;
    let refused = |reason: &str| Err(std::io::Error::other(reason));
    match std::fs::metadata(path)? {
        file if !file.is_file() => refused("it is not a regular file"),
        file if file.len() > LARGEST => refused("no description is larger than 1 MiB"),
        _ => std::fs::read_to_string(path),
    }
}

fn merge(whole: &mut Table, changes: Table) {
    for (key, change) in changes {
        match (whole.get_mut(&key), change) {
            (Some(Value::Table(part)), Value::Table(changes)) => merge(part, changes),
            (_, Value::String(none)) if none == NONE => drop(whole.remove(&key)),
            (_, change) => drop(whole.insert(key, change)),
        }
    }
}
