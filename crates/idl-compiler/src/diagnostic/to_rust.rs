//! Diagnostics for rustc.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::{Diagnostic, Diagnostics, Severity};

impl Diagnostics {
    /// All errors as one `syn::Error`, each at its token. Warnings are left out: stable Rust has no way to say them.
    /// `None` if there is no error.
    pub fn to_syn_error(&self) -> Option<syn::Error> {
        let errors = self.items.iter().filter(|item| item.severity == Severity::Error);
        errors.map(|item| self.one_error(item)).reduce(|mut all, error| {
            all.combine(error);
            all
        })
    }

    /// All errors as `compile_error!` invocations; nothing if there is no error.
    pub fn to_compile_errors(&self) -> TokenStream {
        self.to_syn_error().map(|error| error.to_compile_error()).unwrap_or_default()
    }

    fn one_error(&self, item: &Diagnostic) -> syn::Error {
        let Some(span) = item.span() else {
            return syn::Error::new(proc_macro2::Span::call_site(), &item.message);
        };
        let (first, last) = self.sources.rust_spans(span);
        let (first, last) = (Ident::new("a", first), Ident::new("a", last));
        // Where a macro brought the token, people must see the macro as well.
        let exact = self.sources.exact_subspan(span) && span.expansion == 0;
        let message = if exact { self.plain(item) } else { self.render_one(item) };
        syn::Error::new_spanned(quote!(#first #last), message)
    }

    /// Message, notes and helps as lines; other places by file, line and column.
    fn plain(&self, item: &Diagnostic) -> String {
        let mut text = item.message.clone();
        for (index, label) in item.labels.iter().enumerate().filter(|(_, label)| !label.text.is_empty()) {
            if index == 0 {
                text.push_str(&format!(": {}", label.text));
            } else {
                text.push_str(&format!("\n  --> {}: {}", self.sources.position(label.span), label.text));
            }
        }
        for note in &item.notes {
            text.push_str(&format!("\nnote: {note}"));
        }
        for help in &item.helps {
            text.push_str(&format!("\nhelp: {help}"));
        }
        text
    }
}
