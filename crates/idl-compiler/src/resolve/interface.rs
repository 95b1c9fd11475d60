//! Interfaces, operations and attributes.

use std::collections::HashMap;

use super::known::AnnotatedKind;
use super::scope::{Entity, Entry, ScopeId};
use super::symbols::{Progress, Resolver, Symbols};
use super::{annotation, flavour, typed_annotation, value};
use crate::ast::{self, Ident, Item, Name, Preamble, Raises, TypeKind};
use crate::diagnostic::Diagnostic;
use crate::model::{Attribute, DefId, DefKind, Direction, Flavour, Interface, Model, Operation, Param};
use crate::work;

impl Resolver<'_> {
    pub(super) fn interface(
        &mut self,
        preamble: Preamble,
        flavour: Flavour,
        name: &Ident,
        base_names: &[Name],
        items: Vec<Item>,
        scope: ScopeId,
    ) {
        let body = Interface { flavour, ..Interface::default() };
        let (id, inside) = self.open_interface(&preamble, body, name, base_names, scope);
        if let Some(inside) = inside {
            self.items(items, inside);
        }
        self.symbols.states[id.index()].progress = Progress::Complete;
    }

    /// Starts the body of an interface with these bases. The caller fills and completes it.
    pub(super) fn open_interface(
        &mut self,
        preamble: &Preamble,
        body: Interface,
        name: &Ident,
        base_names: &[Name],
        scope: ScopeId,
    ) -> (DefId, Option<ScopeId>) {
        // Bases are looked up in the enclosing scope, before the interface's own name counts as defined.
        let unknown = self.symbols.templates.unknown_name_count;
        let bases = resolve_bases(&mut self.symbols, base_names, name, "base", scope);
        flavour::check_base_flavours(&mut self.symbols, body.flavour, name, base_names, &bases);
        let (id, _) = self.begin(preamble, name, DefKind::Interface(body), scope);
        if let DefKind::Interface(interface) = &mut self.symbols.model.defs[id.index()].kind {
            interface.bases = bases;
        }
        self.symbols.mark_unknown_bases(id, unknown);
        self.symbols.set_depth(id);
        check_inherited(&mut self.symbols, id, name);
        (id, self.symbols.states[id.index()].scope)
    }

    pub(super) fn operation(&mut self, preamble: Preamble, mut operation: ast::Operation, scope: ScopeId) {
        let result = match operation.result.kind {
            TypeKind::Void => Some(None),
            _ => self.simple_type(&operation.result, scope).map(Some),
        };
        let context = operation.context.iter().map(|pattern| pattern.text.clone()).collect();
        let (params, raises, raises_any) = (Vec::new(), Vec::new(), false);
        let body = Operation { oneway: false, result: None, params, raises, raises_any, context };
        let id = self.new_def(&preamble, &operation.name, DefKind::Operation(body), scope);
        self.symbols.declare_local_def(id, scope, &operation.name, "operation");
        // IDL 4 has the annotation `@oneway` in addition to the keyword.
        let annotations = &self.symbols.model.def(id).annotations;
        let annotation = annotations.get("oneway").filter(|_| annotations.is_on("oneway"));
        operation.oneway = operation.oneway.or(annotation.map(|annotation| annotation.span));
        let oneway = operation.oneway.is_some();
        let inside = self.symbols.open_inner_scope(None, scope);
        check_oneway(&mut self.symbols, &operation);
        check_context(&mut self.symbols, &operation);
        let params: Vec<_> =
            operation.params.into_iter().filter_map(|param| self.param(param, inside)).collect();
        annotation::check_streams(&mut self.symbols, &params);
        let raises_any = raises_native(&self.symbols, operation.raises.as_ref(), inside);
        let raises = resolve_raises(&mut self.symbols, operation.raises.as_ref(), inside);
        if let DefKind::Operation(body) = &mut self.symbols.model.defs[id.index()].kind {
            (body.result, body.params, body.raises) = (result.flatten(), params, raises);
            (body.oneway, body.raises_any) = (oneway, raises_any);
        }
    }

    pub(super) fn param(&mut self, param: ast::Param, scope: ScopeId) -> Option<Param> {
        let ty = self.simple_type(&param.ty, scope);
        let declared = self.symbols.declare_local(scope, &param.name, Entity::Member, "parameter");
        let mut annotations = self.annotations(&param.preamble, scope, AnnotatedKind::Param);
        if let Some(ty) = ty {
            typed_annotation::evaluate(&mut self.symbols, &param.preamble, &mut annotations, ty, scope);
        }
        annotation::check_non_nil(&mut self.symbols, &annotations, ty);
        let ty = ty.filter(|_| declared)?;
        let Ident { text, span } = param.name;
        Some(Param {
            name: text,
            direction: param.direction,
            ty,
            docs: param.preamble.docs,
            annotations,
            span,
        })
    }

    pub(super) fn attribute(&mut self, preamble: Preamble, attribute: ast::Attribute, scope: ScopeId) {
        let body = self.attribute_body(&attribute, scope);
        self.attributes(&preamble, body.as_ref(), &attribute.names, scope);
    }

    /// Resolves what the attributes of one declaration have in common; `None` if the type is invalid.
    pub(super) fn attribute_body(&mut self, attribute: &ast::Attribute, scope: ScopeId) -> Option<Attribute> {
        let ty = self.simple_type(&attribute.ty, scope);
        let get_raises = resolve_raises(&mut self.symbols, attribute.get_raises.as_ref(), scope);
        let set_raises = resolve_raises(&mut self.symbols, attribute.set_raises.as_ref(), scope);
        ty.map(|ty| Attribute { readonly: attribute.readonly, ty, get_raises, set_raises })
    }

    /// Declares the attributes of one declaration. `body` is `None` if an error was already reported.
    pub(super) fn attributes(
        &mut self,
        preamble: &Preamble,
        body: Option<&Attribute>,
        names: &[Ident],
        scope: ScopeId,
    ) {
        for name in names {
            let Some(body) = body else {
                self.symbols.declare_local(scope, name, Entity::Bad, "attribute");
                continue;
            };
            let id = self.new_def(preamble, name, DefKind::Attribute(body.clone()), scope);
            typed_annotation::evaluate_def(&mut self.symbols, preamble, id, body.ty, scope);
            self.symbols.declare_local_def(id, scope, name, "attribute");
        }
    }
}

/// Returns the valid interfaces of the list, each once. `role` is `base` or `supported`.
pub(super) fn resolve_bases(
    symbols: &mut Symbols<'_>,
    names: &[Name],
    derived: &Ident,
    role: &str,
    scope: ScopeId,
) -> Vec<DefId> {
    let mut bases: Vec<DefId> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let Some(entity) = symbols.lookup(name, scope) else { continue };
        let Some(base) = interface_of(symbols, entity) else {
            let error = symbols.wrong_kind(entity, name, "not-an-interface", "an interface");
            symbols.report(error);
            continue;
        };
        if !value::check_base(symbols, base, name, derived, (role, "interface"), scope) {
            continue;
        }
        if bases.contains(&base) {
            report_duplicate_base(symbols, name, &names[..index], &format!("{role} interface"));
            continue;
        }
        bases.push(base);
    }
    bases
}

/// Reports a base that was listed before. `what` describes the base.
pub(super) fn report_duplicate_base(symbols: &mut Symbols<'_>, name: &Name, listed: &[Name], what: &str) {
    let message = format!("{what} `{}` is listed twice", name.text());
    let first = listed.iter().find(|listed| listed.text() == name.text()).map(|first| first.span);
    let error = Diagnostic::error("duplicate-base", name.span, message);
    symbols.report(error.and_if(first, "the first is here"));
}

pub(super) fn interface_of(symbols: &mut Symbols<'_>, entity: Entity) -> Option<DefId> {
    symbols.stripped_def(entity).filter(|def| symbols.model.interface(*def).is_some())
}

/// Checks that no two bases have different operations, attributes or state members of the same name.
pub(super) fn check_inherited(symbols: &mut Symbols<'_>, id: DefId, name: &Ident) {
    let mut seen: HashMap<String, (DefId, Entry)> = HashMap::new();
    let mut errors = Vec::new();
    let inheritable = match symbols.model.value(id) {
        Some(_) => "operations, attributes or state members",
        None => "operations or attributes",
    };
    let operations = symbols.model.all_members(id).filter(|def| def.parent != Some(id));
    let operations = operations.filter_map(|def| Some((def.parent?, &def.name)));
    let state = symbols.model.all_bases(id).into_iter().flat_map(|base| {
        let state = symbols.model.value(base).map_or(&[][..], |value| &value.state);
        state.iter().map(move |state| (base, &state.member.name))
    });
    work::count_inherited(symbols.model.all_bases(id).len());
    for (owner, name_of_member) in operations.chain(state) {
        work::count_inherited(1);
        let Some(scope) = symbols.states[owner.index()].scope else { continue };
        let lower = name_of_member.to_ascii_lowercase();
        let Some(entry) = symbols.scope(scope).local(&lower) else { continue };
        if let Some((first, earlier)) = seen.get(&lower).filter(|(first, _)| *first != owner) {
            let message = format!("`{}` inherits two {} named `{}`", name.text, inheritable, entry.name);
            let error = Diagnostic::error("inheritance-clash", name.span, message);
            let error = error.and(earlier.span, format!("one from `{}`", symbols.model.scoped_name(*first)));
            let error = error.and(entry.span, format!("one from `{}`", symbols.model.scoped_name(owner)));
            errors.push(symbols.implied.with_origin_notes(error, [earlier, entry]));
            continue;
        }
        seen.insert(lower, (owner, entry.clone()));
    }
    errors.into_iter().for_each(|error| symbols.report(error));
}

fn check_oneway(symbols: &mut Symbols<'_>, operation: &ast::Operation) {
    let Some(oneway) = operation.oneway else { return };
    let name = &operation.name.text;
    let mut wrong = Vec::new();
    if !matches!(operation.result.kind, TypeKind::Void) {
        wrong.push((operation.result.span, format!("oneway operation `{name}` cannot have a result")));
    }
    for param in operation.params.iter().filter(|param| param.direction != Direction::In) {
        let word = param.direction.keyword();
        let message =
            format!("oneway operation `{name}` cannot have the {word} parameter `{}`", param.name.text);
        wrong.push((param.direction_span, message));
    }
    if let Some(raises) = &operation.raises {
        wrong.push((raises.span, format!("oneway operation `{name}` cannot raise exceptions")));
    }
    for (span, message) in wrong {
        let error = Diagnostic::error("oneway", span, message).and(oneway, "declared oneway here");
        symbols.report(error.note("a oneway operation has no reply that could return anything"));
    }
}

/// Checks the `context` clause: names of properties, or prefixes followed by `*`, and no stream besides it.
fn check_context(symbols: &mut Symbols<'_>, operation: &ast::Operation) {
    let param_annotations = || operation.params.iter().flat_map(|param| &param.preamble.annotations);
    if let (Some(first), Some(stream)) =
        (operation.context.first(), param_annotations().find(|annotation| annotation.name == "stream"))
    {
        let name = &operation.name.text;
        let message = format!("`@stream` is not allowed in operation `{name}`, which sends a context");
        let error = Diagnostic::error("bad-annotation", stream.span, message);
        let error = error.and(first.span, "the context follows the arguments");
        symbols.report(error.note("the context could be read only after the whole stream"));
    }
    for (index, pattern) in operation.context.iter().enumerate() {
        let name = pattern.text.strip_suffix('*').unwrap_or(&pattern.text);
        let fits = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
        if !fits {
            let message = format!("`{}` is not the name of a property", pattern.text);
            let error = Diagnostic::error("bad-context", pattern.span, message);
            symbols.report(error.note(
                "a name is a letter, then letters, digits, `_` and `.`; with a `*` at the end, it means all names that begin like it",
            ));
        }
        let earlier = operation.context.iter().take(index).find(|earlier| earlier.text == pattern.text);
        if let Some(earlier) = earlier {
            let message = format!("property `{}` is listed twice", pattern.text);
            let warning = Diagnostic::warning("bad-context", pattern.span, message);
            symbols.report(warning.and(earlier.span, "the first is here"));
        }
    }
}

/// Returns whether a native type is listed, which allows any user exception.
fn raises_native(symbols: &Symbols<'_>, raises: Option<&Raises>, scope: ScopeId) -> bool {
    raises.is_some_and(|raises| {
        raises.names.iter().any(|name| is_native(&symbols.model, symbols.lookup_silently(name, scope)))
    })
}

fn is_native(model: &Model, entity: Option<Entity>) -> bool {
    matches!(entity, Some(Entity::Def(def)) if matches!(model.def(def).kind, DefKind::Native))
}

/// Returns the exceptions of a clause, each once. Native types are left out.
pub(super) fn resolve_raises(
    symbols: &mut Symbols<'_>,
    raises: Option<&Raises>,
    scope: ScopeId,
) -> Vec<DefId> {
    let mut exceptions = Vec::new();
    for name in raises.map_or(&[][..], |raises| &raises.names) {
        let Some(entity) = symbols.lookup(name, scope) else { continue };
        match entity {
            Entity::Def(def) if matches!(symbols.model.def(def).kind, DefKind::Exception(_)) => {
                if exceptions.contains(&def) {
                    let message = format!("exception `{}` is listed twice", name.text());
                    symbols.report(Diagnostic::warning("duplicate-raises", name.span, message));
                } else {
                    exceptions.push(def);
                }
            }
            _ if is_native(&symbols.model, Some(entity)) => {}
            _ => {
                let error = symbols.wrong_kind(entity, name, "not-an-exception", "an exception");
                symbols.report(error);
            }
        }
    }
    exceptions
}
