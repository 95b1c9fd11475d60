//! Encapsulations that stand on their own: profile data, component data, service context data.

use bytes::Bytes;

use crate::cdr::{Decoder, Encoder};
use crate::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, Version};

/// The octets of an encapsulation: the byte order octet, then what `f` writes.
///
/// Little-endian on every machine, so that the text of a reference does not depend on where it was made.
/// Source clause: "CDR Transfer Syntax / Encapsulation".
///
/// # Errors
/// Those of `f`.
pub fn encapsulation(f: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>) -> Result<Bytes, EncodeError> {
    let mut e = Encoder::new(ByteOrder::Little, Version::V1_2);
    e.put_u8(e.order().flag());
    f(&mut e)?;
    Ok(e.into_bytes())
}

/// A decoder behind the byte order octet of an encapsulation; views that it hands out share `octets`.
///
/// # Errors
/// There is not even a byte order octet.
pub fn open_encapsulation(octets: &Bytes) -> Result<Decoder<'_>, DecodeError> {
    let order = order_of(octets)?;
    Ok(Decoder::from_bytes(octets, order, Version::V1_2).at(1))
}

/// As [`open_encapsulation`], for octets that are only borrowed: what must be owned is copied.
pub(crate) fn open_encapsulation_slice(octets: &[u8]) -> Result<Decoder<'_>, DecodeError> {
    let order = order_of(octets)?;
    Ok(Decoder::new(octets, order, Version::V1_2).at(1))
}

fn order_of(octets: &[u8]) -> Result<ByteOrder, DecodeError> {
    octets
        .first()
        .map(|flag| ByteOrder::from_flag(*flag))
        .ok_or(DecodeError::new(DecodeErrorKind::EndOfData, 0))
}

/// Reads a `sequence<octet>` and copies it: references outlive the message they came in and must not pin its buffer.
pub(crate) fn read_octets_owned(d: &mut Decoder<'_>) -> Result<Bytes, DecodeError> {
    let len = d.read_len(1)?;
    Ok(Bytes::copy_from_slice(d.take(len)?))
}

/// As [`read_octets_owned`], where more than so many octets are `LimitExceeded`.
pub(crate) fn read_octets_within(d: &mut Decoder<'_>, most: usize) -> Result<Bytes, DecodeError> {
    let at = d.position();
    let len = d.read_len(1)?;
    if len > most {
        return Err(DecodeError::new(DecodeErrorKind::LimitExceeded, at));
    }
    Ok(Bytes::copy_from_slice(d.take(len)?))
}

/// Reads a `sequence<octet>` as a view of the decoder's owner.
pub(crate) fn read_octets_shared(d: &mut Decoder<'_>) -> Result<Bytes, DecodeError> {
    let len = d.read_len(1)?;
    d.take_shared(len)
}

/// Writes a `sequence<octet>`.
pub(crate) fn put_octets(e: &mut Encoder, octets: &[u8]) -> Result<(), EncodeError> {
    e.put_len(octets.len())?;
    e.put_raw(octets);
    Ok(())
}
