//! The data that every part of the emitter needs.

use std::collections::HashMap;

use proc_macro2::TokenStream;
use quote::quote;

use super::forms::Hybrid;
use super::mapping::{Cache, Mapping};
use super::method::Method;
use super::options::Options;
use super::paths::Paths;
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, Model};

pub(super) struct Cx<'a> {
    pub(super) model: &'a Model,
    pub(super) options: &'a Options,
    pub(super) paths: Paths<'a>,
    pub(super) mapping: Mapping<'a>,
    /// Path of the private runtime API.
    pub(super) v1: TokenStream,
    /// The methods that each interface and value type itself declares.
    pub(super) methods: HashMap<DefId, Vec<Method>>,
    /// Whether the module of a definition has any content.
    pub(super) modules: Cache<bool>,
    pub(super) hybrid: Hybrid,
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
            v1: quote!(#runtime::__private::v1),
            methods: HashMap::new(),
            modules: Cache::default(),
            hybrid: Hybrid::default(),
            warnings: Vec::new(),
        }
    }
}
