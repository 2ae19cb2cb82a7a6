//! GCC's torture tests: programs that are compiled at several levels and run. Implements what its drivers
//! (`execute.exp`, `ieee.exp`, `builtins.exp`) and the directives in the sources require for Alpha.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Error;
use crate::jobs::{self, End};
use crate::suite::TestSelection;

const COMPILER: &str = "alpha-linux-gnu-gcc";

/// How long the compiler may take.
const COMPILATION: Duration = Duration::from_secs(300);

/// A folder of tests, and the switches that its driver adds.
struct Part {
    folder: &'static str,
    flags: &'static [&'static str],
    /// Whether there are two more sources to a test: `NAME-lib.c` and `lib/main.c`.
    has_library: bool,
}

const PARTS: &[Part] = &[
    Part { folder: "", flags: &[], has_library: false },
    Part { folder: "ieee", flags: &["-fno-inline", "-mieee"], has_library: false },
    Part {
        folder: "builtins",
        flags: &[
            "-fno-tree-dse",
            "-fno-tree-loop-distribute-patterns",
            "-fno-tracer",
            "-fno-ipa-ra",
            "-fno-inline-functions",
        ],
        has_library: true,
    },
];

/// A test at one level.
#[derive(Debug)]
pub struct TortureTest {
    /// As `builtins/abs-1 -O2`.
    pub name: String,
    /// Where the compiler puts the program.
    pub program: PathBuf,
    folder: PathBuf,
    arguments: Vec<String>,
}

/// All selected tests in a folder of sources, with their programs in `programs`.
pub fn tests(
    sources: &Path,
    levels: &[String],
    programs: &Path,
    selection: &TestSelection,
) -> Result<Vec<TortureTest>, Error> {
    let mut tests = Vec::new();
    for part in PARTS {
        let folder = sources.join(part.folder);
        let mut names = names(&folder).map_err(|error| format!("reading {}: {error}", folder.display()))?;
        names.sort();
        for name in names {
            let path = Path::new(part.folder).join(&name);
            let wanted = levels.iter().map(|level| (level, format!("{} {level}", path.display())));
            for (level, title) in wanted.filter(|(_, title)| selection.wants_test(title)) {
                let program = programs.join(level).join(&path);
                let arguments = arguments(part, &folder, &name, level)?;
                tests.push(TortureTest { name: title, program, folder: folder.clone(), arguments });
            }
        }
    }
    Ok(tests)
}

/// The tests in a folder.
fn names(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(".c"));
        names.extend(name.filter(|name| !name.ends_with("-lib")).map(String::from));
    }
    Ok(names)
}

fn arguments(part: &Part, folder: &Path, name: &str, level: &str) -> Result<Vec<String>, Error> {
    let source = folder.join(format!("{name}.c"));
    // Some are not UTF-8.
    let text = fs::read(&source).map_err(|error| format!("reading {}: {error}", source.display()))?;
    let driver = fs::read_to_string(folder.join(format!("{name}.x"))).unwrap_or_default();
    let mut arguments = vec!["-w".into(), level.into()];
    arguments.extend(part.flags.iter().map(|flag| (*flag).into()));
    arguments.extend(directives(&String::from_utf8_lossy(&text)));
    arguments.extend(added_by_driver(&driver));
    arguments.push(format!("{name}.c"));
    if part.has_library {
        arguments.extend([format!("{name}-lib.c"), "lib/main.c".into()]);
    }
    arguments.push("-lm".into());
    Ok(arguments)
}

/// The switches that a source requests, without those for other targets, `{ target ... }`. Requirements on the target
/// are not checked: a program that Alpha's compiler cannot compile is not run.
fn directives(text: &str) -> Vec<String> {
    let mut switches = Vec::new();
    for line in text.lines() {
        let Some((_, directive)) = line.split_once("{ dg-") else { continue };
        if directive.starts_with("add-options ieee") {
            switches.push("-mieee".into());
        }
        let options = ["options ", "additional-options "];
        let Some(rest) = options.iter().find_map(|option| directive.strip_prefix(option)) else { continue };
        let mut quoted = rest.split('"');
        let given = quoted.nth(1).unwrap_or_default();
        if !quoted.next().is_some_and(|rest| rest.contains("target")) {
            switches.extend(given.split_whitespace().map(String::from));
        }
    }
    switches
}

/// The switches that a driver adds for every machine: what it does under no condition.
fn added_by_driver(driver: &str) -> Vec<String> {
    let commands = ["lappend additional_flags ", "set additional_flags "];
    let flags = |line: &str| commands.iter().find_map(|command| line.strip_prefix(command).map(String::from));
    let words =
        |flags: String| flags.replace('"', " ").split_whitespace().map(String::from).collect::<Vec<_>>();
    driver.lines().filter_map(flags).flat_map(words).collect()
}

/// Compiles a test, if that was not done before; whether there is a program.
pub fn compile(test: &TortureTest) -> Result<bool, Error> {
    let failed = beside(&test.program, ".failed");
    if test.program.exists() || failed.exists() {
        return Ok(test.program.exists());
    }
    if let Some(folder) = test.program.parent() {
        fs::create_dir_all(folder)?;
    }
    // An interrupted compiler's output is not mistaken for a program.
    let unfinished = beside(&test.program, ".unfinished");
    let log = beside(&test.program, ".log");
    let mut compiler = Command::new(COMPILER);
    compiler.current_dir(&test.folder).args(&test.arguments).arg("-o").arg(&unfinished).env("LC_ALL", "C");
    if jobs::run(&mut compiler, COMPILATION, &log)? == End::Exited(0) {
        fs::remove_file(&log)?;
        fs::rename(&unfinished, &test.program)?;
        Ok(true)
    } else {
        fs::rename(&log, &failed)?;
        Ok(false)
    }
}

/// The path with a suffix.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_for_alpha_are_followed() {
        let text = r#"
/* { dg-do run } */
/* { dg-options "-fgnu89-inline -Wno-psabi" } */
/* { dg-additional-options "-mno-stv" { target i?86-*-* x86_64-*-* } } */
/* { dg-options { "-fwrapv" } } */
/* { dg-skip-if "requires -fno-such" { freestanding } } */
/* { dg-add-options ieee } */
"#;
        assert_eq!(directives(text), ["-fgnu89-inline", "-Wno-psabi", "-fwrapv", "-mieee"]);
    }

    #[test]
    fn drivers_add_what_is_under_no_condition() {
        let driver = "if { [istarget avr] } {\n    lappend additional_flags \"-mavr\"\n}\n\
                      lappend additional_flags \"-fno-ivopts\" \"-fno-gcse\"\nreturn 0\n";
        assert_eq!(added_by_driver(driver), ["-fno-ivopts", "-fno-gcse"]);
    }
}
