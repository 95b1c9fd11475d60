//! What tests send, and how they know that it arrived: cheap without optimisation too, since some of them send hundreds of mebibytes.

#![allow(dead_code, reason = "not every test needs both")]

use bytes::Bytes;

/// Bytes of which no two stretches of some length are alike within [`PERIOD`].
pub(crate) fn octets(len: usize) -> Bytes {
    let period: Vec<u8> = (0..PERIOD.min(len)).map(|i| (i * 31 + i / 251) as u8).collect();
    let mut octets = Vec::with_capacity(len);
    while octets.len() < len {
        octets.extend_from_slice(&period[..period.len().min(len - octets.len())]);
    }
    octets.into()
}

/// After so many bytes they come again.
const PERIOD: usize = 251 << 8;

/// The checksum of bytes behind those with the checksum `before` (0 where there are none).
pub(crate) fn checksum(before: u64, octets: &[u8]) -> u64 {
    let mut hasher = crc32fast::Hasher::new_with_initial(before as u32);
    hasher.update(octets);
    u64::from(hasher.finalize())
}
