//! `pathlength man`: manual pages, and the reference of the site, from the help texts.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Command, CommandFactory};

use crate::arguments::{Arguments, ManOptions, ManualFormat};

mod markdown;
mod roff;

/// Writes one page to standard output, or all of them into a directory.
pub fn run(options: &ManOptions) -> anyhow::Result<ExitCode> {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    if let Some(folder) = &options.output {
        write_all(&command, options.format, folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = match &options.command {
        Some(name) => {
            let found = command.find_subcommand(name);
            found.with_context(|| format!("there is no command '{name}': pathlength help lists all"))?
        }
        None => &command,
    };
    let page = match options.format {
        ManualFormat::Roff => roff::page(shown)?,
        ManualFormat::Markdown => markdown::page(shown).into_bytes(),
    };
    std::io::stdout().write_all(&page)?;
    Ok(ExitCode::SUCCESS)
}

fn write_all(command: &Command, format: ManualFormat, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let write = |name: &str, page: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, page).with_context(|| path.display().to_string())
    };
    match format {
        ManualFormat::Roff => with_subcommands(command, &mut |command| {
            write(&format!("{}.1", name(command)), &roff::page(command)?)
        }),
        ManualFormat::Markdown => {
            write("README.md", markdown::index(command).as_bytes())?;
            write("SUMMARY.md", markdown::summary(command).as_bytes())?;
            command.get_subcommands().filter(|command| !command.is_hide_set()).try_for_each(|command| {
                with_subcommands(command, &mut |command| {
                    write(&markdown::file_name(command), markdown::page(command).as_bytes())
                })
            })
        }
    }
}

/// Calls a function for a command and all those below it.
fn with_subcommands(
    command: &Command,
    function: &mut impl FnMut(&Command) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    function(command)?;
    let mut shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.try_for_each(|command| with_subcommands(command, function))
}

/// The name of a command with those above it, `pathlength-spike-optimize`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// A paragraph of the text after a command's help.
pub struct Paragraph<'t> {
    /// Whether it has the heading of examples.
    pub is_examples: bool,
    /// Lines that stay as they are.
    pub code: Vec<&'t str>,
    /// Lines of a sentence.
    pub prose: Vec<&'t str>,
}

/// The paragraphs of the text after a command's help: the examples, and what is said of them.
pub fn paragraphs(text: &str) -> impl Iterator<Item = Paragraph<'_>> {
    text.split("\n\n").map(|paragraph| {
        let example = paragraph.strip_prefix("Example");
        let mut code = Vec::new();
        let mut lines = paragraph.lines();
        if let Some(example) = example {
            lines.next();
            let first = example.lines().next().unwrap_or_default();
            code.extend(first.strip_prefix(':').map(str::trim).filter(|first| !first.is_empty()));
        }
        let (indented, prose): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with("  "));
        code.extend(indented.into_iter().map(str::trim));
        Paragraph { is_examples: example.is_some(), code, prose }
    })
}
