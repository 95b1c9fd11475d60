//! The parser: recursive descent by hand, one function a production.
//!
//! By hand rather than with `nom`, because errors are the larger half of the work: after one the parser goes on at the
//! next `;` or `}` and finds the rest in the same run, knows what it was in the middle of, and never backtracks, so each
//! token is looked at once however broken the text is.

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

/// Keywords that start a definition or a part of one, so that what stood before is over.
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

/// Words that follow an operation or attribute.
const CLAUSES: &[&str] = &["raises", "context", "getraises", "setraises"];

/// A shorter word is not taken for a misspelt keyword after which something else is wrong.
const MIN_MISSPELT: usize = 4;

/// What a text says, names not bound.
pub(crate) struct Parsed {
    pub(crate) items: Vec<Item>,
    /// `//!` comments of the file.
    pub(crate) docs: Docs,
    /// What constructs of the component model need of the module `Components`.
    pub(crate) components: BTreeSet<&'static str>,
    /// What stands behind `Components::`.
    pub(crate) named_components: BTreeSet<String>,
    /// Something is declared that is called `Components`, in whatever scope.
    pub(crate) declares_components: bool,
}

/// Parses the tokens; what is wrong goes to the collector, what is right comes back.
///
/// `strict_names`: a name that differs from a keyword in case only is an error, else a warning.
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

/// The error has been put into the collector.
struct Reported;

type Parse<T> = Result<T, Reported>;

struct Parser<'o> {
    /// Never empty; ends with [`TokenKind::End`], which is never passed.
    tokens: Vec<Token>,
    /// Pragmas that were not come to yet.
    pragmas: VecDeque<Apart>,
    at: usize,
    depth: usize,
    /// The greatest depth since this was last set.
    deepest: usize,
    /// How many template modules are around.
    templates: usize,
    /// Inside `<...>`, where `>>` closes two brackets instead of shifting.
    in_angle: bool,
    /// Words of newer language versions that this text uses as names (`port`, `map`): from the declaration on they
    /// are names only.
    declared: HashSet<String>,
    strict_names: bool,
    /// The text nests too deep: one error, and no more.
    gave_up: bool,
    /// See [`Parsed`].
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

    /// The token just taken.
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

    /// A word that only newer versions of the language know, unless this text uses it as a name.
    fn at_new_word(&self, word: &str) -> bool {
        self.new_word().is_some_and(|found| found == word)
    }

    fn new_word(&self) -> Option<&str> {
        match self.kind() {
            TokenKind::Ident { text, escaped: false } if !self.declared.contains(text) => Some(text),
            _ => None,
        }
    }

    /// Reports what stands here instead of what is wanted.
    fn expected<T>(&mut self, wanted: &str) -> Parse<T> {
        let message = format!("expected {wanted}, found {}", self.kind().describe());
        let error = Diagnostic::error("syntax", self.span(), message);
        let words: Vec<&str> = wanted.split('`').skip(1).step_by(2).collect();
        self.unexpected(self.suggesting(error, &words));
        Err(Reported)
    }

    /// The error, with the keyword that is likely meant: one of these by the word that stands here, or any by a word before it.
    fn suggesting(&self, error: Diagnostic, words: &[&str]) -> Diagnostic {
        let near = match self.kind() {
            // One letter is like every sign.
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

    /// The error, at the place of a misspelt keyword before it if there is one (`sruct S {`, `unsinged long x`).
    fn blaming_word_before(&self, error: Diagnostic) -> Diagnostic {
        for back in 1..=2 {
            let at = self.at.checked_sub(back).and_then(|at| self.tokens.get(at));
            let Some(Token { kind: TokenKind::Ident { text, escaped: false }, span, .. }) = at else { break };
            // Short words are like many others.
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

    /// Reports that this token does not fit here, unless what stands before it was reported already. The end of the text
    /// is unexpected once, however many scopes it leaves open.
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

    /// A `;`. Where it is missing and what follows can start anew, the parser goes on as if it stood there.
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
            // A literal without an end has swallowed the `;`.
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

    /// A word that starts a definition, so the one before is over.
    fn starts_item(&self) -> bool {
        self.at_starter() || self.is_behind_pragma()
    }

    fn at_starter(&self) -> bool {
        matches!(self.kind(), TokenKind::Keyword(word) if STARTERS.contains(word))
    }

    /// An identifier that is being declared. It should not look like a keyword; uses need not be escaped.
    fn new_ident(&mut self, what: &str) -> Parse<Ident> {
        let escaped = matches!(self.kind(), TokenKind::Ident { escaped: true, .. });
        let ident = self.ident(what)?;
        // A keyword of the OMG's, though here it is one only where a factory can be declared.
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

    /// `A::B`, `::A`.
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

    /// `A, B::C` inside parentheses or after a colon.
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

    /// Begins a level, which ends where the depth is what it was.
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

    /// Runs a production with `>>` closing brackets or shifting.
    fn with_angle<T>(&mut self, in_angle: bool, production: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let outer = std::mem::replace(&mut self.in_angle, in_angle);
        let result = production(self);
        self.in_angle = outer;
        result
    }

    /// After an error in a declaration that started at this token: goes on where the next may start, and at least one
    /// token on unless the scope ends.
    fn recover_from(&mut self, start: usize) {
        // Where a definition begins, the `}` of the block before it may be what is missing.
        let open = if self.at_starter() { 0 } else { self.open_braces(start) };
        self.recover(open);
        if self.at == start && !self.at_punct(Punct::BraceClose) {
            self.advance();
        }
    }

    /// How many of the `{` since a token are not closed.
    fn open_braces(&self, start: usize) -> usize {
        let since = self.tokens.get(start..self.at).unwrap_or_default();
        since.iter().fold(0, |open: usize, token| match token.kind {
            TokenKind::Punct(Punct::BraceOpen) => open + 1,
            TokenKind::Punct(Punct::BraceClose) => open.saturating_sub(1),
            _ => open,
        })
    }

    /// After an error, so many blocks deep in a declaration: past the next `;` of this level, or past the block this
    /// declaration opened and its `;`, or up to the `}` that ends the scope around.
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

    /// What follows the `}` here cannot belong to the same declaration (`typedef struct S { ... } T;` goes on).
    fn ends_here(&self) -> bool {
        !matches!(self.kind_at(1), TokenKind::Ident { .. } | TokenKind::Punct(_))
    }

    /// The lines of `//!` comments before this token.
    fn inner_docs(&self) -> Vec<String> {
        let comments = self.tokens.get(self.at).and_then(|token| token.comments.as_ref());
        comments.map_or(Vec::new(), |comments| {
            comments.inner.iter().flat_map(|text| clean_comment(text)).collect()
        })
    }

    /// The documentation before this token.
    fn docs(&self) -> Docs {
        let comments = self.tokens.get(self.at).and_then(|token| token.comments.as_ref());
        let lines = comments
            .map_or(Vec::new(), |comments| comments.outer.iter().flat_map(|text| clean_doc(text)).collect());
        Docs { lines }
    }
}

/// Lines of one comment; a blank `///` line stays, as it parts paragraphs.
fn clean_doc(text: &str) -> Vec<String> {
    if text.trim().is_empty() { vec![String::new()] } else { clean_comment(text) }
}
