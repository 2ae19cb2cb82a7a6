//! The environment of programs that are run.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

/// The environment of a program, instead of the one that pathlength has.
#[derive(Clone, Debug, Default, Args)]
pub struct EnvironmentOptions {
    /// Set a variable of the program's environment. Can be given several times.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = OsStringValueParser::new().try_map(assignment))]
    set: Vec<OsString>,
    /// Remove a variable of the program's environment. Can be given several times.
    #[arg(long = "unset-env", value_name = "NAME", value_parser = OsStringValueParser::new().try_map(name))]
    unset: Vec<OsString>,
    /// Run the program with an empty environment, but for the variables of --env.
    #[arg(long)]
    clear_env: bool,
}

impl EnvironmentOptions {
    /// The environment, as `NAME=VALUE`, made of the inherited one.
    pub fn environment(&self, inherited: impl Iterator<Item = OsString>) -> Vec<OsString> {
        let is_kept = |variable: &OsString| {
            let name = variable_name(variable);
            !self.clear_env
                && !self.unset.iter().any(|removed| removed.as_os_str() == name)
                && !self.set.iter().any(|set| variable_name(set) == name)
        };
        // Of several values of a variable the last one holds.
        let set = self.set.iter().enumerate().filter(|(place, variable)| {
            let later = &self.set[place + 1..];
            !later.iter().any(|other| variable_name(other) == variable_name(variable))
        });
        inherited.filter(is_kept).chain(set.map(|(_, variable)| variable.clone())).collect()
    }
}

/// The name in `NAME=VALUE`.
fn variable_name(variable: &OsStr) -> &OsStr {
    let bytes = variable.as_bytes();
    let end = bytes.iter().position(|&byte| byte == b'=').unwrap_or(bytes.len());
    OsStr::from_bytes(&bytes[..end])
}

fn assignment(text: OsString) -> Result<OsString, &'static str> {
    match variable_name(&text).len() {
        0 => Err("a variable has a name: give NAME=VALUE"),
        name if name == text.len() => Err("give a value, as in NAME=VALUE; NAME= is an empty one"),
        _ => Ok(text),
    }
}

fn name(text: OsString) -> Result<OsString, &'static str> {
    match variable_name(&text).len() {
        0 => Err("a variable has a name"),
        name if name < text.len() => Err("give only the variable's name"),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn variables_are_set_removed_and_cleared() {
        let options =
            EnvironmentOptions { set: words(&["A=1", "B=", "A=2"]), unset: words(&["C"]), clear_env: false };
        let inherited = || words(&["A=0", "C=3", "D=4=4"]).into_iter();
        assert_eq!(options.environment(inherited()), words(&["D=4=4", "B=", "A=2"]));
        let cleared = EnvironmentOptions { clear_env: true, ..options };
        assert_eq!(cleared.environment(inherited()), words(&["B=", "A=2"]));
        assert_eq!(EnvironmentOptions::default().environment(inherited()), words(&["A=0", "C=3", "D=4=4"]));
    }
}
