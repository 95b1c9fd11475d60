//! The lexers: one for text, one for Rust tokens, and their common parts.

use std::path::PathBuf;
use std::rc::Rc;

use crate::diagnostic::{Collector, Diagnostic};
use crate::model::VendorPragma;
use crate::preprocess::{Preprocessor, Settings};
use crate::source::{FileInfo, Form, MAX_TEXT_BYTES, Source, Sources, Span};
use crate::token::{Comments, Token, TokenKind, keyword};

mod import;
mod number;
mod rust;
mod text;

pub(crate) struct Lexed {
    /// All tokens. The last one is [`TokenKind::End`].
    pub(crate) tokens: Vec<Token>,
    /// True if parts of the text were skipped after an error, so that names that they declare are unknown.
    pub(crate) incomplete: bool,
    /// Names of included files that do not exist.
    pub(crate) missing_files: Vec<String>,
    /// `#pragma` lines without a meaning in IDL.
    pub(crate) pragmas: Vec<VendorPragma>,
}

pub(crate) fn lex(source: Source, settings: &Settings, sources: &mut Sources, out: &mut Collector) -> Lexed {
    let file = match source.0 {
        Form::Tokens(tokens) => return rust::lex(tokens, sources, out),
        Form::Text { name, text } => {
            let text = check_size(text, out);
            sources.add_text(name, text, FileInfo::default())
        }
        Form::Literal { literal, text } => {
            let text = check_size(text, out);
            sources.add_literal(literal, text)
        }
    };
    let mut preprocessor = Preprocessor::new(settings, sources);
    preprocessor.push_text(file);
    text::lex(preprocessor, Output::new(file, out))
}

pub(crate) fn lex_files(
    paths: &[PathBuf],
    settings: &Settings,
    sources: &mut Sources,
    out: &mut Collector,
) -> Lexed {
    let mut preprocessor = Preprocessor::new(settings, sources);
    preprocessor.push_input_files(paths);
    text::lex(preprocessor, Output::new(0, out))
}

pub(crate) fn lex_predeclared(
    name: String,
    text: String,
    sources: &mut Sources,
    out: &mut Collector,
) -> Lexed {
    let info = FileInfo { included: true, predeclared: true, ..FileInfo::default() };
    let file = sources.add_text(name, text.into(), info);
    let settings = Settings::default();
    let mut preprocessor = Preprocessor::new(&settings, sources);
    preprocessor.push_text(file);
    text::lex(preprocessor, Output::new(file, out))
}

/// Returns the text, or reports that it is too long and returns an empty one.
fn check_size(text: String, out: &mut Collector) -> Rc<str> {
    if text.len() <= MAX_TEXT_BYTES {
        return text.into();
    }
    let message = format!("this text has {} bytes, but at most {MAX_TEXT_BYTES} can be compiled", text.len());
    out.push(Diagnostic::error("too-large", Span::START, message));
    Rc::from("")
}

struct Output<'a> {
    file: u32,
    tokens: Vec<Token>,
    comments: Comments,
    /// As in [`Lexed`].
    incomplete: bool,
    /// True if characters that form no token precede the next token.
    after_stray: bool,
    in_pragma: bool,
    /// Whether the next token directly follows the previous one, or `None` if their spans determine this.
    joined: Option<bool>,
    /// As `missing_files` in [`Lexed`].
    missing: Vec<String>,
    /// As in [`Lexed`].
    pragmas: Vec<VendorPragma>,
    out: &'a mut Collector,
}

impl<'a> Output<'a> {
    fn new(file: u32, out: &'a mut Collector) -> Self {
        let (tokens, comments) = (Vec::new(), Comments::default());
        let (incomplete, after_stray, in_pragma, joined) = (false, false, false, None);
        let (missing, pragmas) = (Vec::new(), Vec::new());
        Output { file, tokens, comments, incomplete, after_stray, in_pragma, joined, missing, pragmas, out }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start..end)
    }

    /// Adds a token with the comments before it, including those before a pragma that precedes it.
    fn push(&mut self, kind: TokenKind, span: Span) {
        self.in_pragma |= kind == TokenKind::Pragma;
        let has_comments = !(self.comments.outer.is_empty() && self.comments.inner.is_empty());
        let comments =
            (has_comments && !self.in_pragma).then(|| Box::new(std::mem::take(&mut self.comments)));
        self.in_pragma &= kind != TokenKind::PragmaEnd;
        let after_stray = std::mem::take(&mut self.after_stray);
        let touches = self.tokens.last().is_some_and(|last| last.span.end == span.start);
        let joined = self.joined.take().unwrap_or(touches);
        self.tokens.push(Token { kind, span, comments, after_stray, joined });
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.out.push(Diagnostic::error(code, span, message));
    }

    /// Reports characters that form no token.
    fn stray(&mut self, span: Span, message: impl Into<String>) {
        self.after_stray = true;
        self.error("stray-character", span, message);
    }

    /// Reports a literal and pushes a placeholder, so that parsing can continue.
    fn bad_literal(&mut self, diagnostic: Diagnostic, span: Span) {
        self.out.push(diagnostic);
        self.push(TokenKind::BadLiteral, span);
    }

    fn word(&mut self, word: &str, span: Span) {
        if let Some(keyword) = keyword(word).filter(|keyword| *keyword == word) {
            return self.push(TokenKind::Keyword(keyword), span);
        }
        let (text, escaped) = word.strip_prefix('_').map_or((word, false), |rest| (rest, true));
        let note = if !word.is_ascii() {
            Some("an identifier must consist of ASCII letters, digits and `_`")
        } else if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            Some(
                "an identifier must start with a letter; one underscore before it only escapes a keyword and is not part of the name",
            )
        } else {
            None
        };
        if let Some(note) = note {
            let message = format!("`{word}` is not an IDL identifier");
            self.out.push(Diagnostic::error("bad-identifier", span, message).note(note));
        }
        self.push(TokenKind::Ident { text: text.to_owned(), escaped }, span);
    }

    /// Rejects a preprocessor line among Rust tokens, because rustc's lexer does not preserve its text.
    fn directive(&mut self, word: &str, span: Span) {
        self.incomplete = true;
        let message = format!("`#{word}` is not allowed among Rust tokens");
        let error = Diagnostic::error("unknown-directive", span, message);
        self.out.push(
            error.help("put the IDL into a string, `idl!(r#\"...\"#)`, or into a file, `idl!(\"x.idl\")`"),
        );
    }

    fn finish(mut self, end: Span) -> Lexed {
        self.push(TokenKind::End, end);
        let Output { tokens, incomplete, missing: missing_files, pragmas, .. } = self;
        Lexed { tokens, incomplete, missing_files, pragmas }
    }
}

/// Returns the lines of a documentation comment. Removes the leading `*` of the lines of block comments, one
/// space at the start of each line, and empty lines at both ends.
pub(crate) fn clean_comment(text: &str) -> Vec<String> {
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    if lines.len() > 1 {
        for line in lines.iter_mut().skip(1) {
            let inner = line.trim_start();
            *line = inner.strip_prefix('*').unwrap_or(inner);
        }
    }
    let is_blank = |line: &&str| line.trim().is_empty();
    let start = lines.iter().position(|line| !is_blank(line)).unwrap_or(lines.len());
    let end = lines.iter().rposition(|line| !is_blank(line)).map_or(start, |last| last + 1);
    let lines = lines.get(start..end).unwrap_or(&[]);
    lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned()).collect()
}
