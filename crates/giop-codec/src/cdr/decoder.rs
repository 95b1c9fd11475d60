//! [`Decoder`]: octets to values, every read checked against the data, the memory limit and the depth limit.

use bytes::Bytes;

use super::context::Context;
use super::elements::Viewed;
use super::layout::{FixedLayout, padding};
use super::pieces::Pieces;
use super::rewrite::Rewrites;
use super::segments::Split;
use super::seq::{Element, Seq};
use super::text::CodeSets;
use crate::value::Reading;
use crate::{ByteOrder, DecodeError, DecodeErrorKind, Version};

/// What a decoder grants to data from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Levels of nesting of constructed types and encapsulations. Default [`MAX_DEPTH`], 64.
    pub depth: u16,
    /// Octets that the decoded values may allocate. Default: the greater of 16 MiB and 8 times the data.
    pub alloc: usize,
}

impl DecodeLimits {
    /// The default limits for `len` octets of data.
    pub const fn for_data(len: usize) -> DecodeLimits {
        let alloc = len.saturating_mul(8);
        DecodeLimits { depth: MAX_DEPTH, alloc: if alloc > MIN_ALLOC { alloc } else { MIN_ALLOC } }
    }
}

const MIN_ALLOC: usize = 16 << 20;

/// Levels in which values, types and what is in encapsulations and anys nest, by default: all that reads, writes, checks, compares or prints
/// them counts its levels by this one limit, so that what it takes of the stack has a bound.
pub const MAX_DEPTH: u16 = 64;

/// Decodes values from CDR ("CDR Transfer Syntax").
///
/// Borrows the data. When it was made [`from_bytes`](Decoder::from_bytes), large values are views of that
/// buffer instead of copies. A clone reads on independently, with the same remaining limits.
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
    /// The data, or the segment of it that is read: see `segments`. Its first octet is at offset `base` from the alignment origin.
    pub(super) data: &'a [u8],
    /// Of the next octet in `data`.
    pub(super) position: usize,
    pub(super) base: usize,
    /// Of the alignment origin in the outermost stream: 0 but in encapsulations.
    origin: usize,
    pub(super) split: Split<'a>,
    /// Where the octets end that values are read from: the next joint of a message in pieces, else the end.
    pub(super) seen: usize,
    pub(super) pieces: Pieces<'a>,
    pub(super) swap: bool,
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
    depth: u16,
    alloc: usize,
    /// The buffer that `data` lies in, from the given index on.
    pub(super) owner: Option<(&'a Bytes, usize)>,
    pub(super) context: Option<&'a dyn Context>,
    /// What may be rewritten in `data`; nothing in an encapsulation, whose offsets are others.
    pub(crate) rewrites: Option<&'a Rewrites>,
    /// The values that were read; `None` before the first one.
    pub(crate) values: Option<Box<Reading<'a>>>,
}

macro_rules! read_methods {
    ($($read:ident $ty:ty, $size:literal;)*) => {$(
        #[doc = concat!("Reads a `", stringify!($ty), "`, aligned to ", stringify!($size), ".")]
        ///
        /// # Errors
        /// [`EndOfData`](DecodeErrorKind::EndOfData).
        #[inline]
        pub fn $read(&mut self) -> Result<$ty, DecodeError> {
            let octets = self.octets::<$size>()?;
            let value = <$ty>::from_ne_bytes(octets);
            Ok(if self.swap { value.swap_bytes() } else { value })
        }
    )*};
}

impl<'a> Decoder<'a> {
    /// A decoder whose offset 0 is `data[0]`. Its code sets are those of a connection without negotiation, see
    /// [`CodeSets::default_for`]; its limits are [`DecodeLimits::for_data`].
    pub fn new(data: &'a [u8], order: ByteOrder, version: Version) -> Decoder<'a> {
        let limits = DecodeLimits::for_data(data.len());
        Decoder {
            data,
            position: 0,
            base: 0,
            origin: 0,
            split: Split::default(),
            seen: data.len(),
            pieces: Pieces::default(),
            swap: order.is_foreign(),
            order,
            version,
            code_sets: CodeSets::default_for(version),
            depth: limits.depth,
            alloc: limits.alloc,
            owner: None,
            context: None,
            rewrites: None,
            values: None,
        }
    }

    /// A decoder over a shared buffer, of which decoded [`Bytes`] and [`Seq`]s are views.
    pub fn from_bytes(owner: &'a Bytes, order: ByteOrder, version: Version) -> Decoder<'a> {
        Decoder { owner: Some((owner, 0)), ..Decoder::new(owner, order, version) }
    }

    /// The same decoder, continuing at offset `position` from the alignment origin; a position beyond the data
    /// is at its end.
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

    /// The transmission code sets in use.
    #[inline]
    pub fn code_sets(&self) -> CodeSets {
        self.code_sets
    }

    /// Sets what the data may use from here on.
    pub fn set_limits(&mut self, limits: DecodeLimits) {
        self.depth = limits.depth;
        self.alloc = limits.alloc;
    }

    /// What is left of the limits.
    pub fn limits(&self) -> DecodeLimits {
        DecodeLimits { depth: self.depth, alloc: self.alloc }
    }

    /// The byte order read.
    #[inline]
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// The GIOP version read; 1.2 inside encapsulations.
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Offset of the next octet from the alignment origin.
    #[inline]
    pub fn position(&self) -> usize {
        self.position + self.base
    }

    /// Offset of the next octet in the outermost stream, through all encapsulations that it is in: what indirections count
    /// in. The counterpart of [`Encoder::len`](super::Encoder::len), of which differences are such distances too.
    #[inline]
    pub fn stream_position(&self) -> usize {
        self.origin + self.position()
    }

    /// Octets left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.data.len() - self.position + self.split.left
    }

    /// The octets left, as they are; of data in segments, those left in the one that is read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.data.get(self.position..).unwrap_or_default()
    }

    /// An error of this kind at the current position.
    #[cold]
    pub fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(kind, self.position())
    }

    /// Skips padding up to the next multiple of `n`: 1, 2, 4 or 8. What the padding contains is not looked at.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData) if the data ends before it.
    #[inline]
    pub fn align(&mut self, n: usize) -> Result<(), DecodeError> {
        let pad = padding(self.position + self.pieces.shift, n);
        if pad > self.data.len() - self.position {
            return self.skip_behind(pad, n);
        }
        self.position += pad;
        Ok(())
    }

    #[inline(always)]
    fn octets<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let start = self.position + padding(self.position + self.pieces.shift, N);
        match self.data.get(start..self.seen).and_then(|rest| rest.first_chunk::<N>()) {
            Some(octets) => {
                self.position = start + N;
                Ok(*octets)
            }
            None => self.octets_behind::<N>(),
        }
    }

    /// The octets that did not fit before the joint, or before the end.
    #[cold]
    fn octets_behind<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        if self.is_segmented() {
            return self.octets_over_joint::<N>();
        }
        if self.next_piece() || self.next_chunk(N)? {
            self.octets::<N>()
        } else {
            Err(self.error(DecodeErrorKind::EndOfData))
        }
    }

    /// Whether numbers are swapped.
    pub(crate) fn is_foreign(&self) -> bool {
        self.swap
    }

    /// The place modulo 8 of the next octet, for alignment.
    #[inline(always)]
    pub(crate) fn phase(&self) -> usize {
        (self.position + self.pieces.shift) % 8
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

    /// Reads a boolean; every octet but 0 is true, as other ORBs read it.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData).
    #[inline]
    pub fn read_bool(&mut self) -> Result<bool, DecodeError> {
        self.read_u8().map(|octet| octet != 0)
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

    /// Reads a count of elements that take at least `min_element_size` octets each (0 counts as 1).
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData), or [`LengthBeyondData`](DecodeErrorKind::LengthBeyondData) when
    /// so many elements cannot follow.
    #[inline]
    pub fn read_len(&mut self, min_element_size: usize) -> Result<usize, DecodeError> {
        let count = self.read_u32()? as usize;
        match count.checked_mul(min_element_size.max(1)) {
            Some(octets) if octets <= self.remaining() => Ok(count),
            octets => self.len_over_joints(count, octets),
        }
    }

    /// The next `n` octets, unaligned.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData).
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        match self.rest().get(..n) {
            Some(octets) => {
                self.position += n;
                if self.is_piecewise() {
                    self.cross_joints();
                }
                Ok(octets)
            }
            None => self.take_over_joint(n),
        }
    }

    /// The next `n` octets, unaligned, as a view of the shared buffer; a copy where there is none.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData), [`AllocLimit`](DecodeErrorKind::AllocLimit).
    pub fn take_shared(&mut self, n: usize) -> Result<Bytes, DecodeError> {
        let octets = self.take(n)?;
        self.share(self.position - octets.len(), octets)
    }

    /// `octets`, which begin at the index `start` of what is read, as a view of the shared buffer; a copy where there is none.
    pub(crate) fn share(&mut self, start: usize, octets: &[u8]) -> Result<Bytes, DecodeError> {
        match self.owner {
            // An empty view would keep the buffer alive for nothing.
            _ if octets.is_empty() => Ok(Bytes::new()),
            Some((owner, origin)) => Ok(owner.slice(origin + start..origin + start + octets.len())),
            None => {
                self.charge(octets.len())?;
                Ok(Bytes::copy_from_slice(octets))
            }
        }
    }

    /// Accounts for `octets` of memory that a decoded value is about to allocate.
    ///
    /// # Errors
    /// [`AllocLimit`](DecodeErrorKind::AllocLimit).
    #[inline]
    pub fn charge(&mut self, octets: usize) -> Result<(), DecodeError> {
        match self.alloc.checked_sub(octets) {
            Some(left) => {
                self.alloc = left;
                Ok(())
            }
            None => Err(self.error(DecodeErrorKind::AllocLimit)),
        }
    }

    /// An empty vector with room for `n` elements, charged to the memory limit. Elements without octets count one each: they
    /// cost time, and sequences of them in sequences would cost the square of it.
    ///
    /// # Errors
    /// [`AllocLimit`](DecodeErrorKind::AllocLimit), also when the allocator refuses.
    pub fn new_vec<T>(&mut self, n: usize) -> Result<Vec<T>, DecodeError> {
        self.charge(n.saturating_mul(size_of::<T>().max(1)))?;
        let mut out = Vec::new();
        match out.try_reserve_exact(n) {
            Ok(()) => Ok(out),
            Err(_) => Err(self.error(DecodeErrorKind::AllocLimit)),
        }
    }

    /// Reads `n` elements as a [`Seq`], without a count: a view where byte order and memory alignment allow,
    /// else one pass into a new vector.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData), [`AllocLimit`](DecodeErrorKind::AllocLimit).
    pub fn read_seq<T: Element>(&mut self, n: usize) -> Result<Seq<T>, DecodeError> {
        match self.view::<T>(n)? {
            Some(octets) => Ok(Seq::from_checked(octets)),
            None => self.read_fixed_vec(n).map(Seq::from),
        }
    }

    /// The memory of `n` elements where it is in the message; `None`, and nothing is read, where they must be decoded.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData).
    #[inline]
    pub(super) fn view<T: Viewed>(&mut self, n: usize) -> Result<Option<Bytes>, DecodeError> {
        if n == 0 {
            return Ok(Some(Bytes::new()));
        }
        if self.is_segmented() {
            return self.view_in_segment::<T>(n);
        }
        // Octets are the same in both orders.
        if (!self.swap || size_of::<T>() == 1)
            && let Some((owner, origin)) = self.owner
            && let Some(pad) = <T as FixedLayout>::LAYOUT.lead(self.phase())
            && self.in_piece(n.saturating_mul(size_of::<T>()).saturating_add(pad))
        {
            let (start, seen, pieces) = (self.position, self.seen, self.pieces);
            let octets = self.take(n.saturating_mul(size_of::<T>()).saturating_add(pad))?;
            let octets = octets.get(pad..).unwrap_or_default();
            if <[T] as zerocopy::FromBytes>::ref_from_bytes(octets).is_ok() {
                let first = origin + start + pad;
                return Ok(Some(owner.slice(first..first + octets.len())));
            }
            (self.position, self.seen, self.pieces) = (start, seen, pieces);
        }
        Ok(None)
    }

    /// Reads a `sequence<octet>` that holds an encapsulation ("Encapsulation"): the decoder of its contents,
    /// behind the octet of its byte order, which is its alignment origin. Inside, the version is 1.2 and wide
    /// text is UTF-16, whatever holds outside. Its values draw on this decoder's limits.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData), [`LengthBeyondData`](DecodeErrorKind::LengthBeyondData),
    /// [`DepthLimit`](DecodeErrorKind::DepthLimit).
    pub fn encapsulation(&mut self) -> Result<Decoder<'a>, DecodeError> {
        let len = self.read_len(1)?;
        let Some(depth) = self.depth.checked_sub(1) else {
            return Err(self.error(DecodeErrorKind::DepthLimit));
        };
        let data = self.take(len)?;
        let Some(&flag) = data.first() else {
            return Err(self.error(DecodeErrorKind::EndOfData));
        };
        let start = self.position - len;
        let origin = self.stream_position() - len;
        // All encapsulations of a message together get no more than the message itself would.
        let alloc = self.alloc.min(len.saturating_mul(8));
        self.alloc -= alloc;
        let order = ByteOrder::from_flag(flag);
        Ok(Decoder {
            data,
            position: 1,
            base: 0,
            origin,
            split: Split::default(),
            seen: data.len(),
            pieces: Pieces::default(),
            swap: order.is_foreign(),
            order,
            version: Version::V1_2,
            code_sets: self.code_sets.in_encapsulation(),
            depth,
            alloc,
            owner: self.owner.map(|(owner, origin)| (owner, origin + start)),
            context: self.context,
            rewrites: None,
            values: None,
        })
    }

    /// Takes back what an [`encapsulation`](Self::encapsulation) that was read to its end did not use of the memory that it got.
    pub(crate) fn take_back(&mut self, encapsulation: &Decoder<'_>) {
        self.alloc += encapsulation.alloc;
    }

    /// Runs `f` one level of nesting deeper.
    ///
    /// # Errors
    /// [`DepthLimit`](DecodeErrorKind::DepthLimit), or what `f` returns.
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

    /// Goes one level of nesting deeper, until [`ascend`](Self::ascend): as [`nested`](Self::nested), with fewer frames on the stack.
    ///
    /// # Errors
    /// [`DepthLimit`](DecodeErrorKind::DepthLimit).
    #[inline]
    pub(crate) fn descend(&mut self) -> Result<(), DecodeError> {
        match self.depth.checked_sub(1) {
            Some(depth) => {
                self.depth = depth;
                Ok(())
            }
            None => Err(self.error(DecodeErrorKind::DepthLimit)),
        }
    }

    /// Ends the level that [`descend`](Self::descend) began.
    #[inline]
    pub(crate) fn ascend(&mut self) {
        self.depth += 1;
    }
}
