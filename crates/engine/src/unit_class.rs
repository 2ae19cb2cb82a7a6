//! Classes of units of work, taken from the program: a text that it passes to a function, or the function that it calls.

use std::str::FromStr;
use std::sync::Arc;

use guest_memory::Memory;
use image::Image;
use regex_lite::Regex;
use serde::{Deserialize, Serialize};

use crate::platform::Platform;
use crate::program_location::{Name, entries};
use events::LoadedImage;

/// The longest text that is read.
const LONGEST: usize = 64 << 10;
/// The longest name of a class.
const LONGEST_NAME: usize = 80;
/// The number of arguments that are passed in registers.
const ARGUMENTS: usize = 6;

/// How calls of a function in a unit of work say what class the unit is of.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ClassRule {
    text: String,
    function: Name,
    /// The source of the class.
    source: ArgumentSource,
}

#[derive(Clone, Debug)]
enum ArgumentSource {
    /// That the function is called: its name, or the part of it that `*` stands for.
    Call { is_pattern: bool },
    /// The text that an argument, numbered from 0, points at; or what a pattern finds in it.
    Text { argument: usize, pattern: Option<Arc<Regex>> },
}

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is no class: {reason}; give FUNCTION() for the name of a function that is called, FUNCTION($1) for the text \
     that its first argument points at, or FUNCTION($1) ~ PATTERN for a part of it"
)]
pub struct NoClassRule {
    text: String,
    reason: String,
}

impl From<ClassRule> for String {
    fn from(rule: ClassRule) -> String {
        rule.text
    }
}

impl TryFrom<String> for ClassRule {
    type Error = NoClassRule;

    fn try_from(text: String) -> Result<ClassRule, NoClassRule> {
        text.parse()
    }
}

impl FromStr for ClassRule {
    type Err = NoClassRule;

    fn from_str(text: &str) -> Result<ClassRule, NoClassRule> {
        let wrong = |reason: &str| NoClassRule { text: text.into(), reason: reason.into() };
        let (call, pattern) = match text.split_once('~') {
            Some((call, pattern)) => (call.trim(), Some(pattern.trim())),
            None => (text.trim(), None),
        };
        let inside = call.strip_suffix(')').ok_or_else(|| wrong("it does not end with ')'"))?;
        let (function, argument) = inside.rsplit_once('(').ok_or_else(|| wrong("there is no '('"))?;
        if function.is_empty() {
            return Err(wrong("it names no function"));
        }
        let source = match (argument.trim(), pattern) {
            ("", None) => ArgumentSource::Call { is_pattern: function.ends_with('*') },
            ("", Some(_)) => return Err(wrong("a pattern needs an argument")),
            (argument, pattern) => {
                let number = argument.strip_prefix('$').and_then(|number| number.parse().ok());
                let number = number.filter(|number| (1..=ARGUMENTS).contains(number));
                let number: usize = number.ok_or_else(|| wrong("arguments are $1 to $6"))?;
                let pattern = pattern.map(Regex::new).transpose();
                let pattern = pattern.map_err(|error| wrong(&format!("the pattern is wrong: {error}")))?;
                ArgumentSource::Text { argument: number - 1, pattern: pattern.map(Arc::new) }
            }
        };
        let name = if matches!(source, ArgumentSource::Call { is_pattern: true }) {
            function.trim_end_matches('*')
        } else {
            function
        };
        Ok(ClassRule { text: text.into(), function: Name::new(name), source })
    }
}

impl ClassRule {
    /// The function, if there is one of exactly this name.
    pub fn function(&self) -> Option<&str> {
        let is_pattern = matches!(self.source, ArgumentSource::Call { is_pattern: true });
        (!is_pattern).then(|| self.function.text())
    }

    /// Whether an image may have its functions.
    pub(crate) fn may_be_in(&self, image: &LoadedImage) -> bool {
        self.function.may_be_in(image)
    }

    /// The entries of its functions in an image, by their addresses there, and the class that a call of each has, if the call
    /// alone says so.
    pub(crate) fn entries_in(&self, file: &Image) -> Vec<(u64, Option<Arc<str>>)> {
        let all = |address: u64, class: Option<Arc<str>>| {
            entries(file, address).map(move |entry| (entry, class.clone())).collect::<Vec<_>>()
        };
        match &self.source {
            ArgumentSource::Call { is_pattern: true } => {
                let prefix = self.function.symbol();
                let functions = file.functions().iter();
                let named = functions.filter_map(|it| Some((it.address, it.name.strip_prefix(&*prefix)?)));
                named.flat_map(|(address, rest)| all(address, Some(rest.into()))).collect()
            }
            source => {
                let is_call = matches!(source, ArgumentSource::Call { .. });
                let class = is_call.then(|| Arc::from(self.function.symbol()));
                let symbols = self.function.symbols_in(file).into_iter().filter(|symbol| symbol.function);
                symbols.flat_map(|symbol| all(symbol.address, class.clone())).collect()
            }
        }
    }

    /// The class that the text of an argument has, at the entry of the function.
    pub(crate) fn of_text<G: Platform>(&self, cpu: &G, memory: &Memory) -> Option<Arc<str>> {
        let ArgumentSource::Text { argument, pattern } = &self.source else { return None };
        let address = cpu.argument(*argument);
        let text = text_at(address, memory)?;
        let text = String::from_utf8_lossy(&text);
        let found = match pattern {
            None => text.as_ref(),
            Some(pattern) => part(pattern, &text)?,
        };
        Some(shortened(found).into())
    }
}

/// The text at an address; of one that is longer than [`LONGEST`], none.
fn text_at(address: u64, memory: &Memory) -> Option<Vec<u8>> {
    memory.read_string(address, LONGEST).ok().flatten()
}

/// The result of a pattern: the name of the first named group that takes part, or else the first group, or else all that matches.
fn part<'t>(pattern: &'t Regex, text: &'t str) -> Option<&'t str> {
    let captures = pattern.captures(text)?;
    let named = pattern.capture_names().flatten().find(|name| captures.name(name).is_some());
    let group = || captures.iter().skip(1).flatten().next().or_else(|| captures.get(0));
    named.or_else(|| group().map(|found| found.as_str()))
}

/// A text as the name of a class: in one line, and not too long.
fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

impl std::fmt::Display for ClassRule {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<ClassRule>().expect_err(text).to_string()
    }

    #[test]
    fn wrong_rules_say_why() {
        assert!(error("f").contains("does not end with ')'"));
        assert!(error("f)").contains("there is no '('"));
        assert!(error("($1)").contains("names no function"));
        assert!(error("f($0)").contains("$1 to $6"));
        assert!(error("f($7)").contains("$1 to $6"));
        assert!(error("f() ~ x").contains("needs an argument"));
        assert!(error("f($1) ~ (").contains("pattern is wrong"));
    }

    #[test]
    fn patterns_name_classes() {
        let of = |pattern: &str, text| {
            let pattern = Regex::new(pattern).expect("a pattern");
            part(&pattern, text).map(String::from)
        };
        assert_eq!(of(r"^\w+", "SELECT 1").as_deref(), Some("SELECT"));
        assert_eq!(of(r"(?i)from (\w+)", "select * from branches").as_deref(), Some("branches"));
        let named = "(?<payment>UPDATE)|(?<status>SELECT)";
        assert_eq!(of(named, "SELECT 1").as_deref(), Some("status"));
        assert_eq!(of(named, "COMMIT"), None);
    }

    #[test]
    fn names_of_classes_are_short_lines() {
        assert_eq!(shortened("  select\n  1 "), "select 1");
        assert_eq!(shortened(&"é".repeat(200)).chars().count(), LONGEST_NAME + 1);
    }
}
