//! Lines of source files.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// The largest file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// Source files, read at the first use.
pub(crate) struct SourceFiles<'a> {
    folders: &'a [PathBuf],
    /// By the path that the compiler recorded, the lines; None if there is no such file.
    files: HashMap<String, Option<Vec<String>>>,
    /// Files of the current function that were not found.
    missing: BTreeSet<String>,
}

impl<'a> SourceFiles<'a> {
    /// Files are searched in these folders, if they are not at their recorded paths.
    pub fn new(folders: &'a [PathBuf]) -> SourceFiles<'a> {
        SourceFiles { folders, files: HashMap::new(), missing: BTreeSet::new() }
    }

    /// The text of a line; None if the file, or a line of this number, is not there.
    pub fn line(&mut self, file: &str, line: u32) -> Option<String> {
        let lines = self.files.entry(file.to_owned()).or_insert_with(|| read(file, self.folders));
        if lines.is_none() {
            self.missing.insert(file.to_owned());
        }
        let index = (line as usize).checked_sub(1)?;
        lines.as_ref()?.get(index).cloned()
    }

    /// Notes on the files that were not found since the last call.
    pub fn notes(&mut self) -> Vec<String> {
        let missing = std::mem::take(&mut self.missing);
        missing
            .into_iter()
            .map(|file| format!("{file} is not there: --source names a folder with it."))
            .collect()
    }
}

/// Reads a file at its recorded path, or in a folder: there by its path, the beginning of which may be missing.
fn read(file: &str, folders: &[PathBuf]) -> Option<Vec<String>> {
    let recorded = Path::new(file);
    let parts: Vec<_> = recorded.iter().filter(|part| *part != "/" && *part != "..").collect();
    let ends = |folder: &PathBuf| -> Vec<PathBuf> {
        (0..parts.len()).map(|first| folder.join(parts[first..].iter().collect::<PathBuf>())).collect()
    };
    let paths = std::iter::once(recorded.to_path_buf()).chain(folders.iter().flat_map(ends));
    paths.into_iter().find_map(|path| {
        let metadata = fs::metadata(&path).ok()?;
        let is_text = metadata.is_file() && metadata.len() <= MAX_BYTES;
        let bytes = is_text.then(|| fs::read(&path).ok()).flatten()?;
        Some(String::from_utf8_lossy(&bytes).lines().map(|line| line.replace('\t', "    ")).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_the_end_of_their_path() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::write(folder.path().join("src/a.c"), "first\n\tsecond").unwrap();
        let folders = [folder.path().to_path_buf()];
        let mut files = SourceFiles::new(&folders);
        assert_eq!(files.line("/built/elsewhere/src/a.c", 2).as_deref(), Some("    second"));
        assert_eq!(files.line("../src/a.c", 1).as_deref(), Some("first"));
        assert_eq!((files.line("../src/a.c", 0), files.line("../src/a.c", 3)), (None, None));
        assert!(files.notes().is_empty());
        assert_eq!(files.line("/built/elsewhere/b.c", 1), None);
        assert!(files.notes()[0].contains("/built/elsewhere/b.c"));
        assert!(files.notes().is_empty());
    }
}
