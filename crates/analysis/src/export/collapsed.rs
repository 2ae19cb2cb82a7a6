//! Collapsed stacks: a line for each call chain, its functions separated by semicolons, and its own cost. Tools that draw
//! flame graphs read them.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use crate::call_tree::{CallChain, CallChains};

/// Writes the chains that cost anything.
pub fn write(chains: &CallChains, out: &mut dyn Write) -> io::Result<()> {
    for (number, chain) in chains.chains.iter().enumerate().filter(|(_, chain)| chain.own > 0) {
        let path: Vec<_> = chains.path(number).into_iter().map(text::stack_frame).collect();
        writeln!(out, "{} {}", path.join(";"), chain.own)?;
    }
    Ok(())
}

/// A line that is none of a call chain.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// A line has no cost at its end.
    #[error("line {0} is not a call chain: functions with semicolons between them, a space, and a number")]
    Line(usize),
    /// The costs exceed 2^63.
    #[error("the costs are too large")]
    Overflow,
}

/// The deepest chain that is read.
const MAX_DEPTH: usize = 1 << 12;

/// Reads chains, of this tool or another one.
pub fn read(text: &mut dyn BufRead) -> Result<CallChains, Error> {
    let mut chains: Vec<CallChain> = Vec::new();
    let mut numbers: HashMap<(Option<usize>, String), usize> = HashMap::new();
    let mut total: u64 = 0;
    for (index, line) in text.lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let parts =
            line.trim_end().rsplit_once(' ').and_then(|(path, cost)| Some((path, cost.parse::<u64>().ok()?)));
        let (path, cost) = parts.ok_or(Error::Line(index + 1))?;
        total = total.checked_add(cost).filter(|total| *total < 1 << 63).ok_or(Error::Overflow)?;
        let mut parent = None;
        for function in path.split(';').take(MAX_DEPTH) {
            let number = *numbers.entry((parent, function.to_owned())).or_insert_with(|| {
                chains.push(CallChain {
                    parent,
                    function: function.into(),
                    image: String::new(),
                    calls: 0,
                    own: 0,
                    inclusive: 0,
                    earlier: None,
                });
                chains.len() - 1
            });
            chains[number].inclusive += cost;
            parent = Some(number);
        }
        if let Some(last) = parent {
            chains[last].own += cost;
        }
    }
    Ok(CallChains { event: String::new(), chains, earlier_total: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(chains: &CallChains) -> String {
        let mut text = Vec::new();
        write(chains, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn costs_are_those_of_the_lines() {
        let chains = read(&mut "main;f;g 7\nmain 2\nmain;f 1\nmain;f;g 1\n\n".as_bytes()).unwrap();
        let costs: Vec<_> =
            chains.chains.iter().map(|chain| (chain.function.as_str(), chain.own, chain.inclusive)).collect();
        assert_eq!(costs, [("main", 2, 11), ("f", 1, 9), ("g", 8, 8)]);
        assert_eq!(text(&chains), "main 2\nmain;f 1\nmain;f;g 8\n");
    }

    #[test]
    fn what_is_no_chain_is_told() {
        for (text, error) in [
            ("main 1\nmain\n", "line 2 "),
            ("main -1", "line 1 "),
            ("main 9223372036854775807\nmain 1", "too large"),
        ] {
            assert!(read(&mut text.as_bytes()).unwrap_err().to_string().contains(error), "{text}");
        }
    }

    #[test]
    fn an_earlier_run_is_compared_by_chains() {
        let [mut now, before] =
            ["a;b 5\na;c 1\nd;b 2", "a;b 3\nd 4"].map(|text| read(&mut text.as_bytes()).unwrap());
        now.compare(&before);
        let earlier: Vec<_> = now.chains.iter().map(|chain| chain.earlier.unwrap()).collect();
        assert_eq!((earlier, now.earlier_total), (vec![3, 3, 0, 4, 0], Some(7)));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_again(lines in prop::collection::vec(("[a-c](;[a-c ]){0,5}", 1..1000_u64), 0..30)) {
            let lines: Vec<String> = lines.iter().map(|(path, cost)| format!("{path} {cost}")).collect();
            let chains = read(&mut lines.join("\n").as_bytes()).unwrap();
            prop_assert_eq!(&text(&read(&mut text(&chains).as_bytes()).unwrap()), &text(&chains));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ = read(&mut text.as_bytes());
        }
    }
}
