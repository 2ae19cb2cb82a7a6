//! The runners of tests: the host's processor, qemu-alpha, and `pathlength run`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

pub const SYSROOT: &str = "/usr/alpha-linux-gnu";

/// The suffix of Alpha's programs while a launcher has their names.
const KEPT: &str = ".alpha";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestRunner {
    Native,
    Qemu,
    Pathlength,
}

impl TestRunner {
    pub const ALL: [TestRunner; 3] = [TestRunner::Native, TestRunner::Qemu, TestRunner::Pathlength];
    /// Those that run Alpha's programs.
    pub const ALPHA: [TestRunner; 2] = [TestRunner::Qemu, TestRunner::Pathlength];

    pub fn name(self) -> &'static str {
        match self {
            TestRunner::Native => "native",
            TestRunner::Qemu => "qemu-alpha",
            TestRunner::Pathlength => "pathlength",
        }
    }
}

/// The programs that the runners need.
pub struct Runners {
    pathlength: PathBuf,
    launcher: PathBuf,
    /// The variables of every test.
    environment: Vec<(OsString, OsString)>,
    /// The variables by which the host's programs start Alpha's by `pathlength run`.
    interposed: Vec<(OsString, OsString)>,
}

impl Runners {
    /// The command is beside this program; its files go into `folder`.
    pub fn new(folder: &Path) -> Result<Runners, Error> {
        let pathlength = std::env::current_exe()?.with_file_name("pathlength");
        if !pathlength.exists() {
            let name = pathlength.display();
            return Err(format!("{name} is missing: cargo build --release --workspace --bins").into());
        }
        let mut command = vec![OsString::from(&pathlength)];
        command.extend(["run", "--sysroot", SYSROOT, "--name"].map(OsString::from));
        let interposed = interpose::environment(&command)?;
        let parts = |variable: OsString| {
            let bytes = variable.as_bytes();
            let equals = bytes.iter().position(|&byte| byte == b'=').unwrap_or(bytes.len() - 1);
            let part = |bytes| std::ffi::OsStr::from_bytes(bytes).to_owned();
            (part(&bytes[..equals]), part(&bytes[equals + 1..]))
        };
        let interposed = interposed.into_iter().map(parts).collect();
        // Not in what the tests believe to be their home.
        let cache = folder.join("cache").into_os_string();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let fixed = [("LC_ALL", "C"), ("TZ", "UTC0"), ("TERM", "dumb"), ("SHELL", "/bin/sh")];
        let fixed = fixed.into_iter().map(|(name, value)| (name.into(), value.into()));
        let environment = fixed.chain([("XDG_CACHE_HOME".into(), cache), ("PATH".into(), path)]).collect();
        Ok(Runners { pathlength, launcher: launcher(folder)?, environment, interposed })
    }

    /// The command that runs a program of Alpha.
    pub fn program(&self, runner: TestRunner, program: &Path) -> Command {
        let (name, arguments) = match runner {
            TestRunner::Native => (program, &[][..]),
            TestRunner::Qemu => ("qemu-alpha".as_ref(), &["-L", SYSROOT][..]),
            TestRunner::Pathlength => (&*self.pathlength, &["run", "--sysroot", SYSROOT][..]),
        };
        let mut command = self.command(name);
        command.args(arguments);
        if runner != TestRunner::Native {
            command.arg(program);
        }
        command
    }

    /// The command that runs a script in the folder of a suite, whose programs [`Runners::install`] has
    /// prepared.
    pub fn script(&self, runner: TestRunner, script: &str) -> Command {
        let mut command = self.command("sh".as_ref());
        command.args(["-e", "-c", script]);
        if runner == TestRunner::Pathlength {
            command.envs(self.interposed.iter().cloned());
        }
        command
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.environment.iter().cloned());
        command
    }

    /// Makes scripts in the folder start its programs of Alpha by this runner.
    pub fn install(&self, runner: TestRunner, folder: &Path) -> Result<(), Error> {
        for program in programs(folder)? {
            let mut kept = program.clone().into_os_string();
            kept.push(KEPT);
            let kept = PathBuf::from(kept);
            if !kept.exists() {
                fs::rename(&program, &kept)?;
            }
            let _ = fs::remove_file(&program);
            match runner {
                // Not a link: make compares the times of what it has built.
                TestRunner::Qemu => fs::copy(&self.launcher, &program).map(drop)?,
                _ => fs::hard_link(&kept, &program)?,
            }
        }
        Ok(())
    }
}

/// The launcher that has the names of Alpha's programs for qemu-alpha.
fn launcher(folder: &Path) -> Result<PathBuf, Error> {
    let (source, program) = (folder.join("launcher.c"), folder.join("launcher"));
    fs::write(&source, include_str!("launcher.c"))?;
    // Tests change PATH.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let qemu =
        std::env::split_paths(&path).map(|folder| folder.join("qemu-alpha")).find(|path| path.exists());
    let qemu = qemu.ok_or("qemu-alpha is not installed: run ./setup conformance")?;
    let definitions = [format!("-DSYSROOT=\"{SYSROOT}\""), format!("-DQEMU=\"{}\"", qemu.display())];
    let status =
        Command::new("cc").arg("-O2").args(definitions).arg("-o").arg(&program).arg(&source).status();
    match status {
        Ok(status) if status.success() => Ok(program),
        _ => Err("cc cannot compile launcher.c: run ./setup conformance".into()),
    }
}

/// The programs of Alpha in a folder, under their own names.
fn programs(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == &KEPT[1..]) {
                found.push(path.with_extension(""));
            } else if kind.is_file() && entry.metadata()?.mode() & 0o111 != 0 && is_program(&path)? {
                found.push(path);
            }
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Whether this is a program of Alpha (all that `image` reads), not a library.
fn is_program(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut start)?;
    Ok(start == b"\x7fELF" && image::Image::open(path).is_ok_and(|image| image.interpreter().is_some()))
}
