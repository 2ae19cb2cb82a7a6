//! Names that others chose, as text that may go out. Whoever makes a program names its symbols, sources and files: with control
//! characters, which terminals obey; with characters that are invisible or turn the direction of others, so that one name looks like
//! another one; with line feeds, which end a record. Each medium has one function here, through which all text for it goes;
//! HTML and SVG escape markup besides.

use std::borrow::Cow;
use std::fmt::Arguments;

/// Whether a character is not seen as itself: it controls a terminal, turns or hides others, or is invisible (Unicode's classes Cc and
/// Cf, and separators of lines and paragraphs).
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

fn replaced(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    match text.contains(&is_bad) {
        false => text.into(),
        true => text.chars().map(|c| if is_bad(c) { char::REPLACEMENT_CHARACTER } else { c }).collect(),
    }
}

/// A name in one line: on a terminal, in a page, in a picture.
pub fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, is_hidden)
}

/// Text of several lines, with tabs.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// A function in a line of collapsed stacks, in which semicolons separate functions.
pub fn stack_frame(name: &str) -> Cow<'_, str> {
    match printable(name) {
        name if name.contains(';') => name.replace(';', ":").into(),
        name => name,
    }
}

/// A cell of a file for spreadsheets, which take text that begins with certain characters for a formula and carry it out: an apostrophe
/// makes it text again. Numbers stay as they are.
pub fn spreadsheet_cell(text: &str) -> Cow<'_, str> {
    let shown = printable_lines(text);
    let is_formula = text.len() > 1 && text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    if is_formula && text.parse::<f64>().is_err() { format!("'{shown}").into() } else { shown }
}

/// Writes a message to standard error.
pub fn write_message(message: Arguments) {
    eprintln!("pathlength: {}", printable_lines(&message.to_string()));
}

/// Writes a message to standard error, after the command's name; it is formatted as by `println!`.
#[macro_export]
macro_rules! message {
    ($($arguments:tt)*) => { $crate::write_message(format_args!($($arguments)*)) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_medium_gets_what_it_can_take() {
        let name = "\u{1b}[31m\u{202e}f\n\t;\u{9b}\u{feff}";
        assert_eq!(printable(name), "\u{fffd}[31m\u{fffd}f\u{fffd}\u{fffd};\u{fffd}\u{fffd}");
        assert_eq!(printable_lines(name), "\u{fffd}[31m\u{fffd}f\n\t;\u{fffd}\u{fffd}");
        assert_eq!(stack_frame("a;b\nc 5"), "a:b\u{fffd}c 5");
        for (cell, expected) in [
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("-[NSObject init]", "'-[NSObject init]"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("-12.5", "-12.5"),
            ("-", "-"),
            ("operator=", "operator="),
        ] {
            assert_eq!(spreadsheet_cell(cell), expected);
        }
    }

    proptest! {
        #[test]
        fn visible_text_stays_as_it_is(text in "[a-zA-Z0-9 _:<>äß漢]{0,40}") {
            prop_assert_eq!(printable(&text), text.as_str());
        }

        #[test]
        fn nothing_hidden_goes_out(text in any::<String>()) {
            prop_assert!(!printable(&text).contains(is_hidden));
            prop_assert!(!stack_frame(&text).contains([';', '\n']));
        }
    }
}
