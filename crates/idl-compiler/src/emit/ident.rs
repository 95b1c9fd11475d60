//! Conversion of IDL names to Rust identifiers.

use heck::{ToShoutySnakeCase, ToSnakeCase, ToUpperCamelCase};
use proc_macro2::{Ident, Span};
use quote::{ToTokens, TokenStreamExt};

/// A Rust name that can be written as an identifier in every edition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RustName(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// For modules, members, operations, parameters.
    Snake,
    /// For types, traits, variants.
    Camel,
    /// For constants.
    Shouty,
}

impl RustName {
    pub(crate) fn convert(idl: &str, case: Case) -> Self {
        let name = match case {
            Case::Snake => idl.to_snake_case(),
            Case::Camel => idl.to_upper_camel_case(),
            Case::Shouty => idl.to_shouty_snake_case(),
        };
        RustName::verbatim(&name)
    }

    /// Uses a name unchanged, except that the four keywords without a raw form get an underscore.
    pub(crate) fn verbatim(name: &str) -> Self {
        match name {
            "self" | "Self" | "super" | "crate" => RustName(format!("{name}_")),
            _ => RustName(name.to_owned()),
        }
    }

    pub(crate) fn underscored(&self) -> Self {
        RustName(format!("{}_", self.0))
    }

    /// Appends underscores until the name is not taken.
    pub(crate) fn until_free(mut self, is_taken: impl Fn(&RustName) -> bool) -> Self {
        while is_taken(&self) {
            self = self.underscored();
        }
        self
    }

    /// Returns the name without `r#`.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns an identifier with the location `span`, raw if the name is a keyword of any edition. The
    /// identifier is resolved at the macro's call site, so that lints of the user's crate ignore it.
    pub(crate) fn at(&self, span: Span) -> Ident {
        let span = span.resolved_at(Span::call_site());
        if KEYWORDS.contains(&self.0.as_str()) {
            Ident::new_raw(&self.0, span)
        } else {
            Ident::new(&self.0, span)
        }
    }

    pub(crate) fn ident(&self) -> Ident {
        self.at(Span::call_site())
    }
}

impl ToTokens for RustName {
    fn to_tokens(&self, tokens: &mut proc_macro2::TokenStream) {
        tokens.append(self.ident());
    }
}

impl std::fmt::Display for RustName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether `name` can be an identifier, raw or not, as `rename` requires.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|c| c.is_ascii_alphabetic() || c == b'_');
    first && name != "_" && bytes.all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// Keywords of the editions 2015 to 2024, strict and reserved, that can be raw identifiers.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait",
    "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(idl: &str, case: Case) -> String {
        RustName::convert(idl, case).ident().to_string()
    }

    #[test]
    fn names_follow_rust_conventions() {
        assert_eq!(converted("InsufficientFunds", Case::Snake), "insufficient_funds");
        assert_eq!(converted("sendShortSeq", Case::Snake), "send_short_seq");
        assert_eq!(converted("IORTable", Case::Camel), "IorTable");
        assert_eq!(converted("TTCP", Case::Camel), "Ttcp");
        assert_eq!(converted("maxSize", Case::Shouty), "MAX_SIZE");
    }

    #[test]
    fn keywords_become_raw_and_the_four_without_a_raw_form_get_an_underscore() {
        for name in ["type", "match", "async", "await", "gen", "try", "dyn", "unsafe", "yield"] {
            assert_eq!(converted(name, Case::Snake), format!("r#{name}"));
        }
        for name in ["self", "super", "crate"] {
            assert_eq!(converted(name, Case::Snake), format!("{name}_"));
        }
        assert_eq!(converted("self", Case::Camel), "Self_");
        assert_eq!(converted("union", Case::Snake), "union");
    }

    #[test]
    fn only_ascii_identifiers_are_accepted_for_renaming() {
        assert!(["a", "_a", "type", "Self", "a1"].into_iter().all(is_identifier));
        assert!(["", "_", "1a", "a-b", "é", "a b", "r#a"].into_iter().all(|name| !is_identifier(name)));
    }
}
