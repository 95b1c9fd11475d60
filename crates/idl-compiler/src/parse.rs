//! The parser: hand-written recursive descent, one function for each production.
//!
//! It does not use `nom`, because error handling is the larger part of the parser. After an error it
//! continues at the next `;` or `}` and finds further errors in the same run. It knows the enclosing
//! production and never backtracks, so each token is visited once even in broken text.

use std::collections::{BTreeSet, VecDeque};

use crate::MAX_DEPTH;
use crate::ast::Item;
use crate::diagnostic::{Collector, Diagnostic};
use crate::model::Docs;
use crate::source::Span;
use crate::token::{Punct, Token, TokenKind};

use input::Input;
use pragma::Apart;

mod ccm;
mod expr;
mod head;
mod idl4;
mod input;
mod interface;
mod item;
mod pragma;
mod template;
mod types;
mod value;

/// Keywords of clauses that follow an operation or attribute.
const CLAUSES: &[&str] = &["raises", "context", "getraises", "setraises"];

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
        input: Input::new(tokens, strict_names, out),
        pragmas,
        depth: 0,
        deepest: 0,
        templates: 0,
        in_angle: false,
        components: BTreeSet::new(),
    };
    let mut docs = Docs::default();
    let items = parser.items(item::Place::File, &mut docs);
    let Parser { components, input: Input { named_components, declared, .. }, .. } = parser;
    Parsed { items, docs, components, named_components, declares_components: declared.contains("Components") }
}

/// Marker: the error has already been pushed to the collector.
struct Reported;

type Parse<T> = Result<T, Reported>;

struct Parser<'o> {
    input: Input<'o>,
    /// Pragmas that have not been reached yet.
    pragmas: VecDeque<Apart>,
    depth: usize,
    /// The greatest depth since this field was last reset.
    deepest: usize,
    /// Number of enclosing template modules.
    templates: usize,
    /// Inside `<...>`, where `>>` closes two brackets instead of shifting.
    in_angle: bool,
    /// As in [`Parsed`].
    components: BTreeSet<&'static str>,
}

impl Parser<'_> {
    /// Consumes a `;`. If it is missing and the next token can start a new declaration, parsing continues as
    /// if it were present.
    fn semicolon(&mut self, after: &str) -> Parse<()> {
        if self.input.take_punct(Punct::Semicolon) {
            return Ok(());
        }
        let message = format!("expected `;` after {after}, found {}", self.input.kind().describe());
        let over = self.starts_item()
            || matches!(self.input.kind(), TokenKind::Punct(Punct::BraceClose) | TokenKind::End);
        if over {
            let last = self.input.last_span();
            let end = Span { start: last.end.saturating_sub(1).max(last.start), ..last };
            // An unterminated literal has consumed the `;`.
            if !matches!(
                self.input.tokens.get(self.input.at.saturating_sub(1)),
                Some(Token { kind: TokenKind::BadLiteral, .. })
            ) {
                self.input.unexpected(Diagnostic::error("syntax", end, message));
            }
            return Ok(());
        }
        let error = Diagnostic::error("syntax", self.input.span(), message);
        self.input.unexpected(self.input.suggesting(error, CLAUSES));
        Err(Reported)
    }

    /// Returns whether the current token starts a definition, and so ends the previous one.
    fn starts_item(&self) -> bool {
        self.input.at_starter() || self.is_behind_pragma()
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
                self.input.span(),
                format!("this nests more than {MAX_DEPTH} levels deep"),
            );
            self.input.report(error.help("give the inner parts names of their own"));
            self.input.gave_up = true;
            self.input.at = self.input.tokens.len().saturating_sub(1);
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
        let open = if self.input.at_starter() { 0 } else { self.input.open_braces(start) };
        self.recover(open);
        if self.input.at == start && !self.input.at_punct(Punct::BraceClose) {
            self.input.advance();
        }
    }

    /// Recovers from an error that is `depth` blocks deep in a declaration. Skips to after the next `;` of
    /// this level, to after the declaration's own block and its `;`, or to the `}` that ends the enclosing
    /// scope.
    fn recover(&mut self, mut depth: usize) {
        let start = self.input.at;
        loop {
            match self.input.kind() {
                TokenKind::End => return,
                _ if depth == 0 && self.input.at > start && self.is_behind_pragma() => return,
                TokenKind::Punct(Punct::BraceOpen) => depth += 1,
                TokenKind::Punct(Punct::BraceClose) if depth == 0 => return,
                TokenKind::Punct(Punct::BraceClose) => {
                    depth -= 1;
                    if depth == 0
                        && self.input.kind_at(1) != &TokenKind::Punct(Punct::Semicolon)
                        && ends_here(&self.input)
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

/// Returns whether the token after this `}` cannot belong to the same declaration
/// (`typedef struct S { ... } T;` continues).
fn ends_here(input: &Input<'_>) -> bool {
    !matches!(input.kind_at(1), TokenKind::Ident { .. } | TokenKind::Punct(_))
}
