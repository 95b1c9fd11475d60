//! Writes and reads strings and wide strings in all transmission code sets and in the three GIOP versions
//! ("Character", "Wide Character", "Strings and Wide Strings").

use std::borrow::Cow;

use bytes::Bytes;

use super::conversion;
use super::decoder::Decoder;
use super::encoder::Encoder;
use super::text::{CharSet, InvalidText, WChar, WCharSet};
use super::traits::{CdrDecode, CdrEncode};
use super::wide::{WStr, WString};
use crate::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Version};

const BOM: u16 = 0xFEFF;
const SWAPPED_BOM: u16 = 0xFFFE;

impl Encoder {
    /// Writes an IDL `string` in the transmission code set: the length with the NUL, the bytes, and the NUL.
    ///
    /// # Errors
    /// [`EmbeddedNul`](EncodeErrorKind::EmbeddedNul),
    /// [`CharNotInCodeSet`](EncodeErrorKind::CharNotInCodeSet), [`TooLong`](EncodeErrorKind::TooLong), and
    /// [`NoCodeSet`](EncodeErrorKind::NoCodeSet) if client and server have no code set in common.
    pub fn put_str(&mut self, text: &str) -> Result<(), EncodeError> {
        match self.code_sets().char {
            CharSet::Utf8 => self.put_unconverted_str(text),
            set => self.put_str_in(set, text),
        }
    }

    // A separate function keeps the UTF-8 path small.
    #[inline(never)]
    fn put_str_in(&mut self, set: CharSet, text: &str) -> Result<(), EncodeError> {
        match set {
            CharSet::Latin1 if !text.is_ascii() => self.put_latin1(text),
            CharSet::Latin1 | CharSet::Utf8 => self.put_unconverted_str(text),
            CharSet::Converted(set) => self.put_converted(set, text),
        }
    }

    /// Writes a `string` without code set conversion, such as a repository id, operation name or address.
    ///
    /// # Errors
    /// [`EmbeddedNul`](EncodeErrorKind::EmbeddedNul), [`TooLong`](EncodeErrorKind::TooLong).
    pub fn put_unconverted_str(&mut self, text: &str) -> Result<(), EncodeError> {
        if text.as_bytes().contains(&0) {
            return Err(EncodeErrorKind::EmbeddedNul.into());
        }
        self.put_len(text.len().saturating_add(1))?;
        self.put_raw(text.as_bytes());
        self.put_u8(0);
        Ok(())
    }

    #[cold]
    pub(crate) fn put_latin1(&mut self, text: &str) -> Result<(), EncodeError> {
        self.put_len(text.chars().count() + 1)?;
        for c in text.chars() {
            match u8::try_from(c) {
                Ok(0) => return Err(EncodeErrorKind::EmbeddedNul.into()),
                Ok(byte) => self.put_u8(byte),
                Err(_) => return Err(EncodeErrorKind::CharNotInCodeSet.into()),
            }
        }
        self.put_u8(0);
        Ok(())
    }

    /// Writes an IDL `wstring`.
    ///
    /// * UTF-16 and UCS-2 in GIOP 1.1: the number of UTF-16 units including the NUL, then the units in the
    ///   byte order of the stream.
    /// * UTF-16 and UCS-2 in GIOP 1.2: the number of bytes, then the units in big-endian order. A byte order
    ///   mark precedes them only if the first unit looks like a byte order mark.
    /// * UCS-4: the number of characters including the NUL in GIOP 1.1, and the number of bytes in GIOP 1.2.
    ///   Each character takes four bytes, in the byte order of the stream.
    ///
    /// # Errors
    /// [`CharNotInCodeSet`](EncodeErrorKind::CharNotInCodeSet) (UCS-2),
    /// [`WideInGiop10`](EncodeErrorKind::WideInGiop10), [`NoWideCodeSet`](EncodeErrorKind::NoWideCodeSet),
    /// [`EmbeddedNul`](EncodeErrorKind::EmbeddedNul), [`TooLong`](EncodeErrorKind::TooLong).
    pub fn put_wstr<'a>(&mut self, text: impl Into<WStr<'a>>) -> Result<(), EncodeError> {
        let (set, text) = (self.wide_code_set()?, text.into());
        if text.has_nul() {
            return Err(EncodeErrorKind::EmbeddedNul.into());
        }
        if set != WCharSet::Utf16
            && let Some(done) = self.put_converted_wide(set, text)
        {
            return done;
        }
        let units = text.units().count();
        if self.version() == Version::V1_1 {
            self.put_len(units + 1)?;
            text.units().for_each(|unit| self.put_u16(unit));
            self.put_u16(0);
            return Ok(());
        }
        // If the first unit looks like a byte order mark, write a mark before it. Without that, the receiver
        // would drop the unit or swap the text.
        let marked = matches!(text.units().next(), Some(BOM | SWAPPED_BOM));
        self.put_len((units + usize::from(marked)).saturating_mul(2))?;
        if marked {
            self.put_raw(&BOM.to_be_bytes());
        }
        text.units().for_each(|unit| self.put_raw(&unit.to_be_bytes()));
        Ok(())
    }

    /// Writes an IDL `wchar`. In GIOP 1.1, it takes two aligned bytes in the byte order of the stream. In
    /// GIOP 1.2, it takes a length byte and two bytes in big-endian order. In UCS-4, it takes four bytes
    /// instead of two, in the byte order of the stream.
    ///
    /// # Errors
    /// [`WideInGiop10`](EncodeErrorKind::WideInGiop10), [`NoWideCodeSet`](EncodeErrorKind::NoWideCodeSet).
    pub fn put_wchar(&mut self, unit: WChar) -> Result<(), EncodeError> {
        if self.wide_code_set()? == WCharSet::Ucs4 {
            self.put_ucs_4_char(unit);
            return Ok(());
        }
        if self.version() == Version::V1_1 {
            self.put_u16(unit.0);
        } else {
            let [high, low] = unit.0.to_be_bytes();
            self.put_raw(&[2, high, low]);
        }
        Ok(())
    }

    fn wide_code_set(&self) -> Result<WCharSet, EncodeError> {
        if self.version() == Version::V1_0 {
            return Err(EncodeErrorKind::WideInGiop10.into());
        }
        self.code_sets().wchar.ok_or(EncodeErrorKind::NoWideCodeSet.into())
    }
}

impl<'a> Decoder<'a> {
    /// Reads a `string` and returns its bytes without conversion and without the NUL. A length of 0, which
    /// some old ORBs send, is read as the empty string.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData), [`LengthBeyondData`](DecodeErrorKind::LengthBeyondData),
    /// [`StringNotTerminated`](DecodeErrorKind::StringNotTerminated),
    /// [`EmbeddedNul`](DecodeErrorKind::EmbeddedNul).
    pub fn read_str_bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.read_len(1)?;
        let start = self.position();
        match self.take(len)?.split_last() {
            None => Ok(&[]),
            Some((0, bytes)) if !bytes.contains(&0) => Ok(bytes),
            Some((0, _)) => Err(DecodeError::new(DecodeErrorKind::EmbeddedNul, start)),
            Some(_) => Err(DecodeError::new(DecodeErrorKind::StringNotTerminated, start)),
        }
    }

    /// Reads like [`read_str_bytes`](Decoder::read_str_bytes), but returns a view of the shared buffer.
    ///
    /// # Errors
    /// The errors of `read_str_bytes`. Without a shared buffer, the bytes are copied, which can fail with
    /// [`AllocLimit`](DecodeErrorKind::AllocLimit).
    pub fn read_str_bytes_shared(&mut self) -> Result<Bytes, DecodeError> {
        let bytes = self.read_str_bytes()?;
        let start = self.position.saturating_sub(bytes.len() + 1);
        self.share(start, bytes)
    }

    /// Reads a `string` without code set conversion, such as a repository id, operation name or address.
    ///
    /// # Errors
    /// Those of [`read_str_bytes`](Decoder::read_str_bytes), and
    /// [`InvalidIdentifier`](DecodeErrorKind::InvalidIdentifier) if the bytes are not UTF-8.
    pub fn read_unconverted_str(&mut self) -> Result<&'a str, DecodeError> {
        let bytes = self.read_str_bytes()?;
        check_utf8(self, bytes, DecodeErrorKind::InvalidIdentifier)
    }

    /// Reads an IDL `string` in the transmission code set. Valid text in UTF-8 is borrowed.
    pub(crate) fn read_string_cow(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        if self.code_sets().char != CharSet::Utf8 {
            return self.read_string().map(Cow::Owned);
        }
        let bytes = self.read_str_bytes()?;
        match check_utf8(self, bytes, DecodeErrorKind::InvalidText) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(error) => decode_leniently(self, bytes, error).map(Cow::Owned),
        }
    }

    /// Reads an IDL `string` in the transmission code set. Invalid bytes are an error, unless the
    /// [context](crate::value::DecodeContext::invalid_text) permits them.
    ///
    /// # Errors
    /// Those of [`read_str_bytes`](Decoder::read_str_bytes), [`InvalidText`](DecodeErrorKind::InvalidText),
    /// [`CharNotInCodeSet`](DecodeErrorKind::CharNotInCodeSet) for bytes that are not a character of a
    /// [converted set](CharSet::Converted), [`NoCodeSet`](DecodeErrorKind::NoCodeSet), and
    /// [`AllocLimit`](DecodeErrorKind::AllocLimit).
    pub fn read_string(&mut self) -> Result<String, DecodeError> {
        let bytes = self.read_str_bytes()?;
        match self.code_sets().char {
            CharSet::Utf8 => decode_utf8(self, bytes),
            set => decode_in_set(self, set, bytes),
        }
    }

    /// Reads an IDL `wstring`, whose encoding is described at [`Encoder::put_wstr`]. In GIOP 1.2, a byte
    /// order mark of UTF-16 or UCS-2 is honored and removed. Without a mark, the units are big-endian,
    /// whatever the byte order of the stream.
    ///
    /// # Errors
    /// [`WideInGiop10`](DecodeErrorKind::WideInGiop10), [`NoWideCodeSet`](DecodeErrorKind::NoWideCodeSet),
    /// [`InvalidWideText`](DecodeErrorKind::InvalidWideText), [`EmbeddedNul`](DecodeErrorKind::EmbeddedNul),
    /// [`StringNotTerminated`](DecodeErrorKind::StringNotTerminated) (GIOP 1.1),
    /// [`CharNotInCodeSet`](DecodeErrorKind::CharNotInCodeSet) (UCS-2),
    /// [`EndOfData`](DecodeErrorKind::EndOfData), [`LengthBeyondData`](DecodeErrorKind::LengthBeyondData),
    /// [`AllocLimit`](DecodeErrorKind::AllocLimit).
    pub fn read_wstring(&mut self) -> Result<WString, DecodeError> {
        if wide_code_set(self)? == WCharSet::Ucs4 {
            return conversion::read_ucs_4(self);
        }
        if self.version() == Version::V1_1 {
            let count = self.read_len(2)?;
            let start = self.position();
            let bytes = self.take(count * 2)?;
            let Some((text, last)) = bytes.split_last_chunk::<2>() else {
                return Ok(WString::default());
            };
            if *last != [0, 0] {
                return Err(DecodeError::new(DecodeErrorKind::StringNotTerminated, start));
            }
            let unit = match self.order() {
                ByteOrder::Big => u16::from_be_bytes,
                ByteOrder::Little => u16::from_le_bytes,
            };
            return decode_utf16(self, text, unit, start);
        }
        let len = self.read_len(1)?;
        let start = self.position();
        let bytes = self.take(len)?;
        match bytes {
            [0xFF, 0xFE, text @ ..] => decode_utf16(self, text, u16::from_le_bytes, start),
            [0xFE, 0xFF, text @ ..] | text => decode_utf16(self, text, u16::from_be_bytes, start),
        }
    }

    /// Reads an IDL `wchar`, whose encoding is described at [`Encoder::put_wchar`]. In GIOP 1.2, a UTF-16
    /// unit may be preceded by a byte order mark. It then takes four bytes.
    ///
    /// # Errors
    /// [`WideInGiop10`](DecodeErrorKind::WideInGiop10), [`NoWideCodeSet`](DecodeErrorKind::NoWideCodeSet),
    /// [`EndOfData`](DecodeErrorKind::EndOfData), [`InvalidWideText`](DecodeErrorKind::InvalidWideText),
    /// [`CharNotInCodeSet`](DecodeErrorKind::CharNotInCodeSet) for a character above U+FFFF, which does not
    /// fit a `wchar`.
    pub fn read_wchar(&mut self) -> Result<WChar, DecodeError> {
        if wide_code_set(self)? == WCharSet::Ucs4 {
            return conversion::read_ucs_4_char(self);
        }
        if self.version() == Version::V1_1 {
            return self.read_u16().map(WChar);
        }
        let start = self.position();
        let len = usize::from(self.read_u8()?);
        match *self.take(len)? {
            [high, low] | [0xFE, 0xFF, high, low] | [0xFF, 0xFE, low, high] => {
                Ok(WChar(u16::from_be_bytes([high, low])))
            }
            [0xD8..=0xDB, _, 0xDC..=0xDF, _] => {
                Err(DecodeError::new(DecodeErrorKind::CharNotInCodeSet, start))
            }
            _ => Err(DecodeError::new(DecodeErrorKind::InvalidWideText, start)),
        }
    }
}

#[inline]
fn decode_utf8<'a>(d: &mut Decoder<'a>, bytes: &'a [u8]) -> Result<String, DecodeError> {
    match check_utf8(d, bytes, DecodeErrorKind::InvalidText) {
        Ok(text) => {
            d.charge(text.len())?;
            Ok(text.to_owned())
        }
        Err(error) => decode_leniently(d, bytes, error),
    }
}

/// Converts bytes that are invalid in their code set if the context permits it. Otherwise returns `error`.
#[cold]
fn decode_leniently(d: &mut Decoder<'_>, bytes: &[u8], error: DecodeError) -> Result<String, DecodeError> {
    let is_invalid = matches!(error.kind, DecodeErrorKind::InvalidText | DecodeErrorKind::CharNotInCodeSet);
    let policy = d.invalid_text_policy();
    if !is_invalid || policy == InvalidText::Refuse {
        return Err(error);
    }
    // Each invalid byte may become U+FFFD, which has three bytes in UTF-8.
    d.charge(bytes.len().saturating_mul(3))?;
    Ok(match (policy, d.code_sets().char) {
        (InvalidText::Latin1, _) => bytes.iter().map(|byte| char::from(*byte)).collect(),
        (_, CharSet::Converted(set)) => set.decode_lossy(bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    })
}

// A separate function keeps the UTF-8 path small.
#[inline(never)]
fn decode_in_set<'a>(d: &mut Decoder<'a>, set: CharSet, bytes: &'a [u8]) -> Result<String, DecodeError> {
    match set {
        CharSet::Latin1 if !bytes.is_ascii() => {
            let chars = bytes.iter().map(|byte| char::from(*byte));
            d.charge(chars.clone().map(char::len_utf8).sum())?;
            Ok(chars.collect())
        }
        CharSet::Latin1 | CharSet::Utf8 => decode_utf8(d, bytes),
        CharSet::Converted(set) => {
            conversion::decode_converted(d, set, bytes).or_else(|error| decode_leniently(d, bytes, error))
        }
    }
}

fn check_utf8<'a>(
    d: &Decoder<'a>,
    bytes: &'a [u8],
    error_kind: DecodeErrorKind,
) -> Result<&'a str, DecodeError> {
    str::from_utf8(bytes).map_err(|e| {
        let start = d.position() - bytes.len() - 1;
        DecodeError::new(error_kind, start + e.valid_up_to())
    })
}

/// Returns the replacement for a number that is not a character, if the context permits replacement.
#[cold]
pub(super) fn replacement_char(
    d: &Decoder<'_>,
    error_kind: DecodeErrorKind,
    start: usize,
) -> Result<char, DecodeError> {
    match d.invalid_text_policy() {
        InvalidText::Refuse => Err(DecodeError::new(error_kind, start)),
        InvalidText::Replace | InvalidText::Latin1 => Ok(char::REPLACEMENT_CHARACTER),
    }
}

fn decode_utf16(
    d: &mut Decoder<'_>,
    bytes: &[u8],
    unit: fn([u8; 2]) -> u16,
    start: usize,
) -> Result<WString, DecodeError> {
    let (pairs, odd) = bytes.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(DecodeError::new(DecodeErrorKind::InvalidWideText, start));
    }
    // A UTF-16 unit becomes at most three bytes of UTF-8.
    d.charge(pairs.len().saturating_mul(3))?;
    let mut text = String::with_capacity(pairs.len());
    for c in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        match c {
            Ok('\0') => return Err(DecodeError::new(DecodeErrorKind::EmbeddedNul, start)),
            Ok(c) => text.push(c),
            Err(_) => return decode_lone_surrogates(d, pairs, unit, start),
        }
    }
    if d.code_sets().wchar == Some(WCharSet::Ucs2) && text.chars().any(|c| c > '\u{ffff}') {
        return Err(DecodeError::new(DecodeErrorKind::CharNotInCodeSet, start));
    }
    Ok(WString::from(text))
}

/// Decodes text that contains a lone half of a surrogate pair.
#[cold]
fn decode_lone_surrogates(
    d: &Decoder<'_>,
    pairs: &[[u8; 2]],
    unit: fn([u8; 2]) -> u16,
    start: usize,
) -> Result<WString, DecodeError> {
    let text: WString = pairs.iter().map(|pair| unit(*pair)).collect();
    let error_kind = if text.units().any(|unit| unit == 0) {
        DecodeErrorKind::EmbeddedNul
    } else if d.code_sets().wchar == Some(WCharSet::Ucs2) && text.as_wstr().code_points().any(|c| c > 0xFFFF)
    {
        DecodeErrorKind::CharNotInCodeSet
    } else {
        return Ok(text);
    };
    Err(DecodeError::new(error_kind, start))
}

fn wide_code_set(d: &Decoder<'_>) -> Result<WCharSet, DecodeError> {
    if d.version() == Version::V1_0 {
        return Err(d.error(DecodeErrorKind::WideInGiop10));
    }
    d.code_sets().wchar.ok_or_else(|| d.error(DecodeErrorKind::NoWideCodeSet))
}

/// Implements the encoding and optionally the decoding of a type by methods of [`Encoder`] and [`Decoder`].
macro_rules! text_cdr {
    ($($ty:ty, |$text:ident, $e:ident| $put:expr $(, $read:ident, $min_size:literal)?;)*) => {$(
        impl CdrEncode for $ty {
            fn encode(&self, $e: &mut Encoder) -> Result<(), EncodeError> {
                let $text = self;
                $put
            }
        }

        $(impl CdrDecode for $ty {
            const MIN_SIZE: usize = $min_size;

            fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                d.$read()
            }
        })?
    )*};
}

text_cdr! {
    str, |text, e| e.put_str(text);
    String, |text, e| e.put_str(text), read_string, 4;
    WStr<'_>, |text, e| e.put_wstr(*text);
    WString, |text, e| e.put_wstr(text), read_wstring, 4;
    WChar, |unit, e| e.put_wchar(*unit), read_wchar, 2;
}
