//! The form of an output file, by its name: one rule for every command.

use std::path::Path;

use crate::Format;

/// The form that the end of a file's name asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileForm {
    /// Tables.
    Tables(Format),
    /// A page of HTML.
    Page,
    /// A picture.
    Svg,
    /// Collapsed stacks.
    Collapsed,
    /// A profile for pprof.
    Pprof,
    /// A profile for KCachegrind.
    Callgrind,
    /// Counts that `count` reads again.
    SavedCounts,
    /// A form that no command writes.
    Foreign,
}

/// Ends of names, without regard to case. The first one that fits decides.
const FORMS: [(&str, FileForm); 18] = [
    ("csv", FileForm::Tables(Format::Csv)),
    ("json", FileForm::Tables(Format::Json)),
    ("parquet", FileForm::Tables(Format::Parquet)),
    ("md", FileForm::Tables(Format::Markdown)),
    ("html", FileForm::Page),
    ("svg", FileForm::Svg),
    ("folded", FileForm::Collapsed),
    ("pb.gz", FileForm::Pprof),
    ("callgrind", FileForm::Callgrind),
    ("counts", FileForm::SavedCounts),
    ("gz", FileForm::Foreign),
    ("htm", FileForm::Foreign),
    ("jpg", FileForm::Foreign),
    ("pdf", FileForm::Foreign),
    ("png", FileForm::Foreign),
    ("tsv", FileForm::Foreign),
    ("xlsx", FileForm::Foreign),
    ("xml", FileForm::Foreign),
];

impl FileForm {
    /// The form of a file. None if its name asks for none, as `out.txt`, or if it is a directory.
    pub fn of(path: &Path) -> Option<FileForm> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let ends = |&&(end, _): &&(&str, FileForm)| {
            name.strip_suffix(end).is_some_and(|before| before.len() > 1 && before.ends_with('.'))
        };
        let (_, form) = FORMS.iter().find(ends)?;
        (!path.is_dir()).then_some(*form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ask_for_forms() {
        let of = |name: &str| FileForm::of(Path::new(name));
        assert_eq!(of("a/x.csv"), Some(FileForm::Tables(Format::Csv)));
        assert_eq!(of("X.JSON"), Some(FileForm::Tables(Format::Json)));
        assert_eq!(of("x.pb.gz"), Some(FileForm::Pprof));
        assert_eq!(of("x.gz"), Some(FileForm::Foreign));
        for none in ["x", "csv", ".csv", "x.txt", "x.csv.old", "", "/", "x.1.2"] {
            assert_eq!(of(none), None, "{none}");
        }
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("x.csv");
        std::fs::create_dir(&named).unwrap();
        assert_eq!(FileForm::of(&named), None);
    }
}
