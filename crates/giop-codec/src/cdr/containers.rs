//! Encodings of vectors, slices, arrays, boxes, Rust references, byte sequences and the unit value `()`.

use bytes::Bytes;

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::traits::{CdrDecode, CdrEncode};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

impl<T: CdrEncode> CdrEncode for [T] {
    /// Writes a `sequence<T>`: the count, then the elements ("Sequence").
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_len(self.len())?;
        T::encode_slice(self, e)
    }
}

impl<T: CdrEncode> CdrEncode for Vec<T> {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.as_slice().encode(e)
    }
}

impl<T: CdrDecode> CdrDecode for Vec<T> {
    const MIN_SIZE: usize = 4;

    fn decode(d: &mut Decoder<'_>) -> Result<Vec<T>, DecodeError> {
        let n = d.read_len(T::MIN_SIZE)?;
        T::decode_vec(d, n)
    }
}

impl<T: CdrEncode, const N: usize> CdrEncode for [T; N] {
    /// Writes the elements in row-major order, without a count ("Array").
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        T::encode_slice(self, e)
    }

    fn encode_slice(items: &[[T; N]], e: &mut Encoder) -> Result<(), EncodeError> {
        T::encode_slice(items.as_flattened(), e)
    }
}

impl<T: CdrDecode, const N: usize> CdrDecode for [T; N] {
    const MIN_SIZE: usize = T::MIN_SIZE * N;

    fn decode(d: &mut Decoder<'_>) -> Result<[T; N], DecodeError> {
        T::decode_array(d)
    }

    fn decode_vec(d: &mut Decoder<'_>, n: usize) -> Result<Vec<[T; N]>, DecodeError> {
        let mut out = d.new_vec(n)?;
        if d.has_fragment_boundaries() {
            // In GIOP 1.1 fragments, peers write the elements of all arrays of a sequence as one run.
            let start = d.position();
            let mut items = T::decode_vec(d, n.saturating_mul(N))?.into_iter();
            for _ in 0..n {
                let array = items.by_ref().take(N).collect::<Vec<T>>().try_into();
                out.push(array.map_err(|_| DecodeError::new(DecodeErrorKind::Malformed, start))?);
            }
            return Ok(out);
        }
        d.nested(|d| {
            for _ in 0..n {
                out.push(T::decode_array(d)?);
            }
            Ok(())
        })?;
        Ok(out)
    }

    fn decode_boxed(d: &mut Decoder<'_>) -> Result<Box<[T; N]>, DecodeError> {
        let start = d.position();
        let items = T::decode_vec(d, N)?.into_boxed_slice();
        // Cannot fail: the length is N.
        items.try_into().map_err(|_| DecodeError::new(DecodeErrorKind::Malformed, start))
    }
}

impl<T: CdrEncode + ?Sized> CdrEncode for Box<T> {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        (**self).encode(e)
    }
}

impl<T: CdrDecode> CdrDecode for Box<T> {
    const MIN_SIZE: usize = T::MIN_SIZE;

    fn decode(d: &mut Decoder<'_>) -> Result<Box<T>, DecodeError> {
        T::decode_boxed(d)
    }
}

impl<T: CdrEncode + ?Sized> CdrEncode for &T {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        (**self).encode(e)
    }
}

impl CdrEncode for Bytes {
    /// Writes a `sequence<octet>`. If there are at least as many bytes as the encoder's [chunk
    /// threshold](Encoder::set_chunk_threshold), they are shared. Otherwise they are copied.
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_len(self.len())?;
        e.put_shared_ref(self);
        Ok(())
    }
}

impl CdrDecode for Bytes {
    const MIN_SIZE: usize = 4;

    /// Returns a view of the decoder's shared buffer, or a copy if the decoder has none.
    fn decode(d: &mut Decoder<'_>) -> Result<Bytes, DecodeError> {
        let n = d.read_len(1)?;
        d.take_shared(n)
    }
}

impl CdrEncode for () {
    fn encode(&self, _: &mut Encoder) -> Result<(), EncodeError> {
        Ok(())
    }
}

impl CdrDecode for () {
    const MIN_SIZE: usize = 0;

    fn decode(_: &mut Decoder<'_>) -> Result<(), DecodeError> {
        Ok(())
    }
}
