//! Folders for what is not finished, while programs run.

use std::io;
use std::path::Path;

use output_files::ScratchFolder;

/// Makes a [`ScratchFolder`] whose lock no program can reach.
pub fn scratch_folder(parent: &Path, prefix: &str, mode: u32) -> io::Result<ScratchFolder> {
    Ok(ScratchFolder::new(parent, prefix, mode)?.renumbered(linux_user::out_of_reach))
}

/// Makes a folder for this user's temporary files.
pub fn temporary_folder(what: &str) -> io::Result<ScratchFolder> {
    scratch_folder(&std::env::temp_dir(), &format!("pathlength-{what}-"), 0o700)
}
