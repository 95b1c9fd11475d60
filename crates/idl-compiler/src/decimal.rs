//! Decimal numbers of constant expressions: fixed-point arithmetic as in the clause "Constants" of OMG IDL.

/// Maximum number of digits of a fixed-point number. Further fractional digits of a result are cut off.
pub(crate) const MAX_DIGITS: usize = 31;

/// Maximum number of fractional digits of an intermediate result: twice [`MAX_DIGITS`].
const MAX_SCALE: usize = 62;

/// A decimal number of at most [`MAX_DIGITS`] significant digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    /// Digits from 0 to 9, starting at the first non-zero digit. If there are fractional digits, the last one
    /// is not zero. Empty for the number zero.
    digits: Vec<u8>,
    /// Number of digits after the point, including leading zeros.
    scale: usize,
}

impl Decimal {
    /// Parses a literal, with or without its `d`. Returns `None` if it has more than [`MAX_DIGITS`]
    /// significant digits or fractional digits.
    pub(crate) fn parse(text: &str) -> Option<Decimal> {
        let text = text.strip_suffix(['d', 'D']).unwrap_or(text);
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = whole.bytes().chain(fraction.bytes()).map(|digit| digit.wrapping_sub(b'0')).collect();
        let number = Decimal { negative: false, digits, scale: fraction.len() }.trimmed();
        (number.digits.len() <= MAX_DIGITS && number.scale <= MAX_DIGITS).then_some(number)
    }

    /// Parses a floating-point literal. Returns `None` if it needs more than [`MAX_DIGITS`] digits.
    pub(crate) fn parse_float(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = whole.bytes().chain(fraction.bytes()).map(|digit| digit.wrapping_sub(b'0')).collect();
        let number = Decimal { negative: false, digits, scale: fraction.len() }.trimmed();
        if number.is_zero() {
            return Some(number);
        }
        let scale = i64::try_from(number.scale).ok()?.checked_sub(exponent.parse().ok()?)?;
        let (max, mut digits) = (MAX_DIGITS as i64, number.digits);
        if scale > max || digits.len() > MAX_DIGITS || digits.len() as i64 - scale > max {
            return None;
        }
        // The exponent adds at most `MAX_DIGITS` zeros before the point.
        digits.extend(std::iter::repeat_n(0, usize::try_from(-scale).unwrap_or(0)));
        Some(Decimal { negative: false, digits, scale: usize::try_from(scale).unwrap_or(0) }.trimmed())
    }

    /// Returns the number `unscaled` times 10 to the power of `-scale`.
    pub(crate) fn from_unscaled(unscaled: i128, scale: u32) -> Decimal {
        let digits = unscaled.unsigned_abs().to_string().bytes().map(|digit| digit - b'0').collect();
        Decimal { negative: unscaled < 0, digits, scale: scale as usize }.trimmed()
    }

    /// Returns the digits and the scale of the smallest `fixed` type that holds the number, and the unscaled
    /// value in this type. Fractional digits after the 31st are truncated.
    pub(crate) fn into_fixed(self) -> (u8, u8, i128) {
        let number = self.integer_digits_and_truncated(MAX_DIGITS).1;
        let digits = number.digits.len().max(number.scale).max(1);
        // 31 digits fit in 127 bits.
        let magnitude = number.magnitude().cast_signed();
        (digits as u8, number.scale as u8, if number.negative { -magnitude } else { magnitude })
    }

    /// Returns the number of digits before the point, and the number truncated to `places` fractional digits.
    pub(crate) fn integer_digits_and_truncated(&self, places: usize) -> (usize, Decimal) {
        let mut truncated = self.clone();
        let surplus = self.scale.saturating_sub(places);
        truncated.digits.truncate(self.digits.len().saturating_sub(surplus));
        truncated.scale -= surplus;
        (self.digits.len().saturating_sub(self.scale), truncated.trimmed())
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub(crate) fn negated(self) -> Decimal {
        Decimal { negative: !self.negative && !self.is_zero(), ..self }
    }

    /// Returns the sum. All operations return `None` if the result has too many digits before the point.
    pub(crate) fn plus(self, other: Decimal) -> Option<Decimal> {
        let scale = self.scale.max(other.scale);
        let (left, right) = (self.aligned(scale), other.aligned(scale));
        if self.negative == other.negative {
            return Decimal { negative: self.negative, digits: add_digits(&left, &right), scale }.truncated();
        }
        let (left_digits, right_digits) = (without_leading_zeros(&left), without_leading_zeros(&right));
        let (negative, digits) = if (left_digits.len(), left_digits) >= (right_digits.len(), right_digits) {
            (self.negative, subtract_digits(&left, &right))
        } else {
            (other.negative, subtract_digits(&right, &left))
        };
        Decimal { negative, digits, scale }.truncated()
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
        Decimal { negative: self.negative != other.negative, digits, scale }.truncated()
    }

    /// Returns the quotient. The divisor must not be zero.
    pub(crate) fn divided_by(self, other: Decimal) -> Option<Decimal> {
        let divisor = other.magnitude();
        let (quotient, mut remainder) =
            (self.magnitude().checked_div(divisor)?, self.magnitude().checked_rem(divisor)?);
        let mut digits: Vec<u8> = quotient.to_string().bytes().map(|digit| digit - b'0').collect();
        // Fractional digits of the quotient of the two magnitudes.
        let mut scale = 0;
        let needs_digits = |digits: &[u8]| without_leading_zeros(digits).len() <= MAX_DIGITS;
        let scale_fits = |scale: usize| scale + self.scale <= MAX_SCALE + other.scale;
        while scale + self.scale < other.scale || remainder != 0 && needs_digits(&digits) && scale_fits(scale)
        {
            remainder *= 10;
            digits.push(remainder.checked_div(divisor)? as u8);
            remainder = remainder.checked_rem(divisor)?;
            scale += 1;
        }
        let scale = scale + self.scale - other.scale;
        Decimal { negative: self.negative != other.negative, digits, scale }.truncated()
    }

    /// Returns the digits as an integer, which fits because there are at most 31.
    fn magnitude(&self) -> u128 {
        self.digits.iter().fold(0, |all: u128, digit| all.wrapping_mul(10).wrapping_add(u128::from(*digit)))
    }

    /// Returns the digits, padded with trailing zeros to this scale.
    fn aligned(&self, scale: usize) -> Vec<u8> {
        let zeros = scale - self.scale;
        self.digits.iter().copied().chain(std::iter::repeat_n(0, zeros)).collect()
    }

    fn trimmed(mut self) -> Decimal {
        while self.scale > 0 && self.digits.last().is_none_or(|digit| *digit == 0) {
            self.digits.pop();
            self.scale -= 1;
        }
        self.digits = without_leading_zeros(&self.digits).to_vec();
        self.negative &= !self.digits.is_empty();
        self
    }

    /// Truncates the fractional digits. Returns `None` if there are too many digits before the point.
    fn truncated(self) -> Option<Decimal> {
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
        let zeros = std::iter::repeat_n(0, (self.scale + 1).saturating_sub(self.digits.len()));
        let digits = zeros.chain(self.digits.iter().copied()).map(|digit| char::from(b'0' + digit));
        let digits: String = digits.collect();
        let (whole, fraction) = digits.split_at(digits.len() - self.scale);
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{}{whole}{point}{fraction}", if self.negative { "-" } else { "" })
    }
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    digits.get(zeros..).unwrap_or_default()
}

fn add_digits(left: &[u8], right: &[u8]) -> Vec<u8> {
    let count = left.len().max(right.len()) + 1;
    let padded = |digits: &[u8]| -> Vec<u8> {
        digits.iter().rev().copied().chain(std::iter::repeat(0)).take(count).collect()
    };
    let mut carry = 0;
    let sum = padded(left).into_iter().zip(padded(right)).map(|(left, right)| {
        let digit = left + right + carry;
        carry = digit / 10;
        digit % 10
    });
    let mut sum: Vec<u8> = sum.collect();
    sum.reverse();
    sum
}

/// Returns `left - right` for two integers, given as digits. `left` must not be less than `right`.
fn subtract_digits(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut borrow = 0;
    let right = right.iter().rev().copied().chain(std::iter::repeat(0));
    let difference = left.iter().rev().zip(right).map(|(left, right)| {
        let digit = left + 10 - right - borrow;
        borrow = u8::from(digit < 10);
        digit % 10
    });
    let mut difference: Vec<u8> = difference.collect();
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
    fn assert_decimal(result: Option<Decimal>, expected: &str) {
        assert_eq!(result.map(|number| number.to_string()).as_deref(), Some(expected));
    }

    #[test]
    fn insignificant_zeros_of_literals_are_removed() {
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
            assert_eq!(number(text).into_fixed(), fitted, "{text}");
        }
        let nines = "9".repeat(31);
        assert_eq!(Decimal::parse(&nines).map(|n| n.into_fixed()), Some((31, 0, 10_i128.pow(31) - 1)));
        assert_eq!(Decimal::parse(&format!("{nines}9")), None);
        assert_eq!(Decimal::parse(&format!("0.{}1", "0".repeat(31))), None);
        assert_eq!(
            Decimal::parse(&format!("0.{}1", "0".repeat(30))).map(|n| n.into_fixed()),
            Some((31, 31, 1))
        );
    }

    #[test]
    fn sums_and_products_are_exact() {
        assert_decimal(number("1.5").plus(number("2.75")), "4.25");
        assert_decimal(number("999").plus(number("0.001")), "999.001");
        assert_decimal(number("1").plus(number("-1")), "0");
        assert_decimal(number("1").plus(number("-1.5")), "-0.5");
        assert_decimal(number("-10").plus(number("9.99")), "-0.01");
        assert_decimal(number("-1").plus(number("-0.5")), "-1.5");
        assert_decimal(number("0").plus(number("-0.5")), "-0.5");
        assert_decimal(number("100").plus(number("-99.5")), "0.5");
        assert_decimal(number("1.5").times(number("-2")), "-3");
        assert_decimal(number("0").times(number("-2")), "0");
        assert_decimal(number("99999").times(number("0.99999")), "99998.00001");
        let digits = "1234567890123456";
        assert_decimal(
            number(digits).times(number("1000000000000000")),
            &format!("{digits}{}", "0".repeat(15)),
        );
    }

    #[test]
    fn results_are_truncated_to_31_digits_and_not_rounded() {
        assert_decimal(number("2").divided_by(number("3")), &format!("0.{}", "6".repeat(31)));
        assert_decimal(number("20").divided_by(number("3")), &format!("6.{}", "6".repeat(30)));
        assert_decimal(number("-1").divided_by(number("300")), &format!("-0.00{}", "3".repeat(31)));
        assert_decimal(number("1").divided_by(number("8")), "0.125");
        assert_decimal(number("1").divided_by(number("0.125")), "8");
        assert_decimal(number("0.125").divided_by(number("0.5")), "0.25");
        assert_decimal(number("10.0").divided_by(number("0.01")), "1000");
        assert_decimal(number("0").divided_by(number("-3")), "0");
        let nines = format!("9.{}", "9".repeat(30));
        assert_decimal(number(&nines).times(number(&nines)), &format!("99.{}8", "9".repeat(28)));
        assert_decimal(number(&"9".repeat(31)).plus(number("0.9")), &"9".repeat(31));
        // A `fixed` type has at most 31 fractional digits, but intermediate results may have more.
        let third = number("1").divided_by(number("300"));
        assert_eq!(third.map(|n| n.into_fixed()), Some((31, 31, 10_i128.pow(29) / 3)));
        let tiny = number("0.0000000000000001");
        assert_decimal(tiny.clone().times(tiny.clone()), &format!("0.{}1", "0".repeat(31)));
        assert_eq!(tiny.clone().times(tiny).map(|n| n.into_fixed()), Some((1, 0, 0)));
    }

    #[test]
    fn results_with_too_many_digits_before_the_point_are_none() {
        let nines = "9".repeat(31);
        assert_eq!(number(&nines).plus(number("1")), None);
        assert_eq!(number(&nines).times(number("10")), None);
        assert_eq!(number(&nines).divided_by(number("0.1")), None);
        assert_decimal(number(&nines).times(number("1")), &nines);
    }
}
