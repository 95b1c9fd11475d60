//! [`Decimal`]: a fixed-point number whose type is known only at run time.

use core::fmt;

/// An IDL `fixed` whose type is known only at run time, unlike [`Fixed`](crate::cdr::Fixed).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The digits as an integer, whose magnitude is less than 10 to the power of `digits`.
    pub unscaled: i128,
    /// The number of digits of the type, 1 to 31.
    pub digits: u16,
    /// The number of digits after the point. -2 stands for two zeros between the digits and the point.
    pub scale: i16,
}

/// The maximum number of zeros that are written for a negative scale. A valid scale is not less than -31.
const MAX_ZEROS: usize = 31;

impl Decimal {
    /// Parses a text with an optional sign and an optional decimal point. Returns `None` if the text is not a
    /// number, or if the type cannot hold all of its digits.
    pub fn parse(text: &str, digits: u16, scale: i16) -> Option<Decimal> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let all = [whole, fraction].concat();
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // Zeros at both ends are not significant. `places` is the position of the last significant digit
        // after the point. It is negative if that digit is followed by zeros before the point.
        let significant = all.trim_end_matches('0');
        let places = fraction.len() as i64 - (all.len() - significant.len()) as i64;
        let zeros = usize::try_from(i64::from(scale) - places).ok();
        let significant = significant.trim_start_matches('0');
        if significant.is_empty() {
            return Some(Decimal { unscaled: 0, digits, scale });
        }
        let zeros = zeros.filter(|zeros| significant.len() + zeros <= usize::from(digits))?;
        let magnitude: i128 = format!("{significant}{:0<zeros$}", "").parse().ok()?;
        let unscaled = if text.starts_with('-') { -magnitude } else { magnitude };
        Some(Decimal { unscaled, digits, scale })
    }
}

impl fmt::Display for Decimal {
    /// Writes all digits after the point, and at least one before the point: `0.50`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.unscaled.unsigned_abs().to_string();
        let places = usize::try_from(self.scale).unwrap_or(0);
        let zeros = usize::from(self.scale.min(0).unsigned_abs()).min(MAX_ZEROS);
        let text = if places > 0 {
            let digits = format!("{digits:0>width$}", width = places + 1);
            let (whole, fraction) = digits.split_at(digits.len() - places);
            format!("{whole}.{fraction}")
        } else if self.unscaled == 0 {
            digits
        } else {
            format!("{digits}{:0<zeros$}", "")
        };
        f.pad_integral(self.unscaled >= 0, "", &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_is_written_with_its_point() {
        let text = |unscaled, scale| Decimal { unscaled, digits: 31, scale }.to_string();
        assert_eq!(text(1250, 2), "12.50");
        assert_eq!(text(-5, 2), "-0.05");
        assert_eq!(text(-5, 0), "-5");
        assert_eq!(text(7, -2), "700");
        assert_eq!(text(0, -2), "0");
        assert_eq!(text(0, 3), "0.000");
    }

    #[test]
    fn a_text_is_parsed_if_its_digits_fit() {
        let parsed = |text, digits, scale| Decimal::parse(text, digits, scale).map(|number| number.unscaled);
        assert_eq!(parsed("12.5", 5, 2), Some(1250));
        assert_eq!(parsed("-0.050", 5, 2), Some(-5));
        assert_eq!(parsed("0012", 2, 0), Some(12));
        assert_eq!(parsed("700", 1, -2), Some(7));
        assert_eq!(parsed("750", 2, -2), None);
        assert_eq!(parsed("0.125", 5, 2), None);
        assert_eq!(parsed("1000", 5, 2), None);
        assert_eq!(parsed("0.000000", 5, 2), Some(0));
        for wrong in ["", "-", ".", "1e3", "1.2.3", "x"] {
            assert_eq!(parsed(wrong, 31, 2), None, "{wrong}");
        }
    }
}
