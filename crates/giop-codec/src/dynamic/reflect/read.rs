//! Decoding of Rust values, driven by their type codes.

use std::fmt;

use super::write::elements;
use super::{code_of, root};
use crate::cdr::{Decoder, FixedLayout, FixedReader};
use crate::program::{Index, Labels, Steps};
use crate::typecode::{Body, NamedType, Node, Nodes, TypeDesc};
use crate::{DecodeError, DecodeErrorKind};

type ReadResult<T = ()> = Result<T, DecodeError>;

/// A value whose parts can be filled by a decoder.
///
/// When `read` is called, the reader is at the node of the value's type, and the value is blank. After an
/// error, its content is unspecified.
pub trait ReflectRead {
    /// Passes the parts to the reader, or reads the value if it has none.
    fn read(&mut self, r: &mut ReflectReader<'_, '_>) -> ReadResult;
}

/// A type with an initial value.
pub trait Blank: ReflectRead + Sized {
    /// Returns a value to be filled afterwards.
    fn blank() -> Self;

    /// Reads consecutive values; for each of them the reader is set to the current node.
    fn read_slice(items: &mut [Self], r: &mut ReflectReader<'_, '_>) -> ReadResult {
        r.slice(&mut &mut *items)
    }

    /// Reads a sequence into an empty vector.
    fn read_vec(items: &mut Vec<Self>, r: &mut ReflectReader<'_, '_>) -> ReadResult {
        r.sequence(items)
    }
}

pub(super) trait DynVec {
    fn size(&self) -> usize;

    /// Reserves capacity for `n` elements; returns `false` if the allocation fails.
    fn reserve(&mut self, n: usize) -> bool;

    fn grow(&mut self) -> Option<&mut dyn ReflectRead>;
}

impl<T: Blank> DynVec for Vec<T> {
    fn size(&self) -> usize {
        size_of::<T>()
    }

    fn reserve(&mut self, n: usize) -> bool {
        self.try_reserve_exact(n).is_ok()
    }

    fn grow(&mut self) -> Option<&mut dyn ReflectRead> {
        self.push(T::blank());
        self.last_mut().map(|last| last as _)
    }
}

pub(super) trait DynSliceMut {
    fn at(&mut self, index: usize) -> Option<&mut dyn ReflectRead>;
}

impl<T: ReflectRead> DynSliceMut for &mut [T] {
    fn at(&mut self, index: usize) -> Option<&mut dyn ReflectRead> {
        self.get_mut(index).map(|item| item as _)
    }
}

/// The decoder of values and the current position in their type code.
pub struct ReflectReader<'a, 'd> {
    pub(super) d: &'a mut Decoder<'d>,
    nodes: &'a Nodes,
    steps: &'a Steps,
    index: Index,
    label: i64,
}

impl fmt::Debug for ReflectReader<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectReader").field("index", &self.index).finish_non_exhaustive()
    }
}

impl<'d> ReflectReader<'_, 'd> {
    /// Returns the decoder.
    pub fn decoder(&mut self) -> &mut Decoder<'d> {
        self.d
    }

    /// Reads the members of a struct or exception.
    ///
    /// # Errors
    /// Those of the members; [`Malformed`](DecodeErrorKind::Malformed) if the type has another number of
    /// members.
    #[inline(never)]
    pub fn members(&mut self, parts: &mut [&mut dyn ReflectRead]) -> ReadResult {
        let nodes = self.nodes;
        let Node::Named(NamedType { body: Body::Members(members), .. }) = nodes.at(self.index) else {
            return Err(self.mismatch());
        };
        if members.len() != parts.len() {
            return Err(self.mismatch());
        }
        for (member, part) in members.iter().zip(parts) {
            self.index = nodes.unaliased(member.kind);
            part.read(self)?;
        }
        Ok(())
    }

    /// Reads the label of a union. Returns the index of the first member with the name that the label
    /// selects, and moves to that member's node. Returns `usize::MAX` if no member is selected.
    #[inline(never)]
    pub fn union(&mut self) -> ReadResult<usize> {
        let nodes = self.nodes;
        let Node::Named(NamedType { body: Body::Union(union), .. }) = nodes.at(self.index) else {
            return Err(self.mismatch());
        };
        let labels = Labels::of_node(nodes, union.discriminator).ok_or_else(|| self.mismatch())?;
        self.label = labels.read(self.d, false)?;
        let Some(selected) = union.selected(self.label) else { return Ok(usize::MAX) };
        self.index = nodes.unaliased(selected.kind);
        let index = union.members.iter().position(|member| member.name == selected.name);
        Ok(index.unwrap_or(usize::MAX))
    }

    /// Returns the bits of the label that [`union`](ReflectReader::union) read.
    pub fn label(&self) -> i64 {
        self.label
    }

    /// Reads a part at the current node.
    #[inline(never)]
    pub fn part(&mut self, part: &mut dyn ReflectRead) -> ReadResult {
        part.read(self)
    }

    /// Reads consecutive values, each at the current node.
    #[inline(never)]
    pub(super) fn slice(&mut self, items: &mut dyn DynSliceMut) -> ReadResult {
        let index = self.index;
        let mut at = 0;
        while let Some(item) = items.at(at) {
            self.index = index;
            item.read(self)?;
            at += 1;
        }
        Ok(())
    }

    /// Reads an enumerator.
    ///
    /// # Errors
    /// [`InvalidEnum`](DecodeErrorKind::InvalidEnum).
    pub fn enumerator<E: FixedLayout>(&mut self) -> ReadResult<E> {
        self.ordinal().map(|ordinal| of_ordinal(ordinal.into()))
    }

    #[inline(never)]
    fn ordinal(&mut self) -> ReadResult<u32> {
        let nodes = self.nodes;
        match nodes.at(self.index) {
            Node::Named(NamedType { body: Body::Enumerators(names), .. }) => {
                self.d.read_enum(names.len() as u32)
            }
            _ => Err(self.mismatch()),
        }
    }

    /// Reads the count of a sequence, and moves to the node of its elements.
    #[inline(never)]
    pub(super) fn count(&mut self) -> ReadResult<usize> {
        self.enter_elements();
        self.d.read_len(self.steps.least(self.index))
    }

    #[inline(never)]
    pub(super) fn enter_elements(&mut self) {
        self.index = elements(self.nodes, self.index);
    }

    #[inline(never)]
    pub(super) fn sequence(&mut self, items: &mut dyn DynVec) -> ReadResult {
        let n = self.count()?;
        self.read_into(n, items)
    }

    #[inline(never)]
    fn read_into(&mut self, n: usize, items: &mut dyn DynVec) -> ReadResult {
        // The same charge as in `Decoder::new_vec`.
        self.d.charge(n.saturating_mul(items.size().max(1)))?;
        if !items.reserve(n) {
            return Err(self.d.error(DecodeErrorKind::AllocLimit));
        }
        let ReflectReader { nodes, steps, index, label, .. } = *self;
        let mut read_all = |d: &mut Decoder<'d>| {
            for _ in 0..n {
                if let Some(item) = items.grow() {
                    item.read(&mut ReflectReader { d, nodes, steps, index, label })?;
                }
            }
            Ok(())
        };
        // Elements of fixed layout have no variable parts, so no level is counted.
        if steps.is_fixed(index) { read_all(self.d) } else { self.d.nested(read_all) }
    }

    #[cold]
    fn mismatch(&self) -> DecodeError {
        self.d.error(DecodeErrorKind::Malformed)
    }
}

/// Returns the enumerator with a valid ordinal, which is given as the bits of a label.
pub fn of_ordinal<E: FixedLayout>(label: i64) -> E {
    E::get(&mut FixedReader::new(&(label as u32).to_ne_bytes(), 0, false))
}

#[inline(never)]
fn read_into(value: &mut dyn ReflectRead, desc: &'static TypeDesc, d: &mut Decoder<'_>) -> ReadResult {
    let code = code_of(desc);
    let (nodes, steps) = (&code.nodes, code.nodes.compiled());
    value.read(&mut ReflectReader { d, nodes, steps, index: root(&code), label: 0 })
}

/// Reads a value of this type.
pub fn interpreted<T: Blank>(desc: &'static TypeDesc, d: &mut Decoder<'_>) -> ReadResult<T> {
    let mut value = T::blank();
    read_into(&mut value, desc, d)?;
    Ok(value)
}

/// Reads `n` values of this type.
pub fn interpreted_vec<T: Blank>(
    desc: &'static TypeDesc,
    d: &mut Decoder<'_>,
    n: usize,
) -> ReadResult<Vec<T>> {
    let mut items = Vec::<T>::new();
    read_into(&mut Elements(n, &mut items), desc, d)?;
    Ok(items)
}

/// Reads an array of values of this type.
pub fn interpreted_array<T: Blank, const N: usize>(
    desc: &'static TypeDesc,
    d: &mut Decoder<'_>,
) -> ReadResult<[T; N]> {
    let mut items = std::array::from_fn(|_| T::blank());
    read_into(&mut Row(&mut items), desc, d)?;
    Ok(items)
}

/// Consecutive values as a single one, for a reader that is at the node of their type.
struct Elements<'a>(usize, &'a mut dyn DynVec);

impl ReflectRead for Elements<'_> {
    fn read(&mut self, r: &mut ReflectReader<'_, '_>) -> ReadResult {
        r.read_into(self.0, self.1)
    }
}

struct Row<'a, T>(&'a mut [T]);

impl<T: Blank> ReflectRead for Row<'_, T> {
    fn read(&mut self, r: &mut ReflectReader<'_, '_>) -> ReadResult {
        T::read_slice(self.0, r)
    }
}
