//! `==` and `{:?}` of values, without recursion. Each thread performs at most one comparison and one
//! formatting at a time: calls for values inside other values only extend the traversal that is running.

use core::cell::RefCell;
use core::fmt;
use core::mem::ManuallyDrop;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::thread::LocalKey;

use super::Value;
use super::graph::Graph;

/// A thread's running traversal. It has no destructor, because other thread-locals may use it later.
type Current<T> = RefCell<ManuallyDrop<Option<T>>>;

/// Ends the traversal when it is dropped, even if the `==` or `{:?}` of a state panics.
struct ResetGuard<T: 'static>(&'static LocalKey<Current<T>>);

impl<T> Drop for ResetGuard<T> {
    fn drop(&mut self) {
        let ended = self.0.with(|current| current.borrow_mut().take());
        drop(ended);
    }
}

type NodeRef = (Arc<Graph>, u32);

/// The state of one comparison. All pairs of nodes in it are assumed to be equal until a difference is found.
#[derive(Default)]
struct Comparison {
    /// The pairs, by the address of the graph and the index of each node.
    assumed_equal: HashSet<(usize, u32, usize, u32)>,
    pending: Vec<(NodeRef, NodeRef)>,
}

impl Comparison {
    fn assume_equal(&mut self, a: NodeRef, b: NodeRef) {
        if self.assumed_equal.insert((Arc::as_ptr(&a.0).addr(), a.1, Arc::as_ptr(&b.0).addr(), b.1)) {
            self.pending.push((a, b));
        }
    }
}

thread_local! {
    /// Comparing two states calls `eq` for each pair of values in them. A nested call only stores the pair.
    static COMPARISON: Current<Comparison> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Values are equal if they have the same type and equal fields. Two fields that refer to one value are equal
/// to two fields that refer to two equal values; [`Value::is_same`] distinguishes these cases.
impl<V> PartialEq for Value<V> {
    fn eq(&self, other: &Value<V>) -> bool {
        if self.is_same(other) {
            return true;
        }
        let (Some(a), Some(b)) = (self.link.graph(), other.link.graph()) else { return false };
        let (a, b) = ((a, self.index), (b, other.index));
        let is_nested = COMPARISON.with(|comparison| {
            let mut comparison = comparison.borrow_mut();
            let is_nested = comparison.is_some();
            comparison.get_or_insert_default().assume_equal(a, b);
            is_nested
        });
        if is_nested {
            return true;
        }
        let _reset = ResetGuard(&COMPARISON);
        let next = || COMPARISON.with(|comparison| comparison.borrow_mut().as_mut()?.pending.pop());
        while let Some((a, b)) = next() {
            let equal = match (a.0.node(a.1), b.0.node(b.1)) {
                (Some(a), Some(b)) => a.is_equal(b),
                _ => false,
            };
            if !equal {
                return false;
            }
        }
        true
    }
}

/// A value is always equal to itself, even if it contains a floating-point NaN.
impl<V> Eq for Value<V> {}

const MAX_SHOWN_NODES: usize = 100;

/// The numbers of nodes, and the nodes that have not been shown yet.
#[derive(Default)]
struct NodeNumbers {
    numbers: HashMap<(usize, u32), usize>,
    pending: VecDeque<(usize, Arc<Graph>, u32)>,
}

impl NodeNumbers {
    fn number(&mut self, graph: Arc<Graph>, index: u32) -> usize {
        let next = self.numbers.len();
        let number = *self.numbers.entry((Arc::as_ptr(&graph).addr(), index)).or_insert(next);
        if number == next {
            self.pending.push_back((number, graph, index));
        }
        number
    }
}

thread_local! {
    /// Formatting a state calls `fmt` for each value in it. A nested call only writes the value's number.
    static OUTPUT: Current<NodeNumbers> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Writes `Value(#0 = Node { v: 1, next: Some(#1) }, #1 = Node { v: 2, next: Some(#0) })`.
impl<V> fmt::Debug for Value<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(graph) = self.link.graph() else { return f.write_str("Value(dropped)") };
        let (is_nested, number) = OUTPUT.with(|show| {
            let mut show = show.borrow_mut();
            let is_nested = show.is_some();
            (is_nested, show.get_or_insert_default().number(graph, self.index))
        });
        if is_nested {
            return write!(f, "#{number}");
        }
        let _reset = ResetGuard(&OUTPUT);
        let next = || OUTPUT.with(|show| show.borrow_mut().as_mut()?.pending.pop_front());
        let mut shown = f.debug_tuple("Value");
        while let Some((number, graph, index)) = next() {
            if number == MAX_SHOWN_NODES {
                return shown.finish_non_exhaustive();
            }
            shown.field(&NumberedNode { number, graph, index });
        }
        shown.finish()
    }
}

struct NumberedNode {
    number: usize,
    graph: Arc<Graph>,
    index: u32,
}

impl fmt::Debug for NumberedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} = ", self.number)?;
        match self.graph.node(self.index) {
            Some(node) => node.show(f),
            None => f.write_str("(incomplete)"),
        }
    }
}
