//! `annotate`: each instruction of a function once, with the numbers of the other tables.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::caches::{Folder, column};
use crate::support::{guest, run};

/// The cells of a column.
fn cells<'a>(rows: &'a [Vec<String>], heading: &str) -> Vec<&'a str> {
    let at = rows[0].iter().position(|one| one == heading).unwrap_or_else(|| panic!("{:?}", rows[0]));
    rows[1..].iter().map(|row| row[at].as_str()).collect()
}

/// The size in bytes that the symbol table says.
fn size(program: &str, function: &str) -> usize {
    let output = Command::new("alpha-linux-gnu-nm").arg("-S").arg(guest(program)).output().unwrap();
    let symbols = String::from_utf8(output.stdout).unwrap();
    let words: Vec<Vec<&str>> = symbols.lines().map(|line| line.split_whitespace().collect()).collect();
    let symbol = words.iter().find(|words| words.last() == Some(&function)).unwrap();
    usize::from_str_radix(symbol[1], 16).unwrap()
}

#[test]
fn every_instruction_has_the_numbers_of_other_tables() {
    let folder = Folder::new();
    let models = [
        ("", "calls", "stores"),
        ("--event misses --machine dec3000", "caches --machine dec3000", "dcache misses"),
        ("--event cycles --machine dec3000", "time --machine dec3000", "cycles"),
    ];
    for (model, command, event) in models {
        for (guest, function) in [("ev56/calls", "fibonacci"), ("ev5/calls", "main"), ("ev56/calls", "leaf")]
        {
            let annotated = folder.table(&format!("annotate {model} --function {function} :{guest}"));
            let instructions = folder.table(&format!("{command} --by instruction :{guest}"));
            let addresses = cells(&annotated, "address");
            let own: Vec<usize> = (0..addresses.len()).filter(|&row| !addresses[row].is_empty()).collect();
            assert_eq!(own.len(), size(guest, function) / 4, "{guest} {function}");
            let (known, numbers) = (cells(&instructions, "address"), column(&instructions, event));
            let shown = column(&annotated, event);
            let mut sum = 0;
            for row in own {
                let expected = known.iter().position(|address| *address == addresses[row]);
                assert_eq!(shown[row], expected.map_or(0, |at| numbers[at]), "{model} {}", addresses[row]);
                sum += shown[row];
            }
            assert_eq!(shown.last(), Some(&sum), "{model} {function}");
            assert!(sum > 0 || event != "cycles", "{model} {function}");
            // The lines have the same numbers once more.
            let lines = cells(&annotated, "line");
            let of_lines: u64 =
                (0..lines.len() - 1).filter(|&row| !lines[row].is_empty()).map(|row| shown[row]).sum();
            assert_eq!(of_lines, sum, "{model} {function}");
        }
    }
}

#[test]
fn lines_have_the_text_of_the_source() {
    let folder = Folder::new();
    let rows = folder.table("annotate --function leaf :ev56/calls");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/guests/calls.c");
    let source = fs::read_to_string(source).unwrap();
    let texts: Vec<&str> = source.lines().collect();
    let (lines, code) = (cells(&rows, "line"), cells(&rows, "code"));
    let mut seen = 0;
    for (line, code) in lines.iter().zip(code).filter(|(line, _)| !line.is_empty() && **line != "total") {
        let number: usize = line.strip_prefix("calls.c:").unwrap().parse().unwrap();
        assert_eq!(code, texts[number - 1].replace('"', ""), "{line}");
        seen += 1;
    }
    assert!(seen >= 3, "{rows:?}");
}

#[test]
fn without_a_function_the_most_expensive_ones_are_shown() {
    let folder = Folder::new();
    let page = folder.path("page.html");
    run(&format!("annotate --top 2 -o {} :ev56/calls", page.display())).noted_success();
    let page = fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<figure class=\"table\"").count(), 2, "{page}");
    let printed = run("annotate --top 2 :ev56/calls").quiet_success();
    assert!(printed.contains("more functions were executed: --function shows one"), "{printed}");
}

#[test]
fn what_was_not_executed_is_told() {
    let output = run("annotate --function descend :ev56/calls");
    assert!(output.stderr.contains("no function 'descend' was executed"), "{}", output.stderr);
    assert_eq!(output.code(), 1);
    for (words, answer) in [
        ("annotate --function mian :ev56/calls", "did you mean main?"),
        ("annotate --event misses --machine nothing :ev56/calls", "nothing"),
        ("annotate --machine dec3000 :ev56/calls", "for --event misses and --event cycles"),
        ("annotate --event instructions --set dcache.size=4K :ev56/calls", "for --event misses"),
        ("annotate --event branches :ev56/calls", "instructions, misses, cycles"),
        ("annotate -o a.html --format csv :ev56/calls", "--format"),
    ] {
        let output = run(words);
        assert!(output.code() != 0 && output.stderr.contains(answer), "{words}: {}", output.stderr);
    }
}
