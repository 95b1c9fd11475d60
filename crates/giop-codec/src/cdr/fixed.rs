//! [`FixedWriter`] and [`FixedReader`]: access to the members of fixed-layout types, without a check for each
//! member.

use super::layout::{FixedLayout, padding};

/// Writes fixed-layout members into a region whose length is exactly that of their layout, padding included.
///
/// Members are combined in words of up to eight bytes, so that neighbours take one store. Stores limit the
/// speed of writing structs. After inlining, all offsets are constants.
pub struct FixedWriter<'a> {
    buf: &'a mut [u8],
    at: usize,
    phase: usize,
    swap: bool,
    /// Bytes put from `from` on that are not stored yet, the first byte lowest.
    word: u64,
    from: usize,
}

macro_rules! put_methods {
    ($($put:ident $ty:ty, $unsigned:ty, $size:literal;)*) => {$(
        #[doc = concat!("Writes a `", stringify!($ty), "`, aligned to ", stringify!($size), ".")]
        #[inline(always)]
        pub fn $put(&mut self, value: $ty) {
            let octets = if self.swap { value.swap_bytes() } else { value }.to_ne_bytes();
            self.put_word($size, u64::from(<$unsigned>::from_le_bytes(octets)));
        }
    )*};
}

impl<'a> FixedWriter<'a> {
    /// Writes one value into `buf`, whose first byte has phase `phase`. `swap` is set if the byte order is
    /// foreign.
    #[inline(always)]
    pub(crate) fn write<T: FixedLayout>(buf: &'a mut [u8], phase: usize, swap: bool, value: &T) {
        let mut w = FixedWriter { buf, at: 0, phase, swap, word: 0, from: 0 };
        value.put(&mut w);
        w.store(w.at);
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

    /// Writes a 16-byte number, aligned to 8 like `long double`.
    #[inline(always)]
    pub(crate) fn put_u128(&mut self, value: u128) {
        let octets = if self.swap { value.swap_bytes() } else { value }.to_ne_bytes();
        let start = self.at + padding(self.phase + self.at, 8);
        self.store(start);
        if let Some(place) = self.buf.get_mut(start..start + 16) {
            place.copy_from_slice(&octets);
        }
        (self.at, self.from) = (start + 16, start + 16);
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

    /// Writes the elements of an array: one loop of constant stride, after at most one element at the current
    /// phase.
    #[inline(always)]
    pub fn put_run<T: FixedLayout>(&mut self, items: &[T]) {
        let Some((first, rest)) = items.split_first() else { return };
        let items = match T::LAYOUT.lead(self.phase + self.at) {
            Some(pad) => {
                self.at += pad;
                self.store(self.at);
                items
            }
            None => {
                first.put(self);
                self.store(self.at);
                rest
            }
        };
        let region = self.buf.get_mut(self.at..).unwrap_or_default();
        write_strided(region, items, self.swap);
        self.at += const { T::LAYOUT.stride() } * items.len();
        self.from = self.at;
    }

    /// Writes a number of `size` bytes, given with its first byte lowest, aligned to `size`.
    #[inline(always)]
    fn put_word(&mut self, size: usize, word: u64) {
        let start = self.at + padding(self.phase + self.at, size);
        if start + size > self.from + 8 {
            self.store(start);
        }
        self.word |= word << (8 * (start - self.from));
        self.at = start + size;
    }

    /// Stores the combined word and the padding after it, up to `next`.
    #[inline(always)]
    fn store(&mut self, next: usize) {
        let octets = self.word.to_le_bytes();
        let len = (next - self.from).min(8);
        if let Some(place) = self.buf.get_mut(self.from..self.from + len)
            && let Some(octets) = octets.get(..len)
        {
            place.copy_from_slice(octets);
        }
        if let Some(padding) = self.buf.get_mut(self.from + len..next) {
            padding.fill(0);
        }
        (self.word, self.from) = (0, next);
    }
}

/// Writes `items` into `region`, one stride apart. All start at the phase at which elements end.
#[inline(always)]
pub(crate) fn write_strided<T: FixedLayout>(region: &mut [u8], items: &[T], swap: bool) {
    let stride = const { T::LAYOUT.stride() };
    if stride == 0 {
        return;
    }
    if !swap
        && const { T::LAYOUT.end(0) == 0 }
        && let Some(octets) = T::as_octets(items)
        && let Some(place) = region.get_mut(..octets.len())
    {
        place.copy_from_slice(octets);
        return;
    }
    // The flag is tested outside of the loops, so that they have no branches.
    if swap {
        if T::put_swapped(items, region) {
            return;
        }
        for (place, item) in region.chunks_exact_mut(stride).zip(items) {
            FixedWriter::write(place, const { T::LAYOUT.end(0) }, true, item);
        }
    } else {
        for (place, item) in region.chunks_exact_mut(stride).zip(items) {
            FixedWriter::write(place, const { T::LAYOUT.end(0) }, false, item);
        }
    }
}

/// Reads fixed-layout members from a region whose length is exactly that of their layout.
pub struct FixedReader<'a> {
    buf: &'a [u8],
    at: usize,
    phase: usize,
    swap: bool,
    bad: bool,
    /// The data after a boundary, and its phase: see `pieces` and `chunked`.
    behind: Option<(&'a [u8], usize)>,
    crossed: bool,
}

macro_rules! read_methods {
    ($($read:ident $ty:ty, $size:literal;)*) => {$(
        #[doc = concat!("Reads a `", stringify!($ty), "`, aligned to ", stringify!($size), ".")]
        #[inline(always)]
        pub fn $read(&mut self) -> $ty {
            let value = <$ty>::from_ne_bytes(self.octets($size));
            if self.swap { value.swap_bytes() } else { value }
        }
    )*};
}

impl<'a> FixedReader<'a> {
    /// Creates a reader over `buf`, whose first byte has phase `phase`. `swap` is set if the byte order is
    /// foreign.
    #[inline(always)]
    pub(crate) fn new(buf: &'a [u8], phase: usize, swap: bool) -> FixedReader<'a> {
        FixedReader { buf, at: 0, phase, swap, bad: false, behind: None, crossed: false }
    }

    /// Lets the reader continue in another region, which begins at `phase`, as soon as a member does not fit
    /// in this one.
    pub(crate) fn continue_in(&mut self, behind: &'a [u8], phase: usize) {
        self.behind = Some((behind, phase));
    }

    /// Returns whether the reader has entered the other region, and how many bytes of the current region were
    /// read.
    pub(crate) fn reached(&self) -> (bool, usize) {
        (self.crossed, self.at)
    }

    /// Reads bytes that do not fit: from the region after the boundary, if there is one.
    #[cold]
    #[inline(never)]
    fn octets_behind<const N: usize>(&mut self, align: usize) -> [u8; N] {
        if let Some((behind, phase)) = self.behind.take() {
            (self.buf, self.phase, self.crossed) = (behind, phase, true);
            let start = padding(phase, align);
            self.at = start + N;
            if let Some(octets) = behind.get(start..).and_then(|octets| octets.first_chunk::<N>()) {
                return *octets;
            }
        }
        self.bad = true;
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

    /// Reads a 16-byte number, aligned to 8 like `long double`.
    #[inline(always)]
    pub(crate) fn read_u128(&mut self) -> u128 {
        let value = u128::from_ne_bytes(self.octets(8));
        if self.swap { value.swap_bytes() } else { value }
    }

    /// Reads a boolean. Every byte except 0 is true, as in other ORBs.
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
            match T::LAYOUT.lead(self.phase + self.at) {
                Some(pad) => self.at += pad,
                None => first = Some(T::get(self)),
            }
        }
        let count = N - usize::from(first.is_some());
        let start = self.at;
        self.at += stride * count;
        let Some(region) = self.buf.get(start..self.at) else {
            self.bad |= self.behind.is_none();
            self.at = start;
            return std::array::from_fn(|_| first.take().unwrap_or_else(|| T::get(self)));
        };
        if !self.swap
            && first.is_none()
            && let Some(items) = T::array_from_octets(region)
        {
            return items;
        }
        let (mut at, mut bad, swap) = (0, false, self.swap);
        let items = std::array::from_fn(|_| {
            if let Some(item) = first.take() {
                return item;
            }
            let place = region.get(at..at + stride).unwrap_or_default();
            at += stride;
            let mut r = FixedReader::new(place, const { T::LAYOUT.end(0) }, swap);
            let item = T::get(&mut r);
            bad |= r.bad;
            item
        });
        self.bad |= bad;
        items
    }

    /// Records that an item is not a value of its type (an enum ordinal out of range). The decode fails with
    /// [`InvalidEnum`](crate::DecodeErrorKind::InvalidEnum) at the end of the run; until then the caller
    /// continues with any value.
    #[inline(always)]
    pub fn fail(&mut self) {
        self.bad = true;
    }

    /// Returns whether an item read so far is not a value of its type.
    #[inline(always)]
    pub(crate) fn failed(&self) -> bool {
        self.bad
    }

    /// Reads `N` bytes in wire order, aligned to `align`.
    #[inline(always)]
    pub(crate) fn octets<const N: usize>(&mut self, align: usize) -> [u8; N] {
        let start = self.at + padding(self.phase + self.at, align);
        self.at = start + N;
        match self.buf.get(start..start + N).and_then(|octets| octets.first_chunk::<N>()) {
            Some(octets) => *octets,
            None => self.octets_behind(align),
        }
    }
}

/// Appends elements to `out`. They are one stride apart, and all start at the phase at which elements end.
/// Returns `false` if one is not a value of its type.
#[inline(always)]
pub(crate) fn read_strided<T: FixedLayout>(region: &[u8], out: &mut Vec<T>, swap: bool) -> bool {
    let stride = const { T::LAYOUT.stride() };
    if !swap && const { T::LAYOUT.end(0) == 0 } && T::extend_from_octets(out, region) {
        return true;
    }
    let mut bad = false;
    if swap {
        if T::extend_swapped(out, region) {
            return true;
        }
        out.extend(region.chunks_exact(stride).map(|place| {
            let mut r = FixedReader::new(place, const { T::LAYOUT.end(0) }, true);
            let item = T::get(&mut r);
            bad |= r.bad;
            item
        }));
    } else {
        out.extend(region.chunks_exact(stride).map(|place| {
            let mut r = FixedReader::new(place, const { T::LAYOUT.end(0) }, false);
            let item = T::get(&mut r);
            bad |= r.bad;
            item
        }));
    }
    !bad
}
