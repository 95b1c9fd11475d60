//! Arithmetic on unsigned decimal numbers: products of up to 62 digits, quotients, and rounding.

use core::cmp::Ordering;

use super::{FixedError, MAX_DIGITS, Rounding};

/// Number of digits that are processed at a time: `10^(31 + STEP_DIGITS)` still fits in a `u128`.
const STEP_DIGITS: u32 = 6;

/// The part that rounding cuts off a number, compared to half a unit of the last remaining digit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Remainder {
    Zero,
    BelowHalf,
    Half,
    AboveHalf,
}

impl Remainder {
    fn of_fraction(rest: u128, divisor: u128) -> Remainder {
        match rest.cmp(&divisor.saturating_sub(rest)) {
            _ if rest == 0 => Remainder::Zero,
            Ordering::Less => Remainder::BelowHalf,
            Ordering::Equal => Remainder::Half,
            Ordering::Greater => Remainder::AboveHalf,
        }
    }

    /// Returns the class of this part if more digits follow it. `are_nonzero`: not all of them are zero.
    fn with_more_digits(self, are_nonzero: bool) -> Remainder {
        match self {
            Remainder::Zero if are_nonzero => Remainder::BelowHalf,
            Remainder::Half if are_nonzero => Remainder::AboveHalf,
            rest => rest,
        }
    }
}

/// Rounds a number with the digits `whole` and the cut-off part `rest`. `None` if the result is too large.
pub(super) fn rounded(
    negative: bool,
    (whole, rest): (u128, Remainder),
    rounding: Rounding,
) -> Result<Option<u128>, FixedError> {
    let rounds_up = match rounding {
        _ if rest == Remainder::Zero => false,
        Rounding::Exact => return Err(FixedError::Inexact),
        Rounding::Truncate => false,
        Rounding::HalfAwayFromZero => rest != Remainder::BelowHalf,
        Rounding::HalfEven => rest == Remainder::AboveHalf || rest == Remainder::Half && whole % 2 == 1,
        Rounding::Floor => negative,
        Rounding::Ceiling => !negative,
    };
    Ok(whole.checked_add(u128::from(rounds_up)))
}

pub(super) fn without_last_digits(n: u128, digits: u32) -> (u128, Remainder) {
    divided(n, 10_u128.checked_pow(digits))
}

/// `n` must have less than 127 bits.
pub(super) fn without_last_bits(n: u128, bits: u32) -> (u128, Remainder) {
    divided(n, 1_u128.checked_shl(bits))
}

/// Returns the quotient and the class of the remainder. A divisor of `None` stands for a power of 10 or 2
/// that exceeds a `u128`. It is always more than twice `n`: the power of 10 is at least 10^39, and with a
/// power of 2, `n` has less than 127 bits.
fn divided(n: u128, divisor: Option<u128>) -> (u128, Remainder) {
    match divisor {
        Some(divisor) => (n / divisor, Remainder::of_fraction(n % divisor, divisor)),
        None => (0, if n == 0 { Remainder::Zero } else { Remainder::BelowHalf }),
    }
}

/// Converts `n` from `from` to `to` digits after the point. `None` if the result is too large.
pub(super) fn rescaled(n: u128, from: u32, to: u32) -> Option<(u128, Remainder)> {
    if to < from {
        return Some(without_last_digits(n, from - to));
    }
    Some((n.checked_mul(10_u128.checked_pow(to - from)?)?, Remainder::Zero))
}

/// Returns the product of two numbers of up to 31 digits, converted from `from` digits after the point to
/// `to` digits. `None` if the result is too large.
pub(super) fn product(a: u128, b: u128, from: u32, to: u32) -> Option<(u128, Remainder)> {
    if let Some(product) = a.checked_mul(b) {
        return rescaled(product, from, to);
    }
    // The product has at least 39 digits, and a result at most 31, so digits can only be removed.
    let digits = from.checked_sub(to)?;
    let (high, low) = wide_product(a, b);
    if digits > MAX_DIGITS {
        let (whole, rest) = without_last_digits(high, digits - MAX_DIGITS);
        return Some((whole, rest.with_more_digits(low != 0)));
    }
    let (whole, rest) = without_last_digits(low, digits);
    let high = high.checked_mul(10_u128.pow(MAX_DIGITS - digits))?;
    Some((high.checked_add(whole)?, rest))
}

/// Returns the product of two numbers of up to 31 digits, split before its last 31 digits.
fn wide_product(a: u128, b: u128) -> (u128, u128) {
    const STEP: u128 = 10_u128.pow(STEP_DIGITS);
    const SPLIT: u128 = 10_u128.pow(MAX_DIGITS);
    (0..MAX_DIGITS.div_ceil(STEP_DIGITS)).rev().fold((0, 0), |(high, low), step| {
        let digits = b / STEP.pow(step) % STEP;
        let low = low * STEP + a * digits;
        (high * STEP + low / SPLIT, low % SPLIT)
    })
}

/// Returns the quotient of two numbers of up to 31 digits, with `to` digits after the point. `from` is the
/// scale of `a` minus the scale of `b`. `None` if `b` is zero or the result is too large.
pub(super) fn quotient(a: u128, b: u128, from: i64, to: i64) -> Option<(u128, Remainder)> {
    let (mut whole, mut remainder) = (a.checked_div(b)?, a.checked_rem(b)?);
    let Ok(mut missing_digits) = u32::try_from(to - from) else {
        let (whole, rest) = without_last_digits(whole, u32::try_from(from - to).ok()?);
        return Some((whole, rest.with_more_digits(remainder != 0)));
    };
    while missing_digits > 0 {
        let digits = missing_digits.min(STEP_DIGITS);
        remainder *= 10_u128.pow(digits);
        whole = whole.checked_mul(10_u128.pow(digits))?.checked_add(remainder.checked_div(b)?)?;
        remainder = remainder.checked_rem(b)?;
        missing_digits -= digits;
    }
    Some((whole, Remainder::of_fraction(remainder, b)))
}
