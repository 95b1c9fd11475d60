//! [`Uses`]: a counter of the uses of a type, which decides when compiled code is used.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// The number of values of an `@adaptive` type that were written or read.
///
/// Uses are counted up to the limit of the type. After that, the compiled code is used. The counter then no
/// longer changes, so that threads only read it.
#[derive(Debug)]
pub struct Uses {
    name: &'static str,
    limit: u32,
    count: AtomicU32,
}

impl Uses {
    /// Creates the counter of the type with this scoped IDL name, whose first `limit` uses are interpreted.
    #[doc(hidden)]
    pub const fn new(name: &'static str, limit: u32) -> Uses {
        Uses { name, limit, count: AtomicU32::new(0) }
    }

    /// Returns the scoped name of the type in the IDL.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the number of uses, up to the limit.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the number of uses for which the interpreter is used.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns whether the compiled code is used now.
    #[inline]
    pub fn is_compiled(&self) -> bool {
        self.count() >= self.limit
    }

    /// Counts a use. Returns `true` if the compiled code must be used for it.
    #[doc(hidden)]
    pub fn count_use(&self) -> bool {
        let next = |count: u32| (count < self.limit).then(|| count + 1);
        self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_err()
    }
}

/// An `@adaptive` type in generated code.
pub trait Adaptive {
    /// Returns the counter of its uses.
    fn uses() -> &'static Uses;
}

/// The compiled encoding of an `@adaptive` type, as in [`CdrEncode`](crate::cdr::CdrEncode).
pub trait CompiledEncode {
    /// Writes the value.
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError>;

    /// Writes each of `items`, without a count.
    fn encode_slice(items: &[Self], e: &mut Encoder) -> Result<(), EncodeError>
    where
        Self: Sized,
    {
        items.iter().try_for_each(|item| item.encode(e))
    }
}

/// The compiled decoding of an `@adaptive` type, as in [`CdrDecode`](crate::cdr::CdrDecode).
pub trait CompiledDecode: Sized {
    /// The minimum size of a value in bytes.
    const MIN_SIZE: usize;

    /// Reads a value.
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError>;

    /// Reads `n` values.
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
    fn decode_array<const N: usize>(d: &mut Decoder<'_>) -> Result<[Self; N], DecodeError> {
        let start = d.position();
        let items: Vec<Self> = (0..N).map(|_| Self::decode(d)).collect::<Result<_, _>>()?;
        items.try_into().map_err(|_| DecodeError::new(DecodeErrorKind::Malformed, start))
    }
}
