//! `==` of values: compares two graphs from two nodes on.

use core::cell::RefCell;
use core::mem::ManuallyDrop;
use std::collections::HashSet;
use std::sync::Arc;

use super::Value;
use super::graph::Graph;

type NodeRef = (Arc<Graph>, u32);

/// Pairs of nodes that are assumed equal unless a difference is found.
#[derive(Default)]
struct Comparison {
    assumed: HashSet<(usize, u32, usize, u32)>,
    to_do: Vec<(NodeRef, NodeRef)>,
}

impl Comparison {
    fn assume(&mut self, a: NodeRef, b: NodeRef) {
        if self.assumed.insert((Arc::as_ptr(&a.0).addr(), a.1, Arc::as_ptr(&b.0).addr(), b.1)) {
            self.to_do.push((a, b));
        }
    }
}

thread_local! {
    /// The current comparison. States compare their fields, which calls `eq` for each value in them. A nested
    /// call only notes the pair, so that cycles and long chains cause no recursion.
    static UNDER_WAY: RefCell<ManuallyDrop<Option<Comparison>>> =
        const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Ends the comparison, also if a state's `==` panics.
struct ResetGuard;

impl Drop for ResetGuard {
    fn drop(&mut self) {
        let ended = UNDER_WAY.with(|comparison| comparison.borrow_mut().take());
        drop(ended);
    }
}

/// Values are equal if they have one type and equal fields. Pairs that are being compared are assumed equal.
/// Whether fields share a value or have two equal ones makes no difference: use [`Value::is_same`] to
/// distinguish them.
impl<V> PartialEq for Value<V> {
    fn eq(&self, other: &Value<V>) -> bool {
        if self.is_same(other) {
            return true;
        }
        let (Some(a), Some(b)) = (self.link.graph(), other.link.graph()) else { return false };
        let (a, b) = ((a, self.index), (b, other.index));
        let noted = UNDER_WAY.with(|comparison| {
            let mut comparison = comparison.borrow_mut();
            let noted = comparison.is_some();
            comparison.get_or_insert_default().assume(a, b);
            noted
        });
        if noted {
            return true;
        }
        let _end = ResetGuard;
        let next = || UNDER_WAY.with(|comparison| comparison.borrow_mut().as_mut()?.to_do.pop());
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

/// A value equals itself, whatever its content.
impl<V> Eq for Value<V> {}
