//! From source to tokens: one lexer for text, one for Rust tokens, and what they share.

use crate::diagnostic::{Collector, Diagnostic};
use crate::source::{Form, MAX_TEXT, Source, Sources, Span};
use crate::token::{Comments, Token, TokenKind, keyword};

mod number;
mod rust;
mod text;

/// What lexing found.
pub(crate) struct Lexed {
    /// All tokens; the last is [`TokenKind::End`].
    pub(crate) tokens: Vec<Token>,
    /// Preprocessor lines were refused, so names may be missing for no fault of the rest.
    pub(crate) incomplete: bool,
}

/// Lexes a source and files its text.
pub(crate) fn lex(source: Source, sources: &mut Sources, out: &mut Collector) -> Lexed {
    match source.0 {
        Form::Tokens(tokens) => rust::lex(tokens, sources, out),
        Form::Text { name, text } => {
            let text = sized(text, out);
            let file = sources.add_text(name, text);
            text::lex(file, sources.file(file).map_or("", |file| &file.text), out)
        }
        Form::Literal { literal, text } => {
            let text = sized(text, out);
            let file = sources.add_literal(literal, text);
            text::lex(file, sources.file(file).map_or("", |file| &file.text), out)
        }
    }
}

fn sized(text: String, out: &mut Collector) -> String {
    if text.len() <= MAX_TEXT {
        return text;
    }
    let message =
        format!("this text of {} octets is longer than the {MAX_TEXT} that can be compiled", text.len());
    out.push(Diagnostic::error("too-large", Span { file: 0, start: 0, end: 0 }, message));
    String::new()
}

/// Tokens under construction.
struct Output<'a> {
    file: u32,
    tokens: Vec<Token>,
    comments: Comments,
    incomplete: bool,
    after_stray: bool,
    in_pragma: bool,
    out: &'a mut Collector,
}

impl<'a> Output<'a> {
    fn new(file: u32, out: &'a mut Collector) -> Self {
        let (tokens, comments) = (Vec::new(), Comments::default());
        Output { file, tokens, comments, incomplete: false, after_stray: false, in_pragma: false, out }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start..end)
    }

    /// Adds a token with the comments before it; those before a pragma belong to what follows it.
    fn push(&mut self, kind: TokenKind, span: Span) {
        self.in_pragma |= kind == TokenKind::Pragma;
        let none = self.comments.outer.is_empty() && self.comments.inner.is_empty();
        let some = !(self.in_pragma || none);
        let comments = some.then(|| Box::new(std::mem::take(&mut self.comments)));
        self.in_pragma &= kind != TokenKind::PragmaEnd;
        let after_stray = std::mem::take(&mut self.after_stray);
        self.tokens.push(Token { kind, span, comments, after_stray });
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.out.push(Diagnostic::error(code, span, message));
    }

    /// Reports something that is no token at all.
    fn stray(&mut self, span: Span, message: impl Into<String>) {
        self.after_stray = true;
        self.error("stray-character", span, message);
    }

    /// Reports a literal and puts a stand-in, so that the parser goes on.
    fn bad_literal(&mut self, diagnostic: Diagnostic, span: Span) {
        self.out.push(diagnostic);
        self.push(TokenKind::BadLiteral, span);
    }

    /// An identifier or keyword as written.
    fn word(&mut self, word: &str, span: Span) {
        if let Some(keyword) = keyword(word).filter(|keyword| *keyword == word) {
            return self.push(TokenKind::Keyword(keyword), span);
        }
        let (text, escaped) = word.strip_prefix('_').map_or((word, false), |rest| (rest, true));
        if !word.is_ascii() {
            let error =
                Diagnostic::error("bad-identifier", span, format!("`{word}` is not an IDL identifier"));
            self.out.push(error.note("identifiers are made of ASCII letters, digits and `_`"));
        } else if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let error =
                Diagnostic::error("bad-identifier", span, format!("`{word}` is not an IDL identifier"));
            self.out.push(error.note(
                "an identifier starts with a letter; one underscore before it only escapes a keyword and is not part of the name",
            ));
        }
        self.push(TokenKind::Ident { text: text.to_owned(), escaped }, span);
    }

    /// Refuses a preprocessor line.
    fn directive(&mut self, word: &str, span: Span) {
        self.incomplete = true;
        let error = Diagnostic::error("unsupported", span, format!("`#{word}` is not supported yet"));
        let help = match word {
            "include" => "put the definitions needed into this text",
            "define" => "declare a `const` instead",
            _ => "remove the line; only `#pragma` is understood",
        };
        self.out.push(error.help(help));
    }

    fn finish(mut self, end: Span) -> Lexed {
        self.push(TokenKind::End, end);
        Lexed { tokens: self.tokens, incomplete: self.incomplete }
    }
}

/// Words after `#` that the C++ preprocessor knows.
const DIRECTIVES: &[&str] = &[
    "include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "line", "error",
    "warning",
];

/// Lines of a documentation comment: the common decoration of block comments and one blank after the marker removed,
/// empty lines at both ends dropped.
pub(crate) fn clean_comment(text: &str) -> Vec<String> {
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    if lines.len() > 1 {
        for line in lines.iter_mut().skip(1) {
            let inner = line.trim_start();
            *line = inner.strip_prefix('*').unwrap_or(inner);
        }
    }
    let blank = |line: &&str| line.trim().is_empty();
    let start = lines.iter().position(|line| !blank(line)).unwrap_or(lines.len());
    let end = lines.iter().rposition(|line| !blank(line)).map_or(start, |last| last + 1);
    let kept = lines.get(start..end).unwrap_or(&[]);
    kept.iter().map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned()).collect()
}
