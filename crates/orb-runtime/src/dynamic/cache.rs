//! A cache of received type codes by their encoding.

use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};

use giop_codec::typecode::{TypeCode, TypeCodeCache};
use papaya::{Equivalent, HashMap};

/// The maximum number of cached type codes.
const MAX_TYPE_CODES: usize = 1024;
const MAX_TOTAL_ENCODING_BYTES: usize = 1 << 20;
const MAX_ENCODING_BYTES: usize = 64 << 10;

/// A bounded cache, from which nothing is removed. If a peer fills it, further types are decoded each time.
#[derive(Debug, Default)]
pub(crate) struct BoundedTypeCodeCache {
    entries: HashMap<EncodedKey, TypeCode>,
    count: AtomicUsize,
    bytes: AtomicUsize,
}

/// A type code as received. Its repository id is no key, because peers may use one id for different types.
#[derive(Debug, PartialEq, Eq, Hash)]
struct EncodedKey {
    kind: u32,
    encapsulation: Box<[u8]>,
}

#[derive(Hash)]
struct BorrowedKey<'a> {
    kind: u32,
    encapsulation: &'a [u8],
}

impl Equivalent<EncodedKey> for BorrowedKey<'_> {
    fn equivalent(&self, key: &EncodedKey) -> bool {
        self.kind == key.kind && *self.encapsulation == *key.encapsulation
    }
}

impl TypeCodeCache for BoundedTypeCodeCache {
    fn find(&self, kind: u32, encapsulation: &[u8]) -> Option<TypeCode> {
        self.entries.pin().get(&BorrowedKey { kind, encapsulation }).cloned()
    }

    fn keep(&self, kind: u32, encapsulation: &[u8], code: &TypeCode) {
        if encapsulation.len() > MAX_ENCODING_BYTES
            || self.count.load(Ordering::Relaxed) >= MAX_TYPE_CODES
            || self.bytes.load(Ordering::Relaxed).saturating_add(encapsulation.len())
                > MAX_TOTAL_ENCODING_BYTES
        {
            return;
        }
        let key = EncodedKey { kind, encapsulation: encapsulation.into() };
        if self.entries.pin().insert(key, code.clone()).is_none() {
            self.count.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(encapsulation.len(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_kind_and_encapsulation() {
        let codes = BoundedTypeCodeCache::default();
        codes.keep(15, b"\0abc", &TypeCode::LONG);
        codes.keep(15, b"\0abd", &TypeCode::SHORT);
        assert_eq!(codes.find(15, b"\0abc"), Some(TypeCode::LONG));
        assert_eq!(codes.find(15, b"\0abd"), Some(TypeCode::SHORT));
        assert_eq!(codes.find(17, b"\0abc"), None);
        assert_eq!(codes.find(15, b"\0ab"), None);
    }

    #[test]
    fn number_and_size_of_cached_types_are_bounded() {
        let codes = BoundedTypeCodeCache::default();
        codes.keep(15, &vec![0; MAX_ENCODING_BYTES + 1], &TypeCode::LONG);
        assert_eq!(codes.entries.len(), 0);
        for n in 0..3000_u32 {
            codes.keep(15, &n.to_be_bytes(), &TypeCode::LONG);
            // A repeated insertion does not change the counters.
            codes.keep(15, &n.to_be_bytes(), &TypeCode::LONG);
        }
        assert_eq!(codes.entries.len(), MAX_TYPE_CODES);
        assert_eq!(codes.bytes.load(Ordering::Relaxed), 4 * MAX_TYPE_CODES);

        let codes = BoundedTypeCodeCache::default();
        for n in 0..200_u8 {
            codes.keep(15, &vec![n; MAX_ENCODING_BYTES], &TypeCode::LONG);
        }
        assert_eq!(codes.entries.len(), MAX_TOTAL_ENCODING_BYTES / MAX_ENCODING_BYTES);
    }
}
