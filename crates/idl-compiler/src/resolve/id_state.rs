//! The parts of repository ids, and prefixes that are not yet applied.

use std::collections::HashMap;
use std::rc::Rc;

use super::scope::ScopeId;
use crate::ast::{Name, StringArg};
use crate::source::Span;

/// The parts of a definition's repository id.
pub(super) struct IdState {
    pub(super) prefix: Rc<str>,
    pub(super) version: Option<(String, Span)>,
    /// Set by `#pragma ID` or `typeid`.
    pub(super) explicit: Option<Explicit>,
    /// The location of a `typeprefix` that names the definition itself.
    pub(super) type_prefix: Option<Span>,
}

/// An id that replaces the one of the scoped name.
pub(super) struct Explicit {
    pub(super) id: String,
    pub(super) span: Span,
    /// Set by `typeid`, which is allowed only once for each definition.
    pub(super) by_typeid: bool,
}

/// A `typeprefix` of a scope that is declared later.
#[derive(Debug)]
pub(super) struct EarlyPrefix {
    pub(super) name: Name,
    pub(super) prefix: StringArg,
    /// The scope that contains it.
    pub(super) scope: ScopeId,
}

/// The prefixes that are not yet applied, by the scoped name of their scope.
#[derive(Debug, Default)]
pub(super) struct EarlyPrefixes(pub(super) HashMap<String, Vec<EarlyPrefix>>);

impl IdState {
    pub(super) fn new(prefix: Rc<str>) -> Self {
        IdState { prefix, version: None, explicit: None, type_prefix: None }
    }
}
