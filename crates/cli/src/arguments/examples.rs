//! Every command has an example, and every example is a command.

use clap::Command;

use super::command_line;
use crate::commands::man::paragraphs;

/// The words of a line as a shell has them, without the comment that two blanks begin, and up to a pipe or a redirection.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => {
                words.push(std::mem::take(&mut word));
                if characters.next_if(|&next| matches!(next, ' ' | '|' | '>')).is_some() {
                    return words;
                }
            }
            _ => word.push(character),
        }
    }
    words.push(word);
    words
}

/// The examples of a command that are commands of ours.
fn examples(command: &Command) -> Vec<Vec<String>> {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = paragraphs(&text).filter(|part| part.is_examples).flat_map(|part| part.code);
    let ours = lines.map(|line| words(line.strip_prefix("sudo ").unwrap_or(line)));
    ours.filter(|words| words[0] == "pathlength").collect()
}

/// Checks the examples of a command with this name, and those of the commands below it. Returns their number.
fn check(command: &Command, name: &[&str]) -> usize {
    let found = examples(command);
    let is_own = |words: &Vec<String>| {
        words.iter().zip(name).filter(|(word, name)| word == name).count() == name.len()
    };
    assert!(found.iter().any(is_own), "{name:?} has no example: {found:?}");
    for words in &found {
        if let Err(error) = command_line().try_get_matches_from(words) {
            panic!("the example {words:?} of {name:?}: {error}");
        }
    }
    let below = command.get_subcommands();
    found.len() + below.map(|one| check(one, &[name, &[one.get_name()]].concat())).sum::<usize>()
}

#[test]
fn every_command_has_examples_that_are_commands() {
    let command = command_line();
    command.clone().debug_assert();
    let number = check(&command, &["pathlength"]);
    assert!(number > 100, "{number} examples");
}

#[test]
fn words_are_those_of_a_shell() {
    assert_eq!(words("a 'b  c' d   then: e"), ["a", "b  c", "d"]);
    assert_eq!(words("a b > c"), ["a", "b"]);
    assert_eq!(words("a b | c"), ["a", "b"]);
}
