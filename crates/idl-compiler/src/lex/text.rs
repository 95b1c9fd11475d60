//! The lexer for text: files, and strings inside macros.

use super::{DIRECTIVES, Lexed, Output, number::number};
use crate::diagnostic::{Collector, Diagnostic};
use crate::source::Span;
use crate::token::{Punct, TokenKind, Wideness};

mod literal;

pub(super) fn lex(file: u32, text: &str, out: &mut Collector) -> Lexed {
    let mut lexer = Lexer { text, at: 0, line_start: true, output: Output::new(file, out) };
    if text.starts_with('\u{feff}') {
        lexer.at = '\u{feff}'.len_utf8();
    }
    while lexer.at < text.len() {
        lexer.step();
    }
    lexer.end_line();
    let end = lexer.output.span(text.len(), text.len());
    lexer.output.finish(end)
}

struct Lexer<'t, 'o> {
    text: &'t str,
    at: usize,
    /// Only blanks stand before this place in its line, so `#` starts a directive.
    line_start: bool,
    output: Output<'o>,
}

impl<'t> Lexer<'t, '_> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes characters while the test holds and returns them.
    fn take_while(&mut self, test: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|c| !test(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn step(&mut self) {
        let start = self.at;
        let Some(first) = self.peek() else { return };
        match first {
            '\n' => {
                self.at += 1;
                self.end_line();
                return;
            }
            ' ' | '\t' | '\r' | '\x0b' | '\x0c' => self.at += 1,
            '\\' if self.splice() => {}
            '/' if self.rest().starts_with("//") => self.line_comment(),
            '/' if self.rest().starts_with("/*") => self.block_comment(),
            '#' if self.line_start => {
                self.line_start = false;
                self.directive();
            }
            _ => {
                self.line_start = false;
                match first {
                    '\'' | '"' => self.quoted(Wideness::Narrow),
                    'L' if self.rest().starts_with("L'") || self.rest().starts_with("L\"") => {
                        self.at += 1;
                        self.quoted(Wideness::Wide);
                    }
                    c if c.is_alphabetic() || c == '_' => {
                        let word = self.take_while(|c| c.is_alphanumeric() || c == '_');
                        let span = self.output.span(start, self.at);
                        self.output.word(word, span);
                    }
                    c if c.is_ascii_digit() => self.number(),
                    '.' if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number(),
                    _ => self.punct(first),
                }
            }
        }
        debug_assert!(self.at > start, "every step moves on");
    }

    /// A backslash that joins this line with the next.
    fn splice(&mut self) -> bool {
        let rest = &self.rest()[1..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
        let joins = rest[blanks..].starts_with('\n');
        if joins {
            self.at += 1 + blanks + 1;
        }
        joins
    }

    fn end_line(&mut self) {
        self.line_start = true;
        if self.output.in_pragma {
            let end =
                self.output.tokens.last().map_or(self.output.span(self.at, self.at), |token| token.span);
            self.output.push(TokenKind::PragmaEnd, Span { start: end.end, ..end });
        }
    }

    fn punct(&mut self, first: char) {
        let start = self.at;
        if let Some(punct) = Punct::ALL.iter().find(|punct| self.rest().starts_with(punct.text())) {
            self.at += punct.text().len();
            let span = self.output.span(start, self.at);
            return self.output.push(TokenKind::Punct(*punct), span);
        }
        // One error for a run of them: binary files must not give one a character.
        self.take_while(|c| {
            c == first || !(c.is_ascii() || c.is_alphanumeric()) || c.is_ascii_control() && c != '\n'
        });
        let span = self.output.span(start, self.at);
        self.output.stray(span, format!("`{}` has no meaning in IDL", first.escape_debug()));
    }

    /// Digits, letters and points, and the sign of an exponent.
    fn number(&mut self) {
        let start = self.at;
        let hex = self.rest().starts_with("0x") || self.rest().starts_with("0X");
        loop {
            let taken = self.take_while(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
            let exponent = !hex && taken.ends_with(['e', 'E']);
            if !(exponent && self.rest().starts_with(['+', '-'])) {
                break;
            }
            self.at += 1;
        }
        let span = self.output.span(start, self.at);
        match number(&self.text[start..self.at], span) {
            Ok(kind) => self.output.push(kind, span),
            // `#pragma version` has its own words for a malformed version.
            Err(_) if self.output.in_pragma => {
                self.output.push(TokenKind::Float(self.text[start..self.at].to_owned()), span)
            }
            Err(error) => self.output.bad_literal(error, span),
        }
    }

    fn line_comment(&mut self) {
        let text = self.take_while(|c| c != '\n');
        if let Some(doc) = text.strip_prefix("///").filter(|rest| !rest.starts_with(['/', '<'])) {
            self.output.comments.outer.push(doc.trim_end_matches('\r').to_owned());
        } else if let Some(doc) = text.strip_prefix("//!") {
            self.output.comments.inner.push(doc.trim_end_matches('\r').to_owned());
        }
    }

    fn block_comment(&mut self) {
        let start = self.at;
        let rest = self.rest();
        let Some(end) = rest[2..].find("*/").map(|at| at + 4) else {
            self.at = self.text.len();
            let span = self.output.span(start, start + 2);
            return self.output.error("unterminated", span, "this comment has no end");
        };
        self.at += end;
        let text = &rest[..end];
        let inside = |marker: &str| text.strip_prefix(marker).and_then(|text| text.strip_suffix("*/"));
        if let Some(doc) = inside("/**").filter(|doc| !doc.starts_with(['*', '<'])) {
            self.output.comments.outer.push(doc.to_owned());
        } else if let Some(doc) = inside("/*!") {
            self.output.comments.inner.push(doc.to_owned());
        }
    }

    /// `#` at the start of a line.
    fn directive(&mut self) {
        let start = self.at;
        self.at += 1;
        self.take_while(|c| c == ' ' || c == '\t');
        let word = self.take_while(|c| c.is_ascii_alphanumeric());
        let span = self.output.span(start, self.at);
        match word {
            "pragma" => self.pragma(start),
            "" if self.peek().is_none_or(|c| c == '\n' || c == '\r') => {}
            "" => {
                self.output.stray(span, "`#` starts a preprocessor line, and this is none");
                self.skip_line();
            }
            word if DIRECTIVES.contains(&word) => {
                self.output.directive(word, span);
                self.skip_line();
                if word.starts_with("if") {
                    self.skip_conditional();
                }
            }
            word if word.bytes().all(|octet| octet.is_ascii_digit()) => {
                self.output.directive("line", span);
                self.skip_line();
            }
            word => {
                self.output.error(
                    "unknown-directive",
                    span,
                    format!("there is no preprocessor line `#{word}`"),
                );
                self.skip_line();
            }
        }
    }

    /// Unknown pragmas are skipped whole, whatever they contain.
    fn pragma(&mut self, start: usize) {
        self.take_while(|c| c == ' ' || c == '\t');
        let word = self.rest().split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("");
        if matches!(word, "prefix" | "ID" | "version") {
            let span = self.output.span(start, self.at);
            self.output.push(TokenKind::Pragma, span);
        } else {
            self.skip_line();
        }
    }

    /// Up to the end of the line, joined lines included.
    fn skip_line(&mut self) {
        loop {
            self.take_while(|c| c != '\n' && c != '\\');
            match self.peek() {
                Some('\\') if self.splice() => {}
                Some('\\') => self.at += 1,
                _ => return,
            }
        }
    }

    /// Up to the `#endif` of a refused `#if`: both branches together would make no sense.
    fn skip_conditional(&mut self) {
        let mut depth = 1usize;
        while depth > 0 && self.at < self.text.len() {
            self.at += self.rest().find('\n').map_or(self.rest().len(), |at| at + 1);
            let line = self.rest().trim_start_matches([' ', '\t']);
            let Some(word) = line.strip_prefix('#').map(|line| line.trim_start_matches([' ', '\t'])) else {
                continue;
            };
            if word.starts_with("if") {
                depth += 1;
            } else if word.starts_with("endif") {
                depth -= 1;
            }
        }
        self.skip_line();
    }

    fn error_literal(&mut self, start: usize, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error("bad-literal", self.output.span(start, self.at), message)
    }
}
