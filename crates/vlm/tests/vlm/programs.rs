//! Unmodified programs on a section.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use vlm::{Allocation, Size, usage};

use crate::guard::{Guard, guard_or_skip};

/// Compiles a C program of the tests.
pub fn compile(folder: &Path, source: &str, arguments: &[&str]) -> PathBuf {
    let program = folder.join(source.trim_end_matches(".c"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vlm").join(source);
    let mut command = Command::new("cc");
    let status = command
        .args(["-std=gnu11", "-Wall", "-Werror", "-o"])
        .arg(&program)
        .arg(source)
        .args(arguments)
        .status();
    assert!(status.unwrap().success());
    program
}

fn run(guard: &Guard, program: &Path, arguments: &[&str]) -> Output {
    let mut command = guard.command(&["run", "--section", "orders", "--"]);
    command.arg(program).args(arguments).output().unwrap()
}

#[test]
fn shared_memory_of_each_kind_comes_from_the_section() {
    for allocation in [Allocation::Alloc, Allocation::Fluid] {
        let guard = guard_or_skip!();
        let registry = guard.reserve("orders", Size::mib(64), allocation);
        let program = compile(guard.folder(), "shared_memory.c", &[]);
        for kind in ["anonymous", "hugetlb", "sysv", "posix"] {
            let output = run(&guard, &program, &[kind]);
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{kind}: {errors}");
            let text = String::from_utf8(output.stdout).unwrap();
            // The program prints the line of its memory map, and what its child wrote.
            assert!(text.contains("mounts/orders/"), "{kind}: {text}");
            assert!(text.ends_with("child wrote 42\n"), "{kind}: {text}");
            let usage = usage(&registry, "orders").unwrap();
            assert_eq!((usage.is_in_use, usage.available), (false, Size::mib(64)), "{kind}");
        }
        assert_eq!(guard.counts().total, guard.before().total + 32);
    }
}

#[test]
fn what_does_not_fit_is_said_and_refused() {
    let guard = guard_or_skip!();
    guard.reserve("orders", Size::mib(8), Allocation::Alloc);
    let program = compile(guard.folder(), "shared_memory.c", &[]);
    for kind in ["anonymous", "sysv", "posix"] {
        let output = run(&guard, &program, &[kind]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{kind}: {errors}");
        assert!(errors.contains("section orders has"), "{errors}");
        assert!(errors.contains("the program asks for 32 MiB of shared memory"), "{errors}");
    }
}

#[test]
fn small_and_private_memory_stays_as_it_is() {
    let guard = guard_or_skip!();
    guard.reserve("orders", Size::mib(8), Allocation::Fluid);
    let program = compile(guard.folder(), "shared_memory.c", &[]);
    for kind in ["small", "private"] {
        let text = String::from_utf8(run(&guard, &program, &[kind]).stdout).unwrap();
        assert!(!text.contains("mounts/orders/") && text.contains("child wrote"), "{kind}: {text}");
    }
}

#[test]
fn a_section_has_one_program_at_a_time() {
    let guard = guard_or_skip!();
    guard.reserve("orders", Size::mib(8), Allocation::Alloc);
    let first = guard.command(&["run", "--section", "orders", "--", "sleep", "60"]).spawn();
    let mut first = first.unwrap();
    while !usage(&guard.registry(), "orders").unwrap().is_in_use {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let message = guard.refused(&["run", "--section", "orders", "--", "true"]);
    assert!(message.contains("`orders` is in use"), "{message}");
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(guard.vlm(&["run", "--section", "orders", "--", "true"]).status.success());
    let message = guard.refused(&["run", "--section", "orders", "--", "/no/such/program"]);
    assert!(message.contains("cannot execute /no/such/program"), "{message}");
}
