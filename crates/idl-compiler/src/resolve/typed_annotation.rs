//! Annotations whose value has the annotated type: `@default`, `@range`, `@min`, `@max`.

use super::constant;
use super::scope::ScopeId;
use super::symbols::Symbols;
use crate::ast::{Expr, ExprKind, Preamble};
use crate::diagnostic::Diagnostic;
use crate::model::{AnnotationValue, Annotations, Bounds, ConstValue, DefId, DefKind, Model, Type, TypeId};
use crate::source::Span;

const BOUNDS: &[&str] = &["range", "min", "max"];

/// Evaluates the values of these annotations in the type `ty` of the annotated item, and checks them.
pub(super) fn evaluate(
    symbols: &mut Symbols<'_>,
    preamble: &Preamble,
    annotations: &mut Annotations,
    ty: TypeId,
    scope: ScopeId,
) {
    if !annotations.has("default") && !annotations.has_range() {
        return;
    }
    evaluate_arguments(symbols, preamble, annotations, ty, scope);
    let Some(bounds) = check_bounds(symbols, annotations, ty) else { return };
    if let (Some(default), Some(value)) = (annotations.get("default"), annotations.default_value()) {
        check_between(symbols, &bounds, ty, value, "the default", default.span);
    }
}

pub(super) fn evaluate_def(
    symbols: &mut Symbols<'_>,
    preamble: &Preamble,
    id: DefId,
    ty: TypeId,
    scope: ScopeId,
) {
    let mut annotations = std::mem::take(&mut symbols.model.defs[id.index()].annotations);
    evaluate(symbols, preamble, &mut annotations, ty, scope);
    symbols.model.defs[id.index()].annotations = annotations;
}

pub(super) fn check_in_bounds(symbols: &mut Symbols<'_>, ty: TypeId, value: &ConstValue, span: Span) {
    if let Some(bounds) = bounds_of_type(&symbols.model, ty) {
        check_between(symbols, &bounds, ty, value, "the constant", span);
    }
}

fn bounds_of_type(model: &Model, ty: TypeId) -> Option<Bounds> {
    let typedef = model.ranged_typedef(ty)?;
    model.bounds(&model.def(typedef).annotations, ty)
}

fn evaluate_arguments(
    symbols: &mut Symbols<'_>,
    preamble: &Preamble,
    annotations: &mut Annotations,
    ty: TypeId,
    scope: ScopeId,
) {
    for (syntax, annotation) in preamble.annotations.iter().zip(&mut annotations.0) {
        let is_bound = BOUNDS.contains(&annotation.name.as_str());
        if !is_bound && annotation.name != "default" || annotation.args.is_empty() {
            continue;
        }
        let fits =
            symbols.model.numeric_range(ty).is_some() || !is_bound && has_constants(&symbols.model, ty);
        if !fits {
            let described = symbols.model.describe(ty);
            let message = format!("`@{}` is not allowed on a value of type `{described}`", annotation.name);
            let error = Diagnostic::error("bad-annotation", annotation.span, message);
            let error = match is_bound {
                false => error.note("only numbers, characters, booleans, strings and enums have defaults"),
                true => error.note("only integers, `octet`, `float`, `double` and `fixed` can have bounds"),
            };
            let element = match symbols.model.stripped(ty) {
                Type::Sequence { element, .. } | Type::Array { element, .. } if is_bound => Some(*element),
                _ => None,
            };
            let number = element.filter(|element| symbols.model.numeric_range(*element).is_some());
            let help = number.map(|number| {
                let (name, number) = (&annotation.name, symbols.model.describe(number));
                format!("declare a type for the elements: `@{name} ... typedef {number} Name;`")
            });
            symbols.report(error.help_if(help));
            annotation.args.clear();
            continue;
        }
        let args = std::mem::take(&mut annotation.args);
        for mut arg in args {
            let value: Option<&Expr> =
                syntax.args.iter().map(|(_, value)| value).find(|value| value.span == arg.span);
            let value = value.map(|value| convert_literals(&symbols.model, value, ty));
            let value = value.and_then(|value| constant::constant_value(symbols, &value, ty, scope));
            if let Some(value) = value {
                arg.value = AnnotationValue::Const(value);
                annotation.args.push(arg);
            }
        }
    }
}

/// Converts literals to the type: `@max(1)` is valid for a `double`, `@max(1.5)` for a `fixed`.
fn convert_literals(model: &Model, expr: &Expr, ty: TypeId) -> Expr {
    let kind = match (&expr.kind, model.stripped(ty)) {
        (ExprKind::Unary(operator, operand), _) => {
            ExprKind::Unary(*operator, Box::new(convert_literals(model, operand, ty)))
        }
        (ExprKind::Integer(value), Type::Primitive(primitive)) if primitive.is_float() => {
            ExprKind::Float(format!("{value}.0"))
        }
        (ExprKind::Integer(value), Type::Fixed { .. }) => ExprKind::Fixed(value.to_string()),
        (ExprKind::Float(text), Type::Fixed { .. }) if !text.contains(['e', 'E']) => {
            ExprKind::Fixed(text.clone())
        }
        (kind, _) => kind.clone(),
    };
    Expr { kind, span: expr.span }
}

fn has_constants(model: &Model, ty: TypeId) -> bool {
    match model.stripped(ty) {
        Type::Primitive(_) | Type::String(_) | Type::WString(_) | Type::Fixed { .. } => true,
        Type::Named(def) => matches!(model.def(*def).kind, DefKind::Enum(_)),
        _ => false,
    }
}

/// Returns the bounds from the item's annotations or else from its type, if there are any and they are valid.
fn check_bounds(symbols: &mut Symbols<'_>, annotations: &Annotations, ty: TypeId) -> Option<Bounds> {
    let own: Vec<_> = annotations.0.iter().filter(|a| BOUNDS.contains(&a.name.as_str())).collect();
    let Some(first) = own.first() else { return bounds_of_type(&symbols.model, ty) };
    if let Some(outer) = symbols.model.ranged_typedef(ty) {
        let outer = symbols.model.def(outer);
        let (name, ty) = (&first.name, &outer.name);
        let message = format!("`@{name}` is not allowed on a value of type `{ty}`, which already has bounds");
        let error = Diagnostic::error("bad-annotation", first.span, message);
        return symbols.reject(error.and(outer.span, "declared here").help("use the type without bounds"));
    }
    for (index, later) in own.iter().enumerate().skip(1) {
        let is_same_bound = |earlier: &&&crate::model::Annotation| {
            earlier.name == later.name || earlier.name == "range" || later.name == "range"
        };
        if let Some(earlier) = own.iter().take(index).find(is_same_bound) {
            let message = format!("`@{}` cannot be combined with `@{}`", later.name, earlier.name);
            let error = Diagnostic::error("bad-annotation", later.span, message);
            return symbols.reject(error.and(earlier.span, "this sets the same bound"));
        }
    }
    if own.iter().any(|annotation| annotation.args.is_empty()) {
        return None;
    }
    let bounds = symbols.model.bounds(annotations, ty)?;
    if !symbols.model.at_least(ty, &bounds.max, &bounds.min) {
        let shown = |value| constant::format_value(&symbols.model, value);
        let (min, max) = (shown(&bounds.min), shown(&bounds.max));
        let message = format!("the minimum {min} is greater than the maximum {max}");
        return symbols.reject(Diagnostic::error("bad-annotation", first.span, message));
    }
    Some(bounds)
}

fn check_between(
    symbols: &mut Symbols<'_>,
    bounds: &Bounds,
    ty: TypeId,
    value: &ConstValue,
    what: &str,
    span: Span,
) {
    if symbols.model.at_least(ty, value, &bounds.min) && symbols.model.at_least(ty, &bounds.max, value) {
        return;
    }
    let shown = |value| constant::format_value(&symbols.model, value);
    let (value, min, max) = (shown(value), shown(&bounds.min), shown(&bounds.max));
    let message = format!("{what} {value} is out of bounds");
    let error = Diagnostic::error("bad-annotation", span, message);
    symbols.report(error.note(format!("it must be from {min} to {max}")));
}
