//! [`Plan`]: the run-time counterpart of [`Layout`](crate::cdr::Layout), for a type known only at run time.
//!
//! A phase is a position modulo 8 from the alignment origin. A run consists of consecutive values.

use super::words::WordPattern;
use crate::cdr::{TILE_BYTES, copy, padding, swap, swap_in_place};

/// The maximum number of fields of a plan. Adjacent members of the same kind and size are one field.
pub(crate) const MAX_FIELDS: usize = 256;

/// The maximum size in bytes of a value that has a plan. Longer arrays are processed by element.
const MAX_VALUE_BYTES: u64 = 1 << 30;

/// The validation or conversion that a field needs in addition to the byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Plain,
    /// A byte other than 0 is converted to 1.
    Bool,
    /// An ordinal, which must be less than this number of enumerators.
    Enum(u32),
}

/// Adjacent values of the same kind and size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) kind: FieldKind,
    /// The binary logarithm of the size of each value in bytes: 0 to 4.
    pub(crate) size_log2: u8,
    pub(crate) count: u32,
    /// Whether the values are an array, whose elements GIOP 1.1 does not realign after a fragment boundary.
    /// Set only for values of at least 8 bytes, because fragment headers do not misalign smaller ones.
    pub(crate) is_array: bool,
}

impl Field {
    pub(crate) fn one(size_log2: u8, kind: FieldKind) -> Field {
        Field { kind, size_log2, count: 1, is_array: false }
    }

    fn align(self) -> usize {
        (1 << self.size_log2).min(8)
    }

    /// Returns the size of all values in bytes.
    pub(crate) fn len(self) -> u64 {
        u64::from(self.count) << self.size_log2
    }
}

/// How the elements of a run are byte-swapped, or copied with zeros as padding, to another buffer.
#[derive(Debug)]
enum ConversionMethod {
    /// All at once: the values are contiguous, and all have this `size_log2`.
    Uniform(u8),
    ByWord(WordPattern),
    ByField,
}

/// A type whose encoded size depends only on the phase at which it starts.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) fields: Box<[Field]>,
    /// The offset of each field in a value, repeated for each phase modulo `align`.
    offsets: Box<[u32]>,
    /// The size in bytes of a value that starts at each phase.
    sizes: [u32; 8],
    pub(super) align: usize,
    /// The phase modulo `align` at which every value ends. All elements of a run but the first start at it.
    pub(crate) end_phase: usize,
    /// The size of every element of a run but the first, with its padding.
    pub(crate) stride: usize,
    first_align: usize,
    /// How many bytes to convert at a time, so that they stay in the cache. A multiple of `stride`.
    pub(super) tile_size: usize,
    method: ConversionMethod,
    has_enums: bool,
    /// Whether the type is a number, an enum, or an array of either.
    pub(crate) is_number_array: bool,
}

impl Plan {
    /// Creates the plan; `None` if it is too large.
    pub(crate) fn new(fields: Vec<Field>) -> Option<Plan> {
        let align = fields.iter().map(|field| field.align()).max().unwrap_or(1);
        let mut offsets = Vec::with_capacity(align * fields.len());
        let mut sizes = [0; 8];
        for phase in 0..align {
            let mut at = phase as u64;
            for field in &fields {
                at += padding(at as usize, field.align()) as u64;
                offsets.push((at - phase as u64) as u32);
                at += field.len();
                if at > MAX_VALUE_BYTES {
                    return None;
                }
            }
            sizes.iter_mut().skip(phase).step_by(align).for_each(|size| *size = (at - phase as u64) as u32);
        }
        let end_phase = sizes[0] as usize % align;
        let stride = sizes.get(end_phase).map_or(0, |size| *size as usize);
        // The word pattern of `ConversionMethod::ByWord` consists of at most eight elements.
        let max_pattern = stride.saturating_mul(8).max(1);
        let mut plan = Plan {
            first_align: fields.first().map_or(align, |field| field.align()),
            has_enums: fields.iter().any(|field| matches!(field.kind, FieldKind::Enum(_))),
            fields: fields.into(),
            offsets: offsets.into(),
            sizes,
            align,
            end_phase,
            stride,
            tile_size: if max_pattern > TILE_BYTES { stride } else { TILE_BYTES / max_pattern * max_pattern },
            method: ConversionMethod::ByField,
            is_number_array: false,
        };
        plan.method = plan.best_method();
        Some(plan)
    }

    fn best_method(&self) -> ConversionMethod {
        let size_log2 = self.fields.first().map_or(0, |field| field.size_log2);
        let len: u64 = self.fields.iter().map(|field| field.len()).sum();
        let plain =
            self.fields.iter().all(|field| field.size_log2 == size_log2 && field.kind != FieldKind::Bool);
        if plain && self.end_phase == 0 && len == self.stride as u64 {
            return ConversionMethod::Uniform(size_log2);
        }
        WordPattern::new(self).map_or(ConversionMethod::ByField, ConversionMethod::ByWord)
    }

    /// Returns the fields with their offsets in an element that starts at a phase.
    pub(crate) fn fields_at(&self, phase: usize) -> impl Iterator<Item = (Field, usize)> {
        let from = (phase % self.align) * self.fields.len();
        let offsets = self.offsets.get(from..).unwrap_or_default();
        self.fields.iter().zip(offsets).map(|(field, offset)| (*field, *offset as usize))
    }

    #[inline]
    pub(crate) fn size(&self, phase: usize) -> usize {
        self.sizes.get(phase % 8).map_or(0, |size| *size as usize)
    }

    /// Returns the minimum size in bytes over all phases.
    pub(crate) fn min_size(&self) -> usize {
        self.sizes.iter().min().map_or(0, |size| *size as usize)
    }

    /// Returns the approximate memory use in units of one field.
    pub(crate) fn weight(&self) -> usize {
        let words = if let ConversionMethod::ByWord(words) = &self.method { words.weight() } else { 0 };
        1 + self.fields.len() + words
    }

    pub(crate) fn memory(&self) -> usize {
        let words = if let ConversionMethod::ByWord(words) = &self.method { words.memory() } else { 0 };
        size_of::<Plan>() + size_of_val(&*self.fields) + size_of_val(&*self.offsets) + words
    }

    /// Returns the size in bytes of `count` consecutive values, of which the first starts at `phase`.
    pub(crate) fn run_size(&self, phase: usize, count: usize) -> usize {
        match count.checked_sub(1) {
            Some(others) => self.size(phase).saturating_add(self.stride.saturating_mul(others)),
            None => 0,
        }
    }

    /// Returns the padding after which all elements of a run have one layout; `None` if the first differs.
    #[inline]
    pub(super) fn lead_padding(&self, phase: usize) -> Option<usize> {
        if phase % self.align == self.end_phase {
            Some(0)
        } else if self.end_phase == 0 && self.first_align == self.align {
            Some(padding(phase, self.align))
        } else {
            None
        }
    }

    /// Returns the `size_log2` and the count of the values in an element, if they are contiguous and alike.
    pub(super) fn uniform_values(&self) -> Option<(u8, usize)> {
        match self.method {
            ConversionMethod::Uniform(size_log2) => Some((size_log2, self.stride >> size_log2)),
            _ => None,
        }
    }

    /// Returns whether all ordinals are valid in elements that start at `phase` and are `stride` bytes apart.
    pub(crate) fn has_valid_ordinals(&self, bytes: &[u8], phase: usize, stride: usize, swap: bool) -> bool {
        !self.has_enums
            || self.fields_at(phase).all(|(field, offset)| {
                let FieldKind::Enum(enumerators) = field.kind else { return true };
                bytes.chunks_exact(stride.max(1)).all(|element| {
                    let ordinals = element.get(offset..offset + field.len() as usize).unwrap_or_default();
                    ordinals.as_chunks().0.iter().all(|ordinal| {
                        let ordinal = u32::from_ne_bytes(*ordinal);
                        (if swap { ordinal.swap_bytes() } else { ordinal }) < enumerators
                    })
                })
            })
    }

    /// Converts elements that start at `end_phase`, a stride apart, into a zeroed buffer of the same size.
    pub(super) fn convert_run(&self, from: &[u8], to: &mut [u8], swap: bool) {
        match &self.method {
            ConversionMethod::Uniform(size_log2) => convert(*size_log2, FieldKind::Plain, from, to, swap),
            ConversionMethod::ByWord(words) => {
                let (first, converted) = words.convert(from, to, swap);
                let mut convert_at = |index: usize| {
                    let range = index * self.stride..(index + 1) * self.stride;
                    if let (Some(from), Some(to)) = (from.get(range.clone()), to.get_mut(range)) {
                        self.convert_element(from, self.end_phase, to, self.end_phase, swap);
                    }
                };
                (0..first).for_each(&mut convert_at);
                (converted..from.len() / self.stride).for_each(convert_at);
            }
            ConversionMethod::ByField => {
                let stride = self.stride.max(1);
                for (field, offset) in self.fields_at(self.end_phase) {
                    let range = offset..offset + field.len() as usize;
                    for (from, to) in from.chunks_exact(stride).zip(to.chunks_exact_mut(stride)) {
                        if let (Some(from), Some(to)) = (from.get(range.clone()), to.get_mut(range.clone())) {
                            convert(field.size_log2, field.kind, from, to, swap);
                        }
                    }
                }
            }
        }
    }

    /// Converts one element into zeroed memory. The element starts at `phase`, and the result at `to_phase`.
    #[inline(never)]
    pub(super) fn convert_element(
        &self,
        from: &[u8],
        phase: usize,
        to: &mut [u8],
        to_phase: usize,
        swap: bool,
    ) {
        for ((field, at), (_, to_at)) in self.fields_at(phase).zip(self.fields_at(to_phase)) {
            let len = field.len() as usize;
            if let (Some(from), Some(to)) = (from.get(at..at + len), to.get_mut(to_at..to_at + len)) {
                convert(field.size_log2, field.kind, from, to, swap);
            }
        }
    }

    /// Swaps the bytes of the fields of elements in place. The first element starts at `phase`.
    pub(crate) fn swap_in_place(&self, bytes: &mut [u8], phase: usize) {
        let (first, others) = bytes.split_at_mut(bytes.len().min(self.size(phase)));
        let swap_element = |element: &mut [u8], phase| {
            for (field, at) in self.fields_at(phase) {
                if let Some(values) = element.get_mut(at..at + field.len() as usize) {
                    swap_in_place(field.size_log2, values);
                }
            }
        };
        swap_element(first, phase);
        match self.method {
            ConversionMethod::Uniform(size_log2) => swap_in_place(size_log2, others),
            _ => {
                let others = others.chunks_exact_mut(self.stride.max(1));
                others.for_each(|element| swap_element(element, self.end_phase));
            }
        }
    }
}

#[inline(never)]
fn convert(size_log2: u8, kind: FieldKind, from: &[u8], to: &mut [u8], swapped: bool) {
    match kind {
        FieldKind::Bool => to.iter_mut().zip(from).for_each(|(to, from)| *to = u8::from(*from != 0)),
        _ if swapped => swap(size_log2, from, to),
        _ => copy(from, to),
    }
}
