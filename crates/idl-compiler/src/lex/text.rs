//! The lexer for files, and for string literals in Rust macros: converts preprocessing tokens to IDL tokens.

use super::import::Imports;
use super::{Lexed, Output, number::number};
use crate::diagnostic::Diagnostic;
use crate::preprocess::{Item, Kind, MAX_TOKENS, Piece, Preprocessor};
use crate::source::Span;
use crate::token::{Comments, Punct, TokenKind, Wideness};

mod literal;

pub(super) fn lex(mut preprocessor: Preprocessor<'_>, mut output: Output<'_>) -> Lexed {
    // `doc_file` is the index, in `Sources`, of the text that contains the last documentation comment.
    let (mut stray, mut doc_file, mut doc_count) = (None, 0, 0);
    let mut imports = Imports::default();
    while let Some(item) = preprocessor.next() {
        imports.resume_statements(preprocessor.open_file_count(), &mut output);
        if output.tokens.len() + doc_count > MAX_TOKENS {
            preprocessor.too_many_tokens(item.span());
            break;
        }
        doc_count += usize::from(matches!(item, Item::Doc { .. }));
        match item {
            Item::Token(piece) => {
                // Comments before an `#include` do not belong to the first declaration of the included file.
                if doc_file != piece.span.file {
                    output.comments.outer.clear();
                }
                push_token(&piece, &mut stray, &mut output);
                imports.process_token(&mut preprocessor, &mut output);
            }
            Item::Doc { text, inner, span } => {
                if doc_file != span.file {
                    output.comments.outer.clear();
                }
                doc_file = span.file;
                let comments = &mut output.comments;
                let list = if inner { &mut comments.inner } else { &mut comments.outer };
                list.push(text.to_string());
            }
            Item::Pragma(span, line) => {
                output.push(TokenKind::Pragma, span);
                let last = line.last().map_or(span, |last| last.span);
                line.iter().for_each(|piece| push_token(piece, &mut stray, &mut output));
                output.push(TokenKind::PragmaEnd, Span { start: last.end, ..last });
            }
        }
    }
    imports.resume_statements(0, &mut output);
    output.incomplete |= preprocessor.incomplete;
    output.missing = std::mem::take(&mut preprocessor.missing_files);
    output.pragmas = std::mem::take(&mut preprocessor.pragmas);
    if preprocessor.limit_exceeded {
        // The tokens are incomplete and must not be parsed.
        output.tokens = Vec::new();
        output.comments = Comments::default();
    }
    output.out.absorb(preprocessor.diagnostics);
    output.finish(preprocessor.end)
}

/// The last stray character, and the offset of its end in the text.
type Stray = Option<(char, u32)>;

fn push_token(piece: &Piece, stray: &mut Stray, output: &mut Output<'_>) {
    output.joined = Some(!(piece.spaced || piece.at_expansion_edge));
    match piece.kind {
        Kind::Word => output.word(&piece.text, piece.span),
        Kind::Number => match number(&piece.text, piece.span) {
            Ok(kind) => output.push(kind, piece.span),
            // The parser has a specific message for a malformed version in `#pragma version`.
            Err(_) if output.in_pragma => output.push(TokenKind::Float(piece.text.to_string()), piece.span),
            Err(error) => output.bad_literal(error, piece.span),
        },
        Kind::Quoted => {
            let wide = if piece.text.starts_with('L') { Wideness::Wide } else { Wideness::Narrow };
            literal::read_literal(piece, wide, output);
        }
        Kind::Punct | Kind::Stray => {
            if let Some(punct) = Punct::of(&piece.text) {
                return output.push(TokenKind::Punct(punct), piece.span);
            }
            let first = piece.text.chars().next().unwrap_or(' ');
            // Report a run of equal characters once.
            let continues_run = *stray == Some((first, piece.span.start));
            *stray = Some((first, piece.span.end));
            match continues_run {
                true => output.after_stray = true,
                false => {
                    output.stray(piece.span, format!("`{}` has no meaning in IDL", first.escape_debug()))
                }
            }
        }
        Kind::Bad => output.push(TokenKind::BadLiteral, piece.span),
        Kind::Doc { .. } | Kind::Newline | Kind::Placemarker => {}
    }
}

/// Creates an error about the bytes `from..to` of a token, or about all of it after a macro expansion.
fn error_in_part(piece: &Piece, from: usize, to: usize, message: impl Into<String>) -> Diagnostic {
    let span = piece.span;
    let is_exact = span.expansion == 0 && span.range().len() == piece.text.len();
    let part = Span { start: span.start + from as u32, end: span.start + to as u32, ..span };
    Diagnostic::error("bad-literal", if is_exact { part } else { span }, message)
}
