//! Encoding of Rust values, driven by their type codes.

use super::{code_of, root};
use crate::cdr::Encoder;
use crate::typecode::{Body, Index, Labels, NamedType, Node, Nodes, TypeDesc};
use crate::{EncodeError, EncodeErrorKind};

type WriteResult = Result<(), EncodeError>;

/// A value that exposes its parts for writing.
///
/// When `write` is called, the writer is at the node of the value's type.
pub trait ReflectWrite {
    /// Passes the parts to the writer, or writes the value if it has none.
    fn write(&self, w: &mut ReflectWriter<'_>) -> WriteResult;

    /// Writes consecutive values; for each of them the writer is set to the current node.
    fn write_slice(items: &[Self], w: &mut ReflectWriter<'_>) -> WriteResult
    where
        Self: Sized,
    {
        w.slice(&items)
    }
}

pub(super) trait DynSlice {
    fn at(&self, index: usize) -> Option<&dyn ReflectWrite>;
}

impl<T: ReflectWrite> DynSlice for &[T] {
    fn at(&self, index: usize) -> Option<&dyn ReflectWrite> {
        self.get(index).map(|item| item as _)
    }
}

/// The encoder of values and the current position in their type code.
#[derive(Debug)]
pub struct ReflectWriter<'a> {
    pub(super) e: &'a mut Encoder,
    nodes: &'a Nodes,
    index: Index,
}

impl ReflectWriter<'_> {
    /// Returns the encoder.
    pub fn encoder(&mut self) -> &mut Encoder {
        self.e
    }

    /// Writes consecutive values, each at the current node.
    #[inline(never)]
    pub(super) fn slice(&mut self, items: &dyn DynSlice) -> WriteResult {
        let index = self.index;
        let mut at = 0;
        while let Some(item) = items.at(at) {
            self.index = index;
            item.write(self)?;
            at += 1;
        }
        Ok(())
    }

    /// Writes the members of a struct or exception.
    ///
    /// # Errors
    /// Those of the members; [`Unrepresentable`](EncodeErrorKind::Unrepresentable) if the type has another
    /// number of members.
    #[inline(never)]
    pub fn members(&mut self, parts: &[&dyn ReflectWrite]) -> WriteResult {
        let nodes = self.nodes;
        let Node::Named(NamedType { body: Body::Members(members), .. }) = nodes.at(self.index) else {
            return Err(mismatch());
        };
        if members.len() != parts.len() {
            return Err(mismatch());
        }
        for (member, part) in members.iter().zip(parts) {
            self.index = nodes.unaliased(member.kind);
            part.write(self)?;
        }
        Ok(())
    }

    /// Writes a union with this label, and the value of the member with this index, if one is selected.
    ///
    /// # Errors
    /// [`IllegalDiscriminator`](EncodeErrorKind::IllegalDiscriminator) if the label selects another member.
    #[inline(never)]
    pub fn union(&mut self, label: i64, member: Option<usize>, value: &dyn ReflectWrite) -> WriteResult {
        let nodes = self.nodes;
        let Node::Named(NamedType { body: Body::Union(union), .. }) = nodes.at(self.index) else {
            return Err(mismatch());
        };
        let labels = Labels::of_node(nodes, union.discriminator).ok_or_else(mismatch)?;
        // Compare names, because a member is listed once for each of its labels.
        let selected = union.selected(label);
        let meant = member.and_then(|member| union.members.get(member));
        if selected.map(|member| &*member.name) != meant.map(|member| &*member.name) {
            return Err(EncodeError::new(EncodeErrorKind::IllegalDiscriminator));
        }
        labels.write(self.e, label)?;
        let Some(selected) = selected else { return Ok(()) };
        self.index = nodes.unaliased(selected.kind);
        value.write(self)
    }

    /// Writes an enumerator. Never fails.
    #[inline(never)]
    pub fn ordinal(&mut self, ordinal: u32) -> WriteResult {
        self.e.put_u32(ordinal);
        Ok(())
    }

    /// Writes the count of a sequence, and moves to the node of its elements.
    #[inline(never)]
    pub(super) fn count(&mut self, count: usize) -> WriteResult {
        self.e.put_len(count)?;
        self.enter_elements();
        Ok(())
    }

    #[inline(never)]
    pub(super) fn enter_elements(&mut self) {
        self.index = elements(self.nodes, self.index);
    }
}

pub(super) fn elements(nodes: &Nodes, index: Index) -> Index {
    match nodes.at(index) {
        Node::Sequence { element, .. } | Node::Array { element, .. } => nodes.unaliased(*element),
        _ => index,
    }
}

#[cold]
fn mismatch() -> EncodeError {
    EncodeError::new(EncodeErrorKind::Unrepresentable)
}

/// Writes a value of this type.
#[inline(never)]
pub fn interpret(value: &dyn ReflectWrite, desc: &'static TypeDesc, e: &mut Encoder) -> WriteResult {
    let code = code_of(desc);
    value.write(&mut ReflectWriter { e, nodes: &code.nodes, index: root(&code) })
}

/// Writes values of this type, without a count.
pub fn interpret_slice<T: ReflectWrite>(
    items: &[T],
    desc: &'static TypeDesc,
    e: &mut Encoder,
) -> WriteResult {
    interpret(&Row(items), desc, e)
}

/// Consecutive values as a single one, for a writer that is at the node of their type.
struct Row<'a, T>(&'a [T]);

impl<T: ReflectWrite> ReflectWrite for Row<'_, T> {
    fn write(&self, w: &mut ReflectWriter<'_>) -> WriteResult {
        T::write_slice(self.0, w)
    }
}
