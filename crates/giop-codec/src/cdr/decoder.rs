//! [`Decoder`]: conversion of bytes to values, within the data and within limits of memory and depth.

use bytes::Bytes;

use super::chunked;
use super::context::Context;
use super::layout::{AnyBitPattern, FixedLayout, padding};
use super::rewrite::Rewrites;
use super::segments::RemainingSegments;
use super::text::CodeSets;
use super::value_state::ReadState;
use crate::{ByteOrder, DecodeError, DecodeErrorKind, Version};

/// The limits of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Maximum nesting of constructed types and encapsulations. The default is [`MAX_DEPTH`], 64.
    pub depth: u16,
    /// Maximum number of bytes that decoded values may allocate: by default 8 per data byte, at least 16 MiB.
    pub alloc: usize,
}

impl DecodeLimits {
    /// Returns the default limits for `len` bytes of data.
    pub const fn for_data(len: usize) -> DecodeLimits {
        const MIN_ALLOC: usize = 16 << 20;
        let alloc = len.saturating_mul(8);
        DecodeLimits { depth: MAX_DEPTH, alloc: if alloc > MIN_ALLOC { alloc } else { MIN_ALLOC } }
    }
}

/// The default limit for the nesting of values, types, encapsulations and anys. It bounds the stack usage of
/// all code that reads, writes, checks, compares or prints them.
pub const MAX_DEPTH: u16 = 64;

/// Decodes values from CDR ("CDR Transfer Syntax").
///
/// A decoder borrows the data. If it was created by [`from_bytes`](Decoder::from_bytes), large values are
/// views of that buffer instead of copies. A clone is independent and has the same remaining limits.
///
/// ```
/// use giop_codec::cdr::{CdrDecode, Decoder};
/// use giop_codec::{ByteOrder, DecodeErrorKind, Version};
///
/// let mut d = Decoder::new(b"\0\0\0\x03hi\0\0\x01\x02", ByteOrder::Big, Version::V1_2);
/// assert_eq!(String::decode(&mut d)?, "hi");
/// assert_eq!(d.read_u16()?, 0x0102);
/// assert_eq!(d.read_u8().unwrap_err().kind, DecodeErrorKind::EndOfData);
/// # Ok::<(), giop_codec::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    /// The bytes being read: all the data or, if it is segmented, the current segment. In a chunked value,
    /// they end with the current chunk.
    pub(super) data: &'a [u8],
    /// Index of the next byte in `data`.
    pub(super) position: usize,
    /// Offset of the first byte of `data` from the alignment origin.
    pub(super) base: usize,
    /// Offset of the alignment origin from that of the outermost stream: 0 outside of encapsulations.
    origin: usize,
    pub(super) remaining_segments: RemainingSegments<'a>,
    /// Index of the next fragment boundary in `data`, or the length of `data` if there is no boundary. The
    /// fast path reads values only from the bytes before it.
    pub(super) visible_end: usize,
    pub(super) fragments: RemainingFragments<'a>,
    /// Whether the byte order of the data differs from that of this machine.
    pub(super) is_foreign_order: bool,
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
    depth_left: u16,
    alloc_left: usize,
    /// The shared buffer that contains `data`, and the index at which `data` begins in it.
    pub(super) owner: Option<(&'a Bytes, usize)>,
    pub(super) context: Option<&'a dyn Context>,
    /// The list of sequences whose first element must be rewritten, or has been. `None` if the message cannot
    /// be rewritten, and in an encapsulation, because its offsets differ.
    pub(crate) rewrites: Option<&'a Rewrites>,
    /// The state of value types. `None` before the first instance of a value type.
    pub(crate) values: Option<Box<ReadState<'a>>>,
}

/// The GIOP 1.1 fragments after the current position.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RemainingFragments<'a> {
    pub(super) starts: &'a [u32],
    /// The number to add to an index into `data` to get the phase there. Segmented data uses it too.
    pub(super) phase_offset: usize,
}

macro_rules! read_methods {
    ($($read:ident $ty:ty, $size:literal;)*) => {$(
        #[doc = concat!("Reads a `", stringify!($ty), "`, aligned to ", stringify!($size), ".")]
        ///
        /// # Errors
        /// [`EndOfData`](DecodeErrorKind::EndOfData).
        #[inline]
        pub fn $read(&mut self) -> Result<$ty, DecodeError> {
            let value = <$ty>::from_ne_bytes(self.read_aligned::<$size>()?);
            Ok(if self.is_foreign_order { value.swap_bytes() } else { value })
        }
    )*};
}

impl<'a> Decoder<'a> {
    /// Creates a decoder with `data[0]` as the alignment origin, the default code sets of the version
    /// ([`CodeSets::default_for`]) and the default limits for the data ([`DecodeLimits::for_data`]).
    pub fn new(data: &'a [u8], order: ByteOrder, version: Version) -> Decoder<'a> {
        let limits = DecodeLimits::for_data(data.len());
        Decoder {
            data,
            position: 0,
            base: 0,
            origin: 0,
            remaining_segments: RemainingSegments::default(),
            visible_end: data.len(),
            fragments: RemainingFragments::default(),
            is_foreign_order: order.is_foreign(),
            order,
            version,
            code_sets: CodeSets::default_for(version),
            depth_left: limits.depth,
            alloc_left: limits.alloc,
            owner: None,
            context: None,
            rewrites: None,
            values: None,
        }
    }

    /// Creates a decoder of a shared buffer, of which [`Bytes`] and [`Seq`](super::Seq)s can be views.
    pub fn from_bytes(owner: &'a Bytes, order: ByteOrder, version: Version) -> Decoder<'a> {
        Decoder { owner: Some((owner, 0)), ..Decoder::new(owner, order, version) }
    }

    /// Returns this decoder, moved to offset `position` from the alignment origin, but at most to the end.
    pub fn at(mut self, position: usize) -> Decoder<'a> {
        if self.is_segmented() {
            self.seek_from_start(position);
        } else {
            self.position = position.min(self.data.len());
        }
        self
    }

    /// Sets the transmission code sets for strings and wide strings.
    pub fn set_code_sets(&mut self, code_sets: CodeSets) {
        self.code_sets = code_sets;
    }

    /// Returns the transmission code sets in use.
    #[inline]
    pub fn code_sets(&self) -> CodeSets {
        self.code_sets
    }

    /// Sets the limits for the data that is decoded from now on.
    pub fn set_limits(&mut self, limits: DecodeLimits) {
        self.depth_left = limits.depth;
        self.alloc_left = limits.alloc;
    }

    /// Returns the remaining limits.
    pub fn limits(&self) -> DecodeLimits {
        DecodeLimits { depth: self.depth_left, alloc: self.alloc_left }
    }

    /// Returns the byte order of the data.
    #[inline]
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Returns the GIOP version of the data, which is 1.2 inside encapsulations.
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the offset of the next byte from the alignment origin.
    #[inline]
    pub fn position(&self) -> usize {
        self.position + self.base
    }

    /// Returns the offset of the next byte from the alignment origin of the outermost stream, even inside
    /// encapsulations. Indirections, which refer to earlier values, are differences of these offsets. The
    /// encoder's counterpart is [`Encoder::len`](super::Encoder::len).
    #[inline]
    pub fn stream_position(&self) -> usize {
        self.origin + self.position()
    }

    /// Returns the number of bytes left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.data.len() - self.position + self.remaining_segments.bytes
    }

    /// Returns the remaining bytes, or those of the current segment if the data is segmented.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.data.get(self.position..).unwrap_or_default()
    }

    /// Returns an error of this kind at the current position.
    #[cold]
    pub fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(kind, self.position())
    }

    /// Skips padding of any content up to the next multiple of `n`, which must be 1, 2, 4 or 8.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData) if the data ends inside the padding.
    #[inline]
    pub fn align(&mut self, n: usize) -> Result<(), DecodeError> {
        let pad = padding(self.position + self.fragments.phase_offset, n);
        if pad > self.data.len() - self.position {
            return self.align_across_boundary(pad, n);
        }
        self.position += pad;
        Ok(())
    }

    /// Reads `N` bytes, aligned to `N`.
    #[inline(always)]
    fn read_aligned<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let start = self.position + padding(self.position + self.fragments.phase_offset, N);
        match self.data.get(start..self.visible_end).and_then(|rest| rest.first_chunk::<N>()) {
            Some(bytes) => {
                self.position = start + N;
                Ok(*bytes)
            }
            None => self.read_after_boundary::<N>(),
        }
    }

    #[cold]
    fn read_after_boundary<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        if self.is_segmented() {
            return self.read_across_segments::<N>();
        }
        if self.next_fragment() || chunked::next_chunk(self, N)? {
            self.read_aligned::<N>()
        } else {
            Err(self.error(DecodeErrorKind::EndOfData))
        }
    }

    /// Returns whether the byte order of the data differs from that of this machine.
    pub(crate) fn is_foreign_order(&self) -> bool {
        self.is_foreign_order
    }

    /// Returns the offset of the next byte modulo 8, for alignment.
    #[inline(always)]
    pub(crate) fn phase(&self) -> usize {
        (self.position + self.fragments.phase_offset) % 8
    }

    read_methods! {
        read_u8 u8, 1; read_u16 u16, 2; read_u32 u32, 4; read_u64 u64, 8;
        read_i8 i8, 1; read_i16 i16, 2; read_i32 i32, 4; read_i64 i64, 8;
    }

    /// Reads an `f32`, aligned to 4.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData).
    #[inline]
    pub fn read_f32(&mut self) -> Result<f32, DecodeError> {
        self.read_u32().map(f32::from_bits)
    }

    /// Reads an `f64`, aligned to 8.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData).
    #[inline]
    pub fn read_f64(&mut self) -> Result<f64, DecodeError> {
        self.read_u64().map(f64::from_bits)
    }

    /// Reads a boolean. As in other ORBs, every byte except 0 means true.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData).
    #[inline]
    pub fn read_bool(&mut self) -> Result<bool, DecodeError> {
        self.read_u8().map(|byte| byte != 0)
    }

    /// Reads the ordinal of an enum with `count` enumerators.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData), [`InvalidEnum`](DecodeErrorKind::InvalidEnum).
    #[inline]
    pub fn read_enum(&mut self, count: u32) -> Result<u32, DecodeError> {
        let ordinal = self.read_u32()?;
        if ordinal < count {
            Ok(ordinal)
        } else {
            Err(DecodeError::new(DecodeErrorKind::InvalidEnum, self.position() - 4))
        }
    }

    /// Reads a count of elements that take at least `min_element_size` bytes each. A size of 0 counts as 1.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData), [`LengthBeyondData`](DecodeErrorKind::LengthBeyondData) if
    /// the rest of the data is too short for the elements.
    #[inline]
    pub fn read_len(&mut self, min_element_size: usize) -> Result<usize, DecodeError> {
        let count = self.read_u32()? as usize;
        match count.checked_mul(min_element_size.max(1)) {
            Some(bytes) if bytes <= self.remaining() => Ok(count),
            bytes => self.len_across_fragments(count, bytes),
        }
    }

    /// Reads the next `n` bytes without alignment.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData).
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        match self.rest().get(..n) {
            Some(bytes) => {
                self.position += n;
                if self.has_fragment_boundaries() {
                    self.pass_boundaries();
                }
                Ok(bytes)
            }
            None => self.take_across_segments(n),
        }
    }

    /// Reads the next `n` bytes without alignment, as a view of the shared buffer or, without one, as a copy.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData), [`AllocLimit`](DecodeErrorKind::AllocLimit).
    pub fn take_shared(&mut self, n: usize) -> Result<Bytes, DecodeError> {
        let bytes = self.take(n)?;
        self.share(self.position - bytes.len(), bytes)
    }

    /// Returns `bytes`, which begin at index `start` of `data`, as a view of the shared buffer or as a copy.
    pub(crate) fn share(&mut self, start: usize, bytes: &[u8]) -> Result<Bytes, DecodeError> {
        match self.owner {
            // An empty view would keep the buffer alive needlessly.
            _ if bytes.is_empty() => Ok(Bytes::new()),
            Some((owner, data_start)) => {
                Ok(owner.slice(data_start + start..data_start + start + bytes.len()))
            }
            None => {
                self.charge(bytes.len())?;
                Ok(Bytes::copy_from_slice(bytes))
            }
        }
    }

    /// Deducts from the memory limit the number of bytes that a decoded value is about to allocate.
    ///
    /// # Errors
    /// [`AllocLimit`](DecodeErrorKind::AllocLimit).
    #[inline]
    pub fn charge(&mut self, bytes: usize) -> Result<(), DecodeError> {
        let Some(left) = self.alloc_left.checked_sub(bytes) else {
            return Err(self.error(DecodeErrorKind::AllocLimit));
        };
        self.alloc_left = left;
        Ok(())
    }

    /// Creates an empty vector with capacity for `n` elements, and deducts its memory from the limit.
    /// Elements without a size count as one byte each, so that the limit also bounds their number.
    ///
    /// # Errors
    /// [`AllocLimit`](DecodeErrorKind::AllocLimit) if the limit is exceeded or the allocator fails.
    pub fn new_vec<T>(&mut self, n: usize) -> Result<Vec<T>, DecodeError> {
        self.charge(n.saturating_mul(size_of::<T>().max(1)))?;
        let mut out = Vec::new();
        match out.try_reserve_exact(n) {
            Ok(()) => Ok(out),
            Err(_) => Err(self.error(DecodeErrorKind::AllocLimit)),
        }
    }

    /// Reads `n` elements as a view of the message. Returns `None`, without reading, if that is impossible.
    #[inline]
    pub(super) fn view<T: AnyBitPattern>(&mut self, n: usize) -> Result<Option<Bytes>, DecodeError> {
        if n == 0 {
            return Ok(Some(Bytes::new()));
        }
        if self.is_segmented() {
            return self.view_in_segment::<T>(n);
        }
        // Single bytes are the same in both orders.
        if (!self.is_foreign_order || size_of::<T>() == 1)
            && let Some((owner, data_start)) = self.owner
            && let Some(pad) = <T as FixedLayout>::LAYOUT.run_padding(self.phase())
            && self.has_contiguous(n.saturating_mul(size_of::<T>()).saturating_add(pad))
        {
            let (start, visible_end, fragments) = (self.position, self.visible_end, self.fragments);
            let bytes = self.take(n.saturating_mul(size_of::<T>()).saturating_add(pad))?;
            let bytes = bytes.get(pad..).unwrap_or_default();
            if <[T] as zerocopy::FromBytes>::ref_from_bytes(bytes).is_ok() {
                let first = data_start + start + pad;
                return Ok(Some(owner.slice(first..first + bytes.len())));
            }
            (self.position, self.visible_end, self.fragments) = (start, visible_end, fragments);
        }
        Ok(None)
    }

    /// Reads a `sequence<octet>` that holds an encapsulation ("Encapsulation"), and returns the decoder of
    /// its contents. That decoder is positioned after the byte order flag; the flag itself is at the
    /// alignment origin. Its version is 1.2 and its wide text is UTF-16, independent of this decoder. Its
    /// depth limit is one less than this decoder's, and its memory limit is deducted from this decoder's.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData), [`LengthBeyondData`](DecodeErrorKind::LengthBeyondData),
    /// [`DepthLimit`](DecodeErrorKind::DepthLimit).
    pub fn encapsulation(&mut self) -> Result<Decoder<'a>, DecodeError> {
        let len = self.read_len(1)?;
        let Some(depth) = self.depth_left.checked_sub(1) else {
            return Err(self.error(DecodeErrorKind::DepthLimit));
        };
        let data = self.take(len)?;
        let Some(&flag) = data.first() else {
            return Err(self.error(DecodeErrorKind::EndOfData));
        };
        let start = self.position - len;
        let origin = self.stream_position() - len;
        // Deducted, so that all encapsulations of a message together allocate at most what the message may.
        let alloc = self.alloc_left.min(len.saturating_mul(8));
        self.alloc_left -= alloc;
        Ok(Decoder {
            position: 1,
            origin,
            code_sets: self.code_sets.in_encapsulation(),
            depth_left: depth,
            alloc_left: alloc,
            owner: self.owner.map(|(owner, data_start)| (owner, data_start + start)),
            context: self.context,
            ..Decoder::new(data, ByteOrder::from_flag(flag), Version::V1_2)
        })
    }

    /// Adds to the memory limit what the decoder of an [`encapsulation`](Self::encapsulation) did not use.
    pub(crate) fn reclaim_memory(&mut self, encapsulation: &Decoder<'_>) {
        self.alloc_left += encapsulation.alloc_left;
    }

    /// Runs `f` with the nesting depth increased by one.
    ///
    /// # Errors
    /// [`DepthLimit`](DecodeErrorKind::DepthLimit) if values are nested too deeply, or the error of `f`.
    #[inline]
    pub fn nested<R>(
        &mut self,
        f: impl FnOnce(&mut Self) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        self.descend()?;
        let result = f(self);
        self.ascend();
        result
    }

    /// Increases the nesting depth by one until [`ascend`](Self::ascend). Unlike [`nested`](Self::nested),
    /// adds no stack frame while the nested value is decoded.
    #[inline]
    pub(crate) fn descend(&mut self) -> Result<(), DecodeError> {
        let Some(depth) = self.depth_left.checked_sub(1) else {
            return Err(self.error(DecodeErrorKind::DepthLimit));
        };
        self.depth_left = depth;
        Ok(())
    }

    #[inline]
    pub(crate) fn ascend(&mut self) {
        self.depth_left += 1;
    }
}
