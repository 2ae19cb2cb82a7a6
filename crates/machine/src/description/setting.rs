//! Changes of single fields of a description: `dcache.size=16K`.

use std::fmt;
use std::str::FromStr;

use toml::{Table, Value};

use super::{Error, Machine};

/// The tables whose keys are the names of structures, which may be left out in a setting.
const STRUCTURES: [&str; 2] = ["caches", "translation_buffers"];
/// The value that removes an optional field.
pub(super) const NONE: &str = "none";

/// A new value of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineSetting {
    field: FieldPath,
    /// As it was given, and in TOML.
    text: String,
    value: Value,
}

/// The path of a field in a description: `caches.dcache.size`, or shorter `dcache.size`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldPath(Vec<String>);

/// One field with the values to simulate, in order: `dcache.size=8K,16K`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep(Vec<MachineSetting>);

impl MachineSetting {
    fn new(field: &FieldPath, text: &str) -> MachineSetting {
        MachineSetting { field: field.clone(), text: text.into(), value: value(text) }
    }

    /// The value, as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Changes a description. An error if it has no such field, or if the value is none for it.
    pub(super) fn apply(&self, description: &mut Table) -> Result<(), Error> {
        let path = self.field.complete(description)?;
        let rejected = |reason: String| Error::Setting { setting: self.to_string(), reason };
        let (last, tables) = path.split_last().expect("a path has parts");
        let mut table = &mut *description;
        for name in tables {
            let next = table.entry(name).or_insert_with(|| Value::Table(Table::new()));
            let fields = rejected(format!("{name} has no fields"));
            table = next.as_table_mut().ok_or(fields)?;
        }
        match self.value.as_str() == Some(NONE) {
            true => drop(table.remove(last)),
            false => drop(table.insert(last.clone(), self.value.clone())),
        }
        // Rejects unknown fields, and says which there are.
        let described: Result<Machine, _> = description.clone().try_into();
        described.map(drop).map_err(|error| rejected(Error::from(error).to_string()))
    }
}

impl fmt::Display for MachineSetting {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}={}", self.field, self.text)
    }
}

impl FromStr for MachineSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<MachineSetting, String> {
        let (field, value) = assignment(text)?;
        Ok(MachineSetting::new(&field, value))
    }
}

impl Sweep {
    /// The field, as it was given.
    pub fn field(&self) -> String {
        self.0[0].field.to_string()
    }

    /// A setting for each value, in the order in which they were given.
    pub fn settings(&self) -> &[MachineSetting] {
        &self.0
    }
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Sweep, String> {
        let (field, values) = assignment(text)?;
        let settings: Vec<MachineSetting> =
            values.split(',').map(|value| MachineSetting::new(&field, value.trim())).collect();
        if settings.iter().any(|setting| setting.text.is_empty()) {
            return Err("give values with commas between them, such as dcache.size=8K,16K".into());
        }
        for (index, setting) in settings.iter().enumerate() {
            if settings[..index].contains(setting) {
                return Err(format!("the value {} is given twice", setting.text));
            }
        }
        Ok(Sweep(settings))
    }
}

fn assignment(text: &str) -> Result<(FieldPath, &str), String> {
    let example = "give FIELD=VALUE, such as dcache.size=16K";
    let (field, value) = text.split_once('=').ok_or(example)?;
    let parts: Vec<String> = field.trim().split('.').map(String::from).collect();
    if value.trim().is_empty() || parts.iter().any(String::is_empty) {
        return Err(example.into());
    }
    Ok((FieldPath(parts), value.trim()))
}

/// The value in TOML: what is none there is a text, such as `16K`.
fn value(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>().ok();
    let single = parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    single.unwrap_or_else(|| Value::String(text.into()))
}

impl FieldPath {
    /// The whole path: structures are found by their own names. An error if the description has no such part.
    fn complete(&self, description: &Table) -> Result<Vec<String>, Error> {
        let FieldPath(parts) = self;
        let names = |table: &str| {
            let table = description.get(table).and_then(Value::as_table);
            table.into_iter().flat_map(|table| table.keys().cloned()).collect::<Vec<String>>()
        };
        let first = &parts[0];
        let structures = STRUCTURES.map(|table| (table, names(table)));
        let (table, rest) = match structures.iter().find(|(_, names)| names.contains(first)) {
            Some((table, _)) if !is_section(first) => (*table, &parts[..]),
            _ => (first.as_str(), &parts[1..]),
        };
        let all = || structures.iter().flat_map(|(_, names)| names).cloned().collect::<Vec<_>>().join(", ");
        let absent = |reason: String| Err(Error::Impossible { field: self.to_string(), reason });
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

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0.join("."))
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
