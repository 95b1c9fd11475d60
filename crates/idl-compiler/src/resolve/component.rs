//! Components and connectors: interfaces with operations for their ports (OMG component model, clauses
//! "Equivalent IDL" of components, facets, receptacles and event ports).
//!
//! The implied declarations of a construct are created as syntax trees, which the resolver checks like other
//! declarations. Their spans are the spans of the construct's names, so that they get the repository id
//! prefix of its file. Messages about name clashes say which construct implies the name.

use super::implied::components_name;
use super::interface;
use super::scope::ScopeId;
use super::symbols::{Progress, Resolver, Symbols};
use crate::ast::{self, Ident, Item, ItemKind, Name, Preamble};
use crate::diagnostic::Diagnostic;
use crate::model::{Construct, DefId, Interface};

impl Resolver<'_> {
    pub(super) fn component(&mut self, preamble: Preamble, component: ast::Component, scope: ScopeId) {
        let ast::Component { name, base, supports, items } = component;
        self.component_or_connector(preamble, Construct::Component, &name, base, supports, items, scope);
    }

    pub(super) fn connector(
        &mut self,
        preamble: Preamble,
        name: &Ident,
        base: Option<Name>,
        items: Vec<Item>,
        scope: ScopeId,
    ) {
        self.component_or_connector(preamble, Construct::Connector, name, base, Vec::new(), items, scope);
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one declaration")]
    fn component_or_connector(
        &mut self,
        preamble: Preamble,
        construct: Construct,
        name: &Ident,
        base: Option<Name>,
        supports: Vec<Name>,
        items: Vec<Item>,
        scope: ScopeId,
    ) {
        let unknown = self.symbols.templates.unknown_name_count;
        let base = base.filter(|base| find_construct(&mut self.symbols, base, construct, scope).is_some());
        let mut bases = vec![base.unwrap_or_else(|| components_name("CCMObject", name.span))];
        bases.extend(supports);
        let body = Interface { construct, ..Interface::default() };
        let (id, inside) = self.open_interface(&preamble, body, name, &bases, scope);
        self.symbols.mark_unknown_bases(id, unknown);
        for item in items {
            let Some(inside) = inside else { continue };
            match item.kind {
                ItemKind::Port(port) => self.port(item.preamble, port, inside),
                _ => self.item(item, inside),
            }
        }
        self.symbols.states[id.index()].progress = Progress::Complete;
    }
}

/// Returns the component, connector or home of this name, which may be a typedef.
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
        let interface = interface::interface_of(symbols, entity).and_then(|id| symbols.model.interface(id));
        let is_plain = interface.is_some_and(|interface| interface.construct == Construct::Interface);
        let help = (construct == Construct::Component && is_plain).then_some("interfaces need `supports`");
        symbols.report(error.help_if(help));
    }
    found
}
