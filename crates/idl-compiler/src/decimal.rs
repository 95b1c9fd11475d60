//! Decimal numbers of constant expressions. They are exact except for digits that IDL truncates ("Constants":
//! fixed-point arithmetic).

/// Maximum number of digits of a fixed-point number. Further digits of a result are truncated, not rounded.
pub(crate) const MAX_DIGITS: usize = 31;

/// Maximum number of fractional digits of an intermediate result: twice that of a number.
const MAX_SCALE: usize = 62;

/// A decimal number of at most [`MAX_DIGITS`] significant digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    /// Starts at the first non-zero digit. If there are fractional digits, the last one is not zero. Empty
    /// for zero.
    digits: Vec<u8>,
    /// Number of digits after the point, including leading zeros.
    scale: usize,
}

impl Decimal {
    /// Parses a literal without its `d`; `None` if it has more significant digits than a number can have.
    pub(crate) fn parse(text: &str) -> Option<Decimal> {
        let text = text.strip_suffix(['d', 'D']).unwrap_or(text);
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = whole.bytes().chain(fraction.bytes()).map(|digit| digit.wrapping_sub(b'0')).collect();
        let number = Decimal { negative: false, digits, scale: fraction.len() }.trimmed();
        (number.digits.len() <= MAX_DIGITS && number.scale <= MAX_DIGITS).then_some(number)
    }

    /// Parses a floating-point literal; `None` if it has more significant digits than a number can have.
    pub(crate) fn parse_float(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: Vec<u8> =
            whole.bytes().chain(fraction.bytes()).map(|digit| digit.wrapping_sub(b'0')).collect();
        let number = Decimal { negative: false, digits, scale: fraction.len() }.trimmed();
        if number.is_zero() {
            return Some(number);
        }
        let scale = i64::try_from(number.scale).ok()?.checked_sub(exponent.parse().ok()?)?;
        let (most, mut digits) = (MAX_DIGITS as i64, number.digits);
        if scale > most || digits.len() > MAX_DIGITS || digits.len() as i64 - scale > most {
            return None;
        }
        // Zeros before the point that the exponent adds: at most as many as a number has digits.
        digits.extend(std::iter::repeat_n(0, usize::try_from(-scale).unwrap_or(0)));
        Some(Decimal { negative: false, digits, scale: usize::try_from(scale).unwrap_or(0) }.trimmed())
    }

    /// Returns the number `unscaled` times 10 to the power of `-scale`.
    pub(crate) fn from_unscaled(unscaled: i128, scale: u32) -> Decimal {
        let digits = unscaled.unsigned_abs().to_string().bytes().map(|digit| digit - b'0').collect();
        Decimal { negative: unscaled < 0, digits, scale: scale as usize }.trimmed()
    }

    /// Returns the digits and scale of the smallest type that holds the number, and the value in that type.
    /// Digits beyond the largest type are truncated.
    pub(crate) fn fitted(self) -> (u8, u8, i128) {
        let number = self.whole_and_cut(MAX_DIGITS).1;
        let digits = number.digits.len().max(number.scale).max(1);
        // At most 31 digits each.
        let magnitude = number.magnitude().cast_signed();
        (digits as u8, number.scale as u8, if number.negative { -magnitude } else { magnitude })
    }

    /// Returns the number of digits before the point, and the number truncated to `places` fractional digits.
    pub(crate) fn whole_and_cut(&self, places: usize) -> (usize, Decimal) {
        let mut cut = self.clone();
        let surplus = self.scale.saturating_sub(places);
        cut.digits.truncate(self.digits.len().saturating_sub(surplus));
        cut.scale -= surplus;
        (self.digits.len().saturating_sub(self.scale), cut.trimmed())
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub(crate) fn negated(self) -> Decimal {
        Decimal { negative: !self.negative && !self.is_zero(), ..self }
    }

    /// Returns the sum; like every result, `None` if it has too many digits before the point.
    pub(crate) fn plus(self, other: Decimal) -> Option<Decimal> {
        let scale = self.scale.max(other.scale);
        let (left, right) = (self.aligned(scale), other.aligned(scale));
        if self.negative == other.negative {
            return Decimal { negative: self.negative, digits: added(&left, &right), scale }.cut();
        }
        let left_is_greater = without_leading_zeros(&left).len() > without_leading_zeros(&right).len()
            || without_leading_zeros(&left).len() == without_leading_zeros(&right).len()
                && without_leading_zeros(&left) >= without_leading_zeros(&right);
        let (negative, digits) = if left_is_greater {
            (self.negative, subtracted(&left, &right))
        } else {
            (other.negative, subtracted(&right, &left))
        };
        Decimal { negative, digits, scale }.cut()
    }

    pub(crate) fn times(self, other: Decimal) -> Option<Decimal> {
        let mut product = vec![0u32; self.digits.len() + other.digits.len()];
        for (i, left) in self.digits.iter().rev().enumerate() {
            for (place, right) in product.iter_mut().skip(i).zip(other.digits.iter().rev()) {
                *place += u32::from(*left) * u32::from(*right);
            }
        }
        let mut carry = 0;
        for place in &mut product {
            carry += *place;
            *place = carry % 10;
            carry /= 10;
        }
        let digits = product.iter().rev().map(|digit| *digit as u8).collect();
        let scale = self.scale + other.scale;
        Decimal { negative: self.negative != other.negative, digits, scale }.cut()
    }

    /// Returns the quotient. The divisor must not be zero.
    pub(crate) fn divided_by(self, other: Decimal) -> Option<Decimal> {
        let divisor = other.magnitude();
        let (mut whole, mut left) =
            (self.magnitude().checked_div(divisor)?, self.magnitude().checked_rem(divisor)?);
        let mut digits: Vec<u8> = whole.to_string().bytes().map(|digit| digit - b'0').collect();
        // Fractional digits of the quotient of the two digit strings.
        let mut scale = 0;
        let wanted = |digits: &[u8]| without_leading_zeros(digits).len() <= MAX_DIGITS;
        let behind = |scale: usize| scale + self.scale <= MAX_SCALE + other.scale;
        while scale + self.scale < other.scale || left != 0 && wanted(&digits) && behind(scale) {
            left *= 10;
            whole = left.checked_div(divisor)?;
            left = left.checked_rem(divisor)?;
            digits.push(whole as u8);
            scale += 1;
        }
        let scale = scale + self.scale - other.scale;
        Decimal { negative: self.negative != other.negative, digits, scale }.cut()
    }

    /// Returns the digits as an integer. There are at most 31.
    fn magnitude(&self) -> u128 {
        self.digits.iter().fold(0, |all: u128, digit| all.wrapping_mul(10).wrapping_add(u128::from(*digit)))
    }

    /// Returns the digits, padded with trailing zeros to this scale.
    fn aligned(&self, scale: usize) -> Vec<u8> {
        let zeros = scale - self.scale;
        self.digits.iter().copied().chain(std::iter::repeat_n(0, zeros)).collect()
    }

    /// Removes insignificant zeros.
    fn trimmed(mut self) -> Decimal {
        while self.scale > 0 && self.digits.last().is_none_or(|digit| *digit == 0) {
            self.digits.pop();
            self.scale -= 1;
        }
        self.digits = without_leading_zeros(&self.digits).to_vec();
        self.negative &= !self.digits.is_empty();
        self
    }

    /// Truncates the number to the maximum number of digits; `None` if digits before the point would be lost.
    fn cut(self) -> Option<Decimal> {
        let mut number = self.trimmed();
        let surplus = number.digits.len().saturating_sub(MAX_DIGITS);
        let surplus = surplus.max(number.scale.saturating_sub(MAX_SCALE));
        number.scale = number.scale.checked_sub(surplus)?;
        number.digits.truncate(number.digits.len().saturating_sub(surplus));
        Some(number.trimmed())
    }
}

impl std::fmt::Display for Decimal {
    /// Formats the number as in IDL, without the `d`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let zeros = (self.scale + 1).saturating_sub(self.digits.len());
        let digits: String = std::iter::repeat_n(0, zeros)
            .chain(self.digits.iter().copied())
            .map(|d| char::from(b'0' + d))
            .collect();
        let (whole, fraction) = digits.split_at(digits.len() - self.scale);
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{}{whole}{point}{fraction}", if self.negative { "-" } else { "" })
    }
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    digits.get(zeros..).unwrap_or_default()
}

/// Returns the sum of two integers, given as digits.
fn added(left: &[u8], right: &[u8]) -> Vec<u8> {
    let count = left.len().max(right.len()) + 1;
    let padded = |digits: &[u8]| -> Vec<u8> {
        digits.iter().rev().copied().chain(std::iter::repeat(0)).take(count).collect()
    };
    let mut carry = 0;
    let mut sum: Vec<u8> = padded(left)
        .into_iter()
        .zip(padded(right))
        .map(|(left, right)| {
            let digit = left + right + carry;
            carry = digit / 10;
            digit % 10
        })
        .collect();
    sum.reverse();
    sum
}

/// Returns the difference of two integers, given as digits, the greater one first.
fn subtracted(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut borrow = 0;
    let right = right.iter().rev().copied().chain(std::iter::repeat(0));
    let mut difference: Vec<u8> = left
        .iter()
        .rev()
        .zip(right)
        .map(|(left, right)| {
            let digit = left + 10 - right - borrow;
            borrow = u8::from(digit < 10);
            digit % 10
        })
        .collect();
    difference.reverse();
    difference
}

#[cfg(test)]
mod tests {
    use super::Decimal;

    fn number(text: &str) -> Decimal {
        match text.strip_prefix('-') {
            Some(text) => Decimal::parse(text).map(Decimal::negated),
            None => Decimal::parse(text),
        }
        .unwrap_or_else(|| Decimal::from_unscaled(0, 0))
    }

    #[track_caller]
    fn gives(result: Option<Decimal>, expected: &str) {
        assert_eq!(result.map(|number| number.to_string()).as_deref(), Some(expected));
    }

    #[test]
    fn literals_lose_zeros_that_mean_nothing() {
        for (text, shown, fitted) in [
            ("0123.450d", "123.45", (5, 2, 12345)),
            ("100D", "100", (3, 0, 100)),
            (".5", "0.5", (1, 1, 5)),
            ("5.", "5", (1, 0, 5)),
            ("0.005", "0.005", (3, 3, 5)),
            ("0", "0", (1, 0, 0)),
            ("0.000", "0", (1, 0, 0)),
            ("-1.50", "-1.5", (2, 1, -15)),
            ("-0", "0", (1, 0, 0)),
        ] {
            assert_eq!(number(text).to_string(), shown);
            assert_eq!(number(text).fitted(), fitted, "{text}");
        }
        let nines = "9".repeat(31);
        assert_eq!(Decimal::parse(&nines).map(|n| n.fitted()), Some((31, 0, 10_i128.pow(31) - 1)));
        assert_eq!(Decimal::parse(&format!("{nines}9")), None);
        assert_eq!(Decimal::parse(&format!("0.{}1", "0".repeat(31))), None);
        assert_eq!(Decimal::parse(&format!("0.{}1", "0".repeat(30))).map(|n| n.fitted()), Some((31, 31, 1)));
    }

    #[test]
    fn sums_and_products_are_exact() {
        gives(number("1.5").plus(number("2.75")), "4.25");
        gives(number("999").plus(number("0.001")), "999.001");
        gives(number("1").plus(number("-1")), "0");
        gives(number("1").plus(number("-1.5")), "-0.5");
        gives(number("-10").plus(number("9.99")), "-0.01");
        gives(number("-1").plus(number("-0.5")), "-1.5");
        gives(number("0").plus(number("-0.5")), "-0.5");
        gives(number("100").plus(number("-99.5")), "0.5");
        gives(number("1.5").times(number("-2")), "-3");
        gives(number("0").times(number("-2")), "0");
        gives(number("99999").times(number("0.99999")), "99998.00001");
        let digits = "1234567890123456";
        gives(number(digits).times(number("1000000000000000")), &format!("{digits}{}", "0".repeat(15)));
    }

    #[test]
    fn results_are_cut_to_31_digits_and_never_rounded() {
        gives(number("2").divided_by(number("3")), &format!("0.{}", "6".repeat(31)));
        gives(number("20").divided_by(number("3")), &format!("6.{}", "6".repeat(30)));
        gives(number("-1").divided_by(number("300")), &format!("-0.00{}", "3".repeat(31)));
        gives(number("1").divided_by(number("8")), "0.125");
        gives(number("1").divided_by(number("0.125")), "8");
        gives(number("0.125").divided_by(number("0.5")), "0.25");
        gives(number("10.0").divided_by(number("0.01")), "1000");
        gives(number("0").divided_by(number("-3")), "0");
        let nines = format!("9.{}", "9".repeat(30));
        gives(number(&nines).times(number(&nines)), &format!("99.{}8", "9".repeat(28)));
        gives(number(&"9".repeat(31)).plus(number("0.9")), &"9".repeat(31));
        // The type has 31 fractional digits; intermediate results may have more.
        let third = number("1").divided_by(number("300"));
        assert_eq!(third.map(|n| n.fitted()), Some((31, 31, 10_i128.pow(29) / 3)));
        let tiny = number("0.0000000000000001");
        gives(tiny.clone().times(tiny.clone()), &format!("0.{}1", "0".repeat(31)));
        assert_eq!(tiny.clone().times(tiny).map(|n| n.fitted()), Some((1, 0, 0)));
    }

    #[test]
    fn what_has_too_many_digits_before_the_point_is_none() {
        let nines = "9".repeat(31);
        assert_eq!(number(&nines).plus(number("1")), None);
        assert_eq!(number(&nines).times(number("10")), None);
        assert_eq!(number(&nines).divided_by(number("0.1")), None);
        gives(number(&nines).times(number("1")), &nines);
    }
}
