//! `pathlength sysroot`: Debian's packages of a guest's architecture, unpacked into a folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::arguments::SysrootOptions;

/// The keys that sign Debian's archive.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The folder in the sysroot with the lists and the files of packages.
const WORK: &str = "var/cache/pathlength";
/// Folders that are links below usr/ since Debian 12; no package has them.
const LINKS: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// Fetches the packages and unpacks them.
pub fn run(options: &SysrootOptions) -> anyhow::Result<ExitCode> {
    let architecture = options.architecture.name();
    let folder = options.output.clone().unwrap_or_else(|| format!("sysroot-{architecture}").into());
    let work = folder.join(WORK);
    for part in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(work.join(part)).with_context(|| format!("cannot make {}", work.display()))?;
    }
    let folder = folder.canonicalize().context("cannot find the folder again")?;
    let apt = AptFolder::new(&folder.join(WORK), options)?;
    text::message!("fetching the list of {architecture}'s packages of {}", options.suite);
    apt.get(&["update"])?;
    text::message!("fetching {} with what they depend on", options.packages.join(", "));
    let mut install = vec!["install", "--download-only", "--yes"];
    install.extend(options.packages.iter().map(String::as_str));
    apt.get(&install)?;
    let number = unpack(&folder.join(WORK).join("archives"), &folder)?;
    for name in LINKS {
        let (link, below) = (folder.join(name), PathBuf::from("usr").join(name));
        if folder.join(&below).is_dir() && fs::symlink_metadata(&link).is_err() {
            symlink(&below, &link).with_context(|| format!("cannot make {}", link.display()))?;
        }
    }
    let shown = folder.display();
    text::message!("{number} packages are in {shown}: pathlength count --sysroot {shown} {shown}/usr/bin/…");
    Ok(ExitCode::SUCCESS)
}

/// Lists, files and settings of apt that have nothing to do with the host's.
struct AptFolder {
    configuration: PathBuf,
}

impl AptFolder {
    fn new(work: &Path, options: &SysrootOptions) -> anyhow::Result<AptFolder> {
        let (architecture, work_name) = (options.architecture.name(), work.display());
        let source = format!(
            "deb [arch={architecture} signed-by={KEYRING}] {} {} main\n",
            options.archive, options.suite
        );
        let settings = format!(
            "Dir::State \"{work_name}\";\n\
             Dir::State::status \"{work_name}/status\";\n\
             Dir::State::lists \"{work_name}/lists\";\n\
             Dir::Cache \"{work_name}\";\n\
             Dir::Cache::archives \"{work_name}/archives\";\n\
             Dir::Etc::sourcelist \"{work_name}/sources.list\";\n\
             Dir::Etc::sourceparts \"/dev/null\";\n\
             Dir::Etc::trusted \"{KEYRING}\";\n\
             Dir::Etc::trustedparts \"/dev/null\";\n\
             APT::Architecture \"{architecture}\";\n\
             APT::Architectures {{ \"{architecture}\"; }};\n\
             APT::Install-Recommends \"false\";\n\
             APT::Sandbox::User \"root\";\n\
             Acquire::Languages \"none\";\n\
             Debug::NoLocking \"true\";\n"
        );
        let configuration = work.join("apt.conf");
        let files = [(work.join("sources.list"), source), (configuration.clone(), settings)];
        for (path, content) in files.into_iter().chain([(work.join("status"), String::new())]) {
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(AptFolder { configuration })
    }

    /// Runs apt-get; its errors are the command's.
    fn get(&self, words: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new("apt-get");
        command.args(["-qq", "-o", "APT::Update::Error-Mode=any"]).args(words);
        let output = command.env("APT_CONFIG", &self.configuration).env("LC_ALL", "C").output();
        let output = output.context("cannot run apt-get: sysroot needs Debian, or a relative of it")?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let reason = said.lines().find_map(|line| line.strip_prefix("E: ")).unwrap_or("it gives no reason");
        bail!("apt-get failed: {}", reason.trim_end_matches('.'))
    }
}

/// Unpacks all packages that were fetched; their number.
fn unpack(archives: &Path, folder: &Path) -> anyhow::Result<usize> {
    let entries = fs::read_dir(archives).with_context(|| format!("cannot read {}", archives.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>();
    let mut packages = paths.with_context(|| format!("cannot read {}", archives.display()))?;
    packages.retain(|path| path.extension().is_some_and(|extension| extension == "deb"));
    packages.sort();
    for package in &packages {
        let output = Command::new("dpkg-deb").arg("-x").arg(package).arg(folder).output();
        let output = output.context("cannot run dpkg-deb: sysroot needs Debian, or a relative of it")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("cannot unpack {}: {}", package.display(), said.lines().next().unwrap_or_default());
        }
    }
    Ok(packages.len())
}
