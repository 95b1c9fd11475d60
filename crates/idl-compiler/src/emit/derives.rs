//! Options of the user for one definition: derived traits and default bodies.

use proc_macro2::TokenStream;
use quote::quote;

use super::cx::Cx;
use super::method::Method;
use super::options::{covers, matches_name, relative_path};
use crate::model::Def;

/// Derive macros of the standard library, with the modules of their traits. Their full paths are emitted,
/// because the IDL may use the same names.
const STANDARD_DERIVES: &[(&str, &str)] = &[
    ("Clone", "clone"),
    ("Copy", "marker"),
    ("Debug", "fmt"),
    ("Default", "default"),
    ("Eq", "cmp"),
    ("Hash", "hash"),
    ("Ord", "cmp"),
    ("PartialEq", "cmp"),
    ("PartialOrd", "cmp"),
];

impl Cx<'_> {
    /// Returns the `#[derive]` that the user requested for a type, without the traits that the type
    /// implements by default.
    pub(super) fn derives(&self, depth: usize, def: &Def, default: &[&str]) -> TokenStream {
        let scoped = self.model.scoped_name(def.id);
        let mut seen = Vec::new();
        let mut paths = Vec::new();
        for (_, path) in self.options.derive.iter().filter(|(pattern, _)| matches_name(pattern, &scoped)) {
            let text = path.to_string().replace(' ', "");
            let standard = STANDARD_DERIVES.iter().find(|(name, module)| {
                let text = text.trim_start_matches("::");
                text == *name
                    || ["core", "std"].iter().any(|root| text == format!("{root}::{module}::{name}"))
            });
            let key = standard.map_or(text.clone(), |(name, _)| (*name).to_owned());
            if default.contains(&key.as_str()) || seen.contains(&key) {
                continue;
            }
            seen.push(key);
            let span =
                path.clone().into_iter().next().map_or(proc_macro2::Span::call_site(), |tree| tree.span());
            paths.push(match standard {
                Some((name, module)) => {
                    let (name, module) =
                        (proc_macro2::Ident::new(name, span), proc_macro2::Ident::new(module, span));
                    quote!(::core::#module::#name)
                }
                None => relative_path(path, self.paths.up(depth)),
            });
        }
        if paths.is_empty() { TokenStream::new() } else { quote!(#[derive(#(#paths),*)]) }
    }

    /// Returns whether the servant need not implement the method.
    pub(super) fn has_default_body(&self, method: &Method) -> bool {
        self.options.default_bodies.iter().any(|pattern| covers(self.model, pattern, method.def))
    }
}
