//! Definitions of the standard IDL files. The runtime has the Rust code for some. For others, there is none.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use super::external::{find_entry, used_definitions};
use super::options::Options;
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefKind, Model};
use crate::standard::{StandardFile, local_interface_has_rust_code};

/// Sets the locations of definitions from included standard files to the runtime crate, unless an entry of
/// [`Options::external`] specifies them. Returns the definitions without Rust code, which are not emitted.
pub(super) fn locate_standard(
    model: &Model,
    options: &Options,
    locations: &mut [Option<(TokenStream, usize)>],
    emitted: &mut [bool],
) -> HashSet<DefId> {
    let mut without_rust = HashSet::new();
    if !model.sources().has_standard_files() {
        return without_rust;
    }
    // Modules have no location of their own. The location of a native type can only come from an entry.
    let has_location = |id: DefId| !matches!(model.def(id).kind, DefKind::Module(_) | DefKind::Native);
    let standard: Vec<(DefId, &StandardFile)> = model
        .defs()
        .iter()
        .filter(|def| has_location(def.id) && find_entry(model, options, def.id).is_none())
        .filter_map(|def| Some((def.id, file_of(model, def.id)?)))
        .collect();
    // A definition that uses another one without Rust code has no Rust code either.
    loop {
        let before = without_rust.len();
        for (id, file) in &standard {
            if !without_rust.contains(id) && lacks_rust_code(model, *id, file, &without_rust) {
                without_rust.insert(*id);
            }
        }
        if without_rust.len() == before {
            break;
        }
    }
    let runtime = &options.runtime;
    for (id, file) in &standard {
        let index = id.index();
        if without_rust.contains(id) {
            emitted[index] = false;
        } else if let (true, Some(module)) = (model.is_included(*id), file.rust_module) {
            let module = Ident::new(module, Span::call_site());
            locations[index] = Some((quote!(#runtime::#module), 1));
            emitted[index] = false;
        }
    }
    without_rust
}

/// Returns the standard file of a definition, unless it is included in a scope of the user.
fn file_of(model: &Model, id: DefId) -> Option<&'static StandardFile> {
    let file = model.sources().standard_file(model.def(id).span)?;
    let outermost = std::iter::successors(Some(id), |id| model.def(*id).parent).last()?;
    (model.def(outermost).name == file.module && outermost != id).then_some(file)
}

/// Returns whether a definition has no Rust code. `without_rust` are others that are known to have none.
fn lacks_rust_code(model: &Model, id: DefId, file: &StandardFile, without_rust: &HashSet<DefId>) -> bool {
    let def = model.def(id);
    let is_native = |id: &DefId| matches!(model.def(*id).kind, DefKind::Native);
    let is_missing = |id: &DefId| without_rust.contains(id) || is_native(id);
    model.is_local_interface(id) && !local_interface_has_rust_code(&model.scoped_name(id))
        || model.is_included(id) && file.rust_module.is_none()
        || def.parent.is_some_and(|parent| without_rust.contains(&parent))
        || used_definitions(model, id).iter().any(is_missing)
}

/// Returns the definitions without Rust code that a definition uses. If one of them is a typedef, the result
/// does not include the definitions that the typedef uses.
pub(super) fn used_without_rust(model: &Model, without_rust: &HashSet<DefId>, user: DefId) -> Vec<DefId> {
    if without_rust.is_empty() {
        return Vec::new();
    }
    let found: Vec<DefId> =
        used_definitions(model, user).into_iter().filter(|id| without_rust.contains(id)).collect();
    let aliases = found.iter().filter(|id| model.typedef(**id).is_some());
    let inside: HashSet<DefId> = aliases.flat_map(|id| used_definitions(model, *id)).collect();
    found.into_iter().filter(|id| !inside.contains(id)).collect()
}

pub(super) fn missing_rust_error(model: &Model, missing: DefId, user: DefId) -> Diagnostic {
    let (name, user_name) = (model.scoped_name(missing), model.scoped_name(user));
    let message = format!("`{user_name}` uses `{name}`, which is internal to ORBs and has no Rust type");
    Diagnostic::error("no-extern", model.def(user).span, message)
        .and(model.def(missing).span, "declared here")
        .help(format!("give its Rust type with `extern(\"::{name}\" = ::path::Type)`, or do not use it"))
}
