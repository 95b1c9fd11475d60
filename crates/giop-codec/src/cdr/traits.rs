//! [`CdrEncode`] and [`CdrDecode`]: how a type is written and read.

use super::decoder::Decoder;
use super::encoder::Encoder;
use crate::{DecodeError, EncodeError};

/// A type with a CDR encoding.
pub trait CdrEncode {
    /// Writes the value at the encoder's position, with the padding it needs before it.
    ///
    /// # Errors
    /// The value has no encoding here: see [`EncodeErrorKind`](crate::EncodeErrorKind).
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError>;

    /// Writes each of `items`, without a count. Fixed-layout types override it by [`Encoder::put_fixed_slice`].
    ///
    /// # Errors
    /// As [`encode`](CdrEncode::encode), of the first item that has no encoding.
    fn encode_slice(items: &[Self], e: &mut Encoder) -> Result<(), EncodeError>
    where
        Self: Sized,
    {
        items.iter().try_for_each(|item| item.encode(e))
    }
}

/// A type that can be decoded from CDR.
pub trait CdrDecode: Sized {
    /// Least number of octets a value takes on the wire: 0 only for types without members. Counts of sequences
    /// are checked against it before anything is allocated.
    const MIN_SIZE: usize;

    /// Reads a value at the decoder's position, after the padding before it.
    ///
    /// # Errors
    /// The octets are not a value of this type: see [`DecodeErrorKind`](crate::DecodeErrorKind).
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError>;

    /// Reads `n` values, for which the caller has checked the count by [`Decoder::read_len`]. Fixed-layout types
    /// override it by [`Decoder::read_fixed_vec`].
    ///
    /// # Errors
    /// As [`decode`](CdrDecode::decode), or [`AllocLimit`](crate::DecodeErrorKind::AllocLimit).
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

    /// Reads an array. Fixed-layout types override it by [`Decoder::read_fixed`].
    ///
    /// # Errors
    /// As [`decode`](CdrDecode::decode).
    fn decode_array<const N: usize>(d: &mut Decoder<'_>) -> Result<[Self; N], DecodeError> {
        let mut slots = [const { None }; N];
        for slot in &mut slots {
            *slot = Some(Self::decode(d)?);
        }
        Ok(slots.map(|slot| slot.unwrap_or_else(|| unreachable!("every slot was filled above"))))
    }

    /// Reads a value to the heap; arrays do so without a copy on the stack.
    ///
    /// # Errors
    /// As [`decode`](CdrDecode::decode), or [`AllocLimit`](crate::DecodeErrorKind::AllocLimit).
    fn decode_boxed(d: &mut Decoder<'_>) -> Result<Box<Self>, DecodeError> {
        d.charge(size_of::<Self>())?;
        d.nested(|d| Self::decode(d).map(Box::new))
    }
}
