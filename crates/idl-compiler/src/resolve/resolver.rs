//! The data of the resolver. Its steps are methods in the files that are named for constructs.

use std::collections::{HashMap, HashSet};

use super::scope::ScopeId;
use super::symbols::Symbols;

/// The symbols, and the annotations of the text.
pub(super) struct Resolver<'o> {
    pub(super) symbols: Symbols<'o>,
    /// Annotations for which the changed encoding was already reported.
    pub(super) warned_encodings: HashSet<&'static str>,
    /// Declared annotations, by scope and lower-case name.
    pub(super) annotation_types: HashMap<(ScopeId, String), DeclaredAnnotation>,
    /// The keys of `annotation_types`, in the order of their declarations.
    pub(super) annotation_keys: Vec<(ScopeId, String)>,
    /// Some sequence has elements of a type that was incomplete at that point.
    pub(super) recursion_possible: bool,
}

/// An annotation that the text declares.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeclaredAnnotation {
    /// Index in [`Model::annotation_types`](crate::model::Model::annotation_types).
    pub(super) index: usize,
    /// The scope in which names in arguments are looked up first.
    pub(super) inside: ScopeId,
}
