//! [`Optional`]: members that may be missing.

use core::ops::{Deref, DerefMut};

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::traits::{CdrDecode, CdrEncode};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// An `@optional` member: a value or none. It derefs to [`Option`], and converts from and to one.
///
/// GIOP has no encoding for what is missing: it travels as a `sequence<T, 1>`, which is what other ORBs declare.
///
/// ```
/// use giop_codec::cdr::Optional;
/// let mut member: Optional<i32> = Some(5).into();
/// assert_eq!(member.take(), Some(5));
/// assert!(member.is_none() && member == None.into());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Optional<T>(
    /// The value.
    pub Option<T>,
);

impl<T> Optional<T> {
    /// The value as an option.
    pub fn into_option(self) -> Option<T> {
        self.0
    }
}

impl<T> Default for Optional<T> {
    /// None.
    fn default() -> Self {
        Optional(None)
    }
}

impl<T> Deref for Optional<T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        &self.0
    }
}

impl<T> DerefMut for Optional<T> {
    fn deref_mut(&mut self) -> &mut Option<T> {
        &mut self.0
    }
}

impl<T> From<Option<T>> for Optional<T> {
    fn from(value: Option<T>) -> Self {
        Optional(value)
    }
}

impl<T> From<Optional<T>> for Option<T> {
    fn from(value: Optional<T>) -> Self {
        value.0
    }
}

impl<T: CdrEncode> CdrEncode for Optional<T> {
    /// As a sequence of one element or none.
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_len(usize::from(self.is_some()))?;
        self.iter().try_for_each(|value| value.encode(e))
    }
}

impl<T: CdrDecode> CdrDecode for Optional<T> {
    const MIN_SIZE: usize = 4;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        match d.read_u32()? {
            0 => Ok(Optional(None)),
            1 => d.nested(|d| T::decode(d).map(|value| Optional(Some(value)))),
            _ => Err(DecodeError::new(DecodeErrorKind::BoundExceeded, d.position() - 4)),
        }
    }
}
