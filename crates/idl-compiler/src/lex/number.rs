//! Conversion of numbers from text.

use crate::decimal::{self, Decimal};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::token::TokenKind;

/// Maximum length of a number. No IDL type needs as many digits.
const MAX_CHARS: usize = 1024;

/// Converts a number that consists of letters, digits, underscores, points and signs of exponents.
pub(super) fn number(text: &str, span: Span) -> Result<TokenKind, Diagnostic> {
    let bad = |message: String| Diagnostic::error("bad-literal", span, message);
    if text.len() > MAX_CHARS {
        return Err(bad(format!("this number has more than {MAX_CHARS} characters")));
    }
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return integer(digits, 16, text, span);
    }
    if text.contains('_') {
        let help = format!("write it without `_`: {}", text.replace('_', ""));
        return Err(bad(format!("`{text}` is not an IDL number")).help(help));
    }
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits(text) {
        let radix = if text.len() > 1 && text.starts_with('0') { 8 } else { 10 };
        return integer(text, radix, text, span);
    }
    if let Some(digits) = text.strip_suffix(['d', 'D']) {
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if !(whole.is_empty() && fraction.is_empty()) && is_digits(whole) && is_digits(fraction) {
            if Decimal::parse(digits).is_none() {
                let max = decimal::MAX_DIGITS;
                let error = bad(format!("this fixed-point number has more than {max} digits"));
                let note = "zeros at its start and at the end of its fraction do not count";
                return Err(error.note(note));
            }
            return Ok(TokenKind::Fixed(digits.to_owned()));
        }
    }
    if is_float(text) {
        return Ok(TokenKind::Float(text.to_owned()));
    }
    let error = bad(format!("`{text}` is not an IDL number"));
    let lacks_exponent = text.ends_with(['e', 'E', '+', '-']);
    Err(if lacks_exponent {
        error.label("the exponent has no digits")
    } else {
        error.note("the only suffix of IDL numbers is the `d` of fixed-point literals")
    })
}

fn integer(digits: &str, radix: u32, text: &str, span: Span) -> Result<TokenKind, Diagnostic> {
    let bad = |message: String| Diagnostic::error("bad-literal", span, message);
    if let Some(wrong) = digits.chars().find(|digit| !digit.is_digit(radix)) {
        let error = bad(format!("`{wrong}` is not a digit of the {} number `{text}`", radix_name(radix)));
        return Err(if radix == 8 { error.note("a number that starts with 0 is octal") } else { error });
    }
    if digits.is_empty() {
        return Err(bad(format!("`{text}` has no digits")));
    }
    let value = u64::from_str_radix(digits, radix);
    value.map(TokenKind::Integer).map_err(|_| {
        bad(format!("the number `{text}` is too large")).note(format!("the largest integer is {}", u64::MAX))
    })
}

fn radix_name(radix: u32) -> &'static str {
    match radix {
        8 => "octal",
        16 => "hexadecimal",
        _ => "decimal",
    }
}

/// Returns whether the text consists of digits, an optional point and an optional exponent, with at least one
/// digit before the exponent and at least one in it.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) =
        text.split_once(['e', 'E']).map_or((text, None), |(mantissa, exponent)| (mantissa, Some(exponent)));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !unsigned.is_empty() && is_digits(unsigned)
    });
    is_digits(whole) && is_digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent_fits
}
