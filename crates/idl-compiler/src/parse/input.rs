//! A cursor over the tokens of a text, which also reports errors at its position.

use std::collections::{BTreeSet, HashSet};

use super::parser::{Parse, Reported};
use crate::ast::{Ident, Name, StringArg};
use crate::diagnostic::{Collector, Diagnostic, Severity};
use crate::lex::clean_comment;
use crate::model::Docs;
use crate::source::Span;
use crate::suggest::closest;
use crate::token::{KEYWORDS, Punct, Token, TokenKind, keyword};

/// Keywords that start a definition or a part of one.
pub(super) const DEFINITION_KEYWORDS: &[&str] = &[
    "module",
    "interface",
    "struct",
    "union",
    "enum",
    "typedef",
    "const",
    "exception",
    "valuetype",
    "abstract",
    "custom",
    "public",
    "private",
    "local",
    "native",
    "oneway",
    "readonly",
    "attribute",
    "void",
    "case",
    "default",
];

/// Minimum length of a word that may be a misspelt keyword. Shorter words resemble too many keywords.
const MIN_MISSPELT_BYTES: usize = 4;

pub(super) struct Input<'o> {
    /// Never empty. Ends with [`TokenKind::End`], which is never consumed.
    pub(super) tokens: Vec<Token>,
    pub(super) at: usize,
    /// Names declared so far. Once declared, a word that is a keyword only in some places (`map`) is a name.
    pub(super) declared_names: HashSet<String>,
    strict_names: bool,
    /// Whether too deep nesting or an early end of the text was reported. Then no further errors are.
    pub(super) silenced: bool,
    /// Names that follow `Components::` in the text.
    pub(super) components_names: BTreeSet<String>,
    pub(super) findings: &'o mut Collector,
}

impl<'o> Input<'o> {
    pub(super) fn new(tokens: Vec<Token>, strict_names: bool, findings: &'o mut Collector) -> Self {
        let (declared_names, components_names) = (HashSet::new(), BTreeSet::new());
        Input { tokens, at: 0, declared_names, strict_names, silenced: false, components_names, findings }
    }
}

impl Input<'_> {
    pub(super) fn kind(&self) -> &TokenKind {
        self.kind_at(0)
    }

    pub(super) fn kind_at(&self, ahead: usize) -> &TokenKind {
        self.tokens.get(self.at + ahead).map_or(&TokenKind::End, |token| &token.kind)
    }

    pub(super) fn span(&self) -> Span {
        self.token_span(self.at)
    }

    pub(super) fn last_span(&self) -> Span {
        self.token_span(self.at.saturating_sub(1))
    }

    fn token_span(&self, at: usize) -> Span {
        self.tokens.get(at).or(self.tokens.last()).map_or(Span::START, |token| token.span)
    }

    pub(super) fn advance(&mut self) {
        if *self.kind() != TokenKind::End {
            self.at += 1;
        }
    }

    pub(super) fn at_punct(&self, punct: Punct) -> bool {
        *self.kind() == TokenKind::Punct(punct)
    }

    fn take_if(&mut self, condition: bool) -> bool {
        if condition {
            self.advance();
        }
        condition
    }

    pub(super) fn take_punct(&mut self, punct: Punct) -> bool {
        self.take_if(self.at_punct(punct))
    }

    pub(super) fn at_keyword(&self, word: &str) -> bool {
        matches!(self.kind(), TokenKind::Keyword(keyword) if *keyword == word)
    }

    pub(super) fn take_keyword(&mut self, word: &str) -> bool {
        self.take_if(self.at_keyword(word))
    }

    /// Returns whether the current token is this word, and the text did not declare it as a name.
    pub(super) fn at_contextual_keyword(&self, word: &str) -> bool {
        self.contextual_keyword().is_some_and(|found| found == word)
    }

    pub(super) fn contextual_keyword(&self) -> Option<&str> {
        match self.kind() {
            TokenKind::Ident { text, escaped: false } if !self.declared_names.contains(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn expected<T>(&mut self, wanted: &str) -> Parse<T> {
        let message = format!("expected {wanted}, found {}", self.kind().describe());
        let error = Diagnostic::error("syntax", self.span(), message);
        let words: Vec<&str> = wanted.split('`').skip(1).step_by(2).collect();
        self.unexpected(self.with_suggestion(error, &words));
        Err(Reported)
    }

    /// Suggests one of `words` for the current token, or else a keyword for one of the two words before it.
    pub(super) fn with_suggestion(&self, error: Diagnostic, words: &[&str]) -> Diagnostic {
        let suggestion = match self.kind() {
            // A single letter resembles too many words.
            TokenKind::Ident { text, escaped: false } if text.len() > 1 => {
                let words = words.iter().filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()));
                closest(text, words.copied())
            }
            _ => None,
        };
        match suggestion {
            Some(word) => error.help(format!("did you mean `{word}`?")),
            None => self.with_misspelt_word_before(error),
        }
    }

    /// Points to a misspelt keyword in the two words before the current token, if any (`unsinged long x`).
    fn with_misspelt_word_before(&self, error: Diagnostic) -> Diagnostic {
        for back in 1..=2 {
            let at = self.at.checked_sub(back).and_then(|at| self.tokens.get(at));
            let Some(Token { kind: TokenKind::Ident { text, escaped: false }, span, .. }) = at else { break };
            let is_long = text.len() >= MIN_MISSPELT_BYTES && !self.declared_names.contains(text);
            if let Some(word) = closest(text, KEYWORDS.iter().copied()).filter(|_| is_long) {
                return error.and(*span, format!("did you mean `{word}`?"));
            }
        }
        error
    }

    pub(super) fn report(&mut self, error: Diagnostic) {
        if !self.silenced {
            self.findings.push(error);
        }
    }

    pub(super) fn fail<T>(&mut self, error: Diagnostic) -> Parse<T> {
        self.report(error);
        Err(Reported)
    }

    /// Reports that the current token is not allowed here, unless the token itself or a stray character
    /// directly before it was reported. An unexpected end of the text is reported once, and not for each open
    /// scope.
    pub(super) fn unexpected(&mut self, error: Diagnostic) {
        let is_reported = *self.kind() == TokenKind::BadLiteral
            || self.tokens.get(self.at).is_some_and(|token| token.after_stray);
        if !is_reported {
            self.report(error);
        }
        self.silenced |= *self.kind() == TokenKind::End;
    }

    pub(super) fn expect_punct(&mut self, punct: Punct) -> Parse<Span> {
        if self.take_punct(punct) {
            Ok(self.last_span())
        } else {
            self.expected(&format!("`{}`", punct.text()))
        }
    }

    pub(super) fn at_definition_keyword(&self) -> bool {
        matches!(self.kind(), TokenKind::Keyword(word) if DEFINITION_KEYWORDS.contains(word))
    }

    /// Parses an identifier that the text declares. Reports it if it differs from a keyword only in case.
    pub(super) fn new_ident(&mut self, what: &str) -> Parse<Ident> {
        let escaped = matches!(self.kind(), TokenKind::Ident { escaped: true, .. });
        let ident = self.ident(what)?;
        // The specification reserves `factory` everywhere, but here it is a keyword only in some places.
        let factory = || ident.text.eq_ignore_ascii_case("factory").then_some("factory");
        if let (false, Some(keyword)) = (escaped, keyword(&ident.text).or_else(factory)) {
            let text = &ident.text;
            let message = format!("`{text}` collides with the keyword `{keyword}`");
            let mut found = Diagnostic::error("keyword-collision", ident.span, message);
            if !self.strict_names {
                found.severity = Severity::Warning;
            }
            let found = found.note("a name must differ from every keyword in more than case");
            self.report(
                found.help(format!("choose another name, or escape it: `_{text}` means the name `{text}`")),
            );
        }
        self.declared_names.insert(ident.text.clone());
        Ok(ident)
    }

    pub(super) fn ident(&mut self, what: &str) -> Parse<Ident> {
        match self.kind() {
            TokenKind::Ident { text, .. } => {
                let ident = Ident { text: text.clone(), span: self.span() };
                self.advance();
                Ok(ident)
            }
            TokenKind::Keyword(word) => {
                let message = format!("expected {what}, found the keyword `{word}`");
                let error = Diagnostic::error("syntax", self.span(), message);
                let help = format!("a leading underscore makes it a name: `_{word}` means the name `{word}`");
                let with_word = self.with_misspelt_word_before(error.clone());
                self.report(if with_word == error { error.help(help) } else { with_word });
                Err(Reported)
            }
            _ => self.expected(what),
        }
    }

    pub(super) fn name(&mut self, what: &str) -> Parse<Name> {
        let start = self.span();
        let absolute = self.take_punct(Punct::Scope);
        let mut parts = vec![self.ident(what)?];
        while self.take_punct(Punct::Scope) {
            parts.push(self.ident("a name after `::`")?);
        }
        if let [first, second, ..] = parts.as_slice()
            && first.text == "Components"
        {
            self.components_names.insert(second.text.clone());
        }
        Ok(Name { absolute, parts, span: start.to(self.last_span()) })
    }

    pub(super) fn names(&mut self, what: &str) -> Parse<Vec<Name>> {
        let mut names = vec![self.name(what)?];
        while self.take_punct(Punct::Comma) {
            names.push(self.name(what)?);
        }
        Ok(names)
    }

    /// Returns the number of unclosed `{` since the token with index `start`.
    pub(super) fn open_braces(&self, start: usize) -> usize {
        let since = self.tokens.get(start..self.at).unwrap_or_default();
        since.iter().fold(0, |open: usize, token| match token.kind {
            TokenKind::Punct(Punct::BraceOpen) => open + 1,
            TokenKind::Punct(Punct::BraceClose) => open.saturating_sub(1),
            _ => open,
        })
    }

    /// Returns the lines of `//!` comments before the current token.
    pub(super) fn inner_docs(&self) -> Vec<String> {
        let comments = self.tokens.get(self.at).and_then(|token| token.comments.as_ref());
        let texts = comments.into_iter().flat_map(|comments| &comments.inner);
        texts.flat_map(|text| clean_comment(text)).collect()
    }

    pub(super) fn docs(&self) -> Docs {
        let comments = self.tokens.get(self.at).and_then(|token| token.comments.as_ref());
        let texts = comments.into_iter().flat_map(|comments| &comments.outer);
        Docs { lines: texts.flat_map(|text| clean_doc(text)).collect() }
    }

    /// Consumes the word if it is the current token. It is a keyword only at this position.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        self.take_if(matches!(self.kind(), TokenKind::Ident { text, escaped: false } if text == word))
    }

    /// Parses `name` or `M::name`. A `::` after a blank is not a part of the name, but starts the following
    /// type: `@optional ::M::T member`.
    pub(super) fn annotation_name(&mut self) -> Parse<String> {
        let mut name = if self.take_punct(Punct::Scope) { "::".to_owned() } else { String::new() };
        name.push_str(&self.ident("the name of an annotation")?.text);
        while self.at_punct(Punct::Scope) && self.tokens.get(self.at).is_some_and(|scope| scope.joined) {
            self.advance();
            name.push_str("::");
            name.push_str(&self.ident("a name after `::`")?.text);
        }
        Ok(name)
    }

    /// Parses the name of an annotation's argument, and the `=` after it.
    pub(super) fn arg_name(&mut self) -> Parse<Ident> {
        let span = self.span();
        let name = match *self.kind() {
            TokenKind::Keyword(word) => {
                self.advance();
                Ident { text: word.to_owned(), span }
            }
            _ => self.ident("the name of an argument")?,
        };
        self.advance();
        Ok(name)
    }

    pub(super) fn close_brace(&mut self, open: Span) -> Parse<()> {
        self.close(Punct::BraceClose, "`}`", open, "to close this `{`")
    }

    fn close(&mut self, punct: Punct, wanted: &str, open: Span, label: &str) -> Parse<()> {
        if self.take_punct(punct) {
            return Ok(());
        }
        let message = format!("expected {wanted}, found {}", self.kind().describe());
        let error = Diagnostic::error("syntax", self.span(), message);
        self.unexpected(error.and(open, label));
        Err(Reported)
    }

    pub(super) fn string_arg(&mut self, what: &str) -> Parse<StringArg> {
        match self.kind() {
            TokenKind::Text { text, .. } => {
                let arg = StringArg { text: text.clone(), span: self.span() };
                self.advance();
                Ok(arg)
            }
            _ => self.expected(what),
        }
    }

    pub(super) fn last_kind(&self) -> &TokenKind {
        self.tokens.get(self.at.saturating_sub(1)).map_or(&TokenKind::End, |token| &token.kind)
    }

    pub(super) fn close_angle(&mut self, open: Span, wanted: &str) -> Parse<()> {
        self.close(Punct::Greater, wanted, open, "to close this `<`")
    }
}

/// Returns the lines of one comment. An empty `///` line is preserved, because it separates paragraphs.
fn clean_doc(text: &str) -> Vec<String> {
    if text.trim().is_empty() { vec![String::new()] } else { clean_comment(text) }
}
