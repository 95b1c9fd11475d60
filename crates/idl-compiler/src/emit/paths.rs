//! Paths from any module of the output to any of its definitions.
//!
//! By default, everything is in one hidden module. A path can then lead from one file-level definition to
//! another even if the macro is in a function, whose items have no path. A file-level module that names
//! nothing outside of itself does not need this. It is emitted directly, so that messages of rustc say
//! `bank::Account`, as users do.

use proc_macro2::TokenStream;
use quote::quote;

use super::Cx;
use crate::model::{DefId, DefKind};

impl Cx<'_> {
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

    /// Returns the output without a hidden module, if it consists of modules only and none names anything
    /// outside of itself.
    pub(super) fn modules_alone(&self, roots: &[DefId]) -> Option<TokenStream> {
        let is_module = |id: &DefId| matches!(self.model.def(*id).kind, DefKind::Module(_));
        if self.options.uses.is_some() || !roots.iter().all(is_module) {
            return None;
        }
        self.left_root.set(false);
        let mut modules = TokenStream::new();
        for root in roots {
            self.direct.set(Some(*root));
            modules.extend(self.items(0, &[*root]));
        }
        self.direct.set(None);
        (!self.left_root.get()).then_some(modules)
    }

    /// Returns the file-level definition that a definition is, or is part of.
    fn file_level(&self, id: DefId) -> DefId {
        let around = std::iter::successors(Some(id), |id| self.model.def(*id).parent);
        around.last().unwrap_or(id)
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
