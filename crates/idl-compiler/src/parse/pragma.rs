//! `#pragma prefix`, `ID` and `version`, which can occur between any two tokens.
//!
//! They are not part of the grammar, so they are separated from the other tokens before parsing. A pragma
//! takes effect after the definition or member that contains it, because it may name this definition.

use std::collections::VecDeque;

use super::input::Input;
use super::parser::{Parse, Parser};
use crate::ast::{Pragma, StringArg};
use crate::diagnostic::Diagnostic;
use crate::token::{Punct, Token, TokenKind};

pub(super) struct SeparatedPragma {
    /// Index of the token that follows the pragma.
    next_token: usize,
    /// The pragma's own tokens: its line, [`TokenKind::PragmaEnd`] and [`TokenKind::End`].
    tokens: Vec<Token>,
}

pub(super) fn separate(tokens: Vec<Token>) -> (Vec<Token>, VecDeque<SeparatedPragma>) {
    let mut pragmas = VecDeque::new();
    if !tokens.iter().any(|token| token.kind == TokenKind::Pragma) {
        return (tokens, pragmas);
    }
    let mut others = Vec::with_capacity(tokens.len());
    let mut open: Option<SeparatedPragma> = None;
    for token in tokens {
        match (&mut open, &token.kind) {
            (None, TokenKind::Pragma) => {
                open = Some(SeparatedPragma { next_token: others.len(), tokens: vec![token] })
            }
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
    /// Parses the pragmas before the current token. Malformed ones are reported and left out.
    pub(super) fn pragmas(&mut self) -> impl Iterator<Item = Pragma> {
        std::iter::from_fn(|| {
            let is_next = self.pragmas.front().is_some_and(|pragma| pragma.next_token <= self.input.at);
            let pragma = if is_next { self.pragmas.pop_front() } else { None };
            pragma.map(|pragma| self.separated_pragma(pragma.tokens))
        })
        .flatten()
    }

    pub(super) fn follows_pragma(&self) -> bool {
        self.pragmas.binary_search_by_key(&self.input.at, |pragma| pragma.next_token).is_ok()
    }

    fn separated_pragma(&mut self, tokens: Vec<Token>) -> Option<Pragma> {
        let outer = std::mem::replace(&mut self.input.tokens, tokens);
        let at = std::mem::replace(&mut self.input.at, 0);
        let pragma = pragma(&mut self.input);
        (self.input.tokens, self.input.at) = (outer, at);
        pragma
    }
}

fn pragma(input: &mut Input<'_>) -> Option<Pragma> {
    let start = input.span();
    input.advance();
    let pragma = pragma_body(input).ok()?;
    if input.at_punct(Punct::Semicolon) && *input.kind_at(1) == TokenKind::PragmaEnd {
        let warning = Diagnostic::warning("bad-pragma", input.span(), "a `;` after a pragma has no effect");
        input.report(
            warning.and(start, "in this pragma").help("remove it: a pragma ends at the end of the line"),
        );
        input.advance();
    }
    if *input.kind() != TokenKind::PragmaEnd {
        let message = format!("expected the end of the line, found {}", input.kind().describe());
        let error = Diagnostic::error("bad-pragma", input.span(), message);
        input.report(error.and(start, "in this pragma"));
    }
    Some(pragma)
}

fn pragma_body(input: &mut Input<'_>) -> Parse<Pragma> {
    let word = input.ident("`prefix`, `ID` or `version`")?.text;
    match word.as_str() {
        "prefix" => input.string_arg("the prefix in quotes").map(Pragma::Prefix),
        "ID" => {
            let name = input.name("the name of a definition")?;
            Ok(Pragma::Id { name, id: input.string_arg("the repository id in quotes")? })
        }
        _ => {
            let name = input.name("the name of a definition")?;
            let start = input.span();
            let mut version = String::new();
            loop {
                match input.kind() {
                    TokenKind::Float(text) => version.push_str(text),
                    TokenKind::Integer(value) => version.push_str(&value.to_string()),
                    _ => break,
                }
                input.advance();
            }
            if version.is_empty() {
                return input.expected("a version, `major.minor`");
            }
            let version = StringArg { text: version, span: start.to(input.last_span()) };
            Ok(Pragma::Version { name, version })
        }
    }
}
