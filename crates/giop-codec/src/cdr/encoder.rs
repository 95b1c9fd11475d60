//! [`Encoder`]: values to octets, in one recyclable buffer plus shared chunks.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::context::Keeping;
use super::flow::Flow;
use super::layout::padding;
use super::mapped::mapped_size;
use super::text::CodeSets;
use crate::value::Writing;
use crate::{ByteOrder, EncodeError, EncodeErrorKind, Version};

/// Pieces handed to [`Encoder::put_shared`] that are shorter than this are copied: gathering many small
/// pieces costs more system time than their copies cost processor time.
const DEFAULT_CHUNK_THRESHOLD: usize = 4096;

/// Runs of structs from this length on are written to a block of their own, whose memory is used again as it is: nothing has
/// to be zeroed before it is written to.
const LARGE_RUN: usize = 32 * 1024;

/// Encodes values as CDR ("CDR Transfer Syntax").
///
/// The octets lie in one buffer, the *head*, and in shared chunks between its parts, which are never copied.
/// Offset 0, from which alignment counts, is the first octet put unless [`Encoder::new_at`] or
/// [`Encoder::begin_message`] says otherwise. After [`Encoder::drain_into`] and [`Encoder::reset`] the head's
/// memory is used again as soon as nobody holds what was drained: no allocation in steady state.
///
/// ```
/// use giop_codec::cdr::{CdrEncode, Encoder};
/// use giop_codec::{ByteOrder, Version};
///
/// let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
/// "hi".encode(&mut e)?;
/// e.put_u16(0x0102); // at offset 8: the string took 4 + 3 octets, and a short is aligned to 2
/// assert_eq!(e.head(), b"\0\0\0\x03hi\0\0\x01\x02");
/// # Ok::<(), giop_codec::EncodeError>(())
/// ```
#[derive(Debug)]
pub struct Encoder {
    pub(super) head: BytesMut,
    pub(super) chunks: Vec<Chunk>,
    /// CDR offset minus `head.len()`, wrapping: octets in chunks less the origin.
    pub(super) base: usize,
    pub(super) swap: bool,
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
    /// What is put is inside of an encapsulation.
    pub(super) enclosed: bool,
    chunk_threshold: usize,
    /// Greatest capacity the head ever had: what `reset` tries to get back.
    full_capacity: usize,
    pub(super) chunk_octets: usize,
    /// Octets of the message that left already.
    pub(super) given: usize,
    /// Octets handed to `put_shared` that were copied.
    copied: usize,
    /// Handles of the memory of large runs, each free when it is the only one.
    pub(super) blocks: Vec<Bytes>,
    /// The values that were written; `None` before the first one.
    pub(crate) values: Option<Box<Writing>>,
    /// The state of each base of a chunked value is ended by a tag, as TAO has it.
    pub(crate) ends_bases: bool,
    pub(super) keeping: Keeping,
    pub(super) flow: Flow,
}

/// Octets that are shared, not copied.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The length that the head had when it was put.
    at: usize,
    octets: Bytes,
    /// They are all elements of a sequence or array, and in no encapsulation.
    whole: bool,
}

/// A place in an [`Encoder`] to return to by [`Encoder::rewind`].
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
                // Padding and value in one append of constant length, of which the tail is given back.
                let end = self.head.len() + pad + $size;
                let padded = <$double>::from(value.to_le()) << (8 * pad);
                self.head.extend_from_slice(&padded.to_le_bytes());
                self.head.truncate(end);
            }
        }
    )*};
}

impl Encoder {
    /// An empty encoder. Its code sets are those of a connection without negotiation, see
    /// [`CodeSets::default_for`]. Allocates nothing yet.
    pub fn new(order: ByteOrder, version: Version) -> Encoder {
        Encoder::new_at(order, version, 0)
    }

    /// An empty encoder whose first octet has offset `offset` from the alignment origin.
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
            keeping: Keeping::Nothing,
            flow: Flow::None,
            values: None,
            ends_bases: false,
        }
    }

    /// Empties the encoder and sets its order, version and default code sets. Keeps the buffers: those drained
    /// before are reclaimed if nobody holds them any more.
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
        self.flow = Flow::None;
        self.reclaim();
    }

    /// Starts a message behind what was encoded already: offset 0 is the next octet. For several messages
    /// gathered in one buffer.
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

    /// Writes chunked values in the form that TAO reads, until the next message. In the standard's form TAO cannot read one whose base has state.
    ///
    /// An end tag, of one level more than the value's, comes after the state of each base and after that of the type itself. A value that is in a
    /// chunk is part of that chunk, and its levels begin anew.
    pub fn set_ends_bases(&mut self, ends: bool) {
        self.ends_bases = ends;
    }

    /// The transmission code sets in use.
    #[inline]
    pub fn code_sets(&self) -> CodeSets {
        self.code_sets
    }

    /// Sets the length in octets from which [`put_shared`](Encoder::put_shared) shares instead of copying.
    /// Default 4096.
    pub fn set_chunk_threshold(&mut self, octets: usize) {
        self.chunk_threshold = octets;
    }

    /// How many octets that could have been shared were copied since the last [`reset`](Encoder::reset), because there were
    /// fewer of them at a time than the chunk threshold; and those that moved because something was put before them.
    #[inline]
    pub fn copied(&self) -> usize {
        self.copied
    }

    /// The byte order written.
    #[inline]
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// The GIOP version written for; 1.2 inside encapsulations.
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether `order` is not the order of this machine.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.swap
    }

    /// Offset of the next octet from the alignment origin, octets in chunks included.
    #[inline]
    pub fn position(&self) -> usize {
        self.head.len().wrapping_add(self.base)
    }

    /// Makes room for `additional` octets at once.
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

    /// Writes an octet.
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

    /// Writes a count of elements or octets as an `unsigned long`.
    ///
    /// # Errors
    /// [`TooLong`](EncodeErrorKind::TooLong) from 2^32 on.
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

    /// Whether a run gets a block of its own.
    pub(super) fn is_large(&self, len: usize) -> bool {
        len >= LARGE_RUN.max(self.chunk_threshold)
    }

    /// Appends zeros to be written over.
    #[inline]
    pub(crate) fn grow(&mut self, len: usize) -> &mut [u8] {
        let start = self.head.len();
        self.head.resize(start + len, 0);
        self.head.get_mut(start..).unwrap_or_default()
    }

    /// Puts `octets` as they are, unaligned: shared without a copy from the chunk threshold on, else copied.
    #[inline]
    pub fn put_shared(&mut self, octets: Bytes) {
        if octets.len() < self.chunk_threshold {
            self.copied += octets.len();
            self.head.extend_from_slice(&octets);
        } else {
            self.push_chunk(octets, true);
        }
    }

    /// [`put_shared`](Encoder::put_shared) of octets that are not the whole of a sequence.
    pub fn put_shared_part(&mut self, octets: Bytes) {
        if octets.len() < self.chunk_threshold {
            self.put_shared(octets);
        } else {
            self.push_chunk(octets, false);
        }
    }

    /// [`put_shared`](Encoder::put_shared) that counts a reference only where it shares.
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

    /// Writes a `sequence<octet>` that holds an encapsulation ("Encapsulation"): its length, the octet of the
    /// byte order, and what `f` writes, aligned from that octet on. Inside, the version is 1.2 and wide text is
    /// UTF-16, whatever holds outside.
    ///
    /// # Errors
    /// What `f` returns, or [`TooLong`](EncodeErrorKind::TooLong).
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

    /// Overwrites the four octets at `at`, an index into the head, by `value` in the encoder's order. Does
    /// nothing if they do not lie in the head.
    #[inline]
    pub fn patch_u32(&mut self, at: usize, value: u32) {
        let value = if self.swap { value.swap_bytes() } else { value };
        if let Some(place) = self.head.get_mut(at..).and_then(|tail| tail.first_chunk_mut()) {
            *place = value.to_ne_bytes();
        }
    }

    /// The octets encoded outside of chunks; the whole message when [`chunk_count`](Encoder::chunk_count) is 0.
    #[inline]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Number of chunks shared instead of copied.
    #[inline]
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// The chunks in order: at which offset of the message each begins, how many octets it has, and whether it is all the
    /// elements of a sequence or array, outside of any encapsulation.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (usize, usize, bool)> {
        let mut offset = self.base.wrapping_sub(self.chunk_octets);
        self.chunks.iter().map(move |Chunk { at, octets, whole }| {
            let start = offset.wrapping_add(*at);
            offset = offset.wrapping_add(octets.len());
            (start, octets.len(), *whole)
        })
    }

    /// Replaces a part of the head, before which there is no chunk, by as many octets or more. Moves the rest of the head, but no
    /// chunk. Does nothing where there is no such part.
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

    /// Octets encoded since the last drain or reset, chunks included, whatever the origin: two places of a message are as far
    /// apart as this differs, also where one is in an encapsulation and the other is not. What left through an
    /// [`Outlet`](super::Outlet) counts.
    #[inline]
    pub fn len(&self) -> usize {
        self.given + self.head.len() + self.chunk_octets
    }

    /// Octets of memory that the encoder holds or gets back on [`reset`](Encoder::reset): for pools, to drop what has grown
    /// too large.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.head.capacity().max(self.full_capacity) + self.block_octets()
    }

    /// Whether nothing is encoded.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.chunks.is_empty()
    }

    /// The place reached, to come back to by [`rewind`](Encoder::rewind).
    pub fn mark(&self) -> Mark {
        Mark {
            head: self.head.len(),
            chunks: self.chunks.len(),
            chunk_octets: self.chunk_octets,
            base: self.base,
        }
    }

    /// Takes back everything put since `mark`, which must stem from this encoder and the same message.
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

    /// Takes back what was put into the head since it had this length, before any chunk.
    pub(crate) fn truncate_head(&mut self, len: usize) {
        self.head.truncate(len);
    }

    /// Moves the octets out, in order, as pieces of the head and chunks, none of them copied. The encoder is
    /// empty afterwards; [`reset`](Encoder::reset) it before the next message.
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

    /// The same in the middle of a message: the encoder goes on with it, empty, and uses the head's memory again as soon as nobody
    /// holds what was drained. Places in the head, and [marks](Encoder::mark), end with it.
    pub fn drain_part(&mut self, out: &mut VecDeque<Bytes>) {
        let (position, given) = (self.position(), self.len());
        self.drain_into(out);
        self.reclaim();
        (self.base, self.given, self.copied) = (position, given, 0);
    }

    /// All octets in one piece. Copies everything if there are chunks.
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

    /// Gets the head's whole memory back if nobody holds a piece of it any more.
    fn reclaim(&mut self) {
        if self.head.capacity() < self.full_capacity {
            // Failure is no loss: the rest of the buffer, then a new one, serves as well.
            let _ = self.head.try_reclaim(self.full_capacity);
        }
    }
}
