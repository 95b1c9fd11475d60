//! Values of constants, labels and annotation arguments, evaluated in the required type.

use super::scope::{Entity, ScopeId, with_article};
use super::symbols::Symbols;
use super::{expr, fixed, real};
use crate::ast::{Expr, ExprKind, Name};
use crate::diagnostic::Diagnostic;
use crate::model::{ConstValue, DefId, Model, Primitive, Type, TypeId};
use crate::token::Wideness;

/// Evaluates an expression as a value of this type; `None` if that is not possible, which was reported.
pub(super) fn constant_value(
    symbols: &mut Symbols<'_>,
    expr: &Expr,
    ty: TypeId,
    scope: ScopeId,
) -> Option<ConstValue> {
    match *symbols.model.stripped(ty) {
        Type::Primitive(Primitive::Boolean) => boolean(symbols, expr, scope),
        Type::Primitive(Primitive::Char) => character(symbols, expr, false, scope),
        Type::Primitive(Primitive::WChar) => character(symbols, expr, true, scope),
        Type::Primitive(Primitive::LongDouble) => real::long_double(symbols, expr, scope),
        Type::Primitive(primitive) if primitive.is_float() => real::float(symbols, expr, primitive, scope),
        Type::Primitive(primitive) => expr::integer(symbols, expr, primitive, scope).map(ConstValue::Integer),
        Type::String(bound) => text(symbols, expr, false, bound, scope),
        Type::WString(bound) => text(symbols, expr, true, bound, scope),
        Type::Named(def) => enumerator(symbols, expr, def, scope),
        Type::Fixed { digits, scale } => fixed::fixed(symbols, expr, digits, scale, scope),
        _ => None,
    }
}

pub(super) fn named_value(
    symbols: &mut Symbols<'_>,
    name: &Name,
    scope: ScopeId,
) -> Option<(TypeId, ConstValue)> {
    let entity = symbols.lookup(name, scope)?;
    match entity {
        Entity::Enumerator(def, ordinal) => {
            return Some((symbols.intern(Type::Named(def)), ConstValue::Enum { def, ordinal }));
        }
        Entity::TemplateValue(index) => return symbols.templates.values.get(index).cloned(),
        Entity::Def(def) => {
            if let Some(constant) = symbols.model.constant(def) {
                return Some((constant.ty, constant.value.clone()));
            }
        }
        _ => {}
    }
    symbols.reject_wrong_kind(entity, name, "not-a-constant", "a constant")
}

fn boolean(symbols: &mut Symbols<'_>, expr: &Expr, scope: ScopeId) -> Option<ConstValue> {
    match &expr.kind {
        ExprKind::Bool(value) => return Some(ConstValue::Bool(*value)),
        ExprKind::Name(name) => {
            if let (_, value @ ConstValue::Bool(_)) = named_value(symbols, name, scope)? {
                return Some(value);
            }
        }
        _ => {}
    }
    mismatch(symbols, expr, "a boolean, `TRUE` or `FALSE`", scope)
}

fn character(symbols: &mut Symbols<'_>, expr: &Expr, wide: bool, scope: ScopeId) -> Option<ConstValue> {
    match &expr.kind {
        ExprKind::Char { code, wide: literal } if fits(*literal, wide) => {
            return match (wide, u8::try_from(*code), u16::try_from(*code)) {
                (false, Ok(code), _) => Some(ConstValue::Char(code)),
                (true, _, Ok(code)) => Some(ConstValue::WChar(code)),
                _ => {
                    let error =
                        Diagnostic::error("out-of-range", expr.span, "a `char` cannot hold this character");
                    let error = error.note("a `char` holds the characters of ISO 8859-1");
                    symbols.reject(error.help("use `wchar`"))
                }
            };
        }
        ExprKind::Name(name) => match named_value(symbols, name, scope)?.1 {
            value @ ConstValue::Char(_) if !wide => return Some(value),
            value @ ConstValue::WChar(_) if wide => return Some(value),
            _ => {}
        },
        _ => {}
    }
    mismatch(symbols, expr, if wide { "a wide character" } else { "a character" }, scope)
}

fn text(
    symbols: &mut Symbols<'_>,
    expr: &Expr,
    wide: bool,
    bound: Option<u32>,
    scope: ScopeId,
) -> Option<ConstValue> {
    let text = match &expr.kind {
        ExprKind::Text { text, wide: literal } if fits(*literal, wide) => Some(text.clone()),
        ExprKind::Name(name) => match named_value(symbols, name, scope)?.1 {
            ConstValue::String(text) if !wide => Some(text),
            ConstValue::WString(text) if wide => Some(text),
            _ => None,
        },
        _ => None,
    };
    let Some(text) = text else {
        return mismatch(symbols, expr, if wide { "a wide string" } else { "a string" }, scope);
    };
    if let Some(c) = text.chars().find(|c| !wide && u32::from(*c) > 0xff) {
        let message = format!("`{c}` is not allowed in a `string` constant");
        let error = Diagnostic::error("out-of-range", expr.span, message);
        let error = error.note("a `string` constant can contain only characters of ISO 8859-1");
        return symbols.reject(error.help("use `wstring`"));
    }
    let length = if wide { text.encode_utf16().count() } else { text.chars().count() };
    if let Some(bound) = bound.filter(|bound| length > *bound as usize) {
        let message = format!("this text of {length} characters is longer than its bound of {bound}");
        return symbols.reject(Diagnostic::error("out-of-range", expr.span, message));
    }
    Some(if wide { ConstValue::WString(text) } else { ConstValue::String(text) })
}

fn enumerator(symbols: &mut Symbols<'_>, expr: &Expr, def: DefId, scope: ScopeId) -> Option<ConstValue> {
    let name = symbols.model.scoped_name(def);
    let ExprKind::Name(written) = &expr.kind else {
        return mismatch(symbols, expr, &format!("an enumerator of `{name}`"), scope);
    };
    let (_, value) = named_value(symbols, written, scope)?;
    match value {
        ConstValue::Enum { def: of, .. } if of == def => Some(value),
        ConstValue::Enum { def: of, ordinal } => {
            let other = symbols.model.scoped_name(of);
            let message = format!("`{}` is an enumerator of `{other}`, not of `{name}`", written.text());
            let body = symbols.model.enumeration(of);
            let enumerator = body.and_then(|body| body.enumerators.get(ordinal as usize));
            let error = Diagnostic::error("type-mismatch", expr.span, message);
            let error = error.and_if(enumerator.map(|enumerator| enumerator.span), "declared here");
            symbols.reject(error)
        }
        _ => mismatch(symbols, expr, &format!("an enumerator of `{name}`"), scope),
    }
}

pub(super) fn mismatch<T>(symbols: &mut Symbols<'_>, expr: &Expr, wanted: &str, scope: ScopeId) -> Option<T> {
    let found = match &expr.kind {
        ExprKind::Bad => return None,
        ExprKind::Integer(_) => "an integer".to_owned(),
        ExprKind::Float(_) => "a floating-point number".to_owned(),
        ExprKind::Fixed(_) => "a fixed-point number".to_owned(),
        ExprKind::Char { wide: Wideness::Wide, .. } => "a wide character".to_owned(),
        ExprKind::Char { .. } => "a character".to_owned(),
        ExprKind::Text { wide: Wideness::Wide, .. } => "a wide string".to_owned(),
        ExprKind::Text { .. } => "a string".to_owned(),
        ExprKind::Bool(_) => "a boolean".to_owned(),
        ExprKind::Unary(..) | ExprKind::Binary(..) => "a computed value".to_owned(),
        ExprKind::Name(name) => {
            let (ty, _) = named_value(symbols, name, scope)?;
            format!("{} of type `{}`", with_article("constant"), symbols.model.describe(ty))
        }
    };
    let error = Diagnostic::error("type-mismatch", expr.span, format!("expected {wanted}, found {found}"));
    let help = match &expr.kind {
        ExprKind::Integer(value) if wanted == FLOATING => Some(format!("write `{value}.0`")),
        ExprKind::Fixed(digits) if wanted == FLOATING && digits.contains('.') => {
            Some(format!("write `{digits}`"))
        }
        ExprKind::Fixed(digits) if wanted == FLOATING => Some(format!("write `{digits}.0`")),
        ExprKind::Integer(value) if wanted == FIXED => Some(format!("write `{value}d`")),
        ExprKind::Float(text) if wanted == FIXED && !text.contains(['e', 'E']) => {
            Some(format!("write `{text}d`"))
        }
        ExprKind::Text { .. } if wanted == "a wide string" => Some("write `L\"...\"`".to_owned()),
        ExprKind::Char { .. } if wanted == "a wide character" => Some("write `L'...'`".to_owned()),
        _ => None,
    };
    symbols.reject(error.help_if(help))
}

/// Evaluates an annotation's argument without a declared type. Its literals determine the type.
pub(super) fn untyped_value(symbols: &mut Symbols<'_>, expr: &Expr, scope: ScopeId) -> Option<ConstValue> {
    match &expr.kind {
        ExprKind::Bool(value) => Some(ConstValue::Bool(*value)),
        ExprKind::Char { code, wide: Wideness::Wide } => u16::try_from(*code).ok().map(ConstValue::WChar),
        ExprKind::Char { code, .. } => match u8::try_from(*code) {
            Ok(code) => Some(ConstValue::Char(code)),
            Err(_) => u16::try_from(*code).ok().map(ConstValue::WChar),
        },
        ExprKind::Text { text, wide: Wideness::Wide } => Some(ConstValue::WString(text.clone())),
        ExprKind::Text { text, .. } => Some(ConstValue::String(text.clone())),
        ExprKind::Name(name) => named_value(symbols, name, scope).map(|(_, value)| value),
        ExprKind::Bad => None,
        _ if has_operand(expr, &|kind| matches!(kind, ExprKind::Fixed(_))) => {
            fixed::unbounded_fixed(symbols, expr, scope).map(|(_, value)| value)
        }
        _ if has_operand(expr, &|kind| matches!(kind, ExprKind::Float(_))) => {
            real::float(symbols, expr, Primitive::Double, scope)
        }
        _ => expr::untyped_integer(symbols, expr, scope).map(ConstValue::Integer),
    }
}

/// Formats a value for a message.
pub(super) fn format_value(model: &Model, value: &ConstValue) -> String {
    match value {
        ConstValue::Bool(true) => "`TRUE`".to_owned(),
        ConstValue::Bool(false) => "`FALSE`".to_owned(),
        ConstValue::Integer(value) => value.to_string(),
        ConstValue::Char(code) => format!("'{}'", char::from(*code).escape_default()),
        ConstValue::WChar(code) => match char::from_u32(u32::from(*code)) {
            Some(c) => format!("L'{}'", c.escape_debug()),
            None => format!("L'\\u{code:04x}'"),
        },
        ConstValue::Enum { def, ordinal } => {
            let body = model.enumeration(*def);
            let name = body.and_then(|body| body.enumerators.get(*ordinal as usize)).map(|e| e.name.as_str());
            format!("`{}`", name.unwrap_or("?"))
        }
        ConstValue::Float(value) => value.to_string(),
        ConstValue::LongDouble(_) => "a long double".to_owned(),
        ConstValue::String(text) | ConstValue::WString(text) => format!("{text:?}"),
        ConstValue::Fixed { unscaled, scale } => {
            let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = usize::from(*scale) + 1);
            let (whole, fraction) = digits.split_at(digits.len() - usize::from(*scale));
            let (sign, point) = (if *unscaled < 0 { "-" } else { "" }, if *scale > 0 { "." } else { "" });
            format!("{sign}{whole}{point}{fraction}d")
        }
    }
}

pub(super) const FLOATING: &str = "a floating-point number";

pub(super) const FIXED: &str = "a fixed-point number";

fn fits(literal: Wideness, wide: bool) -> bool {
    match literal {
        Wideness::Narrow => !wide,
        Wideness::Wide => wide,
        Wideness::ByType => true,
    }
}

/// Returns whether some operand of the expression is of this kind.
fn has_operand(expr: &Expr, wanted: &impl Fn(&ExprKind) -> bool) -> bool {
    match &expr.kind {
        ExprKind::Unary(_, operand) => has_operand(operand, wanted),
        ExprKind::Binary(first, rest) => {
            has_operand(first, wanted) || rest.iter().any(|(_, operand)| has_operand(operand, wanted))
        }
        kind => wanted(kind),
    }
}
