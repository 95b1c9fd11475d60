//! Conversion of a text to preprocessing tokens, including line ends and documentation comments. Continued
//! lines are joined, and other comments are dropped.

use std::rc::Rc;

use super::text::{Kind, Piece, Text};
use crate::source::Span;

/// Punctuation that is scanned as one token although it has several characters. Other such punctuation (`>>`,
/// or `==` in `#if`) is scanned as single characters. The parsers that need it combine them.
const MULTI_CHAR_PUNCTS: &[&str] = &["...", "::", "<<", "##"];

/// Names of zorb's own annotations.
pub(crate) const OWN_ANNOTATIONS: &[&str] =
    &["rust_name", "non_nil", "stream", "zero_copy", "interpretive", "adaptive"];

/// A position in a text, from which tokens are read.
#[derive(Debug)]
pub(super) struct Cursor {
    pub(super) text: Rc<str>,
    pub(super) at: usize,
    /// Index of the text in `Sources`.
    pub(super) file: u32,
    /// Number of line ends before the position.
    pub(super) line: usize,
    /// Whether the next token is the first in its line.
    line_start: bool,
    /// Whether white space or a comment precedes the next token.
    spaced: bool,
    /// The end of the last consumed character, before line splices that follow it.
    end: usize,
    pub(super) unterminated_comment: Option<Span>,
}

impl Cursor {
    pub(super) fn new(file: u32, text: Rc<str>) -> Self {
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let (line_start, spaced, unterminated_comment) = (true, false, None);
        Cursor { text, at, file, line: 0, line_start, spaced, end: at, unterminated_comment }
    }

    /// Returns the next token, including line ends and documentation comments; `None` at the end of the text.
    pub(super) fn next(&mut self) -> Option<Piece> {
        loop {
            self.splice();
            let start = self.at;
            let first = self.peek()?;
            match first {
                '\n' => {
                    self.bump();
                    let piece = self.make_piece(Kind::Newline, start);
                    (self.line_start, self.spaced) = (true, true);
                    return Some(piece);
                }
                ' ' | '\t' | '\r' | '\x0b' | '\x0c' => {
                    self.bump();
                    self.skip_ascii(|byte| byte == b' ');
                    self.spaced = true;
                }
                '/' => {
                    self.bump();
                    match self.peek() {
                        Some('/') if self.at_annotation() => {
                            self.bump();
                            self.spaced = true;
                        }
                        Some(next @ ('/' | '*')) => {
                            let is_line = next == '/';
                            let doc =
                                if is_line { self.line_comment(start) } else { self.block_comment(start) };
                            if doc.is_some() {
                                return doc;
                            }
                        }
                        _ => return Some(self.finish_token(Kind::Punct, start)),
                    }
                }
                '\'' | '"' => return Some(self.read_quoted(start)),
                c if c.is_alphabetic() || c == '_' => {
                    loop {
                        self.skip_ascii(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                        if !self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
                            break;
                        }
                        self.bump();
                    }
                    let wide = self.end - start == 1 && c == 'L';
                    if wide && matches!(self.peek(), Some('\'' | '"')) {
                        return Some(self.read_quoted(start));
                    }
                    return Some(self.finish_token(Kind::Word, start));
                }
                c if c.is_ascii_digit() => return Some(self.read_number(start)),
                '.' => {
                    self.bump();
                    if self.peek().is_some_and(|c| c.is_ascii_digit()) {
                        return Some(self.read_number(start));
                    }
                    if self.rest().starts_with("..") {
                        self.bump();
                        self.bump();
                    }
                    return Some(self.finish_token(Kind::Punct, start));
                }
                c if c.is_ascii_punctuation() && !matches!(c, '\\' | '$' | '`') => {
                    let mark = MULTI_CHAR_PUNCTS.iter().find(|mark| self.rest().starts_with(**mark));
                    for _ in 0..mark.map_or(1, |mark| mark.len()) {
                        self.bump();
                    }
                    return Some(self.finish_token(Kind::Punct, start));
                }
                first => {
                    // A run of stray characters is one token, so that a binary file does not yield too many.
                    let is_stray = |c: char| {
                        c == first
                            || !(c.is_ascii() || c.is_alphanumeric())
                            || c.is_ascii_control() && c != '\n'
                    };
                    self.bump();
                    while self.peek().is_some_and(is_stray) {
                        self.bump();
                    }
                    return Some(self.finish_token(Kind::Stray, start));
                }
            }
        }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// Returns the next character after line splices, which it skips.
    fn peek(&mut self) -> Option<char> {
        self.splice();
        self.rest().chars().next()
    }

    fn bump(&mut self) {
        if let Some(c) = self.peek() {
            self.line += usize::from(c == '\n');
            self.at += c.len_utf8();
            self.end = self.at;
        }
    }

    /// Fast path: consumes ASCII characters that match. Backslashes and line ends must not match.
    fn skip_ascii(&mut self, matches: impl Fn(u8) -> bool) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| matches(**byte)).count();
        if count > 0 {
            self.at += count;
            self.end = self.at;
        }
    }

    /// Skips backslashes that join this line with the next.
    fn splice(&mut self) {
        while self.text.as_bytes().get(self.at) == Some(&b'\\') {
            let Some(length) = splice_length(self.rest()) else { return };
            self.at += length;
            self.line += 1;
        }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start..end)
    }

    /// Creates a token from `start` to the end of the last consumed character.
    fn make_piece(&self, kind: Kind, start: usize) -> Piece {
        let end = self.end.max(start);
        let written = self.text.get(start..end).unwrap_or("");
        let joined = if written.contains('\\') { unspliced(written) } else { None };
        let text =
            joined.map_or_else(|| Text::part(&self.text, start..end), |joined| Text::from(joined.as_str()));
        Piece {
            kind,
            text,
            span: self.span(start, end),
            spaced: self.spaced,
            at_expansion_edge: false,
            line_start: self.line_start,
            unexpandable: false,
        }
    }

    /// Creates a token like `make_piece`, and resets `spaced` and `line_start` for the next one.
    fn finish_token(&mut self, kind: Kind, start: usize) -> Piece {
        let piece = self.make_piece(kind, start);
        (self.spaced, self.line_start) = (false, false);
        piece
    }

    /// Reads a number: digits, letters, underscores and points, and the sign of an exponent.
    fn read_number(&mut self, start: usize) -> Piece {
        let hex = self.rest().starts_with("0x") || self.rest().starts_with("0X");
        let mut exponent = false;
        while let Some(c) = self.peek() {
            if !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || exponent && matches!(c, '+' | '-')) {
                break;
            }
            exponent = !hex && matches!(c, 'e' | 'E');
            self.bump();
        }
        self.finish_token(Kind::Number, start)
    }

    /// Reads a literal up to its second quote, or up to the end of the line.
    fn read_quoted(&mut self, start: usize) -> Piece {
        let quote = self.peek();
        self.bump();
        loop {
            match self.peek() {
                None | Some('\n') => break,
                Some('\\') => {
                    self.bump();
                    if self.peek().is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                c => {
                    self.bump();
                    if c == quote {
                        break;
                    }
                }
            }
        }
        self.finish_token(Kind::Quoted, start)
    }

    /// Returns whether the comment that starts with the previous `/` is one of zorb's own annotations, such
    /// as `//@rust_name`. They can be written as comments, so that other compilers ignore them.
    fn at_annotation(&self) -> bool {
        let Some(rest) = self.rest().strip_prefix("/@") else { return false };
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        rest.get(..end).is_some_and(|name| OWN_ANNOTATIONS.contains(&name))
    }

    fn line_comment(&mut self, start: usize) -> Option<Piece> {
        while self.peek().is_some_and(|c| c != '\n') {
            // The current character may be a backslash that joins no lines.
            self.bump();
            let length = self.rest().find(['\n', '\\']).unwrap_or(self.rest().len());
            self.at += length;
            self.end = self.at;
        }
        self.spaced = true;
        let text = self.text.get(start..self.end).unwrap_or("");
        let (inner, skip) = match text.strip_prefix("///") {
            Some(rest) if !rest.starts_with(['/', '<']) => (false, 3),
            _ => (true, text.starts_with("//!").then_some(3)?),
        };
        let length = text.trim_end_matches('\r').len();
        Some(self.make_doc(inner, start, skip, length))
    }

    /// Reads a block comment, starting at the `*` of its `/*`.
    fn block_comment(&mut self, start: usize) -> Option<Piece> {
        self.bump();
        self.spaced = true;
        let inside = self.at;
        let Some(length) = self.rest().find("*/").map(|at| at + 2) else {
            self.unterminated_comment = Some(self.span(start, inside));
            self.line += self.rest().matches('\n').count();
            (self.at, self.end) = (self.text.len(), self.text.len());
            return None;
        };
        self.line += self.rest().get(..length).unwrap_or("").matches('\n').count();
        self.at += length;
        self.end = self.at;
        let text = self.text.get(start..self.end).unwrap_or("");
        let inner = text.starts_with("/*!");
        let outer = text.starts_with("/**") && text.len() > 4 && !text[3..].starts_with(['*', '<']);
        let length = text.len() - 2;
        (inner || outer).then(|| self.make_doc(inner, start, 3, length.max(3)))
    }

    /// Returns the documentation from `skip` to `length` bytes after the start of the comment.
    fn make_doc(&self, inner: bool, start: usize, skip: usize, length: usize) -> Piece {
        let text = Text::part(&self.text, start + skip..start + length.max(skip));
        let span = self.span(start, self.end);
        Piece {
            kind: Kind::Doc { inner },
            text,
            span,
            spaced: true,
            at_expansion_edge: true,
            line_start: false,
            unexpandable: false,
        }
    }

    /// Skips to the next directive and consumes its `#`; `false` at the end of the text.
    pub(super) fn skip_to_directive(&mut self) -> bool {
        while let Some(piece) = self.next() {
            if piece.line_start && piece.is("#") {
                return true;
            }
        }
        false
    }

    /// Returns the tokens of the rest of the line, without comments, and consumes the line end.
    pub(super) fn rest_of_line(&mut self) -> Vec<Piece> {
        let mut line = Vec::new();
        while let Some(piece) = self.next() {
            match piece.kind {
                Kind::Newline => break,
                Kind::Doc { .. } => {}
                _ => line.push(piece),
            }
        }
        line
    }
}

/// Returns the length of a line splice: a backslash, optional blanks and a line end.
fn splice_length(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('\\')?;
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
    rest.get(blanks..)?.starts_with('\n').then_some(1 + blanks + 1)
}

/// Returns the text without line splices; `None` if it contains none.
pub(super) fn unspliced(text: &str) -> Option<String> {
    let mut joined = String::new();
    let (mut from, mut at) = (0, 0);
    while let Some(next) = text.get(at..)?.find('\\') {
        at += next;
        match splice_length(text.get(at..)?) {
            Some(length) => {
                joined.push_str(text.get(from..at)?);
                at += length;
                from = at;
            }
            None => at += 1,
        }
    }
    (from > 0).then(|| {
        joined.push_str(text.get(from..).unwrap_or(""));
        joined
    })
}
