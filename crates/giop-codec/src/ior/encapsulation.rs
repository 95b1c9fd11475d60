//! Stand-alone encapsulations: profile data, component data, service context data.

use bytes::Bytes;

use crate::cdr::{Decoder, Encoder};
use crate::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, Version};

/// Returns the bytes of an encapsulation: the byte order, then the output of `f`.
///
/// They are little-endian on every machine, so that the text of a reference does not depend on the machine
/// that created it.
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

/// Returns a decoder after the byte order of an encapsulation; views that it returns share `octets`.
///
/// # Errors
/// The encapsulation is empty.
pub fn open_encapsulation(octets: &Bytes) -> Result<Decoder<'_>, DecodeError> {
    let order = order_of(octets)?;
    Ok(Decoder::from_bytes(octets, order, Version::V1_2).at(1))
}

/// Opens an encapsulation like [`open_encapsulation`], but of a borrowed slice: owned values are copies.
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

/// Reads and copies a `sequence<octet>`: references outlive the message that contained them and must not pin
/// its buffer.
pub(crate) fn read_octets_owned(d: &mut Decoder<'_>) -> Result<Bytes, DecodeError> {
    let len = d.read_len(1)?;
    Ok(Bytes::copy_from_slice(d.take(len)?))
}

/// Reads and copies a `sequence<octet>` of at most `most` bytes; more is `LimitExceeded`.
pub(crate) fn read_octets_within(d: &mut Decoder<'_>, most: usize) -> Result<Bytes, DecodeError> {
    let at = d.position();
    let len = d.read_len(1)?;
    if len > most {
        return Err(DecodeError::new(DecodeErrorKind::LimitExceeded, at));
    }
    Ok(Bytes::copy_from_slice(d.take(len)?))
}

/// Reads a `sequence<octet>` as a view of the decoder's shared buffer.
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
