//! Annotations that the text declares, and the arguments of all annotations. Arguments are checked against
//! the declaration in the text or, if there is none, against the annotations that the compiler knows.

use super::constant;
use super::known::{ArgumentKind, KNOWN};
use super::scope::{Entity, ScopeId};
use super::symbols::{DeclaredAnnotation, Resolver, Symbols, children_mut};
use crate::ast::{self, AnnotationDef, Binary, Expr, ExprKind, Ident, Preamble};
use crate::diagnostic::Diagnostic;
use crate::model::{AnnotationArg, AnnotationMember, AnnotationType, AnnotationValue, Primitive, Type};
use crate::source::Span;
use crate::suggest::closest;

impl Resolver<'_> {
    pub(super) fn annotation_def(&mut self, preamble: &Preamble, def: AnnotationDef, scope: ScopeId) {
        let owner = self.symbols.scope(scope).owner;
        let inside = self.symbols.open_inner_scope(owner, scope);
        // Types in an annotation cannot be named outside of it, so the enclosing scope does not list them.
        let count = children_mut(&mut self.symbols.model, owner).map_or(0, |children| children.len());
        self.items(def.items, inside);
        if let Some(children) = children_mut(&mut self.symbols.model, owner) {
            children.truncate(count);
        }
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
        let known = KNOWN.iter().find(|known| known.name == text && known.is_used);
        if let Some(known) = known {
            let names =
                |member: &AnnotationMember| known.parameters.iter().any(|(name, ..)| *name == member.name);
            if members.len() != known.parameters.len() || !members.iter().all(names) {
                let message = format!("`@{text}` is known to have other parameters");
                let error = Diagnostic::error("bad-annotation", span, message);
                let names = known.parameter_names();
                self.symbols.report(error.note(parameters_note(&text, &names)));
            }
        }
        let key = (scope, text.to_ascii_lowercase());
        if let Some(earlier) = self.annotation_types.get(&key).copied() {
            let message = format!("annotation `{text}` is already declared in this scope");
            let mut error = Diagnostic::error("redefinition", span, message);
            if let Some(earlier) = self.symbols.model.annotation_types.get(earlier.index) {
                error = error.and(earlier.span, "declared here");
            }
            return self.symbols.report(error);
        }
        let index = self.symbols.model.annotation_types.len();
        self.annotation_keys.push(key.clone());
        self.annotation_types.insert(key, DeclaredAnnotation { index, inner_scope: inside });
        let docs = preamble.docs.clone();
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

    /// Checks an annotation and returns its valid arguments. Other arguments are reported.
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
            let args = annotation.args.iter().filter_map(|(name, value)| {
                let evaluated = untyped_arg_value(&mut self.symbols, value, scope)?;
                let name = name.as_ref().map(|name| name.text.clone());
                Some(AnnotationArg { name, value: evaluated, span: value.span })
            });
            return args.collect();
        };
        let mut args = Vec::new();
        for (index, name, value) in match_parameters(&mut self.symbols, annotation, &known.parameter_names())
        {
            let Some((_, kind, _)) = known.parameters.get(index) else { continue };
            if let Some(evaluated) = known_arg(&mut self.symbols, *kind, value, scope) {
                args.push(AnnotationArg { name, value: evaluated, span: value.span });
            }
        }
        args
    }

    /// Returns the declared annotation of this name. A simple name is looked up in this scope, then in the
    /// enclosing scopes. A scoped name must be the end of the annotation's full name.
    pub(super) fn declared_annotation(&self, name: &str, scope: ScopeId) -> Option<DeclaredAnnotation> {
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
        let mut scopes = std::iter::successors(Some(scope), |id| self.symbols.scope(*id).parent);
        scopes.find_map(|id| self.annotation_types.get(&(id, lower.clone())).copied())
    }
}

/// Warns about an unknown annotation, unless its name has scopes or declarations may be missing.
fn unknown_annotation(symbols: &mut Symbols<'_>, annotation: &ast::Annotation) {
    if annotation.name.contains("::") || symbols.conditions.incomplete {
        return;
    }
    let message = format!("the annotation `@{}` is not known", annotation.name);
    let warning = Diagnostic::warning("unknown-annotation", annotation.span, message);
    let declared = symbols.model.annotation_types.iter().map(|declared| declared.name.as_str());
    let suggestion = closest(&annotation.name, KNOWN.iter().map(|known| known.name).chain(declared));
    let help = match suggestion {
        Some(name) => format!("did you mean `@{name}`?"),
        None => format!("`@annotation {} {{ ... }};` declares it", annotation.name),
    };
    symbols.report(warning.note("it has no effect here, but is kept for other tools").help(help));
}

/// Returns a name as written. Any other expression is evaluated with the type of its literals.
fn untyped_arg_value(symbols: &mut Symbols<'_>, value: &Expr, scope: ScopeId) -> Option<AnnotationValue> {
    match &value.kind {
        ExprKind::Name(name) => Some(AnnotationValue::Name(name.text())),
        _ => constant::untyped_value(symbols, value, scope).map(AnnotationValue::Const),
    }
}

fn known_arg(
    symbols: &mut Symbols<'_>,
    kind: ArgumentKind,
    value: &Expr,
    scope: ScopeId,
) -> Option<AnnotationValue> {
    let primitive = |primitive| Type::Primitive(primitive);
    let (words, several) = match kind {
        // This argument is evaluated later, when the type of the annotated item is known.
        ArgumentKind::Typed => return Some(AnnotationValue::Name(String::new())),
        ArgumentKind::Boolean => return typed_arg(symbols, value, primitive(Primitive::Boolean), scope),
        ArgumentKind::Unsigned => return typed_arg(symbols, value, primitive(Primitive::ULong), scope),
        ArgumentKind::Signed => return typed_arg(symbols, value, primitive(Primitive::LongLong), scope),
        ArgumentKind::Text if matches!(value.kind, ExprKind::Text { .. }) => {
            return untyped_arg_value(symbols, value, scope);
        }
        ArgumentKind::Text => return typed_arg(symbols, value, Type::String(None), scope),
        ArgumentKind::Word(words) => (words, false),
        ArgumentKind::Words(words) => (words, true),
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
            let error = Diagnostic::error("bad-annotation", value.span, "not a value of this annotation");
            let note = match several {
                true => format!("it must be one of {}, or several of them joined by `|`", all.join(", ")),
                false => format!("it must be one of {}", all.join(", ")),
            };
            let suggestion = match &value.kind {
                ExprKind::Name(name) => closest(&name.text(), words.iter().copied()),
                _ => None,
            };
            let suggestion = suggestion.map(|word| format!("did you mean `{word}`?"));
            symbols.reject(error.note(note).help_if(suggestion))
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
    declared: DeclaredAnnotation,
    scope: ScopeId,
) -> Vec<AnnotationArg> {
    let Some(ty) = symbols.model.annotation_types.get(declared.index).cloned() else { return Vec::new() };
    let names: Vec<(&str, bool)> =
        ty.members.iter().map(|member| (member.name.as_str(), member.default.is_none())).collect();
    let mut args = Vec::new();
    for (index, name, value) in match_parameters(symbols, annotation, &names) {
        let member = ty.members.get(index).and_then(|member| member.ty);
        let evaluated = match member {
            // Names are looked up in the annotation first, then in the scope of its use.
            Some(ty) => {
                let is_inner = match &value.kind {
                    ExprKind::Name(name) => {
                        let first = name.parts.first();
                        first.is_some_and(|part| symbols.declared(declared.inner_scope, &part.text).is_some())
                    }
                    _ => false,
                };
                let at = if is_inner { declared.inner_scope } else { scope };
                constant::constant_value(symbols, value, ty, at).map(AnnotationValue::Const)
            }
            None => untyped_arg_value(symbols, value, scope),
        };
        args.extend(evaluated.map(|evaluated| AnnotationArg { name, value: evaluated, span: value.span }));
    }
    args
}

/// Returns the arguments with the indices of their parameters. Reports arguments that match no parameter,
/// repeated ones and missing ones. `parameters` contains each name, and whether an argument is required.
fn match_parameters<'a>(
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
                    let message = format!("`@{}` has no parameter `{}`", annotation.name, name.text);
                    let error = Diagnostic::error("bad-annotation", name.span, message);
                    let suggestion = closest(&name.text, parameters.iter().map(|(known, _)| *known));
                    symbols.report(match suggestion {
                        Some(name) => error.help(format!("did you mean `{name}`?")),
                        None => error.note(parameters_note(&annotation.name, parameters)),
                    });
                    continue;
                }
            },
            None if parameters.len() == 1 && annotation.args.len() == 1 => 0,
            None => {
                let message = match parameters {
                    [] => format!("`@{}` has no parameters", annotation.name),
                    _ => format!("`@{}` has several parameters: its values must be named", annotation.name),
                };
                let error = Diagnostic::error("bad-annotation", value.span, message);
                symbols.report(if parameters.is_empty() {
                    error
                } else {
                    error.note(parameters_note(&annotation.name, parameters))
                });
                // Return early, so that missing arguments are not reported as well.
                return matched;
            }
        };
        if let Some(Some(first)) = given.get(index) {
            let message = format!("`{}` is given twice", name.as_ref().map_or("", |name| &name.text));
            let error = Diagnostic::error("bad-annotation", value.span, message);
            symbols.report(error.and(*first, "the first is here"));
            continue;
        }
        if let Some(span) = given.get_mut(index) {
            *span = Some(value.span);
        }
        matched.push((index, name.as_ref().map(|name| name.text.clone()), value));
    }
    let missing = parameters.iter().zip(&given).find(|((_, needed), given)| *needed && given.is_none());
    if let Some(((name, _), _)) = missing {
        let message = match parameters.len() {
            1 => format!("`@{}` needs a value", annotation.name),
            _ => format!("`@{}` needs a value for `{name}`", annotation.name),
        };
        symbols.report(Diagnostic::error("bad-annotation", annotation.span, message));
    }
    matched
}

fn parameters_note(annotation: &str, parameters: &[(&str, bool)]) -> String {
    let names: Vec<String> = parameters.iter().map(|(name, _)| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => format!("`@{annotation}` has no parameters"),
        names => format!("its parameters: {}", names.join(", ")),
    }
}
