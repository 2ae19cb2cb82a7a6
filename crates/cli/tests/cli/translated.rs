//! Programs of this machine are counted as they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::run;

/// A function of 202 instructions, which is called three times; then the program ends as its argument says.
const SOURCE: &str = r#"
#include <stdlib.h>
asm(".text\n.globl leaf\n.type leaf, @function\nleaf: mov $100, %ecx\n1: dec %ecx\njnz 1b\nret\n.size leaf, . - leaf");
void leaf(void);
int main(int count, char **words) {
    leaf(); leaf(); leaf();
    if (count > 2) abort();
    return count > 1 ? atoi(words[1]) : 0;
}
"#;

fn compiled(folder: &Path, name: &str, source: &str) -> PathBuf {
    let (file, program) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&file, source).unwrap();
    let status = Command::new("cc").args(["-O1", "-g", "-o"]).arg(&program).arg(&file).status();
    assert!(status.unwrap().success());
    program
}

#[test]
#[cfg(target_arch = "x86_64")]
fn programs_of_this_machine_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "program", SOURCE);
    let words = program.display();
    let functions = run(&format!("count --by function --format csv {words}")).noted_success();
    assert!(functions.lines().any(|line| line.starts_with("leaf,program,606,")), "{functions}");
    // From the first instruction of the dynamic linker on. Notes say of which processor the counts are.
    assert!(functions.lines().any(|line| line.starts_with("_start,ld-linux-x86-64.so.2,")), "{functions}");
    let lines = run(&format!("count --by line --format csv {words}")).noted_success();
    assert!(lines.contains("program.c"), "{lines}");
    // A run is repeated exactly, and saved counts are compared.
    let saved = folder.path().join("program.counts");
    run(&format!("count -o {} {words}", saved.display())).noted_success();
    let longer = compiled(folder.path(), "longer", &SOURCE.replace("leaf(); leaf();", "leaf();"));
    let compared = run(&format!("compare {} {}", saved.display(), longer.display())).noted_success();
    let row = compared.lines().find(|line| line.starts_with("leaf ")).expect(&compared);
    assert!(row.contains(" 606 ") && row.contains(" 404 "), "{row}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn they_end_as_natively() {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "program", SOURCE);
    let words = program.display();
    // With a status or by a signal: the counts are shown nevertheless.
    for (arguments, end) in [("3", "exited with status 3"), ("3 4", "the program was ended by SIGABRT")] {
        let outcome = run(&format!("count {words} {arguments}"));
        assert_eq!(outcome.code(), 1, "{}", outcome.stderr);
        let text = outcome.stdout + &outcome.stderr;
        assert!(text.contains(end) && text.lines().any(|line| line.starts_with("program ")), "{text}");
    }
    let script = folder.path().join("script");
    fs::write(&script, format!("#!{words} 0\n")).unwrap();
    // The interpreter has two arguments then.
    let outcome = run(&format!("count {}", script.display()));
    assert!(outcome.stderr.contains("SIGABRT"), "{}", outcome.stderr);
    for (options, reason) in [
        ("--unit leaf", "units of work are counted in programs of Alpha and RISC-V"),
        ("--children", "--children is for programs of Alpha and RISC-V"),
    ] {
        let refused = run(&format!("count {options} {words}")).failure();
        assert!(refused.contains(reason), "{refused}");
    }
    let damaged = folder.path().join("damaged");
    fs::write(&damaged, &fs::read(&program).unwrap()[..100]).unwrap();
    fs::set_permissions(&damaged, fs::metadata(&program).unwrap().permissions()).unwrap();
    let refused = run(&format!("count {}", damaged.display())).failure();
    assert!(refused.contains("ends before its program headers"), "{refused}");
}
