//! Access to fields of bitsets, for generated code.

/// Returns the field of `width` bits that begins at bit `shift`. Bit 0 is the least significant one.
#[doc(hidden)]
pub const fn bit_field(bits: u64, shift: u32, width: u32) -> u64 {
    bits >> shift & low_bits_mask(width)
}

/// Returns the signed field of `width` bits that begins at bit `shift`. Its highest bit is the sign.
#[doc(hidden)]
pub const fn signed_bit_field(bits: u64, shift: u32, width: u32) -> i64 {
    let unused = u64::BITS - width;
    (bit_field(bits, shift, width) << unused).cast_signed() >> unused
}

/// Returns `bits` with a field replaced by the low bits of a value.
#[doc(hidden)]
pub const fn replace_bit_field_truncated(bits: u64, shift: u32, width: u32, value: u64) -> u64 {
    let field = low_bits_mask(width) << shift;
    bits & !field | value << shift & field
}

/// Returns `bits` with a field replaced by a value, or an error if the value does not fit.
#[doc(hidden)]
pub const fn try_replace_bit_field(bits: u64, shift: u32, width: u32, value: u64) -> Result<u64, BitsError> {
    let replaced = replace_bit_field_truncated(bits, shift, width, value);
    if bit_field(replaced, shift, width) == value { Ok(replaced) } else { Err(BitsError { width }) }
}

/// Returns `bits` with a field replaced by a signed value, or an error if the value does not fit.
#[doc(hidden)]
pub const fn try_replace_signed_bit_field(
    bits: u64,
    shift: u32,
    width: u32,
    value: i64,
) -> Result<u64, BitsError> {
    let replaced = replace_bit_field_truncated(bits, shift, width, value.cast_unsigned());
    if signed_bit_field(replaced, shift, width) == value { Ok(replaced) } else { Err(BitsError { width }) }
}

/// Returns a mask of the lowest `width` bits, which must be 1 to 64.
const fn low_bits_mask(width: u32) -> u64 {
    u64::MAX >> (u64::BITS - width)
}

/// The error of a value that does not fit its field of a bitset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("value does not fit a field of {width} bits")]
pub struct BitsError {
    /// Width of the field in bits.
    pub width: u32,
}
