//! The check that received elements are those that every client sends (`--check`).

use zorb::prelude::*;

use super::idl::{BinStruct, zero_copy};
use crate::test_loops::pattern;

/// An element type of test buffers.
pub(super) trait TestElement: Sized {
    /// Returns whether this is the element at position `i` of test buffers.
    fn is_at(&self, i: usize) -> bool;
}

/// Ends the process if an element differs from what clients send, because a measurement would be invalid. The
/// client then fails, and the message on stderr is included in the results.
pub(super) fn exit_if_different<T: TestElement>(items: &[T]) {
    if let Some(i) = first_difference(items) {
        let message = crate::test_loops::format_mismatch(std::any::type_name::<T>(), i, items.len());
        eprintln!("ttcp: {message}");
        std::process::exit(crate::test_loops::EXIT_MISMATCH);
    }
}

/// Returns the position of the first element that differs from what clients send.
fn first_difference<T: TestElement>(items: &[T]) -> Option<usize> {
    items.iter().enumerate().position(|(i, item)| !item.is_at(i))
}

impl TestElement for u8 {
    fn is_at(&self, i: usize) -> bool {
        *self == pattern(i)
    }
}

impl TestElement for Char {
    fn is_at(&self, i: usize) -> bool {
        self.0 == pattern(i)
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl TestElement for $number {
            fn is_at(&self, i: usize) -> bool {
                *self == <$number>::from(pattern(i))
            }
        })*
    };
}

numbers! { i16 i32 f64 }

impl TestElement for BinStruct {
    fn is_at(&self, i: usize) -> bool {
        *self == super::client::record(i)
    }
}

impl TestElement for zero_copy::BinStruct {
    fn is_at(&self, i: usize) -> bool {
        let &zero_copy::BinStruct { s, c, l, o, d, .. } = self;
        BinStruct { s, c, l, o, d }.is_at(i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_element_is_found_in_any_position_and_member() {
        let mut bytes: Vec<u8> = (0..1000).map(pattern).collect();
        assert_eq!(first_difference(&bytes), None);
        bytes[999] ^= 1;
        assert_eq!(first_difference(&bytes), Some(999));
        let mut doubles: Vec<f64> = (0..100).map(|i| f64::from(pattern(i))).collect();
        assert_eq!(first_difference(&doubles), None);
        doubles[0] = f64::from_bits(doubles[0].to_bits() ^ 1);
        assert_eq!(first_difference(&doubles), Some(0), "the last bit");

        let structs = super::super::client::structs(70_000);
        assert_eq!(first_difference(&structs), None, "integers wrap around");
        let changed = |change: fn(&mut BinStruct)| {
            let mut structs = structs.clone();
            change(&mut structs[41]);
            first_difference(&structs)
        };
        let all = [
            changed(|s| s.s += 1),
            changed(|s| s.c = Char(0)),
            changed(|s| s.l -= 1),
            changed(|s| s.o += 1),
            changed(|s| s.d = -s.d),
        ];
        assert_eq!(all, [Some(41); 5]);
        let in_memory: Vec<_> = super::super::client::structs_in_memory(70_000).iter().cloned().collect();
        assert_eq!(first_difference(&in_memory), None);
        assert_eq!(first_difference(&in_memory[1..]), Some(0));
    }
}
