//! The lexer for Rust tokens. It converts the tokens of rustc's lexer to IDL tokens.

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

use super::{Lexed, Output};
use crate::diagnostic::{Collector, Diagnostic};
use crate::preprocess::DIRECTIVES;
use crate::source::{Sources, Span, TokenText};
use crate::token::{Punct, TokenKind, Wideness};

mod literal;

pub(super) fn lex(tokens: TokenStream, sources: &mut Sources, out: &mut Collector) -> Lexed {
    // The text of the tokens is added to the sources after lexing, but their spans need its number before.
    let mut lexer = Lexer {
        pieces: Vec::new(),
        at: 0,
        token_text: TokenText::default(),
        output: Output::new(sources.next_index(), out),
    };
    lexer.pieces = lexer.flatten(tokens);
    while lexer.at < lexer.pieces.len() {
        lexer.step();
    }
    let end = lexer.token_text.text.len();
    let end = lexer.output.span(end, end);
    let lexed = lexer.output.finish(end);
    sources.add_tokens(lexer.token_text);
    lexed
}

struct Piece {
    kind: PieceKind,
    span: Span,
    /// The line and column in the Rust file. All tokens have the same ones if rustc does not provide them.
    position: (usize, usize),
}

enum PieceKind {
    /// The identifier as written, without the `r#` of a raw identifier.
    Ident(String),
    Punct {
        c: char,
        joint: bool,
    },
    Literal(proc_macro2::Literal),
    Doc {
        text: String,
        inner: bool,
    },
    Attribute,
}

struct Lexer<'o> {
    pieces: Vec<Piece>,
    at: usize,
    /// The text of the tokens, laid out as in the Rust file.
    token_text: TokenText,
    output: Output<'o>,
}

impl Lexer<'_> {
    /// Returns all tokens as a list, in which delimiters and documentation attributes are pieces.
    fn flatten(&mut self, tokens: TokenStream) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut stack = vec![(tokens.into_iter(), None)];
        while let Some((tokens, close)) = stack.last_mut() {
            let Some(tree) = tokens.next() else {
                if let Some((c, span)) = close.take() {
                    self.add(&mut pieces, PieceKind::Punct { c, joint: false }, &c.to_string(), span);
                }
                stack.pop();
                continue;
            };
            match tree {
                TokenTree::Ident(ident) => {
                    let text = ident.to_string();
                    let name = text.strip_prefix("r#").unwrap_or(&text).to_owned();
                    self.add(&mut pieces, PieceKind::Ident(name), &text, ident.span());
                }
                TokenTree::Punct(punct) => {
                    let (c, joint) = (punct.as_char(), punct.spacing() == Spacing::Joint);
                    self.add(&mut pieces, PieceKind::Punct { c, joint }, &c.to_string(), punct.span());
                }
                TokenTree::Literal(literal) => {
                    let (text, span) = (literal.to_string(), literal.span());
                    self.add(&mut pieces, PieceKind::Literal(literal), &text, span);
                }
                TokenTree::Group(group) => {
                    if let Some(inner) =
                        attribute_mark(&pieces).filter(|_| group.delimiter() == Delimiter::Bracket)
                    {
                        for _ in 0..=usize::from(inner) {
                            pieces.pop();
                            self.token_text.pop();
                        }
                        self.attribute(&mut pieces, &group, inner);
                        continue;
                    }
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ('(', ')'),
                        Delimiter::Brace => ('{', '}'),
                        Delimiter::Bracket => ('[', ']'),
                        Delimiter::None => {
                            stack.push((group.stream().into_iter(), None));
                            continue;
                        }
                    };
                    let kind = PieceKind::Punct { c: open, joint: false };
                    self.add(&mut pieces, kind, &open.to_string(), group.span_open());
                    stack.push((group.stream().into_iter(), Some((close, group.span_close()))));
                }
            }
        }
        pieces
    }

    fn add(&mut self, pieces: &mut Vec<Piece>, kind: PieceKind, text: &str, span: proc_macro2::Span) {
        let (start, end) = self.token_text.push(text, span);
        let position = span.start();
        let span = self.output.span(start as usize, end as usize);
        pieces.push(Piece { kind, span, position: (position.line, position.column) });
    }

    /// Adds a piece for an attribute. `#[doc = "..."]` is rustc's form of a documentation comment. Other
    /// attributes become errors later, because IDL has none.
    fn attribute(&mut self, pieces: &mut Vec<Piece>, group: &Group, inner: bool) {
        let trees: Vec<TokenTree> = group.stream().into_iter().collect();
        let doc = match trees.as_slice() {
            [TokenTree::Ident(name), TokenTree::Punct(equal), TokenTree::Literal(text)]
                if name == "doc" && equal.as_char() == '=' =>
            {
                if let syn::Lit::Str(text) = syn::Lit::new(text.clone()) { Some(text.value()) } else { None }
            }
            _ => None,
        };
        let kind = doc.map_or(PieceKind::Attribute, |text| PieceKind::Doc { text, inner });
        let text = if matches!(kind, PieceKind::Attribute) { "[...]" } else { "" };
        self.add(pieces, kind, text, group.span());
    }

    fn piece(&self, ahead: usize) -> Option<&Piece> {
        self.pieces.get(self.at + ahead)
    }

    fn punct_at(&self, ahead: usize) -> Option<(char, bool)> {
        match self.piece(ahead)?.kind {
            PieceKind::Punct { c, joint } => Some((c, joint)),
            _ => None,
        }
    }

    fn ident_at(&self, ahead: usize) -> Option<&str> {
        match &self.piece(ahead)?.kind {
            PieceKind::Ident(text) => Some(text),
            _ => None,
        }
    }

    fn literal_at(&self, ahead: usize) -> Option<String> {
        match &self.piece(ahead)?.kind {
            PieceKind::Literal(literal) => Some(literal.to_string()),
            _ => None,
        }
    }

    fn span(&self, count: usize) -> Span {
        match (self.piece(0), self.piece(count.saturating_sub(1))) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => self.output.span(self.token_text.text.len(), self.token_text.text.len()),
        }
    }

    fn step(&mut self) {
        let Some(piece) = self.pieces.get(self.at) else { return };
        let span = piece.span;
        match &piece.kind {
            PieceKind::Doc { text, inner } => {
                let comments = &mut self.output.comments;
                let doc = text.clone();
                if *inner {
                    comments.inner.push(doc)
                } else if !doc.starts_with('<') {
                    comments.outer.push(doc)
                }
                self.at += 1;
            }
            PieceKind::Attribute => {
                let error = Diagnostic::error("stray-character", span, "IDL has no Rust attributes");
                self.output.out.push(error.help("write an IDL annotation, `@name`"));
                self.at += 1;
            }
            PieceKind::Ident(text) if text == "L" && self.wide_literal_follows() => {
                self.at += 1;
                self.read_literal(Wideness::Wide, Some(span));
            }
            PieceKind::Ident(text) => {
                let text = text.clone();
                self.output.word(&text, span);
                self.at += 1;
            }
            PieceKind::Literal(_) => self.read_literal(Wideness::ByType, None),
            PieceKind::Punct { c: '#', .. } => self.directive(),
            PieceKind::Punct { c: '.', .. } => self.read_number(),
            PieceKind::Punct { c, .. } => self.punct(*c, span),
        }
    }

    fn wide_literal_follows(&self) -> bool {
        self.literal_at(1).is_some_and(|text| text.starts_with(['"', '\'']))
    }

    fn punct(&mut self, c: char, span: Span) {
        let next = self.punct_at(0).filter(|(_, joint)| *joint).and(self.punct_at(1)).map(|(c, _)| c);
        let text: String = std::iter::once(c).chain(next).collect();
        if let Some(punct) = Punct::of(&text).filter(|_| next.is_some()) {
            let span = self.span(2);
            self.output.push(TokenKind::Punct(punct), span);
            self.at += 2;
        } else if let Some(punct) = Punct::of(c.encode_utf8(&mut [0; 4])) {
            self.output.push(TokenKind::Punct(punct), span);
            self.at += 1;
        } else {
            self.output.stray(span, format!("`{}` has no meaning in IDL", c.escape_debug()));
            self.at += 1;
        }
    }

    /// Handles a `#` that does not start an attribute.
    fn directive(&mut self) {
        let Some(word) = self.ident_at(1).map(str::to_owned) else {
            let span = self.span(1);
            self.output.stray(span, "`#` must start a preprocessor directive");
            self.at += 1;
            return;
        };
        let span = self.span(2);
        let end = self.line_end();
        if word == "pragma" {
            return self.pragma(end);
        }
        if DIRECTIVES.contains(&word.as_str()) {
            self.output.directive(&word, span);
        } else {
            self.output.error(
                "unknown-directive",
                span,
                format!("`#{word}` is not a preprocessor directive"),
            );
        }
        self.at = end.unwrap_or(self.at + 2);
        if word.starts_with("if") {
            self.skip_conditional();
        }
    }

    /// Returns the index of the first piece in a later line, or `None` if it is unknown (tokens of a macro).
    fn line_end(&self) -> Option<usize> {
        let first = self.piece(0)?.position;
        let is_known = self.piece(1).is_some_and(|next| next.position != first);
        let rest = self.pieces.get(self.at..).filter(|_| is_known)?;
        Some(self.at + rest.iter().position(|piece| piece.position.0 != first.0).unwrap_or(rest.len()))
    }

    /// Handles `#pragma`. The pragma extends to `end`, the end of the line. If that is not known, the grammar
    /// of the pragma determines the end.
    fn pragma(&mut self, end: Option<usize>) {
        let span = self.span(2);
        let word = self.ident_at(2).unwrap_or("").to_owned();
        if !matches!(word.as_str(), "prefix" | "ID" | "version") {
            self.at = end.unwrap_or_else(|| {
                let message = "cannot tell where this unknown pragma ends";
                self.output.error("unknown-pragma", span, message);
                self.at + 3
            });
            return;
        }
        self.output.push(TokenKind::Pragma, span);
        self.at += 2;
        let end = end.unwrap_or_else(|| self.pragma_end(&word));
        while self.at < end.min(self.pieces.len()) {
            self.step();
        }
        let end = self.output.tokens.last().map_or(span, |token| token.span);
        self.output.push(TokenKind::PragmaEnd, Span { start: end.end, ..end });
    }

    /// Returns the end of `prefix "x"`, `ID a::b "x"` or `version a::b 1.2`, which starts at `word`.
    fn pragma_end(&self, word: &str) -> usize {
        let mut ahead = 1;
        if word != "prefix" {
            while self.ident_at(ahead).is_some() || self.punct_at(ahead).is_some_and(|(c, _)| c == ':') {
                // Two names in a row: the second belongs to the next declaration.
                if self.ident_at(ahead).is_some() && ahead > 1 && self.ident_at(ahead - 1).is_some() {
                    return self.at + ahead;
                }
                ahead += 1;
            }
        }
        let is_argument =
            self.literal_at(ahead).is_some() || word == "prefix" && self.ident_at(ahead).is_some();
        self.at + ahead + usize::from(is_argument)
    }

    /// Skips the rest of a rejected `#if`, including its `#endif`.
    fn skip_conditional(&mut self) {
        let mut depth = 1usize;
        while depth > 0 && self.at < self.pieces.len() {
            if self.punct_at(0).is_some_and(|(c, _)| c == '#') {
                match self.ident_at(1) {
                    Some(word) if word.starts_with("if") => depth += 1,
                    Some("endif") => depth -= 1,
                    _ => {}
                }
                self.at += 1;
            }
            self.at += 1;
        }
    }
}

/// Returns whether brackets after these pieces are an attribute: `Some(true)` for an inner one (`#![...]`).
fn attribute_mark(pieces: &[Piece]) -> Option<bool> {
    let is_punct =
        |piece: &Piece, expected| matches!(piece.kind, PieceKind::Punct { c, .. } if c == expected);
    match pieces {
        [.., hash] if is_punct(hash, '#') => Some(false),
        [.., hash, bang] if is_punct(hash, '#') && is_punct(bang, '!') => Some(true),
        _ => None,
    }
}
