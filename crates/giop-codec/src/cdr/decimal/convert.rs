//! Conversions of [`Fixed`] from and to text, integers and floats.

use core::fmt;
use core::str::FromStr;

use super::operators::round_and_sign;
use super::{Fixed, FixedError, Rounding, magnitude};

/// The length of the longest text: 31 digits after the point, the point, and a zero before it.
const MAX_TEXT_LEN: usize = 33;

/// Formats a number without a sign, with `scale` digits after the point and at least one before it.
fn format_magnitude(magnitude: u128, scale: u32, buffer: &mut [u8; MAX_TEXT_LEN]) -> &str {
    let (mut left, mut start) = (magnitude, buffer.len());
    let mut put = |character| {
        start = start.saturating_sub(1);
        if let Some(place) = buffer.get_mut(start) {
            *place = character;
        }
    };
    let mut digits = 0;
    while left != 0 || digits <= scale {
        if digits == scale && scale != 0 {
            put(b'.');
        }
        put(b'0' + (left % 10) as u8);
        left /= 10;
        digits += 1;
    }
    // Cannot fail: digits and a point are UTF-8.
    buffer.get(start..).and_then(|text| core::str::from_utf8(text).ok()).unwrap_or_default()
}

impl<const DIGITS: u32, const SCALE: u32> fmt::Display for Fixed<DIGITS, SCALE> {
    /// Writes all digits after the point, and at least one before it: `0.50`. A precision below `SCALE`
    /// rounds half to even, and a greater one adds zeros. Width, fill and sign work as for integers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; MAX_TEXT_LEN];
        let magnitude = self.0.unsigned_abs();
        let places = f.precision().unwrap_or(SCALE as usize);
        let Ok(cut @ 1..) = u32::try_from(SCALE as usize - places.min(SCALE as usize)) else {
            let digits = format_magnitude(magnitude, SCALE, &mut buffer);
            let zeros = places - SCALE as usize;
            if zeros == 0 {
                return f.pad_integral(!self.is_negative(), "", digits);
            }
            let point = if SCALE == 0 { "." } else { "" };
            return f.pad_integral(!self.is_negative(), "", &format!("{digits}{point}{:0<zeros$}", ""));
        };
        let quotient = magnitude::without_last_digits(magnitude, cut);
        // Cannot fail: every number can be rounded to even.
        let rounded = magnitude::rounded(self.is_negative(), quotient, Rounding::HalfEven);
        let rounded = rounded.ok().flatten().unwrap_or_default();
        f.pad_integral(!self.is_negative(), "", format_magnitude(rounded, SCALE - cut, &mut buffer))
    }
}

impl<const DIGITS: u32, const SCALE: u32> fmt::Debug for Fixed<DIGITS, SCALE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const DIGITS: u32, const SCALE: u32> FromStr for Fixed<DIGITS, SCALE> {
    type Err = FixedError;

    /// Parses an optional `+` or `-`, digits with or without a point, and an optional `d` or `D` as in IDL.
    ///
    /// # Errors
    /// [`NotANumber`](FixedError::NotANumber), [`OutOfRange`](FixedError::OutOfRange),
    /// [`Inexact`](FixedError::Inexact).
    fn from_str(text: &str) -> Result<Self, FixedError> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let digits = unsigned.strip_suffix(['d', 'D']).unwrap_or(unsigned);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) || whole.len() + fraction.len() == 0 {
            return Err(FixedError::NotANumber);
        }
        let (fraction, excess) = fraction.split_at(fraction.len().min(SCALE as usize));
        if excess.bytes().any(|digit| digit != b'0') {
            return Err(FixedError::Inexact);
        }
        let zeros = core::iter::repeat_n(b'0', SCALE as usize - fraction.len());
        let magnitude = whole.bytes().chain(fraction.bytes()).chain(zeros).try_fold(0_u128, |all, digit| {
            all.checked_mul(10).and_then(|all| all.checked_add(u128::from(digit - b'0')))
        });
        Self::from_magnitude(text.starts_with('-'), magnitude)
    }
}

impl<const DIGITS: u32, const SCALE: u32> Fixed<DIGITS, SCALE> {
    /// Returns the number, rounded to an integer.
    ///
    /// # Errors
    /// [`Inexact`](FixedError::Inexact) where the rounding is [`Exact`](Rounding::Exact).
    pub fn to_integer(self, rounding: Rounding) -> Result<i128, FixedError> {
        let whole = magnitude::without_last_digits(self.0.unsigned_abs(), SCALE);
        let magnitude = magnitude::rounded(self.is_negative(), whole, rounding)?.unwrap_or_default();
        Ok(magnitude.cast_signed() * self.0.signum())
    }

    /// Returns the nearest `f64`, or the even one of two that are equally near.
    pub fn to_f64(self) -> f64 {
        let mut buffer = [0; MAX_TEXT_LEN];
        let text = format_magnitude(self.0.unsigned_abs(), SCALE, &mut buffer);
        let magnitude: f64 = text.parse().unwrap_or_default();
        if self.is_negative() { -magnitude } else { magnitude }
    }

    /// Converts the exact value of a float, and rounds it to `SCALE` digits after the point. The exact value
    /// of the float `0.1` is a little more than a tenth.
    ///
    /// ```
    /// use giop_codec::cdr::{Fixed, FixedError, Rounding};
    /// assert_eq!(Fixed::<3, 1>::from_f64(0.1, Rounding::HalfEven)?.to_string(), "0.1");
    /// assert_eq!(Fixed::<3, 1>::from_f64(0.1, Rounding::Exact), Err(FixedError::Inexact));
    /// # Ok::<(), FixedError>(())
    /// ```
    ///
    /// # Errors
    /// [`NotANumber`](FixedError::NotANumber), [`OutOfRange`](FixedError::OutOfRange), and
    /// [`Inexact`](FixedError::Inexact) where the rounding is [`Exact`](Rounding::Exact).
    pub fn from_f64(value: f64, rounding: Rounding) -> Result<Self, FixedError> {
        if value.is_nan() {
            return Err(FixedError::NotANumber);
        }
        if value.is_infinite() {
            return Err(FixedError::OutOfRange);
        }
        let bits = value.to_bits();
        let (exponent, fraction) = ((bits >> 52) as u32 & 0x7FF, u128::from(bits & ((1 << 52) - 1)));
        // The value is `significand` times 2 to the power of `power`.
        let (significand, power) = match exponent {
            0 => (fraction, -1074),
            _ => (fraction | 1 << 52, exponent.cast_signed() - 1075),
        };
        // A power of 10 is a power of 5 times a power of 2. The product has at most 125 bits.
        let scaled = significand * 5_u128.pow(SCALE);
        let power = power + SCALE.cast_signed();
        let quotient = match u32::try_from(power) {
            Ok(bits) if scaled.leading_zeros() >= bits => Some((scaled << bits, magnitude::Remainder::Zero)),
            Ok(_) => None,
            Err(_) => Some(magnitude::without_last_bits(scaled, power.unsigned_abs())),
        };
        round_and_sign(value.is_sign_negative(), quotient, rounding)
    }
}

impl<const DIGITS: u32, const SCALE: u32> From<Fixed<DIGITS, SCALE>> for f64 {
    fn from(value: Fixed<DIGITS, SCALE>) -> f64 {
        value.to_f64()
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl<const DIGITS: u32, const SCALE: u32> TryFrom<$integer> for Fixed<DIGITS, SCALE> {
            type Error = FixedError;

            fn try_from(value: $integer) -> Result<Self, FixedError> {
                let value = i128::try_from(value).map_err(|_| FixedError::OutOfRange)?;
                round_and_sign(value < 0, magnitude::rescaled(value.unsigned_abs(), 0, SCALE), Rounding::Exact)
            }
        }

        impl<const DIGITS: u32, const SCALE: u32> TryFrom<Fixed<DIGITS, SCALE>> for $integer {
            type Error = FixedError;

            /// Fails if digits after the point are not zeros. [`to_integer`](Fixed::to_integer) rounds.
            fn try_from(value: Fixed<DIGITS, SCALE>) -> Result<$integer, FixedError> {
                value.to_integer(Rounding::Exact)?.try_into().map_err(|_| FixedError::OutOfRange)
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);
