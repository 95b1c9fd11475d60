//! Decoding of Rust values of generated types, driven by their type codes.

use std::fmt;

use super::write::element_index;
use super::{code_of, unaliased_root};
use crate::cdr::{Decoder, FixedLayout, FixedReader};
use crate::program::{Index, LabelEncoding, Steps};
use crate::typecode::{Body, NamedType, Node, Nodes, TypeDesc};
use crate::{DecodeError, DecodeErrorKind};

type ReadResult<T = ()> = Result<T, DecodeError>;

/// A value whose parts can be filled by a [`ReflectReader`].
///
/// When `read` is called, the reader must be at the type code node of the value's type, and the value must be
/// blank. After an error, the content of the value is unspecified.
pub trait ReflectRead {
    /// Passes the parts to the reader, or reads the value itself if it has no parts.
    fn read(&mut self, r: &mut ReflectReader<'_, '_>) -> ReadResult;
}

/// A type with an initial value, which a reader then fills.
pub trait Blank: ReflectRead + Sized {
    /// Returns the initial value.
    fn blank() -> Self;

    /// Reads consecutive values, all at the current type code node.
    fn read_slice(items: &mut [Self], r: &mut ReflectReader<'_, '_>) -> ReadResult {
        r.slice(&mut &mut *items)
    }

    /// Reads a sequence into an empty vector.
    fn read_vec(items: &mut Vec<Self>, r: &mut ReflectReader<'_, '_>) -> ReadResult {
        r.sequence(items)
    }
}

pub(super) trait DynVec {
    /// Returns the size of an element in memory, in bytes.
    fn element_size(&self) -> usize;

    /// Reserves capacity for `n` elements. Returns `false` if the allocation fails.
    fn reserve(&mut self, n: usize) -> bool;

    fn push_blank(&mut self) -> Option<&mut dyn ReflectRead>;
}

impl<T: Blank> DynVec for Vec<T> {
    fn element_size(&self) -> usize {
        size_of::<T>()
    }

    fn reserve(&mut self, n: usize) -> bool {
        self.try_reserve_exact(n).is_ok()
    }

    fn push_blank(&mut self) -> Option<&mut dyn ReflectRead> {
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

/// A decoder of values, with the current position in their type code.
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
    /// The errors of the members, and [`Malformed`](DecodeErrorKind::Malformed) for a wrong member count.
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
            self.index = nodes.unaliased(member.ty);
            part.read(self)?;
        }
        Ok(())
    }

    /// Reads the label of a union, and moves to the type code node of the member that it selects. Returns the
    /// first index of that member, or `usize::MAX` if no member is selected.
    #[inline(never)]
    pub fn union(&mut self) -> ReadResult<usize> {
        let nodes = self.nodes;
        let Node::Named(NamedType { body: Body::Union(union), .. }) = nodes.at(self.index) else {
            return Err(self.mismatch());
        };
        let labels = LabelEncoding::of_node(nodes, union.discriminator).ok_or_else(|| self.mismatch())?;
        self.label = labels.read(self.d)?;
        let Some(selected) = union.selected(self.label) else { return Ok(usize::MAX) };
        self.index = nodes.unaliased(selected.ty);
        let index = union.members.iter().position(|member| member.name == selected.name);
        Ok(index.unwrap_or(usize::MAX))
    }

    /// Returns the label that [`union`](ReflectReader::union) has read, extended to 64 bits.
    pub fn label(&self) -> i64 {
        self.label
    }

    /// Reads a part at the current type code node.
    #[inline(never)]
    pub fn part(&mut self, part: &mut dyn ReflectRead) -> ReadResult {
        part.read(self)
    }

    /// Reads consecutive values, all at the current type code node.
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
    /// [`InvalidEnum`](DecodeErrorKind::InvalidEnum) if there is no such enumerator.
    pub fn enumerator<E: FixedLayout>(&mut self) -> ReadResult<E> {
        self.ordinal().map(|ordinal| enumerator_from_ordinal(ordinal.into()))
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

    /// Reads the count of a sequence, and moves to the type code node of its elements.
    #[inline(never)]
    pub(super) fn count(&mut self) -> ReadResult<usize> {
        self.enter_elements();
        self.d.read_len(self.steps.min_size(self.index))
    }

    #[inline(never)]
    pub(super) fn enter_elements(&mut self) {
        self.index = element_index(self.nodes, self.index);
    }

    #[inline(never)]
    pub(super) fn sequence(&mut self, items: &mut dyn DynVec) -> ReadResult {
        let n = self.count()?;
        self.read_into(n, items)
    }

    #[inline(never)]
    fn read_into(&mut self, n: usize, items: &mut dyn DynVec) -> ReadResult {
        // Deduct the same amount from the memory limit as `Decoder::new_vec` does.
        self.d.charge(n.saturating_mul(items.element_size().max(1)))?;
        if !items.reserve(n) {
            return Err(self.d.error(DecodeErrorKind::AllocLimit));
        }
        let ReflectReader { nodes, steps, index, label, .. } = *self;
        let mut read_all = |d: &mut Decoder<'d>| {
            for _ in 0..n {
                if let Some(item) = items.push_blank() {
                    item.read(&mut ReflectReader { d, nodes, steps, index, label })?;
                }
            }
            Ok(())
        };
        // Like compiled code, count no level for elements of fixed layout.
        if steps.has_fixed_layout(index) { read_all(self.d) } else { self.d.nested(read_all) }
    }

    #[cold]
    fn mismatch(&self) -> DecodeError {
        self.d.error(DecodeErrorKind::Malformed)
    }
}

/// Returns the enumerator with this ordinal, which must be valid.
pub fn enumerator_from_ordinal<E: FixedLayout>(ordinal: i64) -> E {
    E::get(&mut FixedReader::new(&(ordinal as u32).to_ne_bytes(), 0, false))
}

#[inline(never)]
fn read_into(value: &mut dyn ReflectRead, desc: &'static TypeDesc, d: &mut Decoder<'_>) -> ReadResult {
    let code = code_of(desc);
    let (nodes, steps) = (&code.nodes, code.nodes.steps());
    value.read(&mut ReflectReader { d, nodes, steps, index: unaliased_root(&code), label: 0 })
}

/// Reads a value of this type.
pub fn read_interpreted<T: Blank>(desc: &'static TypeDesc, d: &mut Decoder<'_>) -> ReadResult<T> {
    let mut value = T::blank();
    read_into(&mut value, desc, d)?;
    Ok(value)
}

/// Reads `n` values of this type.
pub fn read_interpreted_vec<T: Blank>(
    desc: &'static TypeDesc,
    d: &mut Decoder<'_>,
    n: usize,
) -> ReadResult<Vec<T>> {
    let mut items = Vec::<T>::new();
    read_into(&mut Elements(n, &mut items), desc, d)?;
    Ok(items)
}

/// Reads an array of values of this type.
pub fn read_interpreted_array<T: Blank, const N: usize>(
    desc: &'static TypeDesc,
    d: &mut Decoder<'_>,
) -> ReadResult<[T; N]> {
    let mut items = std::array::from_fn(|_| T::blank());
    read_into(&mut Row(&mut items), desc, d)?;
    Ok(items)
}

/// A number of values to read as one value, and the vector that receives them.
struct Elements<'a>(usize, &'a mut dyn DynVec);

impl ReflectRead for Elements<'_> {
    fn read(&mut self, r: &mut ReflectReader<'_, '_>) -> ReadResult {
        r.read_into(self.0, self.1)
    }
}

/// The elements of an array, which are read as one value.
struct Row<'a, T>(&'a mut [T]);

impl<T: Blank> ReflectRead for Row<'_, T> {
    fn read(&mut self, r: &mut ReflectReader<'_, '_>) -> ReadResult {
        T::read_slice(self.0, r)
    }
}
