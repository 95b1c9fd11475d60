//! Conversion of elements with many fields by 8-byte words: a byte swap, or a copy with zeros as padding.

use super::plan::{FieldKind, Plan};
use crate::cdr::padding;

/// The maximum number of words of a pattern. Elements that need a longer one are converted field by field.
const MAX_PATTERN_WORDS: usize = 64;

/// The number of masks that are applied at a time. Twelve words fill vector registers of any common size.
const MASK_COUNT: usize = 12;

/// A mask of the lower byte of each 2-byte number.
const LOWER_BYTES: u64 = 0x00FF_00FF_00FF_00FF;

/// The masks that convert a run. No value crosses a word boundary. The words repeat after some elements.
#[derive(Debug)]
pub(super) struct WordPattern {
    /// The number of bytes before the first whole word, if elements begin unaligned.
    shift: usize,
    stride: usize,
    swapped: Box<[WordMasks]>,
    copied: Box<[WordMasks]>,
    /// The masks of the field bytes, repeated. `None` if there are booleans, or if [`MASK_COUNT`] is not a
    /// multiple of the number of words.
    masks: Option<Box<[u64; MASK_COUNT]>>,
}

/// Masks of the bytes of a word, one for each size of fields. Padding is in none of them.
#[derive(Clone, Copy, Debug, Default)]
struct WordMasks {
    kind: WordKind,
    bytes: u64,
    /// The lower byte of each 2-byte field.
    shorts: u64,
    longs: u64,
    bools: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum WordKind {
    /// Only single bytes, or fields of any size that are not swapped.
    #[default]
    Bytes,
    /// An 8-byte field.
    Doubles,
    /// Fields of at most 4 bytes, of which some are longer than one byte.
    Mixed,
}

impl WordPattern {
    pub(super) fn memory(&self) -> usize {
        let masks = self.masks.as_ref().map_or(0, |masks| size_of_val(&**masks));
        size_of_val(&*self.swapped) + size_of_val(&*self.copied) + masks
    }

    /// Creates the pattern; `None` if elements are better converted field by field.
    pub(super) fn new(plan: &Plan) -> Option<WordPattern> {
        let stride = plan.stride;
        let shift = padding(plan.end_phase, plan.align);
        // The number of elements after which the pattern ends at a word boundary.
        let elements = 8 >> stride.trailing_zeros().min(3);
        let words = stride.checked_mul(elements)? / 8;
        if words == 0 || words > MAX_PATTERN_WORDS || plan.fields.iter().any(|field| field.size_log2 > 3) {
            return None;
        }
        // The masks of each word: one for each size of fields, and one for booleans.
        let mut masks = vec![[[0_u8; 8]; 5]; words];
        for element in 0..elements {
            for (field, offset) in plan.fields_at(plan.end_phase) {
                let kind = if field.kind == FieldKind::Bool { 4 } else { usize::from(field.size_log2) };
                // The pattern repeats, so the bytes before its first whole word are those after its last one.
                let start = element * stride + offset + words * 8 - shift;
                for at in start..start + field.len() as usize {
                    let word = masks.get_mut(at / 8 % words);
                    let byte = word.and_then(|word| word.get_mut(kind)?.get_mut(at % 8));
                    byte.into_iter().for_each(|byte| *byte = 0xFF);
                }
            }
        }
        let (swapped, copied): (Vec<_>, Vec<_>) = masks.into_iter().map(WordMasks::new_pair).unzip();
        let needs_only_masks = MASK_COUNT.is_multiple_of(words) && copied.iter().all(|word| word.bools == 0);
        let masks = needs_only_masks.then(|| {
            let mut masks = Box::new([0; MASK_COUNT]);
            masks.iter_mut().zip(copied.iter().cycle()).for_each(|(mask, word)| *mask = word.bytes);
            masks
        });
        Some(WordPattern { shift, stride, swapped: swapped.into(), copied: copied.into(), masks })
    }

    pub(super) fn weight(&self) -> usize {
        self.swapped.len() * 2 + MASK_COUNT
    }

    /// Converts elements into a buffer of the same size. Returns the range of the elements that are converted
    /// completely, as the index of the first one and the index after the last one.
    pub(super) fn convert(&self, from: &[u8], to: &mut [u8], swap: bool) -> (usize, usize) {
        let (Some(from), Some(to)) = (from.get(self.shift..), to.get_mut(self.shift..)) else {
            return (0, 0);
        };
        let (from, to) = (from.as_chunks().0, to.as_chunks_mut().0);
        let len = self.swapped.len().max(1);
        let whole = from.len() / len * len;
        let (from, to) = (from.get(..whole).unwrap_or_default(), to.get_mut(..whole).unwrap_or_default());
        match &self.masks {
            Some(masks) if !swap => {
                let (from, to) = copy_masked(masks, from, to);
                convert(&self.copied, from, to);
            }
            _ => convert(if swap { &self.swapped } else { &self.copied }, from, to),
        }
        let converted = whole * 8 / self.stride.max(1);
        (usize::from(self.shift > 0).min(converted), converted)
    }
}

impl WordMasks {
    /// Creates the masks for swapped and for copied fields from masks of the fields of each kind.
    fn new_pair([bytes, shorts, longs, doubles, bools]: [[u8; 8]; 5]) -> (WordMasks, WordMasks) {
        let [bytes, shorts, longs, doubles, bools] =
            [bytes, shorts, longs, doubles, bools].map(u64::from_ne_bytes);
        let kind = match () {
            () if doubles != 0 => WordKind::Doubles,
            () if bytes | shorts | longs == bytes => WordKind::Bytes,
            () => WordKind::Mixed,
        };
        let swapped = WordMasks { kind, bytes, shorts: shorts & LOWER_BYTES, longs, bools };
        (swapped, WordMasks { bytes: bytes | shorts | longs | doubles, bools, ..WordMasks::default() })
    }

    /// Converts all fields except booleans. Three arms compile to branches, which beat a jump table.
    #[inline(always)]
    fn convert(&self, word: u64) -> u64 {
        match self.kind {
            WordKind::Bytes => word & self.bytes,
            WordKind::Doubles => word.swap_bytes(),
            WordKind::Mixed => {
                word & self.bytes
                    | word >> 8 & self.shorts
                    | (word & self.shorts) << 8
                    | word.swap_bytes().rotate_left(32) & self.longs
            }
        }
    }

    /// Converts the booleans of a word: bytes other than 0 become 1.
    #[inline(always)]
    fn normalized_bools(&self, word: u64) -> u64 {
        const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
        let bools = word & self.bools;
        ((((bools & LOW) + LOW) | bools) & !LOW) >> 7
    }
}

/// Converts words. The masks of a pattern of up to three words without booleans stay in registers.
fn convert(pattern: &[WordMasks], from: &[[u8; 8]], to: &mut [[u8; 8]]) {
    match pattern {
        _ if pattern.iter().any(|word| word.bools != 0) => convert_words(pattern, from, to),
        [a] => convert_few_words([a], from, to),
        [a, b] => convert_few_words([a, b], from, to),
        [a, b, c] => convert_few_words([a, b, c], from, to),
        _ => convert_words(pattern, from, to),
    }
}

fn convert_words(pattern: &[WordMasks], from: &[[u8; 8]], to: &mut [[u8; 8]]) {
    let len = pattern.len().max(1);
    for (from, to) in from.chunks_exact(len).zip(to.chunks_exact_mut(len)) {
        for ((word, from), to) in pattern.iter().zip(from).zip(to) {
            let from = u64::from_ne_bytes(*from);
            *to = (word.convert(from) | word.normalized_bools(from)).to_ne_bytes();
        }
    }
}

#[inline(never)]
fn convert_few_words<const N: usize>(pattern: [&WordMasks; N], from: &[[u8; 8]], to: &mut [[u8; 8]]) {
    let pattern = pattern.map(|word| *word);
    for (from, to) in from.as_chunks::<N>().0.iter().zip(to.as_chunks_mut::<N>().0) {
        for ((word, from), to) in pattern.iter().zip(from).zip(to) {
            *to = word.convert(u64::from_ne_bytes(*from)).to_ne_bytes();
        }
    }
}

/// Copies words with zeros as padding. Returns the rest of both slices, which has fewer words than masks.
fn copy_masked<'a, 'b>(
    masks: &[u64; MASK_COUNT],
    from: &'a [[u8; 8]],
    to: &'b mut [[u8; 8]],
) -> (&'a [[u8; 8]], &'b mut [[u8; 8]]) {
    let ((from, rest), (to, rest_to)) = (from.as_chunks::<MASK_COUNT>(), to.as_chunks_mut::<MASK_COUNT>());
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

    /// Tries elements of up to four fields of all kinds, in numbers that make whole and partial patterns.
    #[test]
    fn conversion_by_words_equals_conversion_by_fields() {
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
            by_words += usize::from(WordPattern::new(&plan).is_some());
            for count in [0, 1, 2, 7, 8, 9, 25] {
                let from: Vec<u8> = (0..plan.stride * count).map(|at| (at % 251) as u8 & !2).collect();
                for swap in [false, true] {
                    let (mut run, mut one) = (vec![0; from.len()], vec![0; from.len()]);
                    plan.convert_run(&from, &mut run, swap);
                    let elements = one.chunks_mut(plan.stride).zip(from.chunks(plan.stride));
                    elements.for_each(|(to, from)| {
                        plan.convert_element(from, plan.end_phase, to, plan.end_phase, swap)
                    });
                    assert_eq!(run, one, "{:?}, {count} elements, swapped: {swap}", plan.fields);
                }
            }
        }
        assert!(by_words > 700, "{by_words}");
    }
}
