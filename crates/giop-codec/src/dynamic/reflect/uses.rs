//! [`Uses`]: how often a type was marshalled, and whether that is often enough for compiled code.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// The uses of an `@adaptive` type: values that were written or read.
///
/// They are counted until they are as many as the type has been given; from then on its compiled code is taken, and nothing is
/// counted any more, so that what many threads use is only read.
#[derive(Debug)]
pub struct Uses {
    name: &'static str,
    limit: u32,
    count: AtomicU32,
}

impl Uses {
    /// Of the type with this scoped IDL name, which is interpreted so many times.
    #[doc(hidden)]
    pub const fn new(name: &'static str, limit: u32) -> Uses {
        Uses { name, limit, count: AtomicU32::new(0) }
    }

    /// The scoped name of the type in the IDL.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// How often the type was used, up to the limit.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// How often the type is interpreted.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Whether the compiled code is taken now.
    #[inline]
    pub fn is_compiled(&self) -> bool {
        self.count() >= self.limit
    }

    /// Counts a use; `true`: by the compiled code.
    #[doc(hidden)]
    pub fn used(&self) -> bool {
        let next = |count: u32| (count < self.limit).then(|| count + 1);
        self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_err()
    }
}

/// A type of generated code that is `@adaptive`.
pub trait Adaptive {
    /// How often it was used.
    fn uses() -> &'static Uses;
}

/// The compiled half of an adaptive type: as [`CdrEncode`](crate::cdr::CdrEncode).
pub trait CompiledEncode {
    /// Writes the value.
    ///
    /// # Errors
    /// The value has no encoding.
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError>;

    /// Writes each of `items`, without a count.
    ///
    /// # Errors
    /// As `encode`.
    fn encode_slice(items: &[Self], e: &mut Encoder) -> Result<(), EncodeError>
    where
        Self: Sized,
    {
        items.iter().try_for_each(|item| item.encode(e))
    }
}

/// The compiled half of an adaptive type: as [`CdrDecode`](crate::cdr::CdrDecode).
pub trait CompiledDecode: Sized {
    /// Least number of octets of a value.
    const MIN_SIZE: usize;

    /// Reads a value.
    ///
    /// # Errors
    /// The octets are not a value of this type.
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError>;

    /// Reads `n` values.
    ///
    /// # Errors
    /// As `decode`, or `AllocLimit`.
    fn decode_vec(d: &mut Decoder<'_>, n: usize) -> Result<Vec<Self>, DecodeError> {
        let mut items = d.new_vec(n)?;
        d.nested(|d| {
            for _ in 0..n {
                items.push(Self::decode(d)?);
            }
            Ok(())
        })?;
        Ok(items)
    }

    /// Reads an array.
    ///
    /// # Errors
    /// As `decode`.
    fn decode_array<const N: usize>(d: &mut Decoder<'_>) -> Result<[Self; N], DecodeError> {
        let start = d.position();
        let items: Vec<Self> = (0..N).map(|_| Self::decode(d)).collect::<Result<_, _>>()?;
        items.try_into().map_err(|_| DecodeError::new(DecodeErrorKind::Malformed, start))
    }
}
