//! Parsers of option values.

use super::{MAX_BUFFER_BYTES, OPERATION_COUNTS};

/// Parses a number of bytes: digits, then optionally a unit of 1024 (`K`, `KiB`), 1024² (`M`, `MiB`) or 1024³
/// bytes (`G`, `GiB`).
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => {
            return Err(format!("unknown unit '{unit}': use K, M, G (powers of 1024), or no unit for bytes"));
        }
    };
    let number: u64 = number.parse().map_err(|e| format!("not a number of bytes: {e}"))?;
    number.checked_mul(1 << shift).filter(|&n| n > 0).ok_or_else(|| format!("{text} is out of range"))
}

/// Parses a number of operations: one of [`OPERATION_COUNTS`].
pub fn parse_operations(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n) if OPERATION_COUNTS.contains(&n) => Ok(n),
        _ => Err(format!(
            "there is no interface of {text} operations, only of {} and {}",
            OPERATION_COUNTS[0], OPERATION_COUNTS[1]
        )),
    }
}

/// Parses a buffer size: [`parse_bytes`], at most [`MAX_BUFFER_BYTES`].
pub fn parse_size(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        n if n <= MAX_BUFFER_BYTES => Ok(n),
        n => Err(format!("{n} bytes are more than the maximum size of {MAX_BUFFER_BYTES} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_with_binary_units() {
        assert_eq!(parse_bytes("1000"), Ok(1000));
        assert_eq!(parse_bytes("64K"), Ok(65_536));
        assert_eq!(parse_bytes("1MiB"), Ok(1 << 20));
        assert_eq!(parse_bytes("2G"), Ok(2 << 30));
        for bad in ["", "K", "0", "-1", "64 K", "1k", "1TB", "99999999999999999999", "18446744073709551615G"]
        {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
        assert!(parse_size("1G").is_ok() && parse_size("1073741825").is_err());
    }
}
