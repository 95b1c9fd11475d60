//! Arithmetic on digits without a sign: products of up to 62 digits, quotients, and their rounding.

use core::cmp::Ordering;

use super::{FixedError, MAX_DIGITS, Rounding};

/// Number of digits that are processed at a time. 10 to the power of 31 plus this number still fits a `u128`.
const STEP: u32 = 6;

/// The cut-off part of a number, compared to half a unit of its last digit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    BelowHalf,
    Half,
    AboveHalf,
}

impl Rest {
    /// Classifies the fraction `rest / of`.
    fn of(rest: u128, of: u128) -> Rest {
        match rest.cmp(&of.saturating_sub(rest)) {
            _ if rest == 0 => Rest::Nothing,
            Ordering::Less => Rest::BelowHalf,
            Ordering::Equal => Rest::Half,
            Ordering::Greater => Rest::AboveHalf,
        }
    }

    /// Returns the class of this part followed by a nonzero one (`more`) that is less than any digit of it.
    fn and_more(self, more: bool) -> Rest {
        match self {
            Rest::Nothing if more => Rest::BelowHalf,
            Rest::Half if more => Rest::AboveHalf,
            rest => rest,
        }
    }
}

/// Rounds a cut number to a whole one. `None` if it is too large.
pub(super) fn rounded(
    negative: bool,
    (whole, rest): (u128, Rest),
    rounding: Rounding,
) -> Result<Option<u128>, FixedError> {
    let up = match rounding {
        _ if rest == Rest::Nothing => false,
        Rounding::Exact => return Err(FixedError::Inexact),
        Rounding::Truncate => false,
        Rounding::HalfAwayFromZero => rest != Rest::BelowHalf,
        Rounding::HalfEven => rest == Rest::AboveHalf || rest == Rest::Half && whole % 2 == 1,
        Rounding::Floor => negative,
        Rounding::Ceiling => !negative,
    };
    Ok(whole.checked_add(u128::from(up)))
}

/// Returns `n` without its last `digits` digits.
pub(super) fn cut(n: u128, digits: u32) -> (u128, Rest) {
    match 10_u128.checked_pow(digits) {
        Some(divisor) => (n / divisor, Rest::of(n % divisor, divisor)),
        // Half of 10 to the power of 39 is more than any `u128`.
        None => (0, if n == 0 { Rest::Nothing } else { Rest::BelowHalf }),
    }
}

/// Returns `n` times 2 to the power of `-bits`, cut to a whole number.
pub(super) fn cut_bits(n: u128, bits: u32) -> (u128, Rest) {
    match 1_u128.checked_shl(bits) {
        Some(divisor) => (n / divisor, Rest::of(n % divisor, divisor)),
        // The caller's numbers have less than 127 bits.
        None => (0, if n == 0 { Rest::Nothing } else { Rest::BelowHalf }),
    }
}

/// Converts `n` from `from` digits after the point to `to` digits. `None` if it is too large.
pub(super) fn moved(n: u128, from: u32, to: u32) -> Option<(u128, Rest)> {
    if to < from {
        return Some(cut(n, from - to));
    }
    Some((n.checked_mul(10_u128.checked_pow(to - from)?)?, Rest::Nothing))
}

/// Returns the product of two numbers of up to 31 digits, converted from `from` digits after the point to
/// `to` digits. `None` if it is too large.
pub(super) fn product(a: u128, b: u128, from: u32, to: u32) -> Option<(u128, Rest)> {
    if let Some(product) = a.checked_mul(b) {
        return moved(product, from, to);
    }
    // The product has more than 38 digits. No digits can be added, because the result has at most 31.
    let digits = from.checked_sub(to)?;
    let (high, low) = wide_product(a, b);
    if digits > MAX_DIGITS {
        let (whole, rest) = cut(high, digits - MAX_DIGITS);
        return Some((whole, rest.and_more(low != 0)));
    }
    let (whole, rest) = cut(low, digits);
    let high = high.checked_mul(10_u128.pow(MAX_DIGITS - digits))?;
    Some((high.checked_add(whole)?, rest))
}

/// Returns the product of two numbers of up to 31 digits, split before its last 31 digits.
fn wide_product(a: u128, b: u128) -> (u128, u128) {
    const HALF: u128 = 10_u128.pow(MAX_DIGITS);
    let steps = MAX_DIGITS.div_ceil(STEP);
    (0..steps).rev().fold((0, 0), |(high, low), step| {
        let digits = b / 10_u128.pow(step * STEP) % 10_u128.pow(STEP);
        let low = low * 10_u128.pow(STEP) + a * digits;
        (high * 10_u128.pow(STEP) + low / HALF, low % HALF)
    })
}

/// Returns the quotient of two numbers of up to 31 digits with `to` digits after the point. `from` is the
/// number of digits after the point of the quotient of both as integers. `None` if it is too large. The
/// divisor is not zero.
pub(super) fn quotient(a: u128, b: u128, from: i64, to: i64) -> Option<(u128, Rest)> {
    let (mut whole, mut left) = (a.checked_div(b)?, a.checked_rem(b)?);
    let Ok(digits) = u32::try_from(to - from) else {
        let (whole, rest) = cut(whole, u32::try_from(from - to).ok()?);
        return Some((whole, rest.and_more(left != 0)));
    };
    let mut missing = digits;
    while missing > 0 {
        let by = missing.min(STEP);
        left *= 10_u128.pow(by);
        whole = whole.checked_mul(10_u128.pow(by))?.checked_add(left.checked_div(b)?)?;
        left = left.checked_rem(b)?;
        missing -= by;
    }
    Some((whole, Rest::of(left, b)))
}
