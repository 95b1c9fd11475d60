//! External definitions: definitions of included files for which no code is emitted, because it exists
//! elsewhere. The user gives its Rust path as an entry of [`Options::external`].

use std::collections::{HashMap, HashSet};

use proc_macro2::TokenStream;
use quote::quote;

use super::names::Names;
use super::options::{IncludePolicy, OptionProblem, Options, relative_path};
use super::standard;
use crate::diagnostic::Diagnostic;
use crate::model::{ConstValue, DefId, DefKind, Model, Type, TypeId};
use crate::work;

pub(super) struct External {
    /// For each external definition, a Rust path, and how many outer modules of its scope the path replaces.
    locations: Vec<Option<(TokenStream, usize)>>,
    /// For each definition that an entry names, the last part of the entry's path.
    names: Vec<Option<String>>,
    /// For each definition, whether code is emitted for it.
    emitted: Vec<bool>,
    /// The Rust types that entries specify for native types, by definition.
    natives: HashMap<DefId, TokenStream>,
    /// Definitions of standard files for which there is no Rust code.
    without_rust: HashSet<DefId>,
}

impl External {
    pub(super) fn new(model: &Model, options: &Options) -> Self {
        let mut locations = vec![None; model.defs().len()];
        let mut names = vec![None; model.defs().len()];
        // Definitions in an annotation are not in a scope, and no code is emitted for them.
        let mut emitted = vec![false; model.defs().len()];
        for id in model.defs().iter().map(|def| model.children(def.id)).chain([model.roots()]).flatten() {
            emitted[id.index()] = true;
        }
        for def in model.defs() {
            if let Some((entry, named)) = find_entry(model, options, def.id) {
                let (path, depth) = match named {
                    None => (entry.clone(), 0),
                    // The number of modules that the entry's path replaces. Every scope is a module.
                    Some(id) if model.is_module(id) => (entry.clone(), model.path(id).len()),
                    Some(id) => (without_last_segment(entry), model.path(id).len() - 1),
                };
                if named == Some(def.id) && !model.is_module(def.id) {
                    names[def.id.index()] = last_segment(entry);
                }
                locations[def.id.index()] = Some((path, depth));
            }
            let included = model.is_included(def.id);
            let compiled = options.include_policy == IncludePolicy::Compile;
            emitted[def.id.index()] &= !included || compiled && locations[def.id.index()].is_none();
        }
        let without_rust = standard::locate_standard(model, options, &mut locations, &mut emitted);
        add_predeclared(model, &locations, &mut emitted);
        // An entry with the name of a native type specifies the type, not the location of its alias.
        let mut natives = HashMap::new();
        for def in model.defs().iter().filter(|def| matches!(def.kind, DefKind::Native)) {
            let path = native(model, options, def.id);
            // An unused native type needs no entry: every orb.idl contains `native ValueFactory;`.
            emitted[def.id.index()] = path.is_some();
            natives.extend(path.map(|path| (def.id, path.clone())));
        }
        // A module is emitted if anything in it is emitted. Children come after their parents in the model.
        for def in model.defs().iter().rev().filter(|def| model.is_module(def.id)) {
            emitted[def.id.index()] = model.children(def.id).iter().any(|child| emitted[child.index()]);
        }
        External { locations, names, emitted, natives, without_rust }
    }

    pub(super) fn is_emitted(&self, id: DefId) -> bool {
        self.emitted[id.index()]
    }

    /// Returns the Rust type of a native type from its entry, for code that is `up` modules below the output.
    pub(super) fn native(&self, up: usize, id: DefId) -> Option<TokenStream> {
        self.natives.get(&id).map(|path| relative_path(path, up))
    }

    /// Returns the path of an external definition's module for code that is `up` modules below the output.
    pub(super) fn scope(&self, up: usize, id: DefId, names: &Names) -> Option<TokenStream> {
        let (path, levels) = self.locations[id.index()].as_ref().filter(|_| !self.is_emitted(id))?;
        let (path, scope) = (relative_path(path, up), names[id].scope.iter().skip(*levels));
        Some(quote!(#path #(::#scope)*))
    }

    pub(super) fn name(&self, id: DefId) -> Option<&str> {
        self.names[id.index()].as_deref().filter(|_| !self.is_emitted(id))
    }

    /// Reports definitions that the output uses, but for which neither code is emitted nor a path is known.
    pub(super) fn check(&self, model: &Model, problems: &mut Vec<Diagnostic>) {
        let mut reported = vec![false; model.defs().len()];
        for def in model.defs().iter().filter(|def| self.is_emitted(def.id)) {
            for found in standard::used_without_rust(model, &self.without_rust, def.id) {
                if !std::mem::replace(&mut reported[found.index()], true) {
                    problems.push(standard::missing_rust_error(model, found, def.id));
                }
            }
            let used = used_definitions(model, def.id).into_iter();
            for used in used.filter(|used| !self.without_rust.contains(used)) {
                let is_native = matches!(model.def(used).kind, DefKind::Native);
                let is_missing = match is_native {
                    true => !self.natives.contains_key(&used),
                    false => !self.is_emitted(used),
                };
                if !is_missing
                    || self.locations[used.index()].is_some()
                    || std::mem::replace(&mut reported[used.index()], true)
                {
                    continue;
                }
                if is_native {
                    problems.push(unknown_native(model, used, def.id));
                    continue;
                }
                let (name, user) = (model.scoped_name(used), model.scoped_name(def.id));
                let outer = name.split("::").next().unwrap_or_default();
                let message =
                    format!("`{user}` uses `{name}` of an included file, for which no Rust path is given");
                problems.push(
                    Diagnostic::error("no-extern", def.span, message)
                        .and(model.def(used).span, "declared here")
                        .help(format!(
                            "give the path with `extern(\"::{outer}\" = ::path)`, or generate code for included files with the include policy `compile`"
                        )),
                );
            }
        }
    }
}

fn unknown_native(model: &Model, native: DefId, user: DefId) -> Diagnostic {
    let name = model.scoped_name(native);
    let message = format!("no Rust type is given for the native type `{name}`");
    Diagnostic::error("no-extern", model.def(native).span, message)
        .and(model.def(user).span, "used here")
        .help(format!("give it with `extern(\"::{name}\" = ::path::Type)`"))
}

/// Marks the predeclared definitions without an entry for emission, if any of them is needed.
fn add_predeclared(model: &Model, locations: &[Option<(TokenStream, usize)>], emitted: &mut [bool]) {
    let is_predeclared =
        |id: DefId| locations[id.index()].is_none() && model.sources().is_predeclared(model.def(id).span);
    let mut users = model.defs().iter().filter(|def| emitted[def.id.index()] && !is_predeclared(def.id));
    if !users.any(|def| used_definitions(model, def.id).into_iter().any(is_predeclared)) {
        return;
    }
    model.defs().iter().filter(|def| is_predeclared(def.id)).for_each(|def| emitted[def.id.index()] = true);
}

pub(super) fn problem(model: &Model, options: &Options, index: usize) -> Option<OptionProblem> {
    let (idl, _) = options.external.get(index)?;
    let wanted = idl.trim_start_matches("::");
    let is_native =
        |id: DefId| matches!(model.def(id).kind, DefKind::Native) && model.scoped_name(id) == wanted;
    let covers = model.defs().iter().any(|def| {
        is_native(def.id) || model.is_included(def.id) && entry_covers(model, idl, def.id).is_some()
    });
    (!covers).then_some(OptionProblem::UnmatchedExternal(index))
}

fn native<'o>(model: &Model, options: &'o Options, id: DefId) -> Option<&'o TokenStream> {
    let name = model.scoped_name(id);
    let entry = options.external.iter().find(|(idl, _)| idl.trim_start_matches("::") == name);
    entry.map(|(_, path)| path)
}

/// Returns the path of the entry with the longest name that applies to a definition, and the definition that
/// the entry names, which is `None` for an entry for all definitions.
pub(super) fn find_entry<'o>(
    model: &Model,
    options: &'o Options,
    id: DefId,
) -> Option<(&'o TokenStream, Option<DefId>)> {
    if !model.is_included(id) {
        return None;
    }
    let matching = options.external.iter().filter_map(|(idl, path)| {
        work::count_step();
        let named = entry_covers(model, idl, id)?;
        Some((idl.trim_start_matches("::").len(), path, named))
    });
    matching.max_by_key(|(length, _, _)| *length).map(|(_, path, named)| (path, named))
}

/// If an entry applies to a definition, returns the definition that it names: `None` for the entry `::`.
fn entry_covers(model: &Model, idl: &str, id: DefId) -> Option<Option<DefId>> {
    let wanted = idl.trim_start_matches("::");
    if wanted.is_empty() {
        return Some(None);
    }
    let mut scopes = std::iter::successors(Some(id), |id| model.def(*id).parent);
    scopes.find(|id| model.scoped_name(*id) == wanted).map(Some)
}

fn last_segment(path: &TokenStream) -> Option<String> {
    match path.clone().into_iter().last() {
        Some(proc_macro2::TokenTree::Ident(word)) => Some(word.to_string()),
        _ => None,
    }
}

fn without_last_segment(path: &TokenStream) -> TokenStream {
    let mut trees: Vec<_> = path.clone().into_iter().collect();
    while let Some(tree) = trees.pop() {
        if matches!(&tree, proc_macro2::TokenTree::Punct(_)) {
            trees.pop();
            break;
        }
    }
    trees.into_iter().collect()
}

/// Returns the definitions that the code for a definition names.
pub(super) fn used_definitions(model: &Model, id: DefId) -> Vec<DefId> {
    let mut used = Vec::new();
    let mut types: Vec<TypeId> = model.member_types(id);
    match &model.def(id).kind {
        DefKind::Union(union) => types.push(union.discriminator),
        DefKind::Const(constant) => {
            types.push(constant.ty);
            if let ConstValue::Enum { def, .. } = constant.value {
                used.push(def);
            }
        }
        DefKind::Struct(_) => used.extend(model.struct_bases(id)),
        DefKind::Bitset(bitset) => used.extend(bitset.base),
        // A reference also has the operations of its bases, and a value the state of its bases.
        DefKind::Interface(_) | DefKind::Value(_) => {
            used.extend(model.all_bases(id));
            for base in model.all_bases(id) {
                types.extend(model.value(base).map(|_| model.member_types(base)).unwrap_or_default());
            }
            for factory in model.value(id).map_or(&[][..], |value| &value.factories) {
                types.extend(factory.params.iter().map(|param| param.ty));
                used.extend(&factory.raises);
            }
            for def in model.all_members(id) {
                match &def.kind {
                    DefKind::Operation(operation) => {
                        types.extend(operation.result);
                        types.extend(operation.params.iter().map(|param| param.ty));
                        used.extend(&operation.raises);
                    }
                    DefKind::Attribute(attribute) => {
                        types.push(attribute.ty);
                        used.extend(attribute.get_raises.iter().chain(&attribute.set_raises));
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
    while let Some(ty) = types.pop() {
        work::count_step();
        match model.ty(ty) {
            Type::Sequence { element, .. } | Type::Array { element, .. } => types.push(*element),
            Type::Map { key, value, .. } => types.extend([*key, *value]),
            Type::Named(def) => {
                used.push(*def);
                types.extend(model.typedef(*def).map(|alias| alias.ty));
            }
            _ => {}
        }
    }
    used
}
