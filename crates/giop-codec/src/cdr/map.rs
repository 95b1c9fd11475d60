//! The encoding of IDL's `map<K, V>`, which is a `BTreeMap` in Rust, as the sequence of its entries.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::bounded::BoundedContent;
use super::decoder::Decoder;
use super::encoder::Encoder;
use super::traits::{CdrDecode, CdrEncode};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// Approximate memory, in bytes, that an entry takes in addition to its key and value.
const ENTRY_OVERHEAD_BYTES: usize = 16;

impl<K: CdrEncode, V: CdrEncode> CdrEncode for BTreeMap<K, V> {
    /// Writes a `sequence<struct { K key; V value; }>`, in the order of the keys.
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_len(self.len())?;
        self.iter().try_for_each(|(key, value)| {
            key.encode(e)?;
            value.encode(e)
        })
    }
}

impl<K: CdrDecode + Ord, V: CdrDecode> CdrDecode for BTreeMap<K, V> {
    const MIN_SIZE: usize = 4;

    /// Accepts entries in any order.
    ///
    /// # Errors
    /// [`DuplicateKey`](DecodeErrorKind::DuplicateKey) (`MARSHAL`): a key is repeated.
    fn decode(d: &mut Decoder<'_>) -> Result<BTreeMap<K, V>, DecodeError> {
        let n = d.read_len(K::MIN_SIZE.saturating_add(V::MIN_SIZE))?;
        d.charge(n.saturating_mul(size_of::<(K, V)>().saturating_add(ENTRY_OVERHEAD_BYTES)))?;
        d.nested(|d| {
            let mut map = BTreeMap::new();
            for _ in 0..n {
                let start = d.position();
                let (key, value) = (K::decode(d)?, V::decode(d)?);
                match map.entry(key) {
                    Entry::Vacant(entry) => entry.insert(value),
                    Entry::Occupied(_) => {
                        return Err(DecodeError::new(DecodeErrorKind::DuplicateKey, start));
                    }
                };
            }
            Ok(map)
        })
    }
}

impl<K, V> BoundedContent for BTreeMap<K, V> {
    fn bounded_len(&self) -> usize {
        self.len()
    }
}
