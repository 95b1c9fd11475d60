//! The strategies by which an ORB finds POAs, objects and operations (feature `experiments`), implemented in
//! `poa::experiments` and `servant::experiments`.

use giop_codec::ior::{InterfaceNumbers, OperationNumbers};

/// The strategy by which a server finds the operation of a request. The alternatives are only for benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OperationDemux {
    /// Perfect hash, generated at compile time: one hash and one comparison.
    #[default]
    Perfect,
    /// Linear search in the order of the IDL.
    Linear,
    /// Binary search among the sorted names.
    Sorted,
    /// Hash table, built on first use.
    Hash,
    /// Array access by a decimal number that the client sends in place of the name. Names are looked up as in
    /// [`Perfect`](Self::Perfect). Servers announce the numbers in their references (component 0x5A4F5202).
    /// A client sends a number if its interface has the same operations as the announced interface.
    Numeric,
}

impl OperationDemux {
    /// All strategies.
    pub const ALL: [Self; 5] = [Self::Perfect, Self::Linear, Self::Sorted, Self::Hash, Self::Numeric];
}

/// The strategy by which a POA finds the object of an id. The alternatives are only for benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ObjectDemux {
    /// Array access by an index and a generation that are part of the object key. Applies to transient POAs
    /// that generate the ids and serve only active objects. Other POAs use a hash table.
    #[default]
    Active,
    /// Hash table of each POA, for all ids.
    Hash,
    /// Linear search through the objects of the POA.
    Linear,
}

/// The strategy by which an ORB finds the POA of a request. The alternatives are only for benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PathDemux {
    /// One look-up, independent of the depth of the POA. The object key contains the index of the object or
    /// of its POA, or for a persistent POA its path of names, which is looked up as one hash key.
    #[default]
    Flat,
    /// One look-up for each name in the object key, under the locks of the POAs.
    Layered,
    /// One look-up of object key and operation name together, in a hash table. The table has an element for
    /// each operation of each active object. [`Flat`](Self::Flat) is used for requests to default servants
    /// and servant managers, for operations that every object has, and for operations by number.
    DeLayered,
}

impl ObjectDemux {
    /// All strategies.
    pub const ALL: [Self; 3] = [Self::Active, Self::Hash, Self::Linear];
}

impl PathDemux {
    /// All strategies.
    pub const ALL: [Self; 3] = [Self::Flat, Self::Layered, Self::DeLayered];
}

/// The strategies of an ORB: see [`OrbBuilder::demux`](crate::OrbBuilder::demux).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demux {
    pub(crate) operations: OperationDemux,
    pub(crate) objects: ObjectDemux,
    pub(crate) path: PathDemux,
}

impl Demux {
    /// Creates the default strategies.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the strategy for operations.
    #[must_use]
    pub fn operations(self, operations: OperationDemux) -> Self {
        Self { operations, ..self }
    }

    /// Sets the strategy for objects in their POAs.
    #[must_use]
    pub fn objects(self, objects: ObjectDemux) -> Self {
        Self { objects, ..self }
    }

    /// Sets the strategy for POAs.
    #[must_use]
    pub fn path(self, path: PathDemux) -> Self {
        Self { path, ..self }
    }
}

/// Parses an operation number, which clients send in place of a name. IDL names do not start with a digit.
pub(crate) fn parse_operation_number(name: &[u8]) -> Option<usize> {
    let is_number = match name {
        [b'0'] => true,
        [b'1'..=b'9', more @ ..] => more.len() < 5 && more.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_number.then(|| name.iter().fold(0, |number, digit| 10 * number + usize::from(digit & 15)))
}

/// The identity of an interface in calls by number: hashes of its id and of the operations that it declares.
#[derive(Debug)]
pub(crate) struct NumberedInterface {
    id_hash: u64,
    operations_hash: u64,
}

impl NumberedInterface {
    pub(crate) const fn new(repository_id: &str, operations: &[&str]) -> Self {
        Self {
            id_hash: InterfaceNumbers::id_hash_of(repository_id),
            operations_hash: InterfaceNumbers::digest_of(operations),
        }
    }

    /// Returns the number of the operation with this index, if the server announces the same interface.
    pub(crate) fn number(&self, numbers: &OperationNumbers, index: u32) -> Option<u32> {
        numbers.first_of(self.id_hash, self.operations_hash)?.checked_add(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_without_leading_zeros_are_a_number() {
        for (digits, is) in [("0", 0), ("7", 7), ("10", 10), ("65535", 65_535), ("99999", 99_999)] {
            assert_eq!(parse_operation_number(digits.as_bytes()), Some(is));
        }
        for none in
            ["", "00", "07", "+1", "-1", " 1", "1 ", "1a", "a1", "100000", "18446744073709551617", "_1"]
        {
            assert_eq!(parse_operation_number(none.as_bytes()), None, "{none:?}");
        }
    }
}
