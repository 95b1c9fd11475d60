//! Expressions of `#if`, evaluated as by the C++ preprocessor: with signed and unsigned 64-bit integers.

use super::Preprocessor;
use super::text::{Kind, Piece};
use crate::diagnostic::Diagnostic;
use crate::limits::MAX_DEPTH;
use crate::source::Span;

/// A number. The result of an arithmetic or bitwise operator is unsigned if one operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    bits: u64,
    unsigned: bool,
}

impl Value {
    fn signed(value: i64) -> Self {
        Value { bits: value.cast_unsigned(), unsigned: false }
    }

    fn from_bool(value: bool) -> Self {
        Value::signed(i64::from(value))
    }

    fn is_true(self) -> bool {
        self.bits != 0
    }
}

impl Preprocessor<'_> {
    /// Evaluates the condition of an `#if` or `#elif`. A malformed condition is reported and counts as false.
    pub(super) fn condition(&mut self, directive: Span, line: Vec<Piece>) -> bool {
        match self.evaluate(directive, line) {
            Ok(value) => value.is_true(),
            Err(error) => {
                self.incomplete = true;
                if !self.limit_exceeded {
                    self.report(error);
                }
                false
            }
        }
    }

    fn evaluate(&mut self, directive: Span, line: Vec<Piece>) -> Result<Value, Diagnostic> {
        let line = match line.first().cloned() {
            Some(first) => {
                self.in_condition = true;
                let line = self.expand_list(line, &first);
                self.in_condition = false;
                line
            }
            None => line,
        };
        if line.iter().any(|piece| piece.kind == Kind::Bad) {
            return Ok(Value::from_bool(false));
        }
        let end = line.last().map_or(directive, |last| last.span);
        let mut reader = Reader { line: &line, at: 0, end, depth: 0, skip_depth: 0 };
        let value = reader.conditional()?;
        match reader.line.get(reader.at) {
            None => Ok(value),
            Some(rest) => Err(reader.bad(format!("expected an operator, found `{}`", &*rest.text))),
        }
    }

    /// Evaluates `defined NAME` or `defined(NAME)`, starting after the keyword.
    pub(super) fn defined(&mut self, word: &Piece) -> Piece {
        let mut name = self.next_unexpanded();
        let has_parenthesis = name.as_ref().is_some_and(|piece| piece.is("("));
        if has_parenthesis {
            name = self.next_unexpanded();
        }
        let closed = !has_parenthesis || self.next_unexpanded().is_some_and(|piece| piece.is(")"));
        let Some(name) = name.filter(|name| closed && name.is_word()) else {
            let message = "`defined` must be followed by a name, or by a name in parentheses";
            self.error("bad-condition", word.span, message);
            return word.with(Kind::Bad, "");
        };
        word.with(Kind::Number, if self.macros.contains_key(&*name.text) { "1" } else { "0" })
    }
}

struct Reader<'l> {
    line: &'l [Piece],
    at: usize,
    /// The location of the last token, for errors about missing tokens.
    end: Span,
    depth: usize,
    /// Above zero in operands that are not evaluated (`0 && 1/0`). There, a division by zero is not an error.
    skip_depth: usize,
}

type ValueResult = Result<Value, Diagnostic>;

/// Binary operators by precedence, lowest first.
const PRECEDENCES: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Reader<'_> {
    fn bad(&self, message: impl Into<String>) -> Diagnostic {
        let span = self.line.get(self.at).map_or(self.end, |piece| piece.span);
        Diagnostic::error("bad-condition", span, message)
    }

    /// Returns the longest operator at the current position, and its number of tokens.
    fn operator(&self) -> Option<(String, usize)> {
        let first = self.line.get(self.at).filter(|piece| piece.kind == Kind::Punct)?;
        let second = self.line.get(self.at + 1).filter(|piece| piece.kind == Kind::Punct && !piece.spaced);
        if let Some(second) = second {
            let both = format!("{}{}", &*first.text, &*second.text);
            if matches!(both.as_str(), "||" | "&&" | "==" | "!=" | "<=" | ">=" | ">>") {
                return Some((both, 2));
            }
        }
        Some((first.text.to_string(), 1))
    }

    fn take(&mut self, operator: &str) -> bool {
        let found = self.operator().filter(|(found, _)| found == operator);
        self.at += found.as_ref().map_or(0, |(_, length)| *length);
        found.is_some()
    }

    fn nested(&mut self, part: impl FnOnce(&mut Self) -> ValueResult) -> ValueResult {
        if self.depth >= MAX_DEPTH {
            return Err(self.bad(format!("this condition nests more than {MAX_DEPTH} levels deep")));
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    /// Parses a part, which is not evaluated if `skip` is set.
    fn evaluate_unless(&mut self, skip: bool, part: impl FnOnce(&mut Self) -> ValueResult) -> ValueResult {
        self.skip_depth += usize::from(skip);
        let result = part(self);
        self.skip_depth -= usize::from(skip);
        result
    }

    fn conditional(&mut self) -> ValueResult {
        self.nested(|reader| {
            let condition = reader.binary(0)?;
            if !reader.take("?") {
                return Ok(condition);
            }
            let yes = reader.evaluate_unless(!condition.is_true(), Self::conditional)?;
            if !reader.take(":") {
                return Err(reader.bad("expected the `:` of this `? :`"));
            }
            let no = reader.evaluate_unless(condition.is_true(), Self::conditional)?;
            let bits = if condition.is_true() { yes.bits } else { no.bits };
            Ok(Value { bits, unsigned: yes.unsigned || no.unsigned })
        })
    }

    /// Parses operands joined by operators of at least this precedence.
    fn binary(&mut self, min_level: usize) -> ValueResult {
        let mut left = self.unary()?;
        while let Some((operator, length)) = self.operator() {
            let level = PRECEDENCES.iter().position(|level| level.contains(&operator.as_str()));
            let Some(level) = level.filter(|level| *level >= min_level) else { break };
            let at = self.at;
            self.at += length;
            let is_decided = match operator.as_str() {
                "&&" => !left.is_true(),
                "||" => left.is_true(),
                _ => false,
            };
            let right =
                self.nested(|reader| reader.evaluate_unless(is_decided, |reader| reader.binary(level + 1)))?;
            left = self.apply(&operator, left, right).ok_or_else(|| {
                let span = self.line.get(at).map_or(self.end, |piece| piece.span);
                Diagnostic::error("bad-condition", span, "division by zero")
            })?;
        }
        Ok(left)
    }

    /// Applies an operator; `None` for a division by zero, unless it is in a part that is not evaluated.
    fn apply(&self, operator: &str, a: Value, b: Value) -> Option<Value> {
        let unsigned = a.unsigned || b.unsigned;
        let (x, y) = (a.bits, b.bits);
        let (sx, sy) = (x.cast_signed(), y.cast_signed());
        let number = |bits: u64| Value { bits, unsigned };
        let less = if unsigned { x < y } else { sx < sy };
        Some(match operator {
            "||" => Value::from_bool(a.is_true() || b.is_true()),
            "&&" => Value::from_bool(a.is_true() && b.is_true()),
            "|" => number(x | y),
            "^" => number(x ^ y),
            "&" => number(x & y),
            "==" => Value::from_bool(x == y),
            "!=" => Value::from_bool(x != y),
            "<" => Value::from_bool(less),
            ">=" => Value::from_bool(!less),
            "<=" => Value::from_bool(less || x == y),
            ">" => Value::from_bool(!(less || x == y)),
            "<<" => shift(a, b, true),
            ">>" => shift(a, b, false),
            "+" => number(x.wrapping_add(y)),
            "-" => number(x.wrapping_sub(y)),
            "*" => number(x.wrapping_mul(y)),
            "/" | "%" if y == 0 => return (self.skip_depth > 0).then_some(number(0)),
            "/" if unsigned => number(x / y),
            "/" => number(sx.wrapping_div(sy).cast_unsigned()),
            _ if unsigned => number(x % y),
            _ => number(sx.wrapping_rem(sy).cast_unsigned()),
        })
    }

    fn unary(&mut self) -> ValueResult {
        for sign in ["-", "+", "~", "!"] {
            if self.take(sign) {
                let value = self.nested(Self::unary)?;
                return Ok(match sign {
                    "-" => Value { bits: value.bits.wrapping_neg(), ..value },
                    "~" => Value { bits: !value.bits, ..value },
                    "!" => Value::from_bool(!value.is_true()),
                    _ => value,
                });
            }
        }
        if self.take("(") {
            let value = self.conditional()?;
            return match self.take(")") {
                true => Ok(value),
                false => Err(self.bad("expected `)`")),
            };
        }
        self.number()
    }

    fn number(&mut self) -> ValueResult {
        let Some(piece) = self.line.get(self.at) else {
            return Err(self.bad("expected a number or a name after this"));
        };
        let value = match piece.kind {
            // Names that are not macros are 0.
            Kind::Word => Value::signed(0),
            Kind::Number => parse_integer(&piece.text).map_err(|message| self.bad(message))?,
            Kind::Quoted => parse_character(&piece.text)
                .ok_or_else(|| self.bad(format!("{} has no meaning in a condition", &*piece.text)))?,
            _ => return Err(self.bad(format!("expected a number or a name, found `{}`", &*piece.text))),
        };
        self.at += 1;
        Ok(value)
    }
}

/// Shifts a value. The result of a shift by 64 or more is 0, or -1 for a right shift of a negative number. A
/// negative count shifts in the other direction.
fn shift(value: Value, by: Value, left: bool) -> Value {
    let is_negative = !by.unsigned && by.bits.cast_signed() < 0;
    let count = if is_negative { by.bits.cast_signed().unsigned_abs() } else { by.bits };
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let bits = match (left != is_negative, value.unsigned) {
        (true, _) => value.bits.checked_shl(count).unwrap_or(0),
        (false, true) => value.bits.checked_shr(count).unwrap_or(0),
        (false, false) => (value.bits.cast_signed() >> count.min(63)).cast_unsigned(),
    };
    Value { bits, ..value }
}

fn parse_integer(text: &str) -> Result<Value, String> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (lower.get(2..).unwrap_or(""), 16),
        [b'0', b'b', ..] => (lower.get(2..).unwrap_or(""), 2),
        [b'0', _, ..] => (lower.get(1..).unwrap_or(""), 8),
        _ => (lower.as_str(), 10),
    };
    let digits_end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, suffix) = digits.split_at(digits_end);
    let unsigned = suffix.contains('u');
    let is_suffix = matches!(suffix, "" | "u" | "l" | "ll" | "ul" | "ull" | "lu" | "llu");
    // `0` and `0u` have no digits after the leading zero.
    let digits = if digits.is_empty() && radix == 8 { "0" } else { digits };
    if !is_suffix || digits.is_empty() {
        return Err(format!("`{text}` is not an integer"));
    }
    let bits = u64::from_str_radix(digits, radix).map_err(|_| format!("the number `{text}` is too large"))?;
    Ok(Value { bits, unsigned: unsigned || bits > i64::MAX.cast_unsigned() })
}

/// Returns the code of a character literal; `None` if it is malformed or a string.
fn parse_character(text: &str) -> Option<Value> {
    let text = text.strip_prefix('L').unwrap_or(text);
    let inside = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut rest = inside.chars();
    let code = match (rest.next()?, rest.as_str()) {
        ('\\', escape) => match escape {
            "n" => 10,
            "t" => 9,
            "v" => 11,
            "b" => 8,
            "r" => 13,
            "f" => 12,
            "a" => 7,
            "\\" | "?" | "'" | "\"" => i64::from(*escape.as_bytes().first()?),
            _ => {
                let (digits, radix) = escape.strip_prefix('x').map_or((escape, 8), |digits| (digits, 16));
                i64::from_str_radix(digits, radix).ok().filter(|code| *code < 256)?
            }
        },
        (c, "") => i64::from(u32::from(c)),
        _ => return None,
    };
    Some(Value::signed(code))
}
