//! Paths from any module of the output to any definition.
//!
//! By default, everything is in one hidden module. Relative paths between file-level definitions then work
//! even if the macro is used in a function, whose items have no path. A file-level module that names nothing
//! outside of itself does not need the hidden module. It is emitted directly, so that messages of rustc
//! contain the paths that users write, such as `bank::Account`.

use std::cell::Cell;

use proc_macro2::TokenStream;
use quote::quote;

use super::cx::ModuleDepth;
use super::external::External;
use super::ident::RustName;
use super::method::Method;
use super::names::Names;
use crate::model::{Def, DefId, Model};
use crate::work;

pub(super) struct Paths<'a> {
    model: &'a Model,
    pub(super) names: Names,
    pub(super) external: External,
    /// The path of the module with the output, for code that is not part of the output.
    pub(super) output_module: Option<TokenStream>,
    /// The file-level module that is being emitted without a hidden module.
    direct_root: Cell<Option<DefId>>,
    /// True if an item in the directly emitted module names an item outside of that module.
    names_outside_root: Cell<bool>,
}

impl<'a> Paths<'a> {
    pub(super) fn new(model: &'a Model, names: Names, external: External) -> Self {
        Paths {
            model,
            names,
            external,
            output_module: None,
            direct_root: Cell::new(None),
            names_outside_root: Cell::new(false),
        }
    }

    pub(super) fn handler_path(&self, depth: ModuleDepth, id: DefId) -> TokenStream {
        self.path(depth, id, &self.names[id].handler)
    }

    pub(super) fn method_type(&self, depth: ModuleDepth, method: &Method, name: &RustName) -> TokenStream {
        if method.def != method.owner {
            return self.path(depth, method.def, name);
        }
        // A factory is not a definition. Its type is in the module of its value type.
        let scope = self.scope_path(depth, method.owner);
        let module = &self.names[method.owner].module;
        quote!(#scope::#module::#name)
    }

    /// Returns the name of an interface's hidden module, whose items only generated code uses.
    pub(super) fn hidden_name(&self, interface: DefId) -> RustName {
        RustName::verbatim(&format!("__zorb_{}", self.names[interface].module))
    }

    pub(super) fn hidden_path(&self, depth: ModuleDepth, interface: DefId) -> TokenStream {
        self.path(depth, interface, &self.hidden_name(interface))
    }

    /// Returns the path of the module that contains a definition's items.
    pub(super) fn scope_path(&self, depth: ModuleDepth, id: DefId) -> TokenStream {
        if let Some(path) = self.external.scope(self.enclosing_module_count(depth), id, &self.names) {
            return path;
        }
        let scope = &self.names[id].scope;
        if let Some(at) = &self.output_module {
            let scope = scope.iter();
            return quote!(#at #(::#scope)*);
        }
        // Relative paths cannot lead out of a file-level module that is emitted directly.
        let is_direct = match self.direct_root.get() {
            Some(root) if self.file_level(id) == root && id != root => true,
            Some(_) => {
                self.names_outside_root.set(true);
                false
            }
            None => false,
        };
        let root = super_path(depth - usize::from(is_direct));
        let scope = scope.iter().skip(usize::from(is_direct));
        quote!(#root #(::#scope)*)
    }

    /// Returns the number of modules of the output that enclose code at this depth.
    pub(super) fn enclosing_module_count(&self, depth: ModuleDepth) -> usize {
        match (&self.output_module, self.direct_root.get()) {
            (Some(_), _) => 0,
            (None, Some(_)) => depth,
            (None, None) => depth + 1,
        }
    }

    /// Returns the file-level definition that contains a definition, or the definition itself.
    fn file_level(&self, id: DefId) -> DefId {
        let scopes = std::iter::successors(Some(id), |id| self.model.def(*id).parent);
        scopes.last().unwrap_or(id)
    }

    pub(super) fn servant(&self, depth: ModuleDepth, id: DefId) -> TokenStream {
        self.path(depth, id, &self.names[id].servant)
    }

    /// Returns the path of the local trait of `interface` for code in the hidden module of `def`.
    pub(super) fn local_path(&self, depth: ModuleDepth, def: &Def, interface: DefId) -> TokenStream {
        if interface == def.id {
            return quote!(Local);
        }
        let hidden = self.hidden_path(depth, interface);
        quote!(#hidden::Local)
    }

    pub(super) fn alias_constant(&self, id: DefId) -> RustName {
        let function = self.names[id].type_code.as_str().to_uppercase();
        RustName::verbatim(&format!("__ZORB_{function}"))
    }

    /// Returns the path of a name in the same module as the item of `id`.
    pub(super) fn path(&self, depth: ModuleDepth, id: DefId, name: &RustName) -> TokenStream {
        work::count_step();
        let scope = self.scope_path(depth, id);
        quote!(#scope::#name)
    }

    pub(super) fn item(&self, depth: ModuleDepth, id: DefId) -> TokenStream {
        self.path(depth, id, &self.names[id].item)
    }

    /// Returns the path of the reference type of an interface or of an alias of an interface.
    pub(super) fn reference(&self, depth: ModuleDepth, id: DefId) -> TokenStream {
        self.path(depth, id, &self.names[id].reference)
    }

    pub(super) fn operations_path(&self, depth: ModuleDepth, id: DefId) -> TokenStream {
        self.path(depth, id, &self.names[id].operations_trait)
    }

    /// Emits file-level modules without a hidden module. Returns `None` if one names anything outside itself.
    pub(super) fn emit_direct(
        &self,
        roots: &[DefId],
        emit: impl Fn(DefId) -> Vec<TokenStream>,
    ) -> Option<TokenStream> {
        self.names_outside_root.set(false);
        let mut modules = TokenStream::new();
        for root in roots {
            self.direct_root.set(Some(*root));
            modules.extend(emit(*root));
        }
        self.direct_root.set(None);
        (!self.names_outside_root.get()).then_some(modules)
    }
}

fn super_path(levels: usize) -> TokenStream {
    if levels == 0 {
        return quote!(self);
    }
    let up = std::iter::repeat_n(quote!(super), levels);
    quote!(#(#up)::*)
}
