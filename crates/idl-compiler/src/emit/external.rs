//! Definitions of included files whose Rust is in another place: which are omitted, and the paths to their
//! Rust.

use std::collections::{HashMap, HashSet};

use proc_macro2::TokenStream;
use quote::quote;

use super::names::Names;
use super::options::placed;
use super::{IncludePolicy, OptionProblem, Options, standard};
use crate::diagnostic::Diagnostic;
use crate::model::{ConstValue, DefId, DefKind, Model, Type, TypeId};
use crate::work;

/// The locations of the Rust of definitions.
pub(super) struct External {
    /// For each definition: the path of an outer module, and the number of modules of the definition's own
    /// scope that this path replaces.
    places: Vec<Option<(TokenStream, usize)>>,
    /// For each definition: the last part of the path of an entry that names it.
    names: Vec<Option<String>>,
    emitted: Vec<bool>,
    /// The Rust types that entries specify for native types, by definition.
    natives: HashMap<DefId, TokenStream>,
    /// Definitions of the standard that have no Rust.
    internal: HashSet<DefId>,
}

impl External {
    pub(super) fn new(model: &Model, options: &Options) -> Self {
        let mut places = vec![None; model.defs().len()];
        let mut names = vec![None; model.defs().len()];
        let mut emitted = vec![true; model.defs().len()];
        for def in model.defs() {
            if let Some((entry, named)) = cover(model, options, def.id) {
                let (path, depth) = match named {
                    None => (entry.clone(), 0),
                    // The number of modules that the entry's path replaces. Every scope is a module.
                    Some(id) if is_module(model, id) => (entry.clone(), model.path(id).len()),
                    Some(id) => (outer(entry), model.path(id).len() - 1),
                };
                if named == Some(def.id) && !is_module(model, def.id) {
                    names[def.id.index()] = last(entry);
                }
                places[def.id.index()] = Some((path, depth));
            }
            let included = model.is_included(def.id);
            let compiled = options.include_policy == IncludePolicy::Compile;
            emitted[def.id.index()] = !included || compiled && places[def.id.index()].is_none();
        }
        let internal = standard::settle(model, options, &mut places, &mut emitted);
        add_predeclared(model, &places, &mut emitted);
        // An entry with the name of a native type specifies the type, not the location of its alias.
        let mut natives = HashMap::new();
        for def in model.defs().iter().filter(|def| matches!(def.kind, DefKind::Native)) {
            let path = native(model, options, def.id);
            // An unused native type needs no entry: every orb.idl contains `native ValueFactory;`.
            emitted[def.id.index()] = path.is_some();
            natives.extend(path.map(|path| (def.id, path.clone())));
        }
        // A module is emitted if anything in it is. Children come after their parents.
        for def in model.defs().iter().rev().filter(|def| is_module(model, def.id)) {
            emitted[def.id.index()] = model.children(def.id).iter().any(|child| emitted[child.index()]);
        }
        External { places, names, emitted, natives, internal }
    }

    /// Returns whether the definition is part of the output.
    pub(super) fn emitted(&self, id: DefId) -> bool {
        self.emitted[id.index()]
    }

    /// Returns the Rust type that an entry specifies for a native type, seen from `up` modules below the
    /// user's.
    pub(super) fn native(&self, up: usize, id: DefId) -> Option<TokenStream> {
        self.natives.get(&id).map(|path| placed(path, up))
    }

    /// Returns the path of the module that contains the Rust of an external definition, seen from `up`
    /// modules below the user's.
    pub(super) fn scope(&self, up: usize, id: DefId, names: &Names) -> Option<TokenStream> {
        let (path, levels) = self.places[id.index()].as_ref().filter(|_| !self.emitted(id))?;
        let (path, scope) = (placed(path, up), names[id].scope.iter().skip(*levels));
        Some(quote!(#path #(::#scope)*))
    }

    /// Returns the Rust name that the path of an entry specifies for the definition itself.
    pub(super) fn name(&self, id: DefId) -> Option<&str> {
        self.names[id.index()].as_deref().filter(|_| !self.emitted(id))
    }

    /// Reports definitions that the output needs and whose Rust has no known location.
    pub(super) fn check(&self, model: &Model, problems: &mut Vec<Diagnostic>) {
        let mut reported = vec![false; model.defs().len()];
        for def in model.defs().iter().filter(|def| self.emitted(def.id)) {
            for found in standard::misused(model, &self.internal, def.id) {
                if !std::mem::replace(&mut reported[found.index()], true) {
                    problems.push(standard::without_rust(model, found, def.id));
                }
            }
            for used in used(model, def.id).into_iter().filter(|used| !self.internal.contains(used)) {
                let is_native = matches!(model.def(used).kind, DefKind::Native);
                if is_native && self.places[used.index()].is_none() && !self.natives.contains_key(&used) {
                    if !std::mem::replace(&mut reported[used.index()], true) {
                        problems.push(unknown_native(model, used, def.id));
                    }
                    continue;
                }
                let missing = !self.emitted(used) && self.places[used.index()].is_none();
                if !missing || std::mem::replace(&mut reported[used.index()], true) {
                    continue;
                }
                let (name, user) = (model.scoped_name(used), model.scoped_name(def.id));
                let outer = name.split("::").next().unwrap_or_default();
                let message =
                    format!("`{user}` uses `{name}` of an included file, and nothing says where its Rust is");
                problems.push(
                    Diagnostic::error("no-extern", def.span, message)
                        .and(model.def(used).span, "declared here")
                        .help(format!(
                            "say it with `extern(\"::{outer}\" = ::path)`, or compile included files too: include policy `compile`"
                        )),
                );
            }
        }
    }
}

/// Returns the error about a used native type without a specified Rust type.
fn unknown_native(model: &Model, native: DefId, user: DefId) -> Diagnostic {
    let name = model.scoped_name(native);
    let message = format!("nothing says which Rust type the native type `{name}` is");
    let error = Diagnostic::error("no-extern", model.def(native).span, message);
    error
        .and(model.def(user).span, "used here")
        .help(format!("say it with `extern(\"::{name}\" = ::path::Type)`"))
}

/// Marks the predeclared definitions for emission if any is needed, unless an entry specifies their location.
/// They do not belong to a file of the user.
fn add_predeclared(model: &Model, places: &[Option<(TokenStream, usize)>], emitted: &mut [bool]) {
    let known =
        |id: DefId| places[id.index()].is_none() && model.sources().is_predeclared(model.def(id).span);
    let needed = model.defs().iter().filter(|def| emitted[def.id.index()] && !known(def.id));
    if !needed.flat_map(|def| used(model, def.id)).any(known) {
        return;
    }
    for def in model.defs().iter().filter(|def| known(def.id)) {
        emitted[def.id.index()] = true;
    }
}

/// Checks the entry of [`Options::external`] at an index.
pub(super) fn problem(model: &Model, options: &Options, index: usize) -> Option<OptionProblem> {
    let (idl, _) = options.external.get(index)?;
    let wanted = idl.trim_start_matches("::");
    let is_native =
        |id: DefId| matches!(model.def(id).kind, DefKind::Native) && model.scoped_name(id) == wanted;
    let covers = model.defs().iter().any(|def| {
        is_native(def.id) || model.is_included(def.id) && entry_covers(model, idl, def.id).is_some()
    });
    (!covers).then_some(OptionProblem::NothingExternal(index))
}

/// Returns the Rust type that an entry with the native type's own name specifies.
fn native<'o>(model: &Model, options: &'o Options, id: DefId) -> Option<&'o TokenStream> {
    let name = model.scoped_name(id);
    let entry = options.external.iter().find(|(idl, _)| idl.trim_start_matches("::") == name);
    entry.map(|(_, path)| path)
}

/// Returns the entry that specifies the location of a definition's Rust, and the definition that it names;
/// `None` for all. If several entries match, the longest one is used.
pub(super) fn cover<'o>(
    model: &Model,
    options: &'o Options,
    id: DefId,
) -> Option<(&'o TokenStream, Option<DefId>)> {
    if !model.is_included(id) {
        return None;
    }
    let fitting = options.external.iter().filter_map(|(idl, path)| {
        work::step();
        let named = entry_covers(model, idl, id)?;
        Some((idl.trim_start_matches("::").len(), path, named))
    });
    fitting.max_by_key(|(length, _, _)| *length).map(|(_, path, named)| (path, named))
}

/// Returns the definition that an entry names, if it is this definition or contains it. `::` names
/// everything.
fn entry_covers(model: &Model, idl: &str, id: DefId) -> Option<Option<DefId>> {
    let wanted = idl.trim_start_matches("::");
    if wanted.is_empty() {
        return Some(None);
    }
    let around = std::iter::successors(Some(id), |id| model.def(*id).parent);
    around.into_iter().find(|id| model.scoped_name(*id) == wanted).map(Some)
}

fn is_module(model: &Model, id: DefId) -> bool {
    matches!(model.def(id).kind, DefKind::Module(_))
}

/// Returns the last part of a path.
fn last(path: &TokenStream) -> Option<String> {
    match path.clone().into_iter().last() {
        Some(proc_macro2::TokenTree::Ident(word)) => Some(word.to_string()),
        _ => None,
    }
}

/// Returns a path without its last part.
fn outer(path: &TokenStream) -> TokenStream {
    let mut trees: Vec<_> = path.clone().into_iter().collect();
    while let Some(tree) = trees.pop() {
        if matches!(&tree, proc_macro2::TokenTree::Punct(_)) {
            trees.pop();
            break;
        }
    }
    trees.into_iter().collect()
}

/// Returns the definitions that the output of a definition names.
pub(super) fn used(model: &Model, id: DefId) -> Vec<DefId> {
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
        work::step();
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
