//! Arithmetic: methods with explicit rounding and overflow handling, and operators.

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

    /// Returns the product, truncated to `SCALE` digits after the point, or `None` if it has too many before
    /// the point.
    pub fn checked_mul<const D: u32, const S: u32>(self, other: Fixed<D, S>) -> Option<Self> {
        self.mul_to(other, Rounding::Truncate).ok()
    }

    /// Returns the quotient, truncated to `SCALE` digits after the point. `None` if it has too many before
    /// the point, or `other` is zero.
    pub fn checked_div<const D: u32, const S: u32>(self, other: Fixed<D, S>) -> Option<Self> {
        self.div_to(other, Rounding::Truncate).ok()
    }

    /// Returns the product as the requested type. A type with the sum of the digits and the sum of the scales
    /// loses nothing.
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
        finish(negative, product, rounding)
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
        let scale = i64::from(SCALE) - i64::from(S);
        let quotient =
            magnitude::quotient(self.0.unsigned_abs(), other.0.unsigned_abs(), scale, i64::from(SR));
        finish(negative, quotient, rounding)
    }

    /// Returns the same number as the requested type.
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
        finish(self.is_negative(), magnitude::moved(self.0.unsigned_abs(), SCALE, S), rounding)
    }

    /// Rounds to `places` digits after the point; the following digits are zeros. `None` if rounding adds a
    /// digit that does not fit.
    #[doc(alias = "round")]
    pub fn round_to(self, places: u32, rounding: Rounding) -> Option<Self> {
        let Some(zeros) = SCALE.checked_sub(places) else { return Some(self) };
        let cut = magnitude::cut(self.0.unsigned_abs(), zeros);
        let whole = magnitude::rounded(self.is_negative(), cut, rounding).ok()??;
        let magnitude = whole.checked_mul(10_u128.checked_pow(zeros)?);
        Self::from_magnitude(self.is_negative(), magnitude).ok()
    }

    /// Truncates to `places` digits after the point; the following digits are zeros.
    #[doc(alias = "truncate")]
    pub fn truncate_to(self, places: u32) -> Self {
        // Cannot fail: truncation adds no digit.
        self.round_to(places, Rounding::Truncate).unwrap_or(self)
    }
}

/// Returns the result of an operation on magnitudes.
pub(super) fn finish<const D: u32, const S: u32>(
    negative: bool,
    cut: Option<(u128, magnitude::Rest)>,
    rounding: Rounding,
) -> Result<Fixed<D, S>, FixedError> {
    let cut = cut.ok_or(FixedError::OutOfRange)?;
    Fixed::from_magnitude(negative, magnitude::rounded(negative, cut, rounding)?)
}

/// Panics for an operator without a result.
#[cold]
#[track_caller]
#[allow(clippy::panic, reason = "operators do as those of integers; there are methods that do not panic")]
fn no_result(operation: &str, error: FixedError) -> ! {
    match error {
        FixedError::DivisionByZero => panic!("attempt to {operation} a fixed by zero"),
        _ => panic!("attempt to {operation} fixed numbers with overflow"),
    }
}

impl<const DIGITS: u32, const SCALE: u32> Add for Fixed<DIGITS, SCALE> {
    type Output = Self;

    /// # Panics
    /// The sum has too many digits.
    #[track_caller]
    fn add(self, other: Self) -> Self {
        match self.checked_add(other) {
            Some(sum) => sum,
            None => no_result("add", FixedError::OutOfRange),
        }
    }
}

impl<const DIGITS: u32, const SCALE: u32> Sub for Fixed<DIGITS, SCALE> {
    type Output = Self;

    /// # Panics
    /// The difference has too many digits.
    #[track_caller]
    fn sub(self, other: Self) -> Self {
        match self.checked_sub(other) {
            Some(difference) => difference,
            None => no_result("subtract", FixedError::OutOfRange),
        }
    }
}

impl<const DIGITS: u32, const SCALE: u32, const D: u32, const S: u32> Mul<Fixed<D, S>>
    for Fixed<DIGITS, SCALE>
{
    type Output = Self;

    /// Returns the product, truncated to `SCALE` digits after the point.
    ///
    /// # Panics
    /// The product has too many digits before the point.
    #[track_caller]
    fn mul(self, other: Fixed<D, S>) -> Self {
        match self.mul_to(other, Rounding::Truncate) {
            Ok(product) => product,
            Err(error) => no_result("multiply", error),
        }
    }
}

impl<const DIGITS: u32, const SCALE: u32, const D: u32, const S: u32> Div<Fixed<D, S>>
    for Fixed<DIGITS, SCALE>
{
    type Output = Self;

    /// Returns the quotient, truncated to `SCALE` digits after the point.
    ///
    /// # Panics
    /// `other` is zero, or the quotient has too many digits before the point.
    #[track_caller]
    fn div(self, other: Fixed<D, S>) -> Self {
        match self.div_to(other, Rounding::Truncate) {
            Ok(quotient) => quotient,
            Err(error) => no_result("divide", error),
        }
    }
}

impl<const DIGITS: u32, const SCALE: u32> Mul<i64> for Fixed<DIGITS, SCALE> {
    type Output = Self;

    /// # Panics
    /// The product has too many digits.
    #[track_caller]
    fn mul(self, other: i64) -> Self {
        self * whole(other)
    }
}

impl<const DIGITS: u32, const SCALE: u32> Div<i64> for Fixed<DIGITS, SCALE> {
    type Output = Self;

    /// Returns the quotient, truncated to `SCALE` digits after the point.
    ///
    /// # Panics
    /// `other` is zero.
    #[track_caller]
    fn div(self, other: i64) -> Self {
        self / whole(other)
    }
}

/// Converts an integer, which has at most 19 digits.
fn whole(value: i64) -> Fixed<19, 0> {
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

macro_rules! assign {
    ($($trait:ident $method:ident $operator:tt $other:ty $(, $d:ident $s:ident)?;)*) => {$(
        impl<const DIGITS: u32, const SCALE: u32 $(, const $d: u32, const $s: u32)?> $trait<$other>
            for Fixed<DIGITS, SCALE>
        {
            /// # Panics
            /// Those of the operator without assignment.
            #[track_caller]
            fn $method(&mut self, other: $other) {
                *self = *self $operator other;
            }
        }
    )*};
}

assign! {
    AddAssign add_assign + Self;
    SubAssign sub_assign - Self;
    MulAssign mul_assign * Fixed<D, S>, D S;
    DivAssign div_assign / Fixed<D, S>, D S;
    MulAssign mul_assign * i64;
    DivAssign div_assign / i64;
}
