//! Floating-point expressions, evaluated in IEEE binary64 or, for `long double`, in binary128.

use std::ops::Neg;

use rustc_apfloat::ieee::{Double, Quad};
use rustc_apfloat::{Float, FloatConvert, Round};

use super::constant::{self, FLOATING};
use super::scope::ScopeId;
use super::symbols::Symbols;
use crate::ast::{Binary, Expr, ExprKind, Unary};
use crate::diagnostic::Diagnostic;
use crate::model::{ConstValue, Primitive, Type};

/// Maximum absolute value of a decimal exponent. Numbers with greater exponents are read as zero or infinity.
const MAX_EXPONENT: i64 = 20_000;

pub(super) fn float(
    symbols: &mut Symbols<'_>,
    expr: &Expr,
    ty: Primitive,
    scope: ScopeId,
) -> Option<ConstValue> {
    let value: f64 = real(symbols, expr, scope)?;
    let rounded = if ty == Primitive::Float { f64::from(value as f32) } else { value };
    if !rounded.is_finite() {
        return too_large(symbols, expr, ty);
    }
    if rounded != value && ty == Primitive::Float {
        warn_of_lost_precision(symbols, expr, scope);
    }
    Some(ConstValue::Float(rounded))
}

pub(super) fn long_double(symbols: &mut Symbols<'_>, expr: &Expr, scope: ScopeId) -> Option<ConstValue> {
    let value: Quad = real(symbols, expr, scope)?;
    if !value.is_finite() {
        return too_large(symbols, expr, Primitive::LongDouble);
    }
    Some(ConstValue::LongDouble(value.to_bits()))
}

fn too_large<T>(symbols: &mut Symbols<'_>, expr: &Expr, ty: Primitive) -> Option<T> {
    let message = format!("this value is too large for `{}`", ty.idl_name());
    symbols.reject(Diagnostic::error("out-of-range", expr.span, message))
}

/// Warns if a named constant of a wider type is assigned to a `float` that cannot hold it exactly.
/// Literals cause no warning, because few decimal fractions are exact.
fn warn_of_lost_precision(symbols: &mut Symbols<'_>, expr: &Expr, scope: ScopeId) {
    let ExprKind::Name(name) = &expr.kind else { return };
    let Some((ty, _)) = constant::named_value(symbols, name, scope) else { return };
    if !matches!(symbols.model.stripped(ty), Type::Primitive(Primitive::Float)) {
        let message = format!("`{}` loses precision as a `float`", name.text());
        let warning = Diagnostic::warning("precision-loss", expr.span, message);
        symbols.report(warning.note(format!("its type is `{}`", symbols.model.describe(ty))));
    }
}

fn real<T: Real>(symbols: &mut Symbols<'_>, expr: &Expr, scope: ScopeId) -> Option<T> {
    match &expr.kind {
        ExprKind::Float(text) => T::parse(text),
        ExprKind::Name(name) => {
            let value = constant::named_value(symbols, name, scope)?.1;
            T::from_constant(&value).or_else(|| constant::mismatch(symbols, expr, FLOATING, scope))
        }
        ExprKind::Unary(Unary::Plus, operand) => real(symbols, operand, scope),
        ExprKind::Unary(Unary::Minus, operand) => real(symbols, operand, scope).map(T::neg),
        ExprKind::Binary(first, rest) => {
            let mut value: Option<T> = real(symbols, first, scope);
            for (operator, operand) in rest {
                let right: Option<T> = real(symbols, operand, scope);
                value = value
                    .zip(right)
                    .and_then(|(left, right)| apply_real(symbols, *operator, left, right, expr, operand));
            }
            value
        }
        ExprKind::Unary(Unary::Complement, _) => not_for_floats(symbols, "~", expr),
        _ => constant::mismatch(symbols, expr, FLOATING, scope),
    }
}

fn apply_real<T: Real>(
    symbols: &mut Symbols<'_>,
    operator: Binary,
    left: T,
    right: T,
    expr: &Expr,
    operand: &Expr,
) -> Option<T> {
    match operator {
        Binary::Divide if right == T::POSITIVE_ZERO => {
            symbols.reject(Diagnostic::error("division-by-zero", operand.span, "division by zero"))
        }
        Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide => {
            Some(left.combine(operator, right))
        }
        other => not_for_floats(symbols, other.text(), expr),
    }
}

fn not_for_floats<T>(symbols: &mut Symbols<'_>, operator: &str, expr: &Expr) -> Option<T> {
    let message = format!("`{operator}` does not apply to floating-point numbers");
    let error = Diagnostic::error("type-mismatch", expr.span, message);
    symbols.reject(error.note("floating-point numbers support only `+`, `-`, `*` and `/`"))
}

trait Real: Copy + PartialEq + Neg<Output = Self> {
    const POSITIVE_ZERO: Self;
    fn parse(text: &str) -> Option<Self>;
    fn from_constant(value: &ConstValue) -> Option<Self>;
    /// Applies `+`, `-` or `*`; any other operator divides.
    fn combine(self, operator: Binary, right: Self) -> Self;
}

impl Real for f64 {
    const POSITIVE_ZERO: Self = 0.0;

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn from_constant(value: &ConstValue) -> Option<Self> {
        match value {
            ConstValue::Float(value) => Some(*value),
            ConstValue::LongDouble(bits) => {
                let value: Double = Quad::from_bits(*bits).convert(&mut false).value;
                u64::try_from(value.to_bits()).ok().map(f64::from_bits)
            }
            _ => None,
        }
    }

    fn combine(self, operator: Binary, right: Self) -> Self {
        match operator {
            Binary::Add => self + right,
            Binary::Subtract => self - right,
            Binary::Multiply => self * right,
            _ => self / right,
        }
    }
}

impl Real for Quad {
    const POSITIVE_ZERO: Self = Quad::ZERO;

    fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let negative = exponent.starts_with('-');
        let exponent = exponent.parse().unwrap_or(if negative { i64::MIN } else { i64::MAX });
        if exponent.unsigned_abs() > MAX_EXPONENT.unsigned_abs() {
            let zero = negative || !mantissa.contains(|c| matches!(c, '1'..='9'));
            return Some(if zero { Quad::ZERO } else { Quad::INFINITY });
        }
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let plain = format!("0{whole}.{fraction}0e{exponent}");
        Quad::from_str_r(&plain, Round::NearestTiesToEven).ok().map(|parsed| parsed.value)
    }

    fn from_constant(value: &ConstValue) -> Option<Self> {
        match value {
            ConstValue::LongDouble(bits) => Some(Quad::from_bits(*bits)),
            ConstValue::Float(value) => {
                Some(Double::from_bits(u128::from(value.to_bits())).convert(&mut false).value)
            }
            _ => None,
        }
    }

    fn combine(self, operator: Binary, right: Self) -> Self {
        match operator {
            Binary::Add => (self + right).value,
            Binary::Subtract => (self - right).value,
            Binary::Multiply => (self * right).value,
            _ => (self / right).value,
        }
    }
}
