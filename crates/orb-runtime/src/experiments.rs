//! The strategies by which an ORB finds POAs, objects and operations: defaults, and others for comparison.
//!
//! The look-ups themselves are in `poa::object_adapter` (POAs), `poa::active_object_map` (objects) and
//! `servant::optable` (operations). [`Interface`] and [`Operations`] describe interfaces for calls that name
//! their operation by a number.

use std::collections::HashMap;

use giop_codec::ior::{InterfaceNumbers, MAX_NUMBERED_INTERFACES, OperationNumbers};

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

/// The tables of the other strategies, built when one of them is first used.
#[derive(Debug)]
pub(crate) struct Others {
    /// The operation numbers, sorted by name.
    sorted: Vec<u16>,
    by_name: HashMap<&'static [u8], u16>,
}

impl Others {
    pub(crate) fn new(names: &[&'static str]) -> Self {
        let numbers = || (0..=u16::MAX).zip(names);
        let mut sorted: Vec<(u16, &&str)> = numbers().collect();
        sorted.sort_unstable_by_key(|(_, name)| **name);
        Self {
            sorted: sorted.into_iter().map(|(number, _)| number).collect(),
            by_name: numbers().map(|(number, name)| (name.as_bytes(), number)).collect(),
        }
    }

    pub(crate) fn binary(&self, names: &[&str], name: &[u8]) -> Option<usize> {
        let named = |number: &u16| names.get(usize::from(*number)).map_or(&[][..], |name| name.as_bytes());
        let at = self.sorted.binary_search_by(|number| named(number).cmp(name)).ok()?;
        self.sorted.get(at).map(|number| usize::from(*number))
    }

    pub(crate) fn hashed(&self, name: &[u8]) -> Option<usize> {
        self.by_name.get(name).map(|number| usize::from(*number))
    }
}

pub(crate) fn linear(names: &[&str], name: &[u8]) -> Option<usize> {
    names.iter().position(|known| known.as_bytes() == name)
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

/// The operations of a skeleton by number: those of the first base first, its own last. Generated.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operations {
    /// Their names in GIOP messages.
    pub names: &'static [&'static str],
    /// The number of operations of each interface, in the same order.
    pub counts: &'static [usize],
}

impl Operations {
    /// Returns the name of an operation that a request calls by number. Returns `operation` unchanged if it
    /// is not the number of an operation.
    #[must_use]
    pub fn name_of<'a>(&self, operation: &'a str) -> &'a str {
        let name = number(operation.as_bytes()).and_then(|number| self.names.get(number));
        name.copied().unwrap_or(operation)
    }

    /// Returns the operation numbers to announce to clients. `ids` are the repository ids of the interfaces,
    /// the most derived one first. `None`: there are no operations, or too many interfaces.
    #[must_use]
    pub fn numbers(&self, ids: &[&str]) -> Option<OperationNumbers> {
        let (mut interfaces, mut first) = (Vec::new(), 0);
        for (id, count) in ids.iter().rev().zip(self.counts) {
            let own = self.names.get(first..first + count)?;
            if !own.is_empty() {
                interfaces.push(InterfaceNumbers::new(id, own, u32::try_from(first).ok()?));
            }
            first += count;
        }
        let some = (1..=MAX_NUMBERED_INTERFACES).contains(&interfaces.len());
        some.then_some(OperationNumbers { interfaces })
    }
}

/// An interface as its stubs know it, by its id and its own operations. Generated.
#[derive(Debug)]
pub struct Interface {
    id: u64,
    digest: u64,
}

impl Interface {
    /// Creates the description from the repository id and the operations' names in GIOP messages, in the
    /// order of their numbers.
    #[must_use]
    pub const fn new(repository_id: &str, operations: &[&str]) -> Self {
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

    const BASE: &[&str] = &["a", "b"];
    const OWN: &[&str] = &["c"];
    const ALL: Operations = Operations { names: &["a", "b", "c"], counts: &[2, 0, 1] };
    const IDS: [&str; 3] = ["IDL:Own:1.0", "IDL:Empty:1.0", "IDL:Base:1.0"];

    #[test]
    fn a_client_writes_numbers_where_it_knows_the_same_operations() {
        let numbers = ALL.numbers(&IDS).unwrap();
        assert_eq!(numbers.interfaces.len(), 2, "one has no operations");
        let base = Interface::new("IDL:Base:1.0", BASE);
        let own = Interface::new("IDL:Own:1.0", OWN);
        assert_eq!(base.number(&numbers, 1), Some(1));
        assert_eq!(own.number(&numbers, 0), Some(2));
        // A client of another version: one more operation, another order, no such interface.
        for other in [
            Interface::new("IDL:Own:1.0", &["c", "d"]),
            Interface::new("IDL:Base:1.0", &["b", "a"]),
            Interface::new("IDL:Other:1.0", OWN),
        ] {
            assert_eq!(other.number(&numbers, 0), None, "{other:?}");
        }
    }

    #[test]
    fn interfaces_without_operations_and_those_of_too_many_bases_are_called_by_name() {
        assert_eq!(Operations::default().numbers(&IDS), None);
        assert_eq!(Operations { names: &[], counts: &[0, 0, 0] }.numbers(&IDS), None);
        assert_eq!(Operations { names: &["a"], counts: &[2] }.numbers(&IDS), None, "a lie");
        let many: &'static [usize] = [1; MAX_NUMBERED_INTERFACES + 1].to_vec().leak();
        let names: &'static [&str] = ["x"; MAX_NUMBERED_INTERFACES + 1].to_vec().leak();
        let ids = ["IDL:X:1.0"; MAX_NUMBERED_INTERFACES + 1];
        assert_eq!(Operations { names, counts: many }.numbers(&ids), None);
        let most = Operations { names: &names[1..], counts: &many[1..] };
        assert!(most.numbers(&ids[1..]).is_some());
    }

    #[test]
    fn what_came_as_a_number_is_shown_by_its_name() {
        for (came, shown) in
            [("0", "a"), ("2", "c"), ("3", "3"), ("c", "c"), ("_is_a", "_is_a"), ("02", "02")]
        {
            assert_eq!(ALL.name_of(came), shown);
        }
    }
}
