//! The template modules of a text, and data of their instances.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::scope::ScopeId;
use crate::ast::{Head, Template};
use crate::model::{ConstValue, DefId, TypeId};
use crate::source::Span;

/// All template modules, the values of their parameters, and the state of their checks.
#[derive(Default)]
pub(super) struct Templates {
    pub(super) all: Vec<KnownTemplate>,
    /// Values of `const` parameters.
    pub(super) values: Vec<(TypeId, ConstValue)>,
    /// Number of tokens of all instances so far.
    pub(super) instance_tokens: usize,
    /// Nesting depth of template modules that are being checked.
    pub(super) checking: usize,
    /// Number of names whose meaning was unknown so far.
    pub(super) unknown: usize,
    /// The index of the first definition of the body that is being checked.
    pub(super) checked_from: usize,
    /// The template module of each instance.
    pub(super) instances: HashMap<DefId, usize>,
    /// Location and code of the warnings about bodies. Each is reported once, not for each instance.
    pub(super) warned: HashSet<(Span, &'static str)>,
}

/// A template module, and whether its body is valid.
pub(super) struct KnownTemplate {
    pub(super) template: Rc<Template>,
    pub(super) head: Head,
    /// The scope of its declaration.
    pub(super) scope: ScopeId,
    pub(super) state: CheckState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckState {
    Unchecked,
    /// The body is being checked, as the body of this module.
    Checking(DefId),
    Valid,
    /// The body contains errors, which were reported.
    Invalid,
}

impl Templates {
    /// Returns whether a body is being checked and the definition is not part of it.
    pub(super) fn is_outside_checked_body(&self, def: DefId) -> bool {
        self.checking > 0 && def.index() < self.checked_from
    }

    /// Counts a name whose meaning is unknown.
    pub(super) fn count_unknown(&mut self) {
        self.unknown += 1;
    }

    /// Returns the number of names whose meaning was unknown.
    pub(super) fn unknown_names(&self) -> usize {
        self.unknown
    }

    /// Returns the value of a parameter of a template module.
    pub(super) fn parameter_value(&self, index: usize) -> Option<(TypeId, ConstValue)> {
        self.values.get(index).cloned()
    }
}
