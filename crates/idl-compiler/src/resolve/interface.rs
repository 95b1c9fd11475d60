//! Interfaces, operations, attributes.

use std::collections::HashMap;

use super::known::Place;
use super::scope::{Entity, Entry, ScopeId};
use super::{Progress, Resolver};
use crate::ast::{self, Head, Ident, Item, Name, Raises, TypeKind};
use crate::diagnostic::Diagnostic;
use crate::model::{Attribute, DefId, DefKind, Direction, Flavour, Interface, Operation, Param, Type};
use crate::work;

impl Resolver<'_> {
    pub(super) fn interface(
        &mut self,
        head: Head,
        flavour: Flavour,
        name: &Ident,
        names: &[Name],
        items: Vec<Item>,
        scope: ScopeId,
    ) {
        let body = Interface { flavour, ..Interface::default() };
        let (id, inside) = self.open_interface(&head, body, name, names, scope);
        if let Some(inside) = inside {
            self.items(items, inside);
        }
        self.states[id.index()].progress = Progress::Complete;
    }

    /// Starts the body of an interface with these bases. The caller fills and completes it.
    pub(super) fn open_interface(
        &mut self,
        head: &Head,
        body: Interface,
        name: &Ident,
        names: &[Name],
        scope: ScopeId,
    ) -> (DefId, Option<ScopeId>) {
        // Bases are looked up in the enclosing scope, before the interface's own name counts as defined.
        let unknown = self.unknown_names();
        let bases = self.bases(names, name, "base", scope);
        self.check_base_flavours(body.flavour, name, names, &bases);
        let (id, _) = self.begin(head, name, DefKind::Interface(body), scope);
        if let DefKind::Interface(interface) = &mut self.model.defs[id.index()].kind {
            interface.bases = bases;
        }
        self.note_unknown_bases(id, unknown);
        self.set_depth(id);
        self.check_inherited(id, name);
        (id, self.states[id.index()].scope)
    }

    /// Returns the interfaces of the list that are defined and listed once. `role` is `base` or `supported`.
    pub(super) fn bases(
        &mut self,
        names: &[Name],
        derived: &Ident,
        role: &str,
        scope: ScopeId,
    ) -> Vec<DefId> {
        let mut bases: Vec<DefId> = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let Some(entity) = self.lookup(name, scope) else { continue };
            let Some(base) = self.as_interface(entity) else {
                let error = self.wrong_kind(entity, name, "not-an-interface", "an interface");
                self.report(error);
                continue;
            };
            if !self.check_base(base, name, derived, (role, "interface"), scope) {
                continue;
            }
            if bases.contains(&base) {
                let message = format!("{role} interface `{}` is listed twice", name.text());
                let mut error = Diagnostic::error("duplicate-base", name.span, message);
                if let Some(first) =
                    names.get(..index).and_then(|before| before.iter().find(|n| n.text() == name.text()))
                {
                    error = error.and(first.span, "the first is here");
                }
                self.report(error);
                continue;
            }
            bases.push(base);
        }
        bases
    }

    /// Returns the interface of an entity, resolving typedefs.
    pub(super) fn as_interface(&mut self, entity: Entity) -> Option<DefId> {
        let Entity::Def(def) = entity else { return None };
        let ty = self.intern(Type::Named(def));
        match self.model.stripped(ty) {
            Type::Named(def) if self.model.interface(*def).is_some() => Some(*def),
            _ => None,
        }
    }

    /// Checks that no two bases have different operations, attributes or state members of the same name.
    pub(super) fn check_inherited(&mut self, id: DefId, name: &Ident) {
        let mut seen: HashMap<String, (DefId, Entry)> = HashMap::new();
        let mut errors = Vec::new();
        let inheritable = match self.model.value(id) {
            Some(_) => "operations, attributes or state members",
            None => "operations or attributes",
        };
        let operations = self.model.all_members(id).filter(|def| def.parent != Some(id));
        let operations = operations.filter_map(|def| Some((def.parent?, &def.name)));
        let state = self.model.all_bases(id).into_iter().flat_map(|base| {
            let state = self.model.value(base).map_or(&[][..], |value| &value.state);
            state.iter().map(move |state| (base, &state.member.name))
        });
        work::inherited(self.model.all_bases(id).len());
        for (owner, name_of_member) in operations.chain(state) {
            work::inherited(1);
            let Some(scope) = self.states[owner.index()].scope else { continue };
            let lower = name_of_member.to_ascii_lowercase();
            let Some(entry) = self.scope(scope).local(&lower) else { continue };
            if let Some((first, earlier)) = seen.get(&lower).filter(|(first, _)| *first != owner) {
                let message = format!("`{}` inherits two {} named `{}`", name.text, inheritable, entry.name);
                let error = Diagnostic::error("inheritance-clash", name.span, message);
                let error = error.and(earlier.span, format!("one from `{}`", self.model.scoped_name(*first)));
                let error = error.and(entry.span, format!("one from `{}`", self.model.scoped_name(owner)));
                errors.push(self.implied.explain(error, [earlier, entry]));
                continue;
            }
            seen.insert(lower, (owner, entry.clone()));
        }
        errors.into_iter().for_each(|error| self.report(error));
    }

    pub(super) fn operation(&mut self, head: Head, mut operation: ast::Operation, scope: ScopeId) {
        let result = match operation.result.kind {
            TypeKind::Void => Some(None),
            _ => self.simple_type(&operation.result, scope).map(Some),
        };
        let body = Operation {
            oneway: false,
            result: None,
            params: Vec::new(),
            raises: Vec::new(),
            raises_any: false,
            context: operation.context.iter().map(|pattern| pattern.text.clone()).collect(),
        };
        let id = self.new_def(&head, &operation.name, DefKind::Operation(body), scope);
        if self.declare_local(scope, &operation.name, Entity::Def(id), "operation") {
            self.add_child(id, scope);
        }
        // IDL 4 has an annotation in addition to the keyword.
        let annotations = &self.model.def(id).annotations;
        let annotation = annotations.get("oneway").filter(|_| annotations.is_on("oneway"));
        operation.oneway = operation.oneway.or(annotation.map(|annotation| annotation.span));
        let oneway = operation.oneway.is_some();
        let inside = self.inner_scope(None, scope);
        self.check_oneway(&operation);
        self.check_context(&operation);
        let params: Vec<_> =
            operation.params.into_iter().filter_map(|param| self.param(param, inside)).collect();
        self.check_streams(&params);
        let raises_any = self.raises_native(operation.raises.as_ref(), inside);
        let raises = self.raises(operation.raises.as_ref(), inside);
        if let DefKind::Operation(body) = &mut self.model.defs[id.index()].kind {
            (body.result, body.params, body.raises) = (result.flatten(), params, raises);
            (body.oneway, body.raises_any) = (oneway, raises_any);
        }
    }

    pub(super) fn param(&mut self, param: ast::Param, scope: ScopeId) -> Option<Param> {
        let ty = self.simple_type(&param.ty, scope);
        let declared = self.declare_local(scope, &param.name, Entity::Member, "parameter");
        let mut annotations = self.annotations(&param.head, scope, Place::Param);
        if let Some(ty) = ty {
            self.act_on(&param.head, &mut annotations, ty, scope);
        }
        self.check_non_nil(&annotations, ty);
        let ty = ty.filter(|_| declared)?;
        let Ident { text, span } = param.name;
        Some(Param { name: text, direction: param.direction, ty, docs: param.head.docs, annotations, span })
    }

    fn check_oneway(&mut self, operation: &ast::Operation) {
        let Some(oneway) = operation.oneway else { return };
        let name = &operation.name.text;
        let mut wrong = Vec::new();
        if !matches!(operation.result.kind, TypeKind::Void) {
            wrong.push((operation.result.span, format!("oneway operation `{name}` has a result")));
        }
        for param in operation.params.iter().filter(|param| param.direction != Direction::In) {
            let word = if param.direction == Direction::Out { "out" } else { "inout" };
            let message = format!("oneway operation `{name}` has the {word} parameter `{}`", param.name.text);
            wrong.push((param.direction_span, message));
        }
        if let Some(raises) = &operation.raises {
            wrong.push((raises.span, format!("oneway operation `{name}` raises exceptions")));
        }
        for (span, message) in wrong {
            let error = Diagnostic::error("oneway", span, message).and(oneway, "declared oneway here");
            self.report(error.note("a oneway operation has no reply that could carry anything back"));
        }
    }

    /// Checks the patterns under `context`: names of properties, or prefixes of them followed by `*`.
    fn check_context(&mut self, operation: &ast::Operation) {
        let streamed = || operation.params.iter().flat_map(|param| &param.head.annotations);
        if let (Some(first), Some(stream)) =
            (operation.context.first(), streamed().find(|annotation| annotation.name == "stream"))
        {
            let message = format!("`@stream` in operation `{}`, which sends a context", operation.name.text);
            let error = Diagnostic::error("bad-annotation", stream.span, message);
            let error = error.and(first.span, "the context follows the arguments");
            self.report(error.note("what comes behind a stream could be read only after all of it"));
        }
        for (index, pattern) in operation.context.iter().enumerate() {
            let name = pattern.text.strip_suffix('*').unwrap_or(&pattern.text);
            let fits = name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
            if !fits {
                let message = format!("`{}` is not the name of a property", pattern.text);
                let error = Diagnostic::error("bad-context", pattern.span, message);
                self.report(error.note(
                    "a letter, then letters, digits, `_` and `.`; with a `*` at the end, the beginning of names",
                ));
            }
            let earlier = operation.context.iter().take(index).find(|earlier| earlier.text == pattern.text);
            if let Some(earlier) = earlier {
                let message = format!("property `{}` is listed twice", pattern.text);
                let warning = Diagnostic::warning("bad-context", pattern.span, message);
                self.report(warning.and(earlier.span, "the first is here"));
            }
        }
    }

    pub(super) fn attribute(&mut self, head: Head, attribute: ast::Attribute, scope: ScopeId) {
        let body = self.attribute_body(&attribute, scope);
        self.attributes(&head, body.as_ref(), &attribute.names, scope);
    }

    /// Resolves the common parts of attributes of one declaration; `None` if the type is invalid.
    pub(super) fn attribute_body(&mut self, attribute: &ast::Attribute, scope: ScopeId) -> Option<Attribute> {
        let ty = self.simple_type(&attribute.ty, scope);
        let get_raises = self.raises(attribute.get_raises.as_ref(), scope);
        let set_raises = self.raises(attribute.set_raises.as_ref(), scope);
        ty.map(|ty| Attribute { readonly: attribute.readonly, ty, get_raises, set_raises })
    }

    /// Declares the attributes of one declaration. With `None`, an error was already reported.
    pub(super) fn attributes(
        &mut self,
        head: &Head,
        body: Option<&Attribute>,
        names: &[Ident],
        scope: ScopeId,
    ) {
        for name in names {
            let Some(body) = body else {
                self.declare_local(scope, name, Entity::Bad, "attribute");
                continue;
            };
            let id = self.new_def(head, name, DefKind::Attribute(body.clone()), scope);
            self.act_on_def(head, id, body.ty, scope);
            if self.declare_local(scope, name, Entity::Def(id), "attribute") {
                self.add_child(id, scope);
            }
        }
    }

    /// Returns whether a native type is listed, which stands for any user exception.
    fn raises_native(&self, raises: Option<&Raises>, scope: ScopeId) -> bool {
        raises.is_some_and(|raises| raises.names.iter().any(|name| self.is_native(self.known(name, scope))))
    }

    fn is_native(&self, entity: Option<Entity>) -> bool {
        matches!(entity, Some(Entity::Def(def)) if matches!(self.model.def(def).kind, DefKind::Native))
    }

    /// Returns the exceptions of a clause, each once.
    pub(super) fn raises(&mut self, raises: Option<&Raises>, scope: ScopeId) -> Vec<DefId> {
        let mut exceptions = Vec::new();
        for name in raises.map_or(&[][..], |raises| &raises.names) {
            let Some(entity) = self.lookup(name, scope) else { continue };
            match entity {
                Entity::Def(def) if matches!(self.model.def(def).kind, DefKind::Exception(_)) => {
                    if exceptions.contains(&def) {
                        let message = format!("exception `{}` is listed twice", name.text());
                        self.report(Diagnostic::warning("duplicate-raises", name.span, message));
                    } else {
                        exceptions.push(def);
                    }
                }
                _ if self.is_native(Some(entity)) => {}
                _ => {
                    let error = self.wrong_kind(entity, name, "not-an-exception", "an exception");
                    self.report(error);
                }
            }
        }
        exceptions
    }
}
