//! Conversion of a resolved [`Model`] to Rust: types, references, servants and their marshalling.
//!
//! The mapping of IDL to Rust is defined only here; `docs/IDL-MAPPING.md` describes it. The output consists
//! of one hidden module and re-exports of the IDL's file-level declarations, so that it can be used in a
//! module or in a function. If there are only modules that name nothing outside of themselves, they are not
//! in a hidden module. Every path in the output is absolute or relative to its root. Every local name that
//! could clash with a name of the IDL begins with `__zorb_`, as no IDL name can. No name of the prelude is
//! used, so the IDL may call its types `Option` or `Result`.
//!
//! The modules `ident` and `names` determine the names of items, and `mapping`, `types`, `passing` and
//! `typed` their types. `cx` has the data that all emitters share. Most other modules emit one kind of item.

mod abstracts;
mod ami;
mod bits;
mod client;
mod cx;
mod described;
mod docs;
mod enums;
mod errors;
mod external;
mod forms;
mod ident;
mod interpreted;
mod items;
mod local;
mod mapping;
mod method;
mod methods;
mod names;
mod options;
mod passing;
mod paths;
mod reference;
mod servant;
mod shorten;
mod signature;
mod skeleton;
mod standard;
mod structs;
#[cfg(test)]
mod tests;
mod typed;
mod types;
mod unions;
mod value;
mod value_ops;

use std::rc::Rc;

use proc_macro2::TokenStream;

pub use options::{IncludePolicy, OptionProblem, Options};
pub use skeleton::{ServantNames, SkeletonOptions, servant_names, served_interfaces, skeleton};

use crate::diagnostic::Diagnostics;
use crate::model::{DefKind, Model};

use cx::Cx;
use external::External;
use forms::MarshallingModes;
use names::Names;
use paths::Paths;

/// The Rust code that is generated from a model.
#[derive(Debug)]
pub struct Emitted {
    /// All generated code.
    pub tokens: TokenStream,
    /// Warnings about names that were changed, because two different IDL names would be the same in Rust.
    pub warnings: Diagnostics,
}

/// Generates the Rust code for all definitions in a model.
///
/// # Errors
/// * Names chosen by the user that clash or are not identifiers.
/// * `@zero_copy` structs of more than 64 KiB.
/// * Annotations about marshalling, or references that are never nil, where they are not supported.
/// * Included definitions that are needed, but for which neither code is generated nor a Rust path is given.
pub fn emit(model: &Model, options: &Options) -> Result<Emitted, Diagnostics> {
    let mut cx = context(model, options)?;
    let warnings = Diagnostics::new(std::mem::take(&mut cx.warnings), Rc::clone(&model.sources));
    Ok(Emitted { tokens: items::output(&cx), warnings })
}

fn context<'a>(model: &'a Model, options: &'a Options) -> Result<Cx<'a>, Diagnostics> {
    let mut problems = Vec::new();
    let external = External::new(model, options);
    let mut warnings = Vec::new();
    let names = Names::new(model, options, &external, &mut problems, &mut warnings);
    structs::report_large(model, &mut problems);
    external.check(model, &mut problems);
    if !problems.is_empty() {
        return Err(Diagnostics::new(problems, Rc::clone(&model.sources)));
    }
    let mut cx = Cx::new(model, options, Paths::new(model, names, external));
    cx.warnings = warnings;
    let called =
        model.defs().iter().filter(|def| matches!(def.kind, DefKind::Interface(_) | DefKind::Value(_)));
    cx.methods = called.map(|def| (def.id, methods::methods(&cx, def.id))).collect();
    cx.marshalling = MarshallingModes::new(&cx, &mut problems);
    value::report_without_default(&cx, &mut problems);
    if !problems.is_empty() {
        return Err(Diagnostics::new(problems, Rc::clone(&model.sources)));
    }
    Ok(cx)
}
