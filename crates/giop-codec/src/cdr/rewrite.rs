//! [`Rewrites`]: sequences of structs that can become views of the message although their first element
//! starts at phase 4 (an offset that is 4 modulo 8).
//!
//! The elements of a sequence follow its count, so the first one often starts at phase 4. If the first member
//! of the struct is aligned to less than 8, no padding precedes it. The layout of the first element then
//! differs from that of the others, which start at phase 0 like structs in memory.
//!
//! The count and the first element together take at least as many bytes as an element takes in memory. The
//! first element can therefore be rewritten in its memory layout, directly before the second one. Rewriting
//! needs exclusive access to the message, which a decoder does not have. Therefore the first pass of decoding
//! records the sequences, the owner of the message rewrites them, and a second pass decodes views.

use std::any::TypeId;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::decoder::Decoder;
use super::fixed::{FixedReader, FixedWriter};
use super::layout::{AnyBitPattern, FixedLayout};
use crate::{ByteOrder, DecodeError};

/// Minimum size of a sequence that is rewritten. Copying a shorter one takes less time than decoding twice.
const MIN_REWRITE_BYTES: usize = 16 * 1024;

/// The sequences of one message whose first elements are to be rewritten or have been rewritten.
///
/// ```
/// use giop_codec::cdr::{Decoder, Rewrites, Seq, CdrDecode};
/// use giop_codec::{ByteOrder, Version};
///
/// let mut message = bytes::BytesMut::from(&[0; 8][..]);
/// let mut rewrites = Rewrites::default();
/// let bytes = message.freeze();
/// let mut d = Decoder::from_bytes(&bytes, ByteOrder::NATIVE, Version::V1_2).with_rewrites(&rewrites);
/// let doubles = Seq::<f64>::decode(&mut d)?;
/// if !rewrites.is_empty() {
///     drop(doubles); // no other view may exist
///     message = bytes.try_into_mut().unwrap();
///     rewrites.apply(&mut message);
///     // ... and decode again
/// }
/// # Ok::<(), giop_codec::DecodeError>(())
/// ```
#[derive(Debug, Default)]
pub struct Rewrites {
    list: Mutex<RewriteList>,
    is_applied: bool,
}

#[derive(Debug, Default)]
struct RewriteList {
    /// Not in the vector, so that a message with a single sequence causes no allocation.
    first: Option<Rewrite>,
    more: Vec<Rewrite>,
}

/// A sequence that becomes a view. Its offsets count from the start of the buffer that is rewritten. Modulo
/// 8, they are equal to offsets from the alignment origin.
#[derive(Clone, Copy, Debug)]
struct Rewrite {
    /// Offset of the count.
    count_at: usize,
    /// Offset of the first element as received.
    wire_start: usize,
    /// Offset of the first element after the rewrite.
    start: usize,
    /// Offset after the last element.
    end: usize,
    element: TypeId,
    rewrite: fn(&mut [u8], &Rewrite),
}

impl Rewrites {
    /// Returns whether no sequence was recorded. The decoded values are then valid.
    pub fn is_empty(&mut self) -> bool {
        self.list.get_mut().unwrap_or_else(PoisonError::into_inner).first.is_none()
    }

    /// Rewrites the first elements of the recorded sequences. `message` must be the bytes that were decoded,
    /// from the alignment origin on. Afterwards, the message can only be decoded with these rewrites.
    pub fn apply(&mut self, message: &mut [u8]) {
        self.is_applied = true;
        let list = self.list.get_mut().unwrap_or_else(PoisonError::into_inner);
        for rewrite in list.first.iter().chain(&list.more) {
            (rewrite.rewrite)(message, rewrite);
        }
    }

    /// Adds a rewrite to the list. Returns `false`, and does nothing, if it overlaps the previous one.
    fn record(&self, rewrite: Rewrite) -> bool {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let last = list.more.last().or(list.first.as_ref());
        if last.is_some_and(|last| rewrite.count_at < last.end) {
            return false;
        }
        if list.first.is_none() {
            list.first = Some(rewrite);
        } else {
            list.more.push(rewrite);
        }
        true
    }

    fn find(&self, count_at: usize) -> Option<Rewrite> {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = list.first.filter(|first| first.count_at == count_at) {
            return Some(first);
        }
        let index = list.more.binary_search_by_key(&count_at, |rewrite| rewrite.count_at).ok()?;
        list.more.get(index).copied()
    }
}

/// Decodes the first element as received, and writes it in its memory layout.
fn rewrite_first<T: AnyBitPattern>(message: &mut [u8], rewrite: &Rewrite) {
    let range = rewrite.start..rewrite.start + size_of::<T>();
    let Some(wire) = message.get(rewrite.wire_start..range.end) else { return };
    let first = T::get(&mut FixedReader::new(wire, rewrite.wire_start % 8, false));
    if let Some(target) = message.get_mut(range) {
        FixedWriter::write(target, 0, false, &first);
    }
}

impl<'a> Decoder<'a> {
    /// Returns this decoder for a message that can be rewritten. Before [`Rewrites::apply`], sequences that
    /// need a rewrite are recorded and decoded as empty ones. Afterwards, they are decoded as views.
    #[must_use]
    pub fn with_rewrites(mut self, rewrites: &'a Rewrites) -> Decoder<'a> {
        self.rewrites = Some(rewrites);
        self
    }
}

/// Returns the buffer that may be rewritten, and the index in it at which the decoder's data begins. `None`
/// if the current segment is a separate block, or if indexes into the buffer differ from offsets modulo 8.
fn rewritable_buffer<'a>(d: &Decoder<'a>) -> Option<(&'a Bytes, usize)> {
    let (owner, data_start) = d.owner.filter(|(owner, _)| d.remaining_segments.is_control(owner))?;
    (data_start % 8 == d.base % 8).then_some((owner, data_start))
}

/// Reads the sequence whose count comes next, if it was rewritten, and returns its elements.
pub(super) fn read_rewritten<T: AnyBitPattern>(d: &mut Decoder<'_>) -> Option<Bytes> {
    let rewrites = d.rewrites.filter(|rewrites| rewrites.is_applied)?;
    d.leave_segment();
    let (owner, data_start) = rewritable_buffer(d)?;
    let (at, end) = (data_start + d.position, data_start + d.data.len());
    let rewrite = rewrites.find(at.next_multiple_of(4)).filter(|rewrite| rewrite.end <= end)?;
    let bytes = owner.get(rewrite.start..rewrite.end)?;
    if rewrite.element != TypeId::of::<T>() || <[T] as zerocopy::FromBytes>::ref_from_bytes(bytes).is_err() {
        return None;
    }
    d.take(rewrite.end - at).ok()?;
    Some(owner.slice(rewrite.start..rewrite.end))
}

/// Records the sequence of the next `n` elements, and skips them, if they need a rewrite to become a view.
/// Its count must have been read. Returns whether the sequence was recorded.
pub(super) fn record_rewrite<T: AnyBitPattern>(d: &mut Decoder<'_>, n: usize) -> Result<bool, DecodeError> {
    let Some(rewrites) = d.rewrites.filter(|rewrites| !rewrites.is_applied) else { return Ok(false) };
    let Some((owner, data_start)) = rewritable_buffer(d) else { return Ok(false) };
    let layout = <T as FixedLayout>::LAYOUT;
    let (wire_start, size) = (data_start + d.position, n.saturating_mul(size_of::<T>()));
    let is_needed = size >= MIN_REWRITE_BYTES && layout.run_padding(wire_start).is_none();
    if !is_needed || d.order() != ByteOrder::NATIVE || d.has_fragment_boundaries() {
        return Ok(false);
    }
    let run = layout.run_size(wire_start, n);
    let (Some(start), Some(count_at)) =
        ((wire_start + layout.size(wire_start)).checked_sub(size_of::<T>()), d.position.checked_sub(4))
    else {
        return Ok(false);
    };
    let count_at = data_start + count_at;
    let address = owner.as_ptr().addr() + start;
    if run > d.data.len() - d.position || start < count_at || address % align_of::<T>() != 0 {
        return Ok(false);
    }
    let (end, element) = (wire_start + run, TypeId::of::<T>());
    if !rewrites.record(Rewrite { count_at, wire_start, start, end, element, rewrite: rewrite_first::<T> }) {
        return Ok(false);
    }
    d.take(run).map(|_| true)
}
