//! Finds and reads descriptions, and changes single fields: `bus.bits=64`.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use toml::{Table, Value};

use super::{AdapterDescription, DescriptionError};

/// The adapters that come with the crate: their names, and their files.
const KNOWN: [(&str, &str); 5] = [
    ("dart", include_str!("../../../../data/adapters/dart.toml")),
    ("dart-simulation", include_str!("../../../../data/adapters/dart-simulation.toml")),
    ("present-day", include_str!("../../../../data/adapters/present-day.toml")),
    ("traditional", include_str!("../../../../data/adapters/traditional.toml")),
    ("witless", include_str!("../../../../data/adapters/witless.toml")),
];

/// The value that removes an optional field.
const NONE: &str = "none";

/// The names of the adapters that come with the crate.
pub fn names() -> String {
    KNOWN.map(|(name, _)| name).join(", ")
}

/// A new value of a field: `SECTION.FIELD=VALUE`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldSetting {
    section: String,
    /// None for a section that is removed.
    field: Option<String>,
    text: String,
    value: Value,
}

impl FromStr for FieldSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<FieldSetting, String> {
        let example = || String::from("give SECTION.FIELD=VALUE, such as bus.bits=64");
        let (path, value) = text.split_once('=').ok_or_else(example)?;
        let (path, value) = (path.trim(), value.trim());
        let (section, field) =
            path.split_once('.').map_or((path, None), |(section, field)| (section, Some(field)));
        if section.is_empty() || value.is_empty() || field.is_some_and(|field| field.is_empty()) {
            return Err(example());
        }
        let parsed = format!("value = {value}").parse::<Table>().ok().filter(|table| table.len() == 1);
        let parsed = parsed.and_then(|mut table| table.remove("value"));
        Ok(FieldSetting {
            section: section.into(),
            field: field.map(String::from),
            text: text.into(),
            value: parsed.unwrap_or_else(|| Value::String(value.into())),
        })
    }
}

impl fmt::Display for FieldSetting {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FieldSetting {
    /// Changes a description. An error if it has no such field, or if the value is none for it.
    fn apply(&self, description: &mut Table) -> Result<(), DescriptionError> {
        let rejected = |reason: String| DescriptionError::Setting { setting: self.to_string(), reason };
        let table = match &self.field {
            None => &mut *description,
            Some(_) => {
                let section = description.entry(&self.section).or_insert_with(|| Value::Table(Table::new()));
                section.as_table_mut().ok_or_else(|| rejected(format!("{} has no fields", self.section)))?
            }
        };
        let field = self.field.as_ref().unwrap_or(&self.section);
        match self.value.as_str() == Some(NONE) {
            true => drop(table.remove(field)),
            false => drop(table.insert(field.clone(), self.value.clone())),
        }
        // Rejects unknown fields, and says which there are.
        let described: Result<AdapterDescription, _> = description.clone().try_into();
        described.map(drop).map_err(|error| rejected(DescriptionError::from(error).to_string()))
    }
}

impl AdapterDescription {
    /// An adapter that comes with the crate, or one in a file.
    ///
    /// ```
    /// let dart = pathlength_adapter::AdapterDescription::find("dart").unwrap();
    /// assert_eq!(dart.dma.read_burst, 512);
    /// ```
    pub fn find(name_or_path: &str) -> Result<AdapterDescription, DescriptionError> {
        AdapterDescription::find_with(name_or_path, &[])
    }

    /// The same adapter with some fields changed, in the order of the settings. Whether the adapter is possible is checked
    /// after all of them.
    ///
    /// ```
    /// use pathlength_adapter::AdapterDescription;
    /// let wide = AdapterDescription::find_with("dart", &["bus.bits=64".parse().unwrap()]).unwrap();
    /// assert_eq!(wide.bus.bits, 64);
    /// let error = AdapterDescription::find_with("dart", &["bus.bits=48".parse().unwrap()]).unwrap_err();
    /// assert_eq!(error.to_string(), "bus.bits: PCI has 32 or 64 bits, not 48");
    /// ```
    pub fn find_with(
        name_or_path: &str,
        settings: &[FieldSetting],
    ) -> Result<AdapterDescription, DescriptionError> {
        let text = text_of(name_or_path)?;
        if settings.is_empty() {
            return AdapterDescription::from_toml(&text);
        }
        let mut description = with_base(&text)?;
        settings.iter().try_for_each(|setting| setting.apply(&mut description))?;
        let description: AdapterDescription = description.try_into()?;
        description.check()?;
        Ok(description)
    }

    /// All adapters that come with the crate, by name.
    pub fn all() -> impl Iterator<Item = (&'static str, AdapterDescription)> {
        KNOWN.into_iter().map(|(name, text)| {
            (
                name,
                AdapterDescription::from_toml(text)
                    .expect("a test reads the adapters that come with the crate"),
            )
        })
    }

    /// Reads a description, and checks it. One that says `base = "dart"` changes that adapter.
    pub fn from_toml(text: &str) -> Result<AdapterDescription, DescriptionError> {
        let description: AdapterDescription = match toml::from_str::<Table>(text)?.contains_key("base") {
            true => with_base(text)?.try_into()?,
            // Errors name lines.
            false => toml::from_str(text)?,
        };
        description.check()?;
        Ok(description)
    }
}

fn built_in(wanted: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(name, _)| *name == wanted).map(|(_, text)| *text)
}

/// The text of a description: of an adapter that comes with the crate, or of a file.
fn text_of(name_or_path: &str) -> Result<String, DescriptionError> {
    if let Some(text) = built_in(name_or_path) {
        return Ok(text.into());
    }
    if !name_or_path.ends_with(".toml") && !Path::new(name_or_path).exists() {
        return Err(DescriptionError::Unknown(name_or_path.into()));
    }
    read(name_or_path).map_err(|error| DescriptionError::Unreadable { path: name_or_path.into(), error })
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

/// A description with its base, an adapter that comes with the crate, applied.
fn with_base(text: &str) -> Result<Table, DescriptionError> {
    let mut changes: Table = toml::from_str(text)?;
    let base = match changes.remove("base") {
        None => return Ok(changes),
        Some(Value::String(base)) => base,
        Some(_) => String::new(),
    };
    let text = built_in(&base).ok_or_else(|| DescriptionError::Impossible {
        field: "base".into(),
        reason: format!("no adapter is called {base:?}: use {}", names()),
    })?;
    let mut whole = with_base(text)?;
    merge(&mut whole, changes);
    Ok(whole)
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
