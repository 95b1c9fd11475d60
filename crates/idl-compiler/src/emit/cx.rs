//! The data that every part of the emitter needs.

use std::collections::HashMap;

use proc_macro2::TokenStream;
use quote::quote;

use super::forms::MarshallingModes;
use super::mapping::{Cache, Mapping};
use super::method::Method;
use super::options::Options;
use super::paths::Paths;
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, Model};

/// The number of modules below the root of the output that enclose emitted code. The root is the hidden
/// module or, without one, the module that contains the output.
pub(super) type ModuleDepth = usize;

/// The context of the emitter.
pub(super) struct Cx<'a> {
    pub(super) model: &'a Model,
    pub(super) options: &'a Options,
    pub(super) paths: Paths<'a>,
    pub(super) mapping: Mapping<'a>,
    /// The path of the module from which the emitted code takes the items of the runtime: `__private::v1` of
    /// the runtime crate or, for a skeleton, the crate itself.
    pub(super) runtime_path: TokenStream,
    /// The methods that each interface and value type itself declares.
    pub(super) methods: HashMap<DefId, Vec<Method>>,
    /// Whether the module of a definition has any content.
    pub(super) has_module_content: Cache<bool>,
    pub(super) marshalling: MarshallingModes,
    pub(super) warnings: Vec<Diagnostic>,
}

impl<'a> Cx<'a> {
    pub(super) fn new(model: &'a Model, options: &'a Options, paths: Paths<'a>) -> Self {
        let runtime = &options.runtime;
        Cx {
            model,
            options,
            paths,
            mapping: Mapping::new(model, options),
            runtime_path: quote!(#runtime::__private::v1),
            methods: HashMap::new(),
            has_module_content: Cache::default(),
            marshalling: MarshallingModes::default(),
            warnings: Vec::new(),
        }
    }
}
