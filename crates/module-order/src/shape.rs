//! Limits of the size of types, functions and circles of files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::LineColumn;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Item, Visibility};

use crate::paths::{macro_paths, use_paths};
use crate::{attributes, is_test};

/// The maximum number of fields of a struct.
const MAX_FIELDS: usize = 20;
/// The maximum number of lines of a function.
const MAX_LINES: usize = 100;
/// The maximum number of methods of a type, in all its inherent `impl` blocks.
const MAX_METHODS: usize = 100;
/// The maximum number of files that use each other, directly or through others.
const MAX_CIRCLE: usize = 8;

/// Panics with a list of all types, functions and circles of files of the crate in this directory that exceed
/// the limits. `tables` are names of functions that may be longer, because they are tables or templates.
pub fn check(manifest_dir: &str, tables: &[&str]) {
    let found = violations(&Path::new(manifest_dir).join("src"), tables);
    assert!(found.is_empty(), "too large:\n  {}", found.join("\n  "));
}

/// The violations of the limits in a source directory, one line each.
pub fn violations(src: &Path, tables: &[&str]) -> Vec<String> {
    let mut files = BTreeMap::new();
    let mut sizes = Sizes { tables, methods: BTreeMap::new(), found: Vec::new(), file: String::new() };
    for path in sources(src) {
        let name = path.strip_prefix(src).unwrap_or(&path).with_extension("");
        let mut module: Vec<String> = name.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
            module.pop();
        }
        let text = fs::read_to_string(&path).map_err(|error| error.to_string());
        match text.and_then(|text| syn::parse_file(&text).map_err(|error| error.to_string())) {
            Err(error) => sizes.found.push(format!("{}: {error}", path.display())),
            Ok(parsed) => {
                sizes.file = path.strip_prefix(src).unwrap_or(&path).display().to_string();
                let mut file = File::default();
                for item in parsed.items.iter().filter(|item| !is_test(attributes(item))) {
                    sizes.visit_item(item);
                    file.visit_item(item);
                }
                files.insert(module, file);
            }
        }
    }
    let Sizes { methods, mut found, .. } = sizes;
    for (name, count) in methods.into_iter().filter(|(_, count)| *count > MAX_METHODS) {
        found.push(format!("`{name}` has {count} methods"));
    }
    for circle in circles(&files).iter().filter(|circle| circle.len() > MAX_CIRCLE) {
        let names: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
        found.push(format!("{} files use each other: {}", names.len(), names.join(", ")));
    }
    found
}

/// The Rust files below a directory, in the order of their paths.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Finds types and functions that are too large.
struct Sizes<'t> {
    tables: &'t [&'t str],
    /// The number of methods by type.
    methods: BTreeMap<String, usize>,
    found: Vec<String>,
    file: String,
}

impl Sizes<'_> {
    fn function(&mut self, signature: &syn::Signature, end: LineColumn) {
        let name = signature.ident.to_string();
        let lines = end.line - signature.span().start().line + 1;
        if lines > MAX_LINES && !self.tables.contains(&name.as_str()) {
            self.found.push(format!("{}: `{name}` has {lines} lines", self.file));
        }
    }
}

impl<'ast> Visit<'ast> for Sizes<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        if item.fields.len() > MAX_FIELDS {
            self.found.push(format!("{}: `{}` has {} fields", self.file, item.ident, item.fields.len()));
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let (None, syn::Type::Path(path)) = (&item.trait_, &*item.self_ty)
            && let Some(last) = path.path.segments.last()
        {
            let methods = item.items.iter().filter(|item| matches!(item, syn::ImplItem::Fn(_))).count();
            *self.methods.entry(last.ident.to_string()).or_default() += methods;
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, item.block.span().end());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, item.block.span().end());
        visit::visit_impl_item_fn(self, item);
    }
}

/// The uses of other modules by a file.
#[derive(Default)]
struct File {
    /// Paths in `use` items and in code.
    uses: Vec<Vec<String>>,
    /// Names that the file re-exports, with their paths.
    reexports: BTreeMap<String, Vec<String>>,
}

impl<'ast> Visit<'ast> for File {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_private = matches!(item.vis, Visibility::Inherited);
        for (path, name) in use_paths(&item.tree) {
            // A re-export alone is not a use: every module re-exports what its files declare.
            if is_private {
                self.uses.push(path);
            } else {
                self.reexports.insert(name, path);
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        macro_paths(item.tokens.clone(), &mut |path, _| self.add(path));
        visit::visit_macro(self, item);
    }
}

impl File {
    /// Adds a path in code. A single name may be that of a variable.
    fn add(&mut self, path: Vec<String>) {
        if path.len() > 1 {
            self.uses.push(path);
        }
    }
}

type Files = BTreeMap<Vec<String>, File>;

/// Returns the file that a path leads to. Re-exports are followed.
fn target(files: &Files, from: &[String], path: &[String], depth: usize) -> Option<Vec<String>> {
    let mut at = from.to_vec();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => {
            at.clear();
            rest = rest.get(1..)?;
        }
        "self" => rest = rest.get(1..)?,
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                at.pop();
                rest = rest.get(1..)?;
            }
        }
        name if files.contains_key(&below(&at, name)) => {}
        _ => return None,
    }
    while let Some(name) = rest.first()
        && files.contains_key(&below(&at, name))
    {
        at = below(&at, name);
        rest = rest.get(1..)?;
    }
    let reexported = rest.first().and_then(|name| files.get(&at)?.reexports.get(name));
    let followed = reexported.filter(|_| depth < 8).and_then(|path| target(files, &at, path, depth + 1));
    followed.or_else(|| files.contains_key(&at).then_some(at))
}

fn below(module: &[String], name: &str) -> Vec<String> {
    [module, &[name.to_owned()]].concat()
}

/// Groups of files of which each uses, directly or through others, all of its group.
fn circles(files: &Files) -> Vec<Vec<Vec<String>>> {
    let direct: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> = files
        .iter()
        .map(|(module, file)| {
            let targets = file.uses.iter().filter_map(|path| target(files, module, path, 0));
            (module, targets.filter(|target| target != module).collect())
        })
        .collect();
    let reached: BTreeMap<&Vec<String>, BTreeSet<&Vec<String>>> = files
        .keys()
        .map(|module| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![module]);
            while let Some(module) = next.pop() {
                next.extend(direct.get(module).into_iter().flatten().filter(|target| seen.insert(*target)));
            }
            (module, seen)
        })
        .collect();
    let uses = |a, b| reached.get(a).is_some_and(|targets: &BTreeSet<&Vec<String>>| targets.contains(b));
    let mut grouped = BTreeSet::new();
    let mut circles = Vec::new();
    for module in files.keys() {
        let circle: Vec<Vec<String>> =
            files.keys().filter(|other| uses(module, *other) && uses(*other, module)).cloned().collect();
        if circle.len() > 1 && grouped.insert(circle.clone()) {
            circles.push(circle);
        }
    }
    circles
}
