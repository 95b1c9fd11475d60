//! [`Fixed`]: decimal numbers with a fixed number of digits.

mod convert;
mod magnitude;
mod operators;

use core::cmp::Ordering;

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::traits::{CdrDecode, CdrEncode};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// An IDL `fixed<DIGITS, SCALE>`: a decimal number of at most `DIGITS` digits, `SCALE` of them after the
/// point.
///
/// `DIGITS` is 1 to 31 and `SCALE` 0 to `DIGITS`. Other types fail to compile when a value is created. The
/// value is an integer, called *unscaled*, times 10 to the power of -`SCALE`.
///
/// Sums are exact. The operators `*` and `/` return the type of their left operand and truncate, as IDL does
/// for constants. [`mul_to`](Fixed::mul_to), [`div_to`](Fixed::div_to) and [`rescale`](Fixed::rescale) return
/// any type with any [`Rounding`]. Operators panic if the result has too many digits before the point; the
/// `checked` methods do not panic.
///
/// ```
/// use giop_codec::cdr::{Fixed, Rounding};
///
/// let price: Fixed<7, 2> = "19.90".parse()?;
/// let rate: Fixed<5, 4> = "0.0825".parse()?;
/// let tax: Fixed<7, 2> = price.mul_to(rate, Rounding::HalfEven)?;
/// assert_eq!((price + tax).to_string(), "21.54");
/// assert_eq!((price * rate).to_string(), "1.64");
/// assert!("100000".parse::<Fixed<7, 2>>().is_err());
/// # Ok::<(), giop_codec::cdr::FixedError>(())
/// ```
#[doc(alias = "CORBA::Fixed")]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fixed<const DIGITS: u32, const SCALE: u32>(
    /// The unscaled value. Its magnitude is less than 10 to the power of `DIGITS`.
    i128,
);

const MAX_DIGITS: u32 = 31;

impl<const DIGITS: u32, const SCALE: u32> Fixed<DIGITS, SCALE> {
    /// The smallest magnitude with too many digits. Every constructor uses it, so that invalid types do not
    /// compile.
    const LIMIT: u128 = {
        assert!(DIGITS >= 1 && DIGITS <= MAX_DIGITS, "a fixed has 1 to 31 digits");
        assert!(SCALE <= DIGITS, "a fixed has no more digits after the point than it has digits");
        10_u128.pow(DIGITS)
    };

    const ENCODED_BYTES: usize = DIGITS as usize / 2 + 1;

    /// Zero.
    pub const ZERO: Self = Self::checked_constant(0);

    /// The maximum value: `DIGITS` nines.
    pub const MAX: Self = Self::checked_constant(Self::LIMIT.cast_signed() - 1);

    /// The minimum value, `-MAX`.
    pub const MIN: Self = Self::checked_constant(1 - Self::LIMIT.cast_signed());

    /// Returns the number with these digits, the last `SCALE` of them after the point, or `None` if there are
    /// more than `DIGITS`.
    ///
    /// ```
    /// use giop_codec::cdr::Fixed;
    /// assert_eq!(Fixed::<5, 2>::from_unscaled(12345).unwrap().to_string(), "123.45");
    /// assert!(Fixed::<5, 2>::from_unscaled(123456).is_none());
    /// ```
    #[inline]
    pub const fn from_unscaled(unscaled: i128) -> Option<Self> {
        if unscaled.unsigned_abs() < Self::LIMIT { Some(Fixed(unscaled)) } else { None }
    }

    /// Creates a constant of generated code, which does not compile with too many digits.
    #[doc(hidden)]
    pub const fn checked_constant(unscaled: i128) -> Self {
        assert!(unscaled.unsigned_abs() < Self::LIMIT, "a constant has more digits than its type");
        Fixed(unscaled)
    }

    /// Returns the digits as an integer: the value times 10 to the power of `SCALE`.
    #[inline]
    pub const fn unscaled(self) -> i128 {
        self.0
    }

    /// Returns whether this is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns whether this is less than zero.
    #[inline]
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Returns the value without its sign.
    #[inline]
    pub const fn abs(self) -> Self {
        Fixed(self.0.abs())
    }

    /// Returns -1, 0 or 1, by the sign.
    #[inline]
    pub const fn signum(self) -> i32 {
        self.0.signum() as i32
    }

    /// Compares with a value that has another number of digits.
    pub fn cmp_value<const D: u32, const S: u32>(self, other: Fixed<D, S>) -> Ordering {
        // The power does not overflow, because scales differ by at most 31. At most one product saturates,
        // and it is the greater in magnitude.
        let scaled = |value: i128, digits: u32| value.saturating_mul(10_i128.pow(digits));
        scaled(self.0, S.saturating_sub(SCALE)).cmp(&scaled(other.0, SCALE.saturating_sub(S)))
    }

    /// A magnitude of `None` is out of range.
    fn from_magnitude(negative: bool, magnitude: Option<u128>) -> Result<Self, FixedError> {
        match magnitude {
            Some(magnitude) if magnitude < Self::LIMIT => {
                let unscaled = magnitude.cast_signed();
                Ok(Fixed(if negative { -unscaled } else { unscaled }))
            }
            _ => Err(FixedError::OutOfRange),
        }
    }
}

impl<const DIGITS: u32, const SCALE: u32> Default for Fixed<DIGITS, SCALE> {
    fn default() -> Self {
        Self::ZERO
    }
}

/// The treatment of digits that do not fit a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rounding {
    /// Truncation, towards zero.
    #[default]
    Truncate,
    /// Rounding to the nearest value; ties away from zero: 2.5 becomes 3.
    HalfAwayFromZero,
    /// Rounding to the nearest value; ties to the even digit: 2.5 becomes 2.
    HalfEven,
    /// Rounding towards negative infinity.
    Floor,
    /// Rounding towards positive infinity.
    Ceiling,
    /// No rounding: digits that do not fit must be zeros, otherwise the error is [`FixedError::Inexact`].
    Exact,
}

/// The reason why a number cannot be a [`Fixed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum FixedError {
    /// The number has more digits before the point than the type.
    #[error("number has too many digits before the point for its type")]
    OutOfRange,
    /// The number has more digits after the point than the type.
    #[error("number has too many digits after the point for its type")]
    Inexact,
    /// Division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// The text is not a decimal number, or the float is not a number.
    #[error("not a decimal number")]
    NotANumber,
}

/// The last half byte of an encoding is the sign.
const PLUS: u8 = 0xC;
const MINUS: u8 = 0xD;
/// A plus sign in packed decimals that were not encoded as CDR requires.
const UNSIGNED: u8 = 0xF;

impl<const DIGITS: u32, const SCALE: u32> CdrEncode for Fixed<DIGITS, SCALE> {
    /// Writes half a byte for each digit, the first one first, then the sign. A zero precedes an even number
    /// of digits. The encoding is unaligned, and the same in both byte orders ("Fixed-Point Decimal Type").
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let mut bytes = [0; MAX_DIGITS as usize / 2 + 1];
        let mut left = self.0.unsigned_abs();
        let mut low = if self.0 < 0 { MINUS } else { PLUS };
        for byte in bytes.iter_mut().rev().take(Self::ENCODED_BYTES) {
            *byte = low | ((left % 10) as u8) << 4;
            low = (left / 10 % 10) as u8;
            left /= 100;
        }
        e.put_raw(bytes.get(bytes.len() - Self::ENCODED_BYTES..).unwrap_or_default());
        Ok(())
    }
}

impl<const DIGITS: u32, const SCALE: u32> CdrDecode for Fixed<DIGITS, SCALE> {
    /// JacORB omits leading zero bytes. The sign marks the end.
    const MIN_SIZE: usize = 1;

    /// Reads up to the sign.
    ///
    /// # Errors
    /// [`InvalidFixed`](DecodeErrorKind::InvalidFixed) (`MARSHAL`): a half byte is not a digit, or there is
    /// no sign after `DIGITS` digits.
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let start = d.position();
        let mut magnitude = 0_u128;
        for _ in 0..Self::ENCODED_BYTES {
            let byte = d.read_u8()?;
            let (high, low) = (byte >> 4, byte & 0xF);
            if high > 9 {
                break;
            }
            // Does not overflow: there are at most 32 digits.
            magnitude = magnitude * 10 + u128::from(high);
            match low {
                0..=9 => magnitude = magnitude * 10 + u128::from(low),
                PLUS | MINUS | UNSIGNED if magnitude < Self::LIMIT => {
                    let unscaled = magnitude.cast_signed();
                    return Ok(Fixed(if low == MINUS { -unscaled } else { unscaled }));
                }
                _ => break,
            }
        }
        Err(DecodeError::new(DecodeErrorKind::InvalidFixed, start))
    }
}
