//! Ports of components and connectors, and port types, which are expanded at their uses.

use super::implied::{Part, PartKind, PortType, Target, absolute_name, components_name, implied_operation};
use super::known::AnnotatedKind;
use super::scope::{Entity, ScopeId};
use super::symbols::{Resolver, Symbols};
use super::{event, interface, value};
use crate::ast::{
    self, Declarator, Ident, Item, ItemKind, Member, MemberKind, PortKind, Preamble, TypeKind, TypeSpec,
};
use crate::diagnostic::Diagnostic;
use crate::model::{Docs, Model};
use crate::source::Span;
use crate::work;

/// Maximum estimated size of the ports that port types expand to. Each level of port types can double it.
const MAX_EXPANDED_BYTES: usize = 4 << 20;

/// Number of tokens of the struct and the sequence that a `uses multiple` port declares.
const CONNECTION_TOKENS: usize = 20;

impl Resolver<'_> {
    /// Resolves a port of a component or connector. `inside` is the scope of the component or connector.
    pub(super) fn port(&mut self, preamble: Preamble, port: ast::Port, inside: ScopeId) {
        if matches!(port.kind, PortKind::Port | PortKind::MirrorPort) {
            drop(self.annotations(&preamble, inside, AnnotatedKind::Directive));
            let parts = expand(&mut self.symbols, &port, inside);
            if !self.symbols.declare_local(inside, &port.name, Entity::Member, "port") {
                return;
            }
            for part in parts {
                self.symbols.implied.note_port_origin(&part.name, &port.name);
                let mut part_preamble = part.preamble;
                if part_preamble.docs.is_empty() {
                    part_preamble.docs = preamble.docs.clone();
                }
                match part.kind {
                    PartKind::Port(kind, target) => {
                        if self.symbols.declare_local(inside, &part.name, Entity::Member, "port") {
                            self.declare_operations(part_preamble, kind, target, &part.name, inside);
                        }
                    }
                    PartKind::Attribute(body) => {
                        self.attributes(&part_preamble, Some(&body), &[part.name], inside)
                    }
                }
            }
            return;
        }
        let target = resolve_target(&mut self.symbols, &port, inside);
        let declared = self.symbols.declare_local(inside, &port.name, Entity::Member, "port");
        if let (Some(target), true) = (target, declared) {
            self.declare_operations(preamble, port.kind, target, &port.name, inside);
        }
    }

    pub(super) fn port_type(&mut self, name: &Ident, items: Vec<Item>, scope: ScopeId) {
        let index = declare_port_type(&mut self.symbols, name, false, scope);
        let inside = self.symbols.open_inner_scope(None, scope);
        let mut parts = Vec::new();
        for item in items {
            match item.kind {
                ItemKind::Port(port) if matches!(port.kind, PortKind::Port | PortKind::MirrorPort) => {
                    drop(self.annotations(&item.preamble, inside, AnnotatedKind::Directive));
                    let expanded = expand(&mut self.symbols, &port, inside);
                    if self.symbols.declare_local(inside, &port.name, Entity::Member, "port") {
                        parts.extend(expanded);
                    }
                }
                ItemKind::Port(port) => {
                    let target = resolve_target(&mut self.symbols, &port, inside);
                    let declared = self.symbols.declare_local(inside, &port.name, Entity::Member, "port");
                    if let (Some(target), true) = (target, declared) {
                        let kind = PartKind::Port(port.kind, target);
                        parts.push(Part { preamble: item.preamble, name: port.name, kind });
                    }
                }
                ItemKind::Attribute(attribute) => {
                    let body = self.attribute_body(&attribute, inside);
                    for name in attribute.names {
                        let declared = self.symbols.declare_local(inside, &name, Entity::Member, "attribute");
                        let Some(body) = body.clone().filter(|_| declared) else { continue };
                        let preamble = item.preamble.clone();
                        parts.push(Part { preamble, name, kind: PartKind::Attribute(body) });
                    }
                }
                _ => {}
            }
        }
        if let Some(port_type) = index.and_then(|index| self.symbols.implied.port_types.get_mut(index)) {
            (port_type.only_declared, port_type.parts) = (false, parts);
        }
    }

    /// Declares the operations of a port. The port's annotations are applied to the first operation.
    fn declare_operations(
        &mut self,
        mut preamble: Preamble,
        kind: PortKind,
        target: Target,
        port: &Ident,
        inside: ScopeId,
    ) {
        let span = port.span;
        let target = target_type(&self.symbols.model, target, span);
        let cookie = || TypeSpec { kind: TypeKind::Name(components_name("Cookie", span)), span };
        let void = || TypeSpec { kind: TypeKind::Void, span };
        let connection = [("connection", target.clone())];
        let consumer = [("consumer", target.clone())];
        let ck = [("ck", cookie())];
        /// The prefix of the operation's name, its result, its parameters and its exceptions.
        type ImpliedOperation<'a> = (&'a str, TypeSpec, &'a [(&'a str, TypeSpec)], &'a [&'a str]);
        let mut operations: Vec<ImpliedOperation<'_>> = Vec::new();
        let connections;
        match kind {
            PortKind::Provides => operations.push(("provide_", target.clone(), &[], &[])),
            PortKind::Uses => operations.extend([
                ("connect_", void(), &connection[..], &["AlreadyConnected", "InvalidConnection"][..]),
                ("disconnect_", target.clone(), &[], &["NoConnection"]),
                ("get_connection_", target.clone(), &[], &[]),
            ]),
            PortKind::UsesMultiple => {
                connections = self.declare_connections(&target, cookie(), port, inside);
                let failures = &["ExceededConnectionLimit", "InvalidConnection"][..];
                operations.extend([
                    ("connect_", cookie(), &connection[..], failures),
                    ("disconnect_", target.clone(), &ck[..], &["InvalidConnection"]),
                    ("get_connections_", connections, &[], &[]),
                ]);
            }
            PortKind::Emits => operations.extend([
                ("connect_", void(), &consumer[..], &["AlreadyConnected"][..]),
                ("disconnect_", target.clone(), &[], &["NoConnection"]),
            ]),
            PortKind::Publishes => operations.extend([
                ("subscribe_", cookie(), &consumer[..], &["ExceededConnectionLimit"][..]),
                ("unsubscribe_", target.clone(), &ck[..], &["InvalidConnection"]),
            ]),
            PortKind::Consumes => operations.push(("get_consumer_", target.clone(), &[], &[])),
            PortKind::Port | PortKind::MirrorPort => {}
        }
        for (prefix, result, params, raises) in operations {
            let name = Ident { text: format!("{prefix}{}", port.text), span };
            self.symbols.implied.note_port_origin(&name, port);
            let operation = implied_operation(name, result, params, raises);
            let docs = preamble.docs.clone();
            let first = std::mem::replace(&mut preamble, Preamble { docs, annotations: Vec::new() });
            self.operation(first, operation, inside);
        }
    }

    /// Declares the types of a port `uses multiple I r`:
    /// `struct rConnection { I objref; Components::Cookie ck; };` and
    /// `typedef sequence<rConnection> rConnections;`.
    fn declare_connections(
        &mut self,
        target: &TypeSpec,
        cookie: TypeSpec,
        port: &Ident,
        inside: ScopeId,
    ) -> TypeSpec {
        work::count_tokens(CONNECTION_TOKENS);
        let span = port.span;
        let ident = |text: String| Ident { text, span };
        let (one, many) = (format!("{}Connection", port.text), format!("{}Connections", port.text));
        let (one, many) = (ident(one), ident(many));
        self.symbols.implied.note_port_origin(&one, port);
        self.symbols.implied.note_port_origin(&many, port);
        let declarators = |name: &str| vec![Declarator { name: ident(name.to_owned()), dims: Vec::new() }];
        let member = |ty: TypeSpec, name| Member {
            preamble: Preamble::default(),
            kind: MemberKind::Data { ty, declarators: declarators(name) },
        };
        let members = vec![member(target.clone(), "objref"), member(cookie, "ck")];
        let body = TypeKind::Struct { name: one.clone(), base: None, members };
        let docs = |text: String| Preamble { docs: Docs { lines: vec![text] }, annotations: Vec::new() };
        let preamble = docs(format!("A connection of the port `{}`.", port.text));
        self.item(Item { preamble, kind: ItemKind::Type(TypeSpec { kind: body, span }) }, inside);
        let named =
            |name: &Ident| TypeSpec { kind: TypeKind::Name(inner_name(&self.symbols, name, inside)), span };
        let sequence = TypeKind::Sequence { element: Box::new(named(&one)), bound: None };
        let ty = named(&many);
        let preamble = docs(format!("The connections of the port `{}`.", port.text));
        let declarators = declarators(&many.text);
        let kind = ItemKind::Typedef { ty: TypeSpec { kind: sequence, span }, declarators };
        self.item(Item { preamble, kind }, inside);
        ty
    }
}

/// Returns the index of the port type that this declares, which counts as undefined until its body ends.
pub(super) fn declare_port_type(
    symbols: &mut Symbols<'_>,
    name: &Ident,
    forward: bool,
    scope: ScopeId,
) -> Option<usize> {
    if let Some(Entity::PortType(index)) = symbols.declared(scope, &name.text)
        && let Some(earlier) = symbols.implied.port_types.get_mut(index)
        && earlier.name == name.text
        && (forward || earlier.only_declared)
    {
        if !forward {
            earlier.span = name.span;
            symbols.move_declaration(scope, name);
        }
        return Some(index);
    }
    let index = symbols.implied.port_types.len();
    let declared = symbols.declare(scope, name, Entity::PortType(index), "port type");
    declared.then(|| {
        let (name, span) = (name.text.clone(), name.span);
        symbols.implied.port_types.push(PortType { name, span, only_declared: true, parts: Vec::new() });
        index
    })
}

pub(super) fn report_undefined_port_types(symbols: &mut Symbols<'_>) {
    let undefined = symbols.implied.port_types.iter().filter(|port_type| port_type.only_declared);
    let errors: Vec<Diagnostic> = undefined
        .map(|port_type| {
            let name = &port_type.name;
            let message = format!("port type `{name}` is declared but never defined");
            let error = Diagnostic::error("never-defined", port_type.span, message);
            error.help(format!("define it in the same scope: `porttype {name} {{ ... }};`"))
        })
        .collect();
    errors.into_iter().for_each(|error| symbols.report_unless_incomplete(error));
}

/// Returns the parts of a port with a port type. In a mirror port, `uses` and `provides` are exchanged.
fn expand(symbols: &mut Symbols<'_>, port: &ast::Port, scope: ScopeId) -> Vec<Part> {
    let TypeKind::Name(name) = &port.ty.kind else { return Vec::new() };
    let Some(entity) = symbols.lookup(name, scope) else { return Vec::new() };
    let Entity::PortType(index) = entity else {
        let error = symbols.wrong_kind(entity, name, "not-a-port-type", "a port type");
        symbols.report(error);
        return Vec::new();
    };
    let Some(port_type) = symbols.implied.port_types.get(index) else { return Vec::new() };
    if port_type.only_declared {
        let message = format!("port type `{}` is not defined yet", name.text());
        let error = Diagnostic::error("incomplete", name.span, message);
        let error = error.and(port_type.span, "only declared here");
        symbols.report(error.help("define the port type before the ports that use it"));
        return Vec::new();
    }
    let path_bytes = symbols.scope(scope).owner.map_or(0, |owner| symbols.model.path(owner).concat().len());
    let cost = |part: &Part| part.name.text.len() + port.name.text.len() + path_bytes + 64;
    let before = symbols.implied.expanded_bytes;
    symbols.implied.expanded_bytes = before.saturating_add(port_type.parts.iter().map(cost).sum());
    if symbols.implied.expanded_bytes > MAX_EXPANDED_BYTES {
        let message = "the port types of this text expand to too many ports";
        let error = Diagnostic::error("too-many-ports", port.name.span, message);
        let note = format!(
            "the full names of these ports, plus 64 bytes each, must not exceed {MAX_EXPANDED_BYTES} bytes"
        );
        if before <= MAX_EXPANDED_BYTES {
            symbols.report(error.note(note));
        }
        return Vec::new();
    }
    work::count_tokens(port_type.parts.len());
    let mirrored = port.kind == PortKind::MirrorPort;
    let parts = port_type.parts.iter().map(|part| {
        let name = Ident { text: format!("{}_{}", port.name.text, part.name.text), span: port.name.span };
        let kind = match &part.kind {
            PartKind::Port(PortKind::Provides, target) if mirrored => PartKind::Port(PortKind::Uses, *target),
            PartKind::Port(_, target) if mirrored => PartKind::Port(PortKind::Provides, *target),
            kind => kind.clone(),
        };
        Part { preamble: part.preamble.clone(), name, kind }
    });
    parts.collect()
}

/// Returns the interface of a port, or the consumer interface of its events.
fn resolve_target(symbols: &mut Symbols<'_>, port: &ast::Port, scope: ScopeId) -> Option<Target> {
    let TypeKind::Name(name) = &port.ty.kind else { return Some(Target::Object) };
    let entity = symbols.lookup(name, scope)?;
    if matches!(port.kind, PortKind::Emits | PortKind::Publishes | PortKind::Consumes) {
        let event =
            value::value_type_of(symbols, entity).filter(|event| event::is_event(&symbols.model, *event));
        let event =
            event.or_else(|| symbols.reject_wrong_kind(entity, name, "not-an-event", "an event type"))?;
        return symbols.implied.consumers.get(&event).copied().map(Target::Interface);
    }
    let interface = interface::interface_of(symbols, entity)
        .or_else(|| symbols.reject_wrong_kind(entity, name, "not-an-interface", "an interface"));
    interface.map(Target::Interface)
}

fn target_type(model: &Model, target: Target, span: Span) -> TypeSpec {
    let kind = match target {
        Target::Object => TypeKind::Object,
        Target::Interface(id) => TypeKind::Name(absolute_name(model, id, span)),
    };
    TypeSpec { kind, span }
}

/// Returns the absolute name of an item declared in a scope.
fn inner_name(symbols: &Symbols<'_>, name: &Ident, inside: ScopeId) -> ast::Name {
    let around =
        symbols.scope(inside).owner.map(|owner| absolute_name(&symbols.model, owner, name.span).parts);
    let mut parts = around.unwrap_or_default();
    parts.push(name.clone());
    ast::Name { absolute: true, parts, span: name.span }
}
