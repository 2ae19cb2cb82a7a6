//! New values of single fields: `bus.bits=64`.

use std::fmt;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::DescriptionError;

/// The value that removes an optional field.
pub(crate) const NONE: &str = "none";

/// A new value of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldSetting {
    path: Vec<String>,
    /// As it was given, and in TOML.
    text: String,
    value: Value,
}

impl FieldSetting {
    /// A setting of the field with this path. What is no value in TOML is a text, such as `16K`.
    pub fn new(path: &[String], text: &str) -> FieldSetting {
        let parsed = format!("value = {text}").parse::<Table>().ok();
        let single = parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
        let value = single.unwrap_or_else(|| Value::String(text.into()));
        FieldSetting { path: path.into(), text: text.into(), value }
    }

    /// The path of the field, as it was given.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// The value, as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Changes the field with this path in a description of a `T`; `none` removes it. An error if it has no such field, or if the
    /// value is none for it.
    pub fn apply<T: DeserializeOwned>(
        &self,
        path: &[String],
        description: &mut Table,
    ) -> Result<(), DescriptionError> {
        let rejected = |reason: String| DescriptionError::Setting { setting: self.to_string(), reason };
        let (last, tables) = path.split_last().ok_or_else(|| rejected("it names no field".into()))?;
        let mut table = &mut *description;
        for name in tables {
            let next = table.entry(name).or_insert_with(|| Value::Table(Table::new()));
            table = next.as_table_mut().ok_or_else(|| rejected(format!("{name} has no fields")))?;
        }
        match self.value.as_str() == Some(NONE) {
            true => drop(table.remove(last)),
            false => drop(table.insert(last.clone(), self.value.clone())),
        }
        // Rejects unknown fields, and says which there are.
        let described: Result<T, _> = description.clone().try_into();
        described.map(drop).map_err(|error| rejected(DescriptionError::from(error).to_string()))
    }
}

impl fmt::Display for FieldSetting {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}={}", self.path.join("."), self.text)
    }
}

/// Divides `FIELD=VALUE` into the path of the field and the value.
///
/// ```
/// use pathlength_descriptions::assignment;
/// assert_eq!(assignment("bus.bits = 64").unwrap(), (vec!["bus".to_string(), "bits".to_string()], "64"));
/// assert!(assignment("bus.=64").is_none());
/// ```
pub fn assignment(text: &str) -> Option<(Vec<String>, &str)> {
    let (field, value) = text.split_once('=')?;
    let path: Vec<String> = field.trim().split('.').map(String::from).collect();
    let is_complete = !value.trim().is_empty() && path.iter().all(|name| !name.is_empty());
    is_complete.then_some((path, value.trim()))
}
