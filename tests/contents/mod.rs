//! What tests send, and how they know that it arrived: cheap without optimisation too, since some of them send hundreds of mebibytes.

#![allow(dead_code, reason = "not every test needs both")]

use bytes::Bytes;

/// Bytes that show where they belong: the same ones come again only after [`PERIOD`].
pub(crate) fn octets(len: usize) -> Bytes {
    let period: Vec<u8> = (0..PERIOD.min(len)).map(|i| (i * 31 + i / 251) as u8).collect();
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        bytes.extend_from_slice(&period[..period.len().min(len - bytes.len())]);
    }
    bytes.into()
}

/// How many bytes [`octets`] repeats.
const PERIOD: usize = 251 << 8;

/// The checksum of all bytes so far, where `before` is that of the bytes before these (0 at the beginning).
pub(crate) fn checksum(before: u64, bytes: &[u8]) -> u64 {
    let mut hasher = crc32fast::Hasher::new_with_initial(before as u32);
    hasher.update(bytes);
    u64::from(hasher.finalize())
}
