//! Graphs of values whose parts are replaced. Nodes that become unreachable are dropped, and an extracted
//! part has only its own nodes.

use super::super::{DynError, DynErrorKind, Items, Value, ValueGraph};

/// The maximum number of nodes of one value.
pub(super) const MAX_NODES: usize = 1 << 21;

#[cold]
pub(super) fn too_many() -> DynError {
    DynErrorKind::Limit("the graph would have over 2097152 values").into()
}

/// The nodes that are reachable from a value.
struct ReachableNodes {
    /// The new index of each node, by its old index.
    places: Vec<Option<u32>>,
    /// The old index of each node, in the new order.
    nodes: Vec<u32>,
}

/// Returns the nodes of a graph that are reachable from a value, in their order.
fn reached(value: &Value, graph: &ValueGraph) -> ReachableNodes {
    let mut places = vec![None; graph.nodes.len()];
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Node(Some(node)) => {
                if let (Some(place @ None), Some(found)) =
                    (places.get_mut(*node as usize), graph.nodes.get(*node as usize))
                {
                    *place = Some(0);
                    waiting.extend(&found.members);
                }
            }
            Value::Struct(members) => waiting.extend(members.iter()),
            Value::Union(union) => waiting.extend(&union.value),
            Value::Items(items) => {
                if let Items::Values(values) = &**items {
                    waiting.extend(values);
                }
            }
            _ => {}
        }
    }
    let mut nodes = Vec::new();
    for (at, place) in (0..).zip(&mut places) {
        if let Some(place) = place {
            *place = nodes.len() as u32;
            nodes.push(at);
        }
    }
    ReachableNodes { places, nodes }
}

/// Changes all node numbers in values, but not those inside of the referenced nodes.
fn renumber<'v>(values: impl IntoIterator<Item = &'v mut Value>, mut number: impl FnMut(u32) -> u32) {
    let mut waiting: Vec<&mut Value> = values.into_iter().collect();
    while let Some(value) = waiting.pop() {
        match value {
            Value::Node(Some(node)) => *node = number(*node),
            Value::Struct(members) => waiting.extend(members.iter_mut()),
            Value::Union(union) => waiting.extend(&mut union.value),
            Value::Items(items) => {
                if let Items::Values(values) = &mut **items {
                    waiting.extend(values.iter_mut());
                }
            }
            _ => {}
        }
    }
}

fn all<'v>(value: &'v mut Value, graph: &'v mut ValueGraph) -> impl Iterator<Item = &'v mut Value> {
    std::iter::once(value).chain(graph.nodes.iter_mut().flat_map(|node| node.members.iter_mut()))
}

/// Returns a part of a value, with the nodes that are reachable from it.
pub(super) fn extract(mut value: Value, graph: &ValueGraph) -> (Value, ValueGraph) {
    if graph.nodes.is_empty() {
        return (value, ValueGraph::default());
    }
    let reached = reached(&value, graph);
    let nodes = reached.nodes.iter().filter_map(|at| graph.nodes.get(*at as usize).cloned());
    let mut graph = ValueGraph { nodes: nodes.collect() };
    // An invalid node number remains invalid.
    let place = |node: u32| reached.places.get(node as usize).copied().flatten().unwrap_or(u32::MAX);
    renumber(all(&mut value, &mut graph), place);
    (value, graph)
}

/// Drops unreachable nodes.
pub(super) fn prune(value: &mut Value, graph: &mut ValueGraph) {
    let reached = reached(value, graph);
    if reached.nodes.len() == graph.nodes.len() {
        return;
    }
    let mut places = reached.places.iter();
    graph.nodes.retain(|_| places.next().is_some_and(Option::is_some));
    let place = |node: u32| reached.places.get(node as usize).copied().flatten().unwrap_or(u32::MAX);
    renumber(all(value, graph), place);
}

/// Appends the nodes of another value's graph, and renumbers the nodes in that value.
///
/// # Errors
/// [`Limit`](DynErrorKind::Limit).
pub(super) fn append(
    graph: &mut ValueGraph,
    mut value: Value,
    mut more: ValueGraph,
) -> Result<Value, DynError> {
    let by = graph.nodes.len();
    if more.nodes.is_empty() {
        return Ok(value);
    }
    if by.saturating_add(more.nodes.len()) > MAX_NODES {
        return Err(too_many());
    }
    renumber(all(&mut value, &mut more), |node| node.saturating_add(by as u32));
    graph.nodes.append(&mut more.nodes);
    Ok(value)
}
