//! Messages whose bytes are in several buffers: control bytes in one, and each block of bulk data in a buffer
//! of its own.
//!
//! A decoder of such a message reads one segment as if it were the whole message. A value that does not fit
//! there is read from the next segment, off the fast path. A value inside one segment is read, or viewed, in
//! place.
//!
//! Senders split only between values. If a value crosses a segment boundary nevertheless, the message is
//! joined by one copy, once, and read on from that copy. The result of decoding therefore does not depend on
//! where a message is split.

use std::sync::OnceLock;

use bytes::Bytes;

use super::chunked;
use super::decoder::Decoder;
use super::layout::{AnyBitPattern, FixedLayout, padding};
use crate::{ByteOrder, DecodeError, DecodeErrorKind};

/// The locations of the bytes of a segmented message, in the order of the message.
///
/// ```
/// use bytes::Bytes;
/// use giop_codec::cdr::{CdrDecode, Decoder, Segments};
/// use giop_codec::{ByteOrder, Version};
///
/// // A sequence of three bytes, then a long. The three bytes are in a block of their own.
/// let control = Bytes::from_static(b"\0\0\0\x03\0\0\0\0\x07");
/// let block = Bytes::from_static(b"abc");
/// let mut segments = Segments::default();
/// segments.push_control(0, 4);
/// segments.push_block(block.clone());
/// segments.push_control(4, 5);
///
/// let mut d = Decoder::from_bytes(&control, ByteOrder::Big, Version::V1_2).with_segments(&segments);
/// let octets = Bytes::decode(&mut d)?;
/// assert_eq!(octets.as_ptr(), block.as_ptr());
/// assert_eq!(d.read_u32()?, 7);
/// # Ok::<(), giop_codec::DecodeError>(())
/// ```
#[derive(Debug, Default)]
pub struct Segments {
    parts: Vec<Segment>,
    len: usize,
    /// The whole message in one buffer, if that was needed.
    whole: OnceLock<Bytes>,
}

#[derive(Debug)]
struct Segment {
    /// Offset from the alignment origin.
    start: usize,
    len: usize,
    place: SegmentSource,
}

#[derive(Debug)]
enum SegmentSource {
    /// From this index on in the buffer that the decoder was created from.
    Control(usize),
    Apart {
        octets: Bytes,
        block: bool,
    },
}

/// The segments after the bytes that a decoder sees.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RemainingSegments<'a> {
    /// The control buffer, and all segments.
    segments: Option<(&'a Bytes, &'a Segments)>,
    /// Index of the next segment.
    next: usize,
    /// Number of bytes in that segment and those after it.
    pub(super) left: usize,
}

impl Segments {
    /// Creates an empty list with capacity for that many segments.
    #[must_use]
    pub fn with_capacity(segments: usize) -> Self {
        Self { parts: Vec::with_capacity(segments), ..Self::default() }
    }

    /// Appends `len` bytes of the control buffer, from index `at` on.
    pub fn push_control(&mut self, at: usize, len: usize) {
        self.push(len, SegmentSource::Control(at));
    }

    /// Appends a separate buffer that holds all elements of a sequence.
    pub fn push_block(&mut self, octets: Bytes) {
        self.push(octets.len(), SegmentSource::Apart { octets, block: true });
    }

    /// Appends a separate buffer that may be split anywhere.
    pub fn push_rest(&mut self, octets: Bytes) {
        self.push(octets.len(), SegmentSource::Apart { octets, block: false });
    }

    fn push(&mut self, len: usize, place: SegmentSource) {
        self.parts.push(Segment { start: self.len, len, place });
        self.len += len;
    }

    /// Returns the number of bytes of the message.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the message has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all bytes of the message in order. `control` is the buffer with those that are in no block.
    pub fn pieces<'a>(&'a self, control: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.parts.iter().map(|part| part.octets(control))
    }

    /// Returns all bytes of the message in order, as shared buffers. The flag of each says whether it holds
    /// all elements of a sequence. `control` is the buffer with the bytes that are in no separate buffer.
    pub fn shared<'a>(&'a self, control: &'a Bytes) -> impl Iterator<Item = (Bytes, bool)> + 'a {
        self.parts.iter().map(|part| match &part.place {
            SegmentSource::Apart { octets, block } => (octets.clone(), *block),
            SegmentSource::Control(_) => (control.slice_ref(part.octets(control)), false),
        })
    }

    /// Returns the message in one buffer. Copies all of it, once. `None` if memory is exhausted.
    fn whole(&self, control: &[u8]) -> Option<&Bytes> {
        if self.whole.get().is_none() {
            let mut whole = Vec::new();
            whole.try_reserve_exact(self.len).ok()?;
            self.pieces(control).for_each(|piece| whole.extend_from_slice(piece));
            // If another thread was faster, its copy is equivalent.
            let _ = self.whole.set(whole.into());
        }
        self.whole.get()
    }
}

impl Segment {
    fn octets<'a>(&'a self, control: &'a [u8]) -> &'a [u8] {
        match &self.place {
            SegmentSource::Apart { octets, .. } => octets,
            SegmentSource::Control(at) => control.get(*at..*at + self.len).unwrap_or_default(),
        }
    }
}

impl RemainingSegments<'_> {
    /// Returns whether `owner` is the buffer that the decoder was created from.
    pub(super) fn is_control(&self, owner: &Bytes) -> bool {
        self.segments.is_none_or(|(control, _)| std::ptr::eq(control, owner))
    }
}

impl<'a> Decoder<'a> {
    /// Returns this decoder for a segmented message. The shared buffer that it was created from holds only
    /// the control bytes; `segments` lists the locations of all. The allocation limit stays as it is: see
    /// [`set_limits`](Decoder::set_limits).
    ///
    /// Has no effect on a decoder without a shared buffer.
    #[must_use]
    pub fn with_segments(mut self, segments: &'a Segments) -> Decoder<'a> {
        let Some((control, 0)) = self.owner else { return self };
        let position = self.position;
        self.split.segments = Some((control, segments));
        self.seek_from_start(position);
        self
    }

    #[inline(always)]
    pub(super) fn is_segmented(&self) -> bool {
        self.split.segments.is_some()
    }

    /// Moves to an offset from the alignment origin. An offset beyond the data moves to its end.
    #[cold]
    pub(super) fn seek_from_start(&mut self, position: usize) {
        let Some((_, segments)) = self.split.segments else { return };
        (self.split.next, self.split.left) = (0, segments.len);
        (self.data, self.position, self.base, self.seen, self.pieces.shift) = (&[], 0, 0, 0, 0);
        self.seek(position);
    }

    /// Advances to an offset that is not less than this one, in the segment that has the byte there.
    fn seek(&mut self, position: usize) {
        while position - self.base >= self.data.len() && self.enter_next() {}
        self.position = (position - self.base).min(self.data.len());
    }

    /// Advances to the next segment at the end of the current one.
    pub(super) fn leave_segment(&mut self) {
        if self.is_segmented() {
            self.seek(self.position());
        }
    }

    fn enter_next(&mut self) -> bool {
        let Some((control, segments)) = self.split.segments else { return false };
        let Some(segment) = segments.parts.get(self.split.next) else { return false };
        self.data = segment.octets(control);
        self.owner = Some(match &segment.place {
            SegmentSource::Apart { octets, .. } => (octets, 0),
            SegmentSource::Control(at) => (control, *at),
        });
        self.split.next += 1;
        self.split.left -= segment.len;
        (self.base, self.pieces.shift) = (segment.start, segment.start);
        (self.position, self.seen) = (0, self.data.len());
        true
    }

    /// Continues in a copy of the whole message, because a value crosses a segment boundary.
    pub(super) fn join(&mut self) -> Result<(), DecodeError> {
        let Some((control, segments)) = self.split.segments else { return Ok(()) };
        let position = self.position();
        let Some(whole) = segments.whole(control) else {
            return Err(self.error(DecodeErrorKind::AllocLimit));
        };
        (self.data, self.position, self.base, self.seen) = (whole, position, 0, whole.len());
        (self.split, self.pieces.shift) = (RemainingSegments::default(), 0);
        self.owner = Some((whole, 0));
        // Rewritten sequences, if any, precede this position: decoding them does not join.
        self.rewrites = None;
        Ok(())
    }

    /// Returns whether the next `n` bytes are in the current segment.
    fn in_segment(&self, n: usize) -> bool {
        n <= self.data.len() - self.position
    }

    /// Makes the next `n` bytes contiguous: by advancing to the next segment, else by a copy.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData) if there are fewer,
    /// [`AllocLimit`](DecodeErrorKind::AllocLimit) if memory is exhausted.
    fn gather(&mut self, n: usize) -> Result<(), DecodeError> {
        if n > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        self.seek(self.position());
        if self.in_segment(n) { Ok(()) } else { self.join() }
    }

    /// Skips padding that ends after the current segment, if anything follows it.
    #[cold]
    pub(super) fn skip_behind(&mut self, pad: usize, n: usize) -> Result<(), DecodeError> {
        if chunked::next_chunk(self, n)? {
            return self.align(n);
        }
        if pad > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        self.seek(self.position() + pad);
        Ok(())
    }

    /// Takes the next `n` bytes, which are not all in the current segment, if the data has segments at all.
    #[cold]
    pub(super) fn take_over_joint(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        if chunked::next_chunk(self, 1)? {
            return self.take(n);
        }
        self.gather(n)?;
        let octets = self.rest().get(..n).ok_or(self.error(DecodeErrorKind::EndOfData))?;
        self.position += n;
        Ok(octets)
    }

    /// Reads a primitive that is not all in the current segment.
    #[cold]
    pub(super) fn octets_over_joint<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let pad = padding(self.position(), N);
        if pad + N > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        self.seek(self.position() + pad);
        match self.take(N)?.first_chunk() {
            Some(octets) => Ok(*octets),
            None => Err(self.error(DecodeErrorKind::EndOfData)),
        }
    }

    /// Reads a value of fixed layout that is not all in the current segment.
    #[cold]
    pub(super) fn read_one_over_joint<T: FixedLayout>(&mut self) -> Result<T, DecodeError> {
        self.gather(T::LAYOUT.size(self.position()))?;
        self.read_fixed()
    }

    /// Reads elements of fixed layout that are not all in the current segment.
    #[cold]
    pub(super) fn read_fixed_over_joint<T: FixedLayout>(
        &mut self,
        n: usize,
        out: &mut Vec<T>,
    ) -> Result<(), DecodeError> {
        let start = self.position();
        let layout = <T as FixedLayout>::LAYOUT;
        let run = layout.run(start, n);
        if run > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        // The padding before the first element may be in this segment, and all elements in the next one.
        let pad = layout.lead(start).unwrap_or(0);
        self.seek(start + pad);
        self.gather(run - pad)?;
        self.read_fixed_into(n, out).map_err(|error| match error.kind {
            DecodeErrorKind::InvalidEnum => DecodeError::new(error.kind, start),
            _ => error,
        })
    }

    /// Returns the memory of `n` elements, if all are in one segment.
    #[cold]
    pub(super) fn view_in_segment<T: AnyBitPattern>(
        &mut self,
        n: usize,
    ) -> Result<Option<Bytes>, DecodeError> {
        let Some(pad) = <T as FixedLayout>::LAYOUT.lead(self.position()) else { return Ok(None) };
        if self.order() != ByteOrder::NATIVE && size_of::<T>() > 1 {
            return Ok(None);
        }
        let size = n.saturating_mul(size_of::<T>());
        if size.saturating_add(pad) > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        // Take the value table out before cloning: it is not needed here and may be large.
        let values = self.values.take();
        let before = self.clone();
        self.values = values;
        self.seek(self.position() + pad);
        if let Some((owner, origin)) = self.owner
            && self.in_segment(size)
        {
            let first = origin + self.position;
            if <[T] as zerocopy::FromBytes>::ref_from_bytes(self.take(size)?).is_ok() {
                return Ok(Some(owner.slice(first..first + size)));
            }
        }
        let values = self.values.take();
        *self = before;
        self.values = values;
        Ok(None)
    }
}
