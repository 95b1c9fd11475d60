//! Rust identifiers from IDL names: heck's conversions, keywords, spans.

use heck::{ToShoutySnakeCase, ToSnakeCase, ToUpperCamelCase};
use proc_macro2::{Ident, Span};
use quote::{ToTokens, TokenStreamExt};

/// A Rust name that can be written as an identifier in every edition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RustName(String);

/// Which convention a name follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// Modules, members, operations, parameters.
    Snake,
    /// Types, traits, variants.
    Camel,
    /// Constants.
    Shouty,
}

impl RustName {
    /// The Rust name of an IDL name.
    pub(crate) fn convert(idl: &str, case: Case) -> Self {
        let name = match case {
            Case::Snake => idl.to_snake_case(),
            Case::Camel => idl.to_upper_camel_case(),
            Case::Shouty => idl.to_shouty_snake_case(),
        };
        RustName::verbatim(&name)
    }

    /// A name taken as it is, but for the four keywords that have no raw form: those get an underscore.
    pub(crate) fn verbatim(name: &str) -> Self {
        match name {
            "self" | "Self" | "super" | "crate" => RustName(format!("{name}_")),
            _ => RustName(name.to_owned()),
        }
    }

    /// The same name with an underscore more.
    pub(crate) fn underscored(&self) -> Self {
        RustName(format!("{}_", self.0))
    }

    /// The name without `r#`.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// An identifier, raw where the name is a keyword of any edition. Located at `span`, but resolved as if written
    /// where the macro is called: lints of the user's crate then leave it alone.
    pub(crate) fn at(&self, span: Span) -> Ident {
        let span = span.resolved_at(Span::call_site());
        if is_keyword(&self.0) { Ident::new_raw(&self.0, span) } else { Ident::new(&self.0, span) }
    }

    /// An identifier without a place in the IDL.
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

/// `name` can be an identifier, raw or not: what `rename` accepts.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut octets = name.bytes();
    let first = octets.next().is_some_and(|c| c.is_ascii_alphabetic() || c == b'_');
    first && name != "_" && octets.all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// Keywords of the editions 2015 to 2024, strict and reserved, that can be raw identifiers.
fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "abstract"
            | "as"
            | "async"
            | "await"
            | "become"
            | "box"
            | "break"
            | "const"
            | "continue"
            | "do"
            | "dyn"
            | "else"
            | "enum"
            | "extern"
            | "false"
            | "final"
            | "fn"
            | "for"
            | "gen"
            | "if"
            | "impl"
            | "in"
            | "let"
            | "loop"
            | "macro"
            | "match"
            | "mod"
            | "move"
            | "mut"
            | "override"
            | "priv"
            | "pub"
            | "ref"
            | "return"
            | "static"
            | "struct"
            | "trait"
            | "true"
            | "try"
            | "type"
            | "typeof"
            | "unsafe"
            | "unsized"
            | "use"
            | "virtual"
            | "where"
            | "while"
            | "yield"
    )
}

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
