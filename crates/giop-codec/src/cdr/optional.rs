//! The encoding of `@optional` members, for generated code.

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::traits::{CdrDecode, CdrEncode};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// Minimum number of encoded bytes of an `@optional` member, which begins with a count.
#[doc(hidden)]
pub const OPTIONAL_MIN_SIZE: usize = 4;

/// Writes an `@optional` member as a `sequence<T, 1>`, because GIOP has no encoding for a missing value. For
/// other ORBs, the member must be declared as that sequence.
#[doc(hidden)]
pub fn encode_optional<T: CdrEncode>(value: &Option<T>, e: &mut Encoder) -> Result<(), EncodeError> {
    e.put_len(usize::from(value.is_some()))?;
    value.iter().try_for_each(|value| value.encode(e))
}

/// Reads an `@optional` member. Fails with [`BoundExceeded`](DecodeErrorKind::BoundExceeded) (`MARSHAL`) if
/// the sequence has more than one element.
#[doc(hidden)]
pub fn decode_optional<T: CdrDecode>(d: &mut Decoder<'_>) -> Result<Option<T>, DecodeError> {
    match d.read_u32()? {
        0 => Ok(None),
        1 => T::decode(d).map(Some),
        _ => Err(DecodeError::new(DecodeErrorKind::BoundExceeded, d.position() - 4)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ByteOrder, Version};

    #[test]
    fn what_is_missing_is_an_empty_sequence() {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            for value in [None, Some("x".to_owned())] {
                let mut e = Encoder::new(order, Version::V1_2);
                encode_optional(&value, &mut e).unwrap();
                let bytes = e.into_bytes();
                let sequence: Vec<String> = value.iter().cloned().collect();
                let mut d = Decoder::new(&bytes, order, Version::V1_2);
                assert_eq!(Vec::<String>::decode(&mut d).unwrap(), sequence);
                let mut d = Decoder::new(&bytes, order, Version::V1_2);
                assert_eq!(decode_optional::<String>(&mut d).unwrap(), value);
                assert_eq!(d.remaining(), 0);
            }
        }
    }

    #[test]
    fn two_elements_are_refused() {
        let mut d = Decoder::new(&[0, 0, 0, 2, 7, 7], ByteOrder::Big, Version::V1_2);
        let error = decode_optional::<u8>(&mut d).unwrap_err();
        assert_eq!((error.kind, error.offset), (DecodeErrorKind::BoundExceeded, 0));
    }
}
