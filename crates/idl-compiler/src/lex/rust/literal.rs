//! Literals among Rust tokens.

use super::Lexer;
use crate::diagnostic::Diagnostic;
use crate::lex::number::number;
use crate::source::Span;
use crate::token::{Punct, TokenKind, Wideness};

impl Lexer<'_> {
    /// Converts the Rust literal at the current position. `prefix` is the span of an `L` before it.
    pub(super) fn read_literal(&mut self, wide: Wideness, prefix: Option<Span>) {
        let Some(text) = self.literal_at(0) else { return };
        let span = prefix.map_or(self.span(1), |prefix| prefix.to(self.span(1)));
        if text.starts_with('"') {
            self.at += 1;
            return self.read_string(&text, wide, span);
        }
        if text.starts_with('\'') {
            self.at += 1;
            return self.read_character(&text, wide, span);
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return self.read_number();
        }
        self.at += 1;
        // A negative number from another macro is a single token.
        if let Some(digits) = text.strip_prefix('-') {
            self.output.push(TokenKind::Punct(Punct::Minus), span);
            return self.push_number(digits, span);
        }
        let message = format!("`{text}` is a Rust literal, not an IDL one");
        let error = Diagnostic::error("bad-literal", span, message);
        let error = error.help("write a plain literal, and `L` before a wide one: `L \"...\"`");
        self.output.bad_literal(error, span);
    }

    fn read_string(&mut self, text: &str, wide: Wideness, span: Span) {
        let bad = |message: &str| Diagnostic::error("bad-literal", span, message.to_owned());
        let value = match syn::parse_str::<syn::LitStr>(text) {
            Ok(literal) if literal.suffix().is_empty() => literal.value(),
            _ => return self.output.bad_literal(bad("this is not an IDL string literal"), span),
        };
        if text.contains('\n') {
            let error = bad("an IDL string literal must end on the line where it starts");
            return self.output.bad_literal(error.help("write adjacent literals; they are joined"), span);
        }
        if value.contains('\0') {
            return self.output.bad_literal(bad("a string cannot contain the character NUL"), span);
        }
        self.output.push(TokenKind::Text { text: value, wide }, span);
    }

    fn read_character(&mut self, text: &str, wide: Wideness, span: Span) {
        let bad = |message: &str| Diagnostic::error("bad-literal", span, message.to_owned());
        match syn::parse_str::<syn::LitChar>(text) {
            Ok(literal) if literal.suffix().is_empty() => {
                let code = u32::from(literal.value());
                if code > 0xffff {
                    let error = bad("a `wchar` cannot hold this character, which has two UTF-16 code units");
                    return self.output.bad_literal(error, span);
                }
                self.output.push(TokenKind::Char { code, wide }, span);
            }
            _ => self.output.bad_literal(bad("this is not an IDL character literal"), span),
        }
    }

    /// Reads a number. Rust's lexer splits some numbers at the point: `.5` into `.` `5`, `5.d` into `5` `.`
    /// `d`, and `1.e-5` into `1` `.` `e` `-` `5`.
    pub(super) fn read_number(&mut self) {
        let start = self.at;
        let mut text = String::new();
        let starts_with_point = self.take_point(&mut text);
        self.take_number(&mut text);
        let is_split = !starts_with_point && !text.contains('.') && self.take_point(&mut text);
        if is_split && !self.take_number(&mut text) {
            self.take_suffix_or_exponent(&mut text);
        }
        let count = self.at - start;
        self.at = start;
        let span = self.span(count);
        self.at = start + count;
        if text == "." {
            return self.output.stray(span, "`.` has no meaning in IDL");
        }
        self.push_number(&text, span);
    }

    fn push_number(&mut self, text: &str, span: Span) {
        match number(text, span) {
            Ok(kind) => self.output.push(kind, span),
            Err(error) => self.output.bad_literal(error, span),
        }
    }

    fn take_point(&mut self, text: &mut String) -> bool {
        let point = self.punct_at(0).is_some_and(|(c, _)| c == '.');
        if point {
            text.push('.');
            self.at += 1;
        }
        point
    }

    fn take_number(&mut self, text: &mut String) -> bool {
        let digits = self.literal_at(0).filter(|literal| literal.starts_with(|c: char| c.is_ascii_digit()));
        let Some(digits) = digits else { return false };
        text.push_str(&digits);
        self.at += 1;
        true
    }

    /// Reads the part of a number after its point, if this part begins with a letter: `d`, `e5`, `e` `-` `5`.
    fn take_suffix_or_exponent(&mut self, text: &mut String) {
        let Some(word) = self.ident_at(0).map(str::to_owned) else { return };
        let fixed = matches!(word.as_str(), "d" | "D");
        let digits = word.strip_prefix(['e', 'E']);
        let exponent = digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        if !(fixed || exponent) {
            return;
        }
        text.push_str(&word);
        self.at += 1;
        if digits == Some("") {
            if let Some((sign @ ('+' | '-'), _)) = self.punct_at(0) {
                text.push(sign);
                self.at += 1;
            }
            self.take_number(text);
        }
    }
}
