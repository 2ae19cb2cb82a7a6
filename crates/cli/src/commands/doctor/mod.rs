//! `pathlength doctor`: what is present, what is missing, and how to get it.

mod host;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use image::Image;
use table::{Kind, Table, Value};
use workloads::toolchain::{NATIVE, ORIGINAL};

use crate::arguments::DoctorOptions;

/// Commands that make or debug programs, what they are for, and Debian's packages with them. None of them is needed to
/// run a program.
const TOOLS: [(&str, &str, &str); 15] = [
    (ORIGINAL.compiler, "making programs; build, study", ORIGINAL.package),
    ("alpha-linux-gnu-g++", "making programs in C++", "g++-alpha-linux-gnu"),
    ("alpha-linux-gnu-gfortran", "study strides", "gfortran-alpha-linux-gnu"),
    ("gdb-multiarch", "run --gdb", "gdb-multiarch"),
    (NATIVE.compiler, "build, study", "gcc libc6-dev"),
    ("make", "build postgresql", "make"),
    ("bzip2", "build postgresql", "bzip2"),
    ("zic", "build postgresql", "libc-bin"),
    ("apt-get", "build postgresql", "apt"),
    ("cargo", "study byteword, in a checkout", "rustup"),
    ("qemu-system-alpha", "pathlength system", "qemu-system-misc"),
    ("qemu-x86_64", "pathlength qemu, programs of x86-64", "qemu-user"),
    ("qemu-aarch64", "pathlength qemu, programs of AArch64", "qemu-user"),
    ("qemu-alpha", "Pathlength's own tests", "qemu-user"),
    ("callgrind_annotate", "Pathlength's own tests", "valgrind"),
];

/// The package with the C library for Alpha, which programs load when they run.
const LIBRARY_PACKAGE: &str = "libc6.1-alpha-cross";

/// The result of one check.
pub struct Check {
    name: String,
    is_needed: bool,
    purpose: &'static str,
    /// What was found, or what is there instead.
    found: Result<String, String>,
    remedy: String,
}

impl Check {
    fn needed(name: impl Into<String>, purpose: &'static str, found: Result<String, String>) -> Check {
        Check { name: name.into(), is_needed: true, purpose, found, remedy: String::new() }
    }

    fn optional(name: impl Into<String>, purpose: &'static str, found: Result<String, String>) -> Check {
        Check { is_needed: false, ..Check::needed(name, purpose, found) }
    }

    /// How to get what is missing.
    fn get(self, remedy: impl Into<String>) -> Check {
        Check { remedy: remedy.into(), ..self }
    }

    fn row(self) -> Vec<Value> {
        let need = if self.is_needed { "needed" } else { "optional" };
        let (state, found, remedy) = match self.found {
            Ok(found) => ("ok", found, Value::Missing),
            Err(found) => ("missing", found, self.remedy.into()),
        };
        vec![self.name.into(), state.into(), need.into(), self.purpose.into(), found.into(), remedy]
    }
}

/// Checks the host and writes a row for each check. The exit status is 1 if something needed is missing.
pub fn run(options: &DoctorOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    output.check(false)?;
    let mut checks = host::checks();
    checks.extend(libraries(&options.sysroot));
    checks.extend(TOOLS.map(tool));
    checks.sort_by_key(|check| !check.is_needed);
    let missing = |is_needed| {
        let is_missing = |check: &&Check| check.found.is_err() && check.is_needed == is_needed;
        checks.iter().filter(is_missing).count()
    };
    let (needed, optional) = (missing(true), missing(false));
    let columns = ["what", "state", "need", "for", "found", "how to get it"].map(|name| (name, Kind::Text));
    let mut table = Table::new("doctor", "What Pathlength needs, and what it can use", &columns);
    table.notes.push(match (needed, optional) {
        (0, 0) => "Nothing is missing.".into(),
        (0, _) => format!("All that is needed is present. Optional and missing: {optional}."),
        _ => format!(
            "Needed and missing: {needed}, so that programs may not run. Optional and missing: {optional}."
        ),
    });
    checks.into_iter().for_each(|check| table.row(check.row()));
    crate::console::write(&[table], output)?;
    Ok(if needed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The dynamic loader and the C library, which must be intact.
fn libraries(sysroot: &Path) -> [Check; 2] {
    [("loader for Alpha", "ld-linux.so.2"), ("C library for Alpha", "libc.so.6.1")].map(|(what, file)| {
        let path = sysroot.join("lib").join(file);
        let (found, action) = match Image::open(&path) {
            Ok(_) => (Ok(path.display().to_string()), ""),
            Err(_) if !path.exists() => (Err(format!("no {}", path.display())), "install"),
            Err(error) => (Err(error.to_string()), "install --reinstall"),
        };
        let remedy = format!("apt-get {action} {LIBRARY_PACKAGE}; or --sysroot DIR");
        Check::needed(what, "dynamically linked programs", found).get(remedy)
    })
}

fn tool((command, purpose, package): (&'static str, &'static str, &'static str)) -> Check {
    let found = find_command(command).map(|path| path.display().to_string());
    Check::optional(command, purpose, found.ok_or("not in PATH".into())).get(match package {
        "rustup" => "https://rustup.rs".into(),
        _ => format!("apt-get install {package}"),
    })
}

/// A command, where the shell would find it, or administrators'.
fn find_command(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_executable = |path: &PathBuf| {
        path.metadata().is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(name))
        .find(is_executable)
}
