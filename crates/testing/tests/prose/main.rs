//! The documents: their links lead somewhere, on code hosts and on the site; sentences and lines are short; versions of formats are
//! those of the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use markdown::Document;

mod markdown;

/// A sentence with more words has to be divided.
const MOST_WORDS: usize = 45;

/// A line of prose with more characters has to be broken.
const LONGEST_LINE: usize = 160;

/// Folders with documents, and files that the site has beside the documents (docs/site/make copies them).
const ON_THE_SITE: [&str; 2] = ["docs", "python/examples"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documents of the project, by their paths in it.
fn documents() -> BTreeMap<PathBuf, String> {
    let root = root();
    let mut found = BTreeMap::new();
    for folder in
        ["", "python", "docs", "docs/guide", "docs/design", "crates/report/assets", "crates/analysis/paper"]
    {
        for entry in std::fs::read_dir(root.join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = std::fs::read_to_string(&path).expect("a document");
                found.insert(path.strip_prefix(&root).expect("a path below").to_path_buf(), text);
            }
        }
    }
    assert!(found.len() > 40, "{:?}", found.keys());
    found
}

/// The path that a link in a document leads to, and the anchor in it; nothing if it leads to another site.
fn target(document: &Path, link: &str) -> Option<(PathBuf, Option<String>)> {
    if link.contains("://") {
        return None;
    }
    let (path, anchor) = match link.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_string())),
        None => (link, None),
    };
    if path.is_empty() {
        return Some((document.to_path_buf(), anchor));
    }
    let mut target = document.parent().expect("a folder").to_path_buf();
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir => {
                assert!(target.pop(), "{}: {link} leaves the project", document.display())
            }
            component => target.push(component),
        }
    }
    Some((target, anchor))
}

#[test]
fn links_lead_to_files_and_headings() {
    let documents = documents();
    let parsed: BTreeMap<&Path, Document> =
        documents.iter().map(|(path, text)| (path.as_path(), Document::parse(text))).collect();
    let (mut checked, mut broken) = (0, Vec::new());
    for (path, document) in &parsed {
        for link in &document.links {
            let Some((target, anchor)) = target(path, link) else { continue };
            checked += 1;
            let has_anchor = match (parsed.get(target.as_path()), &anchor) {
                (Some(document), Some(anchor)) => document.anchors.contains(anchor),
                (_, anchor) => anchor.is_none(),
            };
            if !root().join(&target).is_file() || !has_anchor {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(checked > 150, "{checked} links");
    assert!(broken.is_empty(), "links to no file, to a folder, or to no heading: {broken:#?}");
}

#[test]
fn site_has_every_page_that_its_pages_link_to() {
    let documents = documents();
    let summary = Path::new("docs/site/SUMMARY.md");
    let text = std::fs::read_to_string(root().join(summary)).expect("the contents of the site");
    let links = Document::parse(&text).links;
    let pages: Vec<PathBuf> = links.iter().filter_map(|link| Some(target(summary, link)?.0)).collect();
    let listed: BTreeSet<&PathBuf> = pages.iter().collect();
    assert_eq!(listed.len(), pages.len(), "{}: a page twice", summary.display());
    // What `pathlength man` writes.
    let generated = Path::new("reference/README.md");
    let missing: Vec<_> =
        listed.iter().filter(|page| !documents.contains_key(**page) && **page != generated).collect();
    assert!(missing.is_empty(), "{}: no such documents: {missing:?}", summary.display());
    let in_docs = documents.keys().filter(|path| path.starts_with("docs"));
    let left: Vec<_> = in_docs.filter(|path| !listed.contains(path)).collect();
    assert!(left.is_empty(), "{}: the site lacks {left:?}", summary.display());
    let mut outside = Vec::new();
    for page in pages.iter().filter_map(|page| documents.get_key_value(page)) {
        for link in Document::parse(page.1).links {
            let Some((target, _)) = target(page.0, &link) else { continue };
            let is_there = match target.extension().is_some_and(|extension| extension == "md") {
                true => listed.contains(&target),
                false => ON_THE_SITE.iter().any(|folder| target.starts_with(folder)),
            };
            if !is_there {
                outside.push(format!("{}: {link}", page.0.display()));
            }
        }
    }
    assert!(outside.is_empty(), "links to files that the site does not have: {outside:#?}");
}

#[test]
fn sentences_and_lines_are_short() {
    let mut sentences_read = 0;
    for (path, text) in documents() {
        let document = Document::parse(&text);
        let sentences: Vec<(usize, String)> =
            document.paragraphs.iter().flat_map(|paragraph| paragraph.sentences()).collect();
        sentences_read += sentences.len();
        let long_sentences: Vec<_> = sentences.iter().filter(|(words, _)| *words > MOST_WORDS).collect();
        let prose = |number: usize| {
            document.paragraphs.iter().any(|paragraph| {
                let first = text[..paragraph.range.start].matches('\n').count();
                let last = text[..paragraph.range.end].matches('\n').count();
                (first..=last).contains(&number)
            })
        };
        let lines = text.lines().enumerate().filter(|(_, line)| line.chars().count() > LONGEST_LINE);
        let long_lines: Vec<usize> =
            lines.filter(|(number, _)| prose(*number)).map(|(number, _)| number + 1).collect();
        assert!(
            long_sentences.is_empty() && long_lines.is_empty(),
            "{}: sentences of more than {MOST_WORDS} words: {long_sentences:#?}\nlines of more than {LONGEST_LINE} characters: {long_lines:?}",
            path.display(),
        );
    }
    assert!(sentences_read > 2000, "{sentences_read} sentences");
}

/// Formats of files: where a source states the version, what stands before the number, and what does in the changelog's table.
const FORMATS: [(&str, &str, &str); 6] = [
    ("crates/trace/src/container.rs", "const VERSION: u32 = ", "| traces | the file's header: "),
    (
        "crates/analysis/src/run_counts/file.rs",
        "b\"pathlength counts ",
        "the first line: `pathlength counts ",
    ),
    (
        "crates/spike/src/profile/mod.rs",
        "const VERSION: u32 = ",
        "| profiles for `spike`, and its database | a number in each: ",
    ),
    (
        "crates/spike-environment/src/database.rs",
        "const VERSION: i64 = ",
        "| profiles for `spike`, and its database | a number in each: ",
    ),
    ("crates/spike/src/counts.rs", "b\"PLCOUNT\\x0", "branch logs | the last byte of the first eight: "),
    (
        "crates/spike/src/branch_log/log.rs",
        "b\"PLBRLOG\\x0",
        "branch logs | the last byte of the first eight: ",
    ),
];

#[test]
fn changelog_has_the_versions_of_formats() {
    let changelog = std::fs::read_to_string(root().join("CHANGELOG.md")).expect("the changelog");
    let number = |text: &str, before: &str| {
        // A constant may be the beginning of another one.
        let numbers = text.match_indices(before).map(|(at, _)| &text[at + before.len()..]);
        let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
        numbers.map(digits).find(|digits| !digits.is_empty())
    };
    for (source, before, in_changelog) in FORMATS {
        let text = std::fs::read_to_string(root().join(source)).expect("a source");
        let version = number(&text, before);
        assert!(version.is_some(), "{source} has no {before}");
        assert_eq!(version, number(&changelog, in_changelog), "the version of {source}, and CHANGELOG.md's");
    }
}
