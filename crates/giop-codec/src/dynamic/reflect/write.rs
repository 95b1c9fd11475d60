//! Rust values to octets, led by their type codes.

use super::{code_of, root};
use crate::cdr::Encoder;
use crate::typecode::{Body, Index, Labels, Named, Node, Nodes, TypeDesc};
use crate::{EncodeError, EncodeErrorKind};

/// What writing returns.
type Put = Result<(), EncodeError>;

/// A value that shows its parts to be written.
///
/// The writer stands at the node of the value's type when `write` is called.
pub trait Written {
    /// Gives the parts to the writer, or writes the value if it has none.
    ///
    /// # Errors
    /// Those of [`CdrEncode`](crate::cdr::CdrEncode).
    fn write(&self, w: &mut Writing<'_>) -> Put;

    /// The same for values in a row; the writer stands at the node of each.
    ///
    /// # Errors
    /// As [`write`](Written::write), of the first that has no encoding.
    fn write_slice(items: &[Self], w: &mut Writing<'_>) -> Put
    where
        Self: Sized,
    {
        w.row(&items)
    }
}

/// Values in a row, whatever they are.
pub(super) trait Items {
    fn at(&self, index: usize) -> Option<&dyn Written>;
}

impl<T: Written> Items for &[T] {
    fn at(&self, index: usize) -> Option<&dyn Written> {
        match self.get(index) {
            Some(item) => Some(item),
            None => None,
        }
    }
}

/// Where a value is written, and where in its type code that is.
#[derive(Debug)]
pub struct Writing<'a> {
    pub(super) e: &'a mut Encoder,
    nodes: &'a Nodes,
    index: Index,
}

impl Writing<'_> {
    /// What the octets go to.
    pub fn encoder(&mut self) -> &mut Encoder {
        self.e
    }

    /// Values of which each is at this node.
    #[inline(never)]
    pub(super) fn row(&mut self, items: &dyn Items) -> Put {
        let index = self.index;
        let mut at = 0;
        while let Some(item) = items.at(at) {
            self.index = index;
            item.write(self)?;
            at += 1;
        }
        Ok(())
    }

    /// The members of a struct or exception.
    ///
    /// # Errors
    /// Those of the members; [`Unrepresentable`](EncodeErrorKind::Unrepresentable) where the type has others.
    #[inline(never)]
    pub fn members(&mut self, parts: &[&dyn Written]) -> Put {
        let nodes = self.nodes;
        let Node::Named(Named { body: Body::Members(members), .. }) = nodes.at(self.index) else {
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

    /// A union with this label, and the value of the member with this number, if there is one.
    ///
    /// # Errors
    /// [`IllegalDiscriminator`](EncodeErrorKind::IllegalDiscriminator) where the label selects another member.
    #[inline(never)]
    pub fn union(&mut self, label: i64, member: Option<usize>, value: &dyn Written) -> Put {
        let nodes = self.nodes;
        let Node::Named(Named { body: Body::Union(union), .. }) = nodes.at(self.index) else {
            return Err(mismatch());
        };
        let labels = Labels::of_node(nodes, union.discriminator).ok_or_else(mismatch)?;
        // A member stands there once for each of its labels.
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

    /// An enumerator.
    ///
    /// # Errors
    /// None.
    #[inline(never)]
    pub fn ordinal(&mut self, ordinal: u32) -> Put {
        self.e.put_u32(ordinal);
        Ok(())
    }

    /// The count of a sequence; then the writer stands at the node of its elements.
    ///
    /// # Errors
    /// [`TooLong`](EncodeErrorKind::TooLong).
    #[inline(never)]
    pub(super) fn count(&mut self, count: usize) -> Put {
        self.e.put_len(count)?;
        self.enter();
        Ok(())
    }

    /// From a sequence or array to its elements.
    #[inline(never)]
    pub(super) fn enter(&mut self) {
        self.index = elements(self.nodes, self.index);
    }
}

/// The node of the elements of a sequence or array.
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
///
/// # Errors
/// Those of [`CdrEncode`](crate::cdr::CdrEncode).
#[inline(never)]
pub fn interpret(value: &dyn Written, desc: &'static TypeDesc, e: &mut Encoder) -> Put {
    let code = code_of(desc);
    value.write(&mut Writing { e, nodes: &code.nodes, index: root(&code) })
}

/// Writes values of this type, without a count.
///
/// # Errors
/// As [`interpret`], of the first that has no encoding.
pub fn interpret_slice<T: Written>(items: &[T], desc: &'static TypeDesc, e: &mut Encoder) -> Put {
    interpret(&Row(items), desc, e)
}

/// Values in a row as one, for writers that stand at the node of each.
struct Row<'a, T>(&'a [T]);

impl<T: Written> Written for Row<'_, T> {
    fn write(&self, w: &mut Writing<'_>) -> Put {
        T::write_slice(self.0, w)
    }
}
