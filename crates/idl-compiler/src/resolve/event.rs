//! Event types: value types with an additional base, and for each event type the interface of its consumers
//! (OMG component model, clause "Event Types", "Equivalent IDL").

use super::component::components;
use super::port::implied_operation;
use super::scope::{Entity, ScopeId};
use super::{Progress, Resolver};
use crate::ast::{Head, Ident, Item, ItemKind, TypeKind, TypeSpec};
use crate::model::{Construct, DefId, DefKind, Docs, Interface};

impl Resolver<'_> {
    /// Adds the base `Components::EventBase`, unless one of the bases is an event type.
    pub(super) fn add_event_base(&mut self, name: &Ident, bases: &mut Vec<DefId>) {
        if bases.iter().any(|base| self.is_event(*base)) {
            return;
        }
        if let Some(Entity::Def(base)) = self.lookup(&components("EventBase", name.span), ScopeId::FILE)
            && self.model.value(base).is_some()
            && !bases.contains(&base)
        {
            bases.push(base);
        }
    }

    pub(super) fn is_event(&self, id: DefId) -> bool {
        self.model.value(id).is_some_and(|value| value.is_event)
    }

    /// Declares the consumer interface in the scope of its event type.
    pub(super) fn forward_consumer(&mut self, event: &Ident, scope: ScopeId) {
        let Some(Entity::Def(id)) = self.declared(scope, &event.text) else { return };
        if !self.is_event(id) || self.implied.consumers.contains_key(&id) {
            return;
        }
        let name = self.consumer_name(event);
        let body = Interface { construct: Construct::EventConsumer, ..Interface::default() };
        self.forward(&name, DefKind::Interface(body), scope);
        if let Some(Entity::Def(consumer)) = self.declared(scope, &name.text) {
            self.implied.consumers.insert(id, consumer);
        }
    }

    /// Defines `interface EConsumer : BaseConsumer { void push_E(in E the_E); };`.
    pub(super) fn event_consumer(&mut self, event: DefId, name: &Ident, scope: ScopeId) {
        let span = name.span;
        let of_event = self.model.value(event).map_or(Vec::new(), |value| value.bases.clone());
        let consumers = of_event.iter().filter_map(|base| self.implied.consumers.get(base));
        let mut bases: Vec<_> = consumers.map(|consumer| self.absolute(*consumer, span)).collect();
        if bases.is_empty() {
            bases.push(components("EventConsumerBase", span));
        }
        let consumer = self.consumer_name(name);
        let docs = Docs { lines: vec![format!("Takes events of the type `{}`.", name.text)] };
        let head = Head { docs, annotations: Vec::new() };
        let body = Interface { construct: Construct::EventConsumer, ..Interface::default() };
        let (id, inside) = self.open_interface(&head, body, &consumer, &bases, scope);
        if let Some(inside) = inside {
            let event = TypeSpec { kind: TypeKind::Name(self.absolute(event, span)), span };
            let void = TypeSpec { kind: TypeKind::Void, span };
            let (param, push) = (format!("the_{}", name.text), format!("push_{}", name.text));
            let push = implied_operation(Ident { text: push, span }, void, &[(&param, event)], &[]);
            self.item(Item { head: Head::default(), kind: ItemKind::Operation(push) }, inside);
        }
        self.states[id.index()].progress = Progress::Complete;
        self.implied.consumers.insert(event, id);
    }

    fn consumer_name(&mut self, event: &Ident) -> Ident {
        let name = Ident { text: format!("{}Consumer", event.text), span: event.span };
        self.implied
            .note(&name, format!("event type `{}` declares `{}` too, its consumers", event.text, name.text));
        name
    }
}
