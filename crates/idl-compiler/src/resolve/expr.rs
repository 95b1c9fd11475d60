//! Integer expressions.
//!
//! Values are exact and must be in -2^63 .. 2^64 - 1 at every step, the range of all integer types of IDL.
//! Only the result must fit the required type. (Evaluation in the width of the result type, as in old
//! compilers, silently loses bits: `0xffffffff << 4` for an `unsigned long` is an error here, which
//! `& 0xffffffff` avoids.)

use super::constant;
use super::scope::ScopeId;
use super::symbols::Symbols;
use crate::ast::{Binary, Expr, ExprKind, Unary};
use crate::diagnostic::Diagnostic;
use crate::model::{ConstValue, Primitive};
use crate::source::Span;
use crate::work;

const LEAST: i128 = i64::MIN as i128;
const MOST: i128 = u64::MAX as i128;

/// Evaluates an integer expression, whose value must fit the type.
pub(super) fn integer(symbols: &mut Symbols<'_>, expr: &Expr, ty: Primitive, scope: ScopeId) -> Option<i128> {
    let (least, most) = ty.integer_range()?;
    let value = evaluate(symbols, expr, least, most, scope)?;
    if (least..=most).contains(&value) {
        return Some(value);
    }
    let message = format!("{value} does not fit `{}`", ty.idl_name());
    let error = Diagnostic::error("out-of-range", expr.span, message);
    symbols.report(error.note(format!("`{}` holds {least} to {most}", ty.idl_name())));
    None
}

/// Evaluates an integer expression without a required type.
pub(super) fn wide_integer(symbols: &mut Symbols<'_>, expr: &Expr, scope: ScopeId) -> Option<i128> {
    evaluate(symbols, expr, LEAST, MOST, scope)
}

fn evaluate(symbols: &mut Symbols<'_>, expr: &Expr, least: i128, most: i128, scope: ScopeId) -> Option<i128> {
    work::step();
    match &expr.kind {
        ExprKind::Integer(value) => Some(i128::from(*value)),
        ExprKind::Name(name) => match constant::named_value(symbols, name, scope)?.1 {
            ConstValue::Integer(value) => Some(value),
            _ => constant::mismatch(symbols, expr, "an integer", scope),
        },
        ExprKind::Unary(operator, operand) => {
            let value = evaluate(symbols, operand, least, most, scope)?;
            let result = match operator {
                Unary::Plus => value,
                Unary::Minus => -value,
                Unary::Complement => complement(value, least, most),
            };
            in_range(symbols, result, expr.span)
        }
        ExprKind::Binary(first, rest) => {
            let mut value = evaluate(symbols, first, least, most, scope);
            for (operator, operand) in rest {
                let right = evaluate(symbols, operand, least, most, scope);
                value = match (value, right) {
                    (Some(left), Some(right)) => {
                        apply(symbols, *operator, left, right, first.span.to(operand.span), operand.span)
                    }
                    _ => None,
                };
            }
            value
        }
        _ => constant::mismatch(symbols, expr, "an integer", scope),
    }
}

fn apply(
    symbols: &mut Symbols<'_>,
    operator: Binary,
    left: i128,
    right: i128,
    span: Span,
    right_span: Span,
) -> Option<i128> {
    let shift = || u32::try_from(right).ok().filter(|bits| *bits < 64);
    let result = match operator {
        Binary::Or => left | right,
        Binary::Xor => left ^ right,
        Binary::And => left & right,
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left.checked_mul(right).unwrap_or(i128::MAX),
        Binary::Divide | Binary::Remainder if right == 0 => {
            symbols.report(Diagnostic::error("division-by-zero", right_span, "division by zero"));
            return None;
        }
        Binary::Divide => left / right,
        Binary::Remainder => left % right,
        Binary::ShiftLeft | Binary::ShiftRight => {
            let Some(bits) = shift() else {
                let message = format!("cannot shift by {right} bits");
                let error = Diagnostic::error("bad-shift", right_span, message);
                symbols.report(error.note("the right operand of a shift is from 0 to 63"));
                return None;
            };
            if operator == Binary::ShiftLeft { left << bits } else { left >> bits }
        }
    };
    in_range(symbols, result, span)
}

fn in_range(symbols: &mut Symbols<'_>, value: i128, span: Span) -> Option<i128> {
    if (LEAST..=MOST).contains(&value) {
        return Some(value);
    }
    let error = Diagnostic::error("out-of-range", span, "the result of this expression does not fit 64 bits");
    symbols.report(error.note(format!("integers are from {LEAST} to {MOST}")));
    None
}

/// Returns `~v`: the maximum of an unsigned type minus `v`, or `-(v + 1)` for a signed one. A value too wide
/// for the type uses the next width that holds it.
fn complement(value: i128, least: i128, most: i128) -> i128 {
    if least < 0 && most < MOST || value < 0 {
        return -(value + 1);
    }
    let all_bits = [most, i128::from(u32::MAX), MOST].into_iter().find(|all| *all >= value);
    all_bits.unwrap_or(MOST) - value
}
