//! A cache of received type codes, by their bytes.

use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};

use giop_codec::typecode::{TypeCode, TypeCodeCache};
use papaya::{Equivalent, HashMap};

/// The maximum number of cached type codes. Further ones are decoded each time.
const MOST: usize = 1024;

/// The maximum total size of cached type codes in bytes, as received.
const MOST_OCTETS: usize = 1 << 20;

/// The maximum size of a cached type code in bytes.
const LONGEST: usize = 64 << 10;

/// A bounded cache that is never emptied. If a peer fills it with types of its own, other types are decoded
/// each time, as without a cache.
#[derive(Debug, Default)]
pub(crate) struct TypeCodes {
    known: HashMap<Octets, TypeCode>,
    count: AtomicUsize,
    octets: AtomicUsize,
}

/// The key is the encoding only, because two peers may have two types with one repository id.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Octets {
    kind: u32,
    encapsulation: Box<[u8]>,
}

#[derive(Hash)]
struct RequestSpan<'a> {
    kind: u32,
    encapsulation: &'a [u8],
}

impl Equivalent<Octets> for RequestSpan<'_> {
    fn equivalent(&self, key: &Octets) -> bool {
        self.kind == key.kind && *self.encapsulation == *key.encapsulation
    }
}

impl TypeCodeCache for TypeCodes {
    fn find(&self, kind: u32, encapsulation: &[u8]) -> Option<TypeCode> {
        self.known.pin().get(&RequestSpan { kind, encapsulation }).cloned()
    }

    fn keep(&self, kind: u32, encapsulation: &[u8], code: &TypeCode) {
        if encapsulation.len() > LONGEST
            || self.count.load(Ordering::Relaxed) >= MOST
            || self.octets.load(Ordering::Relaxed).saturating_add(encapsulation.len()) > MOST_OCTETS
        {
            return;
        }
        let key = Octets { kind, encapsulation: encapsulation.into() };
        if self.known.pin().insert(key, code.clone()).is_none() {
            self.count.fetch_add(1, Ordering::Relaxed);
            self.octets.fetch_add(encapsulation.len(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_kind_and_octets() {
        let codes = TypeCodes::default();
        codes.keep(15, b"\0abc", &TypeCode::LONG);
        codes.keep(15, b"\0abd", &TypeCode::SHORT);
        assert_eq!(codes.find(15, b"\0abc"), Some(TypeCode::LONG));
        assert_eq!(codes.find(15, b"\0abd"), Some(TypeCode::SHORT));
        assert_eq!(codes.find(17, b"\0abc"), None);
        assert_eq!(codes.find(15, b"\0ab"), None);
    }

    #[test]
    fn no_peer_makes_it_grow_for_ever() {
        let codes = TypeCodes::default();
        codes.keep(15, &vec![0; LONGEST + 1], &TypeCode::LONG);
        assert_eq!(codes.known.len(), 0);
        for n in 0..3000_u32 {
            codes.keep(15, &n.to_be_bytes(), &TypeCode::LONG);
            // Inserting it again takes no space.
            codes.keep(15, &n.to_be_bytes(), &TypeCode::LONG);
        }
        assert_eq!(codes.known.len(), MOST);
        assert_eq!(codes.octets.load(Ordering::Relaxed), 4 * MOST);

        let codes = TypeCodes::default();
        for n in 0..200_u8 {
            codes.keep(15, &vec![n; LONGEST], &TypeCode::LONG);
        }
        assert_eq!(codes.known.len(), MOST_OCTETS / LONGEST);
    }
}
