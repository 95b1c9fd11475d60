//! [`Value`]: a handle to a node of a graph.

use core::any::Any;
use core::cell::RefCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

use super::factory::CastFn;
use super::{Extends, Factory, Flow, Progress, ValueForm, ValueType};
use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, EncodeError};

/// The state of a value of any type.
pub(super) trait Node: Any + Send + Sync {
    fn factory(&self) -> &'static Factory;
    fn parts(&self) -> u32;
    fn encode_part(&self, part: u32, e: &mut Encoder, at: &mut Progress) -> Result<Flow, EncodeError>;
    fn decode_part(&mut self, part: u32, d: &mut Decoder<'_>, at: &mut Progress)
    -> Result<Flow, DecodeError>;
    fn is_equal(&self, other: &dyn Node) -> bool;
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl<V: ValueType> Node for V {
    fn factory(&self) -> &'static Factory {
        V::MAKER
    }

    fn parts(&self) -> u32 {
        V::PARTS
    }

    fn encode_part(&self, part: u32, e: &mut Encoder, at: &mut Progress) -> Result<Flow, EncodeError> {
        ValueType::encode_part(self, part, e, at)
    }

    fn decode_part(
        &mut self,
        part: u32,
        d: &mut Decoder<'_>,
        at: &mut Progress,
    ) -> Result<Flow, DecodeError> {
        ValueType::decode_part(self, part, d, at)
    }

    fn is_equal(&self, other: &dyn Node) -> bool {
        (other as &dyn Any).downcast_ref::<V>().is_some_and(|other| self == other)
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

pub(super) type Nodes = Vec<Box<dyn Node>>;

/// States of one graph. Unset while they are gathered, then immutable.
#[derive(Default)]
pub(super) struct Graph {
    nodes: OnceLock<Nodes>,
}

impl Graph {
    pub(super) fn node(&self, index: u32) -> Option<&dyn Node> {
        self.nodes.get()?.get(index as usize).map(|node| &**node)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.nodes.get().is_some()
    }

    /// Completes the graph. Does nothing if it is complete.
    pub(super) fn fill(&self, nodes: Nodes) {
        let _ = self.nodes.set(nodes);
    }
}

thread_local! {
    /// The nodes of graphs released while another one is dropped; `None` if none is. It has no destructor, so
    /// that values in other thread-locals can be dropped after it.
    static FALLEN: RefCell<ManuallyDrop<Option<Vec<Nodes>>>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Drops graphs that only this graph held one after the other, without recursion, however long the chain is.
impl Drop for Graph {
    fn drop(&mut self) {
        let Some(nodes) = self.nodes.take() else { return };
        let first = FALLEN.with(|fallen| match &mut **fallen.borrow_mut() {
            Some(fallen) => {
                fallen.push(nodes);
                None
            }
            none => {
                *none = Some(Vec::new());
                Some(nodes)
            }
        });
        let mut next = first;
        while let Some(nodes) = next {
            drop(nodes);
            next = FALLEN.with(|fallen| {
                let mut fallen = fallen.borrow_mut();
                let next = fallen.as_mut().and_then(Vec::pop);
                if next.is_none() {
                    **fallen = None;
                }
                next
            });
        }
    }
}

/// A handle to a value: a node of a graph. See the [module](super).
///
/// ```
/// use giop_codec::value::{Casts, Flow, Progress, Value, ValuePart, ValueType};
/// # use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
/// # use giop_codec::{DecodeError, EncodeError};
///
/// // valuetype Node { public long v; public Node next; };
/// #[derive(Clone, Debug, Default, PartialEq)]
/// struct Node { v: i32, next: Option<Value<Node>> }
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
/// let list = Value::new(Node { v: 1, next: Some(Value::new(Node { v: 2, next: None })) });
/// let mut sum = 0;
/// let mut next = Some(list);
/// while let Some(node) = next {
///     let node = node.get();
///     sum += node.v;
///     next = node.next.clone();
/// }
/// assert_eq!(sum, 3);
/// ```
pub struct Value<V> {
    pub(super) link: Link,
    pub(super) index: u32,
    marker: PhantomData<fn() -> V>,
}

#[derive(Clone)]
pub(super) enum Link {
    Strong(Arc<Graph>),
    /// A link from inside of the graph itself, or while it is incomplete.
    Weak(Weak<Graph>),
}

impl Link {
    /// Returns the graph, unless it was dropped.
    pub(super) fn graph(&self) -> Option<Arc<Graph>> {
        match self {
            Link::Strong(graph) => Some(Arc::clone(graph)),
            Link::Weak(graph) => graph.upgrade(),
        }
    }

    fn address(&self) -> *const Graph {
        match self {
            Link::Strong(graph) => Arc::as_ptr(graph),
            Link::Weak(graph) => graph.as_ptr(),
        }
    }
}

impl<V: ValueType> Value<V> {
    /// Creates a value with this state, in a graph of its own. Values in its fields stay shared with their
    /// other holders.
    pub fn new(state: V) -> Value<V> {
        let graph = Graph::default();
        graph.fill(vec![Box::new(state)]);
        Value::from_link(Link::Strong(Arc::new(graph)), 0)
    }
}

impl<V> Value<V> {
    pub(super) fn from_link(link: Link, index: u32) -> Value<V> {
        Value { link, index, marker: PhantomData }
    }

    /// Returns whether both are the same value, not only equal ones.
    pub fn is_same<W>(&self, other: &Value<W>) -> bool {
        self.index == other.index && core::ptr::eq(self.link.address(), other.link.address())
    }
}

impl<V: ValueForm> Value<V> {
    /// Returns the value's state, which stays alive as long as the result.
    ///
    /// For a handle to a graph that is incomplete or was dropped, it returns the default state of the type.
    /// Only a [`GraphBuilder`](super::GraphBuilder) or a [`CustomMarshal`](super::CustomMarshal) can expose
    /// such a handle.
    pub fn get(&self) -> ValueRef<V> {
        let place = self.link.graph().and_then(|graph| {
            let cast = graph.node(self.index)?.factory().cast::<V>()?;
            Some(StateSource::Node { graph, index: self.index, cast })
        });
        ValueRef(place.unwrap_or_else(|| StateSource::Missing(Box::default())))
    }

    /// Returns the same value as one of type `D`, if `D` is its own type, a base of that or an abstract base.
    pub fn downcast<D: ValueForm>(&self) -> Option<Value<D>> {
        self.factory()?.cast::<D>()?;
        let Value { link, index, .. } = self.clone();
        Some(Value::from_link(link, index))
    }

    /// Returns the same value as one of a base type.
    pub fn upcast<B: ValueForm>(&self) -> Value<B>
    where
        V: Extends<B>,
    {
        let Value { link, index, .. } = self.clone();
        Value::from_link(link, index)
    }

    /// Returns the repository id of the value's own type, which may be derived from `V`.
    pub fn repository_id(&self) -> &'static str {
        self.factory().map_or(V::REPOSITORY_ID, |factory| factory.repository_id)
    }

    fn factory(&self) -> Option<&'static Factory> {
        Some(self.link.graph()?.node(self.index)?.factory())
    }
}

/// A clone of a handle keeps the graph alive, unless the graph is still incomplete.
impl<V> Clone for Value<V> {
    fn clone(&self) -> Value<V> {
        let link = match &self.link {
            Link::Weak(weak) => match weak.upgrade().filter(|graph| graph.is_whole()) {
                Some(graph) => Link::Strong(graph),
                None => Link::Weak(Weak::clone(weak)),
            },
            strong => strong.clone(),
        };
        Value::from_link(link, self.index)
    }
}

impl<V: ValueType> From<V> for Value<V> {
    fn from(state: V) -> Value<V> {
        Value::new(state)
    }
}

/// Lets a `&Value<V>` be passed as `impl Into<Option<Value<V>>>`.
impl<V> From<&Value<V>> for Option<Value<V>> {
    fn from(value: &Value<V>) -> Option<Value<V>> {
        Some(value.clone())
    }
}

/// The state of a [`Value`], kept alive.
pub struct ValueRef<V>(StateSource<V>);

enum StateSource<V> {
    Node { graph: Arc<Graph>, index: u32, cast: CastFn<V> },
    Missing(Box<V>),
}

impl<V> Deref for ValueRef<V> {
    type Target = V;

    fn deref(&self) -> &V {
        match &self.0 {
            StateSource::Node { graph, index, cast } => graph
                .node(*index)
                .and_then(|node| cast(node))
                .unwrap_or_else(|| unreachable!("`Value::get` saw it, and graphs do not change")),
            StateSource::Missing(state) => state,
        }
    }
}

impl<V: ValueForm> ValueRef<V> {
    /// Returns the operations of the value's own type as a trait that it [offers](super::Casts::offer).
    pub fn operations<O: ?Sized + 'static>(&self) -> Option<&O> {
        match &self.0 {
            StateSource::Node { graph, index, .. } => {
                let node = graph.node(*index)?;
                node.factory().cast::<O>()?(node)
            }
            StateSource::Missing(state) => V::FACTORY?.cast::<O>()?(&**state),
        }
    }
}

impl<V: fmt::Debug> fmt::Debug for ValueRef<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
