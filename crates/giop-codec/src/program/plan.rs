//! [`Plan`]: a type whose encoded size depends only on the phase at which it starts, with the computed offset
//! of every field.
//!
//! The counterpart at run time of [`Layout`](crate::cdr::Layout): what the compiler evaluates there is
//! computed here once for a type. An element of a run is then processed by a few operations on words, whose
//! masks determine the result for each byte.

use super::words::Words;
use crate::cdr::{TILE, copy, padding, swap, swap_here};

/// The maximum number of fields of a plan. Adjacent fields of one kind are one field.
pub(crate) const MAX_FIELDS: usize = 256;

/// The maximum size of a plan in bytes; longer arrays are processed element by element.
const MAX_SIZE: u64 = 1 << 30;

/// The kind of a field, as far as it needs more than copying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Plain,
    /// Every byte other than 0 is true.
    Bool,
    /// An ordinal, with this number of enumerators.
    Enum(u32),
}

/// Adjacent values of one width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) what: FieldKind,
    /// The binary logarithm of the size of each value in bytes: 0 to 4.
    pub(crate) width: u8,
    pub(crate) count: u32,
    /// The numbers of an array, which are not realigned after a fragment boundary in GIOP 1.1. Set only for
    /// widths for which this matters.
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

/// The method by which elements of a run are byte-swapped, or copied without the content of their padding.
#[derive(Debug)]
enum Form {
    /// All values have one width and are contiguous.
    Uniform(u8),
    /// By words of eight bytes.
    Words(Words),
    /// Field by field.
    Fields,
}

/// The properties of a type of fixed layout.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) fields: Box<[Field]>,
    /// The offset of each field, for each phase modulo `align`.
    offsets: Box<[u32]>,
    size: [u32; 8],
    align: usize,
    /// The phase modulo `align` at which every element ends.
    end: usize,
    stride: usize,
    first_align: usize,
    tile: usize,
    form: Form,
    enums: bool,
    /// The type is a number or an array of numbers: consecutive elements form one run.
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
        let end = size[0] as usize % align;
        let stride = size.get(end).map_or(0, |size| *size as usize);
        let first_align = fields.first().map_or(align, |field| field.align());
        let enums = fields.iter().any(|field| matches!(field.what, FieldKind::Enum(_)));
        // A pattern consists of at most eight elements.
        let few = stride.saturating_mul(8).max(1);
        let tile = if few > TILE { stride } else { TILE / few * few };
        let form = Form::Fields;
        let fields = fields.into();
        let mut plan = Plan {
            fields,
            offsets: offsets.into(),
            size,
            align,
            end,
            stride,
            first_align,
            tile,
            form,
            enums,
            number: false,
        };
        plan.form = plan.best_form();
        Some(plan)
    }

    fn best_form(&self) -> Form {
        let width = self.fields.first().map_or(0, |field| field.width);
        let len: u64 = self.fields.iter().map(|field| field.len()).sum();
        let plain = self.fields.iter().all(|field| field.width == width && field.what != FieldKind::Bool);
        if plain && self.end == 0 && len == self.stride as u64 {
            return Form::Uniform(width);
        }
        match Words::new(self) {
            Some(words) => Form::Words(words),
            None => Form::Fields,
        }
    }

    /// Returns the fields with their offsets in an element that starts at a phase.
    pub(crate) fn fields_at(&self, phase: usize) -> impl Iterator<Item = (Field, usize)> {
        let from = (phase % self.align) * self.fields.len();
        let offsets = self.offsets.get(from..).unwrap_or_default();
        self.fields.iter().zip(offsets).map(|(field, offset)| (*field, *offset as usize))
    }

    /// Returns the size in bytes of one element that starts at a phase.
    #[inline]
    pub(crate) fn size(&self, phase: usize) -> usize {
        self.size.get(phase % 8).map_or(0, |size| *size as usize)
    }

    /// Returns the minimum size over all phases.
    pub(crate) fn least(&self) -> usize {
        self.size.iter().min().map_or(0, |size| *size as usize)
    }

    /// Returns the approximate memory use, counted in fields.
    pub(crate) fn weight(&self) -> usize {
        let words = if let Form::Words(words) = &self.form { words.weight() } else { 0 };
        1 + self.fields.len() + words
    }

    /// Returns the memory use in bytes.
    pub(crate) fn memory(&self) -> usize {
        let words = if let Form::Words(words) = &self.form { words.memory() } else { 0 };
        size_of::<Plan>() + size_of_val(&*self.fields) + size_of_val(&*self.offsets) + words
    }

    pub(crate) fn align(&self) -> usize {
        self.align
    }

    /// Returns the phase at which elements of a run start, possibly except the first.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// Returns the number of bytes from one element of a run to the next.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Returns the number of bytes of whole elements that are best converted at a time.
    pub(crate) fn tile(&self) -> usize {
        self.tile
    }

    /// Returns the size in bytes of a run of elements.
    pub(crate) fn run(&self, phase: usize, count: usize) -> usize {
        match count.checked_sub(1) {
            Some(others) => self.size(phase).saturating_add(self.stride.saturating_mul(others)),
            None => 0,
        }
    }

    /// Returns the padding after which all elements of a run are a stride apart; `None` if the layout of the
    /// first one differs.
    #[inline]
    pub(crate) fn lead(&self, phase: usize) -> Option<usize> {
        if phase % self.align == self.end {
            Some(0)
        } else if self.end == 0 && self.first_align == self.align {
            Some(padding(phase, self.align))
        } else {
            None
        }
    }

    /// Returns the width and count of the numbers in an element, if elements are contiguous numbers of one
    /// width.
    pub(crate) fn uniform(&self) -> Option<(u8, usize)> {
        match self.form {
            Form::Uniform(width) => Some((width, self.stride >> width)),
            _ => None,
        }
    }

    /// Returns whether all ordinals are valid, in elements that start at a phase and are `stride` bytes
    /// apart.
    pub(crate) fn ordinals(&self, octets: &[u8], phase: usize, stride: usize, swap: bool) -> bool {
        !self.enums
            || self.fields_at(phase).all(|(field, offset)| {
                let FieldKind::Enum(enumerators) = field.what else { return true };
                octets.chunks_exact(stride.max(1)).all(|element| {
                    let ordinals = element.get(offset..offset + field.len() as usize).unwrap_or_default();
                    ordinals.as_chunks().0.iter().all(|ordinal| {
                        let ordinal = u32::from_ne_bytes(*ordinal);
                        (if swap { ordinal.swap_bytes() } else { ordinal }) < enumerators
                    })
                })
            })
    }

    /// Converts elements that are a stride apart into a zeroed buffer of the same size.
    pub(crate) fn turn_run(&self, from: &[u8], to: &mut [u8], swap: bool) {
        match &self.form {
            Form::Uniform(width) => turn(*width, FieldKind::Plain, from, to, swap),
            Form::Words(words) => {
                let (first, turned) = words.turn(from, to, swap);
                let mut one = |at: usize| {
                    let place = at * self.stride..(at + 1) * self.stride;
                    if let (Some(from), Some(to)) = (from.get(place.clone()), to.get_mut(place)) {
                        self.turn_one(from, self.end, to, self.end, swap);
                    }
                };
                (0..first).for_each(&mut one);
                (turned..from.len() / self.stride).for_each(one);
            }
            Form::Fields => {
                let stride = self.stride.max(1);
                for (field, offset) in self.fields_at(self.end) {
                    let place = offset..offset + field.len() as usize;
                    for (from, to) in from.chunks_exact(stride).zip(to.chunks_exact_mut(stride)) {
                        if let (Some(from), Some(to)) = (from.get(place.clone()), to.get_mut(place.clone())) {
                            turn(field.width, field.what, from, to, swap);
                        }
                    }
                }
            }
        }
    }

    /// Converts one element from one phase to another, into zeroed memory.
    #[inline(never)]
    pub(crate) fn turn_one(&self, from: &[u8], phase: usize, to: &mut [u8], to_phase: usize, swap: bool) {
        for ((field, at), (_, to_at)) in self.fields_at(phase).zip(self.fields_at(to_phase)) {
            let len = field.len() as usize;
            if let (Some(from), Some(to)) = (from.get(at..at + len), to.get_mut(to_at..to_at + len)) {
                turn(field.width, field.what, from, to, swap);
            }
        }
    }

    /// Swaps elements in place, without the padding between their fields; the first one starts at `phase`.
    pub(crate) fn turn_in_place(&self, octets: &mut [u8], phase: usize) {
        let first = octets.len().min(self.size(phase));
        let (first, others) = octets.split_at_mut(first);
        let element = |element: &mut [u8], phase| {
            for (field, at) in self.fields_at(phase) {
                if let Some(place) = element.get_mut(at..at + field.len() as usize) {
                    swap_here(field.width, place);
                }
            }
        };
        element(first, phase);
        match self.form {
            Form::Uniform(width) => swap_here(width, others),
            _ => others.chunks_exact_mut(self.stride.max(1)).for_each(|others| element(others, self.end)),
        }
    }
}

/// Converts numbers of one width.
#[inline(never)]
fn turn(width: u8, what: FieldKind, from: &[u8], to: &mut [u8], swapped: bool) {
    match what {
        FieldKind::Bool => to.iter_mut().zip(from).for_each(|(to, from)| *to = u8::from(*from != 0)),
        _ if swapped => swap(width, from, to),
        _ => copy(from, to),
    }
}
