//! [`Rewrites`]: sequences of structs that become views of the message although their first element starts at
//! phase 4.
//!
//! The body of a sequence follows its count, and therefore often starts at phase 4. A struct whose first
//! member is aligned to less than 8 starts there without padding. Its layout then differs from that of the
//! other elements, which start at phase 0, as in memory.
//!
//! The first element and the count before it together take at least as many bytes as the element takes in
//! memory. The element can therefore be rewritten in place, in its memory layout, directly before the second
//! one. That needs exclusive access to the message, which a decoder never has.
//!
//! Such a message is therefore decoded twice. The first pass notes the places, then the owner of the message
//! rewrites them, and the second pass decodes views. Only the first elements are copied.

use std::any::TypeId;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::decoder::Decoder;
use super::fixed::{FixedReader, FixedWriter};
use super::layout::{AnyBitPattern, FixedLayout};
use crate::{ByteOrder, DecodeError};

/// Minimum size in bytes of a sequence that is rewritten. A shorter one is copied, because that takes less
/// time than to decode twice.
const LEAST: usize = 16 * 1024;

/// The sequences of one message whose first elements are to be rewritten, or have been.
///
/// ```
/// use giop_codec::cdr::{Decoder, Rewrites, Seq, CdrDecode};
/// use giop_codec::{ByteOrder, Version};
///
/// let mut message = bytes::BytesMut::from(&[0; 8][..]);
/// let mut rewrites = Rewrites::default();
/// let octets = message.freeze();
/// let mut d = Decoder::from_bytes(&octets, ByteOrder::NATIVE, Version::V1_2).with_rewrites(&rewrites);
/// let doubles = Seq::<f64>::decode(&mut d)?;
/// if !rewrites.is_empty() {
///     drop(doubles); // no other view may exist
///     message = octets.try_into_mut().unwrap();
///     rewrites.apply(&mut message);
///     // ... and decode again
/// }
/// # Ok::<(), giop_codec::DecodeError>(())
/// ```
#[derive(Debug, Default)]
pub struct Rewrites {
    list: Mutex<RewriteList>,
    done: bool,
}

#[derive(Debug, Default)]
struct RewriteList {
    /// Most messages have one at most, so that noting it allocates nothing.
    first: Option<Rewrite>,
    more: Vec<Rewrite>,
}

/// A sequence that becomes a view. Offsets count from the start of the buffer that is rewritten. For a
/// contiguous message, that is the alignment origin. For a segmented message, the offsets are equal to those
/// from the origin modulo 8.
#[derive(Clone, Copy, Debug)]
struct Rewrite {
    /// Offset of its count.
    count_at: usize,
    /// Offset of its first element on the wire.
    wire: usize,
    /// Offset of its first element after the rewrite.
    start: usize,
    /// Offset after its last element.
    end: usize,
    element: TypeId,
    rewrite: fn(&mut [u8], &Rewrite),
}

impl Rewrites {
    /// Returns whether there is nothing to rewrite, so that the decoded values are valid.
    pub fn is_empty(&mut self) -> bool {
        self.list.get_mut().unwrap_or_else(PoisonError::into_inner).first.is_none()
    }

    /// Rewrites the first elements in `message`: the bytes that were decoded, from the alignment origin on.
    /// The message cannot be decoded without these rewrites afterwards.
    pub fn apply(&mut self, message: &mut [u8]) {
        self.done = true;
        let list = self.list.get_mut().unwrap_or_else(PoisonError::into_inner);
        for place in list.first.iter().chain(&list.more) {
            (place.rewrite)(message, place);
        }
    }

    fn note(&self, place: Rewrite) -> bool {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let last = list.more.last().or(list.first.as_ref());
        // Overlapping rewrites would overwrite each other.
        if last.is_some_and(|last| place.count_at < last.end) {
            return false;
        }
        if list.first.is_none() {
            list.first = Some(place);
        } else {
            list.more.push(place);
        }
        true
    }

    fn find(&self, count_at: usize) -> Option<Rewrite> {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = list.first.filter(|first| first.count_at == count_at) {
            return Some(first);
        }
        let at = list.more.binary_search_by_key(&count_at, |place| place.count_at).ok()?;
        list.more.get(at).copied()
    }
}

/// Decodes the first element at its wire position and writes it in its memory layout.
fn rewrite<T: AnyBitPattern>(message: &mut [u8], place: &Rewrite) {
    let Some(wire) = message.get(place.wire..place.start + size_of::<T>()) else { return };
    let first = T::get(&mut FixedReader::new(wire, place.wire % 8, false));
    if let Some(target) = message.get_mut(place.start..place.start + size_of::<T>()) {
        FixedWriter::write(target, 0, false, &first);
    }
}

impl<'a> Decoder<'a> {
    /// Returns this decoder for a message that can be rewritten. Before the rewrite, sequences that can
    /// become views are noted and decoded as empty ones. After it, they are decoded as views.
    #[must_use]
    pub fn with_rewrites(mut self, rewrites: &'a Rewrites) -> Decoder<'a> {
        self.rewrites = Some(rewrites);
        self
    }
}

/// Returns the buffer that may be rewritten, and the index in it at which `data` begins. `None` for a
/// block of a segmented message, and where the alignment of indices in the buffer differs from that of
/// offsets.
fn rewritable<'a>(d: &Decoder<'a>) -> Option<(&'a Bytes, usize)> {
    let (owner, origin) = d.owner.filter(|(owner, _)| d.split.is_control(owner))?;
    (origin % 8 == d.base % 8).then_some((owner, origin))
}

/// Returns the elements of the sequence whose count comes next, if it was rewritten.
pub(super) fn rewritten<T: AnyBitPattern>(d: &mut Decoder<'_>) -> Option<Bytes> {
    let rewrites = d.rewrites.filter(|rewrites| rewrites.done)?;
    d.leave_segment();
    let (owner, origin) = rewritable(d)?;
    let (at, end) = (origin + d.position, origin + d.data.len());
    let place = rewrites.find(at.next_multiple_of(4)).filter(|place| place.end <= end)?;
    let octets = owner.get(place.start..place.end)?;
    if place.element != TypeId::of::<T>() || <[T] as zerocopy::FromBytes>::ref_from_bytes(octets).is_err() {
        return None;
    }
    d.take(place.end - at).ok()?;
    Some(owner.slice(place.start..place.end))
}

/// Notes the sequence of the next `n` elements, whose count was read, and skips them, if they can become
/// a view. Returns whether it did.
///
/// # Errors
/// Only those of reading so many bytes.
pub(super) fn note_rewrite<T: AnyBitPattern>(d: &mut Decoder<'_>, n: usize) -> Result<bool, DecodeError> {
    let Some(rewrites) = d.rewrites.filter(|rewrites| !rewrites.done) else { return Ok(false) };
    let Some((owner, origin)) = rewritable(d) else { return Ok(false) };
    let layout = <T as FixedLayout>::LAYOUT;
    let (wire, size) = (origin + d.position, n.saturating_mul(size_of::<T>()));
    if size < LEAST || d.order() != ByteOrder::NATIVE || d.is_piecewise() || layout.lead(wire).is_some() {
        return Ok(false);
    }
    let run = layout.run(wire, n);
    let (Some(start), Some(count_at)) =
        ((wire + layout.size(wire)).checked_sub(size_of::<T>()), d.position.checked_sub(4))
    else {
        return Ok(false);
    };
    let count_at = origin + count_at;
    let address = owner.as_ptr().addr() + start;
    if run > d.data.len() - d.position || start < count_at || address % align_of::<T>() != 0 {
        return Ok(false);
    }
    let element = TypeId::of::<T>();
    let place = Rewrite { count_at, wire, start, end: wire + run, element, rewrite: rewrite::<T> };
    if !rewrites.note(place) {
        return Ok(false);
    }
    d.take(run).map(|_| true)
}
