//! Conversion of text to preprocessing tokens: joins lines, removes comments, never fails.

use std::rc::Rc;

use super::text::{Kind, Piece, Text};
use crate::source::Span;

/// Punctuation tokens of more than one character. `>>` and operators of `#if` are not included: where they
/// are needed, adjacent tokens are combined.
const MARKS: &[&str] = &["...", "::", "<<", "##"];

/// A position in a text.
#[derive(Debug)]
pub(super) struct Cursor {
    pub(super) text: Rc<str>,
    pub(super) at: usize,
    /// Number of the text in `Sources`.
    pub(super) file: u32,
    /// Number of line ends passed.
    pub(super) line: usize,
    line_start: bool,
    spaced: bool,
    /// The end of the last consumed character.
    end: usize,
    /// A comment without an end.
    pub(super) open_comment: Option<Span>,
}

impl Cursor {
    pub(super) fn new(file: u32, text: Rc<str>) -> Self {
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Cursor { text, at, file, line: 0, line_start: true, spaced: false, end: at, open_comment: None }
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
                    let piece = self.piece(Kind::Newline, start);
                    (self.line_start, self.spaced) = (true, true);
                    return Some(piece);
                }
                ' ' | '\t' | '\r' | '\x0b' | '\x0c' => {
                    self.bump();
                    self.pass(|byte| byte == b' ');
                    self.spaced = true;
                }
                '/' => {
                    self.bump();
                    match self.peek() {
                        Some('/') if self.at_annotation() => {
                            self.bump();
                            self.spaced = true;
                        }
                        Some('/') => {
                            if let Some(doc) = self.line_comment(start) {
                                return Some(doc);
                            }
                        }
                        Some('*') => {
                            if let Some(doc) = self.block_comment(start) {
                                return Some(doc);
                            }
                        }
                        _ => return Some(self.token(Kind::Punct, start)),
                    }
                }
                '\'' | '"' => return Some(self.quoted(start)),
                c if c.is_alphabetic() || c == '_' => {
                    loop {
                        self.pass(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                        if !self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
                            break;
                        }
                        self.bump();
                    }
                    let wide = self.end - start == 1 && c == 'L';
                    if wide && matches!(self.peek(), Some('\'' | '"')) {
                        return Some(self.quoted(start));
                    }
                    return Some(self.token(Kind::Word, start));
                }
                c if c.is_ascii_digit() => return Some(self.number(start)),
                '.' => {
                    self.bump();
                    if self.peek().is_some_and(|c| c.is_ascii_digit()) {
                        return Some(self.number(start));
                    }
                    if self.rest().starts_with("..") {
                        self.bump();
                        self.bump();
                    }
                    return Some(self.token(Kind::Punct, start));
                }
                c if c.is_ascii_punctuation() && !matches!(c, '\\' | '$' | '`') => {
                    let mark = MARKS.iter().find(|mark| self.rest().starts_with(**mark));
                    for _ in 0..mark.map_or(1, |mark| mark.len()) {
                        self.bump();
                    }
                    return Some(self.token(Kind::Punct, start));
                }
                first => {
                    // One token for a run of such characters. Otherwise a binary file would yield a token for
                    // each character.
                    let odd = |c: char| {
                        c == first
                            || !(c.is_ascii() || c.is_alphanumeric())
                            || c.is_ascii_control() && c != '\n'
                    };
                    self.bump();
                    while self.peek().is_some_and(odd) {
                        self.bump();
                    }
                    return Some(self.token(Kind::Other, start));
                }
            }
        }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// Returns the next character after line splices.
    fn peek(&mut self) -> Option<char> {
        self.splice();
        self.rest().chars().next()
    }

    /// Consumes the next character.
    fn bump(&mut self) {
        if let Some(c) = self.peek() {
            self.line += usize::from(c == '\n');
            self.at += c.len_utf8();
            self.end = self.at;
        }
    }

    /// Fast path: consumes ASCII characters of a kind that includes neither backslashes nor line ends.
    fn pass(&mut self, is_one: impl Fn(u8) -> bool) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| is_one(**byte)).count();
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

    fn piece(&self, kind: Kind, start: usize) -> Piece {
        let end = self.end.max(start);
        let written = self.text.get(start..end).unwrap_or("");
        let text = match written.contains('\\') {
            true => match unspliced(written) {
                Some(joined) => Text::from(joined.as_str()),
                None => Text::part(&self.text, start..end),
            },
            false => Text::part(&self.text, start..end),
        };
        let (spaced, line_start) = (self.spaced, self.line_start);
        Piece { kind, text, span: self.span(start, end), spaced, apart: false, line_start, painted: false }
    }

    fn token(&mut self, kind: Kind, start: usize) -> Piece {
        let piece = self.piece(kind, start);
        (self.spaced, self.line_start) = (false, false);
        piece
    }

    /// Reads a number: digits, letters and points, and the sign of an exponent.
    fn number(&mut self, start: usize) -> Piece {
        let hex = self.rest().starts_with("0x") || self.rest().starts_with("0X");
        let mut exponent = false;
        while let Some(c) = self.peek() {
            if !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || exponent && matches!(c, '+' | '-')) {
                break;
            }
            exponent = !hex && matches!(c, 'e' | 'E');
            self.bump();
        }
        self.token(Kind::Number, start)
    }

    /// Reads a literal up to its second quote, or up to the end of the line.
    fn quoted(&mut self, start: usize) -> Piece {
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
        self.token(Kind::Quoted, start)
    }

    /// Returns whether one of zorb's own annotations, such as `//@rust_name`, starts after the first `/`.
    /// They are written in comments, so that other compilers ignore them.
    fn at_annotation(&self) -> bool {
        let Some(rest) = self.rest().strip_prefix("/@") else { return false };
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        const OWN: [&str; 6] = ["rust_name", "non_nil", "zero_copy", "stream", "interpretive", "adaptive"];
        rest.get(..end).is_some_and(|name| OWN.contains(&name))
    }

    fn line_comment(&mut self, start: usize) -> Option<Piece> {
        while self.peek().is_some_and(|c| c != '\n') {
            // The first character may be a backslash that joins no lines.
            self.bump();
            let plain = self.rest().find(['\n', '\\']).unwrap_or(self.rest().len());
            self.at += plain;
            self.end = self.at;
        }
        self.spaced = true;
        let text = self.text.get(start..self.end).unwrap_or("");
        let (inner, skip) = match text.strip_prefix("///") {
            Some(rest) if !rest.starts_with(['/', '<']) => (false, 3),
            _ => (true, text.starts_with("//!").then_some(3)?),
        };
        let length = text.trim_end_matches('\r').len();
        Some(self.doc(inner, start, skip, length))
    }

    /// Reads a block comment, starting at the `*` of its `/*`.
    fn block_comment(&mut self, start: usize) -> Option<Piece> {
        self.bump();
        self.spaced = true;
        let inside = self.at;
        let Some(length) = self.rest().find("*/").map(|at| at + 2) else {
            self.open_comment = Some(self.span(start, inside));
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
        (inner || outer).then(|| self.doc(inner, start, 3, length.max(3)))
    }

    /// Returns the token of a documentation comment. Its text is in the bytes from `skip` to `length` after
    /// the start.
    fn doc(&self, inner: bool, start: usize, skip: usize, length: usize) -> Piece {
        let text = Text::part(&self.text, start + skip..start + length.max(skip));
        let span = self.span(start, self.end);
        Piece {
            kind: Kind::Doc { inner },
            text,
            span,
            spaced: true,
            apart: true,
            line_start: false,
            painted: false,
        }
    }

    /// Skips text up to the next line that starts with `#`, and consumes that `#`. `false` at the end of the
    /// text.
    pub(super) fn skip_to_directive(&mut self) -> bool {
        while let Some(piece) = self.next() {
            if piece.line_start && piece.is("#") {
                return true;
            }
        }
        false
    }

    /// Returns the rest of the line as tokens, without its end and without comments.
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

/// Returns the number of bytes of a backslash and line end at the start of a text. Blanks may be between
/// them.
fn splice_length(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('\\')?;
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
    rest.get(blanks..)?.starts_with('\n').then_some(1 + blanks + 1)
}

/// Returns the text with its lines joined; `None` if there is nothing to join.
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
