//! Why a description of an adapter is rejected.

use super::reading::names;

/// Why a description of an adapter is rejected.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// The file cannot be read.
    #[error("cannot read the adapter's file {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// The host's error.
        error: std::io::Error,
    },
    /// Neither the name of an adapter nor a file.
    #[error("no adapter is called {0:?}: use {names}, or the path of a file, as mine.toml", names = names())]
    Unknown(String),
    /// Not TOML, or with fields that descriptions do not have.
    #[error("{0}")]
    Syntax(String),
    /// A field is set to what it cannot be, or to nothing that exists.
    #[error("{setting}: {reason}")]
    Setting {
        /// The setting, as `bus.bits=64`.
        setting: String,
        /// The fault of it.
        reason: String,
    },
    /// No adapter is possible with this value.
    #[error("{field}: {reason}")]
    Impossible {
        /// The field, as `bus.bits`.
        field: String,
        /// The fault of its value.
        reason: String,
    },
}

impl From<toml::de::Error> for DescriptionError {
    /// The error in one line: its place, and what is wrong.
    fn from(error: toml::de::Error) -> DescriptionError {
        let text = error.to_string();
        // Between them the error shows the line itself after a bar.
        let parts = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains('|'));
        let text = parts.collect::<Vec<_>>().join(": ");
        DescriptionError::Syntax(text.replace("expected struct ", "expected a section with fields: "))
    }
}
