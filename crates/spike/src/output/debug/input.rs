//! Reading the original debug information.

use crate::elf::Elf;

/// The contents of a section; empty if there is none.
pub fn section<'a>(elf: &'a Elf, name: &str) -> &'a [u8] {
    elf.section(name).map(|section| elf.data(section)).unwrap_or_default()
}

/// Turns an error into a sentence about a section.
pub fn damaged(what: &str) -> impl Fn(gimli::Error) -> String {
    move |error| format!("{what}: {error}")
}
