//! Diagnostics for rustc.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::{Diagnostic, Diagnostics, Severity};

/// The codes of warnings about IDL that this compiler accepts, but other IDL compilers may reject.
const PORTABILITY_CODES: &[&str] = &["use-then-define", "enclosing-scope-name", "keyword-collision"];

impl Diagnostics {
    /// Returns all errors as one `syn::Error`, each at its token; `None` if there is no error. Warnings are
    /// not included: see [`Diagnostics::to_warnings`].
    pub fn to_syn_error(&self) -> Option<syn::Error> {
        let errors = self.items.iter().filter(|item| item.severity == Severity::Error);
        errors.map(|item| self.syn_error(item)).reduce(|mut all, error| {
            all.combine(error);
            all
        })
    }

    /// Returns all errors as `compile_error!` invocations; empty if there is no error.
    pub fn to_compile_errors(&self) -> TokenStream {
        self.to_syn_error().map(|error| error.to_compile_error()).unwrap_or_default()
    }

    /// Returns the warnings as Rust items that make rustc print them, each at its token.
    ///
    /// On stable Rust, macros cannot report warnings of their own. The use of a deprecated item is a warning
    /// with a text and a location. Editors show it, `#[allow(deprecated)]` around the macro hides it, and
    /// `-D warnings` turns it into an error.
    ///
    /// If `portable` is true, warnings about IDL that other IDL compilers may reject are included. This is
    /// intended for IDL in files, because those compilers cannot read IDL in Rust.
    pub fn to_warnings(&self, portable: bool) -> TokenStream {
        let shown = |item: &&Diagnostic| {
            item.severity == Severity::Warning && (portable || !PORTABILITY_CODES.contains(&item.code))
        };
        self.items.iter().filter(shown).map(|item| self.warning_item(item)).collect()
    }

    fn warning_item(&self, item: &Diagnostic) -> TokenStream {
        let (message, span) = match item.span() {
            None => (item.message.clone(), proc_macro2::Span::call_site()),
            Some(span) if self.has_exact_rust_span(span) => {
                (self.plain_text(item), self.sources.rust_spans(span).0)
            }
            // The excerpt is on separate lines, because rustc does not indent it.
            Some(span) => (format!("\n{}\n", self.render_for_rustc(item)), self.sources.rust_spans(span).0),
        };
        // The name is part of rustc's message: "use of deprecated constant `_::IDL_WARNING`: ...".
        let used = Ident::new("IDL_WARNING", span);
        quote! {
            const _: () = {
                #[deprecated(note = #message)]
                const IDL_WARNING: () = ();
                #used
            };
        }
    }

    /// Returns whether rustc shows exactly this location. A token from an expansion of an IDL macro needs the
    /// rendered text, which shows the macro as well.
    fn has_exact_rust_span(&self, span: crate::source::Span) -> bool {
        self.sources.has_rust_span(span) && span.expansion == 0
    }

    fn syn_error(&self, item: &Diagnostic) -> syn::Error {
        let Some(span) = item.span() else {
            return syn::Error::new(proc_macro2::Span::call_site(), &item.message);
        };
        let (first, last) = self.sources.rust_spans(span);
        let (first, last) = (Ident::new("a", first), Ident::new("a", last));
        let message =
            if self.has_exact_rust_span(span) { self.plain_text(item) } else { self.render_for_rustc(item) };
        syn::Error::new_spanned(quote!(#first #last), message)
    }

    /// Returns the message, notes and helps as lines. Related locations are given by file, line and column.
    fn plain_text(&self, item: &Diagnostic) -> String {
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
