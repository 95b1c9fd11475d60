//! The strategies by which an ORB finds POAs, objects and operations: defaults, and others for comparison.
//!
//! Feature `experiments`. The look-ups themselves are in `poa::experiments` (POAs and objects) and
//! `servant::experiments` (operations). The latter also has the calls that name an operation by a number.

use giop_codec::ior::{InterfaceNumbers, OperationNumbers};

/// The strategy by which a server finds the operation of a request. For comparison: no other one is faster or
/// safer than the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OperationDemux {
    /// Perfect hash, generated at compile time: one hash and one comparison, independent of the number of
    /// operations.
    #[default]
    Perfect,
    /// Linear search in the order of the IDL.
    Linear,
    /// Binary search among the sorted names.
    Sorted,
    /// Hash table, built on first use.
    Hash,
    /// Decimal number that the client sends in place of the name: one array access. Names are found as by
    /// [`Perfect`](Self::Perfect). Servers announce this in their references (component 0x5A4F5202). Clients
    /// send numbers if they know the interface with the same operations.
    Numeric,
}

impl OperationDemux {
    /// All strategies.
    pub const ALL: [Self; 5] = [Self::Perfect, Self::Linear, Self::Sorted, Self::Hash, Self::Numeric];
}

/// The strategy by which a POA finds the object of an id. For comparison: no other one is faster than the
/// default.
///
/// All strategies find the same objects. Generated ids and object keys differ in form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ObjectDemux {
    /// Array access by an index with a generation in the object key. Applies to transient POAs that choose
    /// the ids and serve only active objects. Other ids are looked up in a hash table.
    #[default]
    Active,
    /// Hash table of each POA, for all ids.
    Hash,
    /// Linear search in the order of activation.
    Linear,
}

/// The strategy by which an ORB finds the POA of a request. For comparison: no other one is faster than the
/// default.
///
/// All strategies find the same POAs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PathDemux {
    /// One look-up, independent of depth. The object key contains the index of the object or of its POA, or
    /// the names of a persistent POA as one hash key.
    #[default]
    Flat,
    /// From the root down: one look-up for each name in the object key, under a lock of each POA. The object
    /// and the operation follow.
    Layered,
    /// One look-up of object key and operation name together, in a hash table. The table has an element for
    /// each operation of each active object. Other requests are found as by [`Flat`](Self::Flat): those for
    /// default servants and servant managers, for operations that every object has, and for operations by
    /// number.
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

/// The strategies by which an ORB finds the target of a request: see
/// [`OrbBuilder::demux`](crate::OrbBuilder::demux).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demux {
    pub(crate) operations: OperationDemux,
    pub(crate) objects: ObjectDemux,
    pub(crate) path: PathDemux,
}

impl Demux {
    /// Returns the default strategies.
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

/// Parses an operation number in the form in which clients send it. IDL names do not start with a digit.
pub(crate) fn number(name: &[u8]) -> Option<usize> {
    let written = match name {
        [b'0'] => true,
        [b'1'..=b'9', more @ ..] => more.len() < 5 && more.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    written.then(|| name.iter().fold(0, |number, digit| 10 * number + usize::from(digit & 15)))
}

/// The identity of an interface, by its id and its own operations, in calls by number.
#[derive(Debug)]
pub(crate) struct NumberedInterface {
    id: u64,
    digest: u64,
}

impl NumberedInterface {
    pub(crate) const fn new(repository_id: &str, operations: &[&str]) -> Self {
        Self {
            id: InterfaceNumbers::interface_of(repository_id),
            digest: InterfaceNumbers::digest_of(operations),
        }
    }

    /// Returns the number that the operation has at a server with `numbers`. `None`: the server's interface
    /// differs from the client's.
    pub(crate) fn number(&self, numbers: &OperationNumbers, index: u32) -> Option<u32> {
        numbers.first_of(self.id, self.digest)?.checked_add(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_form() {
        for (digits, is) in [("0", 0), ("7", 7), ("10", 10), ("65535", 65_535), ("99999", 99_999)] {
            assert_eq!(number(digits.as_bytes()), Some(is));
        }
        for none in
            ["", "00", "07", "+1", "-1", " 1", "1 ", "1a", "a1", "100000", "18446744073709551617", "_1"]
        {
            assert_eq!(number(none.as_bytes()), None, "{none:?}");
        }
    }
}
