//! The graph of imports of the workspace: circles are small, and none spans folders. Crates cannot import each other in
//! circles; files of a crate can, and a circle is read and changed as one file.

mod graph;
mod paths;

use std::path::{Path, PathBuf};

use graph::Graph;

/// Files that may import each other in a circle, at most.
const LARGEST_CIRCLE: usize = 3;

/// The root file of each crate's sources.
fn crates() -> Vec<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = std::fs::read_dir(workspace.join("crates")).expect("the workspace's crates");
    let mut roots: Vec<_> = folders
        .map(|folder| folder.expect("a folder").path())
        .chain([workspace.join("python")])
        .flat_map(|folder| ["lib.rs", "main.rs"].map(|root| folder.join("src").join(root)))
        .filter(|root| root.exists())
        .collect();
    roots.sort();
    roots
}

/// The circles of a crate that are too large or span folders, a line each.
fn offending_circles(root: &Path) -> Vec<String> {
    let graph = Graph::of_crate(root);
    let circles = graph.circles();
    let offends = |circle: &&Vec<usize>| circle.len() > LARGEST_CIRCLE || graph.spans_folders(circle);
    circles.iter().filter(offends).map(|circle| graph.names(circle).join(" ")).collect()
}

#[test]
fn circles_of_imports_are_small_and_in_one_folder() {
    let roots = crates();
    assert!(roots.len() > 10, "the crates were not found");
    let offending: Vec<_> = roots
        .iter()
        .flat_map(|root| {
            offending_circles(root).into_iter().map(|line| format!("{}: {line}", root.display()))
        })
        .collect();
    assert!(offending.is_empty(), "files import each other in circles:\n{}", offending.join("\n"));
}

/// Writes a crate's files and returns its root.
fn crate_of(folder: &Path, files: &[(&str, &str)]) -> PathBuf {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    folder.join("lib.rs")
}

#[test]
fn circles_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = crate_of(
        folder.path(),
        &[
            ("lib.rs", "mod a; mod b; mod c; mod d; pub use d::D;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "pub struct B; fn f() -> crate::c::C { todo!() }"),
            ("c.rs", "pub struct C; fn f() { assert!(crate::D::new()); }"),
            ("d.rs", "use super::a; pub struct D; fn f(_: a::A) {}"),
        ],
    );
    assert_eq!(offending_circles(&root), ["a.rs b.rs c.rs d.rs"]);
}

#[test]
fn circles_across_folders_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = crate_of(
        folder.path(),
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod inner; pub use inner::Inner;"),
            ("a/inner.rs", "pub struct Inner; use crate::b::B;"),
            ("b.rs", "pub struct B(crate::a::Inner);"),
        ],
    );
    assert_eq!(offending_circles(&root), ["a/inner.rs b.rs"]);
}

#[test]
fn a_module_and_its_children_are_one_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = crate_of(
        folder.path(),
        &[
            ("lib.rs", "mod a;"),
            ("a.rs", "mod one; mod two; use one::One; pub struct A;"),
            ("a/one.rs", "use super::A; pub struct One;"),
            ("a/two.rs", "use super::A; #[cfg(test)] mod tests { use crate::a::one::One; }"),
        ],
    );
    let graph = Graph::of_crate(&root);
    let circles: Vec<_> = graph.circles().iter().map(|circle| graph.names(circle).join(" ")).collect();
    assert_eq!(circles, ["a.rs a/one.rs"]);
    assert!(offending_circles(&root).is_empty());
}
