//! Arithmetic on [`Fixed`]: operators, and methods with explicit rounding and overflow handling.

use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use super::{Fixed, FixedError, Rounding, magnitude};

impl<const DIGITS: u32, const SCALE: u32> Fixed<DIGITS, SCALE> {
    /// Returns the exact sum, or `None` if it has too many digits.
    #[inline]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        Self::from_unscaled(self.0 + other.0)
    }

    /// Returns the exact difference, or `None` if it has too many digits.
    #[inline]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        Self::from_unscaled(self.0 - other.0)
    }

    /// Returns the product, truncated to `SCALE` digits after the point. `None` if it has too many digits
    /// before the point.
    pub fn checked_mul<const D: u32, const S: u32>(self, other: Fixed<D, S>) -> Option<Self> {
        self.mul_to(other, Rounding::Truncate).ok()
    }

    /// Returns the quotient, truncated to `SCALE` digits after the point. `None` if it has too many digits
    /// before the point, or if `other` is zero.
    pub fn checked_div<const D: u32, const S: u32>(self, other: Fixed<D, S>) -> Option<Self> {
        self.div_to(other, Rounding::Truncate).ok()
    }

    /// Returns the product as the requested type. `Fixed<{DIGITS + D}, {SCALE + S}>` can hold every product.
    ///
    /// # Errors
    /// [`OutOfRange`](FixedError::OutOfRange), and [`Inexact`](FixedError::Inexact) where the rounding is
    /// [`Exact`](Rounding::Exact).
    pub fn mul_to<const D: u32, const S: u32, const DR: u32, const SR: u32>(
        self,
        other: Fixed<D, S>,
        rounding: Rounding,
    ) -> Result<Fixed<DR, SR>, FixedError> {
        let negative = self.is_negative() != other.is_negative();
        let product = magnitude::product(self.0.unsigned_abs(), other.0.unsigned_abs(), SCALE + S, SR);
        round_and_sign(negative, product, rounding)
    }

    /// Returns the quotient as the requested type.
    ///
    /// # Errors
    /// [`DivisionByZero`](FixedError::DivisionByZero), [`OutOfRange`](FixedError::OutOfRange), and
    /// [`Inexact`](FixedError::Inexact) where the rounding is [`Exact`](Rounding::Exact).
    pub fn div_to<const D: u32, const S: u32, const DR: u32, const SR: u32>(
        self,
        other: Fixed<D, S>,
        rounding: Rounding,
    ) -> Result<Fixed<DR, SR>, FixedError> {
        if other.is_zero() {
            return Err(FixedError::DivisionByZero);
        }
        let negative = self.is_negative() != other.is_negative();
        let (a, b, scale) = (self.0.unsigned_abs(), other.0.unsigned_abs(), i64::from(SCALE) - i64::from(S));
        let quotient = magnitude::quotient(a, b, scale, i64::from(SR));
        round_and_sign(negative, quotient, rounding)
    }

    /// Converts to the requested type, rounded to its scale.
    ///
    /// ```
    /// use giop_codec::cdr::{Fixed, FixedError, Rounding};
    /// let exact: Fixed<5, 3> = "2.345".parse()?;
    /// assert_eq!(exact.rescale::<3, 2>(Rounding::HalfEven)?.to_string(), "2.34");
    /// assert_eq!(exact.rescale::<3, 2>(Rounding::Exact), Err(FixedError::Inexact));
    /// # Ok::<(), FixedError>(())
    /// ```
    ///
    /// # Errors
    /// [`OutOfRange`](FixedError::OutOfRange), and [`Inexact`](FixedError::Inexact) where the rounding is
    /// [`Exact`](Rounding::Exact).
    pub fn rescale<const D: u32, const S: u32>(self, rounding: Rounding) -> Result<Fixed<D, S>, FixedError> {
        round_and_sign(self.is_negative(), magnitude::rescaled(self.0.unsigned_abs(), SCALE, S), rounding)
    }

    /// Rounds to `places` digits after the point, and sets the following digits to zero. `None` if rounding
    /// adds a digit that does not fit, or if [`Exact`](Rounding::Exact) rounding would lose digits.
    #[doc(alias = "round")]
    pub fn round_to(self, places: u32, rounding: Rounding) -> Option<Self> {
        let Some(zeros) = SCALE.checked_sub(places) else { return Some(self) };
        let quotient = magnitude::without_last_digits(self.0.unsigned_abs(), zeros);
        let rounded = magnitude::rounded(self.is_negative(), quotient, rounding).ok()??;
        let magnitude = rounded.checked_mul(10_u128.checked_pow(zeros)?);
        Self::from_magnitude(self.is_negative(), magnitude).ok()
    }

    /// Truncates to `places` digits after the point, and sets the following digits to zero.
    #[doc(alias = "truncate")]
    pub fn truncate_to(self, places: u32) -> Self {
        // Cannot fail: truncation adds no digit.
        self.round_to(places, Rounding::Truncate).unwrap_or(self)
    }
}

/// Rounds a magnitude and adds the sign. `None` stands for a magnitude that is out of range.
pub(super) fn round_and_sign<const D: u32, const S: u32>(
    negative: bool,
    magnitude: Option<(u128, magnitude::Remainder)>,
    rounding: Rounding,
) -> Result<Fixed<D, S>, FixedError> {
    let magnitude = magnitude.ok_or(FixedError::OutOfRange)?;
    Fixed::from_magnitude(negative, magnitude::rounded(negative, magnitude, rounding)?)
}

#[cold]
#[track_caller]
#[allow(clippy::panic, reason = "operators panic like those of integers; `checked` and `_to` methods do not")]
fn panic_without_result(operation: &str, error: FixedError) -> ! {
    match error {
        FixedError::DivisionByZero => panic!("attempt to {operation} a fixed by zero"),
        _ => panic!("attempt to {operation} fixed numbers with overflow"),
    }
}

/// Implements an operator and the corresponding assignment operator.
macro_rules! operators {
    ($(
        $trait:ident $method:ident $assign_trait:ident $assign:ident $other:ty $(, $d:ident $s:ident)?,
        $operation:literal, |$a:ident, $b:ident| $result:expr, $panics:literal;
    )*) => {$(
        impl<const DIGITS: u32, const SCALE: u32 $(, const $d: u32, const $s: u32)?> $trait<$other>
            for Fixed<DIGITS, SCALE>
        {
            type Output = Self;

            /// # Panics
            #[doc = $panics]
            #[track_caller]
            fn $method(self, $b: $other) -> Self {
                let $a = self;
                match $result {
                    Ok(result) => result,
                    Err(error) => panic_without_result($operation, error),
                }
            }
        }

        impl<const DIGITS: u32, const SCALE: u32 $(, const $d: u32, const $s: u32)?> $assign_trait<$other>
            for Fixed<DIGITS, SCALE>
        {
            /// # Panics
            #[doc = $panics]
            #[track_caller]
            fn $assign(&mut self, other: $other) {
                *self = (*self).$method(other);
            }
        }
    )*};
}

operators! {
    Add add AddAssign add_assign Self, "add", |a, b| a.checked_add(b).ok_or(FixedError::OutOfRange),
        "The sum has too many digits.";
    Sub sub SubAssign sub_assign Self, "subtract", |a, b| a.checked_sub(b).ok_or(FixedError::OutOfRange),
        "The difference has too many digits.";
    Mul mul MulAssign mul_assign Fixed<D, S>, D S, "multiply", |a, b| a.mul_to(b, Rounding::Truncate),
        "The product has too many digits before the point. It is truncated to `SCALE` digits after the point.";
    Div div DivAssign div_assign Fixed<D, S>, D S, "divide", |a, b| a.div_to(b, Rounding::Truncate),
        "The divisor is zero, or the quotient has too many digits before the point. The quotient is truncated.";
    Mul mul MulAssign mul_assign i64, "multiply", |a, b| a.mul_to(from_i64(b), Rounding::Truncate),
        "The product has too many digits.";
    Div div DivAssign div_assign i64, "divide", |a, b| a.div_to(from_i64(b), Rounding::Truncate),
        "The divisor is zero.";
}

/// Converts an integer. An `i64` has at most 19 digits.
fn from_i64(value: i64) -> Fixed<19, 0> {
    Fixed(i128::from(value))
}

impl<const DIGITS: u32, const SCALE: u32> Neg for Fixed<DIGITS, SCALE> {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        Fixed(-self.0)
    }
}

impl<const DIGITS: u32, const SCALE: u32> Sum for Fixed<DIGITS, SCALE> {
    /// # Panics
    /// An intermediate sum has too many digits.
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, |sum, item| sum + item)
    }
}

impl<'a, const DIGITS: u32, const SCALE: u32> Sum<&'a Self> for Fixed<DIGITS, SCALE> {
    /// # Panics
    /// An intermediate sum has too many digits.
    fn sum<I: Iterator<Item = &'a Self>>(items: I) -> Self {
        items.copied().sum()
    }
}
