use crate::cdr::{Decoder, Encoder, WChar};
use crate::{DecodeError, EncodeError};

/// The encoding of the labels of a union, which are values of its discriminator's type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Labels {
    Boolean,
    Octet,
    Short,
    UShort,
    Long,
    ULong,
    LongLong,
    ULongLong,
    WChar,
    /// An enum with this number of enumerators.
    Enum(u32),
}

impl Labels {
    /// Returns whether the discriminator's type has this value, given as its bits extended to 64.
    pub(crate) fn has(self, label: i64) -> bool {
        match self {
            Labels::Boolean => (0..=1).contains(&label),
            Labels::Octet => u8::try_from(label).is_ok(),
            Labels::Short => i16::try_from(label).is_ok(),
            Labels::UShort | Labels::WChar => u16::try_from(label).is_ok(),
            Labels::Long => i32::try_from(label).is_ok(),
            Labels::ULong => u32::try_from(label).is_ok(),
            Labels::LongLong | Labels::ULongLong => true,
            Labels::Enum(count) => u32::try_from(label).is_ok_and(|label| label < count),
        }
    }

    /// Reads the bits of a label, extended to 64. The label of a `default` member has no meaning, and is read
    /// as 0.
    pub(crate) fn read(self, d: &mut Decoder<'_>, default: bool) -> Result<i64, DecodeError> {
        let label = match self {
            Labels::Boolean => i64::from(d.read_bool()?),
            Labels::Octet => d.read_u8()?.into(),
            Labels::Short => d.read_i16()?.into(),
            Labels::UShort => d.read_u16()?.into(),
            Labels::Long => d.read_i32()?.into(),
            Labels::ULong => d.read_u32()?.into(),
            Labels::LongLong => d.read_i64()?,
            Labels::ULongLong => d.read_u64()?.cast_signed(),
            Labels::WChar => d.read_wchar()?.0.into(),
            Labels::Enum(_) if default => d.read_u32()?.into(),
            Labels::Enum(count) => d.read_enum(count)?.into(),
        };
        Ok(if default { 0 } else { label })
    }

    /// Writes the lowest bits of `label`.
    pub(crate) fn write(self, e: &mut Encoder, label: i64) -> Result<(), EncodeError> {
        match self {
            Labels::Boolean => e.put_bool(label != 0),
            Labels::Octet => e.put_u8(label as u8),
            Labels::Short | Labels::UShort => e.put_u16(label as u16),
            Labels::Long | Labels::ULong | Labels::Enum(_) => e.put_u32(label as u32),
            Labels::LongLong | Labels::ULongLong => e.put_u64(label.cast_unsigned()),
            Labels::WChar => return e.put_wchar(WChar(label as u16)),
        }
        Ok(())
    }
}
