//! The reference of the command line in Markdown, a page a command, as the documentation's site has it.

use std::fmt::Write;

use clap::{Arg, Command};

use super::{name, paragraphs};
use crate::arguments::QUESTIONS;

/// The page of one command.
pub fn page(command: &Command) -> String {
    let mut page = format!("# {}\n\n", command.get_bin_name().unwrap_or_else(|| command.get_name()));
    let about = command.get_long_about().or(command.get_about());
    paragraph(&mut page, &about.map(ToString::to_string).unwrap_or_default());
    let usage = command.clone().render_usage().to_string();
    code(&mut page, usage.trim_start_matches("Usage:").lines().map(str::trim));
    subcommands(&mut page, command);
    options(&mut page, command);
    if let Some(text) = command.get_after_help() {
        for part in paragraphs(&text.to_string()) {
            if part.is_examples {
                page += "## Examples\n\n";
            }
            code(&mut page, part.code);
            paragraph(&mut page, &part.prose.join(" "));
        }
    }
    page
}

/// The page that lists all commands by question.
pub fn index(command: &Command) -> String {
    let mut page = "# Commands\n\n".to_string();
    paragraph(
        &mut page,
        "All commands by question. `pathlength COMMAND --help` says the same in the terminal.",
    );
    for (question, names) in QUESTIONS {
        let _ = writeln!(page, "## {question}\n");
        for command in names.iter().filter_map(|name| command.find_subcommand(name)) {
            page += &item(command);
        }
        page.push('\n');
    }
    page
}

/// The part of the site's contents below the index: each question with the pages of its commands.
pub fn summary(command: &Command) -> String {
    let mut lines = String::new();
    for (question, names) in QUESTIONS {
        let _ = writeln!(lines, "  - [{question}]()");
        for command in names.iter().filter_map(|name| command.find_subcommand(name)) {
            summarize(&mut lines, command, 4);
        }
    }
    lines
}

fn summarize(lines: &mut String, command: &Command, indent: usize) {
    let _ = writeln!(lines, "{:indent$}- [{}](reference/{})", "", command.get_name(), file_name(command));
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        summarize(lines, command, indent + 2);
    }
}

/// The file of a command's page.
pub fn file_name(command: &Command) -> String {
    format!("{}.md", name(command).trim_start_matches("pathlength-"))
}

/// A line that leads to the page of a command.
fn item(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    format!("- [{}]({}): {}\n", command.get_name(), file_name(command), sentences(&about))
}

fn subcommands(page: &mut String, command: &Command) {
    let mut shown = command.get_subcommands().filter(|command| !command.is_hide_set()).peekable();
    if shown.peek().is_some() {
        *page += "## Commands\n\n";
        page.extend(shown.map(item));
        page.push('\n');
    }
}

/// Arguments and options, those of one heading together.
fn options(page: &mut String, command: &Command) {
    let shown: Vec<&Arg> = command.get_arguments().filter(|argument| is_shown(argument)).collect();
    let heading = |argument: &Arg| match argument.get_help_heading() {
        Some(heading) => heading.to_string(),
        None if argument.is_positional() => "Arguments".into(),
        None => "Options".into(),
    };
    let mut headings: Vec<String> = Vec::new();
    for argument in &shown {
        if !headings.contains(&heading(argument)) {
            headings.push(heading(argument));
        }
    }
    headings.sort_by_key(|heading| heading != "Arguments");
    for title in headings {
        let _ = writeln!(page, "## {title}\n");
        for argument in shown.iter().filter(|argument| heading(argument) == title) {
            option(page, argument);
        }
        page.push('\n');
    }
}

/// Every page would repeat `--help` and `--version`.
fn is_shown(argument: &Arg) -> bool {
    !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
}

fn option(page: &mut String, argument: &Arg) {
    let shown = argument.to_string();
    let short = argument.get_short().filter(|_| argument.get_long().is_some());
    let short = short.map(|short| format!("-{short}, ")).unwrap_or_default();
    let help = argument.get_long_help().or(argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let _ = write!(page, "- `{short}{shown}`  \n  {}", sentences(&help).replace("\n\n", "\n\n  "));
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && !argument.is_hide_default_value_set() && takes_value(argument) {
        let _ = write!(page, " Default: `{}`.", defaults.join("`, `"));
    }
    page.push('\n');
    let values = argument.get_possible_values();
    if argument.is_hide_possible_values_set() || !takes_value(argument) {
        return;
    }
    for value in values.iter().filter(|value| !value.is_hide_set()) {
        let help = value.get_help().map(|help| format!(": {}", escaped(&help.to_string())));
        let _ = writeln!(page, "  - `{}`{}", value.get_name(), help.unwrap_or_default());
    }
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

fn paragraph(page: &mut String, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(page, "{}\n", sentences(text));
    }
}

fn code<'l>(page: &mut String, lines: impl IntoIterator<Item = &'l str>) {
    let lines: Vec<&str> = lines.into_iter().collect();
    if !lines.is_empty() {
        let _ = writeln!(page, "```text\n{}\n```\n", lines.join("\n"));
    }
}

/// A text with the full stop that clap takes from the end of help texts.
fn sentences(text: &str) -> String {
    let mut text = escaped(text);
    if text.ends_with(|last: char| last.is_alphanumeric() || matches!(last, ')' | '`' | '%')) {
        text.push('.');
    }
    text
}

/// A text whose characters mean nothing to Markdown, except in code.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut is_code = false;
    for character in text.chars() {
        is_code ^= character == '`';
        if matches!(character, '<' | '*' | '_' | '[') && !is_code {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
