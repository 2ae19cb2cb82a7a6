//! Programs that the host's compiler makes, and their runs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use pathlength_translator::{TranslatedProgram, TranslatedRun, count};

/// Assembles a program without a library, at fixed addresses.
pub fn assemble(folder: &Path, name: &str, source: &str) -> PathBuf {
    let (file, program) = (folder.join(format!("{name}.s")), folder.join(name));
    std::fs::write(&file, source).unwrap();
    let options = ["-static", "-nostdlib", "-no-pie", "-o"];
    let status = Command::new("cc").args(options).arg(&program).arg(&file).status().unwrap();
    assert!(status.success(), "cc of {name}");
    program
}

/// Compiles a C source by the host's compiler.
pub fn compile(folder: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let (file, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&file, source).unwrap();
    let status = Command::new("cc").args(["-o"]).arg(&program).arg(&file).args(options).status().unwrap();
    assert!(status.success(), "cc of {name}");
    program
}

/// Runs a program without variables on the translator.
pub fn translated(path: &Path, arguments: &[&str]) -> TranslatedRun {
    let arguments = arguments.iter().map(Into::into).collect();
    count(&TranslatedProgram { path: path.into(), arguments, environment: Vec::new() }).unwrap()
}

/// How often each address of code was executed.
pub fn by_address(run: &TranslatedRun) -> HashMap<u64, u64> {
    let mut executions = HashMap::new();
    for (block, &count) in run.counts.blocks.iter().zip(&run.counts.executions) {
        for address in block.addresses() {
            *executions.entry(address).or_insert(0) += count;
        }
    }
    executions
}
