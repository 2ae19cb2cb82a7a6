//! Sources and builds of suites, in `build/conformance/SUITE`, kept until something changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use workloads::debian;
use workloads::toolchain::{NATIVE, ORIGINAL, Toolchain};

use crate::Error;
use crate::jobs::{self, End};
use crate::suite::Suite;

/// How long a build may take.
const LIMIT: Duration = Duration::from_secs(3600);

/// The folders, and the sources of suites.
pub const FOLDER: &str = "build/conformance";
const SOURCES: &str = "build/sources";

/// The machine that a suite is built for: the folder's name, the compiler, and the option of configure.
pub struct SuiteTarget {
    name: &'static str,
    toolchain: Toolchain,
    host: &'static str,
}

pub const ALPHA: SuiteTarget =
    SuiteTarget { name: "alpha", toolchain: ORIGINAL, host: "--host=alpha-linux-gnu" };
pub const HOST: SuiteTarget = SuiteTarget { name: "native", toolchain: NATIVE, host: "" };

/// The folder with the suite's sources, in which `commands` were carried out.
pub fn build(suite: &Suite, target: &SuiteTarget, commands: &str) -> Result<PathBuf, Error> {
    let parent = std::path::absolute(FOLDER)?.join(&suite.name);
    let (folder, stamp) = (parent.join(target.name), parent.join(format!("{}.complete", target.name)));
    let recipe = format!("{}\n{}\n", target.toolchain.version()?, suite.recipe());
    if fs::read_to_string(&stamp).is_ok_and(|found| found == recipe) {
        return Ok(folder);
    }
    let _ = fs::remove_file(&stamp);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let archive = archive(suite)?;
    eprintln!("conformance: {}: building ({})", suite.name, target.name);
    let script = format!("{}\n{commands}", suite.unpack());
    let mut shell = shell(&script, target);
    shell.current_dir(&folder).env("ARCHIVE", archive);
    let log = parent.join(format!("{}.log", target.name));
    match jobs::run(&mut shell, LIMIT, &log)? {
        End::Exited(0) => {
            fs::write(&stamp, recipe)?;
            Ok(folder)
        }
        _ => {
            Err(format!("{} cannot be built; {} ends so:\n{}", suite.name, log.display(), end_of(&log))
                .into())
        }
    }
}

/// The shell that runs a build script for a target.
pub fn shell(script: &str, target: &SuiteTarget) -> Command {
    let mut shell = Command::new("sh");
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    shell.args(["-e", "-c", script]).env("LC_ALL", "C").env("MAKEFLAGS", format!("-j{jobs}"));
    shell.env("HOST", target.host).env("CC", target.toolchain.compiler).env_remove("MAKELEVEL");
    // Some configure scripts are not for root.
    shell.env("FORCE_UNSAFE_CONFIGURE", "1");
    shell
}

fn archive(suite: &Suite) -> Result<PathBuf, Error> {
    // Once for each suite.
    let name = |text: &str| -> &'static str { text.to_owned().leak() };
    let tell = |_| eprintln!("conformance: {}: downloading the sources of {}", suite.name, suite.package);
    let archive = debian::download(Path::new(SOURCES), name(&suite.package), name(&suite.home), &tell)?;
    Ok(std::path::absolute(archive)?)
}

fn end_of(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}
