//! From a resolved [`Model`] to Rust: types, references, servants and all that moves them over the wire.
//!
//! The mapping of IDL to Rust is decided here and nowhere else; `docs/IDL-MAPPING.md` says it in words. The output is one
//! hidden module and re-exports of what the IDL declares at file level, so that it can stand in a module or in a function
//! alike. Every path in it is absolute or leads through that module's root, every local name begins with `__zorb_`, which
//! no IDL name can, and no name of the prelude is used, so that the IDL may call its types `Option` or `Result`.
//!
//! Parts: `ident` and `names` (what things are called), `types` and `passing` (what they are), then one file for each kind
//! of item.

mod client;
mod docs;
mod enums;
mod errors;
mod external;
mod ident;
mod items;
mod method;
mod names;
mod passing;
mod reference;
mod refused;
mod servant;
mod structs;
#[cfg(test)]
mod tests;
mod types;
mod unions;

use std::collections::HashMap;
use std::rc::Rc;

use proc_macro2::TokenStream;
use quote::quote;

use crate::diagnostic::Diagnostics;
use crate::model::{DefId, DefKind, Model};

use external::External;
use method::Method;
use names::Names;

/// What can be chosen about the output.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the runtime crate, `::zorb` by default.
    pub runtime: TokenStream,
    /// Rust names in place of the converted ones: scoped IDL name, Rust name. Members, enumerators and parameters are
    /// named through what they belong to (`M::S::member`, `M::I::op::parameter`).
    pub rename: Vec<(String, String)>,
    /// Where references are never nil: scoped names of members, parameters, operations, attributes and typedefs, or
    /// beginnings of such names followed by `*`.
    pub non_nil: Vec<String>,
    /// Where the Rust of included definitions is: scoped name of a module or definition (`::` for all), and its Rust path.
    /// They are not written again, whatever [`Options::include_policy`] says.
    pub external: Vec<(String, TokenStream)>,
    /// What becomes of other included definitions.
    pub include_policy: IncludePolicy,
}

/// What becomes of definitions in files that are included and not among those that the compiler was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludePolicy {
    /// They are written like all others.
    #[default]
    Compile,
    /// They are not written. Those that others use need an entry of [`Options::external`].
    Extern,
}

impl Default for Options {
    fn default() -> Self {
        let (rename, non_nil, external) = (Vec::new(), Vec::new(), Vec::new());
        Options { runtime: quote!(::zorb), rename, non_nil, external, include_policy: IncludePolicy::Compile }
    }
}

/// Why an option cannot be obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionProblem {
    /// The entry of [`Options::rename`] at this position names nothing in the IDL.
    UnknownName(usize),
    /// The Rust name of the entry at this position is no identifier.
    NotAnIdentifier(usize),
    /// The entry of [`Options::external`] at this position covers no included definition.
    NothingExternal(usize),
}

impl Options {
    /// What is wrong with these options for this model, in the order of the entries.
    pub fn check(&self, model: &Model) -> Vec<OptionProblem> {
        let known = names::renamable(model);
        let check = |(index, (idl, rust)): (usize, &(String, String))| {
            if !known.contains(idl.trim_start_matches("::")) {
                return Some(OptionProblem::UnknownName(index));
            }
            (!ident::is_identifier(rust)).then_some(OptionProblem::NotAnIdentifier(index))
        };
        let external = (0..self.external.len()).filter_map(|index| external::problem(model, self, index));
        self.rename.iter().enumerate().filter_map(check).chain(external).collect()
    }
}

/// Rust for all that a model defines.
///
/// # Errors
/// Names that are the same in Rust though they differ in IDL, each clash with both places and the way out; `@zero_copy`
/// structs of more than 64 KiB; included definitions that are needed and of which nothing says where they are; constructs
/// that have no mapping yet.
pub fn emit(model: &Model, options: &Options) -> Result<TokenStream, Diagnostics> {
    let mut problems = Vec::new();
    let external = External::new(model, options);
    let names = Names::new(model, options, &external, &mut problems);
    structs::refuse_large(model, &mut problems);
    external.check(model, &mut problems);
    refused::report(model, &external, &mut problems);
    if !problems.is_empty() {
        return Err(Diagnostics::new(problems, Rc::clone(&model.sources)));
    }
    let runtime = &options.runtime;
    let v1 = quote!(#runtime::__private::v1);
    let mut cx = Cx { model, options, names, external, v1, methods: HashMap::new() };
    let interfaces = model.defs().iter().filter(|def| matches!(def.kind, DefKind::Interface(_)));
    cx.methods = interfaces.map(|def| (def.id, cx.methods(def.id))).collect();
    Ok(cx.whole())
}

/// What every part of the emitter needs.
struct Cx<'a> {
    model: &'a Model,
    options: &'a Options,
    names: Names,
    external: External,
    /// Path of the private runtime API.
    v1: TokenStream,
    /// The methods that each interface declares itself.
    methods: HashMap<DefId, Vec<Method>>,
}
