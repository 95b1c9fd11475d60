//! [`Plan`]: the counterpart at run time of [`Layout`](crate::cdr::Layout), computed once for a type.

use super::words::WordPattern;
use crate::cdr::{TILE_BYTES, copy, padding, swap, swap_here};

/// The maximum number of fields of a plan. Adjacent fields of one kind are one field.
pub(crate) const MAX_FIELDS: usize = 256;

/// The maximum size of a plan in bytes; longer arrays are processed element by element.
const MAX_SIZE: u64 = 1 << 30;

/// The validation or conversion that a field needs in addition to the byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Plain,
    /// A byte other than 0 is converted to 1.
    Bool,
    /// An ordinal, which must be less than this number of enumerators.
    Enum(u32),
}

/// Adjacent values of one width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) what: FieldKind,
    /// The binary logarithm of the size of each value in bytes: 0 to 4.
    pub(crate) width: u8,
    pub(crate) count: u32,
    /// Whether the values are an array, which in GIOP 1.1 is not realigned after a fragment boundary. Set
    /// only for widths for which this matters.
    pub(crate) joined: bool,
}

impl Field {
    pub(crate) fn one(width: u8, what: FieldKind) -> Field {
        Field { what, width, count: 1, joined: false }
    }

    fn align(self) -> usize {
        (1 << self.width).min(8)
    }

    pub(crate) fn len(self) -> u64 {
        u64::from(self.count) << self.width
    }
}

/// The method by which elements of a run are byte-swapped, or copied with zeros as padding.
#[derive(Debug)]
enum ConversionMethod {
    /// At once: all values have this width and are contiguous.
    Uniform(u8),
    ByWord(WordPattern),
    ByField,
}

/// A type whose encoded size depends only on the phase at which it starts.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) fields: Box<[Field]>,
    /// The offset of each field, for each phase modulo `align`.
    offsets: Box<[u32]>,
    /// The size in bytes for each phase.
    size: [u32; 8],
    pub(super) align: usize,
    /// The phase modulo `align` at which every element ends. Elements of a run start there, possibly except
    /// the first.
    pub(crate) end_phase: usize,
    pub(crate) stride: usize,
    first_align: usize,
    /// The number of bytes of whole elements that are best converted at a time.
    pub(super) tile_size: usize,
    method: ConversionMethod,
    has_enums: bool,
    /// Whether the type is a number or an array of numbers, so that consecutive elements are one array.
    pub(crate) number: bool,
}

impl Plan {
    /// Creates the plan; `None` if it is too large.
    pub(crate) fn new(fields: Vec<Field>) -> Option<Plan> {
        let align = fields.iter().map(|field| field.align()).max().unwrap_or(1);
        let mut offsets = Vec::with_capacity(align * fields.len());
        let mut size = [0; 8];
        for phase in 0..align {
            let mut at = phase as u64;
            for field in &fields {
                at += padding(at as usize, field.align()) as u64;
                offsets.push((at - phase as u64) as u32);
                at += field.len();
                if at > MAX_SIZE {
                    return None;
                }
            }
            size.iter_mut().skip(phase).step_by(align).for_each(|size| *size = (at - phase as u64) as u32);
        }
        let end_phase = size[0] as usize % align;
        let stride = size.get(end_phase).map_or(0, |size| *size as usize);
        // A pattern consists of at most eight elements.
        let max_pattern = stride.saturating_mul(8).max(1);
        let mut plan = Plan {
            first_align: fields.first().map_or(align, |field| field.align()),
            has_enums: fields.iter().any(|field| matches!(field.what, FieldKind::Enum(_))),
            fields: fields.into(),
            offsets: offsets.into(),
            size,
            align,
            end_phase,
            stride,
            tile_size: if max_pattern > TILE_BYTES { stride } else { TILE_BYTES / max_pattern * max_pattern },
            method: ConversionMethod::ByField,
            number: false,
        };
        plan.method = plan.best_method();
        Some(plan)
    }

    fn best_method(&self) -> ConversionMethod {
        let width = self.fields.first().map_or(0, |field| field.width);
        let len: u64 = self.fields.iter().map(|field| field.len()).sum();
        let plain = self.fields.iter().all(|field| field.width == width && field.what != FieldKind::Bool);
        if plain && self.end_phase == 0 && len == self.stride as u64 {
            return ConversionMethod::Uniform(width);
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
        self.size.get(phase % 8).map_or(0, |size| *size as usize)
    }

    /// Returns the minimum size in bytes over all phases.
    pub(crate) fn least(&self) -> usize {
        self.size.iter().min().map_or(0, |size| *size as usize)
    }

    /// Returns the approximate memory use, counted in fields.
    pub(crate) fn weight(&self) -> usize {
        let words = if let ConversionMethod::ByWord(words) = &self.method { words.weight() } else { 0 };
        1 + self.fields.len() + words
    }

    pub(crate) fn memory(&self) -> usize {
        let words = if let ConversionMethod::ByWord(words) = &self.method { words.memory() } else { 0 };
        size_of::<Plan>() + size_of_val(&*self.fields) + size_of_val(&*self.offsets) + words
    }

    pub(crate) fn run_size(&self, phase: usize, count: usize) -> usize {
        match count.checked_sub(1) {
            Some(others) => self.size(phase).saturating_add(self.stride.saturating_mul(others)),
            None => 0,
        }
    }

    /// Returns the padding before a run whose elements all have the same layout; `None` if the layout of the
    /// first one differs.
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

    /// Returns the width and count of the numbers in an element, if elements are contiguous numbers of one
    /// width.
    pub(super) fn uniform(&self) -> Option<(u8, usize)> {
        match self.method {
            ConversionMethod::Uniform(width) => Some((width, self.stride >> width)),
            _ => None,
        }
    }

    /// Returns whether all ordinals are valid, in elements that start at a phase and are `stride` bytes
    /// apart.
    pub(crate) fn has_valid_ordinals(&self, bytes: &[u8], phase: usize, stride: usize, swap: bool) -> bool {
        !self.has_enums
            || self.fields_at(phase).all(|(field, offset)| {
                let FieldKind::Enum(enumerators) = field.what else { return true };
                bytes.chunks_exact(stride.max(1)).all(|element| {
                    let ordinals = element.get(offset..offset + field.len() as usize).unwrap_or_default();
                    ordinals.as_chunks().0.iter().all(|ordinal| {
                        let ordinal = u32::from_ne_bytes(*ordinal);
                        (if swap { ordinal.swap_bytes() } else { ordinal }) < enumerators
                    })
                })
            })
    }

    /// Converts elements that are a stride apart into a zeroed buffer of the same size.
    pub(super) fn convert_run(&self, from: &[u8], to: &mut [u8], swap: bool) {
        match &self.method {
            ConversionMethod::Uniform(width) => convert(*width, FieldKind::Plain, from, to, swap),
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
                            convert(field.width, field.what, from, to, swap);
                        }
                    }
                }
            }
        }
    }

    /// Converts one element from one phase to another, into zeroed memory.
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
                convert(field.width, field.what, from, to, swap);
            }
        }
    }

    /// Swaps the fields of elements in place; the first element starts at `phase`.
    pub(crate) fn swap_in_place(&self, bytes: &mut [u8], phase: usize) {
        let (first, others) = bytes.split_at_mut(bytes.len().min(self.size(phase)));
        let swap_element = |element: &mut [u8], phase| {
            for (field, at) in self.fields_at(phase) {
                if let Some(values) = element.get_mut(at..at + field.len() as usize) {
                    swap_here(field.width, values);
                }
            }
        };
        swap_element(first, phase);
        match self.method {
            ConversionMethod::Uniform(width) => swap_here(width, others),
            _ => {
                let others = others.chunks_exact_mut(self.stride.max(1));
                others.for_each(|element| swap_element(element, self.end_phase));
            }
        }
    }
}

#[inline(never)]
fn convert(width: u8, what: FieldKind, from: &[u8], to: &mut [u8], swapped: bool) {
    match what {
        FieldKind::Bool => to.iter_mut().zip(from).for_each(|(to, from)| *to = u8::from(*from != 0)),
        _ if swapped => swap(width, from, to),
        _ => copy(from, to),
    }
}
