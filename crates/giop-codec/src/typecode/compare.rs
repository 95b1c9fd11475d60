//! Comparison of type codes, and their compact form: the operations `equal`, `equivalent` and
//! `get_compact_typecode` of the CORBA specification ("TypeCodes").

use std::borrow::Cow;
use std::collections::HashSet;

use super::TypeCode;
use super::node::{Body, Builder, Index, Member, NamedType, Node, Nodes, Union, Value};

/// The maximum number of pairs of types to compare. Similar types within the decoder's limits need fewer.
const MAX_PAIRS: usize = 1 << 15;

impl TypeCode {
    /// Returns whether both type codes have the same kinds, ids, names, members, bounds and aliases.
    ///
    /// Type codes can be equal even if recursive types are written out to different depths. If more than
    /// 32768 different pairs of types would have to be compared, the type codes count as different.
    pub fn equal(&self, other: &TypeCode) -> bool {
        Comparison { is_exact: true, ..Comparison::new(self, other) }.run(self.root, other.root)
    }

    /// Returns whether a value of one type can be used as a value of the other. Aliases are resolved, and
    /// names and visibility are ignored. If both types have a repository id, only kinds and ids are compared.
    ///
    /// If more than 32768 pairs of types would have to be compared, the type codes count as different.
    pub fn equivalent(&self, other: &TypeCode) -> bool {
        Comparison::new(self, other).run(self.root, other.root)
    }

    /// Returns the same type without the names of types, members and enumerators, which take most of the
    /// encoding. Ids and aliases remain. The result is equivalent to this type code, but equal only if that
    /// has no names.
    #[doc(alias = "get_compact_typecode")]
    pub fn compact(&self) -> TypeCode {
        if let Nodes::Static(_) = self.nodes
            && !matches!(self.node(), Node::Named(_))
        {
            return self.clone();
        }
        let mut builder = Builder::default();
        let root = builder.copy_from(&self.nodes, self.root);
        let Some(nodes) = builder.finish() else { return self.clone() };
        let nodes: Box<[Node]> = nodes.all().iter().cloned().map(without_names).collect();
        TypeCode::new(Nodes::from(nodes), root)
    }
}

fn without_names(mut node: Node) -> Node {
    const NONE: Cow<'static, str> = Cow::Borrowed("");
    if let Node::Named(NamedType { name, body, .. }) = &mut node {
        *name = NONE;
        match body {
            Body::Members(members) => members.iter_mut().for_each(|member| member.name = NONE),
            Body::Union(union) => union.members.iter_mut().for_each(|member| member.name = NONE),
            Body::Value(value) => value.members.iter_mut().for_each(|member| member.name = NONE),
            Body::Enumerators(names) => names.fill(NONE),
            Body::Opaque | Body::Content(_) => {}
        }
    }
    node
}

struct Comparison<'a> {
    a: &'a Nodes,
    b: &'a Nodes,
    /// Whether to compare for [`equal`](TypeCode::equal) instead of [`equivalent`](TypeCode::equivalent).
    is_exact: bool,
    pending: Vec<(Index, Index)>,
    queued: HashSet<(Index, Index)>,
}

impl<'a> Comparison<'a> {
    fn new(a: &'a TypeCode, b: &'a TypeCode) -> Comparison<'a> {
        Comparison { a: &a.nodes, b: &b.nodes, is_exact: false, pending: Vec::new(), queued: HashSet::new() }
    }

    /// Queues a pair of types not queued before. Returns `false` if they differ, or for too many pairs.
    fn queue_pair(&mut self, mut a: Index, mut b: Index) -> bool {
        if !self.is_exact {
            (a, b) = (self.a.unaliased(a), self.b.unaliased(b));
        }
        if a == b && self.a.is_same(self.b) {
            return true;
        }
        if let (Node::Basic(a), Node::Basic(b)) = (self.a.at(a), self.b.at(b)) {
            return a == b;
        }
        if self.queued.insert((a, b)) {
            self.pending.push((a, b));
        }
        self.queued.len() <= MAX_PAIRS
    }

    fn run(&mut self, a: Index, b: Index) -> bool {
        let mut equal = self.queue_pair(a, b);
        while equal && let Some((a, b)) = self.pending.pop() {
            equal = self.compare_nodes(self.a.at(a), self.b.at(b));
        }
        equal
    }

    /// Compares two nodes, and queues the types that they refer to.
    fn compare_nodes(&mut self, a: &Node, b: &Node) -> bool {
        match (a, b) {
            (Node::Text { wide: a, bound: x }, Node::Text { wide: b, bound: y }) => a == b && x == y,
            (Node::Fixed { digits: a, scale: x }, Node::Fixed { digits: b, scale: y }) => a == b && x == y,
            (Node::Sequence { element: a, bound: x }, Node::Sequence { element: b, bound: y })
            | (Node::Array { element: a, length: x }, Node::Array { element: b, length: y }) => {
                x == y && self.queue_pair(*a, *b)
            }
            (Node::Named(a), Node::Named(b)) => self.compare_named(a, b),
            (Node::Placeholder(a), Node::Placeholder(b)) => a == b,
            _ => false,
        }
    }

    fn compare_named(&mut self, a: &NamedType, b: &NamedType) -> bool {
        if a.kind != b.kind {
            return false;
        }
        if self.is_exact {
            return a.id == b.id && a.name == b.name && self.compare_bodies(&a.body, &b.body);
        }
        match (&*a.id, &*b.id) {
            ("", _) | (_, "") => self.compare_bodies(&a.body, &b.body),
            (a, b) => a == b,
        }
    }

    fn compare_bodies(&mut self, a: &Body, b: &Body) -> bool {
        match (a, b) {
            (Body::Opaque, Body::Opaque) => true,
            (Body::Content(a), Body::Content(b)) => self.queue_pair(*a, *b),
            (Body::Members(a), Body::Members(b)) => self.compare_members(a, b, false),
            (Body::Enumerators(a), Body::Enumerators(b)) if self.is_exact => a == b,
            (Body::Enumerators(a), Body::Enumerators(b)) => a.len() == b.len(),
            (Body::Union(a), Body::Union(b)) => self.compare_unions(a, b),
            (Body::Value(a), Body::Value(b)) => self.compare_values(a, b),
            _ => false,
        }
    }

    fn compare_members(&mut self, a: &[Member], b: &[Member], has_labels: bool) -> bool {
        let mut equal = |(a, b): (&Member, &Member)| {
            (!self.is_exact || a.name == b.name)
                && (!(has_labels || self.is_exact) || a.label_or_visibility == b.label_or_visibility)
                && self.queue_pair(a.ty, b.ty)
        };
        a.len() == b.len() && a.iter().zip(b).all(&mut equal)
    }

    fn compare_unions(&mut self, a: &Union, b: &Union) -> bool {
        // The labels of the default members are equal: the decoder replaces them by 0.
        a.default == b.default
            && self.queue_pair(a.discriminator, b.discriminator)
            && self.compare_members(&a.members, &b.members, true)
    }

    fn compare_values(&mut self, a: &Value, b: &Value) -> bool {
        let same_base = match (a.base, b.base) {
            (Some(a), Some(b)) => self.queue_pair(a, b),
            (a, b) => a == b,
        };
        // Only an exact comparison includes the visibilities, because omniORB swaps public and private.
        same_base && a.modifier == b.modifier && self.compare_members(&a.members, &b.members, false)
    }
}

#[cfg(test)]
mod tests {
    use crate::typecode::{TcKind, TypeCode, Typed};

    #[test]
    fn equal_distinguishes_aliases_and_equivalent_resolves_them() {
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
