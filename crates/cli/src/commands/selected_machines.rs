//! The machines that the options name, with their settings.

use anyhow::Context;
use machine::{Machine, Setting};

/// Machines, with their names or files.
#[derive(Default)]
pub struct SelectedMachines {
    /// As the options name them.
    pub names: Vec<String>,
    /// In the same order.
    pub machines: Vec<Machine>,
    /// The fields that were changed.
    settings: Vec<Setting>,
}

impl SelectedMachines {
    /// The machines with these names, or in these files, with changes.
    pub fn find(names: &[String], settings: &[Setting]) -> anyhow::Result<SelectedMachines> {
        let find =
            |name: &String| Machine::find_with(name, settings).with_context(|| format!("the machine {name}"));
        let machines = names.iter().map(find).collect::<anyhow::Result<_>>()?;
        Ok(SelectedMachines { names: names.to_vec(), machines, settings: settings.to_vec() })
    }

    /// The machine of an option that may be missing.
    pub fn find_one(name: &Option<String>, settings: &[Setting]) -> anyhow::Result<SelectedMachines> {
        SelectedMachines::find(&name.iter().cloned().collect::<Vec<_>>(), settings)
    }

    /// Models of the machines, with the machines' names. Models of no machine have empty names.
    pub fn named<'a, M>(&'a self, models: &'a [M]) -> Vec<(&'a str, &'a M)> {
        self.names.iter().map(String::as_str).chain(std::iter::repeat("")).zip(models).collect()
    }

    /// The note on the changes.
    pub fn note(&self) -> Option<String> {
        let settings: Vec<String> = self.settings.iter().map(Setting::to_string).collect();
        let changed = !settings.is_empty() && !self.names.is_empty();
        changed.then(|| format!("{} with {}.", self.names.join(", "), settings.join(", ")))
    }
}
