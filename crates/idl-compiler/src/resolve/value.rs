//! Value types and value boxes.

use super::known::AnnotatedKind;
use super::scope::{Entity, FACTORY, ScopeId};
use super::symbols::{Progress, Resolver, Symbols};
use super::{annotation, event, interface, typed_annotation, types};
use crate::ast::{self, Factory as FactoryItem, Ident, Name, Preamble, State};
use crate::diagnostic::Diagnostic;
use crate::model::{
    DefId, DefKind, Factory, Flavour, Member, Model, StateMember, Value, ValueBox, ValueModifier,
};

impl Resolver<'_> {
    pub(super) fn value(&mut self, preamble: Preamble, value: ast::Value, scope: ScopeId) {
        let ast::Value { modifier, is_event, name, .. } = &value;
        // Bases are looked up in the enclosing scope, before the value type's own name counts as defined.
        let unknown = self.symbols.templates.unknown_name_count;
        let mut bases = value_bases(&mut self.symbols, &value, scope);
        let supports = interface::resolve_bases(&mut self.symbols, &value.supports, name, "supported", scope);
        let is_abstract = *modifier == ValueModifier::Abstract;
        check_forward_value(&mut self.symbols, name, is_abstract, *is_event, scope);
        let body = Value { modifier: *modifier, is_event: *is_event, ..Value::default() };
        let (id, declared) = self.begin(&preamble, name, DefKind::Value(body), scope);
        let truncatable = check_truncatable(&mut self.symbols, &value, &bases);
        check_supports(&mut self.symbols, &value, &bases, &supports);
        if *is_event {
            event::add_event_base(&mut self.symbols, name, &mut bases);
        }
        if let DefKind::Value(body) = &mut self.symbols.model.defs[id.index()].kind {
            let modifier = *modifier;
            *body = Value { modifier, is_event: *is_event, truncatable, bases, supports, ..Value::default() };
        }
        self.symbols.mark_unknown_bases(id, unknown);
        self.symbols.set_depth(id);
        interface::check_inherited(&mut self.symbols, id, name);
        if let Some(inside) = self.symbols.states[id.index()].scope {
            self.items(value.items, inside);
        }
        self.symbols.states[id.index()].progress = Progress::Complete;
        if value.is_event && declared {
            self.event_consumer(id, &value.name, scope);
        }
    }

    pub(super) fn forward_value(&mut self, name: &Ident, is_abstract: bool, is_event: bool, scope: ScopeId) {
        check_forward_value(&mut self.symbols, name, is_abstract, is_event, scope);
        let modifier = if is_abstract { ValueModifier::Abstract } else { ValueModifier::Plain };
        self.forward(name, DefKind::Value(Value { modifier, is_event, ..Value::default() }), scope);
        if is_event {
            self.forward_consumer(name, scope);
        }
    }

    pub(super) fn value_box(&mut self, preamble: Preamble, name: &Ident, ty: ast::TypeSpec, scope: ScopeId) {
        let span = ty.span;
        let ty = self.type_spec(ty, scope);
        if let Some(ty) = ty.filter(|ty| self.symbols.model.is_value(*ty)) {
            let described = self.symbols.model.describe(ty);
            let message = format!("value box `{}` cannot hold `{described}`, which is a value", name.text);
            let error = Diagnostic::error("box-of-value", span, message);
            let error = error.note("a value box makes a value of another type");
            self.symbols.report(error.help("use the value type itself"));
        }
        let Some(ty) = ty else {
            self.symbols.declare(scope, name, Entity::Bad, "value box");
            return;
        };
        let id = self.new_def(&preamble, name, DefKind::ValueBox(ValueBox { ty }), scope);
        typed_annotation::evaluate_def(&mut self.symbols, &preamble, id, ty, scope);
        self.symbols.set_depth(id);
        self.symbols.declare_def(id, scope, name, "value box");
    }

    pub(super) fn state(&mut self, preamble: &Preamble, state: State, scope: ScopeId) {
        let base = self.type_spec(state.ty, scope);
        for declarator in state.declarators {
            let ty = base.and_then(|base| types::array(&mut self.symbols, base, &declarator.dims, scope));
            let Ident { text, span } = declarator.name.clone();
            let declared =
                self.symbols.declare_local(scope, &declarator.name, Entity::Member, "state member");
            if declared {
                reject_in_abstract_value(&mut self.symbols, scope, &declarator.name, "state");
            }
            let Some(ty) = ty.filter(|_| declared) else { continue };
            let mut annotations = self.annotations(preamble, scope, AnnotatedKind::State);
            typed_annotation::evaluate(&mut self.symbols, preamble, &mut annotations, ty, scope);
            annotation::check_non_nil(&mut self.symbols, &annotations, Some(ty));
            let member = Member { name: text, ty, docs: preamble.docs.clone(), annotations, span };
            if let Some(value) = owner_value(&mut self.symbols, scope) {
                value.state.push(StateMember { visibility: state.visibility, member });
            }
        }
    }

    pub(super) fn factory(&mut self, preamble: Preamble, factory: FactoryItem, scope: ScopeId) {
        let FactoryItem { name, params, raises } = factory;
        let declared = self.symbols.declare_local(scope, &name, Entity::Member, FACTORY);
        if declared {
            reject_in_abstract_value(&mut self.symbols, scope, &name, "a factory");
        }
        let inside = self.symbols.open_inner_scope(None, scope);
        let params: Vec<_> = params.into_iter().filter_map(|param| self.param(param, inside)).collect();
        for param in &params {
            annotation::check_no_stream(&mut self.symbols, &param.annotations);
        }
        let raises = interface::resolve_raises(&mut self.symbols, raises.as_ref(), inside);
        let annotations = self.annotations(&preamble, scope, AnnotatedKind::Factory);
        let Ident { text, span } = name;
        let factory = Factory { name: text, params, raises, docs: preamble.docs, annotations, span };
        if let Some(value) = owner_value(&mut self.symbols, scope).filter(|_| declared) {
            value.factories.push(factory);
        }
    }
}

/// Checks that all declarations of a value type have the same kind.
fn check_forward_value(
    symbols: &mut Symbols<'_>,
    name: &Ident,
    is_abstract: bool,
    is_event: bool,
    scope: ScopeId,
) {
    let Some(Entity::Def(id)) = symbols.declared(scope, &name.text) else { return };
    let def = symbols.model.def(id);
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
    symbols.report(error.and(def.span, format!("and as {} here", kind(was_abstract, earlier.is_event))));
}

/// Returns the valid bases, each once. Other bases are reported.
fn value_bases(symbols: &mut Symbols<'_>, value: &ast::Value, scope: ScopeId) -> Vec<DefId> {
    let mut bases: Vec<DefId> = Vec::new();
    let mut concrete: Option<&Name> = None;
    for (index, name) in value.bases.iter().enumerate() {
        let Some(entity) = symbols.lookup(name, scope) else { continue };
        let Some(base) = value_type_of(symbols, entity) else {
            let mut error = symbols.wrong_kind(entity, name, "not-a-value", "a value type");
            if let Entity::Def(def) = entity
                && symbols.model.interface(def).is_some()
            {
                let instead = name.text();
                error = error.help(format!(
                    "a value type cannot inherit from an interface; write `supports {instead}`"
                ));
            }
            symbols.report(error);
            continue;
        };
        if !check_base(symbols, base, name, &value.name, ("base", "value type"), scope) {
            continue;
        }
        if bases.contains(&base) {
            interface::report_duplicate_base(symbols, name, &value.bases[..index], "base value type");
            continue;
        }
        if !symbols.model.is_abstract_value(base)
            && !check_concrete_base(symbols, value, name, index, base, &mut concrete)
        {
            continue;
        }
        bases.push(base);
    }
    bases
}

/// Checks a concrete base: the derived type must be concrete, and the base the first and only concrete one.
fn check_concrete_base<'v>(
    symbols: &mut Symbols<'_>,
    value: &ast::Value,
    name: &'v Name,
    index: usize,
    base: DefId,
    concrete: &mut Option<&'v Name>,
) -> bool {
    let text = name.text();
    let error = if let (ValueModifier::Abstract, Some(modifier)) = (value.modifier, value.modifier_span) {
        let message = format!(
            "abstract value type `{}` cannot inherit from `{text}`, which is not abstract",
            value.name.text
        );
        Diagnostic::error("value-inheritance", name.span, message)
            .and(modifier, "declared abstract here")
            .and(symbols.model.def(base).span, format!("`{text}` is declared here"))
    } else if let Some(first) = concrete {
        let derived = &value.name.text;
        let message = format!("`{derived}` cannot inherit from two value types that are not abstract");
        Diagnostic::error("value-inheritance", name.span, message)
            .and(first.span, "the first is here")
            .note("a value has one state, which it inherits from one base; all other bases must be abstract")
    } else {
        *concrete = Some(name);
        if index == 0 {
            return true;
        }
        let message = format!("base `{text}`, which is not abstract, must be the first");
        Diagnostic::error("value-inheritance", name.span, message)
            .help("list the base that is not abstract before the abstract ones")
    };
    symbols.report(error);
    false
}

/// Checks that a base, or a supported interface, is defined before the derived type.
pub(super) fn check_base(
    symbols: &mut Symbols<'_>,
    base: DefId,
    name: &Name,
    derived: &Ident,
    (role, what): (&str, &str),
    scope: ScopeId,
) -> bool {
    if symbols.states[base.index()].progress == Progress::Complete {
        return true;
    }
    let base = symbols.model.def(base);
    let (message, label) = match base.name == derived.text && base.parent == symbols.scope(scope).owner {
        true => (format!("{what} `{}` cannot inherit from itself", derived.text), "declared here"),
        false => (format!("{role} {what} `{}` is not defined yet", name.text()), "only declared here"),
    };
    let error = Diagnostic::error("incomplete", name.span, message).and(base.span, label);
    symbols.report(error.help(match role {
        "base" => format!("define the base before the {what}s that derive from it"),
        _ => format!("define the {role} {what} before the value types that support it"),
    }));
    false
}

/// Returns the value type that an entity is, resolving typedefs. A value box is not a value type.
pub(super) fn value_type_of(symbols: &mut Symbols<'_>, entity: Entity) -> Option<DefId> {
    symbols.stripped_def(entity).filter(|def| symbols.model.value(*def).is_some())
}

/// Checks `truncatable`, which lets receivers read only the first base's state. Returns whether it is set.
fn check_truncatable(symbols: &mut Symbols<'_>, value: &ast::Value, bases: &[DefId]) -> bool {
    let Some(span) = value.truncatable else { return false };
    let custom = value.modifier == ValueModifier::Custom;
    let error = if custom {
        let message = format!("`{}` cannot be custom and truncatable", value.name.text);
        let error = Diagnostic::error("truncatable", span, message);
        let error = error
            .note("only the type itself can read the state of a custom value, so a receiver cannot leave out a part of it");
        error.and_if(value.modifier_span, "declared custom here")
    } else if value.modifier == ValueModifier::Abstract {
        let message = format!("`{}` cannot be abstract and truncatable", value.name.text);
        Diagnostic::error("truncatable", span, message).note("an abstract value type has no state to cut off")
    } else if bases.first().is_some_and(|base| symbols.model.is_abstract_value(*base)) {
        let message = "`truncatable` is not allowed before an abstract base";
        Diagnostic::error("truncatable", span, message)
            .note("a value can be truncated only to a base with state")
    } else if let Some(base) = bases.first().filter(|base| symbols.model.is_custom(**base)) {
        let name = symbols.model.scoped_name(*base);
        let message = format!("`truncatable` is not allowed before the custom base `{name}`");
        Diagnostic::error("truncatable", span, message).and(
            symbols.model.def(*base).span,
            "the program marshals the state of this type and of derived types",
        )
    } else {
        return !bases.is_empty();
    };
    symbols.report(error.help("remove `truncatable`"));
    false
}

/// Checks that a value type lists at most one interface that is not abstract, and lists it first. This
/// interface or, if there is none, one that a base supports must derive from all other interfaces that the
/// bases support and that are not abstract.
fn check_supports(symbols: &mut Symbols<'_>, value: &ast::Value, bases: &[DefId], supports: &[DefId]) {
    let is_concrete = |model: &Model, id: &DefId| {
        model.interface(*id).is_some_and(|interface| interface.flavour != Flavour::Abstract)
    };
    let own: Vec<DefId> = supports.iter().copied().filter(|id| is_concrete(&symbols.model, id)).collect();
    let name = &value.name;
    let name_of = |id: &DefId| value.supports.get(supports.iter().position(|other| other == id)?);
    if let [first, second, ..] = own.as_slice() {
        let message = format!("`{}` cannot support two interfaces that are not abstract", name.text);
        let span = name_of(second).map_or(name.span, |name| name.span);
        let first = name_of(first).map(|first| first.span);
        let error = Diagnostic::error("supports", span, message).and_if(first, "the first is here");
        symbols.report(error.help("declare an interface that inherits from both, and support that one"));
        return;
    }
    if let Some(only) = own.first().filter(|only| supports.first() != Some(only)) {
        let (text, span) = name_of(only).map_or((String::new(), name.span), |name| (name.text(), name.span));
        let message = format!("supported interface `{text}`, which is not abstract, must be the first");
        let error = Diagnostic::error("supports", span, message);
        symbols.report(error.help("list the interface that is not abstract before the abstract ones"));
    }
    let mut inherited: Vec<(DefId, DefId)> = Vec::new();
    for base in bases {
        for owner in symbols.model.lineage(*base) {
            let of_owner = symbols.model.value(owner).map_or(&[][..], |value| &value.supports);
            let of_owner = of_owner.iter().copied().filter(|id| is_concrete(&symbols.model, id));
            inherited.extend(of_owner.map(|interface| (owner, interface)));
        }
    }
    // Returns an inherited interface from which `id` does not derive, and the base that supports it.
    let unrelated = |model: &Model, id: DefId| {
        let interface_bases = model.all_bases(id);
        inherited.iter().find(|(_, other)| *other != id && !interface_bases.contains(other)).copied()
    };
    let mut candidates = own.iter().copied().chain(inherited.iter().map(|(_, interface)| *interface));
    let Some(first) = candidates.next() else { return };
    let Some((owner, other)) = unrelated(&symbols.model, first) else { return };
    if own.is_empty() && candidates.any(|candidate| unrelated(&symbols.model, candidate).is_none()) {
        return;
    }
    let (first_name, other_name) = (symbols.model.scoped_name(first), symbols.model.scoped_name(other));
    let owner = symbols.model.def(owner);
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
            let span = name_of(&first).map_or(name.span, |name| name.span);
            Diagnostic::error("supports", span, message)
        }
    };
    let error = error.and(owner.span, format!("`{}` supports `{other_name}`", owner.name));
    symbols.report(error.help("support an interface that derives from all that the bases support"));
}

/// Reports a member if its value type is abstract. Such a type has neither state nor factories.
fn reject_in_abstract_value(symbols: &mut Symbols<'_>, scope: ScopeId, name: &Ident, what: &str) {
    let Some(owner) = symbols.scope(scope).owner.filter(|owner| symbols.model.is_abstract_value(*owner))
    else {
        return;
    };
    let owner = symbols.model.def(owner);
    let message = format!("abstract value type `{}` cannot have {what}", owner.name);
    let error = Diagnostic::error("abstract-value", name.span, message);
    symbols.report(error.and(owner.span, "declared abstract here").note("no value has exactly this type"));
}

fn owner_value<'s>(symbols: &'s mut Symbols<'_>, scope: ScopeId) -> Option<&'s mut Value> {
    let owner = symbols.scope(scope).owner?;
    match &mut symbols.model.defs[owner.index()].kind {
        DefKind::Value(value) => Some(value),
        _ => None,
    }
}
