//! `qemu`: a program of this machine is recorded, and its trace read by the other commands.

use std::fs;
use std::process::Command;

use crate::support::run;

const SOURCE: &str = r#"
static volatile long numbers[512];
__attribute__((noinline)) static void fill(void) { for (int i = 0; i < 512; i++) numbers[i] = i; }
void _start(void) {
    fill();
    asm volatile("syscall" : : "a"(60), "D"(7) : "memory");
}
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn traces_of_other_instruction_sets_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let [source, program, trace] =
        ["program.c", "program", "program.trace"].map(|name| folder.path().join(name));
    fs::write(&source, SOURCE).unwrap();
    let options = [
        "-O1",
        "-g",
        "-static",
        "-nostdlib",
        "-ffreestanding",
        "-fcf-protection=none",
        "-fno-stack-protector",
    ];
    let compiled = Command::new("cc").args(options).arg("-o").arg(&program).arg(&source).status();
    assert!(compiled.unwrap().success());
    let [program, trace] = [program, trace].map(|path| path.to_str().unwrap().to_owned());
    assert_eq!(run(&format!("qemu -o {trace} {program}")).code(), 7);

    let csv = |words: &str| run(&format!("{words} --format csv {trace}")).quiet_success();
    let caches = csv("caches --by function");
    assert!(caches.lines().any(|line| line.starts_with("fill,program,")), "{caches}");
    // Models name functions as the trace does.
    let calls = csv("calls --by caller --function fill");
    assert!(calls.lines().any(|line| line.starts_with("fill,_start,program,1,")), "{calls}");
    // Lines of source and variables are those of the file's debug information.
    let lines = csv("caches --by line");
    assert!(lines.contains("program.c:3"), "{lines}");
    let source = csv("annotate --function fill");
    assert!(source.contains("static void fill(void)"), "{source}");
    // Instructions are disassembled from their code.
    assert!(source.lines().any(|line| line.contains("    ret")), "{source}");
    let arrays = run(&format!("strides --by array --format csv {trace}")).noted_success();
    assert!(arrays.contains("numbers,"), "{arrays}");
    // The stores are those of the loop and of the call.
    let kinds = csv("show --table kinds");
    assert!(kinds.lines().any(|line| line.starts_with("stores,513,")), "{kinds}");
    run(&format!("check {trace}")).quiet_success();
    let reason = run(&format!("time {trace}")).failure();
    assert!(reason.contains("qemu-x86_64 has no registers"), "{reason}");
}
