//! Paths from any module of the output to any of its definitions.
//!
//! By default, everything is in one hidden module. A path can then lead from one file-level definition to
//! another even if the macro is in a function, whose items have no path. A file-level module that names
//! nothing outside of itself does not need this. It is emitted directly, so that messages of rustc say
//! `bank::Account`, as users do.

use std::cell::Cell;

use proc_macro2::TokenStream;
use quote::quote;

use super::external::External;
use super::ident::RustName;
use super::method::Method;
use super::names::Names;
use crate::model::{Def, DefId, Model};
use crate::work;

/// The Rust names of all definitions, and the paths to them.
pub(super) struct Paths<'a> {
    model: &'a Model,
    pub(super) names: Names,
    pub(super) external: External,
    /// The path of the module with the output, for code that is emitted outside of it.
    pub(super) outside: Option<TokenStream>,
    /// The file-level module that is being emitted, if it is not inside a hidden module.
    direct: Cell<Option<DefId>>,
    /// An item in a file-level module names an item outside of the module.
    left_root: Cell<bool>,
}

impl<'a> Paths<'a> {
    /// Returns the paths from inside a hidden module of the output.
    pub(super) fn new(model: &'a Model, names: Names, external: External) -> Self {
        Paths { model, names, external, outside: None, direct: Cell::new(None), left_root: Cell::new(false) }
    }

    pub(super) fn handler_path(&self, depth: usize, id: DefId) -> TokenStream {
        self.path(depth, id, &self.names[id].handler)
    }

    /// Returns the path of a type that belongs to a method.
    pub(super) fn type_of(&self, depth: usize, method: &Method, name: &RustName) -> TokenStream {
        if method.def != method.owner {
            return self.path(depth, method.def, name);
        }
        // A factory is not a definition. Its type is in the module of its value type.
        let scope = self.scope_path(depth, method.owner);
        let module = &self.names[method.owner].module;
        quote!(#scope::#module::#name)
    }

    /// Returns the interface's module for items that only generated code uses.
    pub(super) fn hidden(&self, interface: DefId) -> RustName {
        RustName::verbatim(&format!("__zorb_{}", self.names[interface].module))
    }

    /// Returns the path of a name in that module.
    pub(super) fn hidden_path(&self, depth: usize, interface: DefId) -> TokenStream {
        self.path(depth, interface, &self.hidden(interface))
    }

    /// Returns the path of the module that contains a definition's items.
    pub(super) fn scope_path(&self, depth: usize, id: DefId) -> TokenStream {
        if let Some(path) = self.external.scope(self.up(depth), id, &self.names) {
            return path;
        }
        let scope = &self.names[id].scope;
        if let Some(at) = &self.outside {
            let scope = scope.iter();
            return quote!(#at #(::#scope)*);
        }
        // Inside a file-level module, relative paths cannot lead out of it.
        let is_direct = match self.direct.get() {
            Some(root) if self.file_level(id) == root && id != root => true,
            Some(_) => {
                self.left_root.set(true);
                false
            }
            None => false,
        };
        let root = up(depth - usize::from(is_direct));
        let scope = scope.iter().skip(usize::from(is_direct));
        quote!(#root #(::#scope)*)
    }

    /// Returns the number of modules of the output that enclose a location `depth` levels below its root.
    pub(super) fn up(&self, depth: usize) -> usize {
        match (&self.outside, self.direct.get()) {
            (Some(_), _) => 0,
            (None, Some(_)) => depth,
            (None, None) => depth + 1,
        }
    }

    /// Returns the file-level definition that a definition is, or is part of.
    fn file_level(&self, id: DefId) -> DefId {
        let around = std::iter::successors(Some(id), |id| self.model.def(*id).parent);
        around.last().unwrap_or(id)
    }

    /// Returns the path of an interface's servant trait.
    pub(super) fn servant(&self, depth: usize, id: DefId) -> TokenStream {
        self.path(depth, id, &self.names[id].servant)
    }

    /// Returns the path of the local trait of `of` from inside the hidden module of `def`.
    pub(super) fn local_path(&self, depth: usize, def: &Def, of: DefId) -> TokenStream {
        if of == def.id {
            return quote!(Local);
        }
        let hidden = self.hidden_path(depth, of);
        quote!(#hidden::Local)
    }

    /// Returns the name of the constant that describes a typedef.
    pub(super) fn alias_desc(&self, id: DefId) -> RustName {
        let function = self.names[id].type_code.as_str().to_uppercase();
        RustName::verbatim(&format!("__ZORB_{function}"))
    }

    /// Returns the path of a name in the same module as the item of `id`.
    pub(super) fn path(&self, depth: usize, id: DefId, name: &RustName) -> TokenStream {
        work::step();
        let scope = self.scope_path(depth, id);
        quote!(#scope::#name)
    }

    /// Returns the path of the item of `id`.
    pub(super) fn item(&self, depth: usize, id: DefId) -> TokenStream {
        self.path(depth, id, &self.names[id].item)
    }

    /// Returns the path of an interface's reference type, or of an alias of it.
    pub(super) fn reference(&self, depth: usize, id: DefId) -> TokenStream {
        self.path(depth, id, &self.names[id].reference)
    }

    /// Returns the path of a trait of operations.
    pub(super) fn operations_path(&self, depth: usize, id: DefId) -> TokenStream {
        self.path(depth, id, &self.names[id].ops)
    }

    /// Emits file-level modules that are not in a hidden module; `None` if one names anything outside of
    /// itself.
    pub(super) fn direct(
        &self,
        roots: &[DefId],
        emit: impl Fn(DefId) -> Vec<TokenStream>,
    ) -> Option<TokenStream> {
        self.left_root.set(false);
        let mut modules = TokenStream::new();
        for root in roots {
            self.direct.set(Some(*root));
            modules.extend(emit(*root));
        }
        self.direct.set(None);
        (!self.left_root.get()).then_some(modules)
    }
}

/// Returns the path to the module this many levels up.
fn up(levels: usize) -> TokenStream {
    if levels == 0 {
        return quote!(self);
    }
    let up = std::iter::repeat_n(quote!(super), levels);
    quote!(#(#up)::*)
}
