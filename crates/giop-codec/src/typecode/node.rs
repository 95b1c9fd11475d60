//! The arena of a type code: nodes that refer to each other by index, so that recursion is no cycle.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use super::kind::{TcKind, ValueModifier};
use crate::DecodeError;
use crate::cdr::Decoder;
pub(crate) use crate::program::Index;
use crate::program::Steps;

/// A name or repository id: a constant, or allocated.
pub(crate) type Name = Cow<'static, str>;

#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A type that is fully described by its kind.
    Basic(TcKind),
    /// `string`, `wstring`; a bound of 0 means unbounded.
    Text { wide: bool, bound: u32 },
    /// `fixed`.
    Fixed { digits: u16, scale: i16 },
    /// `sequence`; a bound of 0 means unbounded.
    Sequence { element: Index, bound: u32 },
    /// One dimension of an array.
    Array { element: Index, length: u32 },
    /// A type with a repository id.
    Named(NamedType),
    /// A placeholder for the type with this id, which is not defined yet.
    Placeholder(Name),
}

#[derive(Clone, Debug)]
pub(crate) struct NamedType {
    pub(crate) kind: TcKind,
    pub(crate) id: Name,
    pub(crate) name: Name,
    pub(crate) body: Body,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// Nothing: an interface, component, home or `native` type.
    Opaque,
    /// The content of an alias or value box.
    Content(Index),
    /// The members of a struct or exception.
    Members(Box<[Member]>),
    /// The enumerators of an enum.
    Enumerators(Box<[Name]>),
    Union(Box<Union>),
    Value(Box<Value>),
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: Name,
    pub(crate) ty: Index,
    /// The label of a union's member, extended to 64 bits, or the visibility of a value's member.
    pub(crate) label_or_visibility: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct Union {
    pub(crate) discriminator: Index,
    /// The index of the default member, which is selected by all discriminators that are not a label.
    pub(crate) default: Option<u32>,
    /// An entry for each label.
    pub(crate) members: Box<[Member]>,
    /// The indices of all members except the default one, sorted by label.
    by_label: Box<[u32]>,
}

impl Union {
    pub(crate) fn new(discriminator: Index, default: Option<u32>, members: Box<[Member]>) -> Union {
        let label = |index: &u32| members.get(*index as usize).map(|member| member.label_or_visibility);
        let mut by_label: Box<[u32]> =
            (0..members.len() as u32).filter(|index| Some(*index) != default).collect();
        by_label.sort_by_key(label);
        Union { discriminator, default, members, by_label }
    }

    /// Returns the member that a discriminator selects, if any.
    pub(crate) fn selected(&self, discriminator: i64) -> Option<&Member> {
        let member = |index: &u32| self.members.get(*index as usize);
        let at = self
            .by_label
            .partition_point(|index| member(index).is_some_and(|m| m.label_or_visibility < discriminator));
        let found = self.by_label.get(at).and_then(member).filter(|m| m.label_or_visibility == discriminator);
        found.or_else(|| member(&self.default?))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) modifier: ValueModifier,
    pub(crate) base: Option<Index>,
    pub(crate) members: Box<[Member]>,
}

// Types must not take more memory than the decoder grants for their encoding: eight times its size.
const _: () = assert!(size_of::<Node>() <= 96 && size_of::<Member>() <= 48);

impl Node {
    pub(crate) fn kind(&self) -> TcKind {
        match self {
            Node::Basic(kind) => *kind,
            Node::Text { wide: false, .. } => TcKind::String,
            Node::Text { wide: true, .. } => TcKind::WString,
            Node::Fixed { .. } => TcKind::Fixed,
            Node::Sequence { .. } => TcKind::Sequence,
            Node::Array { .. } => TcKind::Array,
            Node::Named(named) => named.kind,
            Node::Placeholder(_) => TcKind::Null,
        }
    }

    /// Returns the approximate memory use in bytes.
    pub(crate) fn memory(&self) -> usize {
        let names = match self {
            Node::Named(NamedType { id, name, body, .. }) => {
                let names = if let Body::Enumerators(names) = body { &**names } else { &[] };
                let enumerators = names.iter().map(|name| size_of::<Name>() + name.len());
                id.len() + name.len() + enumerators.sum::<usize>()
            }
            _ => 0,
        };
        let members = self.members().iter().map(|member| size_of::<Member>() + member.name.len());
        size_of::<Node>() + names + members.sum::<usize>()
    }

    /// Returns the members of a struct, exception, union or value; empty for other kinds.
    pub(crate) fn members(&self) -> &[Member] {
        match self {
            Node::Named(NamedType { body: Body::Members(members), .. }) => members,
            Node::Named(NamedType { body: Body::Union(union), .. }) => &union.members,
            Node::Named(NamedType { body: Body::Value(value), .. }) => &value.members,
            _ => &[],
        }
    }
}

/// Nodes, and the program for values of their types, which is compiled on first use.
#[derive(Debug)]
pub(crate) struct Arena {
    nodes: Box<[Node]>,
    steps: OnceLock<Box<Steps>>,
}

/// The nodes of a type code, which it shares with its copies and parts.
#[derive(Clone, Debug)]
pub(crate) enum Nodes {
    Static(&'static [Node]),
    Shared(Arc<Arena>),
}

/// The program of all [`Nodes::Static`], which refer to the same array.
static STATIC_STEPS: OnceLock<Box<Steps>> = OnceLock::new();

impl From<Box<[Node]>> for Nodes {
    fn from(nodes: Box<[Node]>) -> Nodes {
        Nodes::Shared(Arc::new(Arena { nodes, steps: OnceLock::new() }))
    }
}

impl Nodes {
    pub(crate) fn all(&self) -> &[Node] {
        match self {
            Nodes::Static(nodes) => nodes,
            Nodes::Shared(arena) => &arena.nodes,
        }
    }

    /// Returns the program for values of all these types, which is compiled on first use.
    pub(crate) fn steps(&self) -> &Steps {
        let cell = match self {
            Nodes::Static(_) => &STATIC_STEPS,
            Nodes::Shared(arena) => &arena.steps,
        };
        cell.get_or_init(|| Box::new(Steps::new(self)))
    }

    /// Compiles the program for received types, unless there is one, and charges the decoder for its size.
    pub(crate) fn compile_for(&self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        match self {
            Nodes::Shared(arena) if arena.steps.get().is_none() => d.charge(self.steps().memory()),
            _ => Ok(()),
        }
    }

    /// Returns the node at an index. Every index inside a node refers to the arena of that node.
    pub(crate) fn at(&self, index: Index) -> &Node {
        self.all().get(index as usize).unwrap_or(const { &Node::Basic(TcKind::Null) })
    }

    /// Returns the index of the type with all aliases resolved. Aliases never form a cycle.
    pub(crate) fn unaliased(&self, mut index: Index) -> Index {
        while let Node::Named(NamedType { kind: TcKind::Alias, body: Body::Content(content), .. }) =
            self.at(index)
        {
            index = *content;
        }
        index
    }

    pub(crate) fn address(&self) -> usize {
        self.all().as_ptr().addr()
    }

    pub(crate) fn is_same(&self, other: &Nodes) -> bool {
        std::ptr::eq(self.all(), other.all())
    }
}

/// An arena under construction.
#[derive(Debug)]
pub(crate) struct Builder {
    nodes: Vec<Option<Node>>,
    /// The indices of the basic types added so far, by the number of their kind. Each is added only once.
    basic_indices: [Option<Index>; TcKind::ALL.len()],
}

impl Default for Builder {
    fn default() -> Builder {
        Builder { nodes: Vec::new(), basic_indices: [None; TcKind::ALL.len()] }
    }
}

impl Builder {
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn reserve(&mut self) -> Index {
        self.nodes.push(None);
        (self.nodes.len() - 1) as Index
    }

    pub(crate) fn set(&mut self, index: Index, node: Node) {
        if let Some(place) = self.nodes.get_mut(index as usize) {
            *place = Some(node);
        }
    }

    pub(crate) fn push(&mut self, node: Node) -> Index {
        let index = self.reserve();
        self.set(index, node);
        index
    }

    pub(crate) fn basic(&mut self, kind: TcKind) -> Index {
        if let Some(Some(index)) = self.basic_indices.get(kind.number() as usize) {
            return *index;
        }
        let index = self.push(Node::Basic(kind));
        if let Some(place) = self.basic_indices.get_mut(kind.number() as usize) {
            *place = Some(index);
        }
        index
    }

    pub(crate) fn get(&self, index: Index) -> Option<&Node> {
        self.nodes.get(index as usize)?.as_ref()
    }

    /// Copies a node of another arena and all nodes that it refers to. Returns the new index of the node.
    pub(crate) fn copy_from(&mut self, nodes: &Nodes, root: Index) -> Index {
        let mut places = vec![None; nodes.all().len()];
        let mut pending = Vec::new();
        let copy = self.index_for(nodes, root, &mut places, &mut pending);
        while let Some((from, to)) = pending.pop() {
            let mut node = nodes.at(from).clone();
            node.for_each_index_mut(|index| {
                *index = self.index_for(nodes, *index, &mut places, &mut pending)
            });
            self.set(to, node);
        }
        copy
    }

    fn index_for(
        &mut self,
        nodes: &Nodes,
        index: Index,
        places: &mut [Option<Index>],
        pending: &mut Vec<(Index, Index)>,
    ) -> Index {
        if let Node::Basic(kind) = nodes.at(index) {
            return self.basic(*kind);
        }
        let Some(place) = places.get_mut(index as usize) else { return self.basic(TcKind::Null) };
        *place.get_or_insert_with(|| {
            let to = self.reserve();
            pending.push((index, to));
            to
        })
    }

    /// Returns the finished arena; `None` if a reserved node is not set.
    pub(crate) fn finish(self) -> Option<Nodes> {
        self.nodes.into_iter().collect::<Option<Box<[Node]>>>().map(Nodes::from)
    }

    /// Returns the type with all aliases resolved; `None` if it is not set.
    pub(super) fn unaliased(&self, mut index: Index) -> Option<&Node> {
        // The loop is bounded, because an alias may be an alias of itself.
        for _ in 0..=self.len() {
            match self.get(index)? {
                Node::Named(NamedType { kind: TcKind::Alias, body: Body::Content(content), .. }) => {
                    index = *content
                }
                node => return Some(node),
            }
        }
        None
    }
}

impl Node {
    /// Calls `f` with the index of each node that this one refers to.
    pub(crate) fn for_each_index_mut(&mut self, mut f: impl FnMut(&mut Index)) {
        match self {
            Node::Sequence { element, .. } | Node::Array { element, .. } => f(element),
            Node::Named(NamedType { body, .. }) => match body {
                Body::Content(content) => f(content),
                Body::Members(members) => members.iter_mut().for_each(|member| f(&mut member.ty)),
                Body::Union(union) => {
                    f(&mut union.discriminator);
                    union.members.iter_mut().for_each(|member| f(&mut member.ty));
                }
                Body::Value(value) => {
                    value.base.iter_mut().for_each(&mut f);
                    value.members.iter_mut().for_each(|member| f(&mut member.ty));
                }
                Body::Opaque | Body::Enumerators(_) => {}
            },
            Node::Basic(_) | Node::Text { .. } | Node::Fixed { .. } | Node::Placeholder(_) => {}
        }
    }

    /// Calls `f` with the index of each node that this one refers to.
    pub(crate) fn for_each_index(&self, mut f: impl FnMut(Index)) {
        match self {
            Node::Sequence { element, .. } | Node::Array { element, .. } => f(*element),
            Node::Named(NamedType { body: Body::Content(content), .. }) => f(*content),
            Node::Named(NamedType { body: Body::Union(union), .. }) => f(union.discriminator),
            Node::Named(NamedType { body: Body::Value(value), .. }) => {
                value.base.into_iter().for_each(&mut f)
            }
            _ => {}
        }
        self.members().iter().for_each(|member| f(member.ty));
    }
}
