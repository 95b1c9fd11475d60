//! The objects of the tests with many objects.
//!
//! A server with `--objects N` has N additional objects, and writes references to those that are called next
//! to its IOR file. Servers select these objects, and clients the objects that they call, by a pseudo-random
//! sequence that is the same in every language. Therefore all peers are called in the same way.

use clap::{Args, ValueEnum};

/// Maximum number of objects that are called.
const MAX_CALLED: u64 = 1000;
/// Seed of the pseudo-random sequence.
const SEED: u64 = 0x5eed;

/// Options of a server about its many objects.
#[derive(Debug, Clone, Copy, Args)]
pub struct ManyArgs {
    /// Further objects, each with its own servant; PATH.objects gets references to up to 1000 of them, drawn
    /// with a fixed seed
    #[arg(long = "objects", id = "many", value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub objects: u32,
    /// How these objects are served
    #[arg(long, value_enum, default_value_t = Serving::Map, value_name = "WAY")]
    pub serving: Serving,
}

/// How many objects are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Serving {
    /// By the active map, under ids that the POA chooses
    Map,
    /// By the active map, under ids that the program chooses
    Ids,
    /// By one default servant, which asks for the id
    Default,
}

/// A pseudo-random sequence that is the same in every peer.
#[derive(Debug, Clone)]
pub struct Draws(u64);

impl Default for Draws {
    fn default() -> Self {
        Draws(SEED)
    }
}

impl Draws {
    /// Returns the next number, below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

/// Returns the indices of the called objects in ascending order: all, or one out of each thousandth.
pub fn called_objects(objects: u32) -> Vec<u32> {
    let objects = u64::from(objects);
    let parts = objects.min(MAX_CALLED);
    let mut draws = Draws::default();
    let of_part = |part: u64| {
        let (from, to) = (part * objects / parts, (part + 1) * objects / parts);
        (from + draws.below(to - from)) as u32
    };
    (0..parts).map(of_part).collect()
}

/// Returns how many bytes the object at that index of the called objects receives. The number distinguishes
/// it from other objects.
pub fn bytes_for(index: usize) -> u64 {
    index as u64 % 97 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_called_are_spread_over_all() {
        assert_eq!(called_objects(0), [0; 0]);
        assert_eq!(called_objects(5), [0, 1, 2, 3, 4]);
        let many = called_objects(1_000_000);
        assert_eq!(many.len(), 1000);
        for (part, object) in many.iter().enumerate() {
            assert_eq!(*object as usize / 1000, part, "one of each thousand");
        }
        assert!(
            many.iter().any(|object| object % 1000 > 900) && many.iter().any(|object| object % 1000 < 100)
        );
    }

    /// The peers in other languages must produce the same sequence.
    #[test]
    fn draws_are_the_same_everywhere() {
        let mut draws = Draws::default();
        assert_eq!([100; 6].map(|end| draws.below(end)), EXPECTED);
    }

    const EXPECTED: [u64; 6] = [74, 91, 80, 79, 48, 87];
}
