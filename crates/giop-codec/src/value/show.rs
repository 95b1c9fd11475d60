//! `{:?}` of values: shows each node once, by a number.

use core::cell::RefCell;
use core::fmt;
use core::mem::ManuallyDrop;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::Value;
use super::graph::Graph;

/// Maximum number of nodes shown.
const MOST: usize = 100;

/// The numbers of nodes, and the nodes still to be shown.
#[derive(Default)]
struct NodeNumbers {
    numbers: HashMap<(usize, u32), usize>,
    to_do: VecDeque<(usize, Arc<Graph>, u32)>,
}

impl NodeNumbers {
    fn number(&mut self, graph: Arc<Graph>, index: u32) -> usize {
        let next = self.numbers.len();
        let number = *self.numbers.entry((Arc::as_ptr(&graph).addr(), index)).or_insert(next);
        if number == next {
            self.to_do.push_back((number, graph, index));
        }
        number
    }
}

thread_local! {
    /// The current output. States format their fields, which calls `fmt` for each value in them. A nested
    /// call only writes a number.
    static UNDER_WAY: RefCell<ManuallyDrop<Option<NodeNumbers>>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Ends the output, also if a state's `{:?}` panics.
struct ResetGuard;

impl Drop for ResetGuard {
    fn drop(&mut self) {
        let ended = UNDER_WAY.with(|show| show.borrow_mut().take());
        drop(ended);
    }
}

/// Writes `Value(#0 = Node { v: 1, next: Some(#1) }, #1 = Node { v: 2, next: Some(#0) })`, with at most a
/// hundred nodes.
impl<V> fmt::Debug for Value<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(graph) = self.link.graph() else { return f.write_str("Value(gone)") };
        let (nested, number) = UNDER_WAY.with(|show| {
            let mut show = show.borrow_mut();
            let nested = show.is_some();
            (nested, show.get_or_insert_default().number(graph, self.index))
        });
        if nested {
            return write!(f, "#{number}");
        }
        let _end = ResetGuard;
        let next = || UNDER_WAY.with(|show| show.borrow_mut().as_mut()?.to_do.pop_front());
        let mut shown = f.debug_tuple("Value");
        while let Some((number, graph, index)) = next() {
            if number == MOST {
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
            None => f.write_str("(not whole)"),
        }
    }
}
