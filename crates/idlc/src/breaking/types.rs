//! Types of two models compared as they are encoded.

use idl_compiler::Model;
use idl_compiler::model::{Annotations, DefId, DefKind, Type, TypeId};

/// How two types differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// Not on the wire.
    None,
    /// In a bound alone.
    Bound,
    /// In more.
    Whole,
}

impl Difference {
    fn and(self, other: Difference) -> Difference {
        match (self, other) {
            (Difference::Whole, _) | (_, Difference::Whole) => Difference::Whole,
            (Difference::Bound, _) | (_, Difference::Bound) => Difference::Bound,
            _ => Difference::None,
        }
    }

    fn of(differs: bool, how: Difference) -> Difference {
        if differs { how } else { Difference::None }
    }
}

/// Two models.
#[derive(Clone, Copy)]
pub(super) struct Pair<'m> {
    pub(super) old: &'m Model,
    pub(super) new: &'m Model,
}

impl Pair<'_> {
    /// How two types differ on the wire. A definition that both have by the same name, or with the same repository id, is the
    /// same type: its own differences are reported where it is defined.
    pub(super) fn difference(&self, old: TypeId, new: TypeId) -> Difference {
        if let (Type::Named(a), Type::Named(b)) = (self.old.ty(old), self.new.ty(new))
            && self.is_same(*a, *b)
        {
            return Difference::None;
        }
        let bound = |a: &Option<u32>, b: &Option<u32>| Difference::of(a != b, Difference::Bound);
        match (self.old.stripped(old), self.new.stripped(new)) {
            (Type::String(a), Type::String(b)) | (Type::WString(a), Type::WString(b)) => bound(a, b),
            (Type::Sequence { element: a, bound: m }, Type::Sequence { element: b, bound: n }) => {
                bound(m, n).and(self.difference(*a, *b))
            }
            (Type::Array { element: a, dims: m }, Type::Array { element: b, dims: n }) => {
                Difference::of(m != n, Difference::Whole).and(self.difference(*a, *b))
            }
            (Type::Map { key: k, value: a, bound: m }, Type::Map { key: l, value: b, bound: n }) => {
                bound(m, n).and(self.difference(*k, *l)).and(self.difference(*a, *b))
            }
            (Type::Named(a), Type::Named(b)) => Difference::of(!self.is_same(*a, *b), Difference::Whole),
            (a, b) => Difference::of(a != b, Difference::Whole),
        }
    }

    /// The two definitions are versions of one.
    pub(super) fn is_same(&self, old: DefId, new: DefId) -> bool {
        let (a, b) = (self.old.def(old), self.new.def(new));
        let is_alias = |kind: &DefKind| matches!(kind, DefKind::Typedef(_));
        let same_name = self.old.scoped_name(old) == self.new.scoped_name(new);
        let same_id = !is_alias(&a.kind) && !is_alias(&b.kind) && a.repository_id == b.repository_id;
        same_name || same_id
    }

    /// The range that annotations give a number differs.
    pub(super) fn range_differs(&self, old: (&Annotations, TypeId), new: (&Annotations, TypeId)) -> bool {
        let text = |bounds: Option<idl_compiler::model::Bounds>| bounds.map(|bounds| format!("{bounds:?}"));
        text(self.old.bounds(old.0, old.1)) != text(self.new.bounds(new.0, new.1))
    }

    /// Both as messages name them.
    pub(super) fn named(&self, old: TypeId, new: TypeId) -> (String, String) {
        (self.old.describe(old), self.new.describe(new))
    }
}
