//! Encoding of Rust values of generated types, driven by their type codes.

use super::{code_of, unaliased_root};
use crate::cdr::Encoder;
use crate::typecode::{Body, Index, LabelEncoding, NamedType, Node, Nodes, TypeDesc};
use crate::{EncodeError, EncodeErrorKind};

type WriteResult = Result<(), EncodeError>;

/// A value that exposes its parts to a [`ReflectWriter`].
///
/// When `write` is called, the writer must be at the type code node of the value's type.
pub trait ReflectWrite {
    /// Passes the parts to the writer, or writes the value itself if it has no parts.
    fn write(&self, w: &mut ReflectWriter<'_>) -> WriteResult;

    /// Writes consecutive values, all at the current type code node.
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

/// An encoder of values, with the current position in their type code.
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

    /// Writes consecutive values, all at the current type code node.
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
    /// The errors of the members, and [`Unrepresentable`](EncodeErrorKind::Unrepresentable) if the type does
    /// not have this number of members.
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
            self.index = nodes.unaliased(member.ty);
            part.write(self)?;
        }
        Ok(())
    }

    /// Writes a union: the label, and the value of the selected member. `member` is the index of that member,
    /// or `None` if no member is selected.
    ///
    /// # Errors
    /// [`IllegalDiscriminator`](EncodeErrorKind::IllegalDiscriminator) if the label does not select `member`.
    #[inline(never)]
    pub fn union(&mut self, label: i64, member: Option<usize>, value: &dyn ReflectWrite) -> WriteResult {
        let nodes = self.nodes;
        let Node::Named(NamedType { body: Body::Union(union), .. }) = nodes.at(self.index) else {
            return Err(mismatch());
        };
        let labels = LabelEncoding::of_node(nodes, union.discriminator).ok_or_else(mismatch)?;
        // Compare names instead of indexes, because a member is listed once for each of its labels.
        let selected = union.selected(label);
        let given = member.and_then(|member| union.members.get(member));
        if selected.map(|member| &*member.name) != given.map(|member| &*member.name) {
            return Err(EncodeError::new(EncodeErrorKind::IllegalDiscriminator));
        }
        labels.write(self.e, label)?;
        let Some(selected) = selected else { return Ok(()) };
        self.index = nodes.unaliased(selected.ty);
        value.write(self)
    }

    /// Writes an enumerator. Never fails.
    #[inline(never)]
    pub fn ordinal(&mut self, ordinal: u32) -> WriteResult {
        self.e.put_u32(ordinal);
        Ok(())
    }

    /// Writes the count of a sequence, and moves to the type code node of its elements.
    #[inline(never)]
    pub(super) fn count(&mut self, count: usize) -> WriteResult {
        self.e.put_len(count)?;
        self.enter_elements();
        Ok(())
    }

    #[inline(never)]
    pub(super) fn enter_elements(&mut self) {
        self.index = element_index(self.nodes, self.index);
    }
}

pub(super) fn element_index(nodes: &Nodes, index: Index) -> Index {
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
pub fn write_interpreted(value: &dyn ReflectWrite, desc: &'static TypeDesc, e: &mut Encoder) -> WriteResult {
    let code = code_of(desc);
    value.write(&mut ReflectWriter { e, nodes: &code.nodes, index: unaliased_root(&code) })
}

/// Writes values of this type, without a count.
pub fn write_interpreted_slice<T: ReflectWrite>(
    items: &[T],
    desc: &'static TypeDesc,
    e: &mut Encoder,
) -> WriteResult {
    write_interpreted(&Row(items), desc, e)
}

/// Consecutive values that are written as one value, at the type code node of their type.
struct Row<'a, T>(&'a [T]);

impl<T: ReflectWrite> ReflectWrite for Row<'_, T> {
    fn write(&self, w: &mut ReflectWriter<'_>) -> WriteResult {
        T::write_slice(self.0, w)
    }
}
