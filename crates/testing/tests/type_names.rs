//! Names of types: each says in the whole workspace what its type is. Those that are defined more than once stand in a list, which
//! may only become shorter.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The names that are defined more than once, a line each.
const REPEATED: &str = "tests/repeated_types.txt";

/// A file that takes the place of others on some hosts, and so defines their names again.
const STAND_IN: &str = "crates/jit/src/no_compiler.rs";

/// The Rust files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The Rust files of all crates' sources.
fn sources() -> Vec<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates = std::fs::read_dir(workspace.join("crates")).expect("the workspace's crates");
    let crates = crates.map(|entry| entry.expect("an entry").path()).chain([workspace.join("python")]);
    let mut found = Vec::new();
    for source in crates.map(|folder| folder.join("src")).filter(|source| source.is_dir()) {
        files(&source, &mut found);
    }
    found.retain(|path| !path.to_string_lossy().ends_with(STAND_IN));
    found
}

/// Whether an alias names the same type as before, of a generic type with its parameters: `type Block = guest::Block<Cpu>`.
fn keeps_name(alias: &syn::ItemType) -> bool {
    matches!(&*alias.ty, syn::Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == alias.ident))
}

/// The names of the types that modules define.
fn defined(items: &[syn::Item]) -> Vec<String> {
    let names = items.iter().flat_map(|item| match item {
        syn::Item::Mod(module) => module.content.as_ref().map_or(Vec::new(), |(_, items)| defined(items)),
        syn::Item::Struct(item) => vec![item.ident.to_string()],
        syn::Item::Enum(item) => vec![item.ident.to_string()],
        syn::Item::Union(item) => vec![item.ident.to_string()],
        syn::Item::Trait(item) => vec![item.ident.to_string()],
        syn::Item::Type(item) if !keeps_name(item) => vec![item.ident.to_string()],
        _ => Vec::new(),
    });
    names.collect()
}

/// The files that define each name: a file twice if it does so in two modules.
fn definitions(texts: &[(String, String)]) -> BTreeMap<String, Vec<&str>> {
    let mut definitions = BTreeMap::<String, Vec<&str>>::new();
    for (path, text) in texts {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        for name in defined(&file.items) {
            definitions.entry(name).or_default().push(path);
        }
    }
    definitions
}

/// What the list lacks, and what it has in vain, a line each.
fn differences(definitions: &BTreeMap<String, Vec<&str>>, list: &str) -> Vec<String> {
    let listed: BTreeSet<&str> = list.lines().collect();
    let repeated = |name: &str| definitions.get(name).is_some_and(|files| files.len() > 1);
    let unlisted = definitions
        .iter()
        .filter(|(name, _)| repeated(name) && !listed.contains(name.as_str()))
        .map(|(name, files)| {
            format!("{name} is defined in {}: say in the name what each type is", files.join(", "))
        });
    let unique = listed
        .iter()
        .filter(|name| !repeated(name))
        .map(|name| format!("{name} is no longer defined twice: remove it from {REPEATED}"));
    unlisted.chain(unique).collect()
}

#[test]
fn types_have_different_names() {
    let texts: Vec<(String, String)> = sources()
        .iter()
        .map(|path| (path.display().to_string(), std::fs::read_to_string(path).expect("a source")))
        .collect();
    let definitions = definitions(&texts);
    assert!(definitions.len() > 1000, "only {} types were found", definitions.len());
    let list = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(REPEATED)).expect(REPEATED);
    let differences = differences(&definitions, &list);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn repeated_names_are_found() {
    let texts = [
        ("a.rs", "pub struct Entry; enum State {} mod inner { trait Entry {} } struct Block<T>(T);"),
        ("b.rs", "type State = u64; impl A { } pub type Block = crate::Block<u8>; type Alone = u8;"),
    ]
    .map(|(path, text)| (path.to_string(), text.to_string()));
    let definitions = definitions(&texts);
    let said = |list: &str| differences(&definitions, list);
    assert_eq!(said("State\n"), ["Entry is defined in a.rs, a.rs: say in the name what each type is"]);
    assert_eq!(
        said("Alone\nEntry\nState\n"),
        [format!("Alone is no longer defined twice: remove it from {REPEATED}")]
    );
    assert!(said("Entry\nState\n").is_empty());
}
