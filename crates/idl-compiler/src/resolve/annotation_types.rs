//! Annotations that the text declares. Uses are checked against them, and against the known ones.

use super::known::{KNOWN, Kind};
use super::scope::{Entity, ScopeId};
use super::symbols::Symbols;
use super::{Resolver, constant};
use crate::ast::{self, AnnotationDef, Binary, Expr, ExprKind, Head, Ident};
use crate::diagnostic::Diagnostic;
use crate::model::{
    AnnotationArg, AnnotationMember, AnnotationType, AnnotationValue, DefKind, Model, Primitive, Type,
};
use crate::source::Span;
use crate::suggest::closest;

/// An annotation that the text declares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    /// Index in the model's list.
    index: usize,
    /// The scope in which names in arguments are looked up first.
    inside: ScopeId,
}

impl Resolver<'_> {
    /// Resolves `@annotation name { ... }`.
    pub(super) fn annotation_def(&mut self, head: &Head, def: AnnotationDef, scope: ScopeId) {
        let owner = self.symbols.scope(scope).owner;
        let inside = self.symbols.inner_scope(owner, scope);
        // Types declared in an annotation cannot be named outside of it, so they are not listed in the
        // enclosing scope.
        let kept = siblings_of(&mut self.symbols.model, owner).len();
        self.items(def.items, inside);
        siblings_of(&mut self.symbols.model, owner).truncate(kept);
        let mut members: Vec<AnnotationMember> = Vec::new();
        for member in def.members {
            let declared = self.symbols.declare_local(inside, &member.name, Entity::Member, "member");
            members.extend(self.annotation_member(member, inside).filter(|_| declared));
        }
        let Ident { text, span } = def.name;
        let scoped = match owner {
            Some(owner) => format!("{}::{text}", self.symbols.model.scoped_name(owner)),
            None => text.clone(),
        };
        let known = KNOWN.iter().find(|known| known.name == text && known.acted);
        if let Some(known) = known {
            let names =
                |member: &AnnotationMember| known.parameters.iter().any(|(name, ..)| *name == member.name);
            if members.len() != known.parameters.len() || !members.iter().all(names) {
                let message = format!("`@{text}` is known, and has other values");
                let error = Diagnostic::error("bad-annotation", span, message);
                let names: Vec<(&str, bool)> =
                    known.parameters.iter().map(|(name, _, needed)| (*name, *needed)).collect();
                self.symbols.report(error.note(all(&text, &names)));
            }
        }
        let place = (scope, text.to_ascii_lowercase());
        if let Some(earlier) = self.annotation_types.get(&place).copied() {
            let message = format!("annotation `{text}` is already declared in this scope");
            let mut error = Diagnostic::error("redefinition", span, message);
            if let Some(earlier) = self.symbols.model.annotation_types.get(earlier.index) {
                error = error.and(earlier.span, "declared here");
            }
            return self.symbols.report(error);
        }
        let index = self.symbols.model.annotation_types.len();
        self.annotation_places.push(place.clone());
        self.annotation_types.insert(place, Declared { index, inside });
        let docs = head.docs.clone();
        self.symbols.model.annotation_types.push(AnnotationType { name: scoped, docs, members, span });
    }

    fn annotation_member(
        &mut self,
        member: ast::AnnotationMember,
        scope: ScopeId,
    ) -> Option<AnnotationMember> {
        let ty = match member.ty.kind {
            ast::TypeKind::Any => None,
            _ => Some(self.constant_type(&member.ty, scope)?),
        };
        let default = match (&member.default, ty) {
            (None, _) => None,
            (Some(default), Some(ty)) => {
                Some(constant::constant_value(&mut self.symbols, default, ty, scope)?)
            }
            (Some(default), None) => Some(constant::untyped_value(&mut self.symbols, default, scope)?),
        };
        let Ident { text, span } = member.name;
        Some(AnnotationMember { name: text, ty, default, span })
    }

    /// Checks a use of an annotation in a scope, and returns its arguments. Invalid ones are reported and
    /// left out.
    pub(super) fn annotation_args(
        &mut self,
        annotation: &ast::Annotation,
        scope: ScopeId,
    ) -> Vec<AnnotationArg> {
        if let Some(declared) = self.declared_annotation(&annotation.name, scope) {
            return declared_args(&mut self.symbols, annotation, declared, scope);
        }
        let Some(known) = KNOWN.iter().find(|known| known.name == annotation.name) else {
            unknown_annotation(&mut self.symbols, annotation);
            let args = annotation.args.iter();
            return args
                .filter_map(|(name, value)| free_arg(&mut self.symbols, name.as_ref(), value, scope))
                .collect();
        };
        let parameters = known.parameters;
        let names: Vec<(&str, bool)> = parameters.iter().map(|(name, _, needed)| (*name, *needed)).collect();
        let mut args = Vec::new();
        for (index, name, value) in matched(&mut self.symbols, annotation, &names) {
            let Some((_, kind, _)) = parameters.get(index) else { continue };
            let value = match known_arg(&mut self.symbols, *kind, value, scope) {
                Some(evaluated) => AnnotationArg { name, value: evaluated, span: value.span },
                None => continue,
            };
            args.push(value);
        }
        args
    }

    /// Returns the annotation with this name, searched in this scope, then in the enclosing ones.
    pub(super) fn declared_annotation(&self, name: &str, scope: ScopeId) -> Option<Declared> {
        if self.annotation_types.is_empty() {
            return None;
        }
        if let Some((_, last)) = name.rsplit_once("::") {
            let full = name.trim_start_matches("::");
            let suffix = format!("::{full}");
            let types = &self.symbols.model.annotation_types;
            let found = types.iter().position(|ty| ty.name == full || ty.name.ends_with(&suffix))?;
            let lower = last.to_ascii_lowercase();
            let mut all = self.annotation_types.iter();
            return all
                .find(|((_, key), at)| at.index == found && *key == lower)
                .map(|(_, declared)| *declared);
        }
        let lower = name.to_ascii_lowercase();
        let mut at = Some(scope);
        while let Some(id) = at {
            if let Some(declared) = self.annotation_types.get(&(id, lower.clone())) {
                return Some(*declared);
            }
            at = self.symbols.scope(id).parent;
        }
        None
    }
}

/// Handles an undeclared annotation. It has no effect here, but may have a meaning for another tool, so
/// this is only a warning.
fn unknown_annotation(symbols: &mut Symbols<'_>, annotation: &ast::Annotation) {
    if annotation.name.contains("::") || symbols.conditions.incomplete {
        return;
    }
    let message = format!("there is no annotation `@{}`", annotation.name);
    let warning = Diagnostic::warning("unknown-annotation", annotation.span, message);
    let declared = symbols.model.annotation_types.iter().map(|declared| declared.name.as_str());
    let near = closest(&annotation.name, KNOWN.iter().map(|known| known.name).chain(declared));
    let help = match near {
        Some(near) => format!("did you mean `@{near}`?"),
        None => format!("`@annotation {} {{ ... }};` declares it", annotation.name),
    };
    symbols.report(warning.note("it is kept and means nothing").help(help));
}

fn free_arg(
    symbols: &mut Symbols<'_>,
    name: Option<&Ident>,
    value: &Expr,
    scope: ScopeId,
) -> Option<AnnotationArg> {
    let name = name.map(|name| name.text.clone());
    Some(AnnotationArg { name, value: free_value_of(symbols, value, scope)?, span: value.span })
}

/// Returns a value in the type of its literals, or a word.
fn free_value_of(symbols: &mut Symbols<'_>, value: &Expr, scope: ScopeId) -> Option<AnnotationValue> {
    match &value.kind {
        ExprKind::Name(name) => Some(AnnotationValue::Name(name.text())),
        _ => constant::untyped_value(symbols, value, scope).map(AnnotationValue::Const),
    }
}

fn known_arg(symbols: &mut Symbols<'_>, kind: Kind, value: &Expr, scope: ScopeId) -> Option<AnnotationValue> {
    let primitive = |primitive| Type::Primitive(primitive);
    let (words, several) = match kind {
        // Evaluated with the type of the item, which is resolved later.
        Kind::Typed => return Some(AnnotationValue::Name(String::new())),
        Kind::Boolean => return typed_arg(symbols, value, primitive(Primitive::Boolean), scope),
        Kind::Integer => return typed_arg(symbols, value, primitive(Primitive::ULong), scope),
        Kind::Signed => return typed_arg(symbols, value, primitive(Primitive::LongLong), scope),
        Kind::Text if matches!(value.kind, ExprKind::Text { .. }) => {
            return free_value_of(symbols, value, scope);
        }
        Kind::Text => return typed_arg(symbols, value, Type::String(None), scope),
        Kind::Word(words) => (words, false),
        Kind::Words(words) => (words, true),
    };
    let fits = |value: &Expr| match &value.kind {
        ExprKind::Name(name) => words.contains(&name.text().as_str()),
        _ => false,
    };
    match &value.kind {
        ExprKind::Name(name) if fits(value) => Some(AnnotationValue::Name(name.text())),
        ExprKind::Binary(first, rest)
            if several
                && fits(first)
                && rest.iter().all(|(operator, value)| *operator == Binary::Or && fits(value)) =>
        {
            let text = |value: &Expr| match &value.kind {
                ExprKind::Name(name) => name.text(),
                _ => String::new(),
            };
            let all: Vec<String> =
                std::iter::once(text(first)).chain(rest.iter().map(|(_, value)| text(value))).collect();
            Some(AnnotationValue::Name(all.join(" | ")))
        }
        ExprKind::Bad => None,
        _ => {
            let all: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            let error = Diagnostic::error("bad-annotation", value.span, "this is no value of the annotation");
            let note = match several {
                true => format!("it is of {}, with `|` between them", all.join(", ")),
                false => format!("it is one of {}", all.join(", ")),
            };
            let near = match &value.kind {
                ExprKind::Name(name) => closest(&name.text(), words.iter().copied()),
                _ => None,
            };
            let error = error.note(note);
            symbols.report(match near {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error,
            });
            None
        }
    }
}

fn typed_arg(symbols: &mut Symbols<'_>, value: &Expr, ty: Type, scope: ScopeId) -> Option<AnnotationValue> {
    let ty = symbols.intern(ty);
    constant::constant_value(symbols, value, ty, scope).map(AnnotationValue::Const)
}

fn declared_args(
    symbols: &mut Symbols<'_>,
    annotation: &ast::Annotation,
    declared: Declared,
    scope: ScopeId,
) -> Vec<AnnotationArg> {
    let Some(ty) = symbols.model.annotation_types.get(declared.index).cloned() else { return Vec::new() };
    let names: Vec<(&str, bool)> =
        ty.members.iter().map(|member| (member.name.as_str(), member.default.is_none())).collect();
    let mut args = Vec::new();
    for (index, name, value) in matched(symbols, annotation, &names) {
        let member = ty.members.get(index).and_then(|member| member.ty);
        let evaluated = match member {
            // Names are looked up in the annotation first, then in the scope of its use.
            Some(ty) => {
                let own = match &value.kind {
                    ExprKind::Name(name) => name
                        .parts
                        .first()
                        .is_some_and(|part| symbols.declared(declared.inside, &part.text).is_some()),
                    _ => false,
                };
                let at = if own { declared.inside } else { scope };
                constant::constant_value(symbols, value, ty, at).map(AnnotationValue::Const)
            }
            None => free_value_of(symbols, value, scope),
        };
        args.extend(evaluated.map(|evaluated| AnnotationArg { name, value: evaluated, span: value.span }));
    }
    args
}

/// Returns the arguments with the indices of their parameters, and reports those that match no parameter.
fn matched<'a>(
    symbols: &mut Symbols<'_>,
    annotation: &'a ast::Annotation,
    parameters: &[(&str, bool)],
) -> Vec<(usize, Option<String>, &'a Expr)> {
    let mut given: Vec<Option<Span>> = vec![None; parameters.len()];
    let mut matched = Vec::new();
    for (name, value) in &annotation.args {
        let index = match name {
            Some(name) => match parameters.iter().position(|(known, _)| *known == name.text) {
                Some(index) => index,
                None => {
                    let message = format!("`@{}` has no `{}`", annotation.name, name.text);
                    let error = Diagnostic::error("bad-annotation", name.span, message);
                    let near = closest(&name.text, parameters.iter().map(|(known, _)| *known));
                    symbols.report(match near {
                        Some(near) => error.help(format!("did you mean `{near}`?")),
                        None => error.note(all(&annotation.name, parameters)),
                    });
                    continue;
                }
            },
            None if parameters.len() == 1 && annotation.args.len() == 1 => 0,
            None => {
                let message = match parameters {
                    [] => format!("`@{}` takes nothing", annotation.name),
                    _ => format!("`@{}` takes its values by name", annotation.name),
                };
                let error = Diagnostic::error("bad-annotation", value.span, message);
                symbols.report(if parameters.is_empty() {
                    error
                } else {
                    error.note(all(&annotation.name, parameters))
                });
                // Return early: after this error, missing arguments are not reported.
                return matched;
            }
        };
        if let Some(Some(first)) = given.get(index) {
            let message = format!("`{}` is given twice", name.as_ref().map_or("", |name| &name.text));
            let error = Diagnostic::error("bad-annotation", value.span, message);
            symbols.report(error.and(*first, "the first is here"));
            continue;
        }
        if let Some(place) = given.get_mut(index) {
            *place = Some(value.span);
        }
        matched.push((index, name.as_ref().map(|name| name.text.clone()), value));
    }
    let missing = parameters.iter().zip(&given).find(|((_, needed), given)| *needed && given.is_none());
    if let Some(((name, _), _)) = missing {
        let message = match parameters.len() {
            1 => format!("`@{}` needs a value", annotation.name),
            _ => format!("`@{}` needs `{name}`", annotation.name),
        };
        symbols.report(Diagnostic::error("bad-annotation", annotation.span, message));
    }
    matched
}

/// Returns the list of definitions directly in a module, an interface or the file.
fn siblings_of(model: &mut Model, owner: Option<crate::model::DefId>) -> &mut Vec<crate::model::DefId> {
    match owner.map(|owner| &mut model.defs[owner.index()].kind) {
        Some(DefKind::Module(body)) => &mut body.members,
        Some(DefKind::Interface(body)) => &mut body.members,
        Some(DefKind::Value(body)) => &mut body.members,
        _ => &mut model.roots,
    }
}

/// Lists the names of all parameters, for messages.
fn all(annotation: &str, parameters: &[(&str, bool)]) -> String {
    let names: Vec<String> = parameters.iter().map(|(name, _)| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => format!("`@{annotation}` takes nothing"),
        names => format!("it has {}", names.join(", ")),
    }
}
