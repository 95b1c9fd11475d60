//! Preprocessing tokens: words, numbers, literals and marks, before they mean anything.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::rc::Rc;

use crate::source::Span;

/// A part of a text that is shared: cloning it copies nothing.
#[derive(Clone)]
pub(crate) struct Text {
    whole: Rc<str>,
    start: u32,
    end: u32,
}

impl Text {
    /// A part of a text. Texts are at most [`crate::source::MAX_TEXT`] octets long, so places fit.
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
    /// As written, joined lines joined.
    pub(crate) text: Text,
    /// Where it stands; of a token of a macro's body, where the macro is used.
    pub(crate) span: Span,
    /// White space or a comment stands before it.
    pub(crate) spaced: bool,
    /// An expansion begins or ends before it, so that it does not touch the token before.
    pub(crate) apart: bool,
    /// The first in its line.
    pub(crate) line_start: bool,
    /// The name of a macro that met itself while it was expanded: never a macro again.
    pub(crate) painted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    Number,
    /// A character or string literal with its quotes; without the second where it has no end.
    Quoted,
    Punct,
    /// A run of what has no meaning.
    Other,
    /// A documentation comment, its text without the marker.
    Doc {
        inner: bool,
    },
    Newline,
    /// What stands for something that was reported.
    Bad,
    /// Nothing: an empty argument beside `##`.
    Nothing,
}

impl Piece {
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Punct | Kind::Word) && *self.text == *text
    }

    pub(crate) fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }

    /// Another token at this one's place.
    pub(crate) fn with(&self, kind: Kind, text: impl Into<Text>) -> Piece {
        Piece { kind, text: text.into(), painted: false, ..self.clone() }
    }
}
