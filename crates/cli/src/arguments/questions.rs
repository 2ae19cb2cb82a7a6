//! Commands by the question that they answer.

use std::fmt::Write;

use clap::{Command, CommandFactory};

use super::Arguments;

/// Questions with their commands, in the order in which help and the reference list them.
pub const QUESTIONS: [(&str, &[&str]); 8] = [
    ("Measure", &["run", "count", "calls", "units", "annotate", "objects", "faults", "sample"]),
    ("Record", &["trace", "system", "qemu", "branch-log"]),
    ("Look", &["show", "strides", "export", "check"]),
    ("Simulate", &["caches", "mrc", "time", "sharing", "machines"]),
    ("Compare", &["compare", "static"]),
    ("Improve", &["spike"]),
    ("Studies", &["study", "build"]),
    ("Installation", &["doctor", "sysroot", "completions", "man"]),
];

/// The characters of a line of the list of commands.
const WIDTH: usize = 100;

/// The command line, whose help lists commands by question.
pub fn command_line() -> Command {
    let command = Arguments::command();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{}Options:{:#}\n{{options}}{{after-help}}",
        commands_by_question(&command),
        command.get_styles().get_header(),
        command.get_styles().get_header(),
    );
    command.help_template(template)
}

fn commands_by_question(command: &Command) -> String {
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let names = QUESTIONS.iter().flat_map(|(_, names)| *names);
    let indent = 4 + names.map(|name| name.len()).max().unwrap_or_default();
    let mut list = String::new();
    for (question, names) in QUESTIONS {
        let _ = writeln!(list, "{header}{question}:{header:#}");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let mut lines = wrapped(&about.map(ToString::to_string).unwrap_or_default(), WIDTH - indent);
            let padding = indent - 2 - name.len();
            let _ = writeln!(list, "  {literal}{name}{literal:#}{:padding$}{}", "", lines.remove(0));
            for line in lines {
                let _ = writeln!(list, "{:indent$}{line}", "");
            }
        }
        list.push('\n');
    }
    list
}

/// The words of a text in lines of a width; there is at least one.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            lines.push(word.into());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines
}
