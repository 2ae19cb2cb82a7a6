//! The paths that an item names.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

/// A path's segments.
pub type Segments = Vec<String>;

/// The paths of more than one segment in an item, those in the arguments of macros too.
pub fn in_item(item: &syn::Item) -> Vec<Segments> {
    let mut found = Paths(Vec::new());
    found.visit_item(item);
    found.0
}

/// The names that a `use` brings in, each with its path; `*` for all of a module.
pub fn of_use(tree: &syn::UseTree) -> Vec<(String, Segments)> {
    let mut found = Vec::new();
    collect(tree, &mut Vec::new(), &mut found);
    found
}

fn collect(tree: &syn::UseTree, prefix: &mut Segments, found: &mut Vec<(String, Segments)>) {
    let path = |prefix: &Segments, name: &syn::Ident| {
        let mut path = prefix.clone();
        if name != "self" {
            path.push(name.to_string());
        }
        path
    };
    match tree {
        syn::UseTree::Path(inner) => {
            prefix.push(inner.ident.to_string());
            collect(&inner.tree, prefix, found);
            prefix.pop();
        }
        syn::UseTree::Name(name) => {
            let path = path(prefix, &name.ident);
            found.extend(path.last().cloned().map(|name| (name, path)));
        }
        syn::UseTree::Rename(name) => found.push((name.rename.to_string(), path(prefix, &name.ident))),
        syn::UseTree::Glob(_) => found.push(("*".into(), prefix.clone())),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| collect(tree, prefix, found)),
    }
}

struct Paths(Vec<Segments>);

impl Paths {
    /// The input of a macro is no syntax tree: paths are words with `::` between.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Segments::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Ident(word) if colons == 2 && !path.is_empty() => path.push(word.to_string()),
                TokenTree::Ident(word) => self.end(&mut path, Some(word.to_string())),
                TokenTree::Punct(point) if point.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => {
                    self.end(&mut path, None);
                    self.tokens(group.stream());
                }
                _ => self.end(&mut path, None),
            }
            colons = 0;
        }
        self.end(&mut path, None);
    }

    /// A path ends; another one may begin.
    fn end(&mut self, path: &mut Segments, next: Option<String>) {
        let ended = std::mem::replace(path, next.into_iter().collect());
        if ended.len() > 1 {
            self.0.push(ended);
        }
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.segments.len() > 1 {
            self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        syn::visit::visit_path(self, path);
    }

    /// A visibility is not an import.
    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}

    fn visit_macro(&mut self, invocation: &'a syn::Macro) {
        self.tokens(invocation.tokens.clone());
    }
}
