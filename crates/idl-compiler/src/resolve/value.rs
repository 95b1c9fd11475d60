//! Value types and value boxes.

use super::known::Place;
use super::scope::{Entity, ScopeId};
use super::{Progress, Resolver, article};
use crate::ast::{self, Factory as FactoryItem, Head, Ident, Name, State};
use crate::diagnostic::Diagnostic;
use crate::model::{
    DefId, DefKind, Factory, Flavour, Member, StateMember, Type, Value, ValueBox, ValueModifier,
};

/// The description of a factory in messages. Its name is not inherited.
pub(super) const FACTORY: &str = "factory";

impl Resolver<'_> {
    pub(super) fn value(&mut self, head: Head, value: ast::Value, scope: ScopeId) {
        let ast::Value { modifier, is_event, name, .. } = &value;
        // Bases are looked up in the enclosing scope, before the value type's own name counts as defined.
        let unknown = self.unknown_names();
        let mut bases = self.value_bases(&value, scope);
        let supports = self.bases(&value.supports, name, "supported", scope);
        let is_abstract = *modifier == ValueModifier::Abstract;
        self.check_forward_value(name, is_abstract, *is_event, scope);
        let body = Value { modifier: *modifier, is_event: *is_event, ..Value::default() };
        let (id, declared) = self.begin(&head, name, DefKind::Value(body), scope);
        let truncatable = self.check_truncatable(&value, &bases);
        self.check_supports(&value, &bases, &supports);
        if *is_event {
            self.add_event_base(name, &mut bases);
        }
        if let DefKind::Value(body) = &mut self.model.defs[id.index()].kind {
            let modifier = *modifier;
            *body = Value { modifier, is_event: *is_event, truncatable, bases, supports, ..Value::default() };
        }
        self.note_unknown_bases(id, unknown);
        self.set_depth(id);
        self.check_inherited(id, name);
        if let Some(inside) = self.states[id.index()].scope {
            self.items(value.items, inside);
        }
        self.states[id.index()].progress = Progress::Complete;
        if value.is_event && declared {
            self.event_consumer(id, &value.name, scope);
        }
    }

    pub(super) fn forward_value(&mut self, name: &Ident, is_abstract: bool, is_event: bool, scope: ScopeId) {
        self.check_forward_value(name, is_abstract, is_event, scope);
        let modifier = if is_abstract { ValueModifier::Abstract } else { ValueModifier::Plain };
        self.forward(name, DefKind::Value(Value { modifier, is_event, ..Value::default() }), scope);
        if is_event {
            self.forward_consumer(name, scope);
        }
    }

    /// Checks that all declarations of a value type have the same kind.
    fn check_forward_value(&mut self, name: &Ident, is_abstract: bool, is_event: bool, scope: ScopeId) {
        let Some(Entity::Def(id)) = self.declared(scope, &name.text) else { return };
        let def = self.model.def(id);
        let DefKind::Value(earlier) = &def.kind else { return };
        let was_abstract = earlier.modifier == ValueModifier::Abstract;
        if def.name != name.text || (was_abstract == is_abstract && earlier.is_event == is_event) {
            return;
        }
        let kind = |is_abstract, is_event| {
            let what = if is_event { "event type" } else { "value type" };
            format!("{} {what}", if is_abstract { "an abstract" } else { "a concrete" })
        };
        let message = format!("`{}` is declared as {} here", name.text, kind(is_abstract, is_event));
        let error = Diagnostic::error("forward-kind", name.span, message);
        self.report(error.and(def.span, format!("and as {} here", kind(was_abstract, earlier.is_event))));
    }

    /// Returns the bases that are value types, defined, listed once and allowed here.
    fn value_bases(&mut self, value: &ast::Value, scope: ScopeId) -> Vec<DefId> {
        let mut bases: Vec<DefId> = Vec::new();
        let mut concrete: Option<&Name> = None;
        for (index, name) in value.bases.iter().enumerate() {
            let Some(entity) = self.lookup(name, scope) else { continue };
            let Some(base) = self.as_value(entity) else {
                let mut error = self.wrong_kind(entity, name, "not-a-value", "a value type");
                if let Entity::Def(def) = entity
                    && self.model.interface(def).is_some()
                {
                    error = error.help(format!(
                        "a value type does not inherit from an interface; write `supports {}`",
                        name.text()
                    ));
                }
                self.report(error);
                continue;
            };
            if !self.check_base(base, name, &value.name, ("base", "value type"), scope) {
                continue;
            }
            if bases.contains(&base) {
                let message = format!("base value type `{}` is listed twice", name.text());
                let first = value.bases.iter().take(index).find(|n| n.text() == name.text());
                let mut error = Diagnostic::error("duplicate-base", name.span, message);
                if let Some(first) = first {
                    error = error.and(first.span, "the first is here");
                }
                self.report(error);
                continue;
            }
            if !self.model.is_abstract_value(base)
                && !self.check_concrete(value, name, index, base, &mut concrete)
            {
                continue;
            }
            bases.push(base);
        }
        bases
    }

    /// Checks that a base with state is the only one, is listed first, and does not belong to an abstract
    /// value type.
    fn check_concrete<'v>(
        &mut self,
        value: &ast::Value,
        name: &'v Name,
        index: usize,
        base: DefId,
        concrete: &mut Option<&'v Name>,
    ) -> bool {
        let text = name.text();
        let error = if let (ValueModifier::Abstract, Some(modifier)) = (value.modifier, value.modifier_span) {
            let message = format!(
                "abstract value type `{}` inherits from `{text}`, which is not abstract",
                value.name.text
            );
            Diagnostic::error("value-inheritance", name.span, message)
                .and(modifier, "declared abstract here")
                .and(self.model.def(base).span, format!("`{text}` is declared here"))
        } else if let Some(first) = concrete {
            let message =
                format!("`{}` inherits from two value types that are not abstract", value.name.text);
            Diagnostic::error("value-inheritance", name.span, message)
                .and(first.span, "the first is here")
                .note("a value has one state, which it inherits from one base; all others are abstract")
        } else {
            *concrete = Some(name);
            if index == 0 {
                return true;
            }
            let message = format!("base `{text}` is not abstract and not the first");
            Diagnostic::error("value-inheritance", name.span, message)
                .help("list the base that is not abstract before the abstract ones")
        };
        self.report(error);
        false
    }

    /// Checks that a base, or a supported interface, is defined before the derived type.
    pub(super) fn check_base(
        &mut self,
        base: DefId,
        name: &Name,
        derived: &Ident,
        (role, what): (&str, &str),
        scope: ScopeId,
    ) -> bool {
        if self.states[base.index()].progress == Progress::Complete {
            return true;
        }
        let base = self.model.def(base);
        let (message, label) = match base.name == derived.text && base.parent == self.scope(scope).owner {
            true => (format!("{what} `{}` inherits from itself", derived.text), "declared here"),
            false => (format!("{role} {what} `{}` is not defined yet", name.text()), "only declared here"),
        };
        let error = Diagnostic::error("incomplete", name.span, message).and(base.span, label);
        self.report(error.help(match role {
            "base" => format!("the definition of a base comes before the {what}s derived from it"),
            _ => format!(
                "the definition of {} {what} comes before the value types that support it",
                article(role)
            ),
        }));
        false
    }

    /// Returns the value type of an entity, resolving typedefs. A box is not one.
    pub(super) fn as_value(&mut self, entity: Entity) -> Option<DefId> {
        let Entity::Def(def) = entity else { return None };
        let ty = self.intern(Type::Named(def));
        match self.model.stripped(ty) {
            Type::Named(def) if self.model.value(*def).is_some() => Some(*def),
            _ => None,
        }
    }

    /// Checks `truncatable`: receivers that do not know the value type keep the part of its first base.
    fn check_truncatable(&mut self, value: &ast::Value, bases: &[DefId]) -> bool {
        let Some(span) = value.truncatable else { return false };
        let custom = value.modifier == ValueModifier::Custom;
        let error = if custom {
            let message = format!("`{}` is custom and truncatable", value.name.text);
            let error = Diagnostic::error("truncatable", span, message);
            let error = error.note(
                "what a custom value sends only its own type can read, so no part of it can be left out",
            );
            match value.modifier_span {
                Some(modifier) => error.and(modifier, "declared custom here"),
                None => error,
            }
        } else if value.modifier == ValueModifier::Abstract {
            let message = format!("`{}` is abstract and truncatable", value.name.text);
            Diagnostic::error("truncatable", span, message)
                .note("an abstract value type has no state to cut off")
        } else if bases.first().is_some_and(|base| self.model.is_abstract_value(*base)) {
            let message = "`truncatable` before an abstract base";
            Diagnostic::error("truncatable", span, message)
                .note("only a base with state can be what is left of a value")
        } else if let Some(base) = bases.first().filter(|base| self.model.is_custom(**base)) {
            let message = format!("`truncatable` before the custom base `{}`", self.model.scoped_name(*base));
            Diagnostic::error("truncatable", span, message).and(
                self.model.def(*base).span,
                "the program marshals its state, and that of what derives from it",
            )
        } else {
            return !bases.is_empty();
        };
        self.report(error.help("remove `truncatable`"));
        false
    }

    /// Checks that a value type supports at most one interface that is not abstract, either its own or one
    /// that its bases support. That interface derives from all others.
    fn check_supports(&mut self, value: &ast::Value, bases: &[DefId], supports: &[DefId]) {
        let plain = |resolver: &Self, id: &DefId| {
            resolver.model.interface(*id).is_some_and(|interface| interface.flavour != Flavour::Abstract)
        };
        let own: Vec<DefId> = supports.iter().copied().filter(|id| plain(self, id)).collect();
        let name = &value.name;
        let place = |id: &DefId| value.supports.get(supports.iter().position(|other| other == id)?);
        if let [first, second, ..] = own.as_slice() {
            let message = format!("`{}` supports two interfaces that are not abstract", name.text);
            let span = place(second).map_or(name.span, |name| name.span);
            let mut error = Diagnostic::error("supports", span, message);
            if let Some(first) = place(first) {
                error = error.and(first.span, "the first is here");
            }
            self.report(error.help("declare an interface that inherits from both, and support that one"));
            return;
        }
        if let Some(only) = own.first().filter(|only| supports.first() != Some(only)) {
            let (text, span) =
                place(only).map_or((String::new(), name.span), |name| (name.text(), name.span));
            let message = format!("supported interface `{text}` is not abstract and not the first");
            let error = Diagnostic::error("supports", span, message);
            self.report(error.help("list the interface that is not abstract before the abstract ones"));
        }
        let mut inherited: Vec<(DefId, DefId)> = Vec::new();
        for base in bases {
            let mut owners = self.model.all_bases(*base);
            owners.push(*base);
            for owner in owners {
                let of_owner = self.model.value(owner).map_or(&[][..], |value| &value.supports);
                let of_owner = of_owner.iter().copied().filter(|id| plain(self, id));
                inherited.extend(of_owner.map(|interface| (owner, interface)));
            }
        }
        let covers = |resolver: &Self, id: DefId| {
            let above = resolver.model.all_bases(id);
            inherited.iter().find(|(_, other)| *other != id && !above.contains(other)).copied()
        };
        let mut candidates = own.iter().copied().chain(inherited.iter().map(|(_, interface)| *interface));
        let Some(first) = candidates.next() else { return };
        let Some((owner, other)) = covers(self, first) else { return };
        if own.is_empty() && candidates.any(|candidate| covers(self, candidate).is_none()) {
            return;
        }
        let (first_name, other_name) = (self.model.scoped_name(first), self.model.scoped_name(other));
        let owner = self.model.def(owner);
        let error = match own.is_empty() {
            true => {
                let message = format!(
                    "`{}` inherits support of the unrelated interfaces `{first_name}` and `{other_name}`",
                    name.text
                );
                Diagnostic::error("supports", name.span, message)
            }
            false => {
                let message = format!(
                    "supported interface `{first_name}` does not derive from `{other_name}`, which a base supports"
                );
                let span = place(&first).map_or(name.span, |name| name.span);
                Diagnostic::error("supports", span, message)
            }
        };
        let error = error.and(owner.span, format!("`{}` supports `{other_name}`", owner.name));
        self.report(error.help("support an interface that derives from all that the bases support"));
    }

    /// Resolves `valuetype Name T;`.
    pub(super) fn value_box(&mut self, head: Head, name: &Ident, ty: ast::TypeSpec, scope: ScopeId) {
        let span = ty.span;
        let ty = self.type_spec(ty, scope);
        if let Some(ty) = ty.filter(|ty| self.model.is_value(*ty)) {
            let message =
                format!("value box `{}` holds `{}`, a value already", name.text, self.model.describe(ty));
            let error = Diagnostic::error("box-of-value", span, message);
            self.report(error.note("a box makes a value of what is none").help("use the value type itself"));
        }
        let Some(ty) = ty else {
            self.declare(scope, name, Entity::Bad, "value box");
            return;
        };
        let id = self.new_def(&head, name, DefKind::ValueBox(ValueBox { ty }), scope);
        self.act_on_def(&head, id, ty, scope);
        self.set_depth(id);
        if self.declare(scope, name, Entity::Def(id), "value box") {
            self.add_child(id, scope);
        }
    }

    /// Resolves state members of the value type that owns the scope.
    pub(super) fn state(&mut self, head: &Head, state: State, scope: ScopeId) {
        let base = self.type_spec(state.ty, scope);
        for declarator in state.declarators {
            let ty = base.and_then(|base| self.array(base, &declarator.dims, scope));
            let Ident { text, span } = declarator.name.clone();
            let declared = self.declare_local(scope, &declarator.name, Entity::Member, "state member");
            if declared {
                self.check_stateless(scope, &declarator.name, "state");
            }
            let Some(ty) = ty.filter(|_| declared) else { continue };
            let mut annotations = self.annotations(head, scope, Place::State);
            self.act_on(head, &mut annotations, ty, scope);
            self.check_non_nil(&annotations, Some(ty));
            let member = Member { name: text, ty, docs: head.docs.clone(), annotations, span };
            if let Some(value) = self.value_around(scope) {
                value.state.push(StateMember { visibility: state.visibility, member });
            }
        }
    }

    pub(super) fn factory(&mut self, head: Head, factory: FactoryItem, scope: ScopeId) {
        let FactoryItem { name, params, raises } = factory;
        let declared = self.declare_local(scope, &name, Entity::Member, FACTORY);
        if declared {
            self.check_stateless(scope, &name, "a factory");
        }
        let inside = self.inner_scope(None, scope);
        let params: Vec<_> = params.into_iter().filter_map(|param| self.param(param, inside)).collect();
        for param in &params {
            self.check_no_stream(&param.annotations);
        }
        let raises = self.raises(raises.as_ref(), inside);
        let annotations = self.annotations(&head, scope, Place::Factory);
        let Ident { text, span } = name;
        let factory = Factory { name: text, params, raises, docs: head.docs, annotations, span };
        if let Some(value) = self.value_around(scope).filter(|_| declared) {
            value.factories.push(factory);
        }
    }

    /// Checks that an abstract value type has neither state nor factories.
    fn check_stateless(&mut self, scope: ScopeId, name: &Ident, what: &str) {
        let Some(owner) = self.scope(scope).owner.filter(|owner| self.model.is_abstract_value(*owner)) else {
            return;
        };
        let owner = self.model.def(owner);
        let message = format!("abstract value type `{}` cannot have {what}", owner.name);
        let error = Diagnostic::error("abstract-value", name.span, message);
        self.report(
            error.and(owner.span, "declared abstract here").note("there are never values of its own"),
        );
    }

    /// Returns the value type that owns the scope.
    fn value_around(&mut self, scope: ScopeId) -> Option<&mut Value> {
        let owner = self.scope(scope).owner?;
        match &mut self.model.defs[owner.index()].kind {
            DefKind::Value(value) => Some(value),
            _ => None,
        }
    }
}
