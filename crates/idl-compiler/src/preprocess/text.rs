//! Preprocessing tokens: words, numbers, literals and punctuation.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::rc::Rc;

use crate::source::Span;

/// A shared part of a text. Cloning does not copy the text.
#[derive(Clone)]
pub(crate) struct Text {
    whole: Rc<str>,
    start: u32,
    end: u32,
}

impl Text {
    /// Creates a part of a text. Its offsets fit into `u32` because of [`crate::source::MAX_TEXT_BYTES`].
    pub(crate) fn part(whole: &Rc<str>, range: Range<usize>) -> Self {
        Text { whole: Rc::clone(whole), start: range.start as u32, end: range.end as u32 }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let end = text.len();
        Text::part(&Rc::from(text), 0..end)
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.whole.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

/// A preprocessing token.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) kind: Kind,
    /// The text as written, without line splices.
    pub(crate) text: Text,
    /// The token's location. For a token of a macro's body, the location of the macro's use.
    pub(crate) span: Span,
    /// Whether white space or a comment precedes the token.
    pub(crate) spaced: bool,
    /// Whether an expansion begins or ends before the token, so that it does not join the previous token.
    pub(crate) at_expansion_edge: bool,
    /// Whether the token is the first in its line.
    pub(crate) line_start: bool,
    /// Whether this is the name of a macro inside the macro's own expansion. It is never expanded again.
    pub(crate) unexpandable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    Number,
    /// A character or string literal with its quotes; without the second quote if it is unterminated.
    Quoted,
    Punct,
    /// A run of stray characters.
    Stray,
    /// A documentation comment without its marker. It is `inner` if the marker is `//!` or `/*!`.
    Doc {
        inner: bool,
    },
    Newline,
    /// A placeholder for a token that was reported as an error.
    Bad,
    /// A placeholder for an empty argument that is an operand of `##`.
    Placemarker,
}

impl Piece {
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Punct | Kind::Word) && *self.text == *text
    }

    pub(crate) fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }

    /// Returns another token at the same location.
    pub(crate) fn with(&self, kind: Kind, text: impl Into<Text>) -> Piece {
        Piece { kind, text: text.into(), unexpandable: false, ..self.clone() }
    }
}
