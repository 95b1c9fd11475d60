//! [`Value`]: a handle to a node of a graph, and [`GraphBuilder`], which creates graphs with cycles.

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
    fn part_count(&self) -> u32;
    fn encode_part(&self, part: u32, e: &mut Encoder, progress: &mut Progress) -> Result<Flow, EncodeError>;
    fn decode_part(
        &mut self,
        part: u32,
        d: &mut Decoder<'_>,
        progress: &mut Progress,
    ) -> Result<Flow, DecodeError>;
    fn is_equal(&self, other: &dyn Node) -> bool;
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl<V: ValueType> Node for V {
    fn factory(&self) -> &'static Factory {
        V::STATE_FACTORY
    }

    fn part_count(&self) -> u32 {
        V::PART_COUNT
    }

    fn encode_part(&self, part: u32, e: &mut Encoder, progress: &mut Progress) -> Result<Flow, EncodeError> {
        ValueType::encode_part(self, part, e, progress)
    }

    fn decode_part(
        &mut self,
        part: u32,
        d: &mut Decoder<'_>,
        progress: &mut Progress,
    ) -> Result<Flow, DecodeError> {
        ValueType::decode_part(self, part, d, progress)
    }

    fn is_equal(&self, other: &dyn Node) -> bool {
        (other as &dyn Any).downcast_ref::<V>().is_some_and(|other| self == other)
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

pub(super) type Nodes = Vec<Box<dyn Node>>;

/// The states of one graph. They are unset until the graph is complete, and immutable afterwards.
#[derive(Default)]
pub(super) struct Graph {
    nodes: OnceLock<Nodes>,
}

impl Graph {
    pub(super) fn node(&self, index: u32) -> Option<&dyn Node> {
        self.nodes.get()?.get(index as usize).map(|node| &**node)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.nodes.get().is_some()
    }

    pub(super) fn complete(&self, nodes: Nodes) {
        let _ = self.nodes.set(nodes);
    }
}

thread_local! {
    /// The nodes of graphs that were released while another graph is dropped. The thread-local has no
    /// destructor, because values in other thread-locals can be dropped after it.
    static RELEASED: RefCell<ManuallyDrop<Option<Vec<Nodes>>>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Drops all graphs that only this one kept alive, without recursion, because the chain may be long.
impl Drop for Graph {
    fn drop(&mut self) {
        let Some(nodes) = self.nodes.take() else { return };
        let first = RELEASED.with(|released| match &mut **released.borrow_mut() {
            Some(released) => {
                released.push(nodes);
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
            next = RELEASED.with(|released| {
                let mut released = released.borrow_mut();
                let next = released.as_mut().and_then(Vec::pop);
                if next.is_none() {
                    **released = None;
                }
                next
            });
        }
    }
}

/// A handle to a value: a node of a graph. See the [module](super).
///
/// ```
/// use giop_codec::value::{Casts, Flow, GraphBuilder, Progress, Value, ValuePart, ValueType};
/// # use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
/// # use giop_codec::{DecodeError, EncodeError};
///
/// // valuetype Node { public long v; public Node next; };
/// #[derive(Clone, Debug, Default, PartialEq)]
/// struct Node { v: i32, next: Option<Value<Node>> }
/// # impl ValueType for Node {
/// #     const REPOSITORY_ID: &'static str = "IDL:Node:1.0";
/// #     const PART_COUNT: u32 = 2;
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
/// // A list:
/// let second = Value::new(Node { v: 2, next: None });
/// let mut next = Some(Value::new(Node { v: 1, next: Some(second) }));
/// let mut sum = 0;
/// while let Some(node) = next {
///     let node = node.get();
///     sum += node.v;
///     next = node.next.clone();
/// }
/// assert_eq!(sum, 3);
///
/// // A ring:
/// let mut graph = GraphBuilder::new();
/// let first = graph.reserve::<Node>();
/// let second = graph.add(Node { v: 2, next: Some(first.clone()) });
/// assert!(graph.set(&first, Node { v: 1, next: Some(second) }));
/// let ring = graph.finish(&first);
/// let second = ring.get().next.clone().unwrap();
/// assert!(second.get().next.as_ref().unwrap().is_same(&ring));
/// ```
pub struct Value<V> {
    pub(super) link: Link,
    pub(super) index: u32,
    marker: PhantomData<fn() -> V>,
}

#[derive(Clone)]
pub(super) enum Link {
    Strong(Arc<Graph>),
    /// A reference from inside the graph itself, or to a graph that is incomplete.
    Weak(Weak<Graph>),
}

impl Link {
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
    /// Creates a value with this state, in a graph of its own.
    pub fn new(state: V) -> Value<V> {
        let graph = Graph::default();
        graph.complete(vec![Box::new(state)]);
        Value::from_link(Link::Strong(Arc::new(graph)), 0)
    }
}

impl<V> Value<V> {
    pub(super) fn from_link(link: Link, index: u32) -> Value<V> {
        Value { link, index, marker: PhantomData }
    }

    /// Returns whether both handles refer to the same value, and not only to equal values.
    pub fn is_same<W>(&self, other: &Value<W>) -> bool {
        self.index == other.index && core::ptr::eq(self.link.address(), other.link.address())
    }
}

impl<V: ValueForm> Value<V> {
    /// Returns the value's state. The result keeps it alive.
    ///
    /// If the graph is incomplete or has been dropped, the result is the default state of the type. Handles
    /// to incomplete graphs exist only while a [`GraphBuilder`] or a
    /// [`CustomMarshal::unmarshal`](super::CustomMarshal::unmarshal) is at work.
    pub fn get(&self) -> ValueRef<V> {
        let place = self.link.graph().and_then(|graph| {
            let cast = graph.node(self.index)?.factory().cast::<V>()?;
            Some(StateSource::Node { graph, index: self.index, cast })
        });
        ValueRef(place.unwrap_or_else(|| StateSource::Missing(Box::default())))
    }

    /// Returns a handle of type `D` if that is the value's own type or one of its bases.
    pub fn downcast<D: ValueForm>(&self) -> Option<Value<D>> {
        self.factory()?.cast::<D>()?;
        let Value { link, index, .. } = self.clone();
        Some(Value::from_link(link, index))
    }

    /// Returns a handle of the base type `B` to the same value.
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

impl<V> Clone for Value<V> {
    fn clone(&self) -> Value<V> {
        let link = match &self.link {
            Link::Weak(weak) => match weak.upgrade().filter(|graph| graph.is_complete()) {
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

/// The state of a [`Value`]. It keeps the graph of the value alive.
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
                .unwrap_or_else(|| unreachable!("`Value::get` has found the node, and graphs do not change")),
            StateSource::Missing(state) => state,
        }
    }
}

impl<V: ValueForm> ValueRef<V> {
    /// Returns the state as the trait object `O`, if its type [offers](super::Casts::offer) that.
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

/// A builder of a graph whose values may refer to each other in any way. See the example of [`Value`].
///
/// The handles that [`add`](Self::add) and [`reserve`](Self::reserve) return are meant for states of this
/// graph, and do not keep it alive. The result of [`finish`](Self::finish) does, and later clones of the
/// others.
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

    /// Adds a value whose state is [set](Self::set) later. Until then, it has the default state.
    pub fn reserve<V: ValueType>(&mut self) -> Value<V> {
        self.add(V::default())
    }

    /// Sets the state of a value. Returns `false` if it is in another graph, or its own type is not `V`.
    #[must_use]
    pub fn set<V: ValueType>(&mut self, value: &Value<V>, state: V) -> bool {
        let is_own =
            value.is_same(&Value::<V>::from_link(Link::Strong(Arc::clone(&self.graph)), value.index));
        let node = self.nodes.get_mut(value.index as usize).filter(|_| is_own);
        let node: Option<&mut dyn Node> = node.map(|node| &mut **node);
        let place = node.and_then(|node| (node as &mut dyn Any).downcast_mut::<V>());
        place.map(|place| *place = state).is_some()
    }

    /// Completes the graph and returns a handle to the value `root`. This handle keeps the graph alive.
    pub fn finish<V>(self, root: &Value<V>) -> Value<V> {
        self.graph.complete(self.nodes);
        root.clone()
    }
}

impl fmt::Debug for GraphBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphBuilder").field("values", &self.nodes.len()).finish()
    }
}
