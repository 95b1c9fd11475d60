//! [`Encoder`]: conversion of values to bytes, in one reusable buffer plus shared chunks.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::context::ContextRetention;
use super::flow::LongRuns;
use super::layout::padding;
use super::mapped::mapped_size;
use super::text::CodeSets;
use super::value_state::WriteState;
use crate::{ByteOrder, EncodeError, EncodeErrorKind, Version};

/// Minimum length of buffers that [`Encoder::put_shared`] shares. Shorter ones are copied, because gathering
/// many small buffers costs more system time than their copies cost processor time.
const DEFAULT_CHUNK_THRESHOLD: usize = 4096;

/// Minimum length of a run of structs that is written to a separate block. The memory of a block is reused as
/// it is, without being zeroed first.
const LARGE_RUN: usize = 32 * 1024;

/// Encodes values as CDR ("CDR Transfer Syntax").
///
/// The bytes are in one buffer, the *head*, and in shared chunks between its parts, which are never copied.
/// Alignment counts from offset 0. That is the first byte put, unless the encoder was created by
/// [`Encoder::new_at`] or a message was begun by [`Encoder::begin_message`].
///
/// After [`Encoder::drain_into`] and [`Encoder::reset`] the memory of the head is reused as soon as no
/// drained buffer is held any more. In steady state nothing is allocated.
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
    /// CDR offset minus `head.len()`, wrapping: the bytes in chunks minus the origin.
    pub(super) base: usize,
    pub(super) swap: bool,
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
    /// Whether an encapsulation is being written.
    pub(super) enclosed: bool,
    chunk_threshold: usize,
    /// Maximum capacity that the head ever had, which `reset` tries to reclaim.
    full_capacity: usize,
    pub(super) chunk_octets: usize,
    /// Bytes of the message that were drained already.
    pub(super) given: usize,
    /// Bytes passed to `put_shared` that were copied.
    copied: usize,
    /// Handles of the memory of large runs. A block is free if its handle is the only one.
    pub(super) blocks: Vec<Bytes>,
    /// The state of value types; `None` before the first value.
    pub(crate) values: Option<Box<WriteState>>,
    /// Whether a tag ends the state of each base of a chunked value, as TAO expects.
    pub(crate) ends_bases: bool,
    pub(super) keeping: ContextRetention,
    pub(super) flow: LongRuns,
}

/// Bytes that are shared, not copied.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The length of the head when the chunk was put.
    at: usize,
    octets: Bytes,
    /// Whether the bytes are all elements of a sequence or array, outside of any encapsulation.
    whole: bool,
}

/// A position in an [`Encoder`], for [`Encoder::rewind`].
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    head: usize,
    chunks: usize,
    chunk_octets: usize,
    base: usize,
}

macro_rules! put_methods {
    ($($put:ident $ty:ty, $size:literal, $double:ty;)*) => {$(
        #[doc = concat!("Writes a `", stringify!($ty), "`, aligned to ", stringify!($size), ".")]
        #[inline]
        pub fn $put(&mut self, value: $ty) {
            let value = if self.swap { value.swap_bytes() } else { value };
            let pad = padding(self.position(), $size);
            if pad == 0 {
                self.head.extend_from_slice(&value.to_ne_bytes());
            } else {
                // Append padding and value in one append of constant length, then cut off the tail.
                let end = self.head.len() + pad + $size;
                let padded = <$double>::from(value.to_le()) << (8 * pad);
                self.head.extend_from_slice(&padded.to_le_bytes());
                self.head.truncate(end);
            }
        }
    )*};
}

impl Encoder {
    /// Creates an empty encoder. Its code sets are those of a connection without negotiation, see
    /// [`CodeSets::default_for`]. Allocates nothing yet.
    pub fn new(order: ByteOrder, version: Version) -> Encoder {
        Encoder::new_at(order, version, 0)
    }

    /// Creates an empty encoder whose first byte has offset `offset` from the alignment origin.
    pub fn new_at(order: ByteOrder, version: Version, offset: usize) -> Encoder {
        Encoder {
            head: BytesMut::new(),
            chunks: Vec::new(),
            base: offset,
            swap: order.is_foreign(),
            order,
            version,
            code_sets: CodeSets::default_for(version),
            enclosed: false,
            chunk_threshold: DEFAULT_CHUNK_THRESHOLD,
            full_capacity: 0,
            chunk_octets: 0,
            given: 0,
            copied: 0,
            blocks: Vec::new(),
            keeping: ContextRetention::Nothing,
            flow: LongRuns::None,
            values: None,
            ends_bases: false,
        }
    }

    /// Empties the encoder and sets its order, version and default code sets. Keeps the buffers: those
    /// drained before are reclaimed if they are not held any more.
    pub fn reset(&mut self, order: ByteOrder, version: Version) {
        self.head.clear();
        self.chunks.clear();
        (self.chunk_octets, self.given) = (0, 0);
        self.copied = 0;
        self.base = 0;
        self.swap = order.is_foreign();
        self.order = order;
        self.version = version;
        self.code_sets = CodeSets::default_for(version);
        self.values = None;
        self.ends_bases = false;
        self.flow = LongRuns::None;
        self.reclaim();
    }

    /// Starts a message after the bytes encoded so far: offset 0 is the next byte. Used to gather several
    /// messages in one buffer.
    pub fn begin_message(&mut self, order: ByteOrder, version: Version) {
        self.base = self.head.len().wrapping_neg();
        self.swap = order.is_foreign();
        self.order = order;
        self.version = version;
        self.code_sets = CodeSets::default_for(version);
        self.values = None;
        self.ends_bases = false;
    }

    /// Sets the transmission code sets for strings and wide strings.
    pub fn set_code_sets(&mut self, code_sets: CodeSets) {
        self.code_sets = code_sets;
    }

    /// Writes chunked values in the form that TAO reads, until the next message. TAO cannot read a value
    /// whose base has state in the standard's form.
    ///
    /// In this form, an end tag follows the state of each base and that of the type itself. Its level is one
    /// more than that of the value. A value in a chunk is part of that chunk, and its levels restart.
    pub fn set_ends_bases(&mut self, ends: bool) {
        self.ends_bases = ends;
    }

    /// Returns the transmission code sets in use.
    #[inline]
    pub fn code_sets(&self) -> CodeSets {
        self.code_sets
    }

    /// Sets the length in bytes from which [`put_shared`](Encoder::put_shared) shares instead of copying.
    /// Default 4096.
    pub fn set_chunk_threshold(&mut self, octets: usize) {
        self.chunk_threshold = octets;
    }

    /// Returns the number of copied bytes since the last [`reset`](Encoder::reset) that could have been
    /// shared. They were shorter than the chunk threshold, or were moved because something was put before
    /// them.
    #[inline]
    pub fn copied(&self) -> usize {
        self.copied
    }

    /// Returns the byte order of the output.
    #[inline]
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Returns the GIOP version of the output; 1.2 inside encapsulations.
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns whether `order` is not the order of this machine.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.swap
    }

    /// Returns the offset of the next byte from the alignment origin, bytes in chunks included.
    #[inline]
    pub fn position(&self) -> usize {
        self.head.len().wrapping_add(self.base)
    }

    /// Reserves capacity for `additional` bytes.
    #[inline]
    pub fn reserve(&mut self, additional: usize) {
        let len = self.head.len();
        self.head.reserve(mapped_size(len.saturating_add(additional)) - len);
    }

    /// Pads with zeros to the next multiple of `n`: 1, 2, 4 or 8.
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

    /// Writes an `int8`.
    #[inline]
    pub fn put_i8(&mut self, value: i8) {
        self.put_u8(value.cast_unsigned());
    }

    /// Writes a boolean as 0 or 1.
    #[inline]
    pub fn put_bool(&mut self, value: bool) {
        self.put_u8(u8::from(value));
    }

    /// Writes an `i16`, aligned to 2.
    #[inline]
    pub fn put_i16(&mut self, value: i16) {
        self.put_u16(value.cast_unsigned());
    }

    /// Writes an `i32`, aligned to 4.
    #[inline]
    pub fn put_i32(&mut self, value: i32) {
        self.put_u32(value.cast_unsigned());
    }

    /// Writes an `i64`, aligned to 8.
    #[inline]
    pub fn put_i64(&mut self, value: i64) {
        self.put_u64(value.cast_unsigned());
    }

    /// Writes an `f32`, aligned to 4.
    #[inline]
    pub fn put_f32(&mut self, value: f32) {
        self.put_u32(value.to_bits());
    }

    /// Writes an `f64`, aligned to 8.
    #[inline]
    pub fn put_f64(&mut self, value: f64) {
        self.put_u64(value.to_bits());
    }

    /// Writes a count of elements or bytes as an `unsigned long`.
    ///
    /// # Errors
    /// [`TooLong`](EncodeErrorKind::TooLong) if `n` is 2^32 or more.
    #[inline]
    pub fn put_len(&mut self, n: usize) -> Result<(), EncodeError> {
        match u32::try_from(n) {
            Ok(n) => {
                self.put_u32(n);
                Ok(())
            }
            Err(_) => Err(EncodeError::new(EncodeErrorKind::TooLong)),
        }
    }

    /// Copies `octets` as they are, unaligned.
    #[inline]
    pub fn put_raw(&mut self, octets: &[u8]) {
        self.head.extend_from_slice(octets);
    }

    /// Returns whether a run gets a separate block.
    pub(super) fn is_large(&self, len: usize) -> bool {
        len >= LARGE_RUN.max(self.chunk_threshold)
    }

    /// Appends `len` zeros and returns them, to be overwritten.
    #[inline]
    pub(crate) fn grow(&mut self, len: usize) -> &mut [u8] {
        let start = self.head.len();
        self.head.resize(start + len, 0);
        self.head.get_mut(start..).unwrap_or_default()
    }

    /// Puts `octets` as they are, unaligned. They are shared from the chunk threshold on, else copied.
    #[inline]
    pub fn put_shared(&mut self, octets: Bytes) {
        if octets.len() < self.chunk_threshold {
            self.copied += octets.len();
            self.head.extend_from_slice(&octets);
        } else {
            self.push_chunk(octets, true);
        }
    }

    /// Puts bytes like [`put_shared`](Encoder::put_shared), but not as the whole of a sequence.
    pub fn put_shared_part(&mut self, octets: Bytes) {
        if octets.len() < self.chunk_threshold {
            self.put_shared(octets);
        } else {
            self.push_chunk(octets, false);
        }
    }

    /// Puts bytes like [`put_shared`](Encoder::put_shared), but increments the reference count only if it
    /// shares them.
    #[inline]
    pub fn put_shared_ref(&mut self, octets: &Bytes) {
        if octets.len() < self.chunk_threshold {
            self.copied += octets.len();
            self.head.extend_from_slice(octets);
        } else {
            self.push_chunk(octets.clone(), true);
        }
    }

    pub(super) fn push_chunk(&mut self, octets: Bytes, whole: bool) {
        if octets.is_empty() {
            return;
        }
        let whole = whole && !self.enclosed;
        self.base = self.base.wrapping_add(octets.len());
        self.chunk_octets += octets.len();
        self.chunks.push(Chunk { at: self.head.len(), octets, whole });
    }

    /// Writes a `sequence<octet>` that holds an encapsulation ("Encapsulation"): its length, the byte order
    /// flag, and the output of `f`, aligned from that flag on. Inside, the version is 1.2 and wide text is
    /// UTF-16, independent of the outer settings.
    ///
    /// # Errors
    /// The error of `f`, or [`TooLong`](EncodeErrorKind::TooLong).
    pub fn encapsulate(
        &mut self,
        f: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.put_u32(0);
        let length_at = self.head.len() - 4;
        let outer_base = self.base;
        let chunks_before = self.chunk_octets;
        let (version, code_sets, enclosed) = (self.version, self.code_sets, self.enclosed);
        let values = self.values.take();
        self.enclosed = true;
        self.base = self.head.len().wrapping_neg();
        self.version = Version::V1_2;
        self.code_sets = self.code_sets.in_encapsulation();
        self.put_u8(self.order.flag());
        let result = f(self);
        let length = self.position();
        self.base = outer_base.wrapping_add(self.chunk_octets - chunks_before);
        self.version = version;
        self.code_sets = code_sets;
        self.enclosed = enclosed;
        self.values = values;
        result?;
        let length = u32::try_from(length).map_err(|_| EncodeErrorKind::TooLong)?;
        self.patch_u32(length_at, length);
        Ok(())
    }

    /// Overwrites the four bytes at `at`, an index into the head, with `value` in the encoder's order. Does
    /// nothing if they are not in the head.
    #[inline]
    pub fn patch_u32(&mut self, at: usize, value: u32) {
        let value = if self.swap { value.swap_bytes() } else { value };
        if let Some(place) = self.head.get_mut(at..).and_then(|tail| tail.first_chunk_mut()) {
            *place = value.to_ne_bytes();
        }
    }

    /// Returns the bytes encoded outside of chunks: the whole message if
    /// [`chunk_count`](Encoder::chunk_count) is 0.
    #[inline]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the number of chunks that were shared instead of copied.
    #[inline]
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Returns the chunks in order: offset in the message, number of bytes, and whether it is all elements of
    /// a sequence or array, outside of any encapsulation.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (usize, usize, bool)> {
        let mut offset = self.base.wrapping_sub(self.chunk_octets);
        self.chunks.iter().map(move |Chunk { at, octets, whole }| {
            let start = offset.wrapping_add(*at);
            offset = offset.wrapping_add(octets.len());
            (start, octets.len(), *whole)
        })
    }

    /// Replaces a part of the head by the same number of bytes or more. Moves the rest of the head, but no
    /// chunk. Does nothing if there is no such part, or if a chunk precedes its end.
    pub(crate) fn replace(&mut self, part: Range<usize>, octets: &[u8]) {
        let (end, grow) = (self.head.len(), octets.len().saturating_sub(part.len()));
        let movable = part.start <= part.end && part.end <= end && part.len() + grow == octets.len();
        if !movable || self.chunks.first().is_some_and(|first| first.at < part.end) {
            return;
        }
        self.head.resize(end + grow, 0);
        self.head.copy_within(part.end..end, part.end + grow);
        if let Some(place) = self.head.get_mut(part.start..part.end + grow) {
            place.copy_from_slice(octets);
        }
        self.chunks.iter_mut().for_each(|chunk| chunk.at += grow);
        self.copied += end - part.end;
    }

    /// Returns the number of bytes encoded since the last drain or reset, chunks included, independent of the
    /// origin. Bytes that left through an [`Outlet`](super::Outlet) count. The difference of two such numbers
    /// is the distance of two places in a message, also if only one of them is in an encapsulation.
    #[inline]
    pub fn len(&self) -> usize {
        self.given + self.head.len() + self.chunk_octets
    }

    /// Returns the bytes of memory that the encoder holds or reclaims on [`reset`](Encoder::reset). A pool
    /// can drop encoders that have grown too large.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.head.capacity().max(self.full_capacity) + self.block_octets()
    }

    /// Returns whether nothing is encoded.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.chunks.is_empty()
    }

    /// Returns the current position, for [`rewind`](Encoder::rewind).
    pub fn mark(&self) -> Mark {
        Mark {
            head: self.head.len(),
            chunks: self.chunks.len(),
            chunk_octets: self.chunk_octets,
            base: self.base,
        }
    }

    /// Removes everything put since `mark`, which must stem from this encoder and the same message.
    pub fn rewind(&mut self, mark: Mark) {
        self.head.truncate(mark.head);
        self.chunks.truncate(mark.chunks);
        self.chunk_octets = mark.chunk_octets;
        self.base = mark.base;
        let position = self.position();
        if let Some(values) = &mut self.values {
            values.forget_from(position);
        }
    }

    /// Truncates the head to an earlier length, after which no chunk was put.
    pub(crate) fn truncate_head(&mut self, len: usize) {
        self.head.truncate(len);
    }

    /// Moves the bytes out, in order, as parts of the head and chunks, without a copy. The encoder is empty
    /// afterwards: [`reset`](Encoder::reset) it before the next message.
    pub fn drain_into(&mut self, out: &mut VecDeque<Bytes>) {
        self.full_capacity = self.full_capacity.max(self.head.capacity());
        let mut start = 0;
        for Chunk { at, octets, .. } in self.chunks.drain(..) {
            if at > start {
                out.push_back(self.head.split_to(at - start).freeze());
            }
            out.push_back(octets);
            start = at;
        }
        if !self.head.is_empty() {
            out.push_back(self.head.split().freeze());
        }
        (self.chunk_octets, self.given) = (0, 0);
        self.base = 0;
    }

    /// Moves the bytes out like [`drain_into`](Encoder::drain_into), in the middle of a message. The encoder
    /// continues the message, empty. It reuses the memory of the head as soon as no drained buffer is held
    /// any more. Places in the head, and [marks](Encoder::mark), are invalid afterwards.
    pub fn drain_part(&mut self, out: &mut VecDeque<Bytes>) {
        let (position, given) = (self.position(), self.len());
        self.drain_into(out);
        self.reclaim();
        (self.base, self.given, self.copied) = (position, given, 0);
    }

    /// Returns all bytes in one buffer. Copies everything if there are chunks.
    pub fn into_bytes(mut self) -> Bytes {
        if self.chunks.is_empty() {
            return self.head.freeze();
        }
        let mut pieces = VecDeque::new();
        let mut whole = BytesMut::with_capacity(self.len());
        self.drain_into(&mut pieces);
        pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
        whole.freeze()
    }

    /// Reclaims the whole memory of the head if no part of it is held any more.
    fn reclaim(&mut self) {
        if self.head.capacity() < self.full_capacity {
            // Failure is harmless: the rest of the buffer, then a new one, is used instead.
            let _ = self.head.try_reclaim(self.full_capacity);
        }
    }
}
