//! Segmented messages, whose bytes are in several buffers. Each large block of data is in a buffer of its
//! own, and all other bytes are in the *control buffer*.
//!
//! Only the current segment is visible to a decoder. A read that reaches its end takes a slow path, which
//! enters the next segment. Senders split messages only between values. If a value crosses a segment boundary
//! nevertheless, the whole message is copied into one buffer, and decoding continues there. The result
//! therefore does not depend on where a message is split.

use std::sync::OnceLock;

use bytes::Bytes;

use super::chunked;
use super::decoder::Decoder;
use super::layout::{AnyBitPattern, FixedLayout, padding};
use crate::{ByteOrder, DecodeError, DecodeErrorKind};

/// The list of the segments of a message, in the order of the message.
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
/// let bytes = Bytes::decode(&mut d)?;
/// assert_eq!(bytes.as_ptr(), block.as_ptr());
/// assert_eq!(d.read_u32()?, 7);
/// # Ok::<(), giop_codec::DecodeError>(())
/// ```
#[derive(Debug, Default)]
pub struct Segments {
    segments: Vec<Segment>,
    len: usize,
    /// A copy of the whole message in one buffer, made when it is first needed.
    joined: OnceLock<Bytes>,
}

#[derive(Debug)]
struct Segment {
    /// Offset from the alignment origin.
    start: usize,
    len: usize,
    source: SegmentSource,
}

#[derive(Debug)]
enum SegmentSource {
    /// In the control buffer, from this index on.
    Control(usize),
    Separate {
        bytes: Bytes,
        /// Whether the buffer holds all elements of a sequence.
        is_block: bool,
    },
}

/// The segments of a decoder's message after the current one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RemainingSegments<'a> {
    /// The control buffer, and all segments.
    list: Option<(&'a Bytes, &'a Segments)>,
    /// Index of the next segment.
    next: usize,
    /// Number of bytes in the next segment and all segments after it. In a chunk of a value, the message is
    /// unsegmented, and this is the number of bytes after the chunk.
    pub(super) bytes: usize,
}

impl Segments {
    /// Creates an empty list with capacity for `segments` segments.
    #[must_use]
    pub fn with_capacity(segments: usize) -> Self {
        Self { segments: Vec::with_capacity(segments), ..Self::default() }
    }

    /// Appends `len` bytes of the control buffer, from index `at` on.
    pub fn push_control(&mut self, at: usize, len: usize) {
        self.push(len, SegmentSource::Control(at));
    }

    /// Appends a separate buffer that holds all elements of a sequence.
    pub fn push_block(&mut self, bytes: Bytes) {
        self.push(bytes.len(), SegmentSource::Separate { bytes, is_block: true });
    }

    /// Appends a separate buffer that holds any other bytes.
    pub fn push_other(&mut self, bytes: Bytes) {
        self.push(bytes.len(), SegmentSource::Separate { bytes, is_block: false });
    }

    fn push(&mut self, len: usize, source: SegmentSource) {
        self.segments.push(Segment { start: self.len, len, source });
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

    /// Returns the bytes of each segment, in the order of the message. `control` is the control buffer.
    pub fn pieces<'a>(&'a self, control: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.segments.iter().map(|segment| segment.bytes(control))
    }

    /// Returns each segment as a shared buffer, in the order of the message, and whether it was added by
    /// [`push_block`](Segments::push_block). `control` is the control buffer.
    pub fn shared_pieces<'a>(&'a self, control: &'a Bytes) -> impl Iterator<Item = (Bytes, bool)> + 'a {
        self.segments.iter().map(|segment| match &segment.source {
            SegmentSource::Separate { bytes, is_block } => (bytes.clone(), *is_block),
            SegmentSource::Control(_) => (control.slice_ref(segment.bytes(control)), false),
        })
    }

    /// Returns the message in one buffer. `None` if memory is exhausted.
    fn joined(&self, control: &[u8]) -> Option<&Bytes> {
        if self.joined.get().is_none() {
            let mut joined = Vec::new();
            joined.try_reserve_exact(self.len).ok()?;
            self.pieces(control).for_each(|piece| joined.extend_from_slice(piece));
            // If another thread was faster, its copy has the same bytes.
            let _ = self.joined.set(joined.into());
        }
        self.joined.get()
    }
}

impl Segment {
    fn bytes<'a>(&'a self, control: &'a [u8]) -> &'a [u8] {
        match &self.source {
            SegmentSource::Separate { bytes, .. } => bytes,
            SegmentSource::Control(at) => control.get(*at..*at + self.len).unwrap_or_default(),
        }
    }
}

impl RemainingSegments<'_> {
    /// Returns whether `owner` is the control buffer, or the message is not segmented.
    pub(super) fn is_control(&self, owner: &Bytes) -> bool {
        self.list.is_none_or(|(control, _)| std::ptr::eq(control, owner))
    }
}

impl<'a> Decoder<'a> {
    /// Returns this decoder for a segmented message. The shared buffer from which the decoder was created is
    /// the control buffer. The memory limit is not adapted to the length of the message; see
    /// [`set_limits`](Decoder::set_limits).
    ///
    /// Has no effect on a decoder without a shared buffer.
    #[must_use]
    pub fn with_segments(mut self, segments: &'a Segments) -> Decoder<'a> {
        if let Some((control, 0)) = self.owner {
            self.remaining_segments.list = Some((control, segments));
            self.seek_from_start(self.position);
        }
        self
    }

    #[inline(always)]
    pub(super) fn is_segmented(&self) -> bool {
        self.remaining_segments.list.is_some()
    }

    /// Moves to an offset from the alignment origin, or to the end of the data if that comes first.
    #[cold]
    pub(super) fn seek_from_start(&mut self, position: usize) {
        let Some((_, segments)) = self.remaining_segments.list else { return };
        (self.remaining_segments.next, self.remaining_segments.bytes) = (0, segments.len);
        (self.data, self.position, self.base, self.visible_end, self.fragments.phase_offset) =
            (&[], 0, 0, 0, 0);
        self.seek(position);
    }

    /// Advances to an offset that is not less than the current one, and enters its segment.
    fn seek(&mut self, position: usize) {
        while position - self.base >= self.data.len() && self.enter_next_segment() {}
        self.position = (position - self.base).min(self.data.len());
    }

    /// Enters the next segment if the decoder is at the end of the current one.
    pub(super) fn leave_segment(&mut self) {
        if self.is_segmented() {
            self.seek(self.position());
        }
    }

    /// Moves to the start of the next segment. Returns `false` if there is none.
    fn enter_next_segment(&mut self) -> bool {
        let Some((control, segments)) = self.remaining_segments.list else { return false };
        let Some(segment) = segments.segments.get(self.remaining_segments.next) else { return false };
        self.data = segment.bytes(control);
        self.owner = Some(match &segment.source {
            SegmentSource::Separate { bytes, .. } => (bytes, 0),
            SegmentSource::Control(at) => (control, *at),
        });
        self.remaining_segments.next += 1;
        self.remaining_segments.bytes -= segment.len;
        (self.base, self.fragments.phase_offset) = (segment.start, segment.start);
        (self.position, self.visible_end) = (0, self.data.len());
        true
    }

    /// Continues in a copy of the whole message. Does nothing if the message is not segmented.
    pub(super) fn join(&mut self) -> Result<(), DecodeError> {
        let Some((control, segments)) = self.remaining_segments.list else { return Ok(()) };
        let position = self.position();
        let Some(joined) = segments.joined(control) else {
            return Err(self.error(DecodeErrorKind::AllocLimit));
        };
        (self.data, self.position, self.base, self.visible_end) = (joined, position, 0, joined.len());
        (self.remaining_segments, self.fragments.phase_offset) = (RemainingSegments::default(), 0);
        self.owner = Some((joined, 0));
        // The pass that recorded sequences to rewrite joined here too, and recorded none after this point.
        self.rewrites = None;
        Ok(())
    }

    fn is_in_segment(&self, len: usize) -> bool {
        len <= self.data.len() - self.position
    }

    /// Makes the next `n` bytes contiguous, by entering the next segment or by copying the message.
    fn make_contiguous(&mut self, n: usize) -> Result<(), DecodeError> {
        if n > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        self.seek(self.position());
        if self.is_in_segment(n) { Ok(()) } else { self.join() }
    }

    /// Skips `pad` bytes of padding. If the current chunk ends first, aligns to `n` in the next chunk.
    #[cold]
    pub(super) fn align_across_boundary(&mut self, pad: usize, n: usize) -> Result<(), DecodeError> {
        if chunked::next_chunk(self, n)? {
            return self.align(n);
        }
        if pad > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        self.seek(self.position() + pad);
        Ok(())
    }

    #[cold]
    pub(super) fn take_across_segments(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        if chunked::next_chunk(self, 1)? {
            return self.take(n);
        }
        self.make_contiguous(n)?;
        let bytes = self.rest().get(..n).ok_or(self.error(DecodeErrorKind::EndOfData))?;
        self.position += n;
        Ok(bytes)
    }

    /// Reads `N` bytes, aligned to `N`.
    #[cold]
    pub(super) fn read_across_segments<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let pad = padding(self.position(), N);
        if pad + N > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        self.seek(self.position() + pad);
        self.take(N)?.first_chunk().copied().ok_or_else(|| self.error(DecodeErrorKind::EndOfData))
    }

    #[cold]
    pub(super) fn read_fixed_across_segments<T: FixedLayout>(&mut self) -> Result<T, DecodeError> {
        self.make_contiguous(T::LAYOUT.size(self.position()))?;
        self.read_fixed()
    }

    #[cold]
    pub(super) fn read_run_across_segments<T: FixedLayout>(
        &mut self,
        n: usize,
        out: &mut Vec<T>,
    ) -> Result<(), DecodeError> {
        let start = self.position();
        let layout = <T as FixedLayout>::LAYOUT;
        let run = layout.run_size(start, n);
        if run > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        // If the current segment ends with the padding, all elements are in the next segment.
        let pad = layout.run_padding(start).unwrap_or(0);
        self.seek(start + pad);
        self.make_contiguous(run - pad)?;
        self.read_fixed_into(n, out).map_err(|error| match error.kind {
            DecodeErrorKind::InvalidEnum => DecodeError::new(error.kind, start),
            _ => error,
        })
    }

    /// Reads `n` elements as a view if they are all in one segment. Otherwise reads nothing.
    #[cold]
    pub(super) fn view_in_segment<T: AnyBitPattern>(
        &mut self,
        n: usize,
    ) -> Result<Option<Bytes>, DecodeError> {
        let Some(pad) = <T as FixedLayout>::LAYOUT.run_padding(self.position()) else { return Ok(None) };
        if self.order() != ByteOrder::NATIVE && size_of::<T>() > 1 {
            return Ok(None);
        }
        let size = n.saturating_mul(size_of::<T>());
        if size.saturating_add(pad) > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        let before = self.bookmark();
        self.seek(self.position() + pad);
        if let Some((owner, data_start)) = self.owner
            && self.is_in_segment(size)
        {
            let first = data_start + self.position;
            if <[T] as zerocopy::FromBytes>::ref_from_bytes(self.take(size)?).is_ok() {
                return Ok(Some(owner.slice(first..first + size)));
            }
        }
        self.return_to(before);
        Ok(None)
    }
}
