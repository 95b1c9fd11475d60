//! [`CdrEncode`] and [`CdrDecode`]: how values of a type are written and read.

use super::decoder::Decoder;
use super::encoder::Encoder;
use crate::{DecodeError, EncodeError};

/// A type with a CDR encoding.
pub trait CdrEncode {
    /// Writes the value, after the padding that its alignment needs.
    ///
    /// # Errors
    /// The value has no encoding in the encoder's version and code sets; see
    /// [`EncodeErrorKind`](crate::EncodeErrorKind).
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError>;

    /// Writes `items` without a count. Fixed-layout types override this method with
    /// [`Encoder::put_fixed_slice`].
    ///
    /// # Errors
    /// Those of [`encode`](CdrEncode::encode), for the first item that has no encoding.
    fn encode_slice(items: &[Self], e: &mut Encoder) -> Result<(), EncodeError>
    where
        Self: Sized,
    {
        items.iter().try_for_each(|item| item.encode(e))
    }
}

/// A type that can be decoded from CDR.
pub trait CdrDecode: Sized {
    /// Minimum number of encoded bytes of a value. It may be 0 only if the type has no members or elements.
    /// The count of a sequence is checked against this minimum before anything is allocated.
    const MIN_SIZE: usize;

    /// Skips the padding before a value, then reads the value.
    ///
    /// # Errors
    /// The bytes are not a value of this type; see [`DecodeErrorKind`](crate::DecodeErrorKind).
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError>;

    /// Reads `n` values. The caller must have checked `n` with [`Decoder::read_len`]. Fixed-layout types
    /// override this method with [`Decoder::read_fixed_vec`].
    ///
    /// # Errors
    /// Those of [`decode`](CdrDecode::decode), and [`AllocLimit`](crate::DecodeErrorKind::AllocLimit).
    fn decode_vec(d: &mut Decoder<'_>, n: usize) -> Result<Vec<Self>, DecodeError> {
        let mut out = d.new_vec(n)?;
        d.nested(|d| {
            for _ in 0..n {
                out.push(Self::decode(d)?);
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// Reads an array. Fixed-layout types override this method with [`Decoder::read_fixed`].
    ///
    /// # Errors
    /// Those of [`decode`](CdrDecode::decode).
    fn decode_array<const N: usize>(d: &mut Decoder<'_>) -> Result<[Self; N], DecodeError> {
        let mut slots = [const { None }; N];
        for slot in &mut slots {
            *slot = Some(Self::decode(d)?);
        }
        Ok(slots.map(|slot| slot.unwrap_or_else(|| unreachable!("every slot was filled above"))))
    }

    /// Reads a value into a box. Arrays override this method, so that they are not first built on the stack.
    ///
    /// # Errors
    /// Those of [`decode`](CdrDecode::decode), and [`AllocLimit`](crate::DecodeErrorKind::AllocLimit).
    fn decode_boxed(d: &mut Decoder<'_>) -> Result<Box<Self>, DecodeError> {
        d.charge(size_of::<Self>())?;
        d.nested(|d| Self::decode(d).map(Box::new))
    }
}
