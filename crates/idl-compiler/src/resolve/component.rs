//! Components and connectors: interfaces with operations for their ports (OMG component model, clauses
//! "Equivalent IDL" of components, facets, receptacles and event ports).
//!
//! The implied declarations of a construct are created as syntax trees, which the resolver checks like any
//! other. Their spans are those of the construct's names, so that they get the repository id prefix of its
//! file. Messages about name clashes say which construct implies the name.

use std::collections::HashMap;

use super::port::PortType;
use super::scope::{Entry, ScopeId};
use super::symbols::Symbols;
use super::{Progress, Resolver, interface, template};
use crate::ast::{self, Head, Ident, Item, ItemKind, Name, StringArg};
use crate::diagnostic::Diagnostic;
use crate::model::{Construct, DefId, Interface, Model};
use crate::source::Span;

/// Data of the component model's constructs that the interfaces which represent them do not contain.
#[derive(Default)]
pub(super) struct Implied {
    pub(super) port_types: Vec<PortType>,
    /// The consumer interfaces by event type.
    pub(super) consumers: HashMap<DefId, DefId>,
    pub(super) homes: HashMap<DefId, Home>,
    /// File names and repository ids of `import` statements.
    pub(super) imports: Vec<StringArg>,
    /// Total bytes of the names from expansions of port types.
    pub(super) expanded_bytes: usize,
    /// For each name that does not occur in the text, by location: the construct that declares it.
    origins: HashMap<(Span, String), String>,
}

/// Data of a home.
#[derive(Clone, Copy)]
pub(super) struct Home {
    pub(super) explicit: DefId,
    pub(super) managed: Option<DefId>,
}

/// Saved lengths of the lists of [`Implied`].
pub(super) struct Checkpoint {
    port_types: usize,
    imports: usize,
    expanded_bytes: usize,
}

impl Implied {
    pub(super) fn checkpoint(&self) -> Checkpoint {
        let Implied { port_types, imports, expanded_bytes, .. } = self;
        Checkpoint { port_types: port_types.len(), imports: imports.len(), expanded_bytes: *expanded_bytes }
    }

    pub(super) fn consumer_name(&mut self, event: &Ident) -> Ident {
        let name = Ident { text: format!("{}Consumer", event.text), span: event.span };
        self.note_origin(
            &name,
            format!("event type `{}` declares `{}` too, its consumers", event.text, name.text),
        );
        name
    }

    pub(super) fn note_port_origin(&mut self, name: &Ident, port: &Ident) {
        self.note_origin(name, format!("port `{}` declares `{}`", port.text, name.text));
    }

    /// Removes everything that was added since the checkpoint.
    pub(super) fn roll_back(&mut self, checkpoint: Checkpoint) {
        self.port_types.truncate(checkpoint.port_types);
        self.imports.truncate(checkpoint.imports);
        self.expanded_bytes = checkpoint.expanded_bytes;
    }

    /// Removes the data of a definition.
    pub(super) fn remove(&mut self, id: DefId) {
        self.consumers.remove(&id);
        self.homes.remove(&id);
    }

    /// Records which construct declares a name that does not occur in the text.
    pub(super) fn note_origin(&mut self, name: &Ident, why: String) {
        self.origins.insert((name.span, name.text.clone()), why);
    }

    /// Adds origins that explain the origin of names that do not occur in the text.
    pub(super) fn explain(&self, mut message: Diagnostic, names: [&Entry; 2]) -> Diagnostic {
        for entry in names {
            if let Some(why) = self.origins.get(&(entry.span, entry.name.clone()))
                && !message.notes.contains(why)
            {
                message = message.note(why);
            }
        }
        message
    }
}

/// Returns the name `::Components::Name`.
pub(super) fn components_name(name: &str, span: Span) -> Name {
    let part = |text: &str| Ident { text: text.to_owned(), span };
    Name { absolute: true, parts: vec![part("Components"), part(name)], span }
}

impl Resolver<'_> {
    pub(super) fn component(&mut self, head: Head, component: ast::Component, scope: ScopeId) {
        let ast::Component { name, base, supports, items } = component;
        self.component_or_connector(head, Construct::Component, &name, base, supports, items, scope);
    }

    pub(super) fn connector(
        &mut self,
        head: Head,
        name: &Ident,
        base: Option<Name>,
        items: Vec<Item>,
        scope: ScopeId,
    ) {
        self.component_or_connector(head, Construct::Connector, name, base, Vec::new(), items, scope);
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one declaration")]
    fn component_or_connector(
        &mut self,
        head: Head,
        construct: Construct,
        name: &Ident,
        base: Option<Name>,
        supports: Vec<Name>,
        items: Vec<Item>,
        scope: ScopeId,
    ) {
        let unknown = self.symbols.templates.unknown_names();
        let base = base.filter(|base| is_construct(&mut self.symbols, base, construct, scope));
        let mut bases = vec![base.unwrap_or_else(|| components_name("CCMObject", name.span))];
        bases.extend(supports);
        let body = Interface { construct, ..Interface::default() };
        let (id, inside) = self.open_interface(&head, body, name, &bases, scope);
        template::mark_unknown_bases(&mut self.symbols, id, unknown);
        for item in items {
            let Some(inside) = inside else { continue };
            match item.kind {
                ItemKind::Port(port) => self.port(item.head, port, inside),
                _ => self.item(item, inside),
            }
        }
        self.symbols.states[id.index()].progress = Progress::Complete;
    }
}

/// Returns the absolute name of a definition, which is valid in every scope.
pub(super) fn absolute_name(model: &Model, id: DefId, span: Span) -> Name {
    let parts = model.path(id).into_iter().map(|part| Ident { text: part.to_owned(), span });
    Name { absolute: true, parts: parts.collect(), span }
}

/// Returns whether the name is that of a component, connector or home.
fn is_construct(symbols: &mut Symbols<'_>, name: &Name, wanted: Construct, scope: ScopeId) -> bool {
    find_construct(symbols, name, wanted, scope).is_some()
}

/// Returns the component, connector or home of this name, resolving typedefs. Reports an error if the name
/// has another meaning.
pub(super) fn find_construct(
    symbols: &mut Symbols<'_>,
    name: &Name,
    construct: Construct,
    scope: ScopeId,
) -> Option<DefId> {
    let entity = symbols.lookup(name, scope)?;
    let found = interface::interface_of(symbols, entity).filter(|found| {
        symbols.model.interface(*found).is_some_and(|interface| interface.construct == construct)
    });
    if found.is_none() {
        let error: Diagnostic = match construct {
            Construct::Connector => symbols.wrong_kind(entity, name, "not-a-connector", "a connector"),
            Construct::Home => symbols.wrong_kind(entity, name, "not-a-home", "a home"),
            _ => symbols.wrong_kind(entity, name, "not-a-component", "a component"),
        };
        let interface = interface::interface_of(symbols, entity);
        let plain = interface.and_then(|id| symbols.model.interface(id)).map(|interface| interface.construct);
        symbols.report(match (construct, plain) {
            (Construct::Component, Some(Construct::Interface)) => error.help("interfaces follow `supports`"),
            _ => error,
        });
    }
    found
}
