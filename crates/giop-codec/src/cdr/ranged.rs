//! [`Ranged`]: numbers between two others.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;

use super::decimal::Fixed;
use super::decoder::Decoder;
use super::encoder::Encoder;
use super::traits::{CdrDecode, CdrEncode};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// Which numbers a [`Ranged`] holds; generated code names one for each `@range`.
pub trait Range<T>: 'static {
    /// The least.
    const MIN: T;
    /// The greatest.
    const MAX: T;
    /// What a default is: the number of all that is nearest to zero, or what `@default` says.
    const DEFAULT: T;
}

/// A number under `@range`, `@min` or `@max`: checked where it is built and where it is received. It derefs to the number.
///
/// ```
/// use giop_codec::cdr::{Range, Ranged};
///
/// struct Percent;
/// impl Range<u8> for Percent {
///     const MIN: u8 = 0;
///     const MAX: u8 = 100;
///     const DEFAULT: u8 = 0;
/// }
///
/// let share = Ranged::<u8, Percent>::new(40)?;
/// assert_eq!(*share + 1, 41);
/// assert!(Ranged::<u8, Percent>::new(101).is_err());
/// # Ok::<(), giop_codec::cdr::RangeError>(())
/// ```
pub struct Ranged<T, R>(T, PhantomData<fn() -> R>);

impl<T: PartialOrd + Copy, R: Range<T>> Ranged<T, R> {
    /// The least number.
    pub const MIN: Self = Ranged(R::MIN, PhantomData);

    /// The greatest number.
    pub const MAX: Self = Ranged(R::MAX, PhantomData);

    /// Checks a number.
    ///
    /// # Errors
    /// It is out of the range, or not a number.
    pub fn new(value: T) -> Result<Self, RangeError> {
        if value >= R::MIN && value <= R::MAX { Ok(Ranged(value, PhantomData)) } else { Err(RangeError) }
    }
}

impl<T: Copy, R> Ranged<T, R> {
    /// The number.
    pub const fn get(self) -> T {
        self.0
    }

    /// For constants of generated code, whose values were checked.
    #[doc(hidden)]
    pub const fn checked_constant(value: T) -> Self {
        Ranged(value, PhantomData)
    }
}

impl<T: Copy, R> Clone for Ranged<T, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Copy, R> Copy for Ranged<T, R> {}

impl<T: PartialEq, R> PartialEq for Ranged<T, R> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: Eq, R> Eq for Ranged<T, R> {}

impl<T: PartialOrd, R> PartialOrd for Ranged<T, R> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        self.0.partial_cmp(&other.0)
    }
}

impl<T: Ord, R> Ord for Ranged<T, R> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl<T: core::hash::Hash, R> core::hash::Hash for Ranged<T, R> {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T: fmt::Debug, R> fmt::Debug for Ranged<T, R> {
    /// As the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Display, R> fmt::Display for Ranged<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T, R: Range<T>> Default for Ranged<T, R> {
    fn default() -> Self {
        Ranged(R::DEFAULT, PhantomData)
    }
}

impl<T, R> Deref for Ranged<T, R> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

macro_rules! try_from {
    ($($number:ty)*) => {$(
        impl<R: Range<$number>> TryFrom<$number> for Ranged<$number, R> {
            type Error = RangeError;

            fn try_from(value: $number) -> Result<Self, RangeError> {
                Ranged::new(value)
            }
        }
    )*};
}

try_from!(i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);

impl<R: Range<Fixed<DIGITS, SCALE>>, const DIGITS: u32, const SCALE: u32> TryFrom<Fixed<DIGITS, SCALE>>
    for Ranged<Fixed<DIGITS, SCALE>, R>
{
    type Error = RangeError;

    fn try_from(value: Fixed<DIGITS, SCALE>) -> Result<Self, RangeError> {
        Ranged::new(value)
    }
}

impl<T: CdrEncode, R> CdrEncode for Ranged<T, R> {
    /// As the number; the range is not on the wire.
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.0.encode(e)
    }
}

impl<T: CdrDecode + PartialOrd + Copy, R: Range<T>> CdrDecode for Ranged<T, R> {
    const MIN_SIZE: usize = T::MIN_SIZE;

    /// # Errors
    /// As the number, and [`OutOfRange`](DecodeErrorKind::OutOfRange) (`MARSHAL`).
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let start = d.position();
        Ranged::new(T::decode(d)?).map_err(|_| DecodeError::new(DecodeErrorKind::OutOfRange, start))
    }
}

/// A number is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RangeError;

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("number is out of the range of its IDL type")
    }
}

impl std::error::Error for RangeError {}
