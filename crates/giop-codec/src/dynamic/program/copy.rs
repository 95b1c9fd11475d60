//! Copying of values from one stream to another, and conversion to a flat layout in memory and back.

use bytes::Bytes;

use super::{Contents, Program};
use crate::cdr::{Decoder, Encoder};
use crate::dynamic::{DynError, DynErrorKind};
use crate::program::{EMPTY_VALUE_CHARGE_BYTES, Op, Plan};
use crate::walk::{CopyError, copy_value, read_count};

const NOT_FLAT: &str =
    "the type has no flat layout: it must be a number, a struct or array of numbers, or a sequence of these";

impl Program {
    /// Copies a value from one stream to another, whose byte order, alignment, version and code sets may
    /// differ. Checks the whole value. Runs of numbers are shared if the byte orders are equal. Everything
    /// else is copied, with zeros as padding.
    ///
    /// Rejects sequences whose elements take no bytes, as an any does.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode), with the path to the fault, or [`Encode`](DynErrorKind::Encode).
    /// After an error, the encoder contains an incomplete value and must be rewound.
    pub fn copy(&self, d: &mut Decoder<'_>, e: &mut Encoder) -> Result<Contents, DynError> {
        let bookmark = d.bookmark();
        match copy_value(&self.code, d, e) {
            Ok(found) => Ok(Contents {
                has_references: found.has_references,
                has_value_types: found.has_value_types,
                ..self.contents()
            }),
            Err(CopyError::Encode(error)) => Err(error.into()),
            Err(CopyError::Decode(error)) => Err(self.locate(d, bookmark, error, true)),
        }
    }

    /// Returns the plan of the type. For a sequence, returns the plan of its elements, and its bound.
    fn flat_plan(&self) -> Result<(&Plan, Option<u32>), DynError> {
        let steps = self.steps();
        match steps.ops.get(steps.entry(self.code.root) as usize) {
            Some(Op::Block(plan)) => steps.plan(*plan).map(|plan| (plan, None)),
            Some(Op::FixedSequence { plan, bound }) => steps.plan(*plan).map(|plan| (plan, Some(*bound))),
            _ => None,
        }
        .ok_or_else(|| DynErrorKind::Inconsistent(NOT_FLAT).into())
    }

    /// Returns the distance in bytes between elements in the result of [`decode_flat`](Program::decode_flat),
    /// or `None` if the type has no flat layout. Types of fixed layout, and sequences of them, have one
    /// unless they are too large. For example, a type with over 256 fields has none, and neither has one with
    /// an array of over 64 fields that are not contiguous numbers.
    pub fn flat_stride(&self) -> Option<usize> {
        self.flat_plan().ok().map(|(plan, _)| plan.stride)
    }

    /// Reads a value of fixed layout, or the elements of a sequence of such values, to memory. The layout is
    /// that of structs in C, in native byte order and with zeros as padding. If the size of an element is a
    /// multiple of its alignment, each element is at a multiple of the [stride](Program::flat_stride).
    /// Otherwise, elements follow each other as in a stream. Numbers can be a view of the decoder's shared
    /// buffer, if byte order and alignment permit. Everything else is copied.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode), with the path to the fault, or
    /// [`Inconsistent`](DynErrorKind::Inconsistent) if the type has no flat layout.
    pub fn decode_flat(&self, d: &mut Decoder<'_>) -> Result<Bytes, DynError> {
        let (plan, bound) = self.flat_plan()?;
        let bookmark = d.bookmark();
        let flat = match bound {
            None => plan.read_flat(d, 1),
            Some(bound) => read_count(d, plan.min_size(), bound).and_then(|count| {
                if plan.min_size() == 0 {
                    d.charge(count.saturating_mul(EMPTY_VALUE_CHARGE_BYTES))?;
                }
                plan.read_flat(d, count)
            }),
        };
        flat.map_err(|error| self.locate(d, bookmark, error, true))
    }

    /// Writes the output of [`decode_flat`](Program::decode_flat). Numbers in long sequences are shared if
    /// byte order and position permit. Everything else is copied.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue) if the bytes are not a permitted number of valid
    /// elements. [`Inconsistent`](DynErrorKind::Inconsistent) if the type has no flat layout.
    pub fn encode_flat(&self, flat: &Bytes, e: &mut Encoder) -> Result<(), DynError> {
        let (plan, bound) = self.flat_plan()?;
        let stride = plan.stride.max(1);
        let (count, rest) = (flat.len() / stride, flat.len() % stride);
        let fits = match bound {
            None => count == usize::from(plan.stride != 0),
            Some(bound) => bound == 0 || count <= bound as usize,
        };
        if rest != 0 || !fits || !plan.has_valid_ordinals(flat, plan.end_phase, stride, false) {
            return Err(DynErrorKind::InvalidValue(
                "the bytes are not a permitted number of valid elements of the type",
            )
            .into());
        }
        if bound.is_some() {
            e.put_len(count)?;
        }
        plan.put_flat(flat, e);
        Ok(())
    }
}
