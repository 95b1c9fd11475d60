//! The objects of the test `objects`.
//!
//! A server with `--objects N` has N additional objects. It selects up to 1000 of them for calls, and writes
//! references to these into a file next to its IOR file. Clients select the object of each call from this
//! file. Both selections use a pseudo-random sequence that is the same in the programs of all languages, so
//! that all servers are called in the same way.

use clap::{Args, ValueEnum};

const MAX_CALLED_OBJECTS: u64 = 1000;
/// Seed of the pseudo-random sequence.
const SEED: u64 = 0x5eed;

/// Options for the additional objects of a server.
#[derive(Debug, Clone, Copy, Args)]
pub struct AdditionalObjectsArgs {
    /// Number of additional objects; references to up to 1000 pseudo-random ones are written to PATH.objects
    #[arg(long = "objects", id = "many", value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub objects: u32,
    /// How the additional objects are served
    #[arg(long, value_enum, default_value_t = Serving::SystemIds, value_name = "WAY")]
    pub serving: Serving,
}

/// How the additional objects are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Serving {
    /// By servants of their own, under ids that the POA chooses
    #[value(name = "map")]
    SystemIds,
    /// By servants of their own, under ids that the program chooses
    #[value(name = "ids")]
    UserIds,
    /// By one servant for all objects, which queries the id of the called object
    Default,
}

/// The pseudo-random sequence that is the same in the programs of all languages.
#[derive(Debug, Clone)]
pub(crate) struct RandomSequence(u64);

impl Default for RandomSequence {
    fn default() -> Self {
        RandomSequence(SEED)
    }
}

impl RandomSequence {
    /// Returns the next number, less than `end`.
    pub(crate) fn next_below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

/// Returns the indices of the called objects in ascending order. These are all objects if there are at most
/// 1000, or else a pseudo-random object from each of 1000 ranges of about equal size.
pub(crate) fn called_objects(objects: u32) -> Vec<u32> {
    let objects = u64::from(objects);
    let ranges = objects.min(MAX_CALLED_OBJECTS);
    let mut random = RandomSequence::default();
    let select = |range: u64| {
        let (start, end) = (range * objects / ranges, (range + 1) * objects / ranges);
        (start + random.next_below(end - start)) as u32
    };
    (0..ranges).map(select).collect()
}

/// Returns how many bytes a client sends to the called object at `index` before the calls. The object must
/// confirm this number. Only about one in 97 other objects receives the same number of bytes.
pub(crate) fn identifying_byte_count(index: usize) -> u64 {
    index as u64 % 97 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn called_objects_are_spread_over_all_objects() {
        assert_eq!(called_objects(0), [0; 0]);
        assert_eq!(called_objects(5), [0, 1, 2, 3, 4]);
        let many = called_objects(1_000_000);
        assert_eq!(many.len(), 1000);
        for (range, object) in many.iter().enumerate() {
            assert_eq!(*object as usize / 1000, range);
        }
        assert!(
            many.iter().any(|object| object % 1000 > 900) && many.iter().any(|object| object % 1000 < 100)
        );
    }

    /// The programs in other languages produce these numbers too.
    #[test]
    fn the_random_sequence_has_the_same_numbers_as_in_other_languages() {
        let mut random = RandomSequence::default();
        assert_eq!([100; 6].map(|end| random.next_below(end)), [74, 91, 80, 79, 48, 87]);
    }
}
