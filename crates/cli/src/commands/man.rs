//! `pathlength man`: manual pages, from the help texts.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use roff::{Inline, Roff, roman};

use crate::arguments::{Arguments, ManOptions};

/// Writes one page to standard output, or all of them into a directory.
pub fn run(options: &ManOptions) -> anyhow::Result<ExitCode> {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    if let Some(folder) = &options.output {
        return write_all(&command, folder);
    }
    let shown = match &options.command {
        Some(name) => {
            let found = command.find_subcommand(name);
            found.with_context(|| format!("there is no command '{name}': pathlength help lists all"))?
        }
        None => &command,
    };
    std::io::stdout().write_all(&page(shown)?)?;
    Ok(ExitCode::SUCCESS)
}

fn write_all(command: &Command, folder: &Path) -> anyhow::Result<ExitCode> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    write_with_subcommands(command, folder)?;
    Ok(ExitCode::SUCCESS)
}

fn write_with_subcommands(command: &Command, folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(format!("{}.1", name(command)));
    fs::write(&path, page(command)?).with_context(|| path.display().to_string())?;
    let mut shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.try_for_each(|command| write_with_subcommands(command, folder))
}

fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The page of one command.
fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let name = name(command);
    // There is no date. clap_mangen would leave it out, and the version would take its place.
    let title = format!(".TH {name} 1 \"\" \"pathlength {}\" Pathlength\n", env!("CARGO_PKG_VERSION"));
    let mut page = title.into_bytes();
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_help() {
        examples(&text.to_string()).to_writer(&mut page)?;
    }
    if name != "pathlength" {
        Roff::new().control("SH", ["SEE ALSO"]).text([roman("pathlength(1)")]).to_writer(&mut page)?;
    }
    Ok(page)
}

/// The text after a command's help: the examples, which keep their lines, and the paragraphs after those.
fn examples(text: &str) -> Roff {
    let mut section = Roff::new();
    for paragraph in text.split("\n\n") {
        let mut lines = paragraph.lines().peekable();
        if let Some(example) = lines.peek().and_then(|first| first.strip_prefix("Example")) {
            section.control("SH", ["EXAMPLES"]);
            literal(&mut section, example.strip_prefix(':').map(str::trim));
            lines.next();
        } else {
            section.control("PP", []);
        }
        let (code, prose): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with("  "));
        literal(&mut section, code);
        section.text(prose.into_iter().map(|line| roman(format!("{line} "))).collect::<Vec<Inline>>());
    }
    section
}

/// Lines that stay as they are.
fn literal<'a>(section: &mut Roff, lines: impl IntoIterator<Item = &'a str>) {
    let mut lines = lines.into_iter().filter(|line| !line.is_empty()).peekable();
    if lines.peek().is_none() {
        return;
    }
    section.control("nf", []);
    for line in lines {
        section.text([roman(line.trim())]);
    }
    section.control("fi", []);
}
