//! Event types: value types that inherit from `Components::EventBase`, and for each event type the interface
//! of its consumers (OMG component model, clause "Event Types", "Equivalent IDL").

use super::implied::{absolute_name, components_name, implied_operation};
use super::scope::{Entity, ScopeId};
use super::symbols::{Progress, Resolver, Symbols};
use crate::ast::{Ident, Item, ItemKind, Preamble, TypeKind, TypeSpec};
use crate::model::{Construct, DefId, DefKind, Docs, Interface, Model};

impl Resolver<'_> {
    /// Declares the consumer interface in the scope of its event type.
    pub(super) fn forward_consumer(&mut self, event: &Ident, scope: ScopeId) {
        let Some(Entity::Def(id)) = self.symbols.declared(scope, &event.text) else { return };
        if !is_event(&self.symbols.model, id) || self.symbols.implied.consumers.contains_key(&id) {
            return;
        }
        let name = self.symbols.implied.consumer_name(event);
        let body = Interface { construct: Construct::EventConsumer, ..Interface::default() };
        self.forward(&name, DefKind::Interface(body), scope);
        if let Some(Entity::Def(consumer)) = self.symbols.declared(scope, &name.text) {
            self.symbols.implied.consumers.insert(id, consumer);
        }
    }

    /// Defines `interface EConsumer : BaseConsumer { void push_E(in E the_E); };`.
    pub(super) fn event_consumer(&mut self, event: DefId, name: &Ident, scope: ScopeId) {
        let span = name.span;
        let event_bases = self.symbols.model.value(event).map_or(Vec::new(), |value| value.bases.clone());
        let consumers = event_bases.iter().filter_map(|base| self.symbols.implied.consumers.get(base));
        let mut bases: Vec<_> =
            consumers.map(|consumer| absolute_name(&self.symbols.model, *consumer, span)).collect();
        if bases.is_empty() {
            bases.push(components_name("EventConsumerBase", span));
        }
        let consumer = self.symbols.implied.consumer_name(name);
        let docs = Docs { lines: vec![format!("Takes events of the type `{}`.", name.text)] };
        let preamble = Preamble { docs, annotations: Vec::new() };
        let body = Interface { construct: Construct::EventConsumer, ..Interface::default() };
        let (id, inside) = self.open_interface(&preamble, body, &consumer, &bases, scope);
        if let Some(inside) = inside {
            let event =
                TypeSpec { kind: TypeKind::Name(absolute_name(&self.symbols.model, event, span)), span };
            let void = TypeSpec { kind: TypeKind::Void, span };
            let (param, push) = (format!("the_{}", name.text), format!("push_{}", name.text));
            let push = implied_operation(Ident { text: push, span }, void, &[(&param, event)], &[]);
            self.item(Item { preamble: Preamble::default(), kind: ItemKind::Operation(push) }, inside);
        }
        self.symbols.states[id.index()].progress = Progress::Complete;
        self.symbols.implied.consumers.insert(event, id);
    }
}

/// Adds the base `Components::EventBase`, unless one of the bases is an event type.
pub(super) fn add_event_base(symbols: &mut Symbols<'_>, name: &Ident, bases: &mut Vec<DefId>) {
    if bases.iter().any(|base| is_event(&symbols.model, *base)) {
        return;
    }
    if let Some(Entity::Def(base)) = symbols.lookup(&components_name("EventBase", name.span), ScopeId::FILE)
        && symbols.model.value(base).is_some()
        && !bases.contains(&base)
    {
        bases.push(base);
    }
}

pub(super) fn is_event(model: &Model, id: DefId) -> bool {
    model.value(id).is_some_and(|value| value.is_event)
}
