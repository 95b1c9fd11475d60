//! Writes and reads text in code sets other than ISO 8859-1, UTF-8 and UTF-16.

use super::converted::{ConversionMethod, ConvertedSet};
use super::decoder::Decoder;
use super::encoder::Encoder;
use super::strings;
use super::text::{WChar, WCharSet};
use super::wide::{WStr, WString};
use crate::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Version};

impl Encoder {
    #[cold]
    pub(super) fn put_converted(&mut self, set: ConvertedSet, text: &str) -> Result<(), EncodeError> {
        if text.as_bytes().contains(&0) {
            return Err(EncodeErrorKind::EmbeddedNul.into());
        }
        match set.method() {
            ConversionMethod::SingleByte { encode, .. } => {
                self.put_len(text.chars().count() + 1)?;
                for c in text.chars() {
                    self.put_u8(encode(c).ok_or(EncodeErrorKind::CharNotInCodeSet)?);
                }
                self.put_u8(0);
                Ok(())
            }
            #[cfg(feature = "encoding_rs")]
            ConversionMethod::Library(encoding) => self.put_by_library(encoding, text),
            ConversionMethod::Never => Err(EncodeErrorKind::NoCodeSet.into()),
        }
    }

    #[cfg(feature = "encoding_rs")]
    fn put_by_library(
        &mut self,
        encoding: &'static encoding_rs::Encoding,
        text: &str,
    ) -> Result<(), EncodeError> {
        use encoding_rs::EncoderResult;

        self.put_u32(0);
        let length_at = self.head().len() - 4;
        let (mut encoder, mut rest, mut piece) = (encoding.new_encoder(), text, [0; 256]);
        loop {
            let (result, read, written) =
                encoder.encode_from_utf8_without_replacement(rest, &mut piece, true);
            self.put_raw(piece.get(..written).unwrap_or_default());
            match result {
                EncoderResult::InputEmpty => break,
                EncoderResult::OutputFull => rest = rest.get(read..).unwrap_or_default(),
                EncoderResult::Unmappable(_) => return Err(EncodeErrorKind::CharNotInCodeSet.into()),
            }
        }
        self.put_u8(0);
        let length = self.head().len() - length_at - 4;
        let length = u32::try_from(length).map_err(|_| EncodeErrorKind::TooLong)?;
        self.patch_u32(length_at, length);
        Ok(())
    }

    /// Writes a `wstring`, which must not contain a NUL. Returns `None`, and writes nothing, if its encoding
    /// in `set` is the same as in UTF-16.
    #[cold]
    pub(super) fn put_converted_wide(
        &mut self,
        set: WCharSet,
        text: WStr<'_>,
    ) -> Option<Result<(), EncodeError>> {
        match set {
            WCharSet::Utf16 => None,
            WCharSet::Ucs2 if text.code_points().all(|c| c <= 0xffff) => None,
            WCharSet::Ucs2 => Some(Err(EncodeErrorKind::CharNotInCodeSet.into())),
            WCharSet::Ucs4 => Some(self.put_ucs_4(text)),
        }
    }

    fn put_ucs_4(&mut self, text: WStr<'_>) -> Result<(), EncodeError> {
        let count = text.code_points().count();
        if self.version() == Version::V1_1 {
            self.put_len(count + 1)?;
            text.code_points().for_each(|c| self.put_u32(c));
            self.put_u32(0);
            return Ok(());
        }
        self.put_len(count.saturating_mul(4))?;
        text.code_points().for_each(|c| self.put_code_point(c));
        Ok(())
    }

    #[cold]
    pub(super) fn put_ucs_4_char(&mut self, unit: WChar) {
        if self.version() == Version::V1_1 {
            self.put_u32(u32::from(unit.0));
        } else {
            self.put_u8(4);
            self.put_code_point(u32::from(unit.0));
        }
    }

    /// Writes a code point unaligned and in the byte order of the stream, as omniORB does.
    fn put_code_point(&mut self, c: u32) {
        self.put_raw(&match self.order() {
            ByteOrder::Big => c.to_be_bytes(),
            ByteOrder::Little => c.to_le_bytes(),
        });
    }
}

/// Converts the bytes of a `string`, without its NUL. The decoder must be positioned after that NUL.
#[cold]
pub(super) fn decode_converted(
    d: &mut Decoder<'_>,
    set: ConvertedSet,
    bytes: &[u8],
) -> Result<String, DecodeError> {
    let start = d.position().saturating_sub(bytes.len() + 1);
    let fail = |at: usize| DecodeError::new(DecodeErrorKind::CharNotInCodeSet, start + at);
    match set.method() {
        ConversionMethod::SingleByte { decode, .. } => {
            let mut len = 0_usize;
            for (at, byte) in bytes.iter().enumerate() {
                len += decode(*byte).ok_or_else(|| fail(at))?.len_utf8();
            }
            d.charge(len)?;
            Ok(bytes.iter().filter_map(|byte| decode(*byte)).collect())
        }
        #[cfg(feature = "encoding_rs")]
        ConversionMethod::Library(encoding) => {
            // No character has more than three times as many bytes in UTF-8 as in these sets.
            d.charge(bytes.len().saturating_mul(3))?;
            let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
            Ok(text.ok_or_else(|| fail(0))?.into_owned())
        }
        ConversionMethod::Never => Err(DecodeError::new(DecodeErrorKind::NoCodeSet, start)),
    }
}

#[cold]
pub(super) fn read_ucs_4(d: &mut Decoder<'_>) -> Result<WString, DecodeError> {
    let (start, bytes) = if d.version() == Version::V1_1 {
        let count = d.read_len(4)?;
        let start = d.position();
        let bytes = d.take(count * 4)?;
        match bytes.split_last_chunk::<4>() {
            None => (start, bytes),
            Some((text, [0, 0, 0, 0])) => (start, text),
            Some(_) => return Err(DecodeError::new(DecodeErrorKind::StringNotTerminated, start)),
        }
    } else {
        let len = d.read_len(1)?;
        (d.position(), d.take(len)?)
    };
    let error = DecodeError::new(DecodeErrorKind::InvalidWideText, start);
    let (chars, odd) = bytes.as_chunks::<4>();
    if !odd.is_empty() {
        return Err(error);
    }
    // A character takes four bytes here, and at most four in UTF-8 or UTF-16.
    d.charge(bytes.len())?;
    let (mut text, mut units) = (String::with_capacity(chars.len()), None);
    for bytes in chars {
        let number = ucs_4_number(d.order(), *bytes);
        let c = match (char::from_u32(number), u16::try_from(number)) {
            (Some('\0'), _) => return Err(DecodeError::new(DecodeErrorKind::EmbeddedNul, start)),
            (Some(c), _) => c,
            // This is a lone half of a surrogate pair. From here on, the text is collected as UTF-16 units.
            (None, Ok(half)) => {
                units.get_or_insert_with(|| text.encode_utf16().collect::<Vec<_>>()).push(half);
                continue;
            }
            (None, Err(_)) => strings::replacement_char(d, error.kind, start)?,
        };
        match &mut units {
            None => text.push(c),
            Some(units) => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
        }
    }
    Ok(units.map_or_else(|| WString::from(text), WString::from_units))
}

const fn ucs_4_number(order: ByteOrder, bytes: [u8; 4]) -> u32 {
    match order {
        ByteOrder::Big => u32::from_be_bytes(bytes),
        ByteOrder::Little => u32::from_le_bytes(bytes),
    }
}

#[cold]
pub(super) fn read_ucs_4_char(d: &mut Decoder<'_>) -> Result<WChar, DecodeError> {
    let start = d.position();
    let number = if d.version() == Version::V1_1 {
        d.read_u32()?
    } else {
        let len = usize::from(d.read_u8()?);
        let Ok(bytes) = <[u8; 4]>::try_from(d.take(len)?) else {
            return Err(DecodeError::new(DecodeErrorKind::InvalidWideText, start));
        };
        ucs_4_number(d.order(), bytes)
    };
    match (char::from_u32(number), u16::try_from(number)) {
        (_, Ok(unit)) => Ok(WChar(unit)),
        (Some(_), Err(_)) => Err(DecodeError::new(DecodeErrorKind::CharNotInCodeSet, start)),
        (None, Err(_)) => Err(DecodeError::new(DecodeErrorKind::InvalidWideText, start)),
    }
}
