//! The types and calls that are interpreted, and how.

use std::collections::{HashMap, HashSet};

use proc_macro2::TokenStream;

use crate::model::{DefId, DefKind};

/// How a type is marshalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// By the interpreter.
    Interpretive,
    /// By the interpreter for this number of uses, then by the type's own code.
    Adaptive(u32),
}

/// The types and calls that are interpreted.
#[derive(Debug, Default)]
pub(super) struct Hybrid {
    pub(super) modes: HashMap<DefId, Mode>,
    /// Types that give access to their parts: those with a mode, and those that calls need.
    pub(super) exposed: HashSet<DefId>,
    /// Interfaces whose calls interpret their parameters and results.
    pub(super) calls: HashSet<DefId>,
}

/// The traits that a type's own marshalling code implements.
pub(super) struct Traits {
    pub(super) encode: TokenStream,
    pub(super) decode: TokenStream,
}

impl Hybrid {
    /// Returns how a type is marshalled, if not only by its own code.
    pub(super) fn mode(&self, id: DefId) -> Option<Mode> {
        self.modes.get(&id).copied()
    }

    /// Returns whether the calls of an interface interpret their parameters and results.
    pub(super) fn calls(&self, id: DefId) -> bool {
        self.calls.contains(&id)
    }
}

/// Returns whether types of this kind can be interpreted.
pub(super) fn is_type(kind: &DefKind) -> bool {
    matches!(kind, DefKind::Struct(_) | DefKind::Exception(_) | DefKind::Union(_) | DefKind::Enum(_))
}
