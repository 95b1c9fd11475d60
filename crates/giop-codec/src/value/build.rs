//! [`GraphBuilder`]: creation of graphs with cycles.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use super::graph::{Graph, Link, Node, Nodes};
use super::{Value, ValueType};

/// A builder of a graph whose values may refer to each other in any way, cycles included.
///
/// The handles that it returns are for the states of this graph. They do not keep it alive. The handle
/// returned by [`finish`](Self::finish) does, and so do clones of any of them from then on.
///
/// ```
/// use giop_codec::value::GraphBuilder;
/// # use giop_codec::value::{Casts, Flow, Progress, Value, ValuePart, ValueType};
/// # use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
/// # use giop_codec::{DecodeError, EncodeError};
/// # #[derive(Clone, Debug, Default, PartialEq)]
/// # struct Node { v: i32, next: Option<Value<Node>> }
/// # impl ValueType for Node {
/// #     const REPOSITORY_ID: &'static str = "IDL:Node:1.0";
/// #     const PARTS: u32 = 2;
/// #     fn casts(to: &mut Casts<'_>) { to.offer::<Self>(|v| v.downcast_ref()); }
/// #     fn encode_part(&self, part: u32, e: &mut Encoder, at: &mut Progress) -> Result<Flow, EncodeError> {
/// #         match part { 0 => self.v.encode(e).map(|()| Flow::Next), _ => self.next.encode_part(e, at) }
/// #     }
/// #     fn decode_part(
/// #         &mut self, part: u32, d: &mut Decoder<'_>, at: &mut Progress,
/// #     ) -> Result<Flow, DecodeError> {
/// #         match part {
/// #             0 => { self.v = i32::decode(d)?; Ok(Flow::Next) }
/// #             _ => self.next.decode_part(d, at),
/// #         }
/// #     }
/// # }
///
/// let mut graph = GraphBuilder::new();
/// let first = graph.reserve::<Node>();
/// let second = graph.add(Node { v: 2, next: Some(first.clone()) });
/// assert!(graph.set(&first, Node { v: 1, next: Some(second) }));
/// let ring = graph.finish(&first);
///
/// let second = ring.get().next.clone().unwrap();
/// assert!(second.get().next.as_ref().unwrap().is_same(&ring));
/// ```
#[derive(Default)]
#[must_use]
pub struct GraphBuilder {
    graph: Arc<Graph>,
    nodes: Nodes,
}

impl GraphBuilder {
    /// Creates a builder without values.
    pub fn new() -> GraphBuilder {
        GraphBuilder::default()
    }

    /// Adds a value with this state.
    pub fn add<V: ValueType>(&mut self, state: V) -> Value<V> {
        let index = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(Box::new(state));
        Value::from_link(Link::Weak(Arc::downgrade(&self.graph)), index)
    }

    /// Adds a value whose state is [set](Self::set) later. Until then it has the default state.
    pub fn reserve<V: ValueType>(&mut self) -> Value<V> {
        self.add(V::default())
    }

    /// Sets the state of a value of this graph. Returns `false`, and sets nothing, for a value of another
    /// graph, or of another type than `V`.
    #[must_use]
    pub fn set<V: ValueType>(&mut self, value: &Value<V>, state: V) -> bool {
        let own = value.is_same(&Value::<V>::from_link(Link::Strong(Arc::clone(&self.graph)), value.index));
        let node = self.nodes.get_mut(value.index as usize).filter(|_| own);
        let node: Option<&mut dyn Node> = node.map(|node| &mut **node);
        match node.and_then(|node| (node as &mut dyn Any).downcast_mut::<V>()) {
            Some(place) => {
                *place = state;
                true
            }
            None => false,
        }
    }

    /// Completes the graph and returns a handle to one of its values, which keeps it alive.
    pub fn finish<V>(self, root: &Value<V>) -> Value<V> {
        self.graph.fill(self.nodes);
        root.clone()
    }
}

impl fmt::Debug for GraphBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphBuilder").field("values", &self.nodes.len()).finish()
    }
}
