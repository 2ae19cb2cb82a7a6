//! Manual pages for `man`.

use clap::Command;
use clap_mangen::Man;
use roff::{Inline, Roff, roman};

use super::{name, paragraphs};

/// The page of one command.
pub fn page(command: &Command) -> std::io::Result<Vec<u8>> {
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
        after_help(&text.to_string()).to_writer(&mut page)?;
    }
    if name != "pathlength" {
        Roff::new().control("SH", ["SEE ALSO"]).text([roman("pathlength(1)")]).to_writer(&mut page)?;
    }
    Ok(page)
}

/// The text after a command's help: the examples, which keep their lines, and the paragraphs after those.
fn after_help(text: &str) -> Roff {
    let mut section = Roff::new();
    for paragraph in paragraphs(text) {
        if paragraph.is_examples {
            section.control("SH", ["EXAMPLES"]);
        } else {
            section.control("PP", []);
        }
        if !paragraph.code.is_empty() {
            section.control("nf", []);
            for line in paragraph.code {
                section.text([roman(line)]);
            }
            section.control("fi", []);
        }
        let prose = paragraph.prose.into_iter().map(|line| roman(format!("{line} ")));
        section.text(prose.collect::<Vec<Inline>>());
    }
    section
}
