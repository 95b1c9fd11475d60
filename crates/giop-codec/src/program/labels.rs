//! The labels of unions.

use crate::cdr::{Decoder, Encoder, WChar};
use crate::{DecodeError, EncodeError};

/// The encoding of the labels of a union, by the type of its discriminator.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LabelEncoding {
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

impl LabelEncoding {
    /// Returns whether the discriminator's type has the value `label`, whose bits are extended to 64.
    pub(crate) fn is_valid(self, label: i64) -> bool {
        match self {
            LabelEncoding::Boolean => (0..=1).contains(&label),
            LabelEncoding::Octet => u8::try_from(label).is_ok(),
            LabelEncoding::Short => i16::try_from(label).is_ok(),
            LabelEncoding::UShort | LabelEncoding::WChar => u16::try_from(label).is_ok(),
            LabelEncoding::Long => i32::try_from(label).is_ok(),
            LabelEncoding::ULong => u32::try_from(label).is_ok(),
            LabelEncoding::LongLong | LabelEncoding::ULongLong => true,
            LabelEncoding::Enum(count) => u32::try_from(label).is_ok_and(|label| label < count),
        }
    }

    /// Reads a discriminator and extends its bits to 64.
    #[inline]
    pub(crate) fn read(self, d: &mut Decoder<'_>) -> Result<i64, DecodeError> {
        self.read_label(d, false)
    }

    /// Reads a label in a type code and extends its bits to 64. The default member's label is replaced by 0.
    pub(crate) fn read_label(self, d: &mut Decoder<'_>, is_default: bool) -> Result<i64, DecodeError> {
        let label = match self {
            LabelEncoding::Boolean => i64::from(d.read_bool()?),
            LabelEncoding::Octet => d.read_u8()?.into(),
            LabelEncoding::Short => d.read_i16()?.into(),
            LabelEncoding::UShort => d.read_u16()?.into(),
            LabelEncoding::Long => d.read_i32()?.into(),
            LabelEncoding::ULong => d.read_u32()?.into(),
            LabelEncoding::LongLong => d.read_i64()?,
            LabelEncoding::ULongLong => d.read_u64()?.cast_signed(),
            LabelEncoding::WChar => d.read_wchar()?.0.into(),
            LabelEncoding::Enum(_) if is_default => d.read_u32()?.into(),
            LabelEncoding::Enum(count) => d.read_enum(count)?.into(),
        };
        Ok(if is_default { 0 } else { label })
    }

    /// Writes the lowest bits of `label`.
    pub(crate) fn write(self, e: &mut Encoder, label: i64) -> Result<(), EncodeError> {
        match self {
            LabelEncoding::Boolean => e.put_bool(label != 0),
            LabelEncoding::Octet => e.put_u8(label as u8),
            LabelEncoding::Short | LabelEncoding::UShort => e.put_u16(label as u16),
            LabelEncoding::Long | LabelEncoding::ULong | LabelEncoding::Enum(_) => e.put_u32(label as u32),
            LabelEncoding::LongLong | LabelEncoding::ULongLong => e.put_u64(label.cast_unsigned()),
            LabelEncoding::WChar => return e.put_wchar(WChar(label as u16)),
        }
        Ok(())
    }
}
