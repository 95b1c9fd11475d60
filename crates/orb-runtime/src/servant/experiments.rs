//! Alternative strategies for looking up operations, for comparison (feature `experiments`).

use giop_codec::ior::{InterfaceNumbers, MAX_NUMBERED_INTERFACES, OperationNumbers};

use crate::experiments::{OperationDemux, PathDemux, parse_operation_number};
use crate::runtime::Shared;
use crate::servant::active_object::ActiveObject;
use crate::servant::optable::{AlternativeTables, OpTable};
use crate::servant::request::ServerRequest;
use crate::servant::skeleton::Operations;

pub(super) fn linear_search(names: &[&str], name: &[u8]) -> Option<usize> {
    names.iter().position(|known| known.as_bytes() == name)
}

impl<const N: usize, const SLOTS: usize> OpTable<N, SLOTS> {
    /// Looks up the number of an operation by its name, with this strategy.
    #[cold]
    #[must_use]
    pub fn find_by(&self, strategy: OperationDemux, name: &[u8]) -> Option<usize> {
        let tables = || self.alternatives.get_or_init(|| AlternativeTables::new(&self.names));
        match strategy {
            OperationDemux::Perfect => self.find(name),
            OperationDemux::Linear => linear_search(&self.names, name),
            OperationDemux::Sorted => tables().binary_search(&self.names, name),
            OperationDemux::Hash => tables().hash_search(name),
            OperationDemux::Numeric => match parse_operation_number(name) {
                Some(number) => (number < N).then_some(number),
                None => self.find(name),
            },
        }
    }
}

impl ServerRequest {
    /// Returns the index of the called operation in the table.
    #[inline]
    #[must_use]
    pub fn operation_index<const N: usize, const SLOTS: usize>(
        &self,
        table: &OpTable<N, SLOTS>,
    ) -> Option<usize> {
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
        strategy: OperationDemux,
    ) -> Option<usize> {
        let found = self.current.operation_number().map(usize::from).filter(|number| *number < N);
        found.or_else(|| table.find_by(strategy, self.operation()))
    }
}

impl Operations {
    /// Returns the name of an operation that a request calls by number. If `operation` is not the number of
    /// an operation, returns it unchanged.
    #[must_use]
    pub fn operation_name<'a>(&self, operation: &'a str) -> &'a str {
        let name = parse_operation_number(operation.as_bytes()).and_then(|number| self.names.get(number));
        name.copied().unwrap_or(operation)
    }

    /// Returns the operation numbers to publish to clients, or `None` if there are no operations or too many
    /// interfaces. `ids` are the repository ids of the interfaces, the most derived one first.
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
        let can_publish = (1..=MAX_NUMBERED_INTERFACES).contains(&interfaces.len());
        can_publish.then_some(OperationNumbers { interfaces })
    }
}

/// Returns the name of the called operation. `operation` is the name or number in the request.
#[inline]
pub(crate) fn operation_name<'a>(orb: &Shared, entry: &ActiveObject, operation: &'a str) -> &'a str {
    match orb.config.server.demux.operations {
        OperationDemux::Numeric => entry.skeleton.operations().operation_name(operation),
        _ => operation,
    }
}

/// Returns the name of the called operation for the wire log, in which the object has not been looked up yet.
#[cold]
pub(crate) fn logged_name<'a>(orb: &Shared, key: &[u8], operation: &'a str) -> &'a str {
    match orb.config.server.demux.operations {
        OperationDemux::Numeric => {
            orb.adapter().find(key).map_or(operation, |entry| operation_name(orb, &entry, operation))
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
    fn all_strategies_find_a_thousand_names() {
        let names: Vec<&'static str> = (0..1000).map(|i| &*format!("operation_{i}").leak()).collect();
        let table = OpTable::<1000, 2048>::new(names.clone().try_into().unwrap());
        for strategy in OperationDemux::ALL {
            assert!(
                names.iter().enumerate().all(|(i, name)| table.find_by(strategy, name.as_bytes()) == Some(i))
            );
        }
    }

    #[test]
    fn only_the_numeric_strategy_accepts_numbers() {
        for (name, number) in [("0", Some(0)), ("4", Some(4)), ("5", None), ("65536", None), ("04", None)] {
            for strategy in OperationDemux::ALL {
                let expected = number.filter(|_| strategy == OperationDemux::Numeric);
                assert_eq!(TABLE.find_by(strategy, name.as_bytes()), expected, "{strategy:?} {name}");
            }
        }
    }

    const BASE: &[&str] = &["a", "b"];
    const OWN: &[&str] = &["c"];
    const ALL: Operations = Operations { names: &["a", "b", "c"], counts: &[2, 0, 1] };
    const IDS: [&str; 3] = ["IDL:Own:1.0", "IDL:Empty:1.0", "IDL:Base:1.0"];

    #[test]
    fn client_sends_numbers_if_it_knows_the_same_operations() {
        let numbers = ALL.numbers(&IDS).unwrap();
        assert_eq!(numbers.interfaces.len(), 2, "`Empty` has no operations");
        let base = Interface::new("IDL:Base:1.0", BASE);
        let own = Interface::new("IDL:Own:1.0", OWN);
        assert_eq!(base.number(&numbers, 1), Some(1));
        assert_eq!(own.number(&numbers, 0), Some(2));
        // Clients with another version of the interface: one more operation, another order, another id.
        for other in [
            Interface::new("IDL:Own:1.0", &["c", "d"]),
            Interface::new("IDL:Base:1.0", &["b", "a"]),
            Interface::new("IDL:Other:1.0", OWN),
        ] {
            assert_eq!(other.number(&numbers, 0), None, "{other:?}");
        }
    }

    #[test]
    fn interfaces_without_operations_or_with_too_many_bases_have_no_numbers() {
        assert_eq!(Operations::default().numbers(&IDS), None);
        assert_eq!(Operations { names: &[], counts: &[0, 0, 0] }.numbers(&IDS), None);
        assert_eq!(
            Operations { names: &["a"], counts: &[2] }.numbers(&IDS),
            None,
            "the count exceeds the names"
        );
        let many: &'static [usize] = [1; MAX_NUMBERED_INTERFACES + 1].to_vec().leak();
        let names: &'static [&str] = ["x"; MAX_NUMBERED_INTERFACES + 1].to_vec().leak();
        let ids = ["IDL:X:1.0"; MAX_NUMBERED_INTERFACES + 1];
        assert_eq!(Operations { names, counts: many }.numbers(&ids), None);
        let maximum = Operations { names: &names[1..], counts: &many[1..] };
        assert!(maximum.numbers(&ids[1..]).is_some());
    }

    #[test]
    fn numbers_of_operations_become_names() {
        for (received, name) in
            [("0", "a"), ("2", "c"), ("3", "3"), ("c", "c"), ("_is_a", "_is_a"), ("02", "02")]
        {
            assert_eq!(ALL.operation_name(received), name);
        }
    }

    proptest! {
        #[test]
        fn all_strategies_have_the_same_result((names, queries) in lookups()) {
            let table = OpTable::<NAMES, 64>::new(names);
            for name in &queries {
                let expected = names.iter().position(|known| known.as_bytes() == name);
                for strategy in OperationDemux::ALL {
                    if strategy != OperationDemux::Numeric || parse_operation_number(name).is_none() {
                        prop_assert_eq!(table.find_by(strategy, name), expected, "{:?} {:?}", strategy, name.escape_ascii());
                    }
                }
            }
        }
    }
}
