//! Checks that the modules of a crate use each other in one direction.
//!
//! A test of each crate lists its top-level modules from the ground up. A module may use the modules before
//! it in the list, and none after it. No two modules can then use each other:
//!
//! ```no_run
//! module_order::check(env!("CARGO_MANIFEST_DIR"), &["error", "message", "connection"]);
//! ```
//!
//! What counts as a use: `use` trees and paths in code and macros that begin with `crate::`, or with enough
//! `super::` to reach the crate's root. A name that the root re-exports counts as a use of the module that
//! the root takes it from. Modules under `#[cfg(test)]` do not count.

pub mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree};

/// Panics with a list of all violations if the crate in this directory does not keep to the order.
///
/// `order` has each top-level module of `src/lib.rs` or `src/main.rs` once, the one that uses no other first.
pub fn check(manifest_dir: &str, order: &[&str]) {
    let found = violations(&Path::new(manifest_dir).join("src"), order);
    let mut text = String::new();
    found.iter().for_each(|violation| {
        let _ = write!(text, "\n  {violation}");
    });
    assert!(found.is_empty(), "modules do not keep to their order:{text}");
}

/// The violations of the order in a source directory, one line each.
pub fn violations(src: &Path, order: &[&str]) -> Vec<String> {
    let root = ["lib.rs", "main.rs"].iter().map(|name| src.join(name)).find(|path| path.exists());
    let Some(root) = root else { return vec![format!("{}: no lib.rs or main.rs", src.display())] };
    let mut reader = Reader { src: src.to_owned(), ..Reader::default() };
    reader.file(&root, &[]);
    let mut found = reader.problems;
    for module in &reader.modules {
        if order.iter().filter(|listed| *listed == module).count() != 1 {
            found.push(format!("module `{module}` is not listed exactly once"));
        }
    }
    for listed in order.iter().filter(|listed| !reader.modules.contains(**listed)) {
        found.push(format!("there is no module `{listed}`"));
    }
    let floor = |module: &str| order.iter().position(|listed| *listed == module);
    let mut reported = BTreeSet::new();
    for Use { from, name, place } in &reader.uses {
        let to = reader.reexports.get(name).unwrap_or(name);
        let (Some(user), Some(used)) = (floor(from), floor(to)) else { continue };
        if used > user && reported.insert((from, to, place)) {
            found.push(format!("{place}: `{from}` uses `{to}`, which is above it"));
        }
    }
    found
}

/// A use of something at the crate's root by a top-level module.
struct Use {
    from: String,
    /// The first segment after `crate::`.
    name: String,
    place: String,
}

#[derive(Default)]
struct Reader {
    src: PathBuf,
    modules: BTreeSet<String>,
    /// Files that a `path` attribute names. Like `mod.rs`, they have their modules beside them.
    named_files: BTreeSet<PathBuf>,
    /// Names that the root re-exports, with the modules that they come from.
    reexports: BTreeMap<String, String>,
    uses: Vec<Use>,
    problems: Vec<String>,
}

impl Reader {
    fn file(&mut self, path: &Path, module: &[String]) {
        let text = fs::read_to_string(path);
        let parsed = text
            .map_err(|error| error.to_string())
            .and_then(|text| syn::parse_file(&text).map_err(|error| error.to_string()));
        match parsed {
            Err(error) => self.problems.push(format!("{}: {error}", path.display())),
            Ok(file) => self.items(&file.items, path, module),
        }
    }

    fn items(&mut self, items: &[Item], path: &Path, module: &[String]) {
        for item in items {
            if is_test(attributes(item)) {
                continue;
            }
            match item {
                Item::Mod(inner) => self.module(inner, path, module),
                Item::Use(item) if module.is_empty() => self.reexport(item),
                _ if module.is_empty() => {}
                item => Finder { reader: self, path, module }.visit_item(item),
            }
        }
    }

    fn module(&mut self, item: &ItemMod, path: &Path, module: &[String]) {
        let name = item.ident.to_string();
        if module.is_empty() {
            self.modules.insert(name.clone());
        }
        let inner: Vec<String> = module.iter().cloned().chain([name.clone()]).collect();
        if let Some((_, items)) = &item.content {
            return self.items(items, path, &inner);
        }
        let given = item.attrs.iter().find_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        });
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let candidates = match given {
            Some(given) => {
                let named = folder.join(given);
                self.named_files.insert(named.clone());
                vec![named]
            }
            None => {
                let is_root_or_mod = matches!(
                    path.file_name().and_then(|name| name.to_str()),
                    Some("lib.rs" | "main.rs" | "mod.rs")
                );
                let below = if is_root_or_mod || self.named_files.contains(path) {
                    folder
                } else {
                    path.with_extension("")
                };
                vec![below.join(format!("{name}.rs")), below.join(&name).join("mod.rs")]
            }
        };
        match candidates.iter().find(|candidate| candidate.exists()) {
            Some(file) => self.file(file, &inner),
            None => self.problems.push(format!("{}: no file for module `{name}`", path.display())),
        }
    }

    /// `use module::{Name, Other}` at the root.
    fn reexport(&mut self, item: &ItemUse) {
        for path in leaves(&item.tree) {
            let path: Vec<String> =
                path.into_iter().skip_while(|part| part == "crate" || part == "self").collect();
            if let [module, .., name] = path.as_slice() {
                self.reexports.insert(name.clone(), module.clone());
            }
        }
    }

    fn uses(&mut self, segments: &[String], line: usize, path: &Path, module: &[String]) {
        let from_root = match segments.first().map(String::as_str) {
            Some("crate") => segments.get(1),
            Some("super") => {
                let ups = segments.iter().take_while(|segment| *segment == "super").count();
                if ups == module.len() { segments.get(ups) } else { None }
            }
            _ => None,
        };
        let (Some(name), Some(from)) = (from_root, module.first()) else { return };
        if name != from {
            let file = path.strip_prefix(&self.src).unwrap_or(path).display();
            let place = format!("{file}:{line}");
            self.uses.push(Use { from: from.clone(), name: name.clone(), place });
        }
    }
}

struct Finder<'r, 'p> {
    reader: &'r mut Reader,
    path: &'p Path,
    module: &'p [String],
}

impl<'ast> Visit<'ast> for Finder<'_, '_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.reader.module(item, self.path, self.module);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let line = item.use_token.span.start().line;
        for path in leaves(&item.tree) {
            self.reader.uses(&path, line, self.path, self.module);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        self.reader.uses(&segments, line, self.path, self.module);
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }
}

impl Finder<'_, '_> {
    /// Paths among the tokens of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) if *ident == "crate" || *ident == "super" => {
                    let (line, mut path) = (ident.span().start().line, vec![ident.to_string()]);
                    while let [TokenTree::Punct(a), TokenTree::Punct(b), TokenTree::Ident(next), ..] =
                        tokens.get(at + 1..).unwrap_or_default()
                        && a.as_char() == ':'
                        && b.as_char() == ':'
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    self.reader.uses(&path, line, self.path, self.module);
                }
                _ => {}
            }
            at += 1;
        }
    }
}

/// All paths of a `use` tree; of renamed names the new ones come last, of globs the module.
fn leaves(tree: &UseTree) -> Vec<Vec<String>> {
    match tree {
        UseTree::Path(path) => {
            leaves(&path.tree).into_iter().map(|rest| [vec![path.ident.to_string()], rest].concat()).collect()
        }
        UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        UseTree::Rename(rename) => vec![vec![rename.ident.to_string(), rename.rename.to_string()]],
        UseTree::Glob(_) => vec![vec!["*".to_owned()]],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
