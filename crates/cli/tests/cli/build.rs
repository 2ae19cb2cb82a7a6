//! `build`: errors when a workload cannot be built, and the files that remain. (The builds themselves are tested in
//! `workloads`.)

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Outcome, ends_within, file, listing, outcome, pathlength, text};

/// The sentence about the failure, after lines of progress.
fn failure(command: Command) -> String {
    let Outcome { status, stdout, stderr, .. } = outcome(command);
    assert_eq!((status.code(), stdout.as_str()), (Some(1), ""), "{stderr}");
    stderr.lines().last().unwrap().to_owned()
}

fn build_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = pathlength(["build"].iter().chain(arguments));
    command.current_dir(folder);
    command
}

#[test]
fn unknown_workloads_are_answered_by_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = outcome(build_in(folder.path(), &["tpcd"]));
    assert_eq!(outcome.status.code(), Some(2));
    assert!(
        outcome.stderr.contains(
            "[possible values: tpcb, tpcc, tpch, orders, postgresql, spmv, technical, network, lwip, graphics]"
        ),
        "{}",
        outcome.stderr
    );
}

#[test]
fn without_a_network() {
    let folder = tempfile::tempdir().unwrap();
    // apt's own settings, whatever they are, are not read; no server listens at the discard port.
    let settings = "Dir::Etc::Main \"/dev/null\"; Dir::Etc::Parts \"/dev/null\";\n\
                    Acquire::http::Proxy \"http://127.0.0.1:9\"; Acquire::Retries \"0\";\n";
    fs::write(folder.path().join("apt.conf"), settings).unwrap();
    let mut command = build_in(folder.path(), &["postgresql"]);
    command.env("APT_CONFIG", folder.path().join("apt.conf"));
    let sentence = failure(command);
    assert!(sentence.starts_with("pathlength: cannot get the sources of postgresql-15"), "{sentence}");
    assert!(sentence.contains("is there a network?"), "{sentence}");
    assert_eq!(listing(&folder.path().join("build/sources")), [""; 0]);
}

#[test]
fn without_the_sources_where_they_should_be() {
    let folder = tempfile::tempdir().unwrap();
    let sentence = failure(build_in(folder.path(), &["postgresql", "--sources", "."]));
    assert!(sentence.contains("part of postgresql-15.*.tar.bz2 on https://www.postgresql.org"), "{sentence}");
}

#[test]
fn without_a_tool_nothing_is_downloaded() {
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools");
    fs::create_dir(&tools).unwrap();
    // Only the compilers are there.
    for compiler in ["cc", "alpha-linux-gnu-gcc"] {
        fs::write(tools.join(compiler), "#!/bin/sh\necho version\n").unwrap();
        fs::set_permissions(tools.join(compiler), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    std::os::unix::fs::symlink("/bin/sh", tools.join("sh")).unwrap();
    let mut command = build_in(folder.path(), &["postgresql"]);
    command.env("PATH", &tools);
    let sentence = failure(command);
    assert!(sentence.contains("install it, on Debian with `apt-get install "), "{sentence}");
    assert_eq!(listing(folder.path()), ["tools"]);
}

/// Sends the signal to the command, or as a terminal does to its group, when the builds have begun.
fn interrupted(signal: i32, group: bool) {
    let folder = tempfile::tempdir().unwrap();
    let builds = folder.path().join("build/tpcb");
    let stderr = file();
    let mut command = build_in(folder.path(), &["tpcb"]);
    command.process_group(0).stdout(Stdio::null()).stderr(stderr.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    while fs::read_dir(&builds).map_or(0, Iterator::count) < 3 {
        assert!(child.try_wait().unwrap().is_none(), "{}", text(&stderr));
        sleep(Duration::from_millis(5));
    }
    let process = child.id() as i32;
    // SAFETY: the child has not been waited for, so the number is its own.
    assert_eq!(unsafe { libc::kill(if group { -process } else { process }, signal) }, 0);
    let status = ends_within(&mut child, Duration::from_secs(20)).expect("an end");
    assert_eq!(status.code(), Some(1));
    let stderr = text(&stderr);
    assert_eq!(stderr.lines().last(), Some("pathlength: the build was interrupted"), "{stderr}");
    assert_eq!(listing(&builds), [""; 0]);
}

#[test]
fn interrupt_leaves_nothing_half_built() {
    interrupted(libc::SIGINT, true);
    interrupted(libc::SIGINT, false);
    interrupted(libc::SIGTERM, false);
}
