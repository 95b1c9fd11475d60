//! Comparison of type codes ("TypeCodes", `equal` and `equivalent`).

use std::collections::HashSet;

use super::TypeCode;
use super::node::{Body, Index, Member, NamedType, Node, Nodes, Union, Value};

/// The maximum number of type pairs compared; with more, two codes count as different. Two codes with the
/// same structure whose nodes are within the limits need fewer.
const MAX_PAIRS: usize = 1 << 15;

impl TypeCode {
    /// Returns whether the two are identical in kinds, ids, names, members, bounds and aliases.
    ///
    /// Two codes are equal even if recursive types are written out to different depths. If more than 32768
    /// different pairs of types are to be compared, they count as different.
    pub fn equal(&self, other: &TypeCode) -> bool {
        Comparison::new(self, other, true).run(self.root, other.root)
    }

    /// Returns whether a value of one type can be used as a value of the other. Aliases are resolved; names
    /// and visibility are ignored. If both types have a repository id, only the ids are compared.
    ///
    /// If more than 32768 different pairs of types are to be compared, they count as different.
    pub fn equivalent(&self, other: &TypeCode) -> bool {
        Comparison::new(self, other, false).run(self.root, other.root)
    }
}

struct Comparison<'a> {
    a: &'a Nodes,
    b: &'a Nodes,
    exact: bool,
    /// The pairs still to be compared.
    pairs: Vec<(Index, Index)>,
    /// The pairs already compared or still to be compared.
    met: HashSet<(Index, Index)>,
}

impl<'a> Comparison<'a> {
    fn new(a: &'a TypeCode, b: &'a TypeCode, exact: bool) -> Comparison<'a> {
        Comparison { a: &a.nodes, b: &b.nodes, exact, pairs: Vec::new(), met: HashSet::new() }
    }

    /// Queues two types for comparison; returns `false` if they obviously differ. A pair that was queued
    /// before is skipped, because it is equal if all others are. Therefore recursive types end.
    fn pair(&mut self, mut a: Index, mut b: Index) -> bool {
        if !self.exact {
            (a, b) = (self.a.unaliased(a), self.b.unaliased(b));
        }
        if a == b && self.a.same(self.b) {
            return true;
        }
        if let (Node::Basic(a), Node::Basic(b)) = (self.a.at(a), self.b.at(b)) {
            return a == b;
        }
        if self.met.insert((a, b)) {
            self.pairs.push((a, b));
        }
        self.met.len() <= MAX_PAIRS
    }

    fn run(&mut self, a: Index, b: Index) -> bool {
        if !self.pair(a, b) {
            return false;
        }
        while let Some((a, b)) = self.pairs.pop() {
            if !self.nodes(self.a.at(a), self.b.at(b)) {
                return false;
            }
        }
        true
    }

    /// Compares everything except the types that these two consist of, which are queued.
    fn nodes(&mut self, a: &Node, b: &Node) -> bool {
        match (a, b) {
            (Node::Text { wide: a, bound: x }, Node::Text { wide: b, bound: y }) => a == b && x == y,
            (Node::Fixed { digits: a, scale: x }, Node::Fixed { digits: b, scale: y }) => a == b && x == y,
            (Node::Sequence { element: a, bound: x }, Node::Sequence { element: b, bound: y })
            | (Node::Array { element: a, length: x }, Node::Array { element: b, length: y }) => {
                x == y && self.pair(*a, *b)
            }
            (Node::Named(a), Node::Named(b)) => self.named(a, b),
            (Node::Recursive(a), Node::Recursive(b)) => a == b,
            _ => false,
        }
    }

    fn named(&mut self, a: &NamedType, b: &NamedType) -> bool {
        if a.kind != b.kind {
            return false;
        }
        if self.exact {
            return a.id == b.id && a.name == b.name && self.bodies(&a.body, &b.body);
        }
        match (&*a.id, &*b.id) {
            ("", _) | (_, "") => self.bodies(&a.body, &b.body),
            (a, b) => a == b,
        }
    }

    fn bodies(&mut self, a: &Body, b: &Body) -> bool {
        match (a, b) {
            (Body::Opaque, Body::Opaque) => true,
            (Body::Content(a), Body::Content(b)) => self.pair(*a, *b),
            (Body::Members(a), Body::Members(b)) => self.members(a, b, false),
            (Body::Enumerators(a), Body::Enumerators(b)) => {
                if self.exact {
                    a == b
                } else {
                    a.len() == b.len()
                }
            }
            (Body::Union(a), Body::Union(b)) => self.unions(a, b),
            (Body::Value(a), Body::Value(b)) => self.values(a, b),
            _ => false,
        }
    }

    fn members(&mut self, a: &[Member], b: &[Member], labels: bool) -> bool {
        if a.len() != b.len() {
            return false;
        }
        a.iter().zip(b).all(|(a, b)| {
            (!self.exact || a.name == b.name)
                && (!(labels || self.exact) || a.label == b.label)
                && self.pair(a.kind, b.kind)
        })
    }

    fn unions(&mut self, a: &Union, b: &Union) -> bool {
        // The label of a default member is always 0, because the label on the wire is discarded.
        a.default == b.default
            && self.pair(a.discriminator, b.discriminator)
            && self.members(&a.members, &b.members, true)
    }

    fn values(&mut self, a: &Value, b: &Value) -> bool {
        match (a.base, b.base) {
            (Some(a), Some(b)) if self.pair(a, b) => {}
            (None, None) => {}
            _ => return false,
        }
        // omniORB swaps the visibilities, so only an exact comparison includes them.
        a.modifier == b.modifier && self.members(&a.members, &b.members, false)
    }
}

#[cfg(test)]
mod tests {
    use crate::typecode::{TcKind, TypeCode, Typed};

    #[test]
    fn aliases_are_seen_by_equal_and_looked_through_by_equivalent() {
        let long = TypeCode::LONG;
        let list = TypeCode::sequence(&long, 0);
        assert!(list.equal(&Vec::<i32>::type_code()) && list == Vec::<i32>::type_code());
        assert!(!list.equivalent(&Vec::<u32>::type_code()));
        assert!(!list.equivalent(&TypeCode::sequence(&long, 3)));
        assert!(!list.equivalent(&TypeCode::array(&long, 0)));
        assert!(!TypeCode::string(3).equivalent(&TypeCode::STRING));
        assert!(!TypeCode::string(0).equivalent(&TypeCode::WSTRING));
        assert!(TypeCode::string(0).equal(&TypeCode::STRING));
        assert!(!TypeCode::NULL.equal(&TypeCode::VOID));
        assert_eq!(TypeCode::OBJECT.kind(), TcKind::ObjRef);
    }
}
