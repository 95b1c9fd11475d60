//! Test data, and its verification. Both are cheap even without optimisation, because some tests send
//! hundreds of mebibytes.

use bytes::Bytes;

/// Returns bytes that identify their position: they repeat only after 64,256 bytes.
pub fn octets(len: usize) -> Bytes {
    let period: Vec<u8> = (0..PERIOD.min(len)).map(|i| (i * 31 + i / 251) as u8).collect();
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        bytes.extend_from_slice(&period[..period.len().min(len - bytes.len())]);
    }
    bytes.into()
}

/// Period of [`octets`], bytes.
const PERIOD: usize = 251 << 8;

/// Returns the checksum of all bytes so far. `before` is that of the preceding bytes (0 at the beginning).
pub fn checksum(before: u64, bytes: &[u8]) -> u64 {
    let mut hasher = crc32fast::Hasher::new_with_initial(before as u32);
    hasher.update(bytes);
    u64::from(hasher.finalize())
}
