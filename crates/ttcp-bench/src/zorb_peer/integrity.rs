//! The elements that every client sends, and the check that received elements are the same (`--check`).

use zorb::prelude::*;

use super::idl::{BinStruct, zero_copy};
use crate::test_loops::pattern;

pub(super) trait TestElement: PartialEq + Sized {
    /// Returns the element that clients send at index `i`.
    fn expected_at(i: usize) -> Self;

    fn is_expected_at(&self, i: usize) -> bool {
        *self == Self::expected_at(i)
    }
}

/// Returns the first `n` elements that every client sends.
pub(super) fn elements<T: TestElement, C: FromIterator<T>>(n: usize) -> C {
    (0..n).map(T::expected_at).collect()
}

/// Exits if an element differs from the one that clients send, because the measurement would be invalid. The
/// client then fails too, and the message on stderr is included in the results.
pub(super) fn exit_if_different<T: TestElement>(items: &[T]) {
    if let Some(i) = first_difference(items) {
        let message = crate::test_loops::format_mismatch(std::any::type_name::<T>(), i, items.len());
        eprintln!("ttcp: {message}");
        std::process::exit(crate::test_loops::EXIT_MISMATCH);
    }
}

fn first_difference<T: TestElement>(items: &[T]) -> Option<usize> {
    items.iter().enumerate().position(|(i, item)| !item.is_expected_at(i))
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl TestElement for $number {
            fn expected_at(i: usize) -> Self {
                Self::from(pattern(i))
            }
        })*
    };
}

numbers! { u8 i16 i32 f64 }

impl TestElement for Char {
    fn expected_at(i: usize) -> Self {
        Char(pattern(i))
    }
}

impl TestElement for BinStruct {
    fn expected_at(i: usize) -> Self {
        BinStruct { s: i as i16, c: Char(pattern(i)), l: i as i32, o: i as u8, d: i as f64 * 0.5 }
    }
}

impl TestElement for zero_copy::BinStruct {
    fn expected_at(i: usize) -> Self {
        let BinStruct { s, c, l, o, d } = BinStruct::expected_at(i);
        zero_copy::BinStruct { s, c, l, o, d, ..Default::default() }
    }

    // The padding is ignored.
    fn is_expected_at(&self, i: usize) -> bool {
        let &zero_copy::BinStruct { s, c, l, o, d, .. } = self;
        BinStruct { s, c, l, o, d }.is_expected_at(i)
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

        let structs: Vec<BinStruct> = elements(70_000);
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
        let in_memory: Vec<zero_copy::BinStruct> = elements(70_000);
        assert_eq!(first_difference(&in_memory), None);
        assert_eq!(first_difference(&in_memory[1..]), Some(0));
    }
}
