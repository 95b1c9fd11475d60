//! Look-up of operations by other strategies than the default, and by number. Feature `experiments`.

use std::collections::HashMap;

use giop_codec::ior::{InterfaceNumbers, MAX_NUMBERED_INTERFACES, OperationNumbers};

use crate::experiments::{OperationDemux, PathDemux, number};
use crate::runtime::Shared;
use crate::servant::active_object::ActiveObject;
use crate::servant::optable::OpTable;
use crate::servant::request::ServerRequest;
use crate::servant::skeleton::Operations;

/// The tables of the other strategies, built when one of them is first used.
#[derive(Debug)]
pub(super) struct Others {
    /// The operation numbers, sorted by name.
    sorted: Vec<u16>,
    by_name: HashMap<&'static [u8], u16>,
}

impl Others {
    pub(super) fn new(names: &[&'static str]) -> Self {
        let numbers = || (0..=u16::MAX).zip(names);
        let mut sorted: Vec<(u16, &&str)> = numbers().collect();
        sorted.sort_unstable_by_key(|(_, name)| **name);
        Self {
            sorted: sorted.into_iter().map(|(number, _)| number).collect(),
            by_name: numbers().map(|(number, name)| (name.as_bytes(), number)).collect(),
        }
    }

    pub(super) fn binary(&self, names: &[&str], name: &[u8]) -> Option<usize> {
        let named = |number: &u16| names.get(usize::from(*number)).map_or(&[][..], |name| name.as_bytes());
        let at = self.sorted.binary_search_by(|number| named(number).cmp(name)).ok()?;
        self.sorted.get(at).map(|number| usize::from(*number))
    }

    pub(super) fn hashed(&self, name: &[u8]) -> Option<usize> {
        self.by_name.get(name).map(|number| usize::from(*number))
    }
}

pub(super) fn linear(names: &[&str], name: &[u8]) -> Option<usize> {
    names.iter().position(|known| known.as_bytes() == name)
}

impl<const N: usize, const SLOTS: usize> OpTable<N, SLOTS> {
    /// Returns the number of the operation of that name, found by strategy `way`.
    #[cold]
    #[must_use]
    pub fn find_by(&self, way: OperationDemux, name: &[u8]) -> Option<usize> {
        let others = || self.others.get_or_init(|| Others::new(&self.names));
        match way {
            OperationDemux::Perfect => self.find(name),
            OperationDemux::Linear => linear(&self.names, name),
            OperationDemux::Sorted => others().binary(&self.names, name),
            OperationDemux::Hash => others().hashed(name),
            OperationDemux::Numeric => match number(name) {
                Some(number) => (number < N).then_some(number),
                None => self.find(name),
            },
        }
    }
}

impl ServerRequest {
    /// Returns the number of the operation that is called.
    #[inline]
    #[must_use]
    pub fn find<const N: usize, const SLOTS: usize>(&self, table: &OpTable<N, SLOTS>) -> Option<usize> {
        let demux = &self.current.core().config.server.demux;
        match demux.operations {
            OperationDemux::Perfect if demux.path != PathDemux::DeLayered => table.find(self.operation()),
            other => self.find_by(table, other),
        }
    }

    #[cold]
    fn find_by<const N: usize, const SLOTS: usize>(
        &self,
        table: &OpTable<N, SLOTS>,
        way: OperationDemux,
    ) -> Option<usize> {
        let found = self.current.number().map(usize::from).filter(|number| *number < N);
        found.or_else(|| table.find_by(way, self.operation()))
    }
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

/// Returns the name of the operation that a request calls, which may be sent as a number.
#[inline]
pub(crate) fn name_of<'a>(orb: &Shared, entry: &ActiveObject, operation: &'a str) -> &'a str {
    match orb.config.server.demux.operations {
        OperationDemux::Numeric => entry.skeleton.operations().name_of(operation),
        _ => operation,
    }
}

/// Returns the name of the operation before the object is looked up, for the wire log.
#[cold]
pub(crate) fn shown<'a>(orb: &Shared, key: &[u8], operation: &'a str) -> &'a str {
    match orb.config.server.demux.operations {
        OperationDemux::Numeric => {
            orb.adapter().find(key).map_or(operation, |entry| name_of(orb, &entry, operation))
        }
        _ => operation,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::experiments::NumberedInterface as Interface;
    use crate::servant::optable::tests::{NAMES, TABLE, lookups};

    #[test]
    fn all_ways_find_a_thousand_names() {
        let names: Vec<&'static str> = (0..1000).map(|i| &*format!("operation_{i}").leak()).collect();
        let table = OpTable::<1000, 2048>::new(names.clone().try_into().unwrap());
        for way in OperationDemux::ALL {
            assert!(names.iter().enumerate().all(|(i, name)| table.find_by(way, name.as_bytes()) == Some(i)));
        }
    }

    #[test]
    fn a_number_is_one_of_the_operations_only_where_numbers_are_taken() {
        for (name, number) in [("0", Some(0)), ("4", Some(4)), ("5", None), ("65536", None), ("04", None)] {
            for way in OperationDemux::ALL {
                let expected = number.filter(|_| way == OperationDemux::Numeric);
                assert_eq!(TABLE.find_by(way, name.as_bytes()), expected, "{way:?} {name}");
            }
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

    proptest! {
        #[test]
        fn all_ways_agree_on_every_name_whether_it_is_known_or_not((names, asked) in lookups()) {
            let table = OpTable::<NAMES, 64>::new(names);
            for name in &asked {
                let expected = names.iter().position(|known| known.as_bytes() == name);
                for way in OperationDemux::ALL {
                    if way != OperationDemux::Numeric || number(name).is_none() {
                        prop_assert_eq!(table.find_by(way, name), expected, "{:?} {:?}", way, name.escape_ascii());
                    }
                }
            }
        }
    }
}
