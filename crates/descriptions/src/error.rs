//! Why a description is rejected.

/// Why a description is rejected.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// The file cannot be read.
    #[error("cannot read the {kind}'s file {path}: {error}")]
    Unreadable {
        /// The kind of thing that is described, as `machine`.
        kind: &'static str,
        /// The file.
        path: String,
        /// The host's error.
        error: std::io::Error,
    },
    /// Neither the name of a description nor a file.
    #[error("no {kind} is called {name:?}: use {names}, or the path of a file, as mine.toml")]
    Unknown {
        /// The kind of thing that is described, as `machine`.
        kind: &'static str,
        /// The name.
        name: String,
        /// The names that there are.
        names: String,
    },
    /// Not TOML, or with fields that descriptions do not have.
    #[error("{0}")]
    Syntax(String),
    /// A field is set to what it cannot be, or to nothing that exists.
    #[error("{setting}: {reason}")]
    Setting {
        /// The setting, as `dcache.size=16K`.
        setting: String,
        /// The fault of it.
        reason: String,
    },
    /// Nothing that is described is possible with this value.
    #[error("{field}: {reason}")]
    Impossible {
        /// The field, as `caches.dcache.ways`.
        field: String,
        /// The fault of its value.
        reason: String,
    },
}

impl From<toml::de::Error> for DescriptionError {
    /// The error in one line: its line, and what is wrong.
    fn from(error: toml::de::Error) -> DescriptionError {
        let text = error.to_string();
        // Between them the error shows the line itself after a bar.
        let parts = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains('|'));
        DescriptionError::Syntax(sentence(&parts.collect::<Vec<_>>().join(": ")))
    }
}

/// The parser's words for a value of the wrong kind as a sentence: what is expected, and how it is written.
fn sentence(text: &str) -> String {
    let kinds = [
        (
            "expected struct ",
            "expected a section with fields: name one of them, SECTION.FIELD; it is the section ",
        ),
        ("expected a map", "expected names with values, { NAME = VALUE }"),
        ("expected a sequence", "expected a list, [VALUE, VALUE]"),
    ];
    let found = kinds.iter().find(|(parser, _)| text.contains(parser));
    found.map_or_else(|| text.into(), |(parser, words)| text.replace(parser, words))
}

/// The result of a check.
pub type CheckResult = Result<(), DescriptionError>;

/// Rejects a description unless a condition holds: names the field, and says why it is wrong.
pub fn require(holds: bool, field: impl Into<String>, reason: impl Into<String>) -> CheckResult {
    if holds {
        Ok(())
    } else {
        Err(DescriptionError::Impossible { field: field.into(), reason: reason.into() })
    }
}
