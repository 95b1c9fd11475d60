//! Comparison of the encodings of types in two models.

use idl_compiler::Model;
use idl_compiler::model::{Annotations, DefId, DefKind, Type, TypeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// The encodings are equal.
    None,
    /// Only the bound of a string, sequence or map differs.
    Bound,
    /// The types differ in more than a bound.
    Type,
}

impl Difference {
    /// Returns the larger difference.
    fn max(self, other: Difference) -> Difference {
        match (self, other) {
            (Difference::Type, _) | (_, Difference::Type) => Difference::Type,
            (Difference::Bound, _) | (_, Difference::Bound) => Difference::Bound,
            _ => Difference::None,
        }
    }

    /// Returns `difference` if `differs` is true, or else `None`.
    fn new(differs: bool, difference: Difference) -> Difference {
        if differs { difference } else { Difference::None }
    }
}

/// The models of the old and of the new IDL.
#[derive(Clone, Copy)]
pub(super) struct ModelPair<'m> {
    pub(super) old: &'m Model,
    pub(super) new: &'m Model,
}

impl ModelPair<'_> {
    /// Returns the difference between the encodings of two types. Definitions with the same name or
    /// repository id count as equal, because their differences are reported for the definitions themselves.
    pub(super) fn difference(&self, old: TypeId, new: TypeId) -> Difference {
        if let (Type::Named(a), Type::Named(b)) = (self.old.ty(old), self.new.ty(new))
            && self.is_same(*a, *b)
        {
            return Difference::None;
        }
        let bound = |a: &Option<u32>, b: &Option<u32>| Difference::new(a != b, Difference::Bound);
        match (self.old.stripped(old), self.new.stripped(new)) {
            (Type::String(a), Type::String(b)) | (Type::WString(a), Type::WString(b)) => bound(a, b),
            (Type::Sequence { element: a, bound: m }, Type::Sequence { element: b, bound: n }) => {
                bound(m, n).max(self.difference(*a, *b))
            }
            (Type::Array { element: a, dims: m }, Type::Array { element: b, dims: n }) => {
                Difference::new(m != n, Difference::Type).max(self.difference(*a, *b))
            }
            (Type::Map { key: k, value: a, bound: m }, Type::Map { key: l, value: b, bound: n }) => {
                bound(m, n).max(self.difference(*k, *l)).max(self.difference(*a, *b))
            }
            (Type::Named(a), Type::Named(b)) => Difference::new(!self.is_same(*a, *b), Difference::Type),
            (a, b) => Difference::new(a != b, Difference::Type),
        }
    }

    /// Returns whether the two definitions are versions of the same definition: they have the same scoped
    /// name, or the same repository id and neither is a typedef.
    pub(super) fn is_same(&self, old: DefId, new: DefId) -> bool {
        let (a, b) = (self.old.def(old), self.new.def(new));
        let is_alias = |kind: &DefKind| matches!(kind, DefKind::Typedef(_));
        let same_name = self.old.scoped_name(old) == self.new.scoped_name(new);
        let same_id = !is_alias(&a.kind) && !is_alias(&b.kind) && a.repository_id == b.repository_id;
        same_name || same_id
    }

    /// Returns whether the annotations limit the values of two types to different ranges.
    pub(super) fn range_differs(&self, old: (&Annotations, TypeId), new: (&Annotations, TypeId)) -> bool {
        let text = |bounds: Option<idl_compiler::model::Bounds>| bounds.map(|bounds| format!("{bounds:?}"));
        text(self.old.bounds(old.0, old.1)) != text(self.new.bounds(new.0, new.1))
    }

    pub(super) fn type_names(&self, old: TypeId, new: TypeId) -> (String, String) {
        (self.old.describe(old), self.new.describe(new))
    }
}
