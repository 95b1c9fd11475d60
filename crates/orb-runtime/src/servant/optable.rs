//! The table that maps operation names to numbers, by a perfect hash that is computed at compile time.

#[cfg(feature = "experiments")]
use std::{collections::HashMap, sync::OnceLock};

/// A table of `N` operation names. A look-up takes one hash and one comparison, independent of `N`. `SLOTS`
/// must be a power of two of at least `2 * N`.
#[derive(Debug)]
pub struct OpTable<const N: usize, const SLOTS: usize> {
    pub(super) names: [&'static str; N],
    /// The seed of each bucket. A bucket has the names whose hashes end with the same bits. Mixed with the
    /// seed, their hashes select different slots.
    seeds: [u32; SLOTS],
    /// The number of the name in each slot, plus one. Zero means an empty slot.
    slots: [u16; SLOTS],
    #[cfg(feature = "experiments")]
    pub(super) alternatives: OnceLock<AlternativeTables>,
}

impl<const N: usize, const SLOTS: usize> OpTable<N, SLOTS> {
    /// Builds the table. Compilation fails if a name occurs twice, or if `SLOTS` is too small.
    #[must_use]
    #[expect(
        clippy::panic,
        clippy::indexing_slicing,
        reason = "runs at compile time, with names from the IDL"
    )]
    pub const fn new(names: [&'static str; N]) -> Self {
        assert!(SLOTS.is_power_of_two() && SLOTS >= 2 * N && N < u16::MAX as usize);
        let mut seeds = [0; SLOTS];
        let mut slots = [0; SLOTS];
        let mut hashes = [0; N];
        let mut sizes = [0; SLOTS];
        let mut largest = 0;
        let mut i = 0;
        while i < N {
            hashes[i] = hash(names[i].as_bytes());
            let bucket = hashes[i] as usize & (SLOTS - 1);
            sizes[bucket] += 1;
            if sizes[bucket] > largest {
                largest = sizes[bucket];
            }
            i += 1;
        }
        // Place the largest buckets first.
        let mut size = largest;
        while size > 0 {
            let mut bucket = 0;
            while bucket < SLOTS {
                if sizes[bucket] == size {
                    let mut seed = 1;
                    loop {
                        let mut placed = 0;
                        let mut i = 0;
                        while i < N {
                            if hashes[i] as usize & (SLOTS - 1) == bucket {
                                let slot = mix(hashes[i], seed) as usize & (SLOTS - 1);
                                if slots[slot] != 0 {
                                    break;
                                }
                                slots[slot] = i as u16 + 1;
                                placed += 1;
                            }
                            i += 1;
                        }
                        if placed == size {
                            break;
                        }
                        let mut j = 0;
                        while j < i {
                            if hashes[j] as usize & (SLOTS - 1) == bucket {
                                slots[mix(hashes[j], seed) as usize & (SLOTS - 1)] = 0;
                            }
                            j += 1;
                        }
                        seed += 1;
                        if seed > 100_000 {
                            panic!("no perfect hash: does an operation name occur twice?");
                        }
                    }
                    seeds[bucket] = seed;
                }
                bucket += 1;
            }
            size -= 1;
        }
        Self {
            names,
            seeds,
            slots,
            #[cfg(feature = "experiments")]
            alternatives: OnceLock::new(),
        }
    }

    /// Returns the number of the operation with this name.
    #[inline]
    #[must_use]
    pub fn find(&self, name: impl AsRef<[u8]>) -> Option<usize> {
        let name = name.as_ref();
        let hash = hash(name);
        let seed = *self.seeds.get(hash as usize & (SLOTS - 1))?;
        let slot = *self.slots.get(mix(hash, seed) as usize & (SLOTS - 1))?;
        let index = usize::from(slot).checked_sub(1)?;
        (self.names.get(index)?.as_bytes() == name).then_some(index)
    }

    /// Returns the names in the order of their numbers.
    #[must_use]
    pub const fn names(&'static self) -> &'static [&'static str] {
        &self.names
    }
}

const fn mix(hash: u64, seed: u32) -> u64 {
    let x = (hash ^ seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 29)
}

#[inline]
const fn hash(mut bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    while let Some((chunk, rest)) = bytes.split_first_chunk::<8>() {
        hash = fold(hash ^ u64::from_le_bytes(*chunk));
        bytes = rest;
    }
    let mut last = 0;
    while let Some((byte, rest)) = bytes.split_first() {
        last = (last << 8) | *byte as u64;
        bytes = rest;
    }
    fold(hash ^ last)
}

const fn fold(x: u64) -> u64 {
    let x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

/// The tables of the alternative strategies, which are built on first use.
#[cfg(feature = "experiments")]
#[derive(Debug)]
pub(super) struct AlternativeTables {
    /// The numbers of the operations, sorted by name.
    sorted: Vec<u16>,
    by_name: HashMap<&'static [u8], u16>,
}

#[cfg(feature = "experiments")]
impl AlternativeTables {
    pub(super) fn new(names: &[&'static str]) -> Self {
        let numbers = || (0..=u16::MAX).zip(names);
        let mut sorted: Vec<(u16, &&str)> = numbers().collect();
        sorted.sort_unstable_by_key(|(_, name)| **name);
        Self {
            sorted: sorted.into_iter().map(|(number, _)| number).collect(),
            by_name: numbers().map(|(number, name)| (name.as_bytes(), number)).collect(),
        }
    }

    pub(super) fn binary_search(&self, names: &[&str], name: &[u8]) -> Option<usize> {
        let named = |number: &u16| names.get(usize::from(*number)).map_or(&[][..], |name| name.as_bytes());
        let at = self.sorted.binary_search_by(|number| named(number).cmp(name)).ok()?;
        self.sorted.get(at).map(|number| usize::from(*number))
    }

    pub(super) fn hash_search(&self, name: &[u8]) -> Option<usize> {
        self.by_name.get(name).map(|number| usize::from(*number))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in crate::servant) static TABLE: OpTable<5, 16> =
        OpTable::new(["_get_balance", "deposit", "withdraw", "m", ""]);

    #[test]
    fn only_names_of_the_table_have_numbers() {
        for (i, name) in ["_get_balance", "deposit", "withdraw", "m", ""].into_iter().enumerate() {
            assert_eq!(TABLE.find(name), Some(i), "{name}");
        }
        for name in ["deposi", "deposit2", "n", "_is_a", "withdraw\0"] {
            assert_eq!(TABLE.find(name), None, "{name}");
        }
    }

    #[test]
    fn a_thousand_names_fit() {
        let names: Vec<&'static str> = (0..1000).map(|i| &*format!("operation_{i}").leak()).collect();
        let table = OpTable::<1000, 2048>::new(names.clone().try_into().unwrap());
        assert!(names.iter().enumerate().all(|(i, name)| table.find(name) == Some(i)));
    }

    pub(in crate::servant) const NAMES: usize = 24;

    /// Names of operations, and queries: these names, similar names, and arbitrary bytes.
    pub(in crate::servant) fn lookups() -> impl Strategy<Value = ([&'static str; NAMES], Vec<Vec<u8>>)> {
        // Short names that are often prefixes of others, and names of attribute accessors.
        let names = prop::collection::hash_set("(_get_|_set_)?[ab_]{0,3}[a-c]?|[a-z]{1,20}", NAMES);
        let similar = prop::collection::vec("(_get_)?[abc_]{0,5}", 0..20);
        let bytes = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..6), 0..20);
        (names, similar, bytes).prop_map(|(names, similar, bytes)| {
            let names: Vec<&'static str> = names.into_iter().map(|name| &*name.leak()).collect();
            let queries = names.iter().map(|name| name.as_bytes().to_vec());
            let queries = queries.chain(similar.into_iter().map(String::into_bytes)).chain(bytes).collect();
            (names.try_into().unwrap(), queries)
        })
    }

    proptest! {
        #[test]
        fn every_name_is_found_and_no_other((names, queries) in lookups()) {
            let table = OpTable::<NAMES, 64>::new(names);
            for name in &queries {
                let expected = names.iter().position(|known| known.as_bytes() == name);
                prop_assert_eq!(table.find(name), expected, "{:?}", name.escape_ascii());
            }
        }
    }
}
