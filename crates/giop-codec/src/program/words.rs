//! Conversion of elements with many fields by 8-byte words.

use super::plan::{FieldKind, Plan};
use crate::cdr::padding;

/// The maximum number of words of a pattern. Longer elements are converted field by field, because their
/// fields are long enough.
const MAX_WORDS: usize = 64;

/// A number of words whose masks fill vector registers of any common size.
const MASKS: usize = 12;

/// The lower byte of every two.
const LOWER: u64 = 0x00FF_00FF_00FF_00FF;

/// Conversion of elements that are a stride apart. Their fields are within words, none in two of them. The
/// words form a pattern that repeats after one or more elements.
#[derive(Debug)]
pub(super) struct Words {
    /// Number of bytes before the first whole word, if elements begin unaligned.
    shift: usize,
    stride: usize,
    /// The pattern for words whose fields are swapped.
    turned: Box<[Word]>,
    /// The pattern for words whose fields are unchanged.
    kept: Box<[Word]>,
    /// The masks of field bytes, repeated. Set if masking is all that unchanged words need.
    masks: Option<Box<[u64; MASKS]>>,
}

/// Masks of the bytes of a word by field width; padding is in none of them.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    kind: Kind,
    octets: u64,
    /// The lower byte of each short.
    shorts: u64,
    longs: u64,
    bools: u64,
}

/// The operation for the fields of a word.
#[derive(Clone, Copy, Debug, Default)]
enum Kind {
    /// No change: single bytes, or fields that are not swapped.
    #[default]
    Octets,
    Double,
    Mixed,
}

impl Words {
    /// Returns the additional memory use in bytes.
    pub(super) fn memory(&self) -> usize {
        let masks = self.masks.as_ref().map_or(0, |masks| size_of_val(&**masks));
        size_of_val(&*self.turned) + size_of_val(&*self.kept) + masks
    }

    /// Creates the pattern; `None` if elements are better converted field by field.
    pub(super) fn new(plan: &Plan) -> Option<Words> {
        let stride = plan.stride();
        let shift = padding(plan.end(), plan.align());
        // The number of elements after which the pattern ends at a word boundary.
        let elements = 8 >> stride.trailing_zeros().min(3);
        let words = stride.checked_mul(elements)? / 8;
        if words == 0 || words > MAX_WORDS || plan.fields.iter().any(|field| field.width > 3) {
            return None;
        }
        // Masks by width, and for booleans.
        let mut masks = vec![[[0_u8; 8]; 5]; words];
        for element in 0..elements {
            for (field, offset) in plan.fields_at(plan.end()) {
                let kind = if field.what == FieldKind::Bool { 4 } else { usize::from(field.width) };
                // The bytes before the first whole word are equivalent to those after the last one.
                let start = element * stride + offset + words * 8 - shift;
                for at in start..start + field.len() as usize {
                    let word = masks.get_mut(at / 8 % words);
                    let octet = word.and_then(|word| word.get_mut(kind)?.get_mut(at % 8));
                    octet.into_iter().for_each(|octet| *octet = 0xFF);
                }
            }
        }
        let (turned, kept): (Vec<_>, Vec<_>) = masks.into_iter().map(Word::both).unzip();
        let masked = MASKS.is_multiple_of(words) && kept.iter().all(|word| word.bools == 0);
        let masks = masked.then(|| {
            let mut masks = Box::new([0; MASKS]);
            masks.iter_mut().zip(kept.iter().cycle()).for_each(|(mask, word)| *mask = word.octets);
            masks
        });
        Some(Words { shift, stride, turned: turned.into(), kept: kept.into(), masks })
    }

    /// Returns the approximate memory use, counted in fields.
    pub(super) fn weight(&self) -> usize {
        self.turned.len() * 2 + MASKS
    }

    /// Converts elements into a buffer of the same size. Returns the number of elements at the beginning that
    /// are not converted completely, and the end of the converted elements.
    pub(super) fn turn(&self, from: &[u8], to: &mut [u8], swap: bool) -> (usize, usize) {
        let (Some(words), Some(places)) = (from.get(self.shift..), to.get_mut(self.shift..)) else {
            return (0, 0);
        };
        let (words, places) = (words.as_chunks().0, places.as_chunks_mut().0);
        let len = self.turned.len().max(1);
        let whole = words.len() / len * len;
        let (words, places) =
            (words.get(..whole).unwrap_or_default(), places.get_mut(..whole).unwrap_or_default());
        match &self.masks {
            Some(masks) if !swap => {
                let (words, places) = keep(masks, words, places);
                turn(&self.kept, words, places);
            }
            _ => turn(if swap { &self.turned } else { &self.kept }, words, places),
        }
        let turned = whole * 8 / self.stride.max(1);
        (usize::from(self.shift > 0).min(turned), turned)
    }
}

impl Word {
    /// Creates a word from masks by width and for booleans: one for swapped fields, and one for unchanged
    /// fields.
    fn both([octets, shorts, longs, doubles, bools]: [[u8; 8]; 5]) -> (Word, Word) {
        let [octets, shorts, longs, doubles, bools] =
            [octets, shorts, longs, doubles, bools].map(u64::from_ne_bytes);
        let kind = match () {
            () if doubles != 0 => Kind::Double,
            () if octets | shorts | longs == octets => Kind::Octets,
            () => Kind::Mixed,
        };
        let turned = Word { kind, octets, shorts: shorts & LOWER, longs, bools };
        (turned, Word { octets: octets | shorts | longs | doubles, bools, ..Word::default() })
    }

    /// Converts all fields except booleans. A few kinds compile to branches, which are predicted better than
    /// a jump table.
    #[inline(always)]
    fn turn(&self, word: u64) -> u64 {
        match self.kind {
            Kind::Octets => word & self.octets,
            Kind::Double => word.swap_bytes(),
            Kind::Mixed => {
                word & self.octets
                    | word >> 8 & self.shorts
                    | (word & self.shorts) << 8
                    | word.swap_bytes().rotate_left(32) & self.longs
            }
        }
    }

    /// Converts the booleans of a word: the lowest bit of each byte that is not 0 is set.
    #[inline(always)]
    fn truth(&self, word: u64) -> u64 {
        const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
        let bools = word & self.bools;
        ((((bools & LOW) + LOW) | bools) & !LOW) >> 7
    }
}

/// Converts words. Short patterns are kept in registers.
fn turn(pattern: &[Word], from: &[[u8; 8]], to: &mut [[u8; 8]]) {
    match pattern {
        _ if pattern.iter().any(|word| word.bools != 0) => turn_many(pattern, from, to),
        [a] => turn_few([a], from, to),
        [a, b] => turn_few([a, b], from, to),
        [a, b, c] => turn_few([a, b, c], from, to),
        _ => turn_many(pattern, from, to),
    }
}

fn turn_many(pattern: &[Word], from: &[[u8; 8]], to: &mut [[u8; 8]]) {
    let len = pattern.len().max(1);
    for (from, to) in from.chunks_exact(len).zip(to.chunks_exact_mut(len)) {
        for ((word, from), to) in pattern.iter().zip(from).zip(to) {
            let from = u64::from_ne_bytes(*from);
            *to = (word.turn(from) | word.truth(from)).to_ne_bytes();
        }
    }
}

#[inline(never)]
fn turn_few<const N: usize>(pattern: [&Word; N], from: &[[u8; 8]], to: &mut [[u8; 8]]) {
    let pattern = pattern.map(|word| *word);
    for (from, to) in from.as_chunks::<N>().0.iter().zip(to.as_chunks_mut::<N>().0) {
        for ((word, from), to) in pattern.iter().zip(from).zip(to) {
            *to = word.turn(u64::from_ne_bytes(*from)).to_ne_bytes();
        }
    }
}

/// Copies words without the content of padding. Returns the remainder of both slices.
fn keep<'a, 'b>(
    masks: &[u64; MASKS],
    from: &'a [[u8; 8]],
    to: &'b mut [[u8; 8]],
) -> (&'a [[u8; 8]], &'b mut [[u8; 8]]) {
    let ((from, rest), (to, rest_to)) = (from.as_chunks::<MASKS>(), to.as_chunks_mut::<MASKS>());
    for (from, to) in from.iter().zip(to) {
        for ((mask, from), to) in masks.iter().zip(from).zip(to) {
            *to = (u64::from_ne_bytes(*from) & mask).to_ne_bytes();
        }
    }
    (rest, rest_to)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::super::plan::Field;
    use super::*;

    /// Elements of up to four fields of all kinds, in numbers that make whole and partial patterns, have the
    /// same result by words and field by field.
    #[test]
    fn words_turn_what_fields_turn() {
        let kinds = [
            (0, FieldKind::Plain),
            (1, FieldKind::Plain),
            (2, FieldKind::Plain),
            (3, FieldKind::Plain),
            (0, FieldKind::Bool),
        ];
        let mut by_words = 0;
        for fields in (1..=4).flat_map(|len| (0..5_usize.pow(len)).map(move |at| (len, at))) {
            let (len, at) = fields;
            let fields = (0..len).map(|place| kinds[at / 5_usize.pow(place) % 5]);
            let fields: Vec<_> = fields.map(|(width, what)| Field::one(width, what)).collect();
            let plan = Plan::new(fields).unwrap();
            by_words += usize::from(Words::new(&plan).is_some());
            for count in [0, 1, 2, 7, 8, 9, 25] {
                let from: Vec<u8> = (0..plan.stride() * count).map(|at| (at % 251) as u8 & !2).collect();
                for swap in [false, true] {
                    let (mut run, mut one) = (vec![0; from.len()], vec![0; from.len()]);
                    plan.turn_run(&from, &mut run, swap);
                    let elements = one.chunks_mut(plan.stride()).zip(from.chunks(plan.stride()));
                    elements.for_each(|(to, from)| plan.turn_one(from, plan.end(), to, plan.end(), swap));
                    assert_eq!(run, one, "{:?}, {count} elements, swapped: {swap}", plan.fields);
                }
            }
        }
        assert!(by_words > 700, "{by_words}");
    }
}
