//! Integer expressions.
//!
//! Values are exact. At every step they must be from -2^63 to 2^64 - 1, the range of all integer types of
//! IDL. Only the final result must fit the required type. No bits are lost silently: `0xffffffff << 4` as an
//! `unsigned long` is an error, and `(0xffffffff << 4) & 0xffffffff` is valid.

use super::constant;
use super::scope::ScopeId;
use super::symbols::Symbols;
use crate::ast::{Binary, Expr, ExprKind, Unary};
use crate::diagnostic::Diagnostic;
use crate::model::{ConstValue, Primitive};
use crate::source::Span;
use crate::work;

const MIN_VALUE: i128 = i64::MIN as i128;
const MAX_VALUE: i128 = u64::MAX as i128;

pub(super) fn integer(symbols: &mut Symbols<'_>, expr: &Expr, ty: Primitive, scope: ScopeId) -> Option<i128> {
    let (min, max) = ty.integer_range()?;
    let value = evaluate(symbols, expr, min, max, scope)?;
    if (min..=max).contains(&value) {
        return Some(value);
    }
    let message = format!("{value} does not fit into `{}`", ty.idl_name());
    let error = Diagnostic::error("out-of-range", expr.span, message);
    symbols.reject(error.note(format!("`{}` holds {min} to {max}", ty.idl_name())))
}

/// Evaluates an integer expression without a required type.
pub(super) fn untyped_integer(symbols: &mut Symbols<'_>, expr: &Expr, scope: ScopeId) -> Option<i128> {
    evaluate(symbols, expr, MIN_VALUE, MAX_VALUE, scope)
}

fn evaluate(symbols: &mut Symbols<'_>, expr: &Expr, min: i128, max: i128, scope: ScopeId) -> Option<i128> {
    work::count_step();
    match &expr.kind {
        ExprKind::Integer(value) => Some(i128::from(*value)),
        ExprKind::Name(name) => match constant::named_value(symbols, name, scope)?.1 {
            ConstValue::Integer(value) => Some(value),
            _ => constant::mismatch(symbols, expr, "an integer", scope),
        },
        ExprKind::Unary(operator, operand) => {
            let value = evaluate(symbols, operand, min, max, scope)?;
            let result = match operator {
                Unary::Plus => value,
                Unary::Minus => -value,
                Unary::Complement => complement(value, min, max),
            };
            in_range(symbols, result, expr.span)
        }
        ExprKind::Binary(first, rest) => {
            let mut value = evaluate(symbols, first, min, max, scope);
            for (operator, operand) in rest {
                let right = evaluate(symbols, operand, min, max, scope);
                value = value.zip(right).and_then(|(left, right)| {
                    apply(symbols, *operator, left, right, first.span.to(operand.span), operand.span)
                });
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
            return symbols.reject(Diagnostic::error("division-by-zero", right_span, "division by zero"));
        }
        Binary::Divide => left / right,
        Binary::Remainder => left % right,
        Binary::ShiftLeft | Binary::ShiftRight => {
            let Some(bits) = shift() else {
                let message = format!("cannot shift by {right} bits");
                let error = Diagnostic::error("bad-shift", right_span, message);
                return symbols.reject(error.note("the right operand of a shift must be from 0 to 63"));
            };
            if operator == Binary::ShiftLeft { left << bits } else { left >> bits }
        }
    };
    in_range(symbols, result, span)
}

fn in_range(symbols: &mut Symbols<'_>, value: i128, span: Span) -> Option<i128> {
    if (MIN_VALUE..=MAX_VALUE).contains(&value) {
        return Some(value);
    }
    let error = Diagnostic::error("out-of-range", span, "the result of this expression exceeds 64 bits");
    symbols.reject(error.note(format!("integers must be from {MIN_VALUE} to {MAX_VALUE}")))
}

/// Returns `~value`: `-(value + 1)` for a signed type or a negative value, and otherwise the type's maximum
/// minus the value. If the value exceeds the maximum, the maximum of 32 or 64 bits is used.
fn complement(value: i128, min: i128, max: i128) -> i128 {
    if min < 0 && max < MAX_VALUE || value < 0 {
        return -(value + 1);
    }
    let all_bits = [max, i128::from(u32::MAX), MAX_VALUE].into_iter().find(|all| *all >= value);
    all_bits.unwrap_or(MAX_VALUE) - value
}
