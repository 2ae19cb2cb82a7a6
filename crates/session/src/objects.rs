//! Rules in files that say which functions of a program work on objects, such as the operators of a query.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine::{Configuration, ObjectRule, Plan, StructureRule, check_objects};
use image::Image;
use serde::Deserialize;

use crate::startup;

/// The rules that come with Pathlength, by name.
const BUILT_IN: [(&str, &str); 2] = [
    ("postgresql", include_str!("../../../data/objects/postgresql.toml")),
    ("sqlite", include_str!("../../../data/objects/sqlite.toml")),
];

/// Rules for objects of several kinds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectRules {
    /// File names of images, up to a dot: the rules are for programs with such an image.
    #[serde(default)]
    images: Vec<String>,
    #[serde(rename = "rule")]
    rules: Vec<ObjectRule>,
    /// Where a program that runs already has lists of what it has allocated.
    #[serde(default, rename = "structure")]
    structures: Vec<StructureRule>,
    /// What users call them.
    #[serde(skip)]
    name: PathBuf,
}

/// Why there are no rules, or none that fit.
#[derive(Debug, thiserror::Error)]
pub enum ObjectRulesError {
    /// No such rules.
    #[error("no rules of objects are called '{}': name a file of rules, or {}", .0.display(), built_in())]
    Unknown(PathBuf),
    /// The file cannot be read.
    #[error("cannot read the rules of objects in {}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The host's reason.
        error: io::Error,
    },
    /// The file is not as it should be.
    #[error("{}: {reason}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where and why.
        reason: String,
    },
    /// None are known for the program.
    #[error("there are no rules of objects for {}: name them with --rules, {} or a file", .0.display(), built_in())]
    NoneFit(PathBuf),
    /// There are no objects of this kind.
    #[error("the rules of objects in {} have no kind '{kind}': name one of {kinds}", .path.display())]
    NoKind {
        /// The rules.
        path: PathBuf,
        /// The kind.
        kind: String,
        /// Those that they have.
        kinds: String,
    },
    /// The rules do not fit the program.
    #[error("the rules of objects in {} do not fit: {reason}", .path.display())]
    DoNotFit {
        /// The rules.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

fn built_in() -> String {
    BUILT_IN.map(|(name, _)| name).join(", ")
}

impl ObjectRules {
    /// Rules by their name, or in a file.
    pub fn find(name: &Path) -> Result<ObjectRules, ObjectRulesError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| Path::new(known) == name) {
            return parse(name, text);
        }
        let text = fs::read_to_string(name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ObjectRulesError::Unknown(name.into()),
            _ => ObjectRulesError::Unreadable { path: name.into(), error },
        })?;
        parse(name, &text)
    }

    /// The built-in rules for a program.
    pub fn of_program(configuration: &Configuration) -> Result<ObjectRules, ObjectRulesError> {
        let images = startup::images(configuration).unwrap_or_default();
        let found = ObjectRules::of_images(images.iter().map(|image| image.path.as_path()));
        found.ok_or_else(|| ObjectRulesError::NoneFit(configuration.program.clone()))
    }

    /// The built-in rules for a process of the engine, by the images that it has mapped, or that its command names.
    pub fn of_process(process: u32) -> Result<ObjectRules, ObjectRulesError> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
        let (maps, command) = (read("maps"), read("cmdline"));
        let mapped = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
        let paths = mapped.chain(command.split('\0')).map(Path::new);
        ObjectRules::of_images(paths)
            .ok_or_else(|| ObjectRulesError::NoneFit(format!("process {process}").into()))
    }

    /// The plan for a process that runs already: with blocks of the heap those, too, that it has allocated before, as far as built-in
    /// rules know where it lists them.
    pub fn plan_of_process(process: u32, plan: &Plan) -> Plan {
        let rules = if plan.heap { ObjectRules::of_process(process).ok() } else { None };
        Plan { structures: rules.map_or(Vec::new(), |rules| rules.structures), ..plan.clone() }
    }

    /// The built-in rules for programs with one of these images.
    fn of_images<'p>(images: impl Iterator<Item = &'p Path>) -> Option<ObjectRules> {
        let name = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.split('.').next().unwrap_or_default().to_owned()
        };
        let names: HashSet<String> = images.map(name).collect();
        let mut all = BUILT_IN.iter().filter_map(|(name, text)| parse(Path::new(name), text).ok());
        all.find(|rules| rules.images.iter().any(|image| names.contains(image)))
    }

    /// The kinds of objects.
    pub fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = Vec::new();
        for rule in &self.rules {
            if !kinds.contains(&rule.kind.as_str()) {
                kinds.push(&rule.kind);
            }
        }
        kinds
    }

    /// The rules of a kind, or of the first one; and the kind.
    pub fn of_kind(&self, kind: Option<&str>) -> Result<(String, Vec<ObjectRule>), ObjectRulesError> {
        let kinds = self.kinds();
        let kind = kind.or(kinds.first().copied()).unwrap_or_default();
        let rules: Vec<ObjectRule> = self.rules.iter().filter(|rule| rule.kind == kind).cloned().collect();
        if rules.is_empty() {
            let (path, kind, kinds) = (self.name.clone(), kind.into(), kinds.join(", "));
            return Err(ObjectRulesError::NoKind { path, kind, kinds });
        }
        Ok((kind.into(), rules))
    }

    /// Checks before a program runs whether it has functions of these rules, and whether their expressions fit its types.
    pub fn check(&self, rules: &[ObjectRule], configuration: &Configuration) -> Result<(), ObjectRulesError> {
        // What the program may load later is not known.
        let Some(images) = startup::images(configuration) else { return Ok(()) };
        let mut functions = 0;
        for image in &images {
            let Ok(file) = Image::open(&image.path) else { continue };
            let (found, problems) = check_objects(rules, image, &file);
            functions += found;
            if let Some(problem) = problems.first() {
                let needs = rules.iter().find_map(|rule| rule.needs.as_ref());
                let needs = needs.map_or(String::new(), |needs| format!("; they need {needs}"));
                return Err(self.does_not_fit(format!("{problem}{needs}")));
            }
        }
        if functions == 0 && !startup::may_load_images(configuration) {
            let names: Vec<&str> = rules.iter().flat_map(ObjectRule::functions).take(5).collect();
            let program = configuration.program.display();
            return Err(
                self.does_not_fit(format!("{program} has none of the functions {}", names.join(", ")))
            );
        }
        Ok(())
    }

    fn does_not_fit(&self, reason: String) -> ObjectRulesError {
        ObjectRulesError::DoNotFit { path: self.name.clone(), reason }
    }
}

fn parse(name: &Path, text: &str) -> Result<ObjectRules, ObjectRulesError> {
    let invalid = |reason: String| ObjectRulesError::Invalid { path: name.into(), reason };
    let rules: ObjectRules =
        toml::from_str(text).map_err(|error| invalid(error.to_string().trim_end().to_owned()))?;
    for (number, rule) in (1..).zip(&rules.rules) {
        if let Some(problem) = rule.problem() {
            return Err(invalid(format!("rule {number}, of the kind '{}': {problem}", rule.kind)));
        }
    }
    Ok(ObjectRules { name: name.into(), ..rules })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(Path::new("x.toml"), text).unwrap_err().to_string()
    }

    #[test]
    fn built_in_rules_are_valid() {
        for (name, _) in BUILT_IN {
            let rules = ObjectRules::find(Path::new(name)).unwrap();
            for kind in rules.kinds() {
                rules.of_kind(Some(kind)).unwrap();
            }
            let no_kind = rules.of_kind(Some("x")).unwrap_err().to_string();
            assert!(no_kind.contains(rules.kinds()[0]), "{no_kind}");
        }
    }

    #[test]
    fn wrong_rules_say_why() {
        assert!(error("[[rule]]\nkind = 'x'\nfunctions = []").contains("no functions"));
        assert!(error("[[rule]]\nkind = 'x'\nfunctions = ['f']").contains("no name"));
        let expression =
            |key: &str| error(&format!("[[rule]]\nkind = 'x'\nfunctions = ['f']\nkey = '{key}'"));
        assert!(expression("$7").contains("$1 to $6"));
        assert!(expression("$1->").contains("a name is missing"));
        assert!(expression("($1").contains("')' is missing"));
        assert!(expression("$1 $2").contains("follows a complete expression"));
        assert!(expression(&"*".repeat(100_000)).contains("too long"));
        assert!(error("[[rule]]\nkind = 'x'\nfunctions = ['f']\nname = '{$1'").contains("'}' is missing"));
        assert!(error("]").contains("line 1"));
        let missing = ObjectRules::find(Path::new("/no/such/file")).unwrap_err().to_string();
        assert!(missing.contains("name a file of rules, or postgresql, sqlite"), "{missing}");
    }
}
