//! [`FixedWriter`] and [`FixedReader`]: access to the members of fixed-layout types, without a check for each
//! member.

use super::layout::{FixedLayout, padding};

/// Writes fixed-layout members into a region that has exactly the length of their layout, including padding.
///
/// Adjacent members are combined into words of up to eight bytes, because the number of stores limits the
/// speed of writing structs. After inlining, all offsets are constants.
pub struct FixedWriter<'a> {
    region: &'a mut [u8],
    /// Index of the next byte.
    position: usize,
    /// Phase of the first byte of the region.
    phase: usize,
    is_foreign_order: bool,
    /// The bytes from index `word_start` on that are not stored yet. The first is the least significant.
    word: u64,
    word_start: usize,
}

macro_rules! put_methods {
    ($($put:ident $ty:ty, $unsigned:ty, $size:literal;)*) => {$(
        #[doc = concat!("Writes a `", stringify!($ty), "`, aligned to ", stringify!($size), ".")]
        #[inline(always)]
        pub fn $put(&mut self, value: $ty) {
            let bytes = if self.is_foreign_order { value.swap_bytes() } else { value }.to_ne_bytes();
            self.put_word($size, u64::from(<$unsigned>::from_le_bytes(bytes)));
        }
    )*};
}

impl<'a> FixedWriter<'a> {
    /// Writes one value into `region`, which begins at `phase` (an offset modulo 8).
    #[inline(always)]
    pub(crate) fn write<T: FixedLayout>(
        region: &'a mut [u8],
        phase: usize,
        is_foreign_order: bool,
        value: &T,
    ) {
        let mut w = FixedWriter { region, position: 0, phase, is_foreign_order, word: 0, word_start: 0 };
        value.put(&mut w);
        w.store(w.position);
    }

    put_methods! {
        put_u8 u8, u8, 1; put_u16 u16, u16, 2; put_u32 u32, u32, 4; put_u64 u64, u64, 8;
        put_i8 i8, u8, 1; put_i16 i16, u16, 2; put_i32 i32, u32, 4; put_i64 i64, u64, 8;
    }

    /// Writes an `f32`, aligned to 4.
    #[inline(always)]
    pub fn put_f32(&mut self, value: f32) {
        self.put_u32(value.to_bits());
    }

    /// Writes an `f64`, aligned to 8.
    #[inline(always)]
    pub fn put_f64(&mut self, value: f64) {
        self.put_u64(value.to_bits());
    }

    /// Writes a 16-byte number, aligned to 8 as CDR requires for `long double`.
    #[inline(always)]
    pub(crate) fn put_u128(&mut self, value: u128) {
        let bytes = if self.is_foreign_order { value.swap_bytes() } else { value }.to_ne_bytes();
        let start = self.position + padding(self.phase + self.position, 8);
        self.store(start);
        if let Some(place) = self.region.get_mut(start..start + 16) {
            place.copy_from_slice(&bytes);
        }
        (self.position, self.word_start) = (start + 16, start + 16);
    }

    /// Writes a boolean as 0 or 1.
    #[inline(always)]
    pub fn put_bool(&mut self, value: bool) {
        self.put_u8(u8::from(value));
    }

    /// Writes a member that is itself of fixed layout.
    #[inline(always)]
    pub fn put<T: FixedLayout>(&mut self, value: &T) {
        value.put(self);
    }

    /// Writes the elements of an array, all but at most the first one in a loop of constant stride.
    #[inline(always)]
    pub fn put_run<T: FixedLayout>(&mut self, items: &[T]) {
        let Some((first, rest)) = items.split_first() else { return };
        let items = match T::LAYOUT.run_padding(self.phase + self.position) {
            Some(pad) => {
                self.position += pad;
                items
            }
            None => {
                first.put(self);
                rest
            }
        };
        self.store(self.position);
        let region = self.region.get_mut(self.position..).unwrap_or_default();
        write_strided(region, items, self.is_foreign_order);
        self.position += const { T::LAYOUT.stride() } * items.len();
        self.word_start = self.position;
    }

    /// Writes a number of `size` bytes, aligned to `size`. Its first byte is the lowest one of `word`.
    #[inline(always)]
    fn put_word(&mut self, size: usize, word: u64) {
        let start = self.position + padding(self.phase + self.position, size);
        if start + size > self.word_start + 8 {
            self.store(start);
        }
        self.word |= word << (8 * (start - self.word_start));
        self.position = start + size;
    }

    /// Stores the combined word, and zeros after it up to index `next`.
    #[inline(always)]
    fn store(&mut self, next: usize) {
        let word = self.word.to_le_bytes();
        let len = (next - self.word_start).min(8);
        if let Some(place) = self.region.get_mut(self.word_start..self.word_start + len)
            && let Some(bytes) = word.get(..len)
        {
            place.copy_from_slice(bytes);
        }
        if let Some(padding) = self.region.get_mut(self.word_start + len..next) {
            padding.fill(0);
        }
        (self.word, self.word_start) = (0, next);
    }
}

/// Writes `items` into `region`, one stride (the distance of elements) apart. The region must begin at the
/// phase at which elements end, so that all elements start at that phase.
#[inline(always)]
pub(crate) fn write_strided<T: FixedLayout>(region: &mut [u8], items: &[T], is_foreign_order: bool) {
    if const { T::LAYOUT.stride() == 0 } {
        return;
    }
    if !is_foreign_order
        && const { T::LAYOUT.end_phase(0) == 0 }
        && let Some(bytes) = T::run_as_bytes(items)
        && let Some(place) = region.get_mut(..bytes.len())
    {
        place.copy_from_slice(bytes);
        return;
    }
    // The flag is tested here, so that the loops have no branches.
    if !is_foreign_order {
        write_each(region, items, false);
    } else if !T::put_swapped(items, region) {
        write_each(region, items, true);
    }
}

#[inline(always)]
fn write_each<T: FixedLayout>(region: &mut [u8], items: &[T], is_foreign_order: bool) {
    for (place, item) in region.chunks_exact_mut(const { T::LAYOUT.stride() }).zip(items) {
        FixedWriter::write(place, const { T::LAYOUT.end_phase(0) }, is_foreign_order, item);
    }
}

/// Reads fixed-layout members from a region that has exactly the length of their layout.
pub struct FixedReader<'a> {
    region: &'a [u8],
    /// Index of the next byte.
    position: usize,
    /// Phase of the first byte of the region.
    phase: usize,
    is_foreign_order: bool,
    /// Whether a member was not a value of its type, or exceeded the data.
    is_invalid: bool,
    /// The data after a fragment or chunk boundary, and its phase.
    next_region: Option<(&'a [u8], usize)>,
    is_in_next_region: bool,
}

macro_rules! read_methods {
    ($($read:ident $ty:ty, $size:literal;)*) => {$(
        #[doc = concat!("Reads a `", stringify!($ty), "`, aligned to ", stringify!($size), ".")]
        #[inline(always)]
        pub fn $read(&mut self) -> $ty {
            let value = <$ty>::from_ne_bytes(self.read_aligned($size));
            if self.is_foreign_order { value.swap_bytes() } else { value }
        }
    )*};
}

impl<'a> FixedReader<'a> {
    /// Creates a reader of `region`, which begins at `phase` (an offset modulo 8).
    #[inline(always)]
    pub(crate) fn new(region: &'a [u8], phase: usize, is_foreign_order: bool) -> FixedReader<'a> {
        let (position, is_invalid, next_region, is_in_next_region) = (0, false, None, false);
        FixedReader { region, position, phase, is_foreign_order, is_invalid, next_region, is_in_next_region }
    }

    /// Lets the reader continue in `next_region`, which begins at `phase`, if a member does not fit here.
    pub(crate) fn continue_in(&mut self, next_region: &'a [u8], phase: usize) {
        self.next_region = Some((next_region, phase));
    }

    /// Returns whether the reader has continued in the next region.
    pub(crate) fn is_in_next_region(&self) -> bool {
        self.is_in_next_region
    }

    /// Returns the number of bytes read from the current region.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    #[cold]
    #[inline(never)]
    fn read_from_next_region<const N: usize>(&mut self, align: usize) -> [u8; N] {
        if let Some((region, phase)) = self.next_region.take() {
            (self.region, self.phase, self.is_in_next_region) = (region, phase, true);
            let start = padding(phase, align);
            self.position = start + N;
            if let Some(bytes) = region.get(start..).and_then(|rest| rest.first_chunk::<N>()) {
                return *bytes;
            }
        }
        self.is_invalid = true;
        [0; N]
    }

    read_methods! {
        read_u8 u8, 1; read_u16 u16, 2; read_u32 u32, 4; read_u64 u64, 8;
        read_i8 i8, 1; read_i16 i16, 2; read_i32 i32, 4; read_i64 i64, 8;
    }

    /// Reads an `f32`, aligned to 4.
    #[inline(always)]
    pub fn read_f32(&mut self) -> f32 {
        f32::from_bits(self.read_u32())
    }

    /// Reads an `f64`, aligned to 8.
    #[inline(always)]
    pub fn read_f64(&mut self) -> f64 {
        f64::from_bits(self.read_u64())
    }

    /// Reads a 16-byte number, aligned to 8 as CDR requires for `long double`.
    #[inline(always)]
    pub(crate) fn read_u128(&mut self) -> u128 {
        let value = u128::from_ne_bytes(self.read_aligned(8));
        if self.is_foreign_order { value.swap_bytes() } else { value }
    }

    /// Reads a boolean. As in other ORBs, every byte except 0 means true.
    #[inline(always)]
    pub fn read_bool(&mut self) -> bool {
        self.read_u8() != 0
    }

    /// Reads a member that is itself of fixed layout.
    #[inline(always)]
    pub fn read<T: FixedLayout>(&mut self) -> T {
        T::get(self)
    }

    /// Reads an array of `N` elements.
    #[inline(always)]
    pub fn read_array<T: FixedLayout, const N: usize>(&mut self) -> [T; N] {
        let stride = const { T::LAYOUT.stride() };
        let mut first = None;
        if N > 0 {
            match T::LAYOUT.run_padding(self.phase + self.position) {
                Some(pad) => self.position += pad,
                None => first = Some(T::get(self)),
            }
        }
        let count = N - usize::from(first.is_some());
        let start = self.position;
        self.position += stride * count;
        let Some(region) = self.region.get(start..self.position) else {
            self.is_invalid |= self.next_region.is_none();
            self.position = start;
            return std::array::from_fn(|_| first.take().unwrap_or_else(|| T::get(self)));
        };
        if !self.is_foreign_order
            && first.is_none()
            && let Some(items) = T::array_from_bytes(region)
        {
            return items;
        }
        let (mut at, mut is_invalid, is_foreign_order) = (0, false, self.is_foreign_order);
        let items = std::array::from_fn(|_| {
            if let Some(item) = first.take() {
                return item;
            }
            let place = region.get(at..at + stride).unwrap_or_default();
            at += stride;
            let mut r = FixedReader::new(place, const { T::LAYOUT.end_phase(0) }, is_foreign_order);
            let item = T::get(&mut r);
            is_invalid |= r.is_invalid;
            item
        });
        self.is_invalid |= is_invalid;
        items
    }

    /// Records that a member is not a value of its type, such as an enum ordinal that is out of range. The
    /// caller continues with any value. Decoding fails at the end of the run with
    /// [`InvalidEnum`](crate::DecodeErrorKind::InvalidEnum), or with
    /// [`EndOfData`](crate::DecodeErrorKind::EndOfData) if a fragment or chunk boundary divides the value.
    #[inline(always)]
    pub fn fail(&mut self) {
        self.is_invalid = true;
    }

    /// Returns whether a member read so far was not a value of its type, or exceeded the data.
    #[inline(always)]
    pub(crate) fn is_invalid(&self) -> bool {
        self.is_invalid
    }

    /// Reads `N` bytes in wire order, aligned to `align`.
    #[inline(always)]
    fn read_aligned<const N: usize>(&mut self, align: usize) -> [u8; N] {
        let start = self.position + padding(self.phase + self.position, align);
        self.position = start + N;
        match self.region.get(start..start + N).and_then(|bytes| bytes.first_chunk::<N>()) {
            Some(bytes) => *bytes,
            None => self.read_from_next_region(align),
        }
    }
}

/// Reads the elements in `region`, which are one stride apart, and appends them to `out`. The region must
/// begin at the phase at which elements end, so that all elements start at that phase. Returns `false` if an
/// element is not a value of its type.
#[inline(always)]
pub(crate) fn read_strided<T: FixedLayout>(region: &[u8], out: &mut Vec<T>, is_foreign_order: bool) -> bool {
    if is_foreign_order {
        return T::extend_swapped(out, region) || read_each(region, out, true);
    }
    let starts_at_phase_0 = const { T::LAYOUT.end_phase(0) == 0 };
    starts_at_phase_0 && T::extend_from_bytes(out, region) || read_each(region, out, false)
}

#[inline(always)]
fn read_each<T: FixedLayout>(region: &[u8], out: &mut Vec<T>, is_foreign_order: bool) -> bool {
    let mut is_invalid = false;
    out.extend(region.chunks_exact(const { T::LAYOUT.stride() }).map(|place| {
        let mut r = FixedReader::new(place, const { T::LAYOUT.end_phase(0) }, is_foreign_order);
        let item = T::get(&mut r);
        is_invalid |= r.is_invalid;
        item
    }));
    !is_invalid
}
