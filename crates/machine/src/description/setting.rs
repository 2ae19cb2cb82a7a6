//! Changes of single fields of a description: `dcache.size=16K`.

use std::fmt;
use std::str::FromStr;

use descriptions::{DescriptionError, FieldSetting, assignment};
use toml::{Table, Value};

use super::Machine;

/// The tables whose keys are the names of structures, which may be left out in a setting.
const STRUCTURES: [&str; 2] = ["caches", "translation_buffers"];

/// A new value of a field, whose path is whole, `caches.dcache.size`, or without its table, `dcache.size`.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineSetting(FieldSetting);

/// One field with the values to simulate, in order: `dcache.size=8K,16K`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep(Vec<MachineSetting>);

impl MachineSetting {
    /// The value, as it was given.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    fn field(&self) -> String {
        self.0.path().join(".")
    }

    /// Changes a description. An error if it has no such field, or if the value is none for it.
    pub(super) fn apply(&self, description: &mut Table) -> Result<(), DescriptionError> {
        self.0.apply::<Machine>(&self.complete_path(description)?, description)
    }

    /// The whole path: structures are found by their own names. An error if the description has no such part.
    fn complete_path(&self, description: &Table) -> Result<Vec<String>, DescriptionError> {
        let parts = self.0.path();
        let names = |table: &str| {
            let table = description.get(table).and_then(Value::as_table);
            table.into_iter().flat_map(|table| table.keys().cloned()).collect::<Vec<String>>()
        };
        let first = &parts[0];
        let structures = STRUCTURES.map(|table| (table, names(table)));
        let (table, rest) = match structures.iter().find(|(_, names)| names.contains(first)) {
            Some((table, _)) if !is_section(first) => (*table, parts),
            _ => (first.as_str(), &parts[1..]),
        };
        let all = || structures.iter().flat_map(|(_, names)| names).cloned().collect::<Vec<_>>().join(", ");
        let absent = |reason: String| Err(DescriptionError::Impossible { field: self.field(), reason });
        if !is_section(table) {
            let sections = SECTIONS.join(", ");
            return absent(format!("there is no {first}; there are {}, and {sections}", all()));
        }
        match rest {
            [] if table != "title" => absent(format!("{table} has several fields: name one of them")),
            [name, ..] if STRUCTURES.contains(&table) && !names(table).contains(name) => {
                absent(format!("there is no {name} in {table}; there are {}", names(table).join(", ")))
            }
            [_] if STRUCTURES.contains(&table) => {
                absent(format!("{first} has several fields: name one of them"))
            }
            _ => Ok(std::iter::once(table.to_string()).chain(rest.iter().cloned()).collect()),
        }
    }
}

impl fmt::Display for MachineSetting {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MachineSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<MachineSetting, String> {
        let (path, value) = assignment(text).ok_or(EXAMPLE)?;
        Ok(MachineSetting(FieldSetting::new(&path, value)))
    }
}

/// The error of a text that is no setting.
const EXAMPLE: &str = "give FIELD=VALUE, such as dcache.size=16K";

impl Sweep {
    /// The field, as it was given.
    pub fn field(&self) -> String {
        self.0[0].field()
    }

    /// A setting for each value, in the order in which they were given.
    pub fn settings(&self) -> &[MachineSetting] {
        &self.0
    }
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Sweep, String> {
        let (path, values) = assignment(text).ok_or(EXAMPLE)?;
        let setting = |value: &str| MachineSetting(FieldSetting::new(&path, value.trim()));
        let settings: Vec<MachineSetting> = values.split(',').map(setting).collect();
        if settings.iter().any(|setting| setting.text().is_empty()) {
            return Err("give values with commas between them, such as dcache.size=8K,16K".into());
        }
        for (index, setting) in settings.iter().enumerate() {
            if settings[..index].contains(setting) {
                return Err(format!("the value {} is given twice", setting.text()));
            }
        }
        Ok(Sweep(settings))
    }
}

/// The sections of a description.
const SECTIONS: [&str; 11] = [
    "title",
    "processor",
    "caches",
    "translation_buffers",
    "memory",
    "coherence",
    "pipeline",
    "out_of_order",
    "predictor",
    "emulation",
    "storage",
];

fn is_section(name: &str) -> bool {
    SECTIONS.contains(&name)
}
