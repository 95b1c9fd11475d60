//! From a resolved [`Model`] to Rust: types, references, servants and all that moves them over the wire.
//!
//! The mapping of IDL to Rust is decided here and nowhere else; `docs/IDL-MAPPING.md` says it in words. The output is one
//! hidden module and re-exports of what the IDL declares at file level, so that it can stand in a module or in a function
//! alike. Every path in it is absolute or leads through that module's root, every local name begins with `__zorb_`, which
//! no IDL name can, and no name of the prelude is used, so that the IDL may call its types `Option` or `Result`.
//!
//! Parts: `ident` and `names` (what things are called), `types`, `passing` and `typed` (what they are), then one file for each kind
//! of item.

mod abstracts;
mod ami;
mod bits;
mod client;
mod described;
mod docs;
mod enums;
mod errors;
mod external;
mod hybrid;
mod ident;
mod items;
mod local;
mod method;
mod names;
mod options;
mod passing;
mod paths;
mod reference;
mod servant;
mod shorten;
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

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use proc_macro2::TokenStream;
use quote::quote;

pub use options::{IncludePolicy, OptionProblem, Options};
pub use skeleton::{ServantNames, Skeleton, servant_names, served_interfaces, skeleton};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{DefId, DefKind, Model};
use crate::work;

use external::External;
use hybrid::Hybrid;
use method::Method;
use names::Names;

/// The Rust of a model.
#[derive(Debug)]
pub struct Emitted {
    /// All of it.
    pub tokens: TokenStream,
    /// Names that are not what they would be alone, since two are the same in Rust though they differ in IDL.
    pub warnings: Diagnostics,
}

/// Rust for all that a model defines.
///
/// # Errors
/// Names that were chosen and that are the same, each clash with both places and the way out; `@zero_copy`
/// structs of more than 64 KiB; included definitions that are needed and of which nothing says where they are.
pub fn emit(model: &Model, options: &Options) -> Result<Emitted, Diagnostics> {
    let mut cx = context(model, options)?;
    let warnings = Diagnostics::new(std::mem::take(&mut cx.warnings), Rc::clone(&model.sources));
    Ok(Emitted { tokens: cx.whole(), warnings })
}

/// What the emitter needs to know of a model, checked.
fn context<'a>(model: &'a Model, options: &'a Options) -> Result<Cx<'a>, Diagnostics> {
    let mut problems = Vec::new();
    let external = External::new(model, options);
    let mut warnings = Vec::new();
    let names = Names::new(model, options, &external, &mut problems, &mut warnings);
    structs::refuse_large(model, &mut problems);
    external.check(model, &mut problems);
    if !problems.is_empty() {
        return Err(Diagnostics::new(problems, Rc::clone(&model.sources)));
    }
    let runtime = &options.runtime;
    let mut cx = Cx {
        model,
        options,
        names,
        external,
        v1: quote!(#runtime::__private::v1),
        methods: HashMap::new(),
        hybrid: Hybrid::default(),
        outside: None,
        direct: Cell::new(None),
        left_root: Cell::new(false),
        facts: Facts::default(),
        warnings,
    };
    let interfaces =
        model.defs().iter().filter(|def| matches!(def.kind, DefKind::Interface(_) | DefKind::Value(_)));
    cx.methods = interfaces.map(|def| (def.id, cx.methods(def.id))).collect();
    cx.hybrid = Hybrid::new(&cx, &mut problems);
    cx.refuse_without_default(&mut problems);
    if !problems.is_empty() {
        return Err(Diagnostics::new(problems, Rc::clone(&model.sources)));
    }
    Ok(cx)
}

/// What every part of the emitter needs.
struct Cx<'a> {
    model: &'a Model,
    options: &'a Options,
    names: Names,
    external: External,
    /// Path of the private runtime API.
    v1: TokenStream,
    /// The methods that each interface and value type declares itself.
    methods: HashMap<DefId, Vec<Method>>,
    /// What is interpreted.
    hybrid: Hybrid,
    /// The code stands beside the output, not in it: the path of the module that has the output.
    outside: Option<TokenStream>,
    /// The file-level module that is being written, if it is not inside of a hidden module.
    direct: Cell<Option<DefId>>,
    /// Something in a file-level module names something outside of it.
    left_root: Cell<bool>,
    facts: Facts,
    warnings: Vec<Diagnostic>,
}

/// What was found out about definitions. A struct may hold another one twice, which may hold a third one twice: without this the work would
/// double with each level.
#[derive(Default)]
struct Facts {
    /// How large an array of it is taken to be.
    sizes: Found<u64>,
    /// Whether its Rust type has a fixed layout.
    fixed: Found<bool>,
    /// Whether its Rust type has a default.
    defaults: Found<bool>,
    /// Whether something stands in its module.
    modules: Found<bool>,
}

/// Answers to one question, by definition.
#[derive(Default)]
struct Found<T>(RefCell<HashMap<DefId, T>>);

impl<T: Copy> Found<T> {
    /// The answer, which is computed once.
    fn of(&self, id: DefId, compute: impl FnOnce() -> T) -> T {
        work::step();
        let known = self.0.borrow().get(&id).copied();
        known.unwrap_or_else(|| {
            let answer = compute();
            self.0.borrow_mut().insert(id, answer);
            answer
        })
    }
}
