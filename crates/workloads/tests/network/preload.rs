//! The stack as a preloaded library: an unmodified program echoes, and checks what is echoed, against the host's TCP, in each of the ways in which
//! programs wait and move data.

use std::process::{Command, Output};

use super::programs;

/// The output of a shell's commands in a network of their own; $T is the program, $L the library.
fn in_network(form: &str, commands: &str) -> Output {
    let own = "unshare --net true 2>/dev/null && set -- --net || set -- --map-root-user --net; exec unshare \"$@\" sh -c \"$COMMANDS\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", own]).env("COMMANDS", commands).env("NETWORK_FORM", form);
    shell.env("T", programs().join("preload_test")).env("L", programs().join("libnetwork.so"));
    shell.output().expect("sh starts")
}

#[test]
fn unmodified_programs_use_the_stack() {
    let serving = "mkfifo $D/$1; $3 $T serve $1 > $D/$1 & S=$!; read ready < $D/$1";
    let host_serves = serving.replace("$3", "").replace("$1", "0.0.0.0");
    let stack_serves = serving.replace("$3", "LD_PRELOAD=$L").replace("$1", "10.99.0.2");
    let commands = format!(
        "D=$(mktemp -d); {host_serves}; LD_PRELOAD=$L timeout 60 $T use 10.99.0.1; A=$?; kill $S
         {stack_serves}; timeout 60 $T use 10.99.0.2; B=$?; kill $S; rm -r $D; exit $((A + B))"
    );
    std::thread::scope(|scope| {
        for form in ["traditional", "checksum", "segmentation", "dart"] {
            let commands = &commands;
            scope.spawn(move || {
                let output = in_network(form, commands);
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{form}: {}\n{errors}", output.status);
            });
        }
    });
}

/// A program that the stack cannot serve ends with a sentence about it.
#[test]
fn unmodified_programs_hear_why_the_stack_cannot_serve_them() {
    let cases = [
        ("traditional", "LD_PRELOAD=$L $T fork 10.99.0.1", "a process that it has forked uses a socket"),
        ("traditional", "LD_PRELOAD=$L $T stdio 10.99.0.1", "it reads or writes a socket by stdio"),
        ("other", "LD_PRELOAD=$L $T stdio 10.99.0.1", "NETWORK_FORM must be"),
    ];
    for (form, commands, reason) in cases {
        let output = in_network(form, commands);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(126), "{errors}");
        assert!(
            errors.starts_with("libnetwork: this program cannot use the stack: ") && errors.contains(reason),
            "{errors}"
        );
    }
}
