//! The parser: hand-written recursive descent, one function for each production.
//!
//! It does not use `nom`, because error handling is the larger part of the parser. After an error it
//! continues at the next `;` or `}` and finds further errors in the same run. It knows the enclosing
//! production and never backtracks, so each token is visited once even in broken text.

use std::collections::{BTreeSet, HashSet, VecDeque};

use crate::MAX_DEPTH;
use crate::ast::{Ident, Item, Name};
use crate::diagnostic::{Collector, Diagnostic, Severity};
use crate::lex::clean_comment;
use crate::model::Docs;
use crate::source::Span;
use crate::suggest::closest;
use crate::token::{KEYWORDS, Punct, Token, TokenKind, keyword};

use pragma::Apart;

mod ccm;
mod expr;
mod head;
mod idl4;
mod interface;
mod item;
mod pragma;
mod template;
mod types;
mod value;

/// Keywords that start a definition or a part of one, and so end the preceding declaration.
const STARTERS: &[&str] = &[
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

/// Keywords of clauses that follow an operation or attribute.
const CLAUSES: &[&str] = &["raises", "context", "getraises", "setraises"];

/// Minimum length of an identifier to be considered a misspelt keyword when the error occurs after it.
const MIN_MISSPELT: usize = 4;

/// The declarations of a text, with names not yet bound.
pub(crate) struct Parsed {
    pub(crate) items: Vec<Item>,
    /// `//!` comments of the file.
    pub(crate) docs: Docs,
    /// Definitions of the module `Components` that the text's component constructs need.
    pub(crate) components: BTreeSet<&'static str>,
    /// Names that follow `Components::` in the text.
    pub(crate) named_components: BTreeSet<String>,
    /// The text declares something named `Components`, in any scope.
    pub(crate) declares_components: bool,
}

/// Parses the tokens. Errors go to the collector; the result has the declarations without errors.
///
/// With `strict_names`, a name that differs from a keyword in case only is an error, otherwise a warning.
pub(crate) fn parse(tokens: Vec<Token>, strict_names: bool, out: &mut Collector) -> Parsed {
    let (tokens, pragmas) = pragma::set_apart(tokens);
    let mut parser = Parser {
        tokens,
        pragmas,
        at: 0,
        depth: 0,
        deepest: 0,
        templates: 0,
        in_angle: false,
        declared: HashSet::new(),
        strict_names,
        gave_up: false,
        components: BTreeSet::new(),
        named_components: BTreeSet::new(),
        out,
    };
    let mut docs = Docs::default();
    let items = parser.items(item::Place::File, &mut docs);
    let Parser { components, named_components, declared, .. } = parser;
    Parsed { items, docs, components, named_components, declares_components: declared.contains("Components") }
}

/// Marker: the error has already been pushed to the collector.
struct Reported;

type Parse<T> = Result<T, Reported>;

struct Parser<'o> {
    /// Never empty. Ends with [`TokenKind::End`], which is never consumed.
    tokens: Vec<Token>,
    /// Pragmas that have not been reached yet.
    pragmas: VecDeque<Apart>,
    at: usize,
    depth: usize,
    /// The greatest depth since this field was last reset.
    deepest: usize,
    /// Number of enclosing template modules.
    templates: usize,
    /// Inside `<...>`, where `>>` closes two brackets instead of shifting.
    in_angle: bool,
    /// Keywords of newer language versions that this text uses as names (`port`, `map`). After the
    /// declaration they are only names.
    declared: HashSet<String>,
    strict_names: bool,
    /// The text nests too deep. One error was reported, and no further ones are.
    gave_up: bool,
    /// As in [`Parsed`].
    components: BTreeSet<&'static str>,
    named_components: BTreeSet<String>,
    out: &'o mut Collector,
}

impl Parser<'_> {
    fn kind(&self) -> &TokenKind {
        self.kind_at(0)
    }

    fn kind_at(&self, ahead: usize) -> &TokenKind {
        self.tokens.get(self.at + ahead).map_or(&TokenKind::End, |token| &token.kind)
    }

    fn span(&self) -> Span {
        self.token_span(self.at)
    }

    /// Returns the span of the last consumed token.
    fn last_span(&self) -> Span {
        self.token_span(self.at.saturating_sub(1))
    }

    fn token_span(&self, at: usize) -> Span {
        self.tokens.get(at).or(self.tokens.last()).map_or(Span::START, |token| token.span)
    }

    fn advance(&mut self) {
        if *self.kind() != TokenKind::End {
            self.at += 1;
        }
    }

    fn at_punct(&self, punct: Punct) -> bool {
        *self.kind() == TokenKind::Punct(punct)
    }

    fn take_punct(&mut self, punct: Punct) -> bool {
        let found = self.at_punct(punct);
        if found {
            self.advance();
        }
        found
    }

    fn at_keyword(&self, word: &str) -> bool {
        matches!(self.kind(), TokenKind::Keyword(keyword) if *keyword == word)
    }

    fn take_keyword(&mut self, word: &str) -> bool {
        let found = self.at_keyword(word);
        if found {
            self.advance();
        }
        found
    }

    /// Returns whether the current token is this keyword of a newer language version, unless the text uses it
    /// as a name.
    fn at_new_word(&self, word: &str) -> bool {
        self.new_word().is_some_and(|found| found == word)
    }

    fn new_word(&self) -> Option<&str> {
        match self.kind() {
            TokenKind::Ident { text, escaped: false } if !self.declared.contains(text) => Some(text),
            _ => None,
        }
    }

    /// Reports that the current token is not the expected one.
    fn expected<T>(&mut self, wanted: &str) -> Parse<T> {
        let message = format!("expected {wanted}, found {}", self.kind().describe());
        let error = Diagnostic::error("syntax", self.span(), message);
        let words: Vec<&str> = wanted.split('`').skip(1).step_by(2).collect();
        self.unexpected(self.suggesting(error, &words));
        Err(Reported)
    }

    /// Adds a suggestion to the error: one of these keywords if it resembles the current token, or any
    /// keyword that resembles one of the preceding words.
    fn suggesting(&self, error: Diagnostic, words: &[&str]) -> Diagnostic {
        let near = match self.kind() {
            // A single letter would resemble every punctuation mark.
            TokenKind::Ident { text, escaped: false } if text.len() > 1 => {
                let words = words.iter().filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()));
                closest(text, words.copied())
            }
            _ => None,
        };
        match near {
            Some(word) => error.help(format!("did you mean `{word}`?")),
            None => self.blaming_word_before(error),
        }
    }

    /// Adds the location of a misspelt keyword before the current token, if there is one (`sruct S {`,
    /// `unsinged long x`).
    fn blaming_word_before(&self, error: Diagnostic) -> Diagnostic {
        for back in 1..=2 {
            let at = self.at.checked_sub(back).and_then(|at| self.tokens.get(at));
            let Some(Token { kind: TokenKind::Ident { text, escaped: false }, span, .. }) = at else { break };
            // Short words resemble too many others.
            let is_long = text.len() >= MIN_MISSPELT && !self.declared.contains(text);
            if let Some(word) = closest(text, KEYWORDS.iter().copied()).filter(|_| is_long) {
                return error.and(*span, format!("did you mean `{word}`?"));
            }
        }
        error
    }

    fn report(&mut self, error: Diagnostic) {
        if !self.gave_up {
            self.out.push(error);
        }
    }

    /// Reports that the current token does not fit here, unless an error directly before it was already
    /// reported. An unexpected end of the text is reported once, however many scopes are open.
    fn unexpected(&mut self, error: Diagnostic) {
        let known = *self.kind() == TokenKind::BadLiteral
            || self.tokens.get(self.at).is_some_and(|token| token.after_stray);
        if !known {
            self.report(error);
        }
        self.gave_up |= *self.kind() == TokenKind::End;
    }

    fn expect_punct(&mut self, punct: Punct) -> Parse<Span> {
        if self.take_punct(punct) {
            Ok(self.last_span())
        } else {
            self.expected(&format!("`{}`", punct.text()))
        }
    }

    /// Consumes a `;`. If it is missing and the next token can start a new declaration, parsing continues as
    /// if it were present.
    fn semicolon(&mut self, after: &str) -> Parse<()> {
        if self.take_punct(Punct::Semicolon) {
            return Ok(());
        }
        let message = format!("expected `;` after {after}, found {}", self.kind().describe());
        let over =
            self.starts_item() || matches!(self.kind(), TokenKind::Punct(Punct::BraceClose) | TokenKind::End);
        if over {
            let last = self.last_span();
            let end = Span { start: last.end.saturating_sub(1).max(last.start), ..last };
            // An unterminated literal has consumed the `;`.
            if !matches!(
                self.tokens.get(self.at.saturating_sub(1)),
                Some(Token { kind: TokenKind::BadLiteral, .. })
            ) {
                self.unexpected(Diagnostic::error("syntax", end, message));
            }
            return Ok(());
        }
        let error = Diagnostic::error("syntax", self.span(), message);
        self.unexpected(self.suggesting(error, CLAUSES));
        Err(Reported)
    }

    /// Returns whether the current token starts a definition, and so ends the previous one.
    fn starts_item(&self) -> bool {
        self.at_starter() || self.is_behind_pragma()
    }

    fn at_starter(&self) -> bool {
        matches!(self.kind(), TokenKind::Keyword(word) if STARTERS.contains(word))
    }

    /// Parses an identifier that is being declared. It should not differ from a keyword in case only; uses
    /// need not be escaped.
    fn new_ident(&mut self, what: &str) -> Parse<Ident> {
        let escaped = matches!(self.kind(), TokenKind::Ident { escaped: true, .. });
        let ident = self.ident(what)?;
        // `factory` is a keyword of the OMG text; this parser treats it as one only where a factory can be
        // declared.
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
                found.help(format!("choose another name, or escape it: `_{text}` is named `{text}`")),
            );
        }
        self.declared.insert(ident.text.clone());
        Ok(ident)
    }

    fn ident(&mut self, what: &str) -> Parse<Ident> {
        match self.kind() {
            TokenKind::Ident { text, .. } => {
                let ident = Ident { text: text.clone(), span: self.span() };
                self.advance();
                Ok(ident)
            }
            TokenKind::Keyword(word) => {
                let message = format!("expected {what}, found the keyword `{word}`");
                let error = Diagnostic::error("syntax", self.span(), message);
                let help = format!("a leading underscore makes it a name: `_{word}` is named `{word}`");
                let blaming = self.blaming_word_before(error.clone());
                self.report(if blaming == error { error.help(help) } else { blaming });
                Err(Reported)
            }
            _ => self.expected(what),
        }
    }

    /// Parses a scoped name: `A::B` or `::A`.
    fn name(&mut self, what: &str) -> Parse<Name> {
        let start = self.span();
        let absolute = self.take_punct(Punct::Scope);
        let mut parts = vec![self.ident(what)?];
        while self.take_punct(Punct::Scope) {
            parts.push(self.ident("a name after `::`")?);
        }
        if let [first, second, ..] = parts.as_slice()
            && first.text == "Components"
        {
            self.named_components.insert(second.text.clone());
        }
        Ok(Name { absolute, parts, span: start.to(self.last_span()) })
    }

    /// Parses a list of names, `A, B::C`, in parentheses or after a colon.
    fn names(&mut self, what: &str) -> Parse<Vec<Name>> {
        let mut names = vec![self.name(what)?];
        while self.take_punct(Punct::Comma) {
            names.push(self.name(what)?);
        }
        Ok(names)
    }

    /// Runs a production one level deeper.
    fn nested<T>(&mut self, production: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.deeper()?;
        let result = production(self);
        self.depth -= 1;
        result
    }

    /// Enters a level. The caller leaves it by decrementing the depth.
    fn deeper(&mut self) -> Parse<()> {
        if self.depth >= MAX_DEPTH {
            let error = Diagnostic::error(
                "too-deep",
                self.span(),
                format!("this nests more than {MAX_DEPTH} levels deep"),
            );
            self.report(error.help("give the inner parts names of their own"));
            self.gave_up = true;
            self.at = self.tokens.len().saturating_sub(1);
            return Err(Reported);
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        Ok(())
    }

    /// Runs a production in which `>>` closes brackets, or in which it shifts.
    fn with_angle<T>(&mut self, in_angle: bool, production: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let outer = std::mem::replace(&mut self.in_angle, in_angle);
        let result = production(self);
        self.in_angle = outer;
        result
    }

    /// Recovers from an error in a declaration that started at this token. Continues where the next
    /// declaration can start, and consumes at least one token unless the scope ends.
    fn recover_from(&mut self, start: usize) {
        // At the start of a definition, the `}` of the preceding block may be missing.
        let open = if self.at_starter() { 0 } else { self.open_braces(start) };
        self.recover(open);
        if self.at == start && !self.at_punct(Punct::BraceClose) {
            self.advance();
        }
    }

    /// Returns the number of unclosed `{` since a token.
    fn open_braces(&self, start: usize) -> usize {
        let since = self.tokens.get(start..self.at).unwrap_or_default();
        since.iter().fold(0, |open: usize, token| match token.kind {
            TokenKind::Punct(Punct::BraceOpen) => open + 1,
            TokenKind::Punct(Punct::BraceClose) => open.saturating_sub(1),
            _ => open,
        })
    }

    /// Recovers from an error that is `depth` blocks deep in a declaration. Skips to after the next `;` of
    /// this level, to after the declaration's own block and its `;`, or to the `}` that ends the enclosing
    /// scope.
    fn recover(&mut self, mut depth: usize) {
        let start = self.at;
        loop {
            match self.kind() {
                TokenKind::End => return,
                _ if depth == 0 && self.at > start && self.is_behind_pragma() => return,
                TokenKind::Punct(Punct::BraceOpen) => depth += 1,
                TokenKind::Punct(Punct::BraceClose) if depth == 0 => return,
                TokenKind::Punct(Punct::BraceClose) => {
                    depth -= 1;
                    if depth == 0
                        && self.kind_at(1) != &TokenKind::Punct(Punct::Semicolon)
                        && self.ends_here()
                    {
                        self.advance();
                        return;
                    }
                }
                TokenKind::Punct(Punct::Semicolon) if depth == 0 => {
                    self.advance();
                    return;
                }
                _ => {}
            }
            self.advance();
        }
    }

    /// Returns whether the token after this `}` cannot belong to the same declaration
    /// (`typedef struct S { ... } T;` continues).
    fn ends_here(&self) -> bool {
        !matches!(self.kind_at(1), TokenKind::Ident { .. } | TokenKind::Punct(_))
    }

    /// Returns the lines of `//!` comments before the current token.
    fn inner_docs(&self) -> Vec<String> {
        let comments = self.tokens.get(self.at).and_then(|token| token.comments.as_ref());
        comments.map_or(Vec::new(), |comments| {
            comments.inner.iter().flat_map(|text| clean_comment(text)).collect()
        })
    }

    /// Returns the documentation before the current token.
    fn docs(&self) -> Docs {
        let comments = self.tokens.get(self.at).and_then(|token| token.comments.as_ref());
        let lines = comments
            .map_or(Vec::new(), |comments| comments.outer.iter().flat_map(|text| clean_doc(text)).collect());
        Docs { lines }
    }
}

/// Returns the lines of one comment. An empty `///` line stays, because it separates paragraphs.
fn clean_doc(text: &str) -> Vec<String> {
    if text.trim().is_empty() { vec![String::new()] } else { clean_comment(text) }
}
