//! [`LongDouble`]: IEEE 754 binary128.

use core::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// An IDL `long double`: an IEEE 754 binary128 number, with 15 bits of exponent and 112 of fraction.
///
/// It has no arithmetic. It can be converted to `f64`, and from `f64` and `f32`.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct LongDouble(
    /// The number in native byte order. An array, because CDR aligns it to 8, but Rust aligns `u128` to 16.
    [u8; 16],
);

const FRACTION_BITS: u32 = 112;
const FRACTION_MASK: u128 = (1 << FRACTION_BITS) - 1;
const EXPONENT_MAX: u32 = 0x7FFF;
const BIAS: i32 = 16383;
const F64_BIAS: i32 = 1023;
const F64_FRACTION_BITS: u32 = 52;
const EXTRA_BITS: u32 = FRACTION_BITS - F64_FRACTION_BITS;

impl LongDouble {
    /// Creates the number with these bits. The sign is the most significant bit.
    #[inline]
    pub const fn from_bits(bits: u128) -> LongDouble {
        LongDouble(bits.to_ne_bytes())
    }

    /// Returns the bits. The sign is the most significant bit.
    #[inline]
    pub const fn to_bits(self) -> u128 {
        u128::from_ne_bytes(self.0)
    }

    /// Creates the number with these bytes, the most significant first.
    pub const fn from_be_bytes(bytes: [u8; 16]) -> LongDouble {
        LongDouble::from_bits(u128::from_be_bytes(bytes))
    }

    /// Returns the bytes, the most significant first.
    pub const fn to_be_bytes(self) -> [u8; 16] {
        self.to_bits().to_be_bytes()
    }

    /// Returns whether this is not a number.
    pub const fn is_nan(self) -> bool {
        let bits = self.to_bits();
        (bits >> FRACTION_BITS) as u32 & EXPONENT_MAX == EXPONENT_MAX && bits & FRACTION_MASK != 0
    }

    /// Returns the nearest `f64`, the even one of two equally near ones, or an infinity if out of range.
    pub fn to_f64(self) -> f64 {
        let bits = self.to_bits();
        let sign = ((bits >> 127) as u64) << 63;
        let exponent = (bits >> FRACTION_BITS) as u32 & EXPONENT_MAX;
        let fraction = bits & FRACTION_MASK;
        if exponent == EXPONENT_MAX {
            let quiet = if fraction == 0 { 0 } else { 1 << 51 };
            return f64::from_bits(sign | 0x7FF << 52 | quiet | (fraction >> EXTRA_BITS) as u64);
        }
        // Numbers with exponent 0 are less than 2^-16382, and correctly rounded to zero below.
        let exponent = exponent.cast_signed() - BIAS + F64_BIAS;
        let significand = fraction | 1 << FRACTION_BITS;
        if exponent >= 0x7FF {
            return f64::from_bits(sign | 0x7FF << 52);
        }
        // A subnormal result loses one more bit for each step of the exponent below 1.
        let (shift, base) = if exponent > 0 {
            (EXTRA_BITS, (exponent.cast_unsigned() as u64 - 1) << 52)
        } else {
            ((EXTRA_BITS + 1).saturating_add_signed(-exponent), 0)
        };
        if shift > 127 {
            return f64::from_bits(sign);
        }
        let whole = (significand >> shift) as u64;
        let rest = significand & ((1 << shift) - 1);
        let half = 1 << (shift - 1);
        let carry = u64::from(rest > half || rest == half && whole & 1 == 1);
        // The addition adds the leading bit of `whole` and a carry from rounding to the exponent.
        f64::from_bits(sign | (base + whole + carry))
    }
}

impl From<f64> for LongDouble {
    /// Converts the number exactly.
    fn from(value: f64) -> LongDouble {
        let bits = value.to_bits();
        let sign = u128::from(bits >> 63) << 127;
        let exponent = (bits >> 52) as u32 & 0x7FF;
        let fraction = u128::from(bits & ((1 << 52) - 1));
        let (exponent, fraction) = match (exponent, fraction) {
            (0x7FF, _) => (EXPONENT_MAX, fraction << EXTRA_BITS),
            (0, 0) => (0, 0),
            (0, _) => {
                // Subnormal as `f64`, normal as `LongDouble`: move the leading bit out of the fraction.
                let shift = fraction.leading_zeros() - (127 - FRACTION_BITS);
                let exponent = BIAS - F64_BIAS + 1 - (shift.cast_signed() - EXTRA_BITS.cast_signed());
                (exponent.cast_unsigned(), fraction << shift & FRACTION_MASK)
            }
            _ => (exponent.wrapping_add_signed(BIAS - F64_BIAS), fraction << EXTRA_BITS),
        };
        LongDouble::from_bits(sign | u128::from(exponent) << FRACTION_BITS | fraction)
    }
}

impl From<f32> for LongDouble {
    fn from(value: f32) -> LongDouble {
        LongDouble::from(f64::from(value))
    }
}

impl From<LongDouble> for f64 {
    fn from(value: LongDouble) -> f64 {
        value.to_f64()
    }
}

impl PartialEq for LongDouble {
    /// Compares as `f64` does: NaN is not equal to any number, and the two zeros are equal.
    fn eq(&self, other: &LongDouble) -> bool {
        let (a, b) = (self.to_bits(), other.to_bits());
        let both_zero = (a | b) << 1 == 0;
        !self.is_nan() && (a == b || both_zero)
    }
}

impl fmt::Debug for LongDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LongDouble({:?} = 0x{:032x})", self.to_f64(), self.to_bits())
    }
}

impl fmt::Display for LongDouble {
    /// Writes the number as the nearest `f64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_f64().fmt(f)
    }
}
