//! The numbers in the C library's headers, of a guest and of the host, for tests of conversion tables.

use std::collections::BTreeMap;
use std::process::Command;

fn run(command: &mut Command, what: &str) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{what} is needed for this test: {error}"));
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A compiler for a guest, and what executes its programs.
pub struct CrossCompiler {
    pub compiler: &'static str,
    pub emulator: &'static str,
    pub sysroot: &'static str,
}

impl CrossCompiler {
    /// The macros of some headers whose names `wanted` accepts, with their values on the guest and on the host; only macros
    /// that both define.
    pub fn constants(&self, headers: &[&str], wanted: impl Fn(&str) -> bool) -> BTreeMap<String, (u64, u64)> {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let includes: String = headers.iter().map(|header| format!("#include <{header}>\n")).collect();
        let source = path("headers.c");
        std::fs::write(&source, format!("#define _GNU_SOURCE\n{includes}")).unwrap();
        let macros = run(Command::new(self.compiler).args(["-E", "-dM"]).arg(&source), self.compiler);
        let names = macros.lines().filter_map(|line| line.split(' ').nth(1)).filter(|name| wanted(name));
        let prints: String = names
            .map(|name| {
                format!("#ifdef {name}\nprintf(\"{name} %llx\\n\", (unsigned long long){name});\n#endif\n")
            })
            .collect();
        let program = format!(
            "#define _GNU_SOURCE\n#include <stdio.h>\n{includes}int main(void) {{\n{prints}return 0;\n}}\n"
        );
        std::fs::write(&source, program).unwrap();
        let mut values = [self.compiler, "cc"].map(|compiler| {
            let binary = path(compiler);
            run(Command::new(compiler).arg("-w").arg("-o").arg(&binary).arg(&source), compiler);
            let text = if compiler == "cc" {
                run(&mut Command::new(&binary), "the host's program")
            } else {
                run(Command::new(self.emulator).args(["-L", self.sysroot]).arg(&binary), self.emulator)
            };
            let value = |line: &str| {
                let (name, value) = line.split_once(' ').unwrap();
                (name.to_string(), u64::from_str_radix(value, 16).unwrap())
            };
            text.lines().map(value).collect::<BTreeMap<_, _>>()
        });
        let guest = std::mem::take(&mut values[0]);
        let both = guest
            .into_iter()
            .filter_map(|(name, guest)| Some((name.clone(), (guest, values[1].get(&name)?))));
        both.map(|(name, (guest, host))| (name, (guest, *host))).collect()
    }
}

/// Whether a macro without parameters has a name that begins so.
pub fn has_prefix(name: &str, prefixes: &[&str]) -> bool {
    !name.contains('(') && prefixes.iter().any(|prefix| name.starts_with(prefix))
}
