//! Shortening of the paths in skeletons, which users read and edit. All other generated code uses full paths.

use std::cell::Cell;

use proc_macro2::{Spacing, TokenStream, TokenTree};
use quote::{TokenStreamExt, quote};

/// Paths for which there is a shorter one in every Rust module.
const SHORT_PATHS: &[(&str, &str)] = &[
    ("::core::result::Result", "Result"),
    ("::core::option::Option", "Option"),
    ("::std::string::String", "String"),
    ("::std::vec::Vec", "Vec"),
    ("::std::boxed::Box", "Box"),
    ("::std::collections::BTreeMap", "std::collections::BTreeMap"),
];

/// Keywords that precede paths and are not part of them.
const KEYWORDS: &[&str] = &[
    "as", "async", "const", "dyn", "else", "fn", "for", "if", "impl", "in", "let", "match", "move", "mut",
    "pub", "ref", "return", "static", "struct", "unsafe", "use", "where",
];

/// Names of the runtime's prelude that occur in signatures.
pub(super) const PRELUDE: &[&str] = &[
    "Any",
    "Bounded",
    "Bytes",
    "Char",
    "Fixed",
    "LongDouble",
    "ObjectRef",
    "Seq",
    "SystemException",
    "TypeCode",
    "Value",
    "ValueBase",
    "WChar",
    "WStr",
    "WString",
];

pub(super) struct Shortener {
    /// The path of the runtime, without spaces.
    runtime: String,
    /// Names that have another meaning in the module of the code.
    taken: Vec<String>,
    /// True if a shortened path starts with a name of the prelude.
    uses_prelude: Cell<bool>,
}

impl Shortener {
    /// Creates a shortener for code in a module in which the names `taken` have another meaning. `runtime` is
    /// the path of the runtime in the code.
    pub(super) fn new(runtime: &TokenStream, taken: Vec<String>) -> Self {
        Shortener { runtime: runtime.to_string().replace(' ', ""), taken, uses_prelude: Cell::new(false) }
    }

    pub(super) fn uses_prelude(&self) -> bool {
        self.uses_prelude.get()
    }

    pub(super) fn shorten(&self, tokens: TokenStream) -> TokenStream {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let mut out = TokenStream::new();
        let mut at = 0;
        while let Some(tree) = trees.get(at) {
            if let TokenTree::Group(group) = tree {
                let inside = self.shorten(group.stream());
                let mut shorter = proc_macro2::Group::new(group.delimiter(), inside);
                shorter.set_span(group.span());
                out.append(shorter);
                at += 1;
                continue;
            }
            let segments = path(&trees[at..]);
            if segments.is_empty() {
                out.append(tree.clone());
                at += 1;
                continue;
            }
            // An absolute path starts with an empty segment. Two colons separate the segments.
            let count = segments.iter().filter(|segment| !segment.is_empty()).count();
            let absolute = segments.first().is_some_and(String::is_empty);
            let len = count + 2 * (count - usize::from(!absolute));
            match self.short(&segments).and_then(|short| short.parse::<TokenStream>().ok()) {
                Some(short) => out.extend(short),
                None => out.extend(trees[at..at + len].iter().cloned()),
            }
            at += len;
        }
        out
    }

    fn short(&self, segments: &[String]) -> Option<String> {
        let whole = segments.join("::");
        let is_free = |name: &str| !self.taken.iter().any(|taken| taken == name);
        if let Some(primitive) = whole.strip_prefix("::core::primitive::") {
            return is_free(primitive).then(|| primitive.to_owned());
        }
        if let Some((_, short)) = SHORT_PATHS.iter().find(|(long, _)| *long == whole) {
            let first = short.split("::").next().unwrap_or_default();
            return is_free(first).then(|| (*short).to_owned());
        }
        if let Some(name) = whole.strip_prefix(&format!("{}::", self.runtime)) {
            let first = name.split("::").next().unwrap_or_default();
            if PRELUDE.contains(&first) && is_free(first) {
                self.uses_prelude.set(true);
                return Some(name.to_owned());
            }
            let bare = whole.strip_prefix("::")?;
            return is_free(bare.split("::").next().unwrap_or_default()).then(|| bare.to_owned());
        }
        let inside = whole.strip_prefix("self::")?;
        let first = inside.split("::").next().unwrap_or_default();
        let is_crate =
            ["std", "core", "alloc"].contains(&first) || self.runtime.trim_start_matches("::") == first;
        (!is_crate).then(|| inside.to_owned())
    }
}

/// Returns the segments of the path at the start of the tokens, or none if they start with anything else. The
/// first segment of an absolute path is empty.
fn path(trees: &[TokenTree]) -> Vec<String> {
    let is_scope = |at: usize| {
        matches!(trees.get(at), Some(TokenTree::Punct(first)) if first.as_char() == ':' && first.spacing() == Spacing::Joint)
            && matches!(trees.get(at + 1), Some(TokenTree::Punct(second)) if second.as_char() == ':')
    };
    let mut segments = Vec::new();
    let mut at = 0;
    if is_scope(0) {
        segments.push(String::new());
        at = 2;
    }
    while let Some(TokenTree::Ident(ident)) = trees.get(at) {
        if segments.is_empty() && KEYWORDS.contains(&ident.to_string().as_str()) {
            return segments;
        }
        segments.push(ident.to_string());
        at += 1;
        if !is_scope(at) || !matches!(trees.get(at + 2), Some(TokenTree::Ident(_))) {
            return segments;
        }
        at += 2;
    }
    Vec::new()
}

/// Returns the `use` item that imports the names with which shortened paths start.
pub(super) fn prelude(runtime: &TokenStream) -> TokenStream {
    quote!(use #runtime::prelude::*;)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(code: &str, taken: &[&str]) -> String {
        let taken = taken.iter().map(|name| (*name).to_owned()).collect();
        let shortener = Shortener::new(&quote!(::zorb), taken);
        shortener.shorten(code.parse().unwrap_or_default()).to_string().replace(' ', "")
    }

    #[test]
    fn paths_are_replaced_by_shorter_ones() {
        let long = "(a: &::core::primitive::str) -> ::core::result::Result<::core::option::Option<::zorb::Value<self::m::V>>, ::zorb::Ranged<::core::primitive::i32, 1, 2>>";
        assert_eq!(short(long, &[]), "(a:&str)->Result<Option<Value<m::V>>,zorb::Ranged<i32,1,2>>");
    }

    #[test]
    fn paths_are_not_shortened_to_used_names() {
        assert_eq!(
            short("::core::option::Option<::zorb::Any>", &["Option", "Any"]),
            "::core::option::Option<zorb::Any>"
        );
        assert_eq!(short("::zorb::Ranged<self::std::X>", &["zorb"]), "::zorb::Ranged<self::std::X>");
    }

    #[test]
    fn prelude_is_needed_only_by_names_that_are_free() {
        let needs = |code: &str, taken: &[&str]| {
            let taken = taken.iter().map(|name| (*name).to_owned()).collect();
            let shortener = Shortener::new(&quote!(::zorb), taken);
            shortener.shorten(code.parse().unwrap_or_default());
            shortener.uses_prelude()
        };
        assert!(needs("Vec<::zorb::Any>", &[]));
        assert!(!needs("Vec<::zorb::Any>", &["Any"]));
        assert!(!needs("::zorb::Ranged<::core::primitive::i32, 1, 2>", &[]));
    }

    #[test]
    fn other_paths_are_not_changed() {
        assert_eq!(short("<S as crate::a::B>::c(x::y, 1)", &[]), "<Sascrate::a::B>::c(x::y,1)");
        assert_eq!(short("impl ::other::A for B {}", &[]), "impl::other::AforB{}");
    }

    #[test]
    fn keywords_before_paths_are_not_part_of_them() {
        assert_eq!(short("use ::zorb::prelude::*;", &[]), "usezorb::prelude::*;");
        assert_eq!(short("impl self::m::A for B {}", &[]), "implm::AforB{}");
        assert_eq!(short("::zorb::SystemException::new()", &[]), "SystemException::new()");
    }
}
