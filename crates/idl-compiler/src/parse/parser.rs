//! The state of the parser, its nesting, and its recovery from errors.

use std::collections::{BTreeSet, VecDeque};

use super::input::Input;
use super::pragma::SeparatedPragma;
use crate::diagnostic::Diagnostic;
use crate::limits::MAX_DEPTH;
use crate::source::Span;
use crate::token::{Punct, TokenKind};

/// Keywords of clauses that follow an operation or attribute.
const CLAUSES: &[&str] = &["raises", "context", "getraises", "setraises"];

/// Marker: the error has already been pushed to the collector.
pub(super) struct Reported;

pub(super) type Parse<T> = Result<T, Reported>;

pub(super) struct Parser<'o> {
    pub(super) input: Input<'o>,
    /// Pragmas that have not been parsed yet, in order.
    pub(super) pragmas: VecDeque<SeparatedPragma>,
    pub(super) depth: usize,
    /// The greatest depth since this field was last reset.
    pub(super) deepest: usize,
    /// Number of enclosing template modules.
    pub(super) template_depth: usize,
    /// Whether the parser is inside `<...>`, where `>>` closes two brackets instead of shifting.
    pub(super) in_angle: bool,
    /// Names of definitions in the module `Components` that the text's component constructs need.
    pub(super) needed_component_names: BTreeSet<&'static str>,
}

impl Parser<'_> {
    /// Consumes a `;`, or reports that it is missing. Fails unless the declaration evidently ends here.
    pub(super) fn semicolon(&mut self, after: &str) -> Parse<()> {
        if self.input.take_punct(Punct::Semicolon) {
            return Ok(());
        }
        let message = format!("expected `;` after {after}, found {}", self.input.kind().describe());
        let has_ended = self.starts_item()
            || matches!(self.input.kind(), TokenKind::Punct(Punct::BraceClose) | TokenKind::End);
        if has_ended {
            let last = self.input.last_span();
            let end = Span { start: last.end.saturating_sub(1).max(last.start), ..last };
            // A malformed literal was reported. If it is unterminated, the `;` is a part of it.
            if *self.input.last_kind() != TokenKind::BadLiteral {
                self.input.unexpected(Diagnostic::error("syntax", end, message));
            }
            return Ok(());
        }
        let error = Diagnostic::error("syntax", self.input.span(), message);
        self.input.unexpected(self.input.with_suggestion(error, CLAUSES));
        Err(Reported)
    }

    /// Returns whether a declaration must start here: at a definition's keyword, or after a pragma.
    fn starts_item(&self) -> bool {
        self.input.at_definition_keyword() || self.follows_pragma()
    }

    pub(super) fn nested<T>(&mut self, production: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.enter_level()?;
        let result = production(self);
        self.depth -= 1;
        result
    }

    /// Increments the nesting depth, or reports that it is too great. The caller decrements it later.
    pub(super) fn enter_level(&mut self) -> Parse<()> {
        if self.depth >= MAX_DEPTH {
            let message = format!("this nests more than {MAX_DEPTH} levels deep");
            let error = Diagnostic::error("too-deep", self.input.span(), message);
            self.input.report(error.help("give the inner parts names of their own"));
            self.input.silenced = true;
            self.input.at = self.input.tokens.len().saturating_sub(1);
            return Err(Reported);
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        Ok(())
    }

    /// Parses one or more items that are separated by commas.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.input.take_punct(Punct::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Parses items up to the `}`, which is not consumed. A malformed item is reported and left out.
    pub(super) fn until_brace<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut items = Vec::new();
        while !matches!(self.input.kind(), TokenKind::Punct(Punct::BraceClose) | TokenKind::End) {
            let before = self.input.at;
            match item(self) {
                Ok(item) => items.push(item),
                Err(Reported) if self.input.silenced => return Err(Reported),
                Err(Reported) => self.recover_from(before),
            }
        }
        Ok(items)
    }

    /// Runs a production inside `<...>`, where `>>` closes two brackets.
    pub(super) fn inside_angles<T>(&mut self, production: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let outer = std::mem::replace(&mut self.in_angle, true);
        let result = production(self);
        self.in_angle = outer;
        result
    }

    /// Runs a production that is not directly inside `<...>`, so that `>>` shifts.
    pub(super) fn outside_angles<T>(&mut self, production: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let outer = std::mem::replace(&mut self.in_angle, false);
        let result = production(self);
        self.in_angle = outer;
        result
    }

    /// Recovers from an error in the declaration at index `start`: skips to its end, or to an enclosing `}`.
    pub(super) fn recover_from(&mut self, start: usize) {
        // If a definition starts here, the `}` of an open block is probably missing.
        let open = if self.input.at_definition_keyword() { 0 } else { self.input.open_braces(start) };
        self.recover(open);
        if self.input.at == start && !self.input.at_punct(Punct::BraceClose) {
            self.input.advance();
        }
    }

    /// Recovers from an error inside `depth` open blocks of a declaration. Skips to the end of its `;`. Stops
    /// earlier after its last block if no `;` follows, at the `}` of the enclosing scope, or after a pragma.
    fn recover(&mut self, mut depth: usize) {
        let start = self.input.at;
        loop {
            match self.input.kind() {
                TokenKind::End => return,
                _ if depth == 0 && self.input.at > start && self.follows_pragma() => return,
                TokenKind::Punct(Punct::BraceOpen) => depth += 1,
                TokenKind::Punct(Punct::BraceClose) if depth == 0 => return,
                TokenKind::Punct(Punct::BraceClose) => {
                    depth -= 1;
                    if depth == 0
                        && self.input.kind_at(1) != &TokenKind::Punct(Punct::Semicolon)
                        && declaration_ends(&self.input)
                    {
                        self.input.advance();
                        return;
                    }
                }
                TokenKind::Punct(Punct::Semicolon) if depth == 0 => {
                    self.input.advance();
                    return;
                }
                _ => {}
            }
            self.input.advance();
        }
    }
}

/// Returns whether the declaration ends at this `}`; in `typedef struct S { ... } T;` it does not.
fn declaration_ends(input: &Input<'_>) -> bool {
    !matches!(input.kind_at(1), TokenKind::Ident { .. } | TokenKind::Punct(_))
}
