//! [`Ranged`]: numbers with a lower and an upper bound.

use core::fmt;
use core::ops::Deref;

use super::decimal::Fixed;
use super::decoder::Decoder;
use super::encoder::Encoder;
use super::traits::{CdrDecode, CdrEncode};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// A number with a range from `@range`, `@min` or `@max` in IDL. The range is checked when the value is
/// created or received. The value derefs to the number.
///
/// The bounds are part of the type, as `i128` values. Bounds of a [`Fixed`] are its digits without the point,
/// and bounds of a `float` or `double` are its IEEE 754 bits. `try_into` infers the bounds.
///
/// ```
/// use giop_codec::cdr::Ranged;
///
/// let share: Ranged<u8, 0, 100> = 40.try_into()?;
/// assert_eq!(*share + 1, 41);
/// let error = Ranged::<u8, 0, 100>::new(101).unwrap_err();
/// assert_eq!(error.to_string(), "number is out of its range, 0 to 100");
/// # Ok::<(), giop_codec::cdr::RangeError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ranged<T, const MIN: i128, const MAX: i128>(T);

impl<T: RangedNumber, const MIN: i128, const MAX: i128> Ranged<T, MIN, MAX> {
    /// Creates a ranged number.
    ///
    /// # Errors
    /// [`RangeError`] if the number is out of the range or NaN.
    pub fn new(value: T) -> Result<Self, RangeError> {
        if value >= T::from_bound(MIN) && value <= T::from_bound(MAX) {
            Ok(Ranged(value))
        } else {
            Err(RangeError { min: MIN, max: MAX, representation: T::REPRESENTATION })
        }
    }

    /// Returns the minimum of the range.
    pub fn min_value() -> Self {
        Ranged(T::from_bound(MIN))
    }

    /// Returns the maximum of the range.
    pub fn max_value() -> Self {
        Ranged(T::from_bound(MAX))
    }
}

impl<T: Copy, const MIN: i128, const MAX: i128> Ranged<T, MIN, MAX> {
    /// Returns the number.
    pub const fn get(self) -> T {
        self.0
    }

    /// Wraps a constant of generated code. The IDL compiler has checked its value.
    #[doc(hidden)]
    pub const fn checked_constant(value: T) -> Self {
        Ranged(value)
    }
}

impl<T: RangedNumber + Default, const MIN: i128, const MAX: i128> Default for Ranged<T, MIN, MAX> {
    /// Returns the number in the range that is nearest to zero.
    fn default() -> Self {
        let (min, max, zero) = (T::from_bound(MIN), T::from_bound(MAX), T::default());
        Ranged(if min > zero {
            min
        } else if max < zero {
            max
        } else {
            zero
        })
    }
}

impl<T: fmt::Debug, const MIN: i128, const MAX: i128> fmt::Debug for Ranged<T, MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Display, const MIN: i128, const MAX: i128> fmt::Display for Ranged<T, MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T, const MIN: i128, const MAX: i128> Deref for Ranged<T, MIN, MAX> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: CdrEncode, const MIN: i128, const MAX: i128> CdrEncode for Ranged<T, MIN, MAX> {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.0.encode(e)
    }
}

impl<T: CdrDecode + RangedNumber, const MIN: i128, const MAX: i128> CdrDecode for Ranged<T, MIN, MAX> {
    const MIN_SIZE: usize = T::MIN_SIZE;

    /// # Errors
    /// The errors of the number type, and [`OutOfRange`](DecodeErrorKind::OutOfRange) (`MARSHAL`).
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let start = d.position();
        Ranged::new(T::decode(d)?).map_err(|_| DecodeError::new(DecodeErrorKind::OutOfRange, start))
    }
}

/// A number type that can have bounds: an integer of 8 to 64 bits, `f32`, `f64` or [`Fixed`].
pub trait RangedNumber: Copy + PartialOrd + sealed::Sealed {
    #[doc(hidden)]
    fn from_bound(bound: i128) -> Self;

    #[doc(hidden)]
    const REPRESENTATION: BoundRepresentation;
}

mod sealed {
    pub trait Sealed {}
}

/// How a bound is represented as an `i128`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoundRepresentation {
    Integer,
    FloatBits,
    DoubleBits,
    Digits { scale: u32 },
}

macro_rules! numbers {
    ($([$($generic:tt)*] $number:ty, $representation:expr, |$bound:ident| $value:expr;)*) => {$(
        impl<$($generic)*> sealed::Sealed for $number {}

        impl<$($generic)*> RangedNumber for $number {
            const REPRESENTATION: BoundRepresentation = $representation;

            fn from_bound($bound: i128) -> Self {
                $value
            }
        }

        impl<$($generic)* const MIN: i128, const MAX: i128> TryFrom<$number> for Ranged<$number, MIN, MAX> {
            type Error = RangeError;

            fn try_from(value: $number) -> Result<Self, RangeError> {
                Ranged::new(value)
            }
        }

        impl<$($generic)* const MIN: i128, const MAX: i128> From<Ranged<$number, MIN, MAX>> for $number {
            fn from(value: Ranged<$number, MIN, MAX>) -> $number {
                value.0
            }
        }
    )*};
}

// The casts lose nothing, because every bound is a number of its type.
numbers! {
    [] i8, BoundRepresentation::Integer, |bound| bound as i8;
    [] u8, BoundRepresentation::Integer, |bound| bound as u8;
    [] i16, BoundRepresentation::Integer, |bound| bound as i16;
    [] u16, BoundRepresentation::Integer, |bound| bound as u16;
    [] i32, BoundRepresentation::Integer, |bound| bound as i32;
    [] u32, BoundRepresentation::Integer, |bound| bound as u32;
    [] i64, BoundRepresentation::Integer, |bound| bound as i64;
    [] u64, BoundRepresentation::Integer, |bound| bound as u64;
    [] f32, BoundRepresentation::FloatBits, |bound| f32::from_bits(bound as u32);
    [] f64, BoundRepresentation::DoubleBits, |bound| f64::from_bits(bound as u64);
    [const DIGITS: u32, const SCALE: u32,] Fixed<DIGITS, SCALE>, BoundRepresentation::Digits { scale: SCALE },
        |bound| Fixed::checked_constant(bound);
}

/// The error of a number that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("number is out of its range, {} to {}", .representation.format(*.min), .representation.format(*.max))]
pub struct RangeError {
    min: i128,
    max: i128,
    representation: BoundRepresentation,
}

impl BoundRepresentation {
    fn format(self, bound: i128) -> String {
        match self {
            Self::Integer | Self::Digits { scale: 0 } => bound.to_string(),
            Self::FloatBits => f32::from_bound(bound).to_string(),
            Self::DoubleBits => f64::from_bound(bound).to_string(),
            Self::Digits { scale } => {
                let sign = if bound < 0 { "-" } else { "" };
                // A `Fixed` has at most 31 digits, so the power fits.
                let (unit, digits) = (10_u128.saturating_pow(scale), bound.unsigned_abs());
                format!("{sign}{}.{:0width$}", digits / unit, digits % unit, width = scale as usize)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ByteOrder, Version};

    const TENTH: i128 = 0.1_f64.to_bits() as i128;
    const MINUS_2_5: i128 = (-2.5_f64).to_bits() as i128;

    fn decode<T: CdrDecode>(bytes: &[u8]) -> Result<T, DecodeErrorKind> {
        T::decode(&mut Decoder::new(bytes, ByteOrder::Big, Version::V1_2)).map_err(|error| error.kind)
    }

    #[test]
    fn both_ends_belong_to_the_range() {
        type Small = Ranged<i16, -3, 5>;
        for value in -3..=5 {
            assert_eq!(Small::new(value).map(Small::get), Ok(value));
        }
        for value in [-4, 6, i16::MIN, i16::MAX] {
            assert!(Small::new(value).is_err());
        }
        assert_eq!((*Small::min_value(), *Small::max_value(), *Small::default()), (-3, 5, 0));
        assert_eq!(*Ranged::<u64, 7, { u64::MAX as i128 }>::default(), 7);
        assert_eq!(*Ranged::<i8, -9, -7>::default(), -7);
        assert_eq!(i16::from(Small::max_value()), 5);
    }

    #[test]
    fn floats_and_decimals_have_bounds() {
        type Part = Ranged<f64, MINUS_2_5, TENTH>;
        assert!(Part::new(0.1).is_ok() && Part::new(-2.5).is_ok() && Part::new(0.0).is_ok());
        for value in [0.100_000_1, -2.6, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Part::new(value).unwrap_err().to_string(), "number is out of its range, -2.5 to 0.1");
        }
        type Price = Ranged<Fixed<5, 2>, -5, 1005>;
        assert!(Price::new("10.05".parse().unwrap()).is_ok());
        let error = Price::new("10.06".parse().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "number is out of its range, -0.05 to 10.05");
    }

    #[test]
    fn what_is_received_is_checked() {
        type Share = Ranged<u16, 1, 100>;
        assert_eq!(decode::<Share>(&[0, 100]).map(Share::get), Ok(100));
        assert_eq!(decode::<Share>(&[0, 101]), Err(DecodeErrorKind::OutOfRange));
        assert_eq!(decode::<Share>(&[0, 0]), Err(DecodeErrorKind::OutOfRange));
        assert!(decode::<Share>(&[0]).is_err());
        assert_eq!(decode::<Vec<Share>>(&[0, 0, 0, 2, 0, 1, 0, 2]).unwrap(), [Share::min_value(), Ranged(2)]);
        assert_eq!(decode::<[Share; 2]>(&[0, 1, 1, 0]), Err(DecodeErrorKind::OutOfRange));
        let nan = f64::NAN.to_be_bytes();
        assert_eq!(decode::<Ranged<f64, MINUS_2_5, TENTH>>(&nan), Err(DecodeErrorKind::OutOfRange));
    }
}
