//! The suites described by `suites.toml`, the differences explained by `known.toml`, and the selection of suites to
//! run.

use serde::Deserialize;

use crate::Error;

/// A test suite that others wrote.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Its name in `SUITE`, and the name of its folder in `build/conformance`.
    pub name: String,
    /// Debian's source package, and where its sources come from.
    pub package: String,
    pub home: String,
    /// A command that unpacks `$ARCHIVE` into the working directory; usually [`UNPACK`].
    unpack: Option<String>,
    /// How long a test may take.
    pub seconds: u64,
    pub tests: Tests,
}

/// The kind of the tests: exactly one of these.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Tests {
    /// Programs that are compiled at several levels, and that exit with 0 if they pass.
    Torture { folder: String, levels: Vec<String> },
    /// Tests that commands of the shell build, list and run, in the folder of the sources.
    Scripts(Scripts),
    /// Tests that automake's `make check` runs in these folders, built by such a command, and DejaGnu's tests of some
    /// programs, each with its tests in a folder of its own.
    Automake {
        build: String,
        folders: Vec<String>,
        #[serde(default)]
        dejagnu: Vec<String>,
    },
}

/// The commands of a suite, for `sh -e`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scripts {
    /// Configures and builds with `$CC`, for `$HOST`, an option of configure.
    pub build: String,
    /// Prints the tests' names, one a line.
    pub list: String,
    /// Carries out `$TEST`, with `$WORK` for its files: 0 if it passed, 77 if it cannot be done here.
    pub test: String,
}

/// Lists the tests of automake's makefiles in the folders that are given.
const AUTOMAKE_LIST: &str = r#"
for folder; do
    printf 'list:\n\t@printf "%%s\\n" $(TEST_LOGS)\n' | make -s -C "$folder" -f Makefile -f - list |
        sed -e "s|^|$folder/|" -e 's|^\./||' -e 's|\.log$||'
done
"#;

/// Lists the scripts of DejaGnu's tests of `$PROGRAMS`.
const DEJAGNU_LIST: &str = r#"
for program in $PROGRAMS; do
    ls "$program/testsuite/$program".*/*.exp
done
"#;

/// Carries out such a test, and ends. DejaGnu's tests leave files where they run, and look for the programs in
/// the folders above. A test that cannot be done here neither passes nor fails.
const DEJAGNU_TEST: &str = r#"
case $TEST in
*.exp)
    top=$PWD of=${TEST%%/*} folder=${TEST%/*}
    for program in $PROGRAMS; do
        mkdir "$WORK/$program"
        ln -s "$top/$program"/* "$WORK/$program"
    done
    mkdir "$WORK/$of/run"
    cd "$WORK/$of/run"
    status=0
    runtest --tool "$of" --srcdir "$top/$of/testsuite" --directory "${folder##*/}" "${TEST##*/}" || status=1
    cat "$of.log"
    [ $status = 0 ] || exit 1
    grep -q '^# of expected \(passes\|failures\)' "$of.sum" || exit 77
    exit 0
    ;;
esac
"#;

/// Carries out one of automake's tests.
const AUTOMAKE_TEST: &str = r#"
for folder; do
    case $TEST in "$folder"/*) cd "$folder" && TEST=${TEST#"$folder"/} ;; esac
done
rm -f "$TEST.log" "$TEST.trs"
make -s "$TEST.log"
cat "$TEST.log"
result=$(sed -n 's/^:test-result: //p' "$TEST.trs")
echo "$result"
case $result in
PASS | XFAIL) ;;
SKIP) exit 77 ;;
*) exit 1 ;;
esac
"#;

const UNPACK: &str = "tar -xf \"$ARCHIVE\" --strip-components=1";

impl Suite {
    pub fn unpack(&self) -> &str {
        self.unpack.as_deref().unwrap_or(UNPACK)
    }

    /// The scripts that build, list and carry out the tests, if there are any.
    pub fn scripts(&self) -> Option<Scripts> {
        match &self.tests {
            Tests::Torture { .. } => None,
            Tests::Scripts(scripts) => Some(scripts.clone()),
            Tests::Automake { build, folders, dejagnu } => {
                let (folders, programs) = (folders.join(" "), dejagnu.join(" "));
                let script =
                    |parts: [&str; 2]| format!("PROGRAMS=\"{programs}\"\nset -- {folders}{}", parts.concat());
                let list = script([DEJAGNU_LIST, AUTOMAKE_LIST]);
                let test = script([DEJAGNU_TEST, AUTOMAKE_TEST]);
                Some(Scripts { build: build.clone(), list, test })
            }
        }
    }

    /// A text that contains everything on which a build depends.
    pub fn recipe(&self) -> String {
        let build = self.scripts().map(|scripts| scripts.build).unwrap_or_default();
        format!("{}\n{}\n{build}", self.package, self.unpack())
    }
}

/// A difference that is explained.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    pub suite: String,
    /// The test's name; for a program of several levels without the level.
    pub test: String,
    pub reason: String,
}

impl Known {
    pub fn explains(&self, suite: &str, test: &str) -> bool {
        self.suite == suite && is_named(test, &self.test)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suites {
    suite: Vec<Suite>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AllKnown {
    #[serde(default)]
    known: Vec<Known>,
}

pub fn suites() -> Result<Vec<Suite>, Error> {
    let all: Suites =
        toml::from_str(include_str!("suites.toml")).map_err(|error| format!("suites.toml: {error}"))?;
    Ok(all.suite)
}

pub fn known() -> Result<Vec<Known>, Error> {
    let all: AllKnown =
        toml::from_str(include_str!("known.toml")).map_err(|error| format!("known.toml: {error}"))?;
    Ok(all.known)
}

/// The suites and the test that `SUITE` and `TEST` choose.
pub struct TestSelection {
    suites: Vec<String>,
    test: Option<String>,
}

impl TestSelection {
    /// From the environment; an empty variable is none.
    pub fn from_variables(suites: &[Suite]) -> Result<TestSelection, Error> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let wanted = variable("SUITE").unwrap_or_default();
        let wanted: Vec<_> = wanted.split_whitespace().map(String::from).collect();
        let unknown = wanted.iter().find(|name| !suites.iter().any(|suite| suite.name == **name));
        if let Some(name) = unknown {
            let names: Vec<_> = suites.iter().map(|suite| &*suite.name).collect();
            return Err(
                format!("SUITE={name}: there is no such suite; there are {}", names.join(", ")).into()
            );
        }
        Ok(TestSelection { suites: wanted, test: variable("TEST") })
    }

    pub fn wants_suite(&self, suite: &Suite) -> bool {
        self.suites.is_empty() || self.suites.contains(&suite.name)
    }

    pub fn wants_test(&self, test: &str) -> bool {
        self.test.as_deref().is_none_or(|wanted| is_named(test, wanted))
    }

    /// The test that was asked for.
    pub fn test(&self) -> Option<&str> {
        self.test.as_deref()
    }
}

/// Whether a test has this name, with or without the level.
fn is_named(test: &str, name: &str) -> bool {
    test.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(" -"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_complete() {
        let suites = suites().unwrap();
        for known in known().unwrap() {
            assert!(suites.iter().any(|suite| suite.name == known.suite), "{}", known.suite);
            assert!(!known.reason.is_empty(), "{} {}", known.suite, known.test);
        }
    }

    #[test]
    fn tests_are_named_with_or_without_their_level() {
        assert!(is_named("builtins/abs-1 -O2", "builtins/abs-1"));
        assert!(is_named("builtins/abs-1 -O2", "builtins/abs-1 -O2"));
        assert!(!is_named("builtins/abs-1 -O2", "builtins/abs-1 -O3"));
        assert!(!is_named("builtins/abs-10 -O2", "builtins/abs-1"));
    }
}
