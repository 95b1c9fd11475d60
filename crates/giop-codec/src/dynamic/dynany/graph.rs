//! Extraction of the part of a [`ValueGraph`] that a value needs, appending of nodes, and removal of
//! unreachable nodes.

use super::super::{DynError, DynErrorKind, Items, Value, ValueGraph};

/// The maximum number of nodes in a graph.
pub(super) const MAX_NODES: usize = 1 << 21;

#[cold]
pub(super) fn too_many_nodes() -> DynError {
    DynErrorKind::Limit("the graph would have more than 2097152 values").into()
}

/// Returns the new index of a node. The result is invalid if the old index was invalid.
fn new_index(indices: &[Option<u32>], node: u32) -> u32 {
    indices.get(node as usize).copied().flatten().unwrap_or(u32::MAX)
}

/// Numbers the nodes that are reachable from a value. The result has an entry for each node of the graph,
/// which is `None` for an unreachable node.
fn find_reachable(value: &Value, graph: &ValueGraph) -> Vec<Option<u32>> {
    let mut new_indices = vec![None; graph.nodes.len()];
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Node(Some(node)) => {
                if let (Some(new_index @ None), Some(found)) =
                    (new_indices.get_mut(*node as usize), graph.nodes.get(*node as usize))
                {
                    *new_index = Some(0);
                    pending.extend(&found.members);
                }
            }
            Value::Struct(members) => pending.extend(members.iter()),
            Value::Union(union) => pending.extend(&union.value),
            Value::Items(items) => {
                if let Items::Values(values) = &**items {
                    pending.extend(values);
                }
            }
            _ => {}
        }
    }
    (0..).zip(new_indices.iter_mut().flatten()).for_each(|(new, index)| *index = new);
    new_indices
}

/// Changes all node numbers in `values`, but not in the nodes to which they refer.
fn renumber<'v>(values: impl IntoIterator<Item = &'v mut Value>, mut number: impl FnMut(u32) -> u32) {
    let mut pending: Vec<&mut Value> = values.into_iter().collect();
    while let Some(value) = pending.pop() {
        match value {
            Value::Node(Some(node)) => *node = number(*node),
            Value::Struct(members) => pending.extend(members.iter_mut()),
            Value::Union(union) => pending.extend(&mut union.value),
            Value::Items(items) => {
                if let Items::Values(values) = &mut **items {
                    pending.extend(values.iter_mut());
                }
            }
            _ => {}
        }
    }
}

fn all_values<'v>(value: &'v mut Value, graph: &'v mut ValueGraph) -> impl Iterator<Item = &'v mut Value> {
    std::iter::once(value).chain(graph.nodes.iter_mut().flat_map(|node| node.members.iter_mut()))
}

/// Returns the value with a graph of the nodes that are reachable from it.
pub(super) fn extract(mut value: Value, graph: &ValueGraph) -> (Value, ValueGraph) {
    if graph.nodes.is_empty() {
        return (value, ValueGraph::default());
    }
    let reachable = find_reachable(&value, graph);
    let nodes = graph.nodes.iter().zip(&reachable).filter(|(_, index)| index.is_some());
    let mut graph = ValueGraph { nodes: nodes.map(|(node, _)| node.clone()).collect() };
    renumber(all_values(&mut value, &mut graph), |node| new_index(&reachable, node));
    (value, graph)
}

/// Removes the nodes that are not reachable from the value.
pub(super) fn prune(value: &mut Value, graph: &mut ValueGraph) {
    let reachable = find_reachable(value, graph);
    if reachable.iter().all(Option::is_some) {
        return;
    }
    let mut new_indices = reachable.iter();
    graph.nodes.retain(|_| new_indices.next().is_some_and(Option::is_some));
    renumber(all_values(value, graph), |node| new_index(&reachable, node));
}

/// Appends `more`, the graph of `value`, to `graph`. Returns the value with the new node numbers.
///
/// # Errors
/// [`Limit`](DynErrorKind::Limit) if the graph would have too many nodes.
pub(super) fn append(
    graph: &mut ValueGraph,
    mut value: Value,
    mut more: ValueGraph,
) -> Result<Value, DynError> {
    let offset = graph.nodes.len();
    if more.nodes.is_empty() {
        return Ok(value);
    }
    if offset.saturating_add(more.nodes.len()) > MAX_NODES {
        return Err(too_many_nodes());
    }
    renumber(all_values(&mut value, &mut more), |node| node.saturating_add(offset as u32));
    graph.nodes.append(&mut more.nodes);
    Ok(value)
}
