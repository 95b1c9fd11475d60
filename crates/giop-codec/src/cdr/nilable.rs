//! [`Nilable`]: types that have a nil value in IDL.

use super::traits::{CdrDecode, CdrEncode};
use super::{Decoder, Encoder};
use crate::{DecodeError, EncodeError};

/// A type with an encoding for nil, such as an object reference. An `Option` of it can be sent and received.
///
/// Generated code implements this trait for its types, because it cannot implement [`CdrEncode`] for
/// `Option`.
pub trait Nilable: Sized {
    /// Minimum number of encoded bytes of a value or nil.
    const MIN_SIZE: usize;

    /// Writes a value that is not nil.
    ///
    /// # Errors
    /// The value has no encoding in the encoder's version and code sets.
    fn encode_some(&self, e: &mut Encoder) -> Result<(), EncodeError>;

    /// Writes nil.
    ///
    /// # Errors
    /// Nil has no encoding in the encoder's version.
    fn encode_nil(e: &mut Encoder) -> Result<(), EncodeError>;

    /// Reads a value or nil.
    ///
    /// # Errors
    /// The bytes are neither a value nor nil.
    fn decode_nilable(d: &mut Decoder<'_>) -> Result<Option<Self>, DecodeError>;
}

impl<T: Nilable> CdrEncode for Option<T> {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        match self {
            Some(value) => value.encode_some(e),
            None => T::encode_nil(e),
        }
    }
}

impl<T: Nilable> CdrDecode for Option<T> {
    const MIN_SIZE: usize = T::MIN_SIZE;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        T::decode_nilable(d)
    }
}
