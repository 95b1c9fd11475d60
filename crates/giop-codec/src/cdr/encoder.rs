//! [`Encoder`]: conversion of values to bytes in a reusable buffer and in shared buffers (chunks).

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::allocation::allocation_size;
use super::context::ContextRetention;
use super::layout::padding;
use super::streaming::LongRuns;
use super::text::CodeSets;
use super::value_state::WriteState;
use crate::{ByteOrder, EncodeError, EncodeErrorKind, Version};

/// The default chunk threshold. Gathering small buffers in a system call takes longer than copying them.
const DEFAULT_CHUNK_THRESHOLD_BYTES: usize = 4096;

/// Minimum size of a run that is written to a buffer of its own, a *block*. Reused blocks are not zeroed.
const LARGE_RUN_BYTES: usize = 32 * 1024;

/// Encodes values as CDR ("CDR Transfer Syntax").
///
/// The bytes are in one buffer, the *head*, and in *chunks*: shared buffers whose bytes belong between parts
/// of the head. Offsets count from the first byte put, unless the encoder was created by [`Encoder::new_at`]
/// or a message was begun by [`Encoder::begin_message`].
///
/// [`Encoder::drain_into`] moves the bytes out. The next [`Encoder::reset`] reuses the memory of the head if
/// all drained parts of it have been dropped.
///
/// ```
/// use giop_codec::cdr::{CdrEncode, Encoder};
/// use giop_codec::{ByteOrder, Version};
///
/// let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
/// "hi".encode(&mut e)?;
/// e.put_u16(0x0102); // at offset 8: the string took 4 + 3 bytes, and a short is aligned to 2
/// assert_eq!(e.head(), b"\0\0\0\x03hi\0\0\x01\x02");
/// # Ok::<(), giop_codec::EncodeError>(())
/// ```
#[derive(Debug)]
pub struct Encoder {
    pub(super) head: BytesMut,
    pub(super) chunks: Vec<Chunk>,
    /// Offset of the next byte minus `head.len()`, wrapping.
    pub(super) base: usize,
    /// Whether the byte order of the output differs from that of this machine.
    pub(super) is_foreign_order: bool,
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
    pub(super) is_in_encapsulation: bool,
    chunk_threshold: usize,
    /// The maximum capacity that the head ever had. `reset` tries to reclaim it.
    full_capacity: usize,
    pub(super) chunk_bytes: usize,
    pub(super) drained_bytes: usize,
    /// See [`Encoder::copied`].
    copied_bytes: usize,
    /// The memory of large runs. A block is free if this vector has the only handle of its memory.
    pub(super) blocks: Vec<Bytes>,
    /// The state of value types. `None` before the first instance of a value type.
    pub(crate) values: Option<Box<WriteState>>,
    /// See [`Encoder::set_base_end_tags`].
    pub(crate) writes_base_end_tags: bool,
    pub(super) context_retention: ContextRetention,
    pub(super) long_runs: LongRuns,
}

#[derive(Debug)]
pub(super) struct Chunk {
    /// The length of the head before the chunk.
    head_len: usize,
    bytes: Bytes,
    /// Whether the chunk has all elements of a sequence or array, outside of any encapsulation.
    is_whole_run: bool,
}

/// A position in an [`Encoder`], for [`Encoder::rewind`].
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    head_len: usize,
    chunk_count: usize,
    chunk_bytes: usize,
    base: usize,
}

macro_rules! put_methods {
    ($($put:ident $ty:ty, $size:literal, $double:ty;)*) => {$(
        #[doc = concat!("Writes a `", stringify!($ty), "`, aligned to ", stringify!($size), ".")]
        #[inline]
        pub fn $put(&mut self, value: $ty) {
            let value = if self.is_foreign_order { value.swap_bytes() } else { value };
            let pad = padding(self.position(), $size);
            if pad == 0 {
                self.head.extend_from_slice(&value.to_ne_bytes());
            } else {
                // Append padding and value in one append of constant length, then truncate.
                let end = self.head.len() + pad + $size;
                let padded = <$double>::from(value.to_le()) << (8 * pad);
                self.head.extend_from_slice(&padded.to_le_bytes());
                self.head.truncate(end);
            }
        }
    )*};
}

macro_rules! put_methods_as_unsigned {
    ($($put:ident $ty:ty, $size:literal, $put_unsigned:ident, |$value:ident| $unsigned:expr;)*) => {$(
        #[doc = concat!("Writes a `", stringify!($ty), "`, aligned to ", stringify!($size), ".")]
        #[inline]
        pub fn $put(&mut self, $value: $ty) {
            self.$put_unsigned($unsigned);
        }
    )*};
}

impl Encoder {
    /// Creates an empty encoder with the default code sets ([`CodeSets::default_for`]), without allocation.
    pub fn new(order: ByteOrder, version: Version) -> Encoder {
        Encoder::new_at(order, version, 0)
    }

    /// Creates an empty encoder whose first byte has offset `offset` from the alignment origin.
    pub fn new_at(order: ByteOrder, version: Version, offset: usize) -> Encoder {
        Encoder {
            head: BytesMut::new(),
            chunks: Vec::new(),
            base: offset,
            is_foreign_order: order.is_foreign(),
            order,
            version,
            code_sets: CodeSets::default_for(version),
            is_in_encapsulation: false,
            chunk_threshold: DEFAULT_CHUNK_THRESHOLD_BYTES,
            full_capacity: 0,
            chunk_bytes: 0,
            drained_bytes: 0,
            copied_bytes: 0,
            blocks: Vec::new(),
            context_retention: ContextRetention::Nothing,
            long_runs: LongRuns::Ordinary,
            values: None,
            writes_base_end_tags: false,
        }
    }

    /// Empties the encoder and sets its byte order, its version and the default code sets. Keeps the memory
    /// of the buffers, and reclaims the memory of the head if all drained parts of it have been dropped.
    pub fn reset(&mut self, order: ByteOrder, version: Version) {
        self.head.clear();
        self.chunks.clear();
        (self.chunk_bytes, self.drained_bytes, self.copied_bytes) = (0, 0, 0);
        self.long_runs = LongRuns::Ordinary;
        self.begin_at(0, order, version);
        self.reclaim();
    }

    /// Starts a message at the next byte, which gets offset 0. Thus several messages can share a buffer.
    pub fn begin_message(&mut self, order: ByteOrder, version: Version) {
        self.begin_at(self.head.len().wrapping_neg(), order, version);
    }

    #[inline(always)]
    fn begin_at(&mut self, base: usize, order: ByteOrder, version: Version) {
        self.base = base;
        self.is_foreign_order = order.is_foreign();
        (self.order, self.version) = (order, version);
        self.code_sets = CodeSets::default_for(version);
        (self.values, self.writes_base_end_tags) = (None, false);
    }

    /// Sets the transmission code sets for strings and wide strings.
    pub fn set_code_sets(&mut self, code_sets: CodeSets) {
        self.code_sets = code_sets;
    }

    /// Sets whether chunked values are written as TAO expects, until the next message begins. In the standard
    /// form, TAO cannot read a value whose base type has state.
    ///
    /// TAO expects an end tag after the state of each base and of the type itself. The level of this tag is
    /// one more than that of the value. A value inside a chunk of its parent is part of that chunk, and
    /// levels in it count from 1 again.
    pub fn set_base_end_tags(&mut self, enabled: bool) {
        self.writes_base_end_tags = enabled;
    }

    /// Returns the transmission code sets in use.
    #[inline]
    pub fn code_sets(&self) -> CodeSets {
        self.code_sets
    }

    /// Sets the chunk threshold: the least number of bytes that [`put_shared`](Encoder::put_shared) shares
    /// instead of copying. The default is 4096.
    pub fn set_chunk_threshold(&mut self, bytes: usize) {
        self.chunk_threshold = bytes;
    }

    /// Returns the number of bytes copied since the last [`reset`](Encoder::reset) or
    /// [`drain_part`](Encoder::drain_part): those of shared buffers below the chunk threshold, and those of
    /// the head that were moved because bytes were inserted before them.
    #[inline]
    pub fn copied(&self) -> usize {
        self.copied_bytes
    }

    /// Returns the byte order of the output.
    #[inline]
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Returns the GIOP version of the output, which is 1.2 inside encapsulations.
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns whether the byte order of the output differs from that of this machine.
    #[inline]
    pub(crate) fn is_foreign_order(&self) -> bool {
        self.is_foreign_order
    }

    /// Returns the offset of the next byte from the alignment origin, including the bytes in chunks.
    #[inline]
    pub fn position(&self) -> usize {
        self.head.len().wrapping_add(self.base)
    }

    /// Reserves capacity for `additional` bytes.
    #[inline]
    pub fn reserve(&mut self, additional: usize) {
        let len = self.head.len();
        self.head.reserve(allocation_size(len.saturating_add(additional)) - len);
    }

    /// Pads with zeros to the next multiple of `n`, which must be 1, 2, 4 or 8.
    #[inline]
    pub fn align(&mut self, n: usize) {
        let pad = padding(self.position(), n);
        if pad != 0 {
            let end = self.head.len() + pad;
            self.head.extend_from_slice(&[0; 8]);
            self.head.truncate(end);
        }
    }

    put_methods! {
        put_u16 u16, 2, u32;
        put_u32 u32, 4, u64;
        put_u64 u64, 8, u128;
    }

    /// Writes an `octet`.
    #[inline]
    pub fn put_u8(&mut self, value: u8) {
        self.head.extend_from_slice(&[value]);
    }

    put_methods_as_unsigned! {
        put_i8 i8, 1, put_u8, |value| value.cast_unsigned();
        put_i16 i16, 2, put_u16, |value| value.cast_unsigned();
        put_i32 i32, 4, put_u32, |value| value.cast_unsigned();
        put_i64 i64, 8, put_u64, |value| value.cast_unsigned();
        put_f32 f32, 4, put_u32, |value| value.to_bits();
        put_f64 f64, 8, put_u64, |value| value.to_bits();
    }

    /// Writes a boolean as 0 or 1.
    #[inline]
    pub fn put_bool(&mut self, value: bool) {
        self.put_u8(u8::from(value));
    }

    /// Writes a count of elements or bytes as an `unsigned long`.
    ///
    /// # Errors
    /// [`TooLong`](EncodeErrorKind::TooLong) if `n` is 2^32 or more.
    #[inline]
    pub fn put_len(&mut self, n: usize) -> Result<(), EncodeError> {
        let Ok(n) = u32::try_from(n) else {
            return Err(EncodeError::new(EncodeErrorKind::TooLong));
        };
        self.put_u32(n);
        Ok(())
    }

    /// Copies `bytes` without alignment or conversion.
    #[inline]
    pub fn put_raw(&mut self, bytes: &[u8]) {
        self.head.extend_from_slice(bytes);
    }

    /// Returns whether a run of `len` bytes is large enough for a separate block.
    pub(super) fn is_large_run(&self, len: usize) -> bool {
        len >= LARGE_RUN_BYTES.max(self.chunk_threshold)
    }

    /// Appends `len` zeros and returns them, to be overwritten.
    #[inline]
    pub(crate) fn append_zeros(&mut self, len: usize) -> &mut [u8] {
        let start = self.head.len();
        self.head.resize(start + len, 0);
        self.head.get_mut(start..).unwrap_or_default()
    }

    /// Adds, without alignment, the encoded bytes of all elements of a sequence. They become a chunk if there
    /// are at least as many as the chunk threshold, and are copied otherwise.
    #[inline]
    pub fn put_shared(&mut self, bytes: Bytes) {
        if bytes.len() < self.chunk_threshold {
            self.copied_bytes += bytes.len();
            self.head.extend_from_slice(&bytes);
        } else {
            self.push_chunk(bytes, true);
        }
    }

    /// Adds bytes like [`put_shared`](Encoder::put_shared). They need not be all elements of a sequence.
    pub fn put_shared_part(&mut self, bytes: Bytes) {
        if bytes.len() < self.chunk_threshold {
            self.put_shared(bytes);
        } else {
            self.push_chunk(bytes, false);
        }
    }

    /// Adds bytes like [`put_shared`](Encoder::put_shared). Clones the handle only if they become a chunk.
    #[inline]
    pub fn put_shared_ref(&mut self, bytes: &Bytes) {
        if bytes.len() < self.chunk_threshold {
            self.copied_bytes += bytes.len();
            self.head.extend_from_slice(bytes);
        } else {
            self.push_chunk(bytes.clone(), true);
        }
    }

    pub(super) fn push_chunk(&mut self, bytes: Bytes, is_whole_run: bool) {
        if bytes.is_empty() {
            return;
        }
        let is_whole_run = is_whole_run && !self.is_in_encapsulation;
        self.base = self.base.wrapping_add(bytes.len());
        self.chunk_bytes += bytes.len();
        self.chunks.push(Chunk { head_len: self.head.len(), bytes, is_whole_run });
    }

    /// Writes a `sequence<octet>` that holds an encapsulation ("Encapsulation"): its length, the byte order
    /// flag, and the output of `f`. The flag is at the alignment origin. Inside, the version is 1.2 and wide
    /// text is UTF-16, independent of the outer settings.
    ///
    /// # Errors
    /// The error of `f`, or [`TooLong`](EncodeErrorKind::TooLong).
    pub fn encapsulate(
        &mut self,
        f: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.put_u32(0);
        let length_at = self.head.len() - 4;
        let (outer_base, outer_chunk_bytes, values) = (self.base, self.chunk_bytes, self.values.take());
        let outer = (self.version, self.code_sets, self.is_in_encapsulation);
        self.base = self.head.len().wrapping_neg();
        (self.version, self.is_in_encapsulation) = (Version::V1_2, true);
        self.code_sets = self.code_sets.in_encapsulation();
        self.put_u8(self.order.flag());
        let result = f(self);
        let length = self.position();
        self.base = outer_base.wrapping_add(self.chunk_bytes - outer_chunk_bytes);
        (self.version, self.code_sets, self.is_in_encapsulation) = outer;
        self.values = values;
        result?;
        let length = u32::try_from(length).map_err(|_| EncodeErrorKind::TooLong)?;
        self.patch_u32(length_at, length);
        Ok(())
    }

    /// Overwrites the four bytes at index `at` of the head with `value` in the encoder's byte order. Does
    /// nothing if the head is too short.
    #[inline]
    pub fn patch_u32(&mut self, at: usize, value: u32) {
        let value = if self.is_foreign_order { value.swap_bytes() } else { value };
        if let Some(place) = self.head.get_mut(at..).and_then(|tail| tail.first_chunk_mut()) {
            *place = value.to_ne_bytes();
        }
    }

    /// Returns the bytes outside of chunks: the whole message if [`chunk_count`](Encoder::chunk_count) is 0.
    #[inline]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the number of chunks: buffers that were shared instead of copied.
    #[inline]
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Returns three properties of each chunk in turn: the offset in the message, the number of bytes, and
    /// whether the chunk has all elements of a sequence or array outside of any encapsulation.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (usize, usize, bool)> {
        let mut offset = self.base.wrapping_sub(self.chunk_bytes);
        self.chunks.iter().map(move |Chunk { head_len, bytes, is_whole_run }| {
            let start = offset.wrapping_add(*head_len);
            offset = offset.wrapping_add(bytes.len());
            (start, bytes.len(), *is_whole_run)
        })
    }

    /// Replaces a part of the head by the same number of bytes or more, and moves the rest of the head. Does
    /// nothing if the part is not in the head, or if a chunk precedes its end.
    pub(crate) fn replace(&mut self, part: Range<usize>, bytes: &[u8]) {
        let (end, growth) = (self.head.len(), bytes.len().saturating_sub(part.len()));
        let is_valid = part.start <= part.end && part.end <= end && part.len() + growth == bytes.len();
        if !is_valid || self.chunks.first().is_some_and(|first| first.head_len < part.end) {
            return;
        }
        self.head.resize(end + growth, 0);
        self.head.copy_within(part.end..end, part.end + growth);
        if let Some(place) = self.head.get_mut(part.start..part.end + growth) {
            place.copy_from_slice(bytes);
        }
        self.chunks.iter_mut().for_each(|chunk| chunk.head_len += growth);
        self.copied_bytes += end - part.end;
    }

    /// Returns the number of bytes encoded since the last [`drain_into`](Encoder::drain_into) or
    /// [`reset`](Encoder::reset). It includes chunks, and bytes that an [`Outlet`](super::Outlet) has taken.
    /// Unlike [`position`](Encoder::position), it also counts the bytes before an encapsulation, so that
    /// differences are distances in the message.
    #[inline]
    pub fn len(&self) -> usize {
        self.drained_bytes + self.head.len() + self.chunk_bytes
    }

    /// Returns the number of bytes that the encoder holds or tries to reclaim on [`reset`](Encoder::reset).
    #[inline]
    pub fn capacity(&self) -> usize {
        self.head.capacity().max(self.full_capacity) + self.block_bytes()
    }

    /// Returns whether the encoder contains no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.chunks.is_empty()
    }

    /// Returns the current position, for [`rewind`](Encoder::rewind).
    pub fn mark(&self) -> Mark {
        let (head_len, chunk_count) = (self.head.len(), self.chunks.len());
        Mark { head_len, chunk_count, chunk_bytes: self.chunk_bytes, base: self.base }
    }

    /// Removes everything put since `mark`, which must stem from this encoder and the same message.
    pub fn rewind(&mut self, mark: Mark) {
        self.head.truncate(mark.head_len);
        self.chunks.truncate(mark.chunk_count);
        (self.chunk_bytes, self.base) = (mark.chunk_bytes, mark.base);
        let position = self.position();
        if let Some(values) = &mut self.values {
            values.forget_from(position);
        }
    }

    /// Truncates the head to an earlier length. No chunk may have been put since then.
    pub(crate) fn truncate_head(&mut self, len: usize) {
        self.head.truncate(len);
    }

    /// Moves all bytes out in their order, as parts of the head and chunks, without copying them. The encoder
    /// is empty afterwards. It must be [`reset`](Encoder::reset) before the next message.
    pub fn drain_into(&mut self, out: &mut VecDeque<Bytes>) {
        self.full_capacity = self.full_capacity.max(self.head.capacity());
        let mut start = 0;
        for Chunk { head_len, bytes, .. } in self.chunks.drain(..) {
            if head_len > start {
                out.push_back(self.head.split_to(head_len - start).freeze());
            }
            out.push_back(bytes);
            start = head_len;
        }
        if !self.head.is_empty() {
            out.push_back(self.head.split().freeze());
        }
        (self.chunk_bytes, self.drained_bytes, self.base) = (0, 0, 0);
    }

    /// Moves all bytes out like [`drain_into`](Encoder::drain_into), but in the middle of a message. The
    /// message continues in the empty encoder. Indexes into the head and [marks](Encoder::mark) become
    /// invalid.
    pub fn drain_part(&mut self, out: &mut VecDeque<Bytes>) {
        let (position, len) = (self.position(), self.len());
        self.drain_into(out);
        self.reclaim();
        (self.base, self.drained_bytes, self.copied_bytes) = (position, len, 0);
    }

    /// Returns all bytes in one buffer. Copies everything if there are chunks.
    pub fn into_bytes(mut self) -> Bytes {
        if self.chunks.is_empty() {
            return self.head.freeze();
        }
        let mut parts = VecDeque::new();
        let mut joined = BytesMut::with_capacity(self.len());
        self.drain_into(&mut parts);
        parts.iter().for_each(|part| joined.extend_from_slice(part));
        joined.freeze()
    }

    /// Reclaims the whole memory of the head if all drained parts of it have been dropped.
    fn reclaim(&mut self) {
        if self.head.capacity() < self.full_capacity {
            // If this fails, the rest of the buffer is used, and then a new buffer.
            let _ = self.head.try_reclaim(self.full_capacity);
        }
    }
}
