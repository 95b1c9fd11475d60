//! Tokens of IDL, common to both lexers.

use crate::source::Span;

/// A token with its location and the documentation comments before it.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
    pub(crate) comments: Option<Box<Comments>>,
    /// Whether a stray character before this token was reported. Then an unexpected token is not reported.
    pub(crate) after_stray: bool,
    /// Whether no blank, comment or edge of a macro expansion separates this token from the previous one.
    pub(crate) joined: bool,
}

/// The texts of the documentation comments before a token, without comment markers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comments {
    /// `///` and `/** */`: documentation of the following item.
    pub(crate) outer: Vec<String>,
    /// `//!` and `/*! */`: documentation of the enclosing item.
    pub(crate) inner: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// An identifier; `escaped` if it was written with a leading underscore, which is not part of `text`.
    Ident {
        text: String,
        escaped: bool,
    },
    /// A keyword of [`KEYWORDS`].
    Keyword(&'static str),
    Integer(u64),
    /// Digits, point and exponent as written.
    Float(String),
    /// Digits and point of a fixed-point literal as written, without the `d`.
    Fixed(String),
    Char {
        /// Code of the character. A UTF-16 code unit if wide; surrogates are possible only from escapes.
        code: u32,
        wide: Wideness,
    },
    Text {
        text: String,
        wide: Wideness,
    },
    /// A literal whose error has already been reported.
    BadLiteral,
    Punct(Punct),
    /// `#pragma`; its arguments follow up to [`TokenKind::PragmaEnd`].
    Pragma,
    PragmaEnd,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wideness {
    Narrow,
    Wide,
    /// Determined by the declared type, because Rust's lexer rejects `L"..."`.
    ByType,
}

macro_rules! puncts {
    ($($name:ident = $text:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Punct { $($name,)* }

        impl Punct {
            pub(crate) fn of(text: &str) -> Option<Punct> {
                match text {
                    $($text => Some(Punct::$name),)*
                    _ => None,
                }
            }

            pub(crate) fn text(self) -> &'static str {
                match self { $(Punct::$name => $text,)* }
            }
        }
    };
}

// There is no `>>`, because it can close two sequences. In expressions, the parser joins two `>`.
puncts! {
    Scope = "::",
    ShiftLeft = "<<",
    ParenOpen = "(",
    ParenClose = ")",
    BraceOpen = "{",
    BraceClose = "}",
    BracketOpen = "[",
    BracketClose = "]",
    Less = "<",
    Greater = ">",
    Comma = ",",
    Semicolon = ";",
    Colon = ":",
    Equal = "=",
    Plus = "+",
    Minus = "-",
    Star = "*",
    Slash = "/",
    Percent = "%",
    And = "&",
    Or = "|",
    Xor = "^",
    Tilde = "~",
    At = "@",
}

/// The words that are keywords everywhere, in case-insensitive order. `factory` and newer words (`int8`) are
/// keywords only where the grammar expects them, because existing IDL uses them as names.
pub(crate) const KEYWORDS: &[&str] = &[
    "abstract",
    "any",
    "attribute",
    "boolean",
    "case",
    "char",
    "const",
    "context",
    "custom",
    "default",
    "double",
    "enum",
    "exception",
    "FALSE",
    "fixed",
    "float",
    "in",
    "inout",
    "interface",
    "local",
    "long",
    "module",
    "native",
    "Object",
    "octet",
    "oneway",
    "out",
    "private",
    "public",
    "raises",
    "readonly",
    "sequence",
    "short",
    "string",
    "struct",
    "supports",
    "switch",
    "TRUE",
    "truncatable",
    "typedef",
    "union",
    "unsigned",
    "ValueBase",
    "valuetype",
    "void",
    "wchar",
    "wstring",
];

/// Returns the keyword that equals the text, ignoring case.
pub(crate) fn keyword(text: &str) -> Option<&'static str> {
    let lower = |byte: u8| byte.to_ascii_lowercase();
    let at = KEYWORDS.binary_search_by(|word| word.bytes().map(lower).cmp(text.bytes().map(lower)));
    at.ok().and_then(|at| KEYWORDS.get(at)).copied()
}

impl TokenKind {
    pub(crate) fn describe(&self) -> String {
        match self {
            TokenKind::Ident { text, escaped: false } => format!("`{text}`"),
            TokenKind::Ident { text, escaped: true } => format!("`_{text}`"),
            TokenKind::Keyword(word) => format!("`{word}`"),
            TokenKind::Integer(_) | TokenKind::Float(_) | TokenKind::Fixed(_) => "a number".to_owned(),
            TokenKind::Char { .. } => "a character literal".to_owned(),
            TokenKind::Text { .. } => "a string literal".to_owned(),
            TokenKind::BadLiteral => "a malformed literal".to_owned(),
            TokenKind::Punct(punct) => format!("`{}`", punct.text()),
            TokenKind::Pragma => "`#pragma`".to_owned(),
            TokenKind::PragmaEnd => "the end of the line".to_owned(),
            TokenKind::End => "the end of the text".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KEYWORDS, keyword};

    #[test]
    fn every_keyword_is_found_in_any_case() {
        for word in KEYWORDS {
            assert_eq!(keyword(word), Some(*word));
            assert_eq!(keyword(&word.to_uppercase()), Some(*word));
        }
        assert_eq!(keyword("interfaces"), None);
        assert_eq!(keyword(""), None);
    }
}
