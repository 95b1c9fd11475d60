//! Checks the sizes of types, of functions, and of groups of files that use each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::LineColumn;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Item, Visibility};

use crate::paths::{macro_paths, use_paths};
use crate::{attributes, is_test, parse};

/// The maximum number of fields of a struct.
const MAX_FIELDS: usize = 20;
/// The maximum number of lines of a function.
const MAX_FUNCTION_LINES: usize = 100;
/// The maximum number of methods of a type, in all its inherent `impl` blocks.
const MAX_METHODS: usize = 100;
/// The maximum number of files that use each other, directly or through others.
const MAX_CYCLE_FILES: usize = 8;

/// Panics with a list of all types, functions and groups of files in the crate that exceed the limits.
/// `exempt_functions` are names of functions that may be longer, because they contain tables or templates.
pub fn check(manifest_dir: &str, exempt_functions: &[&str]) {
    let violations = violations(&Path::new(manifest_dir).join("src"), exempt_functions);
    assert!(violations.is_empty(), "too large:\n  {}", violations.join("\n  "));
}

/// Returns the violations of the limits in a source directory, one line each.
pub fn violations(src: &Path, exempt_functions: &[&str]) -> Vec<String> {
    let mut files = BTreeMap::new();
    let mut sizes =
        Sizes { exempt_functions, methods: BTreeMap::new(), violations: Vec::new(), file: String::new() };
    for path in source_files(src) {
        let relative = path.strip_prefix(src).unwrap_or(&path);
        let name = relative.with_extension("");
        let mut module: Vec<String> = name.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
            module.pop();
        }
        match parse(&path) {
            Err(error) => sizes.violations.push(error),
            Ok(parsed) => {
                sizes.file = relative.display().to_string();
                let mut uses = FileUses::default();
                for item in parsed.items.iter().filter(|item| !is_test(attributes(item))) {
                    sizes.visit_item(item);
                    uses.visit_item(item);
                }
                files.insert(module, uses);
            }
        }
    }
    let Sizes { methods, mut violations, .. } = sizes;
    for (name, count) in methods.into_iter().filter(|(_, count)| *count > MAX_METHODS) {
        violations.push(format!("`{name}` has {count} methods"));
    }
    for cycle in cycles(&files).iter().filter(|cycle| cycle.len() > MAX_CYCLE_FILES) {
        let names: Vec<String> = cycle.iter().map(|module| module.join("/")).collect();
        violations.push(format!("{} files use each other: {}", names.len(), names.join(", ")));
    }
    violations
}

/// Returns the Rust files in a directory and its subdirectories, in the order of their paths.
fn source_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(source_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

struct Sizes<'t> {
    exempt_functions: &'t [&'t str],
    /// The number of methods by type.
    methods: BTreeMap<String, usize>,
    violations: Vec<String>,
    file: String,
}

impl Sizes<'_> {
    fn check_length(&mut self, signature: &syn::Signature, end: LineColumn) {
        let name = signature.ident.to_string();
        let lines = end.line - signature.span().start().line + 1;
        if lines > MAX_FUNCTION_LINES && !self.exempt_functions.contains(&name.as_str()) {
            self.violations.push(format!("{}: `{name}` has {lines} lines", self.file));
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
            self.violations.push(format!("{}: `{}` has {} fields", self.file, item.ident, item.fields.len()));
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
        self.check_length(&item.sig, item.block.span().end());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.check_length(&item.sig, item.block.span().end());
        visit::visit_impl_item_fn(self, item);
    }
}

/// The uses of other modules in a file.
#[derive(Default)]
struct FileUses {
    /// Paths in `use` items and in code.
    uses: Vec<Vec<String>>,
    /// The names that the file re-exports, with their paths.
    reexports: BTreeMap<String, Vec<String>>,
}

impl<'ast> Visit<'ast> for FileUses {
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

impl FileUses {
    /// Adds a path in code, unless it is a single name, which may be a variable.
    fn add(&mut self, path: Vec<String>) {
        if path.len() > 1 {
            self.uses.push(path);
        }
    }
}

type Files = BTreeMap<Vec<String>, FileUses>;

/// Returns the module of the file that a path in `user` leads to. Follows re-exports, at most 8 of them.
fn resolve(files: &Files, user: &[String], path: &[String], depth: usize) -> Option<Vec<String>> {
    let mut module = user.to_vec();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => {
            module.clear();
            rest = rest.get(1..)?;
        }
        "self" => rest = rest.get(1..)?,
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                module.pop();
                rest = rest.get(1..)?;
            }
        }
        name if files.contains_key(&child(&module, name)) => {}
        _ => return None,
    }
    while let Some(name) = rest.first()
        && files.contains_key(&child(&module, name))
    {
        module = child(&module, name);
        rest = rest.get(1..)?;
    }
    let reexported = rest.first().and_then(|name| files.get(&module)?.reexports.get(name));
    let followed = reexported.filter(|_| depth < 8).and_then(|path| resolve(files, &module, path, depth + 1));
    followed.or_else(|| files.contains_key(&module).then_some(module))
}

fn child(module: &[String], name: &str) -> Vec<String> {
    [module, &[name.to_owned()]].concat()
}

/// Returns the groups of files in which each file uses all others, directly or through others.
fn cycles(files: &Files) -> Vec<Vec<Vec<String>>> {
    let direct: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> = files
        .iter()
        .map(|(module, file)| {
            let targets = file.uses.iter().filter_map(|path| resolve(files, module, path, 0));
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
    let mut cycles = Vec::new();
    for module in files.keys() {
        let cycle: Vec<Vec<String>> =
            files.keys().filter(|other| uses(module, *other) && uses(*other, module)).cloned().collect();
        if cycle.len() > 1 && grouped.insert(cycle.clone()) {
            cycles.push(cycle);
        }
    }
    cycles
}
