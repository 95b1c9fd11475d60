//! Character and string literals in text, with IDL's escapes.

use super::error_in_part;
use crate::diagnostic::Diagnostic;
use crate::lex::Output;
use crate::preprocess::Piece;
use crate::token::{TokenKind, Wideness};

/// Reads a literal with its quotes, and with the `L` before them if it is wide.
pub(super) fn read_literal(piece: &Piece, wide: Wideness, output: &mut Output<'_>) {
    let mut reader = Reader { piece, wide, at: usize::from(wide == Wideness::Wide), output };
    reader.read();
}

struct Reader<'p, 'o, 'c> {
    piece: &'p Piece,
    wide: Wideness,
    at: usize,
    output: &'o mut Output<'c>,
}

impl Reader<'_, '_, '_> {
    fn rest(&self) -> &str {
        self.piece.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn read(&mut self) {
        let (wide, span) = (self.wide, self.piece.span);
        let quote = if self.rest().starts_with('"') { '"' } else { '\'' };
        self.at += 1;
        let mut codes = Vec::new();
        let mut first_error = None;
        loop {
            let at = self.at;
            match self.peek() {
                Some(c) if c == quote => break,
                None => {
                    let kind = if quote == '"' { "string" } else { "character" };
                    let message = format!("this {kind} literal has no end");
                    let error = Diagnostic::error("unterminated", span, message);
                    let error = error.note("a literal must end on the line where it starts");
                    return self.output.bad_literal(error, span);
                }
                Some('\\') => match self.read_escape() {
                    Ok(code) => codes.push(code),
                    Err(message) => {
                        let error = error_in_part(self.piece, at, self.at, message);
                        first_error.get_or_insert(error);
                    }
                },
                Some(c) => {
                    self.at += c.len_utf8();
                    codes.push(u32::from(c));
                }
            }
        }
        if let Some(error) = first_error {
            return self.output.bad_literal(error, span);
        }
        let kind = if quote == '"' { text_token(&codes, wide) } else { character_token(&codes, wide) };
        match kind {
            Ok(kind) => self.output.push(kind, span),
            Err(message) => self.output.bad_literal(Diagnostic::error("bad-literal", span, message), span),
        }
    }

    /// Reads an escape sequence, which starts with a backslash. Returns the code of the character.
    fn read_escape(&mut self) -> Result<u32, String> {
        self.at += 1;
        let Some(kind) = self.peek() else { return Ok(u32::from('\\')) };
        if kind.is_digit(8) {
            let digits = self.take_digits(8, 3);
            let code = u32::from_str_radix(&digits, 8).unwrap_or(u32::MAX);
            let message = || format!("the octal escape `\\{digits}` is above `\\377`");
            return if code <= 0xff { Ok(code) } else { Err(message()) };
        }
        self.at += kind.len_utf8();
        Ok(match kind {
            'n' => 0x0a,
            't' => 0x09,
            'v' => 0x0b,
            'b' => 0x08,
            'r' => 0x0d,
            'f' => 0x0c,
            'a' => 0x07,
            '\\' | '?' | '\'' | '"' => u32::from(kind),
            'x' => u32::from_str_radix(&self.take_digits(16, 2), 16)
                .map_err(|_| "`\\x` needs one or two hexadecimal digits")?,
            'u' if self.wide == Wideness::Narrow => {
                return Err("`\\u` is allowed only in wide literals, `L'...'` and `L\"...\"`".to_owned());
            }
            'u' => u32::from_str_radix(&self.take_digits(16, 4), 16)
                .map_err(|_| "`\\u` needs one to four hexadecimal digits")?,
            other => {
                let message = format!("there is no escape sequence `\\{}`", other.escape_debug());
                let span = error_in_part(self.piece, self.at - 1 - other.len_utf8(), self.at, "").span();
                let warning = Diagnostic::warning("unknown-escape", span.unwrap_or(self.piece.span), message);
                self.output.out.push(warning.note(format!("it is read as `{}`", other.escape_debug())));
                u32::from(other)
            }
        })
    }

    fn take_digits(&mut self, radix: u32, max_count: usize) -> String {
        let digits: String = self.rest().chars().take(max_count).take_while(|c| c.is_digit(radix)).collect();
        self.at += digits.len();
        digits
    }
}

/// Creates a string from these codes. Surrogates come from `\u` escapes and must be pairs.
fn text_token(codes: &[u32], wide: Wideness) -> Result<TokenKind, String> {
    if codes.contains(&0) {
        return Err("a string cannot contain the character NUL".to_owned());
    }
    let mut units = Vec::with_capacity(codes.len());
    for code in codes {
        match char::from_u32(*code) {
            Some(c) => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
            None => units.push(u16::try_from(*code).unwrap_or(0xfffd)),
        }
    }
    let text = String::from_utf16(&units)
        .map_err(|_| "a surrogate without its partner is not a character".to_owned())?;
    Ok(TokenKind::Text { text, wide })
}

fn character_token(codes: &[u32], wide: Wideness) -> Result<TokenKind, String> {
    match codes {
        [code] if *code <= 0xffff => Ok(TokenKind::Char { code: *code, wide }),
        [_] => Err("a `wchar` cannot hold this character, which has two UTF-16 code units".to_owned()),
        [] => Err("a character literal cannot be empty".to_owned()),
        _ => Err("a character literal must hold exactly one character".to_owned()),
    }
}
