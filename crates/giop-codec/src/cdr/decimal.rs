//! [`Fixed`]: decimal numbers with a fixed number of digits.

mod convert;
mod magnitude;
mod operators;

use core::cmp::Ordering;

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::traits::{CdrDecode, CdrEncode};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// An IDL `fixed<DIGITS, SCALE>`: a decimal number of `DIGITS` digits, of which `SCALE` follow the point.
///
/// `DIGITS` is 1 to 31 and `SCALE` 0 to `DIGITS`. With other parameters, code that creates a value does not
/// compile. The value is an integer, called *unscaled*, times 10 to the power of -`SCALE`.
///
/// Sums are exact. The operators `*` and `/` return the type of their left operand and truncate, as IDL does
/// for constants. [`mul_to`](Fixed::mul_to), [`div_to`](Fixed::div_to) and [`rescale`](Fixed::rescale) return
/// the requested type and take a [`Rounding`]. Operators panic if the result has too many digits before the
/// point; the `checked` methods do not panic.
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
    /// The smallest magnitude with too many digits. Every constructor uses this constant, so that creating a
    /// value of an invalid type does not compile.
    const LIMIT: u128 = {
        assert!(DIGITS >= 1 && DIGITS <= MAX_DIGITS, "a fixed must have 1 to 31 digits");
        assert!(SCALE <= DIGITS, "the scale of a fixed must not exceed its number of digits");
        10_u128.pow(DIGITS)
    };

    const ENCODED_BYTES: usize = DIGITS as usize / 2 + 1;

    /// Zero.
    pub const ZERO: Self = Self::checked_constant(0);

    /// The maximum value: `DIGITS` nines.
    pub const MAX: Self = Self::checked_constant(Self::LIMIT.cast_signed() - 1);

    /// The minimum value, `-MAX`.
    pub const MIN: Self = Self::checked_constant(1 - Self::LIMIT.cast_signed());

    /// Creates the number whose digits are those of `unscaled`, with the last `SCALE` of them after the
    /// point. Returns `None` if there are more than `DIGITS` digits.
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

    /// Creates a constant for generated code. A constant with too many digits does not compile.
    #[doc(hidden)]
    pub const fn checked_constant(unscaled: i128) -> Self {
        assert!(unscaled.unsigned_abs() < Self::LIMIT, "a constant must not have more digits than its type");
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

    /// Returns -1, 0 or 1 for a negative number, zero or a positive number.
    #[inline]
    pub const fn signum(self) -> i32 {
        self.0.signum() as i32
    }

    /// Compares with a value that may have other numbers of digits.
    pub fn cmp_value<const D: u32, const S: u32>(self, other: Fixed<D, S>) -> Ordering {
        // The power does not overflow, because scales differ by at most 31. At most one product saturates,
        // and it is the greater in magnitude.
        let scaled = |value: i128, digits: u32| value.saturating_mul(10_i128.pow(digits));
        scaled(self.0, S.saturating_sub(SCALE)).cmp(&scaled(other.0, SCALE.saturating_sub(S)))
    }

    /// Returns the number with this sign and unscaled magnitude, which is `None` if it is out of range.
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

/// What to do with digits of a result that do not fit its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rounding {
    /// Truncation: rounding towards zero.
    #[default]
    Truncate,
    /// Rounding to the nearest value. Halfway values are rounded away from zero: 2.5 becomes 3.
    HalfAwayFromZero,
    /// Rounding to the nearest value. Halfway values are rounded to the even digit: 2.5 becomes 2.
    HalfEven,
    /// Rounding towards negative infinity.
    Floor,
    /// Rounding towards positive infinity.
    Ceiling,
    /// No rounding. If a digit that does not fit is not zero, the error is [`FixedError::Inexact`].
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

/// The last half byte of the encoding of a positive number or zero.
const PLUS_NIBBLE: u8 = 0xC;
/// The last half byte of the encoding of a negative number.
const MINUS_NIBBLE: u8 = 0xD;
/// The last half byte of an unsigned packed decimal. CDR does not permit it, but it is read as a plus sign.
const UNSIGNED_NIBBLE: u8 = 0xF;

impl<const DIGITS: u32, const SCALE: u32> CdrEncode for Fixed<DIGITS, SCALE> {
    /// Writes half a byte for each digit, the first one first, then the sign. A zero precedes an even number
    /// of digits. The encoding is unaligned, and the same in both byte orders ("Fixed-Point Decimal Type").
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let mut bytes = [0; MAX_DIGITS as usize / 2 + 1];
        let mut left = self.0.unsigned_abs();
        let mut low = if self.0 < 0 { MINUS_NIBBLE } else { PLUS_NIBBLE };
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
    /// JacORB omits leading zero bytes, so one byte with a digit and the sign can be all of it.
    const MIN_SIZE: usize = 1;

    /// Reads digits up to and including the sign.
    ///
    /// # Errors
    /// [`InvalidFixed`](DecodeErrorKind::InvalidFixed) (`MARSHAL`): a half byte is neither a digit nor a
    /// sign, there are too many digits, or there is no sign after the digits.
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
                PLUS_NIBBLE | MINUS_NIBBLE | UNSIGNED_NIBBLE if magnitude < Self::LIMIT => {
                    let unscaled = magnitude.cast_signed();
                    return Ok(Fixed(if low == MINUS_NIBBLE { -unscaled } else { unscaled }));
                }
                _ => break,
            }
        }
        Err(DecodeError::new(DecodeErrorKind::InvalidFixed, start))
    }
}
