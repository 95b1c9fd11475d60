//! Character and string literals in text, with IDL's escapes.

use super::Lexer;
use crate::diagnostic::Diagnostic;
use crate::token::{TokenKind, Wideness};

impl Lexer<'_, '_> {
    /// A literal from its opening quote on; an `L` before it has been taken.
    pub(super) fn quoted(&mut self, wide: Wideness) {
        let start = self.at - usize::from(wide == Wideness::Wide);
        let quote = if self.rest().starts_with('"') { '"' } else { '\'' };
        self.at += 1;
        let mut codes = Vec::new();
        let mut wrong = None;
        loop {
            let at = self.at;
            match self.peek() {
                Some(c) if c == quote => {
                    self.at += 1;
                    break;
                }
                None | Some('\n') => {
                    let kind = if quote == '"' { "string" } else { "character" };
                    let span = self.output.span(start, self.at);
                    let error =
                        Diagnostic::error("unterminated", span, format!("this {kind} literal has no end"));
                    return self
                        .output
                        .bad_literal(error.note("a literal ends in the line where it starts"), span);
                }
                Some('\\') => match self.escape(wide) {
                    Ok(code) => codes.push(code),
                    Err(message) => {
                        let error = self.error_literal(at, message);
                        wrong.get_or_insert(error);
                    }
                },
                Some(c) => {
                    self.at += c.len_utf8();
                    codes.push(u32::from(c));
                }
            }
        }
        let span = self.output.span(start, self.at);
        if let Some(error) = wrong {
            return self.output.bad_literal(error, span);
        }
        let kind = if quote == '"' { text(&codes, wide) } else { character(&codes, wide) };
        match kind {
            Ok(kind) => self.output.push(kind, span),
            Err(message) => {
                let error = self.error_literal(start, message);
                self.output.bad_literal(error, span);
            }
        }
    }

    /// An escape sequence from its backslash on; gives the code of the character.
    fn escape(&mut self, wide: Wideness) -> Result<u32, String> {
        self.at += 1;
        let Some(kind) = self.peek().filter(|c| *c != '\n') else { return Ok(u32::from('\\')) };
        if kind.is_digit(8) {
            let digits = self.digits(8, 3);
            let code = u32::from_str_radix(digits, 8).unwrap_or(u32::MAX);
            return if code <= 0xff {
                Ok(code)
            } else {
                Err(format!("the octal escape `\\{digits}` is above `\\377`"))
            };
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
            'x' => u32::from_str_radix(self.digits(16, 2), 16)
                .map_err(|_| "`\\x` needs one or two hexadecimal digits")?,
            'u' if wide == Wideness::Narrow => {
                return Err("`\\u` stands only in wide literals, `L'...'` and `L\"...\"`".to_owned());
            }
            'u' => u32::from_str_radix(self.digits(16, 4), 16)
                .map_err(|_| "`\\u` needs one to four hexadecimal digits")?,
            other => {
                let span = self.output.span(self.at - 1 - other.len_utf8(), self.at);
                let message = format!("there is no escape sequence `\\{}`", other.escape_debug());
                let warning = Diagnostic::warning("unknown-escape", span, message);
                self.output.out.push(warning.note(format!("it is read as `{}`", other.escape_debug())));
                u32::from(other)
            }
        })
    }

    fn digits(&mut self, radix: u32, most: usize) -> &str {
        let rest = self.rest();
        let length = rest.chars().take(most).take_while(|c| c.is_digit(radix)).count();
        self.at += length;
        &rest[..length]
    }
}

/// A string of these codes; surrogates come from `\u` escapes and must be pairs.
fn text(codes: &[u32], wide: Wideness) -> Result<TokenKind, String> {
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
        .map_err(|_| "a surrogate without its partner is no character".to_owned())?;
    Ok(TokenKind::Text { text, wide })
}

fn character(codes: &[u32], wide: Wideness) -> Result<TokenKind, String> {
    match codes {
        [code] if *code <= 0xffff => Ok(TokenKind::Char { code: *code, wide }),
        [_] => Err("this character takes two UTF-16 code units, a `wchar` holds one".to_owned()),
        [] => Err("a character literal cannot be empty".to_owned()),
        _ => Err("a character literal holds one character".to_owned()),
    }
}
