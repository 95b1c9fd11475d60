//! Encapsulations in buffers of their own: the data of profiles, components and service contexts.

use bytes::Bytes;

use crate::cdr::{Decoder, Encoder};
use crate::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, Version};

/// Returns the bytes of an encapsulation: the byte order, then the output of `f`.
///
/// It is little-endian, so that the text of a reference does not depend on the machine that created it.
/// Source clause: "CDR Transfer Syntax / Encapsulation".
///
/// # Errors
/// The errors of `f`.
pub fn encapsulation(f: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>) -> Result<Bytes, EncodeError> {
    let mut e = Encoder::new(ByteOrder::Little, Version::V1_2);
    e.put_u8(e.order().flag());
    f(&mut e)?;
    Ok(e.into_bytes())
}

/// Returns a decoder after the byte order flag of an encapsulation. The views that it returns share `bytes`.
///
/// # Errors
/// The encapsulation is empty.
pub fn open_encapsulation(bytes: &Bytes) -> Result<Decoder<'_>, DecodeError> {
    let order = order_of(bytes)?;
    Ok(Decoder::from_bytes(bytes, order, Version::V1_2).at(1))
}

/// Like [`open_encapsulation`], for a borrowed slice.
pub(crate) fn open_encapsulation_slice(bytes: &[u8]) -> Result<Decoder<'_>, DecodeError> {
    let order = order_of(bytes)?;
    Ok(Decoder::new(bytes, order, Version::V1_2).at(1))
}

fn order_of(bytes: &[u8]) -> Result<ByteOrder, DecodeError> {
    let flag = bytes.first().ok_or(DecodeError::new(DecodeErrorKind::EndOfData, 0))?;
    Ok(ByteOrder::from_flag(*flag))
}

/// Reads and copies a `sequence<octet>`, because sharing it would keep the whole message allocated.
pub(crate) fn read_octets_owned(d: &mut Decoder<'_>) -> Result<Bytes, DecodeError> {
    let len = d.read_len(1)?;
    Ok(Bytes::copy_from_slice(d.take(len)?))
}

/// Reads and copies a `sequence<octet>`. More than `max_len` bytes are the error `LimitExceeded`.
pub(crate) fn read_octets_within(d: &mut Decoder<'_>, max_len: usize) -> Result<Bytes, DecodeError> {
    let at = d.position();
    let len = d.read_len(1)?;
    if len > max_len {
        return Err(DecodeError::new(DecodeErrorKind::LimitExceeded, at));
    }
    Ok(Bytes::copy_from_slice(d.take(len)?))
}

/// Reads a `sequence<octet>` that shares the decoder's buffer.
pub(crate) fn read_octets_shared(d: &mut Decoder<'_>) -> Result<Bytes, DecodeError> {
    let len = d.read_len(1)?;
    d.take_shared(len)
}

/// Writes a `sequence<octet>`.
pub(crate) fn put_octets(e: &mut Encoder, bytes: &[u8]) -> Result<(), EncodeError> {
    e.put_len(bytes.len())?;
    e.put_raw(bytes);
    Ok(())
}

/// Reads a sequence of elements of at least `min_size` bytes. More than `max_count` are `LimitExceeded`.
pub(crate) fn read_list<'a, T>(
    d: &mut Decoder<'a>,
    min_size: usize,
    max_count: usize,
    read: impl Fn(&mut Decoder<'a>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let at = d.position();
    let count = d.read_len(min_size)?;
    if count > max_count {
        return Err(DecodeError::new(DecodeErrorKind::LimitExceeded, at));
    }
    (0..count).map(|_| read(d)).collect()
}
