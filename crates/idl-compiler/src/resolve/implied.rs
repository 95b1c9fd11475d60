//! Data about constructs of the component model, and functions that create their implied declarations.

use std::collections::HashMap;

use super::scope::Entry;
use crate::ast::{Ident, Name, Operation, Param, PortKind, Preamble, Raises, StringArg, TypeSpec};
use crate::diagnostic::Diagnostic;
use crate::model::{Attribute, DefId, Direction, Model};
use crate::source::Span;
use crate::work;

/// Data about constructs of the component model that is not in the interfaces which represent them.
#[derive(Default)]
pub(super) struct Implied {
    pub(super) port_types: Vec<PortType>,
    /// The consumer interface of each event type.
    pub(super) consumers: HashMap<DefId, DefId>,
    pub(super) homes: HashMap<DefId, Home>,
    /// File names and repository ids of `import` statements.
    pub(super) imports: Vec<StringArg>,
    /// Estimated number of bytes that the expansions of port types need, mainly for names.
    pub(super) expanded_bytes: usize,
    /// For each implied name and its location: a note that tells which construct declares it.
    origins: HashMap<(Span, String), String>,
}

#[derive(Clone, Copy)]
pub(super) struct Home {
    pub(super) explicit_interface: DefId,
    pub(super) managed_component: Option<DefId>,
}

/// A state of [`Implied`] to which [`Implied::roll_back`] returns.
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
        let why = format!("event type `{}` also declares `{}`, for its consumers", event.text, name.text);
        self.note_origin(&name, why);
        name
    }

    pub(super) fn note_port_origin(&mut self, name: &Ident, port: &Ident) {
        self.note_origin(name, format!("port `{}` declares `{}`", port.text, name.text));
    }

    pub(super) fn roll_back(&mut self, checkpoint: Checkpoint) {
        self.port_types.truncate(checkpoint.port_types);
        self.imports.truncate(checkpoint.imports);
        self.expanded_bytes = checkpoint.expanded_bytes;
    }

    pub(super) fn remove(&mut self, id: DefId) {
        self.consumers.remove(&id);
        self.homes.remove(&id);
    }

    pub(super) fn note_origin(&mut self, name: &Ident, why: String) {
        self.origins.insert((name.span, name.text.clone()), why);
    }

    /// Adds a note for each of these names that does not occur in the text: the construct that declares it.
    pub(super) fn with_origin_notes(&self, mut message: Diagnostic, names: [&Entry; 2]) -> Diagnostic {
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

/// A port type, which is not a definition of the model.
pub(super) struct PortType {
    pub(super) name: String,
    pub(super) span: Span,
    /// Whether it is declared, but not yet defined.
    pub(super) only_declared: bool,
    /// Its ports and attributes. Ports whose types are other port types are replaced by the ports of these.
    pub(super) parts: Vec<Part>,
}

/// A port or attribute of a port type.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) preamble: Preamble,
    pub(super) name: Ident,
    pub(super) kind: PartKind,
}

#[derive(Clone)]
pub(super) enum PartKind {
    Port(PortKind, Target),
    Attribute(Attribute),
}

/// The type at the other end of a port.
#[derive(Clone, Copy)]
pub(super) enum Target {
    Object,
    /// An interface, or the consumer interface of an event type.
    Interface(DefId),
}

pub(super) fn components_name(name: &str, span: Span) -> Name {
    let part = |text: &str| Ident { text: text.to_owned(), span };
    Name { absolute: true, parts: vec![part("Components"), part(name)], span }
}

/// Returns the absolute name of a definition, which is valid in every scope.
pub(super) fn absolute_name(model: &Model, id: DefId, span: Span) -> Name {
    let parts = model.path(id).into_iter().map(|part| Ident { text: part.to_owned(), span });
    Name { absolute: true, parts: parts.collect(), span }
}

/// Returns the operation `result name(in ..., ...) raises (Components::...);`.
pub(super) fn implied_operation(
    name: Ident,
    result: TypeSpec,
    params: &[(&str, TypeSpec)],
    raises: &[&str],
) -> Operation {
    // Five tokens: a type, a name, two parentheses and a semicolon. Four tokens for each parameter: `in`, a
    // type, a name and a comma. Four tokens for each exception, including its share of `raises (...)`.
    work::count_tokens(5 + 4 * params.len() + 4 * raises.len());
    let span = name.span;
    let params = params.iter().map(|(name, ty)| Param {
        preamble: Preamble::default(),
        direction: Direction::In,
        direction_span: span,
        ty: ty.clone(),
        name: Ident { text: (*name).to_owned(), span },
    });
    let names: Vec<_> = raises.iter().map(|name| components_name(name, span)).collect();
    Operation {
        oneway: None,
        result,
        params: params.collect(),
        raises: (!names.is_empty()).then_some(Raises { names, span }),
        name,
        context: Vec::new(),
    }
}
