//! Checks that the modules of a crate use each other in only one direction.
//!
//! A test of each crate lists its top-level modules. A module may only use modules that precede it in the
//! list. Therefore, no two modules can use each other:
//!
//! ```no_run
//! module_order::check(env!("CARGO_MANIFEST_DIR"), &["error", "message", "connection"]);
//! ```
//!
//! A use is a path in code, in a macro or in a `use` item that starts with `crate::`, or with enough
//! `super::` to reach the root of the crate. A name that the root re-exports counts as a use of the module
//! that defines it. Items under `#[cfg(test)]` are ignored, but methods are not.

mod paths;
pub mod size_limits;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse};

use paths::{macro_paths, use_paths};

/// Panics with a list of all violations of the order in the crate in this directory.
///
/// `order` contains each top-level module of the crate exactly once. The first one uses no other module.
pub fn check(manifest_dir: &str, order: &[&str]) {
    let violations = violations(&Path::new(manifest_dir).join("src"), order);
    assert!(violations.is_empty(), "modules violate their order:\n  {}", violations.join("\n  "));
}

/// Returns the violations of the order in a source directory, one line for each.
pub fn violations(src: &Path, order: &[&str]) -> Vec<String> {
    let root = ["lib.rs", "main.rs"].iter().map(|name| src.join(name)).find(|path| path.exists());
    let Some(root) = root else {
        return vec![format!("{} contains neither lib.rs nor main.rs", src.display())];
    };
    let mut reader = Reader { src: src.to_owned(), ..Reader::default() };
    reader.read_file(&root, &[]);
    let mut violations = reader.problems;
    for module in &reader.modules {
        if order.iter().filter(|listed| *listed == module).count() != 1 {
            violations.push(format!("module `{module}` is not listed exactly once"));
        }
    }
    for listed in order.iter().filter(|listed| !reader.modules.contains(**listed)) {
        violations.push(format!("module `{listed}` does not exist"));
    }
    let position = |module: &str| order.iter().position(|listed| *listed == module);
    let mut reported = BTreeSet::new();
    for Use { user, name, location } in &reader.uses {
        let used = reader.reexports.get(name).unwrap_or(name);
        let (Some(user_position), Some(used_position)) = (position(user), position(used)) else { continue };
        if used_position > user_position && reported.insert((user, used, location)) {
            violations.push(format!("{location}: `{user}` uses `{used}`, which is after it in the order"));
        }
    }
    violations
}

/// A use of a name in the root of the crate.
struct Use {
    /// The top-level module that contains the use.
    user: String,
    /// The first segment of the path after `crate::`.
    name: String,
    /// The file and line of the use.
    location: String,
}

/// Reads the modules of a crate, and collects the uses in them.
#[derive(Default)]
struct Reader {
    src: PathBuf,
    modules: BTreeSet<String>,
    /// The files that `path` attributes name. The files of the modules in them are in the same directory.
    path_attribute_files: BTreeSet<PathBuf>,
    /// The names that the root re-exports, with the modules that define them.
    reexports: BTreeMap<String, String>,
    uses: Vec<Use>,
    problems: Vec<String>,
}

impl Reader {
    fn read_file(&mut self, path: &Path, module: &[String]) {
        match parse(path) {
            Err(error) => self.problems.push(error),
            Ok(file) => self.read_items(&file.items, path, module),
        }
    }

    fn read_items(&mut self, items: &[Item], path: &Path, module: &[String]) {
        for item in items {
            if is_test(attributes(item)) {
                continue;
            }
            match item {
                Item::Mod(inner) => self.read_module(inner, path, module),
                Item::Use(item) if module.is_empty() => self.add_reexports(item),
                _ if module.is_empty() => {}
                item => UseVisitor { reader: self, path, module }.visit_item(item),
            }
        }
    }

    fn read_module(&mut self, item: &ItemMod, path: &Path, module: &[String]) {
        let name = item.ident.to_string();
        if module.is_empty() {
            self.modules.insert(name.clone());
        }
        let inner_module: Vec<String> = module.iter().cloned().chain([name.clone()]).collect();
        if let Some((_, items)) = &item.content {
            return self.read_items(items, path, &inner_module);
        }
        let path_attribute = item.attrs.iter().find_map(|attribute| {
            let value =
                &attribute.meta.require_name_value().ok().filter(|pair| pair.path.is_ident("path"))?.value;
            let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = value else { return None };
            Some(text.value())
        });
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let candidates = match path_attribute {
            Some(relative) => {
                let file = directory.join(relative);
                self.path_attribute_files.insert(file.clone());
                vec![file]
            }
            None => {
                let is_root_or_mod = matches!(
                    path.file_name().and_then(|name| name.to_str()),
                    Some("lib.rs" | "main.rs" | "mod.rs")
                );
                let module_directory = if is_root_or_mod || self.path_attribute_files.contains(path) {
                    directory
                } else {
                    path.with_extension("")
                };
                vec![module_directory.join(format!("{name}.rs")), module_directory.join(&name).join("mod.rs")]
            }
        };
        match candidates.iter().find(|candidate| candidate.exists()) {
            Some(file) => self.read_file(file, &inner_module),
            None => self.problems.push(format!("{}: module `{name}` has no file", path.display())),
        }
    }

    /// Adds the names that a `use` item of the root re-exports.
    fn add_reexports(&mut self, item: &ItemUse) {
        for (path, name) in use_paths(&item.tree) {
            let mut path = path.into_iter().skip_while(|part| part == "crate" || part == "self");
            if let (Some(module), Some(_)) = (path.next(), path.next()) {
                self.reexports.insert(name, module);
            }
        }
    }

    /// Adds a use for a path in a module, if the path leads to another name in the root of the crate.
    fn add_use(&mut self, segments: &[String], line: usize, path: &Path, module: &[String]) {
        let root_name = match segments.first().map(String::as_str) {
            Some("crate") => segments.get(1),
            Some("super") => {
                let levels = segments.iter().take_while(|segment| *segment == "super").count();
                if levels == module.len() { segments.get(levels) } else { None }
            }
            _ => None,
        };
        let (Some(name), Some(user)) = (root_name, module.first()) else { return };
        if name != user {
            let file = path.strip_prefix(&self.src).unwrap_or(path).display();
            let location = format!("{file}:{line}");
            self.uses.push(Use { user: user.clone(), name: name.clone(), location });
        }
    }
}

struct UseVisitor<'r, 'p> {
    reader: &'r mut Reader,
    path: &'p Path,
    module: &'p [String],
}

impl<'ast> Visit<'ast> for UseVisitor<'_, '_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.reader.read_module(item, self.path, self.module);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let line = item.use_token.span.start().line;
        for (path, _) in use_paths(&item.tree) {
            self.reader.add_use(&path, line, self.path, self.module);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        self.reader.add_use(&segments, line, self.path, self.module);
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        macro_paths(item.tokens.clone(), &mut |path, line| {
            self.reader.add_use(&path, line, self.path, self.module);
        });
        visit::visit_macro(self, item);
    }
}

/// Parses a file. The error contains its path.
fn parse(path: &Path) -> Result<syn::File, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))
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
