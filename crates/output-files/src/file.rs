//! Atomic output files: each is written without a name, and replaces the old file when it is complete. Nothing is left
//! of a command that is killed before.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::OutputError;
use crate::unnamed::UnnamedFile;

/// A file that this command reads.
struct ProtectedInput {
    path: PathBuf,
    /// Device and inode: the same file has other names by links, and by /proc/self/fd.
    identity: (u64, u64),
}

/// The inputs of this command. Each file that is written is compared with these.
static INPUTS: Mutex<Vec<ProtectedInput>> = Mutex::new(Vec::new());

/// Declares an input of this command: no output may replace it from now on. Only regular files can be replaced, and
/// need this.
pub fn protect(path: &Path) {
    if let Ok(metadata) = fs::metadata(path)
        && metadata.is_file()
    {
        let input = ProtectedInput { path: path.into(), identity: (metadata.dev(), metadata.ino()) };
        INPUTS.lock().unwrap_or_else(PoisonError::into_inner).push(input);
    }
}

/// Checks that a file is none that this command reads.
pub fn check_not_input(path: &Path) -> Result<(), OutputError> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    let identity = (metadata.dev(), metadata.ino());
    let inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    match inputs.iter().find(|input| input.identity == identity) {
        Some(input) => Err(OutputError::Input { path: path.into(), input: input.path.clone() }),
        None => Ok(()),
    }
}

/// The name that a new file will have.
#[derive(Debug)]
pub struct PendingName {
    path: PathBuf,
    /// The file until then, and the one that it will replace; None if the output is written directly.
    replacement: Option<(UnnamedFile, PathBuf)>,
}

/// Creates a file that replaces the one at `path` by [`PendingName::commit`], with its permissions; until then the old
/// file stays. Without a commit the new file is removed. Devices, pipes and `/dev/stdout` are opened directly. All
/// writes append.
pub fn create(path: &Path) -> Result<(File, PendingName), OutputError> {
    check_not_input(path)?;
    let failed = OutputError::at(path);
    if is_stream(path) {
        let file = File::options().append(true).open(path).map_err(&failed)?;
        return Ok((file, PendingName { path: path.into(), replacement: None }));
    }
    // Absolute, for the program that is run may change the working directory meanwhile.
    let target = std::path::absolute(target(path)).map_err(&failed)?;
    let (file, unnamed) = UnnamedFile::create(parent(&target)).map_err(&failed)?;
    match File::options().append(true).open(&target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        there => there.and_then(|there| keep_permissions(&there, &file)).map_err(&failed)?,
    }
    Ok((file, PendingName { path: path.into(), replacement: Some((unnamed, target)) }))
}

impl PendingName {
    /// A path to the file as it is now.
    pub fn written_path(&self) -> PathBuf {
        match &self.replacement {
            Some((unnamed, _)) if unnamed.is_unnamed() => unnamed.path(),
            _ => self.path.clone(),
        }
    }

    /// Whether the file has no name yet.
    pub fn is_pending(&self) -> bool {
        self.replacement.as_ref().is_some_and(|(unnamed, _)| unnamed.is_unnamed())
    }

    /// Gives the descriptor that is kept for [`commit`](PendingName::commit) another number.
    pub fn renumbered(mut self, how: impl FnOnce(OwnedFd) -> OwnedFd) -> PendingName {
        self.replacement = self.replacement.map(|(unnamed, target)| (unnamed.renumbered(how), target));
        self
    }

    /// Gives the file its name. That may be done several times, and by a process that this one forked.
    pub fn commit(&self) -> Result<(), OutputError> {
        let Some((unnamed, target)) = &self.replacement else { return Ok(()) };
        unnamed.name(target).map_err(OutputError::at(&self.path))
    }
}

/// Checks whether a file could be written, before the work that computes it. Leaves no file.
pub fn check_file(path: &Path) -> Result<(), OutputError> {
    check_not_input(path)?;
    if is_stream(path) { Ok(()) } else { check_writable(parent(path), path) }
}

/// Checks whether a folder could be made, or written to if it is there. Leaves no file.
pub fn check_folder(path: &Path) -> Result<(), OutputError> {
    check_not_input(path)?;
    // Missing folders will be created.
    let there = path.ancestors().find(|folder| folder.exists());
    check_writable(there.unwrap_or(Path::new(".")), path)
}

/// Checks whether a file could be created in a directory for `path`.
fn check_writable(directory: &Path, path: &Path) -> Result<(), OutputError> {
    UnnamedFile::create(directory).map(drop).map_err(OutputError::at(path))
}

/// Follows symbolic links, so that their target is replaced and not the links, even if it does not exist yet.
pub(crate) fn target(path: &Path) -> PathBuf {
    /// As many as Linux follows (path_resolution(7)).
    const MOST_LINKS: usize = 40;
    let mut target = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&target) else { break };
        target = parent(&target).join(next);
    }
    target
}

/// Keeps permissions and, where the host permits it, the owner.
fn keep_permissions(there: &File, file: &File) -> io::Result<()> {
    let metadata = there.metadata()?;
    let _ = fchown(file, Some(metadata.uid()), Some(metadata.gid()));
    file.set_permissions(fs::Permissions::from_mode(metadata.mode() & 0o777))
}

/// Whether an output is written directly: a device, a pipe, or `/dev/stdout` and its like, which name an
/// open file and must never be replaced.
fn is_stream(path: &Path) -> bool {
    let in_proc = |path: PathBuf| path.starts_with("/proc");
    fs::read_link(path).is_ok_and(in_proc)
        || fs::canonicalize(parent(path)).is_ok_and(in_proc)
        || fs::metadata(path).is_ok_and(|there| !there.is_file())
}

/// The directory that a file is in.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}
