//! Which file of a crate imports which.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::paths::{self, Segments};

/// A module: of a file of its own, or within another's.
#[derive(Default)]
struct Module {
    file: usize,
    parent: Option<usize>,
    children: HashMap<String, usize>,
    /// The items defined in the file.
    items: HashSet<String>,
    /// The items that `use` brings in, by their names here.
    imported: HashMap<String, Segments>,
    /// Modules of which `use` brings in all.
    globs: Vec<Segments>,
}

/// The files of a crate and what each imports. Imports for tests are left out.
pub struct Graph {
    folder: PathBuf,
    files: Vec<PathBuf>,
    modules: Vec<Module>,
    /// The module that names a path, and the path.
    named: Vec<(usize, Segments)>,
    imports: Vec<BTreeSet<usize>>,
}

/// Aliases of aliases that are followed, at most.
const DEEPEST: usize = 20;

impl Graph {
    /// Reads a crate from its root file on.
    pub fn of_crate(root: &Path) -> Graph {
        let folder = root.parent().expect("the root lies in a folder").to_path_buf();
        let mut graph = Graph {
            folder: folder.clone(),
            files: Vec::new(),
            modules: Vec::new(),
            named: Vec::new(),
            imports: Vec::new(),
        };
        graph.add_file(root, &folder, None);
        graph.imports = vec![BTreeSet::new(); graph.files.len()];
        for (module, path) in &graph.named {
            let file = graph.modules[*module].file;
            if let Some(target) = graph.file_of(*module, path, 0).filter(|&target| target != file) {
                graph.imports[file].insert(target);
            }
        }
        graph
    }

    /// Files of which each imports, through others perhaps, each other one.
    pub fn circles(&self) -> Vec<Vec<usize>> {
        let reached: Vec<_> = (0..self.files.len()).map(|file| self.reached_from(file)).collect();
        let circle = |file: usize| -> Vec<usize> {
            reached[file].iter().copied().filter(|&other| reached[other].contains(&file)).collect()
        };
        let all = (0..self.files.len()).map(circle).filter(|circle| circle.len() > 1);
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The names of files, below the root's folder.
    pub fn names(&self, files: &[usize]) -> Vec<String> {
        let name = |&file: &usize| {
            let path = &self.files[file];
            path.strip_prefix(&self.folder).unwrap_or(path).display().to_string()
        };
        files.iter().map(name).collect()
    }

    /// Whether files lie in several folders. The file of a module lies in the folder of its children, too.
    pub fn spans_folders(&self, files: &[usize]) -> bool {
        let folders = |file: &usize| {
            let path = &self.files[*file];
            [path.parent().expect("a folder").to_path_buf(), path.with_extension("")]
        };
        !folders(&files[0]).iter().any(|folder| files.iter().all(|file| folders(file).contains(folder)))
    }

    fn reached_from(&self, file: usize) -> BTreeSet<usize> {
        let (mut reached, mut rest) = (BTreeSet::new(), vec![file]);
        while let Some(file) = rest.pop() {
            rest.extend(self.imports[file].iter().copied().filter(|&next| reached.insert(next)));
        }
        reached
    }

    fn add_file(&mut self, path: &Path, folder: &Path, parent: Option<usize>) -> usize {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.files.push(path.to_path_buf());
        let module = self.add_module(self.files.len() - 1, parent);
        self.add_items(module, folder, &syntax.items);
        module
    }

    fn add_module(&mut self, file: usize, parent: Option<usize>) -> usize {
        self.modules.push(Module { file, parent, ..Module::default() });
        self.modules.len() - 1
    }

    fn add_items(&mut self, module: usize, folder: &Path, items: &[syn::Item]) {
        for item in items {
            match item {
                // By the attribute `path` comes what takes a module's place on other hosts.
                syn::Item::Mod(child) if is_for_tests(&child.attrs) || has(&child.attrs, "path") => {}
                syn::Item::Mod(child) => self.add_child(module, folder, child),
                syn::Item::Use(import) if is_for_tests(&import.attrs) => {}
                syn::Item::Use(import) => self.add_import(module, import),
                _ => {
                    self.modules[module].items.extend(name_of(item));
                    self.named.extend(paths::in_item(item).into_iter().map(|path| (module, path)));
                }
            }
        }
    }

    fn add_child(&mut self, module: usize, folder: &Path, child: &syn::ItemMod) {
        let name = child.ident.to_string();
        let inner = folder.join(&name);
        let added = match &child.content {
            Some((_, items)) => {
                let added = self.add_module(self.modules[module].file, Some(module));
                self.add_items(added, &inner, items);
                added
            }
            None => {
                let flat = folder.join(format!("{name}.rs"));
                let file = if flat.exists() { flat } else { inner.join("mod.rs") };
                self.add_file(&file, &inner, Some(module))
            }
        };
        self.modules[module].children.insert(name, added);
    }

    fn add_import(&mut self, module: usize, import: &syn::ItemUse) {
        let is_private = matches!(import.vis, syn::Visibility::Inherited);
        for (name, path) in paths::of_use(&import.tree) {
            // A re-export counts as an import of the files that use it, not of this one.
            if is_private {
                self.named.push((module, path.clone()));
            }
            match &*name {
                "*" => self.modules[module].globs.push(path),
                _ => drop(self.modules[module].imported.insert(name, path)),
            }
        }
    }

    /// The file that a path, as a module names it, leads to. None if it leads out of the crate.
    fn file_of(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        if depth > DEEPEST {
            return None;
        }
        let (mut module, mut rest) = (from, path);
        match path.first()?.as_str() {
            "crate" => {
                while let Some(parent) = self.modules[module].parent {
                    module = parent;
                }
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|segment| segment == "super") {
                    (module, rest) = (self.modules[module].parent?, &rest[1..]);
                }
            }
            first if self.modules[module].children.contains_key(first) => {}
            first => {
                let imported = self.modules[module].imported.get(first)?;
                if imported[0] == first {
                    return None;
                }
                return self.file_of(module, &[imported, &path[1..]].concat(), depth + 1);
            }
        }
        while let Some((first, behind)) = rest.split_first() {
            match self.modules[module].children.get(first) {
                Some(&child) => (module, rest) = (child, behind),
                None => return Some(self.file_of_item(module, first, behind, depth)),
            }
        }
        Some(self.modules[module].file)
    }

    /// The file in which something is defined that a module defines or passes on.
    fn file_of_item(&self, module: usize, name: &str, behind: &[String], depth: usize) -> usize {
        let here = &self.modules[module];
        if here.items.contains(name) {
            return here.file;
        }
        let elsewhere = match here.imported.get(name) {
            Some(path) => self.file_of(module, &[path, behind].concat(), depth + 1),
            None => here.globs.iter().find_map(|glob| {
                let path = [glob.as_slice(), &[name.to_string()], behind].concat();
                self.file_of(module, &path, depth + 1).filter(|&file| file != here.file)
            }),
        };
        elsewhere.unwrap_or(here.file)
    }
}

fn has(attributes: &[syn::Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute.meta.require_list().map(|list| list.tokens.to_string());
        attribute.path().is_ident("cfg") && condition.is_ok_and(|condition| condition == "test")
    })
}

fn name_of(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
