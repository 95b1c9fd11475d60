//! Sources of IDL, and the spans that refer to them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use proc_macro2::{Literal, TokenStream};

use crate::standard::StandardFile;

mod layout;
mod place;

pub(crate) use layout::TokenText;
pub use place::Position;

/// IDL text to compile, in one of three forms.
#[derive(Clone, Debug)]
pub struct Source(pub(crate) Form);

#[derive(Clone, Debug)]
pub(crate) enum Form {
    Text {
        name: String,
        text: String,
    },
    /// The content of a string literal in a macro call.
    Literal {
        literal: Literal,
        text: String,
    },
    Tokens(TokenStream),
}

impl Source {
    /// Creates a source from the text of a file. `name` is the file's name in diagnostics.
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Source(Form::Text { name: name.into(), text: text.into() })
    }

    /// Creates a source from the bytes of a file: UTF-8, or else ISO 8859-1, the character set of OMG IDL.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Source::text(name, decode(bytes))
    }

    /// Creates a source from Rust tokens, such as the body of a macro call.
    pub fn tokens(tokens: TokenStream) -> Self {
        Source(Form::Tokens(tokens))
    }

    /// Creates a source from a string literal of a macro call, raw or not; `None` for other literals.
    pub fn literal(literal: &Literal) -> Option<Self> {
        match syn::Lit::new(literal.clone()) {
            syn::Lit::Str(text) => {
                Some(Source(Form::Literal { literal: literal.clone(), text: text.value() }))
            }
            _ => None,
        }
    }
}

pub(crate) fn decode(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| error.as_bytes().iter().map(|byte| char::from(*byte)).collect())
}

/// A range of bytes in one of the texts of [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub(crate) file: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// For a token from the body of a macro: the number of its [`Expansion`], counted from 1. Its range is
    /// then where the macro is used. 0 for other tokens.
    pub(crate) expansion: u32,
}

impl Span {
    pub(crate) const START: Span = Span { file: 0, start: 0, end: 0, expansion: 0 };

    pub(crate) fn new(file: u32, range: Range<usize>) -> Self {
        Span { file, start: clamp(range.start), end: clamp(range.end), expansion: 0 }
    }

    /// Extends the span to the end of `end`, if that is later in the same file.
    pub(crate) fn to(self, end: Span) -> Span {
        if self.file == end.file && self.start <= end.end { Span { end: end.end, ..self } } else { self }
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Maximum size of a source. Larger sources are rejected, so that every offset fits into 32 bits.
pub(crate) const MAX_TEXT_BYTES: usize = 1 << 30;

fn clamp(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// All texts of one compilation. Rust tokens are stored as text too, laid out as in their file.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<File>,
    expansions: Vec<Expansion>,
}

/// A token that results from a macro expansion.
#[derive(Clone, Debug)]
pub(crate) struct Expansion {
    pub(crate) name: Rc<str>,
    /// The token in the macro's definition.
    pub(crate) body: Span,
    /// The expansion that produced the macro's name, 0 if none.
    pub(crate) outer: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct FileInfo {
    /// The path of the file, for tools that watch it.
    pub(crate) path: Option<PathBuf>,
    /// The location of the name in the `#include` of the file.
    pub(crate) include_span: Option<Span>,
    /// Whether the file is not one of the compiler's input files.
    pub(crate) included: bool,
    /// Whether the text is built into the compiler, and is not a file that can be included.
    pub(crate) predeclared: bool,
    pub(crate) standard: Option<&'static StandardFile>,
}

/// A `#line`: the number of the line that starts at byte `offset`, and the file name if one is given.
#[derive(Clone, Debug)]
pub(crate) struct LineMark {
    pub(crate) offset: u32,
    pub(crate) line: usize,
    pub(crate) name: Option<Rc<str>>,
}

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) text: Rc<str>,
    pub(crate) info: FileInfo,
    /// Ordered by offset.
    marks: Vec<LineMark>,
    pub(crate) first_line: usize,
    /// Number of characters before the text in its first line.
    pub(crate) first_column: usize,
    origin: RustOrigin,
    lines: place::Lines,
}

/// The mapping from bytes of a text to Rust spans.
#[derive(Debug)]
enum RustOrigin {
    File,
    /// The text starts at byte `offset` of the literal's token. It is `exact` if the literal has no escapes.
    Literal {
        literal: Literal,
        offset: usize,
        exact: bool,
    },
    /// The start, end and Rust span of each token, in order.
    Tokens(Vec<(u32, u32, proc_macro2::Span)>),
}

impl Sources {
    /// Adds a text and returns its index.
    pub(crate) fn add_text(&mut self, name: String, text: Rc<str>, info: FileInfo) -> u32 {
        self.add(name, text, info, (1, 0), RustOrigin::File)
    }

    pub(crate) fn add_literal(&mut self, literal: Literal, text: Rc<str>) -> u32 {
        let token = literal.to_string();
        let offset = token.find('"').map_or(0, |quote| quote + 1);
        let exact = token.get(offset..offset + text.len()).is_some_and(|part| *part == *text);
        let start = literal.span().start();
        let name = file_name(literal.span());
        let origin = RustOrigin::Literal { literal, offset, exact };
        self.add(name, text, FileInfo::default(), (start.line.max(1), start.column + offset), origin)
    }

    pub(crate) fn add_tokens(&mut self, tokens: TokenText) -> u32 {
        let name = tokens.spans.first().map_or_else(|| MACRO.to_owned(), |(_, _, span)| file_name(*span));
        let start = (tokens.first_line.max(1), tokens.first_column);
        self.add(name, tokens.text.into(), FileInfo::default(), start, RustOrigin::Tokens(tokens.spans))
    }

    fn add(
        &mut self,
        name: String,
        text: Rc<str>,
        info: FileInfo,
        (first_line, first_column): (usize, usize),
        origin: RustOrigin,
    ) -> u32 {
        let index = self.next_index();
        let (marks, lines) = (Vec::new(), place::Lines::default());
        self.files.push(File { name, text, info, marks, first_line, first_column, origin, lines });
        index
    }

    /// Returns the index of the text that is added next.
    pub(crate) fn next_index(&self) -> u32 {
        clamp(self.files.len())
    }

    /// Returns the paths of the files that were read, each once, in the order of their first use.
    pub fn paths(&self) -> Vec<&Path> {
        let mut seen = std::collections::HashSet::new();
        let paths = self.files.iter().filter_map(|file| file.info.path.as_deref());
        paths.filter(|path| seen.insert(*path)).collect()
    }

    /// Returns the names of all texts that are not predeclared. Standard files have their names for
    /// `#include`.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let files = self.files.iter().filter(|file| !file.info.predeclared);
        files.map(|file| file.info.standard.map_or(file.name.as_str(), |standard| standard.name))
    }

    /// Returns whether the span is in an included file that is not one of the compiler's input files.
    pub fn is_included(&self, span: Span) -> bool {
        self.file(span.file).is_some_and(|file| file.info.included)
    }

    pub(crate) fn is_predeclared(&self, span: Span) -> bool {
        self.file(span.file).is_some_and(|file| file.info.predeclared)
    }

    pub(crate) fn standard_file(&self, span: Span) -> Option<&'static StandardFile> {
        self.file(span.file)?.info.standard
    }

    pub(crate) fn has_standard_files(&self) -> bool {
        self.files.iter().any(|file| file.info.standard.is_some())
    }

    pub(crate) fn file(&self, file: u32) -> Option<&File> {
        self.files.get(file as usize)
    }

    /// Returns the text of a span.
    pub fn snippet(&self, span: Span) -> &str {
        self.file(span.file).and_then(|file| file.text.get(span.range())).unwrap_or("")
    }

    /// Returns the Rust span: the first token in Rust tokens, a part of a string literal (or all of it, if
    /// rustc does not support parts), and the call site for files.
    pub fn rust_span(&self, span: Span) -> proc_macro2::Span {
        self.rust_spans(span).0
    }

    /// Returns the Rust spans of the first and the last token that an IDL span covers.
    pub(crate) fn rust_spans(&self, span: Span) -> (proc_macro2::Span, proc_macro2::Span) {
        let call_site = proc_macro2::Span::call_site();
        match self.file(span.file).map(|file| &file.origin) {
            Some(RustOrigin::Literal { literal, offset, .. }) => {
                let range = span.start as usize + offset..span.end as usize + offset;
                let part = self.has_rust_span(span).then(|| literal.subspan(range)).flatten();
                let part = part.unwrap_or_else(|| literal.span());
                (part, part)
            }
            Some(RustOrigin::Tokens(spans)) => {
                let last_index = spans.len().saturating_sub(1);
                let first = spans.partition_point(|(_, end, _)| *end <= span.start).min(last_index);
                let last = spans.partition_point(|(start, _, _)| *start < span.end);
                let last = last.saturating_sub(1).max(first);
                let at = |index: usize| spans.get(index).map_or(call_site, |(_, _, span)| *span);
                (at(first), at(last))
            }
            Some(RustOrigin::File) | None => (call_site, call_site),
        }
    }

    /// Returns whether a Rust span exists for exactly this text. Then messages need not contain its position.
    pub(crate) fn has_rust_span(&self, span: Span) -> bool {
        match self.file(span.file).map(|file| &file.origin) {
            Some(RustOrigin::Tokens(_)) => true,
            Some(RustOrigin::Literal { literal, offset, exact }) => {
                *exact && literal.subspan(offset + span.start as usize..offset + span.end as usize).is_some()
            }
            Some(RustOrigin::File) | None => false,
        }
    }
}

const MACRO: &str = "<macro>";

fn file_name(span: proc_macro2::Span) -> String {
    let name = span.file();
    if name.is_empty() { MACRO.to_owned() } else { name }
}
