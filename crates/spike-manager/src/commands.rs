//! The requests of the page, and the command lines for them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::ManagerSettings;

/// A command of `pathlength spike`.
#[derive(Debug, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase", deny_unknown_fields)]
pub enum ManagerCommand {
    /// Registers a program, under a name if that is not empty.
    Register { program: String, name: String },
    /// Instruments an application.
    Instrument { application: String, replace: bool },
    /// Runs a command line with instrumented images, in a folder; or none, and collects.
    Collect { line: String, folder: String },
    /// Optimizes an application, with further options.
    Optimize { application: String, options: String },
    /// Runs a command line, in a folder, with a version if that is not empty.
    Run { line: String, folder: String, version: String },
    /// Chooses a version.
    Use { application: String, version: String },
    /// Writes optimized images to a folder and the profile to a file, if they are not empty.
    Export { application: String, folder: String, profile: String },
    /// Removes an application.
    Remove { application: String },
}

/// A command line, ready to start.
#[derive(Debug)]
pub struct Prepared {
    /// For people.
    pub title: String,
    pub program: PathBuf,
    pub words: Vec<OsString>,
    /// The working directory.
    pub folder: Option<PathBuf>,
}

/// Makes command lines.
pub struct Launcher {
    settings: ManagerSettings,
}

impl Launcher {
    pub fn new(settings: ManagerSettings) -> Launcher {
        Launcher { settings }
    }

    /// The folder of the database.
    pub fn folder(&self) -> &Path {
        &self.settings.folder
    }

    /// The command line for a command, or what is wrong.
    pub fn prepare(&self, command: &ManagerCommand) -> Result<Prepared, String> {
        // The options before the words that the page gives, which none of them can be taken for; and where to run it.
        let mut options: Vec<String> = Vec::new();
        let (name, words, folder) = match command {
            ManagerCommand::Register { program, name } => {
                options.extend(option("--name", name));
                ("register", vec![needed(program, "the program's path")?], "")
            }
            ManagerCommand::Instrument { application, replace } => {
                options.extend(replace.then(|| "--replace".into()));
                ("instrument", vec![application.clone()], "")
            }
            ManagerCommand::Collect { line, folder } => ("collect", split(line)?, folder.as_str()),
            ManagerCommand::Optimize { application, options: more } => {
                options.extend(split(more)?);
                ("optimize", vec![application.clone()], "")
            }
            ManagerCommand::Run { line, folder, version } => {
                options.extend(option("--version", version));
                ("run", split(&needed(line, "a program and its arguments")?)?, folder.as_str())
            }
            ManagerCommand::Use { application, version } => {
                ("use", vec![application.clone(), version.clone()], "")
            }
            ManagerCommand::Export { application, folder, profile } => {
                options.extend(option("--output", folder).chain(option("--profile", profile)));
                ("export", vec![application.clone()], "")
            }
            ManagerCommand::Remove { application } => ("remove", vec![application.clone()], ""),
        };
        let shown = [&["spike".into(), name.into()], options.as_slice(), words.as_slice()].concat();
        let title = shlex::try_join(shown.iter().map(String::as_str)).unwrap_or_else(|_| shown.join(" "));
        let mut all: Vec<OsString> = vec!["spike".into(), name.into(), "--database".into()];
        all.push(self.settings.folder.clone().into());
        if ["register", "collect", "run"].contains(&name) {
            all.extend_from_slice(&self.settings.engine);
        }
        all.extend(options.into_iter().map(OsString::from));
        if !words.is_empty() {
            all.push("--".into());
        }
        all.extend(words.into_iter().map(OsString::from));
        let folder = (!folder.is_empty()).then(|| PathBuf::from(folder));
        Ok(Prepared { title, program: self.settings.program.clone(), words: all, folder })
    }
}

/// An option with its value, as one word, if the value is not empty.
fn option(name: &str, value: &str) -> impl Iterator<Item = String> + use<> {
    (!value.is_empty()).then(|| format!("{name}={value}")).into_iter()
}

fn needed(text: &str, what: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err(format!("Enter {what}.")) } else { Ok(text.into()) }
}

/// The words of a line, as a shell would split it.
fn split(line: &str) -> Result<Vec<String>, String> {
    shlex::split(line).ok_or_else(|| format!("A quotation mark is missing in: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(json: &str) -> Result<Vec<String>, String> {
        let settings = ManagerSettings {
            folder: "/data".into(),
            program: "/bin/pathlength".into(),
            engine: vec!["--cpu=ev56".into()],
            port: 0,
        };
        let command: ManagerCommand = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let prepared = Launcher::new(settings).prepare(&command)?;
        Ok(prepared.words.iter().map(|word| word.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn commands_become_words() {
        let cases = [
            (
                r#"{"command":"register","program":"/a b","name":""}"#,
                "register --database /data --cpu=ev56 -- /a b",
            ),
            (
                r#"{"command":"register","program":"/a","name":"-x"}"#,
                "register --database /data --cpu=ev56 --name=-x -- /a",
            ),
            (
                r#"{"command":"instrument","application":"-o","replace":true}"#,
                "instrument --database /data --replace -- -o",
            ),
            (
                r#"{"command":"run","line":"./a 'b c' --d","folder":"/","version":"original"}"#,
                "run --database /data --cpu=ev56 --version=original -- ./a b c --d",
            ),
            (r#"{"command":"collect","line":"","folder":""}"#, "collect --database /data --cpu=ev56"),
            (
                r#"{"command":"optimize","application":"a","options":"--blocks ext-tsp"}"#,
                "optimize --database /data --blocks ext-tsp -- a",
            ),
            (
                r#"{"command":"export","application":"a","folder":"/out","profile":""}"#,
                "export --database /data --output=/out -- a",
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(words(json).unwrap().join(" "), format!("spike {expected}"), "{json}");
        }
    }

    #[test]
    fn mistakes_are_explained() {
        let message = |json| words(json).unwrap_err();
        assert!(
            message(r#"{"command":"run","line":" ","folder":"","version":""}"#).contains("Enter a program")
        );
        assert!(
            message(r#"{"command":"run","line":"a '","folder":"","version":""}"#).contains("quotation mark")
        );
        assert!(message(r#"{"command":"delete"}"#).contains("unknown variant"));
    }
}
