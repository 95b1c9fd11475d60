//! `#pragma prefix`, `ID` and `version`, which can occur between any two tokens.
//!
//! They are not part of the grammar. Each is separated from the other tokens and takes effect after the
//! definition or member that contains it, so that it can name the definition.

use std::collections::VecDeque;

use super::{Parse, Parser};
use crate::ast::{Pragma, StringArg};
use crate::diagnostic::Diagnostic;
use crate::token::{Punct, Token, TokenKind};

/// A pragma, separated from the other tokens.
pub(super) struct Apart {
    /// Index of the token after it.
    before: usize,
    /// Starts with `#pragma`, ends with [`TokenKind::End`].
    tokens: Vec<Token>,
}

/// Separates pragmas from the other tokens.
pub(super) fn set_apart(tokens: Vec<Token>) -> (Vec<Token>, VecDeque<Apart>) {
    let mut pragmas = VecDeque::new();
    if !tokens.iter().any(|token| token.kind == TokenKind::Pragma) {
        return (tokens, pragmas);
    }
    let mut others = Vec::with_capacity(tokens.len());
    let mut open: Option<Apart> = None;
    for token in tokens {
        match (&mut open, &token.kind) {
            (None, TokenKind::Pragma) => open = Some(Apart { before: others.len(), tokens: vec![token] }),
            (None, _) => others.push(token),
            (Some(pragma), TokenKind::PragmaEnd) => {
                let end = Token { kind: TokenKind::End, ..token.clone() };
                pragma.tokens.extend([token, end]);
                pragmas.extend(open.take());
            }
            (Some(pragma), _) => pragma.tokens.push(token),
        }
    }
    (others, pragmas)
}

impl Parser<'_> {
    /// Returns the pragmas before the current token that have not been returned yet. Malformed ones are
    /// reported and left out.
    pub(super) fn pragmas(&mut self) -> impl Iterator<Item = Pragma> {
        std::iter::from_fn(|| {
            let is_next = self.pragmas.front().is_some_and(|pragma| pragma.before <= self.at);
            let pragma = if is_next { self.pragmas.pop_front() } else { None };
            pragma.map(|pragma| self.apart(pragma.tokens))
        })
        .flatten()
    }

    /// Returns whether a pragma directly precedes the current token.
    pub(super) fn is_behind_pragma(&self) -> bool {
        self.pragmas.binary_search_by_key(&self.at, |pragma| pragma.before).is_ok()
    }

    /// Parses a pragma from its own tokens.
    fn apart(&mut self, tokens: Vec<Token>) -> Option<Pragma> {
        let (outer, at) = (std::mem::replace(&mut self.tokens, tokens), std::mem::replace(&mut self.at, 0));
        let pragma = self.pragma();
        (self.tokens, self.at) = (outer, at);
        pragma
    }

    /// Parses from `#pragma` to the end of its line.
    fn pragma(&mut self) -> Option<Pragma> {
        let start = self.span();
        self.advance();
        let pragma = self.pragma_body().ok()?;
        if self.at_punct(Punct::Semicolon) && *self.kind_at(1) == TokenKind::PragmaEnd {
            let warning =
                Diagnostic::warning("bad-pragma", self.span(), "a `;` behind a pragma means nothing");
            self.report(warning.and(start, "of this pragma").help("remove it: a pragma ends with its line"));
            self.advance();
        }
        if *self.kind() != TokenKind::PragmaEnd {
            let message = format!("expected the end of the line, found {}", self.kind().describe());
            let error = Diagnostic::error("bad-pragma", self.span(), message);
            self.report(error.and(start, "of this pragma"));
        }
        Some(pragma)
    }

    fn pragma_body(&mut self) -> Parse<Pragma> {
        let word = self.ident("`prefix`, `ID` or `version`")?.text;
        match word.as_str() {
            "prefix" => self.string_arg("the prefix in quotes").map(Pragma::Prefix),
            "ID" => {
                let name = self.name("the name of a definition")?;
                Ok(Pragma::Id { name, id: self.string_arg("the repository id in quotes")? })
            }
            _ => {
                let name = self.name("the name of a definition")?;
                let start = self.span();
                let mut version = String::new();
                loop {
                    match self.kind() {
                        TokenKind::Float(text) => version.push_str(text),
                        TokenKind::Integer(value) => version.push_str(&value.to_string()),
                        _ => break,
                    }
                    self.advance();
                }
                if version.is_empty() {
                    return self.expected("a version, `major.minor`");
                }
                Ok(Pragma::Version {
                    name,
                    version: StringArg { text: version, span: start.to(self.last_span()) },
                })
            }
        }
    }
}
