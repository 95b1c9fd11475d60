//! Type codes without names ("TypeCodes", `get_compact_typecode`).

use std::borrow::Cow;

use super::TypeCode;
use super::node::{Body, Builder, NamedType, Node, Nodes};

impl TypeCode {
    /// Returns the same type without the names of types, members and enumerators, which take most of its
    /// encoding. Ids and aliases remain. The result is equivalent to this type code, but not equal to it.
    #[doc(alias = "get_compact_typecode")]
    pub fn compact(&self) -> TypeCode {
        if let Nodes::Static(_) = self.nodes
            && !matches!(self.node(), Node::Named(_))
        {
            return self.clone();
        }
        let mut builder = Builder::default();
        let root = builder.adopt(&self.nodes, self.root);
        let Some(nodes) = builder.finish() else { return self.clone() };
        let nodes: Box<[Node]> = nodes.all().iter().cloned().map(without_names).collect();
        TypeCode::new(Nodes::from(nodes), root)
    }
}

const NONE: Cow<'static, str> = Cow::Borrowed("");

fn without_names(mut node: Node) -> Node {
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
