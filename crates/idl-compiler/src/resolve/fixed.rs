//! `fixed`: its types, and expressions with decimal numbers.

use super::constant::FIXED;
use super::scope::ScopeId;
use super::symbols::Symbols;
use super::{constant, expr};
use crate::ast::{Binary, Expr, ExprKind, Unary};
use crate::decimal::{Decimal, MAX_DIGITS};
use crate::diagnostic::Diagnostic;
use crate::model::{ConstValue, Primitive, Type, TypeId};

pub(super) fn fixed_type(
    symbols: &mut Symbols<'_>,
    digits: &Expr,
    scale: &Expr,
    scope: ScopeId,
) -> Option<Type> {
    let (digits_value, scale_value) = (
        expr::integer(symbols, digits, Primitive::LongLong, scope),
        expr::integer(symbols, scale, Primitive::LongLong, scope),
    );
    let max = MAX_DIGITS as i128;
    let digits_value = match digits_value? {
        value if (1..=max).contains(&value) => value,
        value => {
            let message = format!("a fixed-point type must have 1 to {max} digits, not {value}");
            return symbols.reject(Diagnostic::error("bad-fixed", digits.span, message));
        }
    };
    let scale_value = match scale_value? {
        value if (0..=digits_value).contains(&value) => value,
        value => {
            let message =
                format!("of {digits_value} digits, 0 to {digits_value} can follow the point, not {value}");
            return symbols.reject(Diagnostic::error("bad-fixed", scale.span, message));
        }
    };
    Some(Type::Fixed { digits: u8::try_from(digits_value).ok()?, scale: u8::try_from(scale_value).ok()? })
}

/// Evaluates a `fixed<digits, scale>`. Excess digits after the point are truncated, with a warning.
pub(super) fn fixed(
    symbols: &mut Symbols<'_>,
    expr: &Expr,
    digits: u8,
    scale: u8,
    scope: ScopeId,
) -> Option<ConstValue> {
    let number = decimal(symbols, expr, scope)?;
    let (integer_digits, truncated) = number.integer_digits_and_truncated(usize::from(scale));
    let describe = format!("fixed<{digits}, {scale}>");
    if integer_digits > usize::from(digits - scale) {
        let error =
            Diagnostic::error("out-of-range", expr.span, format!("{number} does not fit into `{describe}`"));
        return symbols
            .reject(error.note(format!("the type has {} digits before the point", digits - scale)));
    }
    if truncated != number {
        let message = format!("{number} loses digits as `{describe}`");
        let warning = Diagnostic::warning("precision-loss", expr.span, message);
        symbols.report(warning.note(format!("excess digits are cut off: the value is {truncated}")));
    }
    Some(smallest_fixed(truncated).1)
}

/// Evaluates a `fixed` without digits and scale, and returns the smallest type that holds it.
pub(super) fn unbounded_fixed(
    symbols: &mut Symbols<'_>,
    expr: &Expr,
    scope: ScopeId,
) -> Option<(TypeId, ConstValue)> {
    let (ty, value) = smallest_fixed(decimal(symbols, expr, scope)?);
    Some((symbols.intern(ty), value))
}

fn decimal(symbols: &mut Symbols<'_>, expr: &Expr, scope: ScopeId) -> Option<Decimal> {
    match &expr.kind {
        ExprKind::Fixed(text) => Decimal::parse(text),
        // IDL for older compilers, which do not support the suffix `d`, has numbers without it.
        ExprKind::Float(text) => decimal_of_float(symbols, text, expr),
        ExprKind::Name(name) => match constant::named_value(symbols, name, scope)?.1 {
            ConstValue::Fixed { unscaled, scale } => Some(Decimal::from_unscaled(unscaled, u32::from(scale))),
            _ => constant::mismatch(symbols, expr, FIXED, scope),
        },
        ExprKind::Unary(Unary::Plus, operand) => decimal(symbols, operand, scope),
        ExprKind::Unary(Unary::Minus, operand) => decimal(symbols, operand, scope).map(Decimal::negated),
        ExprKind::Unary(Unary::Complement, _) => not_for_fixed(symbols, "~", expr),
        ExprKind::Binary(first, rest) => {
            let mut value = decimal(symbols, first, scope);
            for (operator, operand) in rest {
                let right = decimal(symbols, operand, scope);
                let partial = Expr { span: first.span.to(operand.span), kind: ExprKind::Bad };
                value = value.zip(right).and_then(|(left, right)| {
                    apply_decimal(symbols, *operator, left, right, &partial, operand)
                });
            }
            value
        }
        _ => constant::mismatch(symbols, expr, FIXED, scope),
    }
}

fn decimal_of_float(symbols: &mut Symbols<'_>, text: &str, expr: &Expr) -> Option<Decimal> {
    let number = Decimal::parse_float(text);
    if number.is_none() {
        let message = format!("`{text}` has more than {MAX_DIGITS} digits as a fixed-point number");
        symbols.report(Diagnostic::error("out-of-range", expr.span, message));
    }
    number
}

fn apply_decimal(
    symbols: &mut Symbols<'_>,
    operator: Binary,
    left: Decimal,
    right: Decimal,
    expr: &Expr,
    operand: &Expr,
) -> Option<Decimal> {
    let result = match operator {
        Binary::Add => left.plus(right),
        Binary::Subtract => left.plus(right.negated()),
        Binary::Multiply => left.times(right),
        Binary::Divide if right.is_zero() => {
            return symbols.reject(Diagnostic::error("division-by-zero", operand.span, "division by zero"));
        }
        Binary::Divide => left.divided_by(right),
        other => return not_for_fixed(symbols, other.text(), expr),
    };
    if result.is_none() {
        let message =
            format!("the result of this expression has more than {MAX_DIGITS} digits before the point");
        symbols.report(Diagnostic::error("out-of-range", expr.span, message));
    }
    result
}

fn not_for_fixed<T>(symbols: &mut Symbols<'_>, operator: &str, expr: &Expr) -> Option<T> {
    let message = format!("`{operator}` does not apply to fixed-point numbers");
    let error = Diagnostic::error("type-mismatch", expr.span, message);
    symbols.reject(error.note("fixed-point numbers support only `+`, `-`, `*` and `/`"))
}

/// Returns the smallest type that holds the number, and the number as a value of this type.
fn smallest_fixed(number: Decimal) -> (Type, ConstValue) {
    let (digits, scale, unscaled) = number.into_fixed();
    (Type::Fixed { digits, scale }, ConstValue::Fixed { unscaled, scale })
}
